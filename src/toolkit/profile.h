// What a network will cost on a chip, predicted without a board: time, traffic and memory per layer, what limits it and what
// would help.
#pragma once

#include <algorithm>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compile/compile.h"

namespace orknn::toolkit {

struct ProfileRequest {
  std::string dtype = "w8a8";   // w8a8, float16, w8a16, w4a16, w16a16i and their usual spellings; empty = as the model is
  std::vector<int> cores = {};  // core counts; empty = every count the chip has
  int batch = 1;
  std::optional<double> npu_mhz = {}, ddr_mhz = {};  // instead of the clocks of the published speeds
  int sparse_percent = 0;                            // 50 or 75: as if every convolution that can be sparse were trained so
  int sram_kib = 0;                                  // system SRAM given to intermediate results
  int neighbours = 0;                                // other cores that run something else meanwhile and share the memory bus
  std::map<std::string, std::string> op_target = {};
  bool single_core = false;
};

struct LayerProfile {
  size_t index = 0;
  std::string op, type, name, device, engine, reason, data_type, output_shape;
  std::vector<std::string> origin;
  bool is_on_npu() const { return device == "NPU"; }
  uint64_t macs = 0, array_cycles = 0, ddr_cycles = 0, read_bytes = 0, write_bytes = 0, read_again_bytes = 0, on_chip_bytes = 0,
           weight_bytes = 0;
  uint32_t tasks = 1;  // of the NPU, on the cores that share it
  format::Tiling tiling;
  int cores = 1;
  double us = 0, compute_us = 0, traffic_us = 0, table_us = 0, fixed_us = 0, cpu_us = 0;
  std::string bound;                     // compute, bandwidth, table, vector, layout, cpu or overhead
  std::map<std::string, double> bounds;  // microseconds by bound; a layer may have several steps
  std::optional<double> mac_usage;  // of an NPU layer: true multiply-accumulates over what the array could do in that time, 0..1;
                                    // nothing when the array is unknown
  std::vector<compile::Step> steps;

  // Traffic that reaches DDR.
  uint64_t ddr_bytes() const {
    return read_bytes + write_bytes + read_again_bytes - std::min(on_chip_bytes, read_bytes + write_bytes);
  }
};

struct Profile {
  std::string platform, dtype;
  std::string input_size;  // what the caller made of the picture, "320x640"; empty = as the model says
  std::string problem;     // why the network cannot run there; nothing else is set then
  std::string unknown;     // why there are no times; memory and work are stated all the same
  std::string constants;   // "fitted" to published speeds of this chip, or "scaled" from a relative
  std::string remark;      // what the times rest on where that is not published for the chip
  std::string off_list;    // layers that no operator list of the chip has, in words
  bool knows_ddr_cycles = false, knows_npu_cycles = false;  // the vendor's cycle columns; without clocks or array there are none
  int cores = 1, batch = 1;
  int at_once = 1;                          // samples of the batch that run at the same time, one per core
  double fps = 0, latency_ms = 0, gbs = 0;  // samples per second; time of the whole batch
  double memory_gbs = 0;                    // what the memory delivers at best, by the chip's constants; 0 = unknown
  double layers_us = 0;                     // one sample: the sum over the layers
  uint64_t weight_bytes = 0, internal_bytes = 0, port_bytes = 0, traffic_bytes = 0, macs = 0;
  std::string bound;                     // what most of the time goes into
  std::map<std::string, double> shares;  // of the time, by bound, 0..1
  std::optional<double> mac_usage;       // of all layers, 0..1
  size_t npu_layers = 0, cpu_layers = 0;
  std::vector<LayerProfile> layers;
  std::vector<std::string> advice;
  // The memory plan: tensor, offset, bytes, first and last layer.
  struct Block {
    std::string tensor;
    uint64_t offset = 0, bytes = 0;
    size_t first = 0, last = 0;
  };
  std::vector<Block> memory;

  bool has_times() const { return problem.empty() && unknown.empty(); }
};

// `graph` is optimized and has its shapes. One entry per core count. A chip that cannot run the network gives one entry with
// `problem` set. Errors: an unknown dtype, impossible clocks, cores or batch, a quantized graph asked for in another type.
Result<std::vector<Profile>> profile(const ir::Graph& graph, const platform::Platform& platform, const ProfileRequest& request);

// Checks everything of a request that no chip could fulfil.
Status check(const ProfileRequest& request);

// Layers that neither the NPU nor the CPU list of a small chip has, and why; empty when there are none, and for chips that
// compute everything else on their CPU.
std::string off_list(const compile::Estimate& estimate, const platform::Platform& chip);
// Advice in plain words, the costliest first. Without times only what falls to the CPU.
std::vector<std::string> advise(const Profile& profile, const compile::Estimate& estimate, const platform::Platform& chip,
                                const compile::Conditions& conditions);

nlohmann::ordered_json to_json(const Profile& profile);
// Events of chrome://tracing and Perfetto.
nlohmann::ordered_json chrome_trace(const Profile& profile);
std::string chips_text(const std::vector<Profile>& profiles, size_t width = 0);  // width as in report.h
std::string layers_text(const Profile& profile, size_t width = 0);
std::string advice_text(const Profile& profile, size_t width = 0);
// One page with table, timeline, roofline and memory map; no outside resources.
std::string html_page(const std::string& model, const std::vector<Profile>& profiles);

// Everything a reader must know beside the figures of a chip; empty when there is nothing.
std::string remarks(const Profile& profile);
// "37 %".
std::string percent_text(double share);
// "73.1"; slow networks get more digits.
std::string fps_text(double fps);

}  // namespace orknn::toolkit
