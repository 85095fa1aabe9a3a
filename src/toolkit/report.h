// What is inside a built model, for people and programs: layers with placement and reasons, tensors, the memory plan.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "format/program.h"
#include "platform/platforms.h"

namespace orknn::toolkit {

struct LayerReport {
  size_t index = 0;
  std::string type, name;           // "ConvRelu", the user's name
  std::vector<std::string> origin;  // layers of the source model it came from
  std::string device, engine, reason;
  std::vector<std::string> inputs, outputs;  // tensor names without constants
  std::string output_type, output_shape;
  uint64_t macs = 0, cycles = 0, read_bytes = 0, write_bytes = 0;
  std::optional<double> microseconds;  // predicted, one core; nothing when the chip's speed is unknown
  uint32_t cores = 1, tiles = 1;
};

struct TensorReport {
  std::string name, type, shape, place;  // place: arena, external, weights, run time
  uint64_t offset = 0, bytes = 0;
  int64_t first_layer = -1, last_layer = -1;  // made by, read last by; -1 = none
};

struct PortReport {
  std::string name, type, shape, layout;
  std::vector<float> mean, std;
};

struct ProgramReport {
  std::string label;
  std::vector<PortReport> inputs, outputs;
  std::vector<LayerReport> layers;
  std::vector<TensorReport> tensors;
  uint64_t internal_bytes = 0, port_bytes = 0, macs = 0;
  std::optional<double> microseconds;
  size_t npu_layers = 0, cpu_layers = 0;
};

struct ModelReport {
  std::string name;
  std::vector<std::string> platforms;  // at least one; numbers are those of the first
  std::string source_framework, toolkit_version, float_dtype, custom_string;
  uint64_t weight_bytes = 0;         // in the file
  uint64_t packed_weight_bytes = 0;  // in the memory of the device, of the largest program; 0 = not known
  std::vector<ProgramReport> programs;
};

ModelReport describe(const format::Model& model);
nlohmann::ordered_json to_json(const ModelReport& report);

// Facts of one chip, and of all.
nlohmann::ordered_json to_json(const platform::Platform& platform);

// Tables for a terminal or a file; plain text without colours.
// `width` > 0: lines of at most so many characters, as far as shortened names and dropped columns make that possible.
std::string summary_text(const ModelReport& report, size_t width = 0);
std::string layers_text(const ModelReport& report, size_t width = 0);
std::string tensors_text(const ModelReport& report, size_t width = 0);
std::string memory_text(const ModelReport& report, size_t width = 0);
std::string platforms_text(size_t width = 0);

// "conv", "pool", ...; "-" for none.
std::string_view engine_name(ir::Engine engine);
// "1.53 MiB".
std::string bytes_text(uint64_t bytes);

}  // namespace orknn::toolkit
