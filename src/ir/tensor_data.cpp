#include "ir/tensor_data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "base/half_array.h"

namespace orknn::ir {
namespace {
constexpr std::align_val_t kAlignment{64};

// Float to integer without undefined behaviour: out-of-range values and NaN give the nearest bound or zero.
template <class To, class From>
To convert_value(From from) {
  if constexpr (std::is_same_v<To, bool>) {
    if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>)
      return static_cast<float>(from) != 0.0f;
    else
      return from != From{};
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert_value<To>(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(from));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(from)) return To{0};
    constexpr double low = static_cast<double>(std::numeric_limits<To>::min());
    constexpr double high = static_cast<double>(std::numeric_limits<To>::max());
    const double x = static_cast<double>(from);
    if (x <= low) return std::numeric_limits<To>::min();
    if (x >= high) return std::numeric_limits<To>::max();
    return static_cast<To>(x);
  } else {
    return static_cast<To>(from);
  }
}
}  // namespace

TensorData TensorData::allocate(DType dtype, Dims dims) {
  TensorData t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  void* memory = ::operator new(std::max<size_t>(t.bytes(), 1), kAlignment);
  t.keeper_ = std::shared_ptr<void>(memory, [](void* p) { ::operator delete(p, kAlignment); });
  t.data_ = memory;
  return t;
}

TensorData TensorData::wrap(DType dtype, Dims dims, const void* bytes, std::shared_ptr<const void> keeper) {
  TensorData t;
  t.dtype_ = dtype;
  t.dims_ = std::move(dims);
  t.data_ = bytes;
  t.keeper_ = std::move(keeper);
  return t;
}

TensorData TensorData::zeros(DType dtype, Dims dims) {
  TensorData t = allocate(dtype, std::move(dims));
  std::memset(t.mutable_data(), 0, t.bytes());
  return t;
}

void* TensorData::mutable_data() {
  ORKNN_ASSERT(keeper_.use_count() == 1, "only a sole owner may write");
  return const_cast<void*>(data_);
}

TensorData TensorData::reshaped(Dims dims) const {
  ORKNN_ASSERT(element_count(dims) == count(), "reshaping keeps the number of elements");
  TensorData t = *this;
  t.dims_ = std::move(dims);
  t.packed_ = nullptr;
  return t;
}

TensorData TensorData::with_packed(std::shared_ptr<const PackedForm> form) const {
  TensorData t = *this;
  t.packed_ = std::move(form);
  return t;
}

std::vector<int64_t> to_ints(const TensorView& t) {
  std::vector<int64_t> out(static_cast<size_t>(t.count()));
  const Dims dims(t.dims.begin(), t.dims.end());
  convert_elements(t, {DType::Int64, dims, out.data()});
  return out;
}

std::vector<double> to_doubles(const TensorView& t) {
  std::vector<double> out(static_cast<size_t>(t.count()));
  const Dims dims(t.dims.begin(), t.dims.end());
  convert_elements(t, {DType::Float64, dims, out.data()});
  return out;
}

void convert_elements(const TensorView& from, const MutableTensorView& to) {
  const int64_t n = from.count();
  if (n == 0) return;
  if (from.dtype == to.dtype) {
    std::memcpy(to.data, from.data, from.bytes());
    return;
  }
  if (from.dtype == DType::Float16 && to.dtype == DType::Float32)
    return widen_halves(from.as<Half>(), to.as<float>(), static_cast<size_t>(n));
  if (from.dtype == DType::Float32 && to.dtype == DType::Float16)
    return narrow_to_halves(from.as<float>(), to.as<Half>(), static_cast<size_t>(n));
  visit_dtype(from.dtype, [&]<class F>(TypeTag<F>) {
    visit_dtype(to.dtype, [&]<class T>(TypeTag<T>) {
      const F* source = from.as<F>();
      T* target = to.as<T>();
      for (int64_t i = 0; i < n; ++i) target[i] = convert_value<T>(source[i]);
    });
  });
  if (to.dtype == DType::Int4)  // wrap to four bits, as packing would
    for (int64_t i = 0; i < n; ++i) to.as<int8_t>()[i] = static_cast<int8_t>(static_cast<int8_t>(to.as<uint8_t>()[i] << 4) >> 4);
  if (to.dtype == DType::UInt4)
    for (int64_t i = 0; i < n; ++i) to.as<uint8_t>()[i] &= 15;
}

TensorData convert(const TensorView& from, DType to) {
  TensorData out = TensorData::allocate(to, Dims(from.dims.begin(), from.dims.end()));
  convert_elements(from, {to, out.dims(), out.mutable_data()});
  return out;
}

bool identical(const TensorView& a, const TensorView& b) {
  return a.dtype == b.dtype && std::ranges::equal(a.dims, b.dims) && std::memcmp(a.data, b.data, a.bytes()) == 0;
}

}  // namespace orknn::ir
