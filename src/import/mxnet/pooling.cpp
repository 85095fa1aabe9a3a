// Pooling in its three size conventions, adaptive pooling, upsampling and resizing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "import/lower/adaptive_pool.h"
#include "import/lower/window.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// The windows of a layer. The end padding is stretched or cut to where the last window ends.
struct Windows {
  Window window;
  std::vector<int64_t> counts;  // of windows along each axis
  bool reach_beyond = false;    // some window ends after the stated padding
  bool miss_data = false;       // some window holds padding only
};

int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Sizes as MXNet computes them.
Result<Windows> windows_of(Layer& l, const Dims& in, bool is_first_version) {
  Windows all;
  Window& w = all.window;
  w.kernel = l.integers("kernel");
  const size_t n = w.kernel.size();
  if (n + 2 != in.size() || n == 0)
    return shape_mismatch("the kernel does not fit the data")
        .expected("data of rank " + std::to_string(n + 2))
        .found(to_string(in));
  w.strides = l.window("stride", n, 1, 1);
  w.pads_begin = l.window("pad", n, 0, 0);
  const std::string convention = l.text("pooling_convention", "valid");
  for (size_t i = 0; i < n; ++i) {
    const int64_t pad = w.pads_begin[i], padded = in[i + 2] + 2 * pad, kernel = w.kernel[i], stride = w.strides[i];
    if (kernel < 1 || kernel > padded)
      return invalid_model("the kernel does not fit into the data")
          .expected("1 to " + std::to_string(padded))
          .found(std::to_string(kernel));
    int64_t count = 0;
    if (convention == "valid")
      count = (padded - kernel) / stride + 1;
    else if (convention == "full" && is_first_version)
      count = std::min(padded - kernel + stride - 1, padded - 1) / stride + 1;
    else if (convention == "full")
      count = divide_up(padded - kernel, stride) + 1;
    else if (convention == "same")
      count = divide_up(padded, stride);
    else
      return unsupported("unknown pooling_convention").expected("valid, full or same").found(convention);
    const int64_t end = (count - 1) * stride + kernel - in[i + 2] - pad;
    all.reach_beyond |= end > pad;
    all.miss_data |= (count - 1) * stride >= in[i + 2] + pad || kernel <= pad;
    w.pads_end.push_back(std::max<int64_t>(end, 0));
    all.counts.push_back(count);
  }
  return all;
}

// One over the number of positions each window averages over: its own, as far as they lie in the data or the stated padding.
TensorId averaging_factors(Layer& l, const Windows& all, const Dims& in) {
  const Window& w = all.window;
  Dims dims(in.size(), 1);
  std::copy(all.counts.begin(), all.counts.end(), dims.begin() + 2);
  TensorData factors = TensorData::allocate(DType::Float32, dims);
  float* to = static_cast<float*>(factors.mutable_data());
  const Dims strides = strides_of(dims);
  for (int64_t at = 0, count = factors.count(); at < count; ++at) {
    int64_t size = 1;
    for (size_t i = 0; i < all.counts.size(); ++i) {
      const int64_t begin = at / strides[i + 2] % all.counts[i] * w.strides[i] - w.pads_begin[i];
      size *= std::min(begin + w.kernel[i], in[i + 2] + w.pads_begin[i]) - begin;
    }
    to[at] = 1.0f / static_cast<float>(std::max<int64_t>(size, 1));
  }
  return l.add_constant("averaging_factors", std::move(factors));
}

Result<TensorId> pool_windows(Layer& l, TensorId x, const std::string& type, bool is_first_version) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to place the windows"));
  ORKNN_TRY_ASSIGN(Windows all, windows_of(l, in, is_first_version));
  Window& w = all.window;
  if (type == "max") {
    const TensorId y = l.emit("MaxPool", {x}, w.attributes());
    return all.miss_data ? l.with_scalar("Max", y, -std::numeric_limits<float>::max()) : y;
  }
  if (type == "lp") {
    const int64_t p = l.integer("p_value", 2);
    if (p < 1 || p > 3) return unsupported("unknown p_value").expected("1, 2 or 3").found(std::to_string(p));
    Attributes attributes = w.attributes();
    attributes.set("p", p);
    return l.emit("LpPool", {x}, std::move(attributes));
  }
  w.counts_padding = type == "sum" || l.flag("count_include_pad", true);
  const TensorId averages = l.emit("AveragePool", {x}, w.attributes());
  const bool is_cut = w.counts_padding && all.reach_beyond && !is_first_version;
  if (type == "avg" && !is_cut) return averages;
  const double area = std::accumulate(w.kernel.begin(), w.kernel.end(), 1.0, std::multiplies<>());
  const TensorId sums = l.mul(averages, area);
  if (type == "sum") return sums;
  // Windows that end after the padding count only what lies before its end.
  if (!checked_element_count(all.counts, int64_t{1} << 24))
    return unsupported("there are too many windows to average over").found(to_string(all.counts));
  return l.mul(sums, l.cast(averaging_factors(l, all, in), l.dtype_of(x)));
}

Result<TensorId> pool_all(Layer& l, TensorId x, const std::string& type) {
  if (type == "max") return l.unary("GlobalMaxPool", x);
  if (type == "avg") return l.unary("GlobalAveragePool", x);
  if (type == "lp") return l.emit("GlobalLpPool", {x}, {{"p", l.integer("p_value", 2)}});
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pool all of it"));
  std::vector<int64_t> axes;
  for (int64_t a = 2; a < rank; ++a) axes.push_back(a);
  return l.reduce("ReduceSum", x, axes, true);
}

Result<TensorId> pool(Layer& l, TensorId data, bool is_first_version) {
  const std::string type = l.text("pool_type", "max");
  if (type != "max" && type != "avg" && type != "sum" && type != "lp")
    return unsupported("unknown pool_type").expected("max, avg, sum or lp").found(type);
  ORKNN_TRY_ASSIGN(const TensorId x, l.to_channels_first(data));
  ORKNN_TRY_ASSIGN(const TensorId y,
                   l.flag("global_pool", false) ? pool_all(l, x, type) : pool_windows(l, x, type, is_first_version));
  return l.to_layout(y);
}
Result<TensorId> pooling_v1(Layer& l, TensorId x) { return pool(l, x, true); }
}  // namespace

Result<TensorId> pooling(Layer& l, TensorId x) { return pool(l, x, false); }

namespace {
Result<TensorId> adaptive_average_pooling(Layer& l, TensorId x) {
  std::vector<int64_t> out = l.integers("output_size");
  if (out.empty()) out = {1};
  if (out.size() == 1) out.push_back(out[0]);
  if (out.size() != 2 || out[0] < 1 || out[1] < 1)
    return invalid_model("illegal output_size").expected("one or two positive numbers").found(to_string(out));
  return adaptive_average_pool(l, x, out);
}

// --- resizing

TensorId resize_to(Layer& l, TensorId x, const Dims& in, int64_t height, int64_t width, Attributes how) {
  if (in[2] == height && in[3] == width) return x;
  return l.emit("Resize", {x, {}, {}, l.add_ints("sizes", {in[0], in[1], height, width})}, std::move(how));
}

// A transposed convolution per channel, whose weights the file holds.
Result<TensorId> bilinear_upsampling(Layer& l, TensorId x, int64_t channels, int64_t scale) {
  const int64_t kernel = 2 * scale - scale % 2;
  ORKNN_TRY_ASSIGN(const TensorId weight,
                   l.parameter(1, "weight", Dims{channels, 1, kernel, kernel}, Fill::Random, l.dtype_of(x), kernel * kernel));
  return l.emit("ConvTranspose", {x, weight},
                {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                 {"strides", std::vector<int64_t>{scale, scale}},
                 {"pads", std::vector<int64_t>(4, scale / 2)},
                 {"group", channels}});
}

Result<TensorId> upsampling(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to resize it", 4));
  const std::string type = l.text("sample_type", "nearest");
  const int64_t scale = l.integer("scale", 1);
  if (scale < 1 || scale > 1000) return invalid_model("illegal scale").expected("1 to 1000").found(std::to_string(scale));
  if (type == "bilinear") return bilinear_upsampling(l, x, in[1], scale);
  if (type != "nearest") return unsupported("unknown sample_type").expected("nearest or bilinear").found(type);
  const int64_t height = in[2] * scale, width = in[3] * scale;
  std::vector<TensorId> parts;
  for (size_t i = 0; i < l.operand_count(); ++i) {  // further inputs are brought to the size of the first
    ORKNN_TRY_ASSIGN(const TensorId part, l.operand(i));
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(part, "to resize it", 4));
    if (dims[2] < 1 || dims[3] < 1 || height % dims[2] != 0 || width % dims[3] != 0)
      return shape_mismatch("input " + std::to_string(i) + " does not divide the result")
          .expected(std::to_string(height) + "x" + std::to_string(width))
          .found(to_string(dims));
    parts.push_back(resize_to(l, part, dims, height, width,
                              {{"mode", std::string("nearest")},
                               {"coordinate_transformation_mode", std::string("asymmetric")},
                               {"nearest_mode", std::string("floor")}}));
  }
  if (l.text("multi_input_mode", "concat") == "sum" && parts.size() > 1) return l.emit("Sum", parts);
  return l.concat(parts, 1);
}

Result<TensorId> bilinear_resize(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to resize it", 4));
  const std::string mode = l.text("mode", "size");
  int64_t size[2] = {l.integer("height", 1), l.integer("width", 1)};
  const char* const scales[2] = {"scale_height", "scale_width"};
  Dims like;
  if (mode == "like") {
    ORKNN_TRY_ASSIGN(const TensorId other, l.operand(1));
    ORKNN_TRY_ASSIGN(like, l.need_dims(other, "to resize it", 4));
  }
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = in[i + 2], odd = extent % 2;
    const auto scale = static_cast<float>(std::clamp(l.number(scales[i], 1.0), 0.0, 1e4));
    if (mode == "size" && l.has(scales[i]))
      size[i] = static_cast<int64_t>(scale * static_cast<float>(extent));
    else if (mode == "odd_scale")
      size[i] = static_cast<int64_t>(scale * static_cast<float>(extent - odd)) + odd;
    else if (mode == "like")
      size[i] = like[i + 2];
    else if (mode == "to_even_down")
      size[i] = extent - odd;
    else if (mode == "to_even_up")
      size[i] = extent + odd;
    else if (mode == "to_odd_down")
      size[i] = extent - (1 - odd);
    else if (mode == "to_odd_up")
      size[i] = extent + (1 - odd);
    else if (mode != "size")
      return unsupported("unknown mode")
          .expected("size, odd_scale, like, to_even_down, to_even_up, to_odd_down or to_odd_up")
          .found(mode);
    if (size[i] < 1) return invalid_model("the result would be empty").found(std::to_string(size[i]));
  }
  const char* const how = l.flag("align_corners", true) ? "align_corners" : "half_pixel";
  return resize_to(l, x, in, size[0], size[1],
                   {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string(how)}});
}
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {
      {"Pooling", pooling},
      {"Pooling_v1", pooling_v1},
      {"_contrib_AdaptiveAvgPooling2D", adaptive_average_pooling},
      {"UpSampling", upsampling},
      {"_contrib_BilinearResize2D", bilinear_resize},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
