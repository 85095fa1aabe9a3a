// Tensor contents: immutable shared bytes (constants, run results) and views that kernels work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/shape.h"

namespace orknn::ir {

// Read-only view of a dense row-major tensor. Does not own anything.
struct TensorView {
  DType dtype = DType::Undefined;
  std::span<const int64_t> dims;
  const void* data = nullptr;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const { return element_count(dims); }
  size_t bytes() const { return static_cast<size_t>(count()) * dtype_bytes(dtype); }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  template <class T>
  std::span<const T> values() const {
    return {as<T>(), static_cast<size_t>(count())};
  }
};

// The same, writable.
struct MutableTensorView {
  DType dtype = DType::Undefined;
  std::span<const int64_t> dims;
  void* data = nullptr;

  int64_t rank() const { return static_cast<int64_t>(dims.size()); }
  int64_t count() const { return element_count(dims); }
  size_t bytes() const { return static_cast<size_t>(count()) * dtype_bytes(dtype); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  template <class T>
  std::span<T> values() const {
    return {as<T>(), static_cast<size_t>(count())};
  }
  operator TensorView() const { return {dtype, dims, data}; }
};

struct PackedForm;  // packed.h

// A tensor value: dtype, dims and bytes that are shared and never change once published. Cheap to copy. The bytes are
// either owned or belong to a mapped file that `keeper` holds open. Data is aligned to 64 bytes when owned.
class TensorData {
 public:
  TensorData() = default;  // no value: dtype Undefined
  // Uninitialized contents to fill through mutable_data().
  static TensorData allocate(DType dtype, Dims dims);
  // A view of someone else's bytes, kept alive by `keeper`. `bytes` must hold exactly the elements.
  static TensorData wrap(DType dtype, Dims dims, const void* bytes, std::shared_ptr<const void> keeper);
  template <class T>
  static TensorData from(Dims dims, std::span<const T> values) {
    TensorData t = allocate(dtype_of<T>(), std::move(dims));
    ORKNN_ASSERT(static_cast<size_t>(t.count()) == values.size(), "as many values as the shape says");
    std::copy(values.begin(), values.end(), static_cast<T*>(t.mutable_data()));
    return t;
  }
  template <class T>
  static TensorData scalar(T value) {
    return from<T>({}, std::span<const T>(&value, 1));
  }
  static TensorData vector(std::span<const int64_t> values) {
    return from<int64_t>({static_cast<int64_t>(values.size())}, values);
  }
  static TensorData zeros(DType dtype, Dims dims);

  bool has_value() const { return dtype_ != DType::Undefined; }
  DType dtype() const { return dtype_; }
  const Dims& dims() const { return dims_; }
  int64_t count() const { return element_count(dims_); }
  size_t bytes() const { return static_cast<size_t>(count()) * dtype_bytes(dtype_); }
  const void* data() const { return data_; }
  void* mutable_data();  // only for the sole owner of allocate()d data
  TensorView view() const { return {dtype_, dims_, data_}; }
  template <class T>
  const T* as() const {
    return static_cast<const T*>(data_);
  }
  template <class T>
  std::span<const T> values() const {
    return {as<T>(), static_cast<size_t>(count())};
  }
  // The same bytes under another shape with as many elements.
  TensorData reshaped(Dims dims) const;
  // The small integers that the values were made from, which files hold instead; nullptr = none. Values computed from these have
  // none.
  const std::shared_ptr<const PackedForm>& packed() const { return packed_; }
  TensorData with_packed(std::shared_ptr<const PackedForm> form) const;

 private:
  DType dtype_ = DType::Undefined;
  Dims dims_;
  const void* data_ = nullptr;
  std::shared_ptr<const void> keeper_;
  std::shared_ptr<const PackedForm> packed_;
};

// Contents of an integer or bool tensor as int64 (uint64 above the int64 range wraps).
std::vector<int64_t> to_ints(const TensorView& t);
// Contents of any numeric tensor as double.
std::vector<double> to_doubles(const TensorView& t);
// Element-wise conversion with C++ cast semantics between floats and integers (no saturation); bool from any non-zero.
void convert_elements(const TensorView& from, const MutableTensorView& to);
TensorData convert(const TensorView& from, DType to);
// Same dtype, shape and bytes.
bool identical(const TensorView& a, const TensorView& b);

}  // namespace orknn::ir
