#include "compile/npu_ops.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace orknn::compile {
namespace {

using ir::NpuForm;

std::string text(int64_t v) { return std::to_string(v); }

// Of convolutions, of pools, of any tensor.
constexpr int64_t kMostKernel = 31, kMostStride = 7, kMostPoolKernel = 7, kMostExtent = 8192;
// Last axes shorter than this are narrow.
constexpr int64_t kNarrow = 16;

bool is_scalar(const Extents& e) { return e.n == 1 && e.c == 1 && e.h == 1 && e.w == 1; }

Objection unknown_shape() { return "its shape is known only at run time"; }

Objection rank_limit(const std::optional<ir::Dims>& dims) {
  if (!dims) return unknown_shape();
  return dims->size() > 4 ? "rank " + text(static_cast<int64_t>(dims->size())) + " is more than the NPU's 4" : Objection{};
}

// Up to four dimensions in and out.
Objection small_rank(const NodeFacts& f) {
  for (size_t i = 0; i < f.node().own_input_count(); ++i)
    if (f.has_input(i) && !f.is_constant(i))
      if (Objection o = rank_limit(f.input(i)); !o.empty()) return o;
  return rank_limit(f.output(0));
}

Objection in_range(std::string_view what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return std::string(what) + " " + text(value) + " is not in " + text(least) + ".." + text(most);
}

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A convolution that reads the picture itself: rows of the picture and the weights share the convolution buffer.
Objection first_layer_limit(const NodeFacts& f, const Window& w) {
  const ir::TensorId source = f.node().input(0);
  if (!f.graph().is_input(source) || f.input(0)->size() != 4) return {};
  if (w.in.c != 1 && w.in.c != 3 && w.in.c != 4) return {};
  const platform::Platform& p = f.platform();
  const platform::FirstLayerLimits& limits = p.first_layer;
  const bool int8 = dtype_bytes(f.input_type(0)) == 1;
  const int64_t taps = w.dilated(0) * w.dilated(1);
  int64_t weight_banks;
  if (w.depthwise)
    weight_banks =
        std::max<int64_t>(ceil_div(taps, int8 ? limits.depthwise_taps_per_bank_int8 : limits.depthwise_taps_per_bank_half),
                          int8 ? limits.depthwise_reserved_banks_int8 : limits.depthwise_reserved_banks_half);
  else
    weight_banks = std::max<int64_t>(ceil_div(taps, 128), limits.conv_reserved_banks);
  const int64_t free_banks = p.cbuf_banks - weight_banks;
  if (free_banks < 1)
    return "a " + text(w.kernel[0]) + "x" + text(w.kernel[1]) +
           " kernel on the model input leaves no room in the convolution buffer";
  const int64_t banks = std::min<int64_t>(free_banks, limits.max_free_banks);
  const int64_t most = banks * (int8 ? limits.row_elements_int8 : limits.row_elements_half), rows = w.in.w * w.dilated(0);
  if (w.in.w > limits.max_width)
    return "the model input is " + text(w.in.w) + " wide, more than the NPU's " + text(limits.max_width);
  if (rows > most || (limits.strict && rows == most))
    return "width " + text(w.in.w) + " times kernel height " + text(w.dilated(0)) +
           " of the model input does not fit the convolution buffer";
  return {};
}

Objection conv_limit(const NodeFacts& f) {
  if (f.input(0) && f.input(0)->size() > 4) return "3-D convolution is not computed by the NPU";
  const auto w = window_of(f);
  if (!w) return unknown_shape();
  if (!f.is_constant(1)) {
    // Weights that are computed are read like features: plain convolutions of one group, in the columns that the lists name.
    constexpr std::string_view kComputedWeights = "ABCE";
    const bool chip_can =
        kComputedWeights.find(f.platform().operator_group) != std::string_view::npos && f.platform().generation != 1;
    if (!chip_can || w->group != 1 || w->transposed) return "its weights are not constant";
  }
  const int64_t max_kernel = w->depthwise ? f.platform().max_depthwise_kernel : kMostKernel;
  static constexpr std::string_view kAxis[] = {"height", "width"};
  for (size_t a = 0; a < 2; ++a) {
    const std::string axis(kAxis[a]);
    if (Objection o = in_range((w->depthwise ? "depthwise kernel " : "kernel ") + axis, w->kernel[a], 1, max_kernel); !o.empty())
      return o;
    if (!w->transposed) {
      if (Objection o = in_range("stride", w->stride[a], 1, kMostStride); !o.empty()) return o;
      if (Objection o = in_range("dilation", w->dilation[a], 1, w->depthwise ? 32 : 31); !o.empty()) return o;
      continue;
    }
    for (int64_t pad : {w->pad_begin[a], w->pad_end[a]})
      if (Objection o = in_range("padding", pad, 0, kMostPadding); !o.empty()) return o;
    const int64_t s = w->stride[a];
    if (f.platform().transposed_conv_stride_power_of_two && s != 1 && s != 2 && s != 4 && s != 8)
      return "stride " + text(s) + " is not 1, 2, 4 or 8";
    if (Objection o = in_range("stride", s, 1, 8); !o.empty()) return o;
    if (Objection o = in_range("dilation", w->dilation[a], 1, 32); !o.empty()) return o;
    if (w->dilation[a] != 1 && (w->kernel[0] != 1 || w->kernel[1] != 1))
      return "a dilated transposed convolution needs a 1x1 kernel";
    const int64_t in = a == 0 ? w->in.h : w->in.w, out = a == 0 ? w->out.h : w->out.w;
    if ((w->kernel[a] - 1) * w->dilation[a] - w->pad_begin[a] < 0) return "padding is larger than the kernel reaches";
    // The list prints stride * (in - 1) - pad + 1 >= out, which no ordinary layer meets; read as "plus what the kernel reaches".
    if (s * (in - 1) - w->pad_begin[a] + w->kernel[a] < out) return "its output is larger than the kernel reaches";
  }
  if (w->transposed && w->group != 1 && !w->depthwise)
    return "group " + text(w->group) + " is neither 1 nor the number of channels";
  if (w->dilated(0) > 1 && w->in.w >= 16383) return "width " + text(w->in.w) + " is not below 16383";
  return first_layer_limit(f, *w);
}

// A fully connected layer runs as a 1x1 convolution.
Objection gemm_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  return f.is_constant(1) ? Objection{} : "its second operand is not constant";
}

Objection mat_mul_limit(const NodeFacts& f) {
  const auto a = f.input(0), b = f.input(1);
  if (Objection o = small_rank(f); !o.empty()) return o;
  if (!a || !b || a->empty()) return unknown_shape();
  if (f.is_constant(1) && b->size() <= 2) return {};  // becomes a 1x1 convolution
  return in_range("inner extent", a->back(), 1, 8192);
}

// Operands of different shapes: what Expand can realize.
Objection broadcast_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto out = extents(f.output(0));
  for (size_t i = 0; i < f.node().own_input_count(); ++i) {
    const auto in = f.has_input(i) ? extents(f.input(i)) : std::nullopt;
    if (!in) continue;
    if (in->n != out->n && !is_scalar(*in)) return "its operands differ in the batch axis";
    if ((in->h != out->h && out->h > 8192) || (in->w != out->w && out->w > 8192))
      return "an operand is repeated more than 8192 times";
  }
  return {};
}

Objection channel_broadcast_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto out = extents(f.output(0));
  for (size_t i = 0; i < 2; ++i) {
    const auto in = extents(f.input(i));
    if (!in) continue;
    const bool same = in->n == out->n && in->c == out->c && in->h == out->h && in->w == out->w;
    if (!same && !is_scalar(*in) && !(in->n == out->n && in->c == out->c && in->h == 1 && in->w == 1))
      return "only a scalar or one value per channel can be broadcast";
  }
  return {};
}

Objection div_limit(const NodeFacts& f) {
  return f.platform().div_broadcasts_channels_only ? channel_broadcast_limit(f) : broadcast_limit(f);
}

Objection slice_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  if (!f.has_input(4)) return {};
  const auto steps = f.ints(4), starts = f.ints(1), ends = f.ints(2);
  if (!steps || !starts || !ends) return "its steps are not constant";
  if (std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s == 1; })) return {};
  const auto in = extents(f.input(0));
  const int64_t lanes = f.platform().c2(f.input_type(0));
  const auto axes = f.has_input(3) ? f.ints(3) : std::nullopt;
  const int64_t rank = static_cast<int64_t>(f.input(0)->size());
  for (size_t i = 0; i < steps->size(); ++i) {
    if ((*steps)[i] == 1) continue;
    const int64_t axis = !axes ? static_cast<int64_t>(i) : (*axes)[i] < 0 ? (*axes)[i] + rank : (*axes)[i];
    const bool fits = in->h * in->w == 1 && axis + 4 - rank == 1 && in->c % lanes == 0 && (*starts)[i] % lanes == 0 &&
                      (*ends)[i] % lanes == 0 && (*steps)[i] > 0 && (*steps)[i] <= lanes;
    if (!fits) return "step " + text((*steps)[i]) + " is not 1";
  }
  return {};
}

Objection gather_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto indices = f.input(1);
  if (!indices) return unknown_shape();
  return indices->size() == 1 ? Objection{} : "its indices have rank " + text(static_cast<int64_t>(indices->size())) + ", not 1";
}

Objection pad_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const std::string mode = f.node().attributes.string_or("mode", "constant");
  if (mode == "constant") return {};
  if (mode != "reflect") return "mode " + mode + " is neither constant nor reflect";
  const auto e = extents(f.input(0));
  return e->c <= 8192 && e->h <= 8192 && e->w <= 8176 ? Objection{} : "a reflected tensor of this size";
}

Objection resize_limit(const NodeFacts& f) {
  const auto in = f.input(0), out = f.output(0);
  if (!in || !out) return unknown_shape();
  if (in->size() != 4) return "rank " + text(static_cast<int64_t>(in->size())) + " is not 4";
  const ir::Attributes& a = f.node().attributes;
  const std::string mode = a.string_or("mode", "nearest"),
                    coordinates = a.string_or("coordinate_transformation_mode", "half_pixel");
  if (mode != "nearest" && mode != "linear") return "mode " + mode + " is neither nearest nor linear";
  if (a.int_or("antialias", 0) || a.int_or("exclude_outside", 0))
    return "antialias and exclude_outside are not computed by the NPU";
  if (a.string_or("keep_aspect_ratio_policy", "stretch") != "stretch")
    return "keep_aspect_ratio_policy is not computed by the NPU";
  if ((*in)[0] != (*out)[0] || (*in)[1] != (*out)[1]) return "it resizes the batch or channel axis";
  const std::string nearest = a.string_or("nearest_mode", "round_prefer_floor");
  const int64_t h = (*in)[2], w = (*in)[3], oh = (*out)[2], ow = (*out)[3];
  const bool integer_factors = h > 0 && w > 0 && oh % h == 0 && ow % w == 0;
  // Repeating every pixel is the same in these two spellings.
  const bool repeats = mode == "nearest" && integer_factors && coordinates == "asymmetric" && nearest == "floor";
  if (!repeats) {
    if (mode == "nearest" && nearest != "round_prefer_floor") return "nearest_mode " + nearest + " is not computed by the NPU";
    if (coordinates != "half_pixel" && coordinates != "pytorch_half_pixel" && coordinates != "align_corners")
      return "coordinate_transformation_mode " + coordinates + " is not computed by the NPU";
  }
  if (h == 1 && w == 1 && (*in)[0] == 1) return {};
  if (!integer_factors || oh / h < 2 || oh / h > 8 || ow / w < 2 || ow / w > 8)
    return "[" + text(h) + "," + text(w) + "] to [" + text(oh) + "," + text(ow) +
           "] is not enlarging by whole factors from 2 to 8";
  if (mode == "linear" && !f.platform().interpolates)
    return "the NPU of " + std::string(f.platform().name) + " does not interpolate";
  return {};
}

// Sums and means are convolutions with equal weights, over channels (dense) or within each (depthwise, larger maps in stages).
Objection total_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto in = f.input(0);
  if (!in) return unknown_shape();
  if (in->size() != 4) return "rank " + text(static_cast<int64_t>(in->size())) + " is not 4";
  const auto window = total_window(f);
  if (!window) return "it reduces over more than channels, rows and columns";
  const bool only_channels = window->kernel[0] == 1 && window->kernel[1] == 1;
  if (f.platform().has_shader && !only_channels) return "it reduces over rows or columns";
  const int64_t most = window->depthwise ? kMostExtent : kMostKernel;
  for (int64_t k : window->kernel)
    if (Objection o = in_range("extent", k, 1, most); !o.empty()) return o;
  return {};
}

Objection pool_limit(const NodeFacts& f) {
  const auto w = window_of(f);
  if (!w) return unknown_shape();
  const ir::Attributes& a = f.node().attributes;
  if (f.node().output(1)) return "the positions of the maxima are asked for";
  for (int64_t e : {w->in.h, w->in.w})
    if (Objection o = in_range("extent", e, 1, f.platform().max_pool_extent); !o.empty()) return o;
  if (Objection o = in_range("channels", w->in.c, 1, 8192); !o.empty()) return o;
  const bool as_convolution = averages_as_convolution(f.form(), *w);
  const int64_t most = as_convolution ? kMostKernel : kMostPoolKernel;
  for (size_t axis = 0; axis < 2; ++axis) {
    if (Objection o = in_range("kernel", w->kernel[axis], 1, most); !o.empty()) return o;
    if (Objection o = in_range("stride", w->stride[axis], 1, as_convolution ? kMostStride : 8); !o.empty()) return o;
    for (int64_t pad : {w->pad_begin[axis], w->pad_end[axis]})
      if (Objection o = in_range("padding", pad, 0, 7); !o.empty()) return o;
    if (w->dilation[axis] != 1) return "dilation " + text(w->dilation[axis]) + " is not 1";
  }
  if (a.string_or("auto_pad", "NOTSET") != "NOTSET") return "auto_pad is set";
  if (a.int_or("ceil_mode", 0)) return "ceil_mode is set";
  const bool padded = w->pad_begin[0] || w->pad_begin[1] || w->pad_end[0] || w->pad_end[1];
  if (f.form() == NpuForm::AveragePool && padded && !a.int_or("count_include_pad", 0))
    return "padding is not counted in the average";
  if (!f.platform().pools_single_pixels && w->kernel[0] == 1 && w->kernel[1] == 1) return "a 1x1 window";
  return {};
}

// Larger maps are pooled in several steps, so only the map's existence matters.
Objection global_pool_limit(const NodeFacts& f) {
  const auto w = window_of(f);
  if (!w) return unknown_shape();
  return w->in.h > 8192 || w->in.w > 8192 ? "a map larger than 8192" : Objection{};
}

Objection prelu_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto slope = f.input(1), in = f.input(0);
  const int64_t channels = in->size() > 1 ? (*in)[1] : 1;
  if (f.is_integer_form()) {  // its slopes are multipliers
    const bool one = f.node().attributes.ints_or("slope_multiplier").size() <= 1;
    return one || f.axis(1, static_cast<int64_t>(in->size())) == 1 ? Objection{}
                                                                   : "its slope is neither a scalar nor one value per channel";
  }
  if (!slope) return unknown_shape();
  const int64_t count = ir::element_count(*slope);
  return count == 1 || count == channels ? Objection{} : "its slope is neither a scalar nor one value per channel";
}

Objection pow_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto exponent = f.scalar(1);
  if (!exponent) return "its exponent is not a constant scalar";
  static const std::set<double> kExponents{0, 1, 2, 3, 0.5, -0.5};
  return kExponents.contains(*exponent) ? Objection{} : "its exponent is not 0, 1, 2, 3, 0.5 or -0.5";
}

// Softmax works along channels; along the last axis it needs the transposition that exchanges the two.
Objection along_channels(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const int64_t rank = static_cast<int64_t>(f.input(0)->size());
  const int64_t axis = f.axis(-1, rank);
  const Extents e = *extents(f.input(0));
  if (rank == 2) return in_range("channels", e.w, 1, 8192);  // [batch, classes]: the classes are channels
  const int64_t position = axis + 4 - rank;
  if (position == 1) return {};
  if (position != 3) return "axis " + text(axis) + " is neither the channel nor the last axis";
  return transpose_limit(f.platform(), e, {0, 3, 2, 1}, f.input_type(0));
}

Objection softmax_limit(const NodeFacts& f) {
  if (f.node().attributes.int_or("flatten", 0)) return "it normalizes over several axes";
  return along_channels(f);
}

Objection hardmax_limit(const NodeFacts& f) {
  if (Objection o = softmax_limit(f); !o.empty()) return o;
  const Extents e = *extents(f.input(0));
  const int64_t rank = static_cast<int64_t>(f.input(0)->size());
  const bool channel = f.axis(-1, rank) + 4 - rank == 1;
  if (channel ? e.h * e.w >= 16384 : e.c * e.h >= 16384) return "a map of 16384 and more";
  if (const int64_t most = f.platform().max_hardmax_elements; most > 0) {
    const int64_t all = e.c * e.h * e.w;
    if (all > most || (all != 1 && all <= 8)) return "a tensor of this size";
  }
  return {};
}

Objection glu_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const int64_t axis = f.axis(-1, static_cast<int64_t>(f.input(0)->size()));
  return axis == 1 ? Objection{} : "axis " + text(axis) + " is not 1";
}

Objection norm_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const int64_t rank = static_cast<int64_t>(f.input(0)->size()), axis = f.axis(-1, rank);
  if (f.node().output(1) || f.node().output(2)) return "mean or deviation are asked for";
  return axis == rank - 1 || axis == 1 ? Objection{} : "it normalizes over axes " + text(axis) + ".." + text(rank - 1);
}

Objection attention_limit(const NodeFacts& f) {
  if (Objection o = small_rank(f); !o.empty()) return o;
  const auto query = f.input(0), value = f.input(2);
  if (!query || !value) return unknown_shape();
  for (const auto& d : {*query, *value})
    if (Objection o = in_range("channels", d.back(), 1, 8192); !o.empty()) return o;
  return f.node().output(1) || f.node().output(2) || f.node().output(3) ? "more than its first output is asked for" : Objection{};
}

Objection recurrent_limit(const NodeFacts& f) {
  const auto x = f.input(0);
  if (!x || x->size() != 3) return unknown_shape();
  const ir::Attributes& a = f.node().attributes;
  const bool batch_first = a.int_or("layout", 0) == 1;
  const int64_t sequence = (*x)[batch_first ? 1 : 0], rows = (*x)[batch_first ? 0 : 1];
  for (int64_t e : {sequence, rows, (*x)[2], a.int_or("hidden_size", 1)})
    if (Objection o = in_range("extent", e, 1, 8192); !o.empty()) return o;
  if (rows > 1 && rows % 4 != 0) return "batch " + text(rows) + " is not 1 or a multiple of 4";
  if (a.int_or("input_forget", 0)) return "input_forget is set";
  if (a.has("clip") || a.has("activations")) return "clip or other activations are set";
  if (f.has_input(4) && !f.is_constant(4)) return "sequence_lens is given";
  if (!f.is_constant(1) || !f.is_constant(2)) return "its weights are not constant";
  return f.has_input(7) ? "peepholes are set" : Objection{};
}

Objection transpose_node_limit(const NodeFacts& f) {
  const auto in = f.input(0);
  if (!in) return unknown_shape();
  const size_t rank = in->size();
  if (rank > 4) return rank_limit(in);
  std::vector<int64_t> perm = f.node().attributes.ints_or("perm");
  if (perm.empty())
    for (size_t i = 0; i < rank; ++i) perm.push_back(static_cast<int64_t>(rank - 1 - i));
  // Shorter shapes may be extended before or after: one fitting way is enough.
  Objection objection;
  for (const size_t front : {4 - rank, size_t{0}}) {
    std::array<int, 4> full{0, 1, 2, 3};
    std::array<int64_t, 4> dims{1, 1, 1, 1};
    for (size_t i = 0; i < rank; ++i) {
      full[front + i] = static_cast<int>(static_cast<int64_t>(front) + perm[i]);
      dims[front + i] = (*in)[i];
    }
    objection = transpose_limit(f.platform(), {dims[0], dims[1], dims[2], dims[3]}, full, f.input_type(0));
    if (objection.empty()) return {};
  }
  return objection;
}

// Operator list 3.1, columns A to G.
constexpr NpuTypes kArray{"if", "if", "if", "i", "if", "f", "i"};
constexpr NpuTypes kVector{"if", "if", "if", "if", "if", "f", "i"};
constexpr NpuTypes kAverage{"if", "if", "if", "if", "if", "c", "c"};
constexpr NpuTypes kFloatOnly{"f", "f", "f", "-", "f", "-", "-"};
const NpuRow kRows[] = {
    {NpuForm::Convolution, kArray, conv_limit},
    {NpuForm::FullyConnected, kArray, gemm_limit},
    {NpuForm::MatrixProduct, kArray, mat_mul_limit},
    {NpuForm::Attention, {"-", "if", "if", "i", "if", "-", "-"}, attention_limit},
    {NpuForm::Recurrent, {"if", "if", "if", "i", "if", "f", "-"}, recurrent_limit},
    {NpuForm::RecurrentFloat, kFloatOnly, recurrent_limit},
    {NpuForm::Function, kVector, small_rank},
    {NpuForm::Broadcast, kArray, broadcast_limit},
    {NpuForm::Expand, kArray, broadcast_limit},
    {NpuForm::ChannelBroadcast, kArray, channel_broadcast_limit},
    {NpuForm::Division, {"f", "f", "f", "f", "f", "f", "f"}, div_limit},
    {NpuForm::Maximum, kVector, broadcast_limit},
    {NpuForm::Minimum, {"if", "if", "-", "if", "if", "-", "-"}, broadcast_limit},
    {NpuForm::Comparison, {"-", "-", "-", "-", "if", "-", "-"}, broadcast_limit},
    {NpuForm::Selection, kVector, broadcast_limit, 1},
    {NpuForm::Slope, kVector, prelu_limit},
    {NpuForm::Power, {"if", "if", "if", "if", "if", "f", "-"}, pow_limit},
    {NpuForm::Glu, kVector, glu_limit},
    {NpuForm::Shuffle, kArray, small_rank},
    {NpuForm::Slice, kVector, slice_limit},
    {NpuForm::Pad, kArray, pad_limit},
    {NpuForm::Repeat, {"if", "if", "if", "if", "if", "if", "if"}, small_rank},
    {NpuForm::Gather, {"if", "if", "if", "-", "if", "-", "-"}, gather_limit},
    {NpuForm::Transpose, kVector, transpose_node_limit},
    {NpuForm::Resize, kArray, resize_limit},
    {NpuForm::ChannelSum, kArray, total_limit},
    {NpuForm::MaxPool, kVector, pool_limit},
    {NpuForm::AveragePool, kAverage, pool_limit},
    {NpuForm::GlobalMaxPool, kVector, global_pool_limit},
    {NpuForm::GlobalAveragePool, kAverage, global_pool_limit},
    {NpuForm::Softmax, {"-", "if", "if", "if", "if", "f", "i"}, softmax_limit},
    {NpuForm::Hardmax, {"-", "if", "if", "if", "if", "-", "-"}, hardmax_limit},
    {NpuForm::Norm, kFloatOnly, norm_limit},
    {NpuForm::MeanVarianceNorm, kFloatOnly, small_rank},
};
}  // namespace

std::optional<std::vector<int64_t>> reduced_axes(const NodeFacts& f) {
  const auto in = f.input(0);
  if (!in) return {};
  const int64_t rank = static_cast<int64_t>(in->size());
  std::vector<int64_t> axes;
  if (f.has_input(1)) {
    const auto given = f.ints(1);
    if (!given) return {};
    axes = *given;
  }
  if (axes.empty())
    for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
  for (int64_t& a : axes) a += a < 0 ? rank : 0;
  return axes;
}

std::optional<Window> total_window(const NodeFacts& f) {
  const auto in = f.input(0);
  const auto axes = reduced_axes(f);
  if (!in || in->size() != 4 || !axes) return {};
  Window w;
  w.in = w.out = *extents(in);
  w.in_channels = w.out_channels = w.in.c;
  w.depthwise = true;
  for (int64_t axis : *axes) {
    if (axis == 0 && w.in.n != 1) return {};
    if (axis == 1) w.depthwise = w.in.c == 1, w.out.c = w.out_channels = 1;
    if (axis == 2) w.kernel[0] = w.in.h, w.out.h = 1;
    if (axis == 3) w.kernel[1] = w.in.w, w.out.w = 1;
  }
  if (w.depthwise) w.group = w.in.c;
  return w;
}

bool averages_as_convolution(ir::NpuForm form, const Window& w) {
  return form == NpuForm::AveragePool && std::max(w.kernel[0], w.kernel[1]) > kMostPoolKernel;
}

bool brings_into_narrow(const NodeFacts& f) {
  if (!f.platform().narrow_on_cpu || f.def().pattern != ir::Pattern::View) return false;
  const auto in = f.input(0), out = f.output(0);
  return in && out && in->size() == 4 && out->size() == 3 && out->back() > 1 && out->back() < kNarrow;
}

bool pads_before(const Window& w) {
  return std::max({w.pad_begin[0], w.pad_begin[1], w.pad_end[0], w.pad_end[1]}) > kMostPadding;
}

const NpuRow* npu_row(ir::NpuForm form) {
  for (const NpuRow& row : kRows)
    if (row.form == form) return &row;
  return nullptr;
}

std::string_view listed_name(const ir::OpDef& def) { return def.npu.listed_as.empty() ? def.name : def.npu.listed_as; }

Objection npu_objection(const NodeFacts& f) {
  const NpuRow* row = npu_row(f.form());
  if (!row) return std::string(f.op()) + " is not an NPU operator";
  const std::string chip(f.platform().name);
  std::string_view types = row->types[static_cast<size_t>(f.platform().operator_group - 'A')];
  if (types == "-") return std::string(f.op()) + " is not an NPU operator of " + chip;
  if (types == "c") types = f.platform().conv_int8 ? "i" : "f";
  // float32 is our addition for exact comparison: it is placed as float16 would be.
  const DType type = f.input_type(row->data_input);
  const bool fits = type == DType::Float16 || type == DType::Float32 ? types.find('f') != types.npos
                    : type == DType::Int8 || type == DType::UInt8    ? types.find('i') != types.npos
                    : type == DType::Int16                           ? types.find('i') != types.npos && f.platform().conv_int16()
                                                                     : false;
  if (!fits) return "the NPU of " + chip + " does not compute " + std::string(f.op()) + " in " + std::string(dtype_name(type));
  for (const auto* list : {&f.node().inputs, &f.node().outputs}) {
    for (ir::TensorId t : *list) {
      if (!t) continue;
      const auto dims = f.dims_of(t);
      if (!dims) return unknown_shape();
      if (!ir::checked_element_count(*dims)) return "a tensor of this size";
    }
  }
  if (brings_into_narrow(f)) return "a last axis of " + text(f.output(0)->back()) + " is made on the CPU";
  return row->limit(f);
}

}  // namespace orknn::compile
