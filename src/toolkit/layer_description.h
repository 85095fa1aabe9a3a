// What a layer's folder describes (toolkit/layer_folder.h): layer.json, understood and checked, with its constant operands.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor_data.h"
#include "silicon/layout.h"
#include "silicon/recipe.h"

namespace orknn::toolkit {

struct FolderTensor {
  std::string id;    // in layer.json
  std::string file;  // a name in the folder; empty: fused away, never in memory
  silicon::Cube cube;
  silicon::TensorOrder order = silicon::TensorOrder::Hwc;
  int64_t zero_point = 0;
  bool is_flat = false;  // elements one after the other, without axes

  ir::Dims dims() const;
  int64_t count() const { return cube.height * cube.width * cube.channels; }
};

struct FolderStep {
  size_t op = 0;  // its number in layer.json
  std::variant<silicon::ConvLayer, silicon::PoolLayer, silicon::TableLayer> layer;
  size_t input = 0, output = 0;  // positions in FolderLayer::tensors
  std::optional<size_t> operand;
  ir::TensorData weights;  // as pack_operands wants them
  std::vector<int32_t> bias;
};

struct FolderLayer {
  nlohmann::ordered_json json;
  bool is_chain = false;  // "tensors" and "ops", against a single "layer"
  std::vector<FolderTensor> tensors;
  std::vector<FolderStep> steps;
  double tolerance = 0;

  // True for tensors that some step computes.
  bool is_computed(size_t tensor) const;
};

Result<FolderLayer> read_layer(const std::string& folder);

// --- what readers of such folders share
Status bad_layer(const std::string& problem);
// Streams, recipes and the chip model are those of one chip. Throws what Fields throw.
Status check_chip(const nlohmann::ordered_json& layer);
Result<nlohmann::ordered_json> read_json_object(const std::string& path);
// An .npy of the folder with elements of that type and these axes; axes of one element may be missing or added.
Result<ir::TensorData> read_array(const std::string& folder, const std::string& file, DType dtype, const ir::Dims& dims);
// Bytes of tensor `i` in device memory: steps may read or write more than its cube.
int64_t bytes_in_memory(const FolderLayer& layer, size_t i);
// Puts the folder's values of a tensor into its cube; without a file a function's input is a ramp over its tables.
Status load_tensor(const std::string& folder, const FolderTensor& tensor, std::vector<std::byte>& memory);
std::vector<uint16_t> table_ramp(int64_t elements);

}  // namespace orknn::toolkit
