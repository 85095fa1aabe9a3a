// What users feed and fetch against what a program computes with: element types, axis order, normalization, quantization.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/threads.h"
#include "format/program.h"
#include "ops/support/strided_copy.h"

namespace orknn::runtime {

// Real numbers as quantized integers: rounded half to even, clamped to the type; NaN is zero.
struct Quantizer {
  double scale, zero, low, high;
  explicit Quantizer(const ir::Tensor& t);
};

// Data of one model input as the user holds it.
struct InputData {
  DType dtype = DType::Float32;
  const void* data = nullptr;
  size_t bytes = 0;
  ir::Layout layout = ir::Layout::Undefined;  // of 4-D data; Undefined = the model's own. Ignored for other ranks.
  // The numbers are what the model computes with: no (x - mean) / std, no quantization. Types are still converted.
  bool pass_through = false;
  // Extents in the order of `layout`, needed only where the model leaves some open.
  std::span<const int64_t> dims = {};
  // Of NHWC data: pixels from a row to the next, rows from a picture to the next; 0 = as many as there are.
  int64_t row_pixels = 0, picture_rows = 0;
  // Channels per block: the data is NC1HWC2, whatever `layout` says; 0 = no blocks.
  int64_t lanes = 0;
};

// How one result is to lie in the caller's memory.
struct OutputForm {
  DType dtype = DType::Float32;
  ir::Layout layout = ir::Layout::Undefined;  // of 4-D results; Undefined = the model's own
  int64_t lanes = 0;                          // channels per block of NC1HWC2; 0 = no blocks
};

// Extents of a 4-D tensor in the other axis order.
ir::Dims nhwc_from_nchw(std::span<const int64_t> dims);
ir::Dims nchw_from_nhwc(std::span<const int64_t> dims);

// Axis order of a 4-D port; what a source model leaves open is NCHW.
ir::Layout port_layout(const format::Port& port, const ir::Tensor& tensor);

// Part of a change of axis order: what lies where.
struct Reordering {
  ops::StridedCopy copy;
  int64_t from = 0, to = 0;  // first element
};

// Makes the value of an input, in the program's type and order, out of data of one form. Floating-point steps are done in
// float32, element by element, so the result depends on nothing but the data. Everything that depends on the form alone is done
// once; run() allocates nothing.
class InputConverter {
 public:
  // `form.data` and `form.bytes` are not looked at.
  static Result<InputConverter> make(const format::Port& port, const ir::Tensor& tensor, const InputData& form);

  DType dtype() const { return dtype_; }
  const ir::Dims& dims() const { return dims_; }
  size_t needed_bytes() const { return needed_bytes_; }
  // Whether the data is the value already, byte for byte.
  bool is_copy() const { return reorderings_.empty() && from_type_ == dtype_ && !normalization_ && !quantizer_; }
  // `from` holds needed_bytes() at any address.
  void run(const void* from, void* to, ThreadPool& pool);

 private:
  // (x - mean) / std per channel.
  struct Normalization {
    std::vector<float> mean, std;
    float operator()(float x, int64_t channel) const {
      return (x - mean[static_cast<size_t>(channel)]) / std[static_cast<size_t>(channel)];
    }
  };
  static std::optional<Normalization> normalization_of(const format::Port& port, int64_t channels);
  void reorder(ir::Layout model, ir::Layout data, const InputData& form);
  void make_table();
  template <class T>
  T store(float real) const;
  void convert_pixels(const uint8_t* from, const ir::MutableTensorView& to, ThreadPool& pool) const;
  void convert_numbers(const void* from, const ir::MutableTensorView& to, ThreadPool& pool) const;

  DType from_type_ = DType::Undefined, dtype_ = DType::Undefined;
  ir::Dims dims_;
  size_t needed_bytes_ = 0;
  int64_t channel_count_ = 1, channel_inner_ = 1;  // the channel of element i is i / inner % count
  std::vector<Reordering> reorderings_;            // empty = the data has the program's order
  ir::TensorData ordered_;                         // the data in the program's order, where it is not or lies askew
  std::optional<Normalization> normalization_;
  std::optional<Quantizer> quantizer_;
  std::vector<std::byte> table_;  // results for every pixel value of every channel; empty = not used
};

// `place` gives memory for the value when the size is known, nullptr = memory of its own.
using InputPlace = std::function<std::shared_ptr<void>(size_t bytes)>;
Result<ir::TensorData> convert_input(const format::Port& port, const ir::Tensor& tensor, const InputData& data, ThreadPool& pool,
                                     const InputPlace& place = nullptr);

// Writes a result of the program in another form; run() allocates nothing.
class OutputConverter {
 public:
  // `dims` are those of the result. `tensor` must outlive the converter.
  OutputConverter(const format::Port& port, const ir::Tensor& tensor, std::span<const int64_t> dims, const OutputForm& form);
  size_t bytes() const { return bytes_; }
  // Whether the form is that of the program, byte for byte.
  bool is_copy() const { return reorderings_.empty() && form_.dtype == tensor_->dtype; }
  void run(const ir::TensorView& value, void* to, ThreadPool& pool);

 private:
  const ir::Tensor* tensor_;
  OutputForm form_;
  size_t bytes_ = 0;
  bool has_padding_ = false;  // the last block of channels is not full
  std::vector<Reordering> reorderings_;
  ir::TensorData converted_;  // in the wanted type and the program's order
};

// Whether values of `tensor` are integers that stand for real numbers.
bool is_quantized(const ir::Tensor& tensor);
// Real numbers as values of a quantized `tensor` that has one scale.
void quantize_values(const ir::Tensor& tensor, std::span<const float> reals, void* to);

// Writes `value` (a result of `tensor`) as type `dtype`; quantized values become real ones when `dtype` is a float type.
// `to` holds as many elements.
void convert_output(const ir::Tensor& tensor, const ir::TensorView& value, DType dtype, void* to, ThreadPool& pool);

}  // namespace orknn::runtime
