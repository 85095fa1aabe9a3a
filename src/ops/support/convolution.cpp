#include "ops/support/convolution.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;

Dims ConvShape::output_dims() const {
  Dims dims{batch, output_channels};
  dims.insert(dims.end(), output.begin(), output.end());
  return dims;
}

int64_t ConvShape::macs() const { return batch * output_channels * element_count(output) * channels_per_group() * window.taps(); }

std::vector<AttributeDef> conv_attributes() {
  return {attr_string("auto_pad", "NOTSET"), attr_ints("dilations"), attr_int("group", 1),
          attr_ints("kernel_shape"),         attr_ints("pads"),      attr_ints("strides")};
}

namespace {
bool is_same(AutoPad p) { return p == AutoPad::SameUpper || p == AutoPad::SameLower; }

Status check_ranks(size_t x, size_t w) {
  if (x < 3 || x != w)
    return shape_mismatch("data and weights must have the same rank")
        .expected("rank 3 or more for both")
        .found("data of rank " + std::to_string(x) + ", weights of rank " + std::to_string(w));
  return {};
}

// Relations between the channel extents; unknown ones pass.
Status check_channels(const Dim& x_channels, const Dim& w_outputs, const Dim& w_channels, int64_t groups) {
  if (groups < 1) return invalid_model("group is out of range").expected("at least 1").found(std::to_string(groups));
  if (w_outputs.is_known() && w_outputs.value() % groups != 0)
    return shape_mismatch("output channels are not a multiple of group")
        .expected("a multiple of " + std::to_string(groups))
        .found(w_outputs.to_string());
  if (x_channels.is_known() && w_channels.is_known()) {
    int64_t wanted;
    if (__builtin_mul_overflow(w_channels.value(), groups, &wanted) || wanted != x_channels.value())
      return shape_mismatch("the weights do not fit the input channels")
          .expected(std::to_string(w_channels.value()) + " x " + std::to_string(groups) + " groups")
          .found(x_channels.to_string());
  }
  return {};
}

Status check_transpose_channels(const Dim& x_channels, const Dim& w_channels, int64_t groups) {
  if (groups < 1) return invalid_model("group is out of range").expected("at least 1").found(std::to_string(groups));
  if (x_channels.is_known() && w_channels.is_known() &&
      (x_channels.value() != w_channels.value() || x_channels.value() % groups != 0))
    return shape_mismatch("the weights do not fit the input channels")
        .expected(w_channels.to_string() + ", a multiple of " + std::to_string(groups) + " groups")
        .found(x_channels.to_string());
  return {};
}

// The kernel comes from the weights; kernel_shape may stand in while those are unknown (empty result).
Dims known_kernel(const Shape* w) {
  Dims kernel;
  for (size_t i = 2; w && i < w->size(); ++i) {
    if (!(*w)[i].is_known()) return {};
    kernel.push_back((*w)[i].value());
  }
  return kernel;
}
}  // namespace

Result<ConvShape> conv_shape(const NodeReader& node, std::span<const int64_t> x, std::span<const int64_t> w) {
  ORKNN_TRY(check_ranks(x.size(), w.size()));
  ConvShape s;
  s.batch = x[0];
  s.groups = node.get_int("group");
  s.input_channels = x[1];
  s.output_channels = w[0];
  ORKNN_TRY(check_channels(x[1], w[0], w[1], s.groups));
  ORKNN_TRY_ASSIGN(s.window, read_window(node, x.size() - 2, w.subspan(2)));
  s.input.assign(x.begin() + 2, x.end());
  ORKNN_TRY_ASSIGN(s.output, window_output(s.window, s.input));
  settle_pads(s.window, s.input);
  return s;
}

Status infer_conv(InferContext& c, size_t x_slot, size_t w_slot, DType dtype) {
  const Shape* x = c.shape(x_slot);
  const Shape* w = c.shape(w_slot);
  if (!x && !w) {
    c.set_output(0, dtype, std::nullopt);
    return {};
  }
  const size_t rank = x ? x->size() : w->size();
  ORKNN_TRY(check_ranks(rank, w ? w->size() : rank));
  Shape out(rank);
  if (x) out[0] = x->front();
  if (w) out[1] = w->front();
  ORKNN_TRY(check_channels(x ? (*x)[1] : Dim(), w ? w->front() : Dim(), w ? (*w)[1] : Dim(), c.get_int("group")));
  const Dims kernel = known_kernel(w);
  if (!kernel.empty() || c.find<std::vector<int64_t>>("kernel_shape")) {
    ORKNN_TRY_ASSIGN(const Window window, read_window(c, rank - 2, kernel));
    for (size_t i = 2; x && i < rank; ++i) {
      ORKNN_TRY_ASSIGN(out[i], window_output(window, i - 2, (*x)[i]));
    }
  }
  c.set_output(0, dtype, std::move(out));
  return {};
}

namespace {
struct TransposeExtras {
  Dims padding, shape;  // `shape` is empty when the attribute is absent
};

Result<TransposeExtras> read_transpose_extras(const NodeReader& node, size_t spatial_rank) {
  TransposeExtras e;
  e.padding = node.node().attributes.ints_or("output_padding");
  if (e.padding.empty()) e.padding.assign(spatial_rank, 0);
  e.shape = node.node().attributes.ints_or("output_shape");
  // Some exporters put batch and channels in front.
  if (e.shape.size() == spatial_rank + 2) e.shape.erase(e.shape.begin(), e.shape.begin() + 2);
  const auto bad = [&](const Dims& list) {
    for (int64_t v : list)
      if (v < 0 || v >= (int64_t{1} << 31)) return true;
    return list.size() != spatial_rank;
  };
  if (bad(e.padding))
    return invalid_model("output_padding is not valid")
        .expected(std::to_string(spatial_rank) + " extents")
        .found(to_string(e.padding));
  if (!e.shape.empty() && bad(e.shape))
    return invalid_model("output_shape is not valid")
        .expected(std::to_string(spatial_rank) + " extents")
        .found(to_string(e.shape));
  return e;
}

// The output without any padding taken off.
Dim full_transpose_output(const Window& w, size_t axis, int64_t output_padding, const Dim& input) {
  return (input + Dim(-1)) * Dim(w.strides[axis]) + Dim(output_padding + w.span(axis));
}

Result<Dim> transpose_output(const Window& w, size_t axis, const TransposeExtras& e, const Dim& input) {
  if (!e.shape.empty()) return Dim(e.shape[axis]);
  if (input.is_known() && (input.value() < 1 || input.value() >= (int64_t{1} << 31)))
    return shape_mismatch("spatial extent out of range").expected("at least 1").found(input.to_string());
  const Dim out = conv_transpose_output(w, axis, e.padding[axis], input);
  if (out.is_known() && out.value() < 1)
    return shape_mismatch("padding takes the whole output away").expected("an extent of at least 1").found(out.to_string());
  return out;
}
}  // namespace

Dim conv_transpose_output(const Window& w, size_t axis, int64_t output_padding, const Dim& input) {
  if (is_same(w.auto_pad)) {
    // SAME aims at input * stride, but padding is never negative.
    const int64_t total = w.span(axis) + output_padding - w.strides[axis];
    return input * Dim(w.strides[axis]) + Dim(std::min<int64_t>(total, 0));
  }
  return full_transpose_output(w, axis, output_padding, input) + Dim(-w.pads_begin[axis] - w.pads_end[axis]);
}

Result<ConvShape> conv_transpose_shape(const NodeReader& node, std::span<const int64_t> x, std::span<const int64_t> w) {
  ORKNN_TRY(check_ranks(x.size(), w.size()));
  ConvShape s;
  s.batch = x[0];
  s.groups = node.get_int("group");
  s.input_channels = x[1];
  ORKNN_TRY(check_transpose_channels(x[1], w[0], s.groups));
  if (__builtin_mul_overflow(w[1], s.groups, &s.output_channels))
    return shape_mismatch("too many output channels").found(to_string(w));
  ORKNN_TRY_ASSIGN(s.window, read_window(node, x.size() - 2, w.subspan(2)));
  ORKNN_TRY(check_spread(s.window));
  ORKNN_TRY_ASSIGN(const TransposeExtras extras, read_transpose_extras(node, x.size() - 2));
  s.input.assign(x.begin() + 2, x.end());
  s.output.resize(s.input.size());
  Window& window = s.window;
  for (size_t i = 0; i < s.input.size(); ++i) {
    ORKNN_TRY_ASSIGN(const Dim out, transpose_output(window, i, extras, Dim(s.input[i])));
    s.output[i] = out.value();
    if (!is_same(window.auto_pad) && extras.shape.empty()) continue;
    const int64_t wanted = extras.shape.empty() ? s.input[i] * window.strides[i] : s.output[i];
    const int64_t total =
        std::max<int64_t>(0, full_transpose_output(window, i, extras.padding[i], Dim(s.input[i])).value() - wanted);
    window.pads_begin[i] = window.auto_pad == AutoPad::SameUpper ? total / 2 : total - total / 2;
    window.pads_end[i] = total - window.pads_begin[i];
  }
  window.auto_pad = AutoPad::NotSet;
  return s;
}

Status infer_conv_transpose(InferContext& c) {
  const Shape* x = c.shape(0);
  const Shape* w = c.shape(1);
  if (!x && !w) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  const size_t rank = x ? x->size() : w->size();
  ORKNN_TRY(check_ranks(rank, w ? w->size() : rank));
  ORKNN_TRY(check_transpose_channels(x ? (*x)[1] : Dim(), w ? w->front() : Dim(), c.get_int("group")));
  Shape out(rank);
  if (x) out[0] = x->front();
  if (w) out[1] = (*w)[1] * Dim(c.get_int("group"));
  ORKNN_TRY_ASSIGN(const TransposeExtras extras, read_transpose_extras(c, rank - 2));
  const Dims kernel = known_kernel(w);
  if (!kernel.empty() || c.find<std::vector<int64_t>>("kernel_shape")) {
    ORKNN_TRY_ASSIGN(const Window window, read_window(c, rank - 2, kernel));
    ORKNN_TRY(check_spread(window));
    for (size_t i = 2; i < rank; ++i) {
      ORKNN_TRY_ASSIGN(out[i], transpose_output(window, i - 2, extras, x ? (*x)[i] : Dim()));
    }
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

std::vector<TapRun> tap_runs(const ConvShape& s, int64_t tap) {
  const Window& w = s.window;
  const size_t inner = w.rank() - 1;
  const Dims rows(s.output.begin(), s.output.end() - 1), strides = strides_of(s.input), kernel_strides = strides_of(w.kernel);
  // Input position on axis i of output 0 for this tap.
  const auto start = [&](size_t i) { return tap / kernel_strides[i] % w.kernel[i] * w.dilations[i] - w.pads_begin[i]; };
  const OutputRange range = outputs_inside(start(inner), w.strides[inner], s.input[inner], s.output[inner]);
  std::vector<TapRun> runs;
  if (range.begin == range.end) return runs;
  Dims row(inner, 0);
  int64_t output = range.begin;
  do {
    int64_t input = range.begin * w.strides[inner] + start(inner);
    bool inside = true;
    for (size_t i = 0; i < inner && inside; ++i) {
      const int64_t at = row[i] * w.strides[i] + start(i);
      inside = at >= 0 && at < s.input[i];
      input += at * strides[i];
    }
    if (inside) {
      // Whole rows that follow one another in both planes make one run.
      const int64_t count = range.end - range.begin;
      if (!runs.empty() && runs.back().output + runs.back().count == output &&
          runs.back().input + runs.back().count * w.strides[inner] == input)
        runs.back().count += count;
      else
        runs.push_back({input, output, count});
    }
    output += s.output[inner];
  } while (next_index(row, rows));
  return runs;
}

Status check_bias(const InferContext& c, size_t slot) {
  const Shape* bias = c.shape(slot);
  if (!bias) return {};
  const std::optional<Shape>& result = c.output(0).shape;
  const Dim channels = result && result->size() > 1 ? (*result)[1] : Dim();
  if (bias->size() == 1 && (!channels.is_known() || !bias->front().is_known() || bias->front() == channels)) return {};
  return shape_mismatch("bias has the wrong shape").expected("[" + channels.to_string() + "]").found(to_string(*bias));
}

Status check_bias(const TensorView& bias, int64_t channels) {
  if (bias.rank() != 1 || bias.dims[0] != channels)
    return shape_mismatch("bias has the wrong shape").expected("[" + std::to_string(channels) + "]").found(to_string(bias.dims));
  return {};
}

}  // namespace orknn::ops
