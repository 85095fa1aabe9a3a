#include "ops/support/window.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;

namespace {
// Above this no extent is meaningful, and products of two stay far from overflow.
constexpr int64_t kLimit = int64_t{1} << 31;
constexpr int64_t kMostPadding = 1 << 16;

Result<Dims> read_list(const NodeReader& node, std::string_view name, size_t length, int64_t fallback, int64_t least) {
  const auto* given = node.find<std::vector<int64_t>>(name);
  if (!given || given->empty()) return Dims(length, fallback);
  if (given->size() != length)
    return invalid_model("attribute '" + std::string(name) + "' has the wrong length")
        .expected(std::to_string(length))
        .found(to_string(*given));
  for (int64_t v : *given)
    if (v < least || v >= kLimit)
      return invalid_model("attribute '" + std::string(name) + "' is out of range")
          .expected("values from " + std::to_string(least))
          .found(to_string(*given));
  return *given;
}

// Extent and padding of SAME on one axis: the output is ceil(input / stride).
int64_t same_padding(const Window& w, size_t axis, int64_t input) {
  const int64_t output = (input + w.strides[axis] - 1) / w.strides[axis];
  return std::max<int64_t>(0, (output - 1) * w.strides[axis] + w.span(axis) - input);
}
}  // namespace

Result<AutoPad> auto_pad_from_name(std::string_view name) {
  if (name == "NOTSET" || name.empty()) return AutoPad::NotSet;
  if (name == "SAME_UPPER") return AutoPad::SameUpper;
  if (name == "SAME_LOWER") return AutoPad::SameLower;
  if (name == "VALID") return AutoPad::Valid;
  return invalid_model("unknown auto_pad").expected("NOTSET, SAME_UPPER, SAME_LOWER or VALID").found(std::string(name));
}

Result<Window> read_window(const NodeReader& node, size_t spatial_rank, std::span<const int64_t> kernel) {
  Window w;
  ORKNN_TRY_ASSIGN(w.kernel, read_list(node, "kernel_shape", spatial_rank, 0, 1));
  if (!kernel.empty()) {
    const Dims weights(kernel.begin(), kernel.end());
    if (w.kernel.empty() || w.kernel[0] == 0) w.kernel = weights;
    if (w.kernel != weights)
      return invalid_model("kernel_shape differs from the weights").expected(to_string(weights)).found(to_string(w.kernel));
  }
  for (int64_t k : w.kernel)
    if (k < 1 || k >= kLimit)
      return invalid_model("the kernel is out of range").expected("extents from 1").found(to_string(w.kernel));
  if (w.kernel.size() != spatial_rank)
    return shape_mismatch("the kernel has the wrong rank").expected(std::to_string(spatial_rank)).found(to_string(w.kernel));
  ORKNN_TRY_ASSIGN(w.strides, read_list(node, "strides", spatial_rank, 1, 1));
  ORKNN_TRY_ASSIGN(w.dilations, read_list(node, "dilations", spatial_rank, 1, 1));
  ORKNN_TRY(checked_element_count(w.kernel).status());
  for (size_t i = 0; i < spatial_rank; ++i)
    if (w.kernel[i] > 1 && w.dilations[i] > kLimit / w.kernel[i])
      return invalid_model("the dilated kernel is out of range")
          .found(to_string(w.kernel) + " with dilations " + to_string(w.dilations));
  ORKNN_TRY_ASSIGN(w.auto_pad, auto_pad_from_name(node.node().attributes.string_or("auto_pad", "NOTSET")));
  // With auto_pad the attribute has no meaning; some exporters write zeros beside it.
  Dims pads(2 * spatial_rank, 0);
  if (w.auto_pad == AutoPad::NotSet) {
    ORKNN_TRY_ASSIGN(pads, read_list(node, "pads", 2 * spatial_rank, 0, -kLimit));
  }
  w.pads_begin.assign(pads.begin(), pads.begin() + static_cast<int64_t>(spatial_rank));
  w.pads_end.assign(pads.begin() + static_cast<int64_t>(spatial_rank), pads.end());
  // Padding beyond the kernel only adds outputs that see nothing: some is harmless, more is a lying attribute.
  for (size_t i = 0; i < spatial_rank; ++i)
    if (const int64_t most = std::max(w.span(i), kMostPadding); w.pads_begin[i] > most || w.pads_end[i] > most)
      return invalid_model("padding is out of range").expected("at most " + std::to_string(most)).found(to_string(pads));
  w.ceil_mode = node.node().attributes.int_or("ceil_mode", 0) != 0;
  return w;
}

Result<Dim> window_output(const Window& w, size_t axis, const Dim& input) {
  const int64_t stride = w.strides[axis], pads = w.pads_begin[axis] + w.pads_end[axis];
  const bool same = w.auto_pad == AutoPad::SameUpper || w.auto_pad == AutoPad::SameLower;
  if (!input.is_known()) {
    if (same) return stride == 1 ? input : (input + Dim(stride - 1)) / Dim(stride);
    if (stride == 1) return input + Dim(pads - w.span(axis) + 1);
    if (w.ceil_mode) return Dim();
    return (input + Dim(pads - w.span(axis))) / Dim(stride) + Dim(1);
  }
  const int64_t extent = input.value();
  if (extent < 0 || extent >= kLimit) return shape_mismatch("spatial extent out of range").found(std::to_string(extent));
  if (same) return Dim((extent + stride - 1) / stride);
  const int64_t slack = extent + pads - w.span(axis);
  // With ceil_mode the only window may be a partial one.
  if (w.ceil_mode && slack < 0 && slack > -stride && extent + w.pads_begin[axis] > 0) return Dim(1);
  if (slack < 0)
    return shape_mismatch("the kernel does not fit in the padded input")
        .expected("an extent of at least " + std::to_string(w.span(axis)) + " on spatial axis " + std::to_string(axis))
        .found(std::to_string(extent + pads));
  int64_t output = slack / stride + 1;
  // The extra window of ceil_mode must start inside the input or its left padding.
  if (w.ceil_mode && slack % stride != 0 && output * stride < extent + w.pads_begin[axis]) ++output;
  return Dim(output);
}

Result<Dims> window_output(const Window& w, std::span<const int64_t> input) {
  Dims out(w.rank());
  for (size_t i = 0; i < w.rank(); ++i) {
    ORKNN_TRY_ASSIGN(const Dim d, window_output(w, i, Dim(input[i])));
    out[i] = d.value();
  }
  return out;
}

Status check_spread(const Window& w) {
  constexpr int64_t kMostSpread = 1 << 16;
  for (int64_t stride : w.strides)
    if (stride > kMostSpread)
      return invalid_model("strides are out of range")
          .expected("at most " + std::to_string(kMostSpread))
          .found(to_string(w.strides));
  return {};
}

void settle_pads(Window& w, std::span<const int64_t> input) {
  if (w.auto_pad == AutoPad::SameUpper || w.auto_pad == AutoPad::SameLower) {
    for (size_t i = 0; i < w.rank(); ++i) {
      const int64_t total = same_padding(w, i, input[i]), less = total / 2;
      w.pads_begin[i] = w.auto_pad == AutoPad::SameUpper ? less : total - less;
      w.pads_end[i] = total - w.pads_begin[i];
    }
    w.ceil_mode = false;  // a kernel shorter than the stride would get one output too many
  }
  w.auto_pad = AutoPad::NotSet;
}

OutputRange outputs_inside(int64_t offset, int64_t stride, int64_t input, int64_t output) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  const int64_t end = offset >= input ? 0 : (input - offset + stride - 1) / stride;
  return {std::min(begin, output), std::max(std::min(begin, output), std::min(end, output))};
}

bool next_index(std::span<int64_t> index, std::span<const int64_t> dims) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++index[i] < dims[i]) return true;
    index[i] = 0;
  }
  return false;
}

}  // namespace orknn::ops
