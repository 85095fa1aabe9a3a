// Pooling in its three size conventions, adaptive pooling, upsampling and resizing.
#include <algorithm>
#include <cmath>
#include <limits>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
struct Window {
  std::vector<int64_t> kernel, stride, pad_begin, pad_end;  // pad_end as far as the last window reaches
  std::vector<int64_t> out;
  bool reaches_beyond = false;  // some window ends behind the stated padding
  bool misses_data = false;     // some window holds padding only

  std::vector<int64_t> pads() const {
    std::vector<int64_t> both = pad_begin;
    both.insert(both.end(), pad_end.begin(), pad_end.end());
    return both;
  }
};

int64_t divide_up(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

// Sizes as MXNet computes them. The end padding is stretched or cut to where the last window ends, so that rounding down gives
// them.
Result<Window> window_of(Layer& l, const Dims& in) {
  Window w;
  w.kernel = l.integers("kernel");
  const size_t n = w.kernel.size();
  if (n + 2 != in.size() || n == 0)
    return shape_mismatch("the kernel does not fit the data")
        .expected("data of rank " + std::to_string(n + 2))
        .found(to_string(in));
  w.stride = l.window("stride", n, 1, 1);
  w.pad_begin = l.window("pad", n, 0, 0);
  const std::string convention = l.text("pooling_convention", "valid");
  const bool is_old = l.op() == "Pooling_v1";
  for (size_t i = 0; i < n; ++i) {
    const int64_t padded = in[i + 2] + 2 * w.pad_begin[i], kernel = w.kernel[i], stride = w.stride[i];
    if (kernel < 1 || kernel > padded)
      return invalid_model("the kernel does not fit into the data")
          .expected("1 to " + std::to_string(padded))
          .found(std::to_string(kernel));
    int64_t out = 0;
    if (convention == "valid")
      out = (padded - kernel) / stride + 1;
    else if (convention == "full")
      out = is_old ? std::min(padded - kernel + stride - 1, padded - 1) / stride + 1 : divide_up(padded - kernel, stride) + 1;
    else if (convention == "same")
      out = divide_up(padded, stride);
    else
      return unsupported("unknown pooling_convention").expected("valid, full or same").found(convention);
    const int64_t end = (out - 1) * stride + kernel - in[i + 2] - w.pad_begin[i];
    w.reaches_beyond |= end > w.pad_begin[i];
    w.misses_data |= (out - 1) * stride >= in[i + 2] + w.pad_begin[i] || kernel <= w.pad_begin[i];
    w.pad_end.push_back(std::max<int64_t>(end, 0));
    w.out.push_back(out);
  }
  return w;
}

// How many positions each window averages over: its own, as far as they lie in the data or the stated padding.
TensorId window_sizes(Layer& l, const Window& w, const Dims& in, bool include_pad) {
  Dims dims(in.size(), 1);
  std::copy(w.out.begin(), w.out.end(), dims.begin() + 2);
  TensorData sizes = TensorData::allocate(DType::Float32, dims);
  float* to = static_cast<float*>(sizes.mutable_data());
  const Dims strides = strides_of(dims);
  for (int64_t at = 0, count = sizes.count(); at < count; ++at) {
    int64_t size = 1;
    for (size_t i = 0; i < w.out.size(); ++i) {
      const int64_t begin = at / strides[i + 2] % w.out[i] * w.stride[i] - w.pad_begin[i];
      const int64_t end = std::min(begin + w.kernel[i], in[i + 2] + w.pad_begin[i]);
      size *= include_pad ? end - begin : std::min(end, in[i + 2]) - std::max<int64_t>(begin, 0);
    }
    to[at] = 1.0f / static_cast<float>(std::max<int64_t>(size, 1));
  }
  return l.add_constant("window_sizes", std::move(sizes));
}

Result<TensorId> pool_windows(Layer& l, TensorId x, const std::string& type) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to place the windows"));
  ORKNN_TRY_ASSIGN(const Window w, window_of(l, in));
  const Attributes geometry{{"kernel_shape", w.kernel}, {"strides", w.stride}, {"pads", w.pads()}};
  double area = 1;
  for (int64_t k : w.kernel) area *= static_cast<double>(k);
  if (type == "max") {
    const TensorId y = l.emit("MaxPool", {x}, geometry);
    return w.misses_data ? l.with_scalar("Max", y, -std::numeric_limits<float>::max()) : y;
  }
  Attributes with_pad = geometry;
  with_pad.set("count_include_pad", int64_t{1});
  if (type == "sum") return l.with_scalar("Mul", l.emit("AveragePool", {x}, with_pad), area);
  if (type == "lp") {
    const int64_t p = l.integer("p_value", 2);
    if (p < 1 || p > 3) return unsupported("unknown p_value").expected("1, 2 or 3").found(std::to_string(p));
    Attributes with_p = geometry;
    with_p.set("p", p);
    return l.emit("LpPool", {x}, with_p);
  }
  const bool include_pad = l.flag("count_include_pad", true);
  if (!include_pad) return l.emit("AveragePool", {x}, geometry);
  if (!w.reaches_beyond || l.op() == "Pooling_v1") return l.emit("AveragePool", {x}, with_pad);
  // Windows that end behind the padding count only what lies before its end.
  if (!checked_element_count(w.out, int64_t{1} << 24))
    return unsupported("an average over so many windows").found(to_string(w.out));
  const TensorId sums = l.with_scalar("Mul", l.emit("AveragePool", {x}, with_pad), area);
  return l.binary("Mul", sums, l.cast(window_sizes(l, w, in, include_pad), l.dtype_of(x)));
}

Result<TensorId> pool_all(Layer& l, TensorId x, const std::string& type) {
  if (type == "max") return l.unary("GlobalMaxPool", x);
  if (type == "avg") return l.unary("GlobalAveragePool", x);
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pool all of it"));
  std::vector<int64_t> axes;
  for (int64_t a = 2; a < rank; ++a) axes.push_back(a);
  if (type == "sum") return l.reduce("ReduceSum", x, axes, true);
  return l.emit("GlobalLpPool", {x}, {{"p", l.integer("p_value", 2)}});
}

}  // namespace

Status pooling(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  const std::string layout = l.text("layout", ""), type = l.text("pool_type", "max");
  const bool channels_last = layout == "NHWC" || layout == "NWC" || layout == "NDHWC";
  if (type != "max" && type != "avg" && type != "sum" && type != "lp")
    return unsupported("unknown pool_type").expected("max, avg, sum or lp").found(type);
  if (channels_last) {
    ORKNN_TRY_ASSIGN(x, l.channels_first(x));
  }
  ORKNN_TRY_ASSIGN(TensorId y, l.flag("global_pool", false) ? pool_all(l, x, type) : pool_windows(l, x, type));
  if (channels_last) {
    ORKNN_TRY_ASSIGN(y, l.channels_last(y));
  }
  l.set_output(y);
  return {};
}

namespace {
// [out, in]: row i averages the elements from floor(i * in / out) to ceil((i + 1) * in / out).
TensorId averaging_matrix(Layer& l, int64_t in, int64_t out, DType dtype) {
  std::vector<float> values(static_cast<size_t>(in * out), 0.0f);
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * in / out, end = divide_up((i + 1) * in, out);
    for (int64_t k = begin; k < end; ++k) values[static_cast<size_t>(i * in + k)] = 1.0f / static_cast<float>(end - begin);
  }
  return l.cast(l.floats("averages", {out, in}, values), dtype);
}

Status adaptive_average_pooling(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  std::vector<int64_t> out = l.integers("output_size");
  if (out.empty()) out = {1};
  if (out.size() == 1) out.push_back(out[0]);
  if (out.size() != 2 || out[0] < 1 || out[1] < 1)
    return invalid_model("illegal output_size").expected("one or two positive numbers").found(to_string(out));
  if (out[0] == 1 && out[1] == 1) {
    l.set_output(l.unary("GlobalAveragePool", x));
    return {};
  }
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to place the windows"));
  if (in.size() != 4) return shape_mismatch("the data must be [N,C,H,W]").found(to_string(in));
  if (in[2] % out[0] == 0 && in[3] % out[1] == 0 && in[2] > 0 && in[3] > 0) {
    const std::vector<int64_t> kernel{in[2] / out[0], in[3] / out[1]};
    l.set_output(l.emit("AveragePool", {x}, {{"kernel_shape", kernel}, {"strides", kernel}}));
    return {};
  }
  if (!checked_element_count(std::vector<int64_t>{in[2], out[0]}, 1 << 24) ||
      !checked_element_count(std::vector<int64_t>{in[3], out[1]}, 1 << 24))
    return unsupported("pooling of this size").found(to_string(in) + " to " + to_string(out));
  // Windows of unequal size: a product with an averaging matrix per axis.
  const TensorId rows = l.binary("MatMul", averaging_matrix(l, in[2], out[0], l.dtype_of(x)), x);
  l.set_output(l.binary("MatMul", rows, l.transpose(averaging_matrix(l, in[3], out[1], l.dtype_of(x)), {1, 0})));
  return {};
}

// --- resizing

TensorId resize_to(Layer& l, TensorId x, const Dims& in, int64_t height, int64_t width, Attributes how) {
  if (in[2] == height && in[3] == width) return x;
  return l.emit("Resize", {x, {}, {}, l.add_ints("sizes", {in[0], in[1], height, width})}, std::move(how));
}
Attributes nearest() {
  return {{"mode", std::string("nearest")},
          {"coordinate_transformation_mode", std::string("asymmetric")},
          {"nearest_mode", std::string("floor")}};
}

Result<Dims> picture_dims(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(Dims in, l.need_dims(x, "to resize it"));
  if (in.size() != 4) return shape_mismatch("the data must be [N,C,H,W]").found(to_string(in));
  return in;
}

Status upsampling(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims in, picture_dims(l, x));
  const std::string type = l.text("sample_type", "nearest");
  const int64_t scale = l.integer("scale", 1);
  if (scale < 1 || scale > 1000) return invalid_model("illegal scale").expected("1 to 1000").found(std::to_string(scale));
  if (type == "bilinear") {  // a transposed convolution per channel, whose weights the file holds
    const int64_t kernel = 2 * scale - scale % 2, pad = scale / 2, channels = in[1];
    ORKNN_TRY_ASSIGN(const TensorId weight,
                     l.parameter(1, "weight", Dims{channels, 1, kernel, kernel}, Fill::Random, l.dtype_of(x), kernel * kernel));
    l.set_output(l.emit("ConvTranspose", {x, weight},
                        {{"kernel_shape", std::vector<int64_t>{kernel, kernel}},
                         {"strides", std::vector<int64_t>{scale, scale}},
                         {"pads", std::vector<int64_t>(4, pad)},
                         {"group", channels}}));
    return {};
  }
  if (type != "nearest") return unsupported("unknown sample_type").expected("nearest or bilinear").found(type);
  const int64_t height = in[2] * scale, width = in[3] * scale;
  std::vector<TensorId> parts;
  for (size_t i = 0; i < l.input_count(); ++i) {  // further inputs are brought to the size of the first
    ORKNN_TRY_ASSIGN(const TensorId part, l.need(i));
    ORKNN_TRY_ASSIGN(const Dims dims, picture_dims(l, part));
    if (dims[2] < 1 || dims[3] < 1 || height % dims[2] != 0 || width % dims[3] != 0)
      return shape_mismatch("input " + std::to_string(i) + " does not divide the result")
          .expected(std::to_string(height) + "x" + std::to_string(width))
          .found(to_string(dims));
    parts.push_back(resize_to(l, part, dims, height, width, nearest()));
  }
  if (l.text("multi_input_mode", "concat") == "sum" && parts.size() > 1)
    l.set_output(l.emit("Sum", parts));
  else
    l.set_output(l.concat(parts, 1));
  return {};
}

Status bilinear_resize(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims in, picture_dims(l, x));
  const std::string mode = l.text("mode", "size");
  int64_t size[2] = {l.integer("height", 1), l.integer("width", 1)};
  const char* const scales[2] = {"scale_height", "scale_width"};
  Dims like;
  if (mode == "like") {
    ORKNN_TRY_ASSIGN(const TensorId other, l.need(1));
    ORKNN_TRY_ASSIGN(like, picture_dims(l, other));
  }
  for (size_t i = 0; i < 2; ++i) {
    const int64_t extent = in[i + 2], odd = extent % 2;
    const double scale = std::clamp(l.number(scales[i], 1.0), 0.0, 1e4);
    if (mode == "size" && l.has(scales[i]))
      size[i] = static_cast<int64_t>(static_cast<float>(scale) * static_cast<float>(extent));
    else if (mode == "odd_scale")
      size[i] = odd ? static_cast<int64_t>(static_cast<float>(scale) * static_cast<float>(extent - 1)) + 1
                    : static_cast<int64_t>(static_cast<float>(scale) * static_cast<float>(extent));
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
  l.set_output(resize_to(l, x, in, size[0], size[1],
                         {{"mode", std::string("linear")}, {"coordinate_transformation_mode", std::string(how)}}));
  return {};
}
}  // namespace

std::span<const Row> pool_rows() {
  static const Row rows[] = {
      {"Pooling", pooling},
      {"Pooling_v1", pooling},
      {"_contrib_AdaptiveAvgPooling2D", adaptive_average_pooling},
      {"UpSampling", upsampling},
      {"_contrib_BilinearResize2D", bilinear_resize},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
