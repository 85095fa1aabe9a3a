// The parameter file of a model: a list of named arrays (format versions 0 to 3), read in place.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/tensor_data.h"

namespace orknn::importer::mxnet {

// What the .params file says about one array.
struct StoredArray {
  DType dtype = DType::Undefined;  // Undefined: an array without value
  ir::Dims dims;
  std::span<const std::byte> data;
  bool is_sparse = false;
};

class Params {
 public:
  // `keeper` holds `bytes`; arrays of the graph point into them.
  static Result<Params> parse(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper);

  bool contains(std::string_view name) const { return by_name_.contains(std::string(name)); }
  size_t size() const { return arrays_.size(); }
  // A view of the file, or a copy when its place in the file does not suit the type.
  Result<ir::TensorData> value(std::string_view name) const;

 private:
  std::vector<StoredArray> arrays_;
  std::unordered_map<std::string, size_t> by_name_;  // without the prefixes "arg:" and "aux:"
  std::shared_ptr<const void> keeper_;
};

// The element type a number stands for in parameter files and __dtype__ attributes; Undefined for an unknown number.
DType dtype_of_number(int64_t number);

// Whether the bytes begin like a parameter file.
bool looks_like_params(std::span<const std::byte> bytes);

}  // namespace orknn::importer::mxnet
