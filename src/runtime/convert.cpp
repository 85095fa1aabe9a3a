#include "runtime/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "sim/kernels/support/forms.h"

namespace orknn::runtime {
namespace {
using namespace ir;

constexpr int64_t kGrain = 1 << 14;  // elements per piece of parallel work

// Calls body(begin, end) over pieces of [0, count).
template <class Body>
void over(ThreadPool& pool, int64_t count, const Body& body) {
  pool.parallel_for(count, kGrain, body);
}

// Calls body(begin, end, reals) over pieces of [begin, end) that `reals`, on the stack, has room for.
constexpr int64_t kReals = 1024;
template <class Body>
void with_reals(int64_t begin, int64_t end, const Body& body) {
  float reals[kReals];
  for (; begin < end; begin += kReals) body(begin, std::min(begin + kReals, end), reals);
}

// Element-wise conversion; the pairs that float models need at their borders have vector code.
void convert_piece(DType from_type, const void* from, DType to_type, void* to, int64_t count) {
  const auto& forms = sim::kernels::forms();
  if (from_type == DType::Float32 && to_type == DType::Float16)
    return forms.to_half(static_cast<const float*>(from), static_cast<Half*>(to), count);
  if (from_type == DType::Float16 && to_type == DType::Float32)
    return forms.to_float(static_cast<const Half*>(from), static_cast<float*>(to), count);
  const int64_t dims[] = {count};
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

float quant_scale(const QuantParams& q, int64_t channel) {
  return q.scale[q.scale.size() == 1 ? 0 : static_cast<size_t>(channel) % q.scale.size()];
}
int32_t quant_zero(const QuantParams& q, int64_t channel) {
  return q.zero_point.empty() ? 0
                              : q.zero_point[q.zero_point.size() == 1 ? 0 : static_cast<size_t>(channel) % q.zero_point.size()];
}

template <class T>
T quantize(const Quantizer& by, float real) {
  double q = static_cast<double>(real) / by.scale;
  q = q > by.low ? q : q <= by.low ? by.low : 0;
  q = q < by.high ? q : by.high;
  if constexpr (sizeof(T) <= 2) {
    constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves no bits after the point
    return static_cast<T>((q + kRound) - kRound + by.zero);
  } else {
    return static_cast<T>(std::nearbyint(q) + by.zero);
  }
}

// The same of many, which floats mostly decide: only where one is near the middle between two integers, or not a number, its
// group is computed as above.
template <class T>
void quantize_all(const Quantizer& by, const float* from, T* to, int64_t count) {
  constexpr int64_t kGroup = 64;
  constexpr float kRound = 12582912.0f;  // 1.5 * 2^23
  constexpr float kCertain = 0.4998f;    // a float below 256 and its product with the inverse are known better than that
  const float inverse = 1.0f / static_cast<float>(by.scale), low = static_cast<float>(by.low), high = static_cast<float>(by.high);
  const auto zero = static_cast<int32_t>(by.zero);
  int64_t i = 0;
  if constexpr (sizeof(T) == 1) {
    for (; i + kGroup <= count && std::isnormal(inverse); i += kGroup) {
      int32_t uncertain = 0;
      int32_t values[kGroup];
      for (int64_t j = 0; j < kGroup; ++j) {
        const float real = from[i + j] * inverse, above = real > low ? real : low, inside = above < high ? above : high,
                    near = (inside + kRound) - kRound;
        uncertain += std::abs(inside - near) > kCertain ? 1 : 0;
        uncertain += real == real ? 0 : 1;
        values[j] = static_cast<int32_t>(near) + zero;
      }
      if (uncertain == 0)
        for (int64_t j = 0; j < kGroup; ++j) to[i + j] = static_cast<T>(values[j]);
      else
        for (int64_t j = 0; j < kGroup; ++j) to[i + j] = quantize<T>(by, from[i + j]);
    }
  }
  for (; i < count; ++i) to[i] = quantize<T>(by, from[i]);
}

// Extents of a picture.
struct Extents {
  int64_t n, c, h, w;
  int64_t pixels() const { return h * w; }
};
Extents extents_of(std::span<const int64_t> dims, Layout layout) {
  return layout == Layout::NHWC ? Extents{dims[0], dims[3], dims[1], dims[2]} : Extents{dims[0], dims[1], dims[2], dims[3]};
}

// Elements from one to the next along each axis.
struct Strides {
  int64_t n, c, h, w;
};
Strides dense_strides(const Extents& e, Layout layout) {
  return layout == Layout::NHWC ? Strides{e.c * e.pixels(), 1, e.w * e.c, e.c} : Strides{e.c * e.pixels(), e.pixels(), e.w, 1};
}

// Axes of a copy whose target is written in the order of `to`.
ops::CopyAxes picture_axes(const Extents& e, const Strides& from, const Strides& to, Layout to_layout) {
  const ops::CopyAxis n{e.n, from.n, to.n}, c{e.c, from.c, to.c}, h{e.h, from.h, to.h}, w{e.w, from.w, to.w};
  return to_layout == Layout::NHWC ? ops::CopyAxes{n, h, w, c} : ops::CopyAxes{n, c, h, w};
}

// Whole blocks of channels and the rest, if any, between blocks and a dense picture. `axes` makes the axes of a copy of a part's
// channels out of the strides of the blocks.
template <class Axes>
std::vector<Reordering> over_blocks(const Extents& e, const Strides& dense, int64_t lanes, size_t bytes, bool from_blocks,
                                    const Axes& axes) {
  const int64_t block = e.pixels() * lanes, blocks = (e.c + lanes - 1) / lanes, full = e.c / lanes;
  const Strides blocked{blocks * block, 1, e.w * lanes, lanes};
  std::vector<Reordering> parts;
  const auto add = [&](int64_t first, int64_t count, int64_t channels) {
    const int64_t in_blocks = first * block, in_picture = first * lanes * dense.c;
    const int64_t next = lanes * dense.c;
    ops::CopyAxes part = axes(Extents{e.n, channels, e.h, e.w}, blocked);
    part.insert(part.begin(), {count, from_blocks ? block : next, from_blocks ? next : block});
    parts.push_back(
        {ops::StridedCopy(std::move(part), bytes), from_blocks ? in_blocks : in_picture, from_blocks ? in_picture : in_blocks});
  };
  if (full > 0) add(0, full, lanes);
  if (e.c % lanes) add(full, 1, e.c % lanes);
  return parts;
}

void reorder_elements(const std::vector<Reordering>& parts, const void* from, void* to, size_t bytes, ThreadPool& pool) {
  for (const Reordering& r : parts) r.copy.run(ops::offset_by(from, r.from, bytes), ops::offset_by(to, r.to, bytes), pool);
}
}  // namespace

Dims nhwc_from_nchw(std::span<const int64_t> d) { return {d[0], d[2], d[3], d[1]}; }
Dims nchw_from_nhwc(std::span<const int64_t> d) { return {d[0], d[3], d[1], d[2]}; }

Layout port_layout(const format::Port& port, const Tensor& tensor) {
  if (!tensor.shape || tensor.shape->size() != 4) return Layout::Undefined;
  return port.layout == Layout::NHWC ? Layout::NHWC : Layout::NCHW;
}

bool is_quantized(const Tensor& t) { return t.quant && !t.quant->scale.empty() && is_integer(t.dtype); }

void quantize_values(const Tensor& tensor, std::span<const float> reals, void* to) {
  const Quantizer by(tensor);
  visit_dtype(tensor.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
      quantize_all<T>(by, reals.data(), static_cast<T*>(to), static_cast<int64_t>(reals.size()));
  });
}

Quantizer::Quantizer(const Tensor& t)
    : scale(quant_scale(*t.quant, 0)),
      zero(static_cast<double>(quant_zero(*t.quant, 0))),
      low(static_cast<double>(dtype_min(t.dtype)) - zero),
      high(static_cast<double>(dtype_max(t.dtype)) - zero) {}

// An absent list is the neutral one.
std::optional<InputConverter::Normalization> InputConverter::normalization_of(const format::Port& port, int64_t channels) {
  const auto count = static_cast<size_t>(channels);
  Normalization n{std::vector<float>(count, 0.f), std::vector<float>(count, 1.f)};
  if (port.mean.size() == count) n.mean = port.mean;
  if (port.std.size() == count) n.std = port.std;
  const bool neutral = std::all_of(n.mean.begin(), n.mean.end(), [](float v) { return v == 0.f; }) &&
                       std::all_of(n.std.begin(), n.std.end(), [](float v) { return v == 1.f; });
  return neutral ? std::nullopt : std::optional(std::move(n));
}

// Plans the way from the data's order to the model's, and counts the bytes of the data.
void InputConverter::reorder(Layout model, Layout data, const InputData& form) {
  const size_t bytes = dtype_bytes(from_type_);
  needed_bytes_ = static_cast<size_t>(element_count(dims_)) * bytes;
  if (model == Layout::Undefined || needed_bytes_ == 0) return;
  const Extents e = extents_of(dims_, model);
  const Strides to = dense_strides(e, model);
  if (form.lanes > 0) {
    needed_bytes_ = static_cast<size_t>(e.n * ((e.c + form.lanes - 1) / form.lanes) * form.lanes * e.pixels()) * bytes;
    reorderings_ = over_blocks(e, to, form.lanes, bytes, true,
                               [&](const Extents& part, const Strides& blocks) { return picture_axes(part, blocks, to, model); });
    return;
  }
  const int64_t row = std::max(form.row_pixels, e.w), rows = std::max(form.picture_rows, e.h);
  const bool pitched = data == Layout::NHWC && (row != e.w || rows != e.h);
  if (!pitched && data == model) return;
  Strides from = dense_strides(e, data);
  if (pitched) {
    from = {rows * row * e.c, 1, row * e.c, e.c};
    needed_bytes_ = static_cast<size_t>(((e.n - 1) * rows + e.h) * row * e.c) * bytes;
  }
  reorderings_.push_back({ops::StridedCopy(picture_axes(e, from, to, model), bytes), 0, 0});
}

Result<InputConverter> InputConverter::make(const format::Port& port, const Tensor& tensor, const InputData& data) {
  const Layout model_layout = port_layout(port, tensor);
  const Layout data_layout = model_layout == Layout::Undefined || data.layout == Layout::Undefined ? model_layout : data.layout;
  std::optional<Dims> dims = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
  if (!data.dims.empty() || !dims) {
    Dims given(data.dims.begin(), data.dims.end());
    if (data_layout != model_layout && given.size() == 4)
      given = model_layout == Layout::NHWC ? nhwc_from_nchw(given) : nchw_from_nhwc(given);
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
  InputConverter c;
  c.from_type_ = data.dtype == DType::Bool ? DType::UInt8 : data.dtype;  // any non-zero byte of the user's is true
  c.dtype_ = tensor.dtype;
  c.dims_ = std::move(*dims);
  const Channels channels = channels_of(c.dims_, model_layout);
  c.channel_count_ = channels.count;
  c.channel_inner_ = channels.inner;
  c.reorder(model_layout, data_layout, data);
  if (!c.reorderings_.empty()) c.ordered_ = TensorData::allocate(c.from_type_, c.dims_);
  if (data.pass_through) return c;
  if (is_float(tensor.dtype) || is_quantized(tensor)) c.normalization_ = normalization_of(port, channels.count);
  if (is_quantized(tensor)) c.quantizer_.emplace(tensor);
  // A table pays when every entry is used more than once.
  if (c.from_type_ == DType::UInt8 && count / 256 >= channels.count &&
      (c.normalization_ || c.quantizer_ || is_float(tensor.dtype)))
    c.make_table();
  return c;
}

// One real number as the program's element type.
template <class T>
T InputConverter::store(float real) const {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (quantizer_) return quantize<T>(*quantizer_, real);
  }
  const Dims one{1};
  T value;
  convert_elements({DType::Float32, one, &real}, {dtype_of<T>(), one, &value});
  return value;
}

// Pixels: every value of every channel is worked out once.
void InputConverter::make_table() {
  table_.resize(static_cast<size_t>(channel_count_) * 256 * dtype_bytes(dtype_));
  visit_dtype(dtype_, [&]<class T>(TypeTag<T>) {
    for (int64_t c = 0; c < channel_count_; ++c)
      for (int64_t v = 0; v < 256; ++v) {
        const auto x = static_cast<float>(v);
        const T value = store<T>(normalization_ ? (*normalization_)(x, c) : x);
        std::memcpy(table_.data() + static_cast<size_t>(c * 256 + v) * sizeof value, &value, sizeof value);
      }
  });
}

void InputConverter::convert_pixels(const uint8_t* from, const MutableTensorView& to, ThreadPool& pool) const {
  visit_dtype(to.dtype, [&]<class T>(TypeTag<T>) {
    const T* table = reinterpret_cast<const T*>(table_.data());
    T* target = to.as<T>();
    over(pool, to.count(), [&](int64_t begin, int64_t end) {
      if (channel_inner_ == 1) {
        int64_t c = begin % channel_count_;
        for (int64_t i = begin; i < end; ++i) {
          target[i] = table[c * 256 + from[i]];
          if (++c == channel_count_) c = 0;
        }
        return;
      }
      while (begin < end) {
        const int64_t plane = begin / channel_inner_, stop = std::min(end, (plane + 1) * channel_inner_);
        const T* row = table + plane % channel_count_ * 256;
        for (; begin < stop; ++begin) target[begin] = row[from[begin]];
      }
    });
  });
}

void InputConverter::convert_numbers(const void* from, const MutableTensorView& to, ThreadPool& pool) const {
  if (!normalization_ && !quantizer_) return convert_range(from_type_, from, to.dtype, to.data, to.count(), pool);
  over(pool, to.count(), [&](int64_t first, int64_t last) {
    with_reals(first, last, [&](int64_t begin, int64_t end, float* reals) {
      convert_piece(from_type_, ops::offset_by(from, begin, dtype_bytes(from_type_)), DType::Float32, reals, end - begin);
      if (normalization_)
        for (int64_t i = begin; i < end; ++i)
          reals[i - begin] = (*normalization_)(reals[i - begin], i / channel_inner_ % channel_count_);
      if (!quantizer_)
        return convert_piece(DType::Float32, reals, to.dtype, ops::offset_by(to.data, begin, dtype_bytes(to.dtype)), end - begin);
      visit_dtype(to.dtype, [&]<class T>(TypeTag<T>) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
          quantize_all<T>(*quantizer_, reals, to.as<T>() + begin, end - begin);
      });
    });
  });
}

void InputConverter::run(const void* from, void* to, ThreadPool& pool) {
  const int64_t count = element_count(dims_);
  if (count == 0) return;
  const size_t bytes = dtype_bytes(from_type_);
  if (!reorderings_.empty()) {
    reorder_elements(reorderings_, from, ordered_.mutable_data(), bytes, pool);
    from = ordered_.data();
  } else if (reinterpret_cast<uintptr_t>(from) % bytes != 0) {
    if (!ordered_.has_value()) ordered_ = TensorData::allocate(from_type_, dims_);
    std::memcpy(ordered_.mutable_data(), from, needed_bytes_);
    from = ordered_.data();
  }
  const MutableTensorView target{dtype_, dims_, to};
  if (table_.empty())
    convert_numbers(from, target, pool);
  else
    convert_pixels(static_cast<const uint8_t*>(from), target, pool);
}

Result<TensorData> convert_input(const format::Port& port, const Tensor& tensor, const InputData& data, ThreadPool& pool,
                                 const InputPlace& place) {
  ORKNN_TRY_ASSIGN(InputConverter converter, InputConverter::make(port, tensor, data));
  if (const size_t needed = converter.needed_bytes(); data.bytes < needed || (!data.data && needed))
    return invalid_argument("input '" + tensor.name + "' is too small")
        .expected(std::to_string(needed) + " bytes")
        .found(std::to_string(data.data ? data.bytes : 0));
  const size_t bytes = static_cast<size_t>(element_count(converter.dims())) * dtype_bytes(converter.dtype());
  if (std::shared_ptr<void> to = place ? place(bytes) : nullptr) {
    converter.run(data.data, to.get(), pool);
    const void* at = to.get();
    return TensorData::wrap(converter.dtype(), converter.dims(), at, std::move(to));
  }
  TensorData out = TensorData::allocate(converter.dtype(), converter.dims());
  converter.run(data.data, out.mutable_data(), pool);
  return out;
}

OutputConverter::OutputConverter(const format::Port& port, const Tensor& tensor, std::span<const int64_t> dims,
                                 const OutputForm& form)
    : tensor_(&tensor), form_(form) {
  const Layout model_layout = dims.size() == 4 ? port_layout(port, tensor) : Layout::Undefined;
  const size_t bytes = dtype_bytes(form.dtype);
  bytes_ = static_cast<size_t>(element_count(dims)) * bytes;
  if (model_layout == Layout::Undefined || bytes_ == 0) return;
  const Extents e = extents_of(dims, model_layout);
  const Strides from = dense_strides(e, model_layout);
  if (form.lanes > 0) {
    has_padding_ = e.c % form.lanes != 0;
    bytes_ = static_cast<size_t>(e.n * ((e.c + form.lanes - 1) / form.lanes) * form.lanes * e.pixels()) * bytes;
    reorderings_ = over_blocks(e, from, form.lanes, bytes, false, [&](const Extents& part, const Strides& blocks) {
      return picture_axes(part, from, blocks, Layout::NHWC);
    });
  } else if (form.layout != Layout::Undefined && form.layout != model_layout) {
    reorderings_.push_back({ops::StridedCopy(picture_axes(e, from, dense_strides(e, form.layout), form.layout), bytes), 0, 0});
  }
  if (!reorderings_.empty() && form.dtype != tensor.dtype)
    converted_ = TensorData::allocate(form.dtype, Dims(dims.begin(), dims.end()));
}

void OutputConverter::run(const TensorView& value, void* to, ThreadPool& pool) {
  if (bytes_ == 0) return;
  if (reorderings_.empty()) return convert_output(*tensor_, value, form_.dtype, to, pool);
  const void* from = value.data;
  if (converted_.has_value()) {
    convert_output(*tensor_, value, form_.dtype, converted_.mutable_data(), pool);
    from = converted_.data();
  }
  if (has_padding_) std::memset(to, 0, bytes_);
  reorder_elements(reorderings_, from, to, dtype_bytes(form_.dtype), pool);
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
    over(pool, value.count(), [&](int64_t first, int64_t last) {
      with_reals(first, last, [&](int64_t begin, int64_t end, float* reals) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t c = i / channels.inner % channels.count;
          reals[i - begin] = (static_cast<float>(value.as<F>()[i]) - static_cast<float>(quant_zero(q, c))) * quant_scale(q, c);
        }
        convert_piece(DType::Float32, reals, dtype, ops::offset_by(to, begin, dtype_bytes(dtype)), end - begin);
      });
    });
  });
}

}  // namespace orknn::runtime
