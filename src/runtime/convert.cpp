#include "runtime/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "ops/support/movement.h"
#include "sim/kernels/support/forms.h"

namespace orknn::runtime {
namespace {
using namespace ir;

constexpr int64_t kGrain = 1 << 14;  // elements per piece of parallel work

// Calls body(begin, end) over pieces of [0, count).
template <class Body>
void over(ThreadPool& pool, int64_t count, Body body) {
  pool.parallel_for(count, kGrain, body);
}

// Element-wise conversion; the pairs that float models need at their borders have vector code.
void convert_piece(DType from_type, const void* from, DType to_type, void* to, int64_t count) {
  const auto& forms = sim::kernels::forms();
  if (from_type == DType::Float32 && to_type == DType::Float16)
    return forms.to_half(static_cast<const float*>(from), static_cast<Half*>(to), count);
  if (from_type == DType::Float16 && to_type == DType::Float32)
    return forms.to_float(static_cast<const Half*>(from), static_cast<float*>(to), count);
  const Dims dims{count};
  convert_elements({from_type, dims, from}, {to_type, dims, to});
}

void convert_range(DType from_type, const void* from, DType to_type, void* to, int64_t count, ThreadPool& pool) {
  const size_t from_bytes = dtype_bytes(from_type), to_bytes = dtype_bytes(to_type);
  over(pool, count, [&](int64_t begin, int64_t end) {
    convert_piece(from_type, static_cast<const std::byte*>(from) + static_cast<size_t>(begin) * from_bytes, to_type,
                  static_cast<std::byte*>(to) + static_cast<size_t>(begin) * to_bytes, end - begin);
  });
}

// Where the channel of an element is in row-major order: index / inner % channels.
struct Channels {
  int64_t count = 1, inner = 1;
};

Channels channels_of(std::span<const int64_t> dims, Layout layout) {
  if (dims.empty()) return {};
  if (dims.size() == 1 || (dims.size() == 4 && layout == Layout::NHWC)) return {dims.back(), 1};
  return {dims[1], element_count(dims.subspan(2))};
}

// Copies `batch` matrices of rows x columns to their transposes. The user's data may lie at any address.
void transpose(const void* from, void* to, int64_t batch, int64_t rows, int64_t columns, DType dtype, ThreadPool& pool) {
  ops::copy_strided(ops::into_dense(Dims{batch, columns, rows}, Dims{rows * columns, 1, columns}), from, to, dtype_bytes(dtype),
                    pool);
}

// (x - mean) / std per channel; an absent list is the neutral one.
struct Normalization {
  std::vector<float> mean, std;
  float operator()(float x, int64_t channel) const {
    return (x - mean[static_cast<size_t>(channel)]) / std[static_cast<size_t>(channel)];
  }
};

std::optional<Normalization> normalization_of(const format::Port& port, int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  Normalization n{std::vector<float>(count, 0.f), std::vector<float>(count, 1.f)};
  if (port.mean.size() == count) n.mean = port.mean;
  if (port.std.size() == count) n.std = port.std;
  const bool neutral = std::all_of(n.mean.begin(), n.mean.end(), [](float v) { return v == 0.f; }) &&
                       std::all_of(n.std.begin(), n.std.end(), [](float v) { return v == 1.f; });
  return neutral ? std::nullopt : std::optional(std::move(n));
}

bool is_quantized(const Tensor& t) { return t.quant && !t.quant->scale.empty() && is_integer(t.dtype); }

float quant_scale(const QuantParams& q, int64_t channel) {
  return q.scale[q.scale.size() == 1 ? 0 : static_cast<size_t>(channel) % q.scale.size()];
}
int32_t quant_zero(const QuantParams& q, int64_t channel) {
  return q.zero_point.empty() ? 0
                              : q.zero_point[q.zero_point.size() == 1 ? 0 : static_cast<size_t>(channel) % q.zero_point.size()];
}

// Real numbers as quantized integers: rounded half to even, clamped to the type; NaN is zero.
struct Quantizer {
  double scale, zero, low, high;

  explicit Quantizer(const Tensor& t)
      : scale(quant_scale(*t.quant, 0)),
        zero(static_cast<double>(quant_zero(*t.quant, 0))),
        low(static_cast<double>(dtype_min(t.dtype)) - zero),
        high(static_cast<double>(dtype_max(t.dtype)) - zero) {}

  template <class T>
  T apply(float real) const {
    double q = static_cast<double>(real) / scale;
    q = q > low ? q : q <= low ? low : 0;
    q = q < high ? q : high;
    if constexpr (sizeof(T) <= 2) {
      constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no bits after the point
      return static_cast<T>((q + kRound) - kRound + zero);
    } else {
      return static_cast<T>(std::nearbyint(q) + zero);
    }
  }
};

// One real number as the program's element type.
template <class T>
T store(float real, const Tensor& t, bool quantized) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (quantized) return Quantizer(t).apply<T>(real);
  }
  (void)quantized;
  const Dims one{1};
  T value;
  convert_elements({DType::Float32, one, &real}, {dtype_of<T>(), one, &value});
  return value;
}

// Pixels: every value of every channel is worked out once.
void convert_pixels(const uint8_t* from, const MutableTensorView& to, const Tensor& tensor,
                    const std::optional<Normalization>& normalization, bool quantize, Channels channels, ThreadPool& pool) {
  visit_dtype(to.dtype, [&]<class T>(TypeTag<T>) {
    const auto table = std::make_unique<T[]>(static_cast<size_t>(channels.count) * 256);
    for (int64_t c = 0; c < channels.count; ++c)
      for (int64_t v = 0; v < 256; ++v) {
        const auto x = static_cast<float>(v);
        table[static_cast<size_t>(c * 256 + v)] = store<T>(normalization ? (*normalization)(x, c) : x, tensor, quantize);
      }
    T* target = to.as<T>();
    over(pool, to.count(), [&](int64_t begin, int64_t end) {
      if (channels.inner == 1) {
        int64_t c = begin % channels.count;
        for (int64_t i = begin; i < end; ++i) {
          target[i] = table[static_cast<size_t>(c * 256 + from[i])];
          if (++c == channels.count) c = 0;
        }
        return;
      }
      while (begin < end) {
        const int64_t plane = begin / channels.inner, stop = std::min(end, (plane + 1) * channels.inner);
        const T* row = table.get() + plane % channels.count * 256;
        for (; begin < stop; ++begin) target[begin] = row[from[begin]];
      }
    });
  });
}

void convert_numbers(DType from_type, const void* from, const MutableTensorView& to, const Tensor& tensor,
                     const std::optional<Normalization>& normalization, bool quantize, Channels channels, ThreadPool& pool) {
  if (!normalization && !quantize) return convert_range(from_type, from, to.dtype, to.data, to.count(), pool);
  const size_t from_bytes = dtype_bytes(from_type);
  over(pool, to.count(), [&](int64_t begin, int64_t end) {
    std::vector<float> reals(static_cast<size_t>(end - begin));
    convert_piece(from_type, static_cast<const std::byte*>(from) + static_cast<size_t>(begin) * from_bytes, DType::Float32,
                  reals.data(), end - begin);
    if (normalization)
      for (int64_t i = begin; i < end; ++i) {
        float& x = reals[static_cast<size_t>(i - begin)];
        x = (*normalization)(x, i / channels.inner % channels.count);
      }
    if (!quantize) {
      convert_piece(DType::Float32, reals.data(), to.dtype,
                    static_cast<std::byte*>(to.data) + static_cast<size_t>(begin) * dtype_bytes(to.dtype), end - begin);
      return;
    }
    visit_dtype(to.dtype, [&]<class T>(TypeTag<T>) {
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const Quantizer quantizer(tensor);
        for (int64_t i = begin; i < end; ++i) to.as<T>()[i] = quantizer.apply<T>(reals[static_cast<size_t>(i - begin)]);
      } else {
        for (int64_t i = begin; i < end; ++i) to.as<T>()[i] = store<T>(reals[static_cast<size_t>(i - begin)], tensor, true);
      }
    });
  });
}
}  // namespace

Dims nhwc_from_nchw(std::span<const int64_t> d) { return {d[0], d[2], d[3], d[1]}; }
Dims nchw_from_nhwc(std::span<const int64_t> d) { return {d[0], d[3], d[1], d[2]}; }

Layout port_layout(const format::Port& port, const Tensor& tensor) {
  if (!tensor.shape || tensor.shape->size() != 4) return Layout::Undefined;
  return port.layout == Layout::NHWC ? Layout::NHWC : Layout::NCHW;
}

Result<TensorData> convert_input(const format::Port& port, const Tensor& tensor, const InputData& data, ThreadPool& pool) {
  const Layout model_layout = port_layout(port, tensor);
  const Layout data_layout = model_layout == Layout::Undefined || data.layout == Layout::Undefined ? model_layout : data.layout;
  const bool permuted = data_layout != model_layout;
  std::optional<Dims> dims = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
  if (!data.dims.empty() || !dims) {
    Dims given(data.dims.begin(), data.dims.end());
    if (permuted && given.size() == 4) given = model_layout == Layout::NHWC ? nhwc_from_nchw(given) : nchw_from_nhwc(given);
    bool fits = !tensor.shape || tensor.shape->size() == given.size();
    if (fits && tensor.shape)
      for (size_t i = 0; i < given.size(); ++i) fits &= !(*tensor.shape)[i].is_known() || (*tensor.shape)[i].value() == given[i];
    if (!fits)
      return invalid_argument("input '" + tensor.name + "' has the wrong shape")
          .expected(tensor.shape ? to_string(*tensor.shape) : "any")
          .found(to_string(given));
    dims = std::move(given);
  }
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(*dims));
  const size_t needed = static_cast<size_t>(count) * dtype_bytes(data.dtype);
  if (data.bytes < needed || (!data.data && needed))
    return invalid_argument("input '" + tensor.name + "' is too small")
        .expected(std::to_string(needed) + " bytes")
        .found(std::to_string(data.data ? data.bytes : 0));

  DType from_type = data.dtype == DType::Bool ? DType::UInt8 : data.dtype;  // any non-zero byte of the user's is true
  const void* from = data.data;
  TensorData reordered;
  if (!permuted && reinterpret_cast<uintptr_t>(from) % dtype_bytes(from_type) != 0 && count > 0) {
    reordered = TensorData::allocate(from_type, *dims);
    std::memcpy(reordered.mutable_data(), from, needed);
    from = reordered.data();
  } else if (permuted && count > 0) {
    reordered = TensorData::allocate(from_type, *dims);
    const auto& d = *dims;  // in the model's order
    const int64_t channels = model_layout == Layout::NCHW ? d[1] : d[3], pixels = count / d[0] / channels;
    if (model_layout == Layout::NCHW)
      transpose(from, reordered.mutable_data(), d[0], pixels, channels, from_type, pool);
    else
      transpose(from, reordered.mutable_data(), d[0], channels, pixels, from_type, pool);
    from = reordered.data();
  }
  const Channels channels = channels_of(*dims, model_layout);
  const bool real = is_float(tensor.dtype) || is_quantized(tensor);
  const std::optional<Normalization> normalization =
      real && !data.pass_through ? normalization_of(port, channels.count) : std::nullopt;
  const bool quantize = is_quantized(tensor) && !data.pass_through;
  TensorData out = TensorData::allocate(tensor.dtype, *dims);
  if (count == 0) return out;
  const MutableTensorView to{tensor.dtype, out.dims(), out.mutable_data()};
  // A table pays when every entry is used more than once.
  if (from_type == DType::UInt8 && count / 256 >= channels.count && (normalization || quantize || is_float(tensor.dtype)))
    convert_pixels(static_cast<const uint8_t*>(from), to, tensor, normalization, quantize, channels, pool);
  else
    convert_numbers(from_type, from, to, tensor, normalization, quantize, channels, pool);
  return out;
}

void convert_output(const Tensor& tensor, const TensorView& value, DType dtype, void* to, ThreadPool& pool) {
  if (!is_quantized(tensor) || !is_float(dtype)) return convert_range(value.dtype, value.data, dtype, to, value.count(), pool);
  const QuantParams& q = *tensor.quant;
  Channels channels;
  if (q.axis >= 0 && q.axis < value.rank()) {
    channels.count = value.dims[static_cast<size_t>(q.axis)];
    channels.inner = element_count(value.dims.subspan(static_cast<size_t>(q.axis) + 1));
  }
  visit_dtype(value.dtype, [&]<class F>(TypeTag<F>) {
    over(pool, value.count(), [&](int64_t begin, int64_t end) {
      std::vector<float> reals(static_cast<size_t>(end - begin));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i / channels.inner % channels.count;
        reals[static_cast<size_t>(i - begin)] =
            (static_cast<float>(value.as<F>()[i]) - static_cast<float>(quant_zero(q, c))) * quant_scale(q, c);
      }
      convert_piece(DType::Float32, reals.data(), dtype,
                    static_cast<std::byte*>(to) + static_cast<size_t>(begin) * dtype_bytes(dtype), end - begin);
    });
  });
}

}  // namespace orknn::runtime
