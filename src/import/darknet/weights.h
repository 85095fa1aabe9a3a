// The numbers of a Darknet network (.weights): a header and float32 values in the order of the layers, without names or padding.
// Values are views of the mapped file. Without a file they are random and reproducible.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "import/lower/network.h"
#include "ir/tensor_data.h"

namespace orknn::importer::darknet {

class Weights {
 public:
  Weights() = default;  // no file
  static Result<Weights> open(const std::string& path);
  // The same for bytes in memory.
  static Result<Weights> read(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper);

  bool has_file() const { return has_file_; }
  // Files of the AlexeyAB fork say so in their version; the two forks order some layers' numbers differently.
  bool is_fork() const { return fork_; }
  // Very old files keep the matrices of connected layers transposed.
  bool is_transposed() const { return transposed_; }
  // The next numbers of the file. `name` seeds random ones; `fan_in` is the number of inputs that add up to one output.
  Result<ir::TensorData> take(std::string_view name, ir::Dims dims, Fill fill, int64_t fan_in = 1);
  // The same without touching the file.
  Result<ir::TensorData> invent(std::string_view name, ir::Dims dims, Fill fill, int64_t fan_in = 1);
  // Values of the file that were not taken, and bytes at its end that are not a value.
  size_t rest() const { return rest_.size() / sizeof(float); }
  size_t odd_bytes() const { return rest_.size() % sizeof(float); }
  // What the first numbers taken that are infinite or none belong to; empty when all are finite.
  const std::string& first_not_finite() const { return first_not_finite_; }

 private:
  std::span<const std::byte> rest_;
  std::shared_ptr<const void> keeper_;
  bool has_file_ = false, fork_ = true, transposed_ = false;
  int64_t taken_ = 0;
  InventedValues invented_;
  std::string first_not_finite_;
};

}  // namespace orknn::importer::darknet
