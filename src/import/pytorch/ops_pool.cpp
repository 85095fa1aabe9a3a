// Pooling, plain and adaptive.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
// Elements of windows whose places are spelled out one by one.
constexpr size_t kMaxIndexedElements = size_t{1} << 22;
using ir::Dims;
using ir::TensorId;

// The input with a batch axis, whether it had one or not.
struct Batched {
  TensorId x;
  Dims dims;
  bool added;
};
Result<Batched> batched(Call& c, size_t spatial) {
  const Dims& dims = c.dims("self");
  if (dims.size() == spatial + 2) return Batched{c.tensor("self"), dims, false};
  if (dims.size() != spatial + 1)
    return invalid_model("the input of the pool has the wrong number of axes")
        .expected(std::to_string(spatial + 2))
        .found(ir::to_string(dims));
  Dims wide = dims;
  wide.insert(wide.begin(), 1);
  return Batched{c.unsqueeze(c.tensor("self"), {0}), wide, true};
}
Result<Value> unbatched(Call& c, TensorId y, const Batched& b) { return c.made(b.added ? c.squeeze(y, {0}) : y); }

Result<ir::Attributes> window_attributes(Call& c, size_t spatial, bool has_dilation) {
  ORKNN_TRY_ASSIGN(const auto kernel, c.ints("kernel_size", spatial));
  std::vector<int64_t> stride = kernel;
  if (!c.ints("stride").empty()) {
    ORKNN_TRY_ASSIGN(stride, c.ints("stride", spatial));
  }
  ORKNN_TRY_ASSIGN(const auto padding, c.ints("padding", spatial));
  std::vector<int64_t> pads = padding;
  pads.insert(pads.end(), padding.begin(), padding.end());
  ir::Attributes attributes{
      {"kernel_shape", kernel}, {"strides", stride}, {"pads", pads}, {"ceil_mode", static_cast<int64_t>(c.flag("ceil_mode"))}};
  if (has_dilation) {
    ORKNN_TRY_ASSIGN(const auto dilation, c.ints("dilation", spatial));
    attributes.set("dilations", dilation);
  }
  return attributes;
}

template <size_t Spatial>
Result<Value> max_pool(Call& c) {
  ORKNN_TRY_ASSIGN(const Batched b, batched(c, Spatial));
  ORKNN_TRY_ASSIGN(auto attributes, window_attributes(c, Spatial, true));
  return unbatched(c, c.emit("MaxPool", {b.x}, std::move(attributes)), b);
}
// Positions within the plane of each channel; ours count through the whole tensor.
Result<Value> with_indices(Call& c, const Batched& b, ir::Attributes attributes) {
  const auto ids = c.emit_all("MaxPool", {b.x}, std::move(attributes), 2);
  int64_t plane = 1;
  for (size_t i = 2; i < b.dims.size(); ++i) plane *= b.dims[i];
  ORKNN_TRY_ASSIGN(const Value values, unbatched(c, ids[0], b));
  ORKNN_TRY_ASSIGN(const Value indices,
                   unbatched(c, c.emit("Mod", {ids[1], c.int_scalar(std::max<int64_t>(plane, 1), DType::Int64)}), b));
  return c.tuple({values, indices});
}
template <size_t Spatial>
Result<Value> max_pool_with_indices(Call& c) {
  ORKNN_TRY_ASSIGN(const Batched b, batched(c, Spatial));
  ORKNN_TRY_ASSIGN(auto attributes, window_attributes(c, Spatial, true));
  return with_indices(c, b, std::move(attributes));
}

template <size_t Spatial>
Result<Value> avg_pool(Call& c) {
  ORKNN_TRY_ASSIGN(const Batched b, batched(c, Spatial));
  ORKNN_TRY_ASSIGN(auto attributes, window_attributes(c, Spatial, false));
  const bool has_divisor = c.has("divisor_override");
  // Another divisor: the sum of the window is its mean over all taps, padding included, without those beyond the padded input.
  attributes.set("count_include_pad", static_cast<int64_t>(c.flag("count_include_pad") || has_divisor));
  if (has_divisor) {
    if (c.integer("divisor_override") == 0) return invalid_model("a pool divides by zero");
    if (c.flag("ceil_mode")) return c.fail("divisor_override together with ceil_mode is not supported");
  }
  TensorId y = c.emit("AveragePool", {b.x}, attributes);
  if (has_divisor) {
    double taps = 1;
    for (int64_t k : attributes.ints_or("kernel_shape")) taps *= static_cast<double>(k);
    y = c.mul(y, c.scalar(taps / c.number("divisor_override"), c.dtype_of(y)));
  }
  return unbatched(c, y, b);
}

Result<Value> max_unpool(Call& c) {
  ORKNN_TRY_ASSIGN(const auto size, c.ints("output_size", 2));
  if (c.rank("self") != 4 || size[0] < 0 || size[1] < 0 || size[0] > (1 << 24) || size[1] > (1 << 24))
    return c.fail("this form of max_unpool2d is not supported");
  // A scatter of each plane into zeros.
  const Dims& dims = c.dims("self");
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("indices")));
  const TensorId zeros = c.full(Dims{dims[0], dims[1], size[0] * size[1]}, 0, c.dtype("self"));
  const Dims flat{dims[0], dims[1], dims[2] * dims[3]};
  const TensorId y =
      c.emit("ScatterElements", {zeros, c.reshape(index, flat), c.reshape(c.tensor("self"), flat)}, {{"axis", int64_t{2}}});
  return c.made(c.reshape(y, {dims[0], dims[1], size[0], size[1]}));
}

// --- adaptive: window i of an axis is [floor(i * in / out), ceil((i + 1) * in / out))
Result<std::vector<int64_t>> adaptive_size(Call& c, const Batched& b, size_t spatial) {
  const Value& given = c.value("output_size");
  std::vector<int64_t> size;
  const auto add = [&](const Value& v, size_t i) { size.push_back(v.is_none() ? b.dims[2 + i] : v.integer()); };
  if (given.is_number()) {
    size.assign(spatial, given.integer());
  } else if (given.is_sequence()) {
    const auto& items = given.sequence().items;
    for (size_t i = 0; i < spatial && i < items.size(); ++i) {
      if (!items[i].is_none() && items[i].kind() != Kind::Int)
        return invalid_model("the size of an adaptive pool is a " + describe(items[i]));
      add(items[i], i);
    }
    if (size.size() == 1) size.resize(spatial, size[0]);
  }
  if (size.size() != spatial) return invalid_model("the size of an adaptive pool does not fit its input").found(to_text(given));
  for (size_t i = 0; i < spatial; ++i) {
    if (size[i] < 1 || size[i] > (1 << 20) || b.dims[2 + i] < 1)
      return invalid_model("an adaptive pool has an empty input or output").found(to_text(given));
  }
  return size;
}
int64_t window_start(int64_t i, int64_t in, int64_t out) { return i * in / out; }
int64_t window_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

ir::Attributes even_windows(const Batched& b, const std::vector<int64_t>& size) {
  std::vector<int64_t> kernel;
  for (size_t i = 0; i < size.size(); ++i) kernel.push_back(b.dims[2 + i] / size[i]);
  return {{"kernel_shape", kernel}, {"strides", kernel}};
}
bool is_even(const Batched& b, const std::vector<int64_t>& size) {
  for (size_t i = 0; i < size.size(); ++i)
    if (b.dims[2 + i] % size[i] != 0) return false;
  return true;
}
bool is_global(const std::vector<int64_t>& size) {
  return std::all_of(size.begin(), size.end(), [](int64_t s) { return s == 1; });
}

template <size_t Spatial>
Result<Value> adaptive_avg(Call& c) {
  ORKNN_TRY_ASSIGN(const Batched b, batched(c, Spatial));
  ORKNN_TRY_ASSIGN(const auto size, adaptive_size(c, b, Spatial));
  if (is_global(size)) return unbatched(c, c.emit("GlobalAveragePool", {b.x}), b);
  if (is_even(b, size)) return unbatched(c, c.emit("AveragePool", {b.x}, even_windows(b, size)), b);
  // Windows of different sizes: a product with a matrix of means along each axis.
  TensorId y = b.x;
  const int64_t rank = static_cast<int64_t>(b.dims.size());
  for (size_t i = 0; i < Spatial; ++i) {
    const int64_t in = b.dims[2 + i], out = size[i], axis = static_cast<int64_t>(2 + i);
    if (in == out) continue;
    if (in * out > (1 << 26)) return c.fail("the adaptive pool is too large");
    std::vector<float> means(static_cast<size_t>(in * out), 0);
    for (int64_t o = 0; o < out; ++o) {
      const int64_t start = window_start(o, in, out), end = window_end(o, in, out);
      for (int64_t k = start; k < end; ++k) means[static_cast<size_t>(k * out + o)] = 1.0f / static_cast<float>(end - start);
    }
    const TensorId matrix = c.cast(c.add_constant("means", ir::TensorData::from<float>({in, out}, means)), c.dtype_of(y));
    y = c.swap_axes(c.matmul(c.swap_axes(y, axis, rank - 1), matrix), axis, rank - 1);
  }
  return unbatched(c, y, b);
}

// Positions within the plane of the greatest of each uneven window: all elements of a window side by side, those missing to the
// largest repeat one.
Result<Value> uneven_indices(Call& c, const Batched& b, const std::vector<int64_t>& size) {
  std::vector<std::vector<int64_t>> windows{{0}};
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t in = b.dims[2 + i], out = size[i];
    std::vector<std::vector<int64_t>> finer;
    for (const auto& window : windows)
      for (int64_t o = 0; o < out; ++o) {
        auto& next = finer.emplace_back();
        for (int64_t p : window)
          for (int64_t k = window_start(o, in, out); k < window_end(o, in, out); ++k) next.push_back(p * in + k);
      }
    windows = std::move(finer);
  }
  size_t longest = 0;
  for (const auto& window : windows) longest = std::max(longest, window.size());
  if (longest == 0 || windows.size() * longest > kMaxIndexedElements) return Value::uninitialized();
  std::vector<int64_t> positions;
  for (auto& window : windows) {
    window.resize(longest, window[0]);
    positions.insert(positions.end(), window.begin(), window.end());
  }
  const int64_t count = static_cast<int64_t>(windows.size());
  const TensorId places =
      c.add_constant("positions", ir::TensorData::from<int64_t>({count, static_cast<int64_t>(longest)}, positions));
  const TensorId elements = c.gather(c.reshape(b.x, {b.dims[0], b.dims[1], -1}), places, 2);
  const TensorId greatest = c.emit("ArgMax", {elements}, {{"axis", int64_t{3}}, {"keepdims", int64_t{1}}});
  const TensorId all = c.expand(places, Dims{b.dims[0], b.dims[1], count, static_cast<int64_t>(longest)});
  std::vector<int64_t> shape{b.dims[0], b.dims[1]};
  shape.insert(shape.end(), size.begin(), size.end());
  return unbatched(c, c.reshape(c.emit("GatherElements", {all, greatest}, {{"axis", int64_t{3}}}), shape), b);
}

template <size_t Spatial>
Result<Value> adaptive_max(Call& c) {
  ORKNN_TRY_ASSIGN(const Batched b, batched(c, Spatial));
  ORKNN_TRY_ASSIGN(const auto size, adaptive_size(c, b, Spatial));
  if (is_even(b, size)) return with_indices(c, b, even_windows(b, size));
  // Each window, filled up to the longest by repeating its last element, then the greatest of it, axis by axis.
  TensorId y = b.x;
  for (size_t i = 0; i < Spatial; ++i) {
    const int64_t in = b.dims[2 + i], out = size[i], axis = static_cast<int64_t>(2 + i);
    int64_t longest = 0;
    for (int64_t o = 0; o < out; ++o) longest = std::max(longest, window_end(o, in, out) - window_start(o, in, out));
    if (out * longest > (1 << 26)) return c.fail("the adaptive pool is too large");
    std::vector<int64_t> positions;
    for (int64_t o = 0; o < out; ++o)
      for (int64_t k = 0; k < longest; ++k)
        positions.push_back(std::min(window_start(o, in, out) + k, window_end(o, in, out) - 1));
    const TensorId windows = c.add_constant("windows", ir::TensorData::from<int64_t>({out, longest}, positions));
    y = c.reduce("ReduceMax", c.gather(y, windows, axis), {axis + 1}, false);
  }
  ORKNN_TRY_ASSIGN(const Value values, unbatched(c, y, b));
  ORKNN_TRY_ASSIGN(const Value indices, uneven_indices(c, b, size));
  return c.tuple({values, indices});
}

Result<Value> fractional(Call& c) { return c.fail("fractional pooling is random and not supported"); }
}  // namespace

std::span<const Row> pool_rows() {
  static constexpr Row kRows[] = {
      {"max_pool1d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False)",
       max_pool<1>},
      {"max_pool2d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False)",
       max_pool<2>},
      {"max_pool3d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False)",
       max_pool<3>},
      {"quantized_max_pool2d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool "
       "ceil_mode=False)",
       max_pool<2>},
      {"quantized_max_pool1d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool "
       "ceil_mode=False)",
       max_pool<1>},
      {"max_pool1d_with_indices(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool "
       "ceil_mode=False)",
       max_pool_with_indices<1>},
      {"max_pool2d_with_indices(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool "
       "ceil_mode=False)",
       max_pool_with_indices<2>},
      {"max_pool3d_with_indices(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool "
       "ceil_mode=False)",
       max_pool_with_indices<3>},
      {"avg_pool1d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None)",
       avg_pool<1>},
      {"avg_pool2d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None)",
       avg_pool<2>},
      {"avg_pool3d(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool "
       "count_include_pad=True, int? divisor_override=None)",
       avg_pool<3>},
      {"max_unpool2d(Tensor self, Tensor indices, int[] output_size)", max_unpool},
      {"adaptive_avg_pool1d(Tensor self, any output_size)", adaptive_avg<1>},
      {"adaptive_avg_pool2d(Tensor self, any output_size)", adaptive_avg<2>},
      {"adaptive_avg_pool3d(Tensor self, any output_size)", adaptive_avg<3>},
      {"_adaptive_avg_pool2d(Tensor self, any output_size)", adaptive_avg<2>},
      {"_adaptive_avg_pool3d(Tensor self, any output_size)", adaptive_avg<3>},
      {"adaptive_max_pool1d(Tensor self, any output_size)", adaptive_max<1>},
      {"adaptive_max_pool2d(Tensor self, any output_size)", adaptive_max<2>},
      {"adaptive_max_pool3d(Tensor self, any output_size)", adaptive_max<3>},
      {"fractional_max_pool2d(...)", fractional},
      {"fractional_max_pool3d(...)", fractional},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
