// Convolutions, fully connected layers, normalizations, activations, softmax and the loss layers that end a training symbol.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// Data with channels last is computed channels first; `undo` brings a result back.
struct Layout {
  bool channels_last = false;
  Result<TensorId> to_first(Layer& l, TensorId x) const { return channels_last ? l.channels_first(x) : Result<TensorId>(x); }
  Result<TensorId> undo(Layer& l, TensorId x) const { return channels_last ? l.channels_last(x) : Result<TensorId>(x); }
};
Layout layout_of(Layer& l) {
  const std::string text = l.text("layout", "");
  return {text == "NHWC" || text == "NWC" || text == "NDHWC"};
}

std::vector<int64_t> twice(const std::vector<int64_t>& pads) {
  std::vector<int64_t> both = pads;
  both.insert(both.end(), pads.begin(), pads.end());
  return both;
}

// The extents of the kernel: stated, or those of the weights.
Result<std::vector<int64_t>> kernel_of(Layer& l, size_t weight_input, bool channels_last) {
  std::vector<int64_t> kernel = l.integers("kernel");
  if (kernel.empty()) {
    if (const auto dims = l.dims_of(l.input(weight_input)); dims && dims->size() > 2)
      kernel.assign(dims->begin() + (channels_last ? 1 : 2), dims->end() - (channels_last ? 1 : 0));
  }
  if (kernel.empty() || kernel.size() > 3 || std::any_of(kernel.begin(), kernel.end(), [](int64_t k) { return k < 1; }) ||
      !checked_element_count(kernel, 1 << 24))
    return invalid_model("illegal kernel").expected("one to three positive extents").found(to_string(kernel));
  return kernel;
}

// The channels of the data, when known.
std::optional<int64_t> channels_of(const Layer& l, TensorId x, int64_t axis = 1) {
  const Shape* s = l.shape_of(x);
  const int64_t at = s && axis < 0 ? axis + static_cast<int64_t>(s->size()) : axis;
  if (!s || at < 0 || at >= static_cast<int64_t>(s->size()) || !(*s)[static_cast<size_t>(at)].is_known()) return std::nullopt;
  return (*s)[static_cast<size_t>(at)].value();
}

// What Convolution and Deconvolution have in common: data and weights in channels-first order, the window, the bias.
struct Filter {
  Layout layout;
  std::vector<TensorId> inputs;
  std::vector<int64_t> kernel;
  int64_t group = 1;
};
Result<Filter> filter_of(Layer& l, bool is_transposed) {
  Filter f{.layout = layout_of(l), .inputs = {}, .kernel = {}, .group = l.integer("num_group", 1)};
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(x, f.layout.to_first(l, x));
  ORKNN_TRY_ASSIGN(f.kernel, kernel_of(l, 1, f.layout.channels_last));
  const int64_t filters = l.integer("num_filter", 0);
  if (f.group < 1) return invalid_model("illegal num_group").found(std::to_string(f.group));
  std::optional<Dims> dims;
  int64_t fan_in = 1;
  if (const auto channels = channels_of(l, x); channels && filters > 0) {
    dims = is_transposed ? Dims{*channels, filters / f.group} : Dims{filters, *channels / f.group};
    dims->insert(dims->end() - (f.layout.channels_last ? 1 : 0), f.kernel.begin(), f.kernel.end());
    const Dims summed{*channels / f.group, element_count(f.kernel)};
    fan_in = checked_element_count(summed) ? element_count(summed) : 1;
  }
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(TensorId weight, l.parameter(1, "weight", dims, Fill::Random, dtype, fan_in));
  ORKNN_TRY_ASSIGN(weight, f.layout.to_first(l, weight));  // [out, h, w, in] in that layout
  f.inputs = {x, weight};
  if (!l.flag("no_bias", is_transposed)) {
    ORKNN_TRY_ASSIGN(const TensorId bias,
                     l.parameter(2, "bias", filters > 0 ? std::optional(Dims{filters}) : std::nullopt, Fill::Zeros, dtype));
    f.inputs.push_back(bias);
  }
  return f;
}

}  // namespace

Status convolution(Layer& l) {
  ORKNN_TRY_ASSIGN(Filter f, filter_of(l, false));
  const size_t n = f.kernel.size();
  const TensorId y = l.emit("Conv", std::move(f.inputs),
                            {{"kernel_shape", f.kernel},
                             {"strides", l.window("stride", n, 1, 1)},
                             {"dilations", l.window("dilate", n, 1, 1)},
                             {"pads", twice(l.window("pad", n, 0, 0))},
                             {"group", f.group}});
  ORKNN_TRY_ASSIGN(const TensorId result, f.layout.undo(l, y));
  l.set_output(result);
  return {};
}

namespace {
Status deconvolution(Layer& l) {
  ORKNN_TRY_ASSIGN(Filter f, filter_of(l, true));
  const std::vector<int64_t>& kernel = f.kernel;
  const size_t n = kernel.size();
  const std::vector<int64_t> stride = l.window("stride", n, 1, 1), dilate = l.window("dilate", n, 1, 1),
                             target = l.window("target_shape", n, 0, 0);
  std::vector<int64_t> pad = l.window("pad", n, 0, 0), adjust = l.window("adj", n, 0, 0);
  if (std::any_of(target.begin(), target.end(),
                  [](int64_t t) { return t != 0; })) {  // then padding and adjustment follow from it
    ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(f.inputs[0], "to reach the target shape"));
    if (in.size() != n + 2)
      return shape_mismatch("the data does not have the rank of the kernel").expected(std::to_string(n + 2)).found(to_string(in));
    for (size_t i = 0; i < n; ++i) {
      const int64_t surplus = stride[i] * (in[i + 2] - 1) + (kernel[i] - 1) * dilate[i] + 1 - target[i];
      if (surplus < 0)
        return invalid_model("the target shape cannot be reached")
            .expected("at most " + std::to_string(surplus + target[i]))
            .found(std::to_string(target[i]));
      adjust[i] = surplus % 2;
      pad[i] = (surplus + 1) / 2;
    }
  }
  const TensorId y = l.emit("ConvTranspose", std::move(f.inputs),
                            {{"kernel_shape", kernel},
                             {"strides", stride},
                             {"dilations", dilate},
                             {"pads", twice(pad)},
                             {"output_padding", adjust},
                             {"group", f.group}});
  ORKNN_TRY_ASSIGN(const TensorId result, f.layout.undo(l, y));
  l.set_output(result);
  return {};
}

}  // namespace

Status fully_connected(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  const bool flatten = l.flag("flatten", true);
  const auto rank = l.rank_of(x);
  if (flatten && rank && *rank == 1) x = l.reshape(x, {-1, 1});
  if (flatten && (!rank || *rank > 2)) x = l.emit("Flatten", {x}, {{"axis", int64_t{1}}});
  const int64_t hidden = l.integer("num_hidden", 0);
  const auto features = channels_of(l, x, -1);
  std::optional<Dims> dims;
  if (features && hidden > 0) dims = Dims{hidden, *features};
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(const TensorId weight, l.parameter(1, "weight", dims, Fill::Random, dtype, features.value_or(1)));
  TensorId bias;
  if (!l.flag("no_bias", false)) {
    ORKNN_TRY_ASSIGN(bias, l.parameter(2, "bias", hidden > 0 ? std::optional(Dims{hidden}) : std::nullopt, Fill::Zeros, dtype));
  }
  if (flatten || (rank && *rank == 2)) {
    std::vector<TensorId> inputs{x, weight};
    if (bias) inputs.push_back(bias);
    l.set_output(l.emit("Gemm", std::move(inputs), {{"transB", int64_t{1}}}));
    return {};
  }
  TensorId y = l.binary("MatMul", x, l.transpose(weight, {1, 0}));
  if (bias) y = l.binary("Add", y, bias);
  l.set_output(y);
  return {};
}

// --- normalizations

Status batch_norm(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  int64_t axis = l.integer("axis", 1);
  const auto rank = l.rank_of(x);
  if (axis < 0) {
    ORKNN_TRY_ASSIGN(const int64_t known_rank, l.need_rank(x, "to find the channels"));
    ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, known_rank));
  }
  if (rank && axis >= *rank)
    return invalid_model("illegal axis").expected("less than " + std::to_string(*rank)).found(std::to_string(axis));
  const auto channels = channels_of(l, x, axis);
  const std::optional<Dims> dims = channels ? std::optional(Dims{*channels}) : std::nullopt;
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(TensorId gamma, l.parameter(1, "gamma", dims, Fill::Ones, dtype));
  ORKNN_TRY_ASSIGN(const TensorId beta, l.parameter(2, "beta", dims, Fill::Zeros, dtype));
  ORKNN_TRY_ASSIGN(const TensorId mean, l.parameter(3, "moving_mean", dims, Fill::Zeros, dtype));
  ORKNN_TRY_ASSIGN(const TensorId variance, l.parameter(4, "moving_var", dims, Fill::Ones, dtype));
  if (l.flag("fix_gamma", true)) {  // whatever the file holds, it means 1
    ORKNN_TRY_ASSIGN(const Dims gamma_dims, l.need_dims(gamma, "to replace it by ones"));
    gamma = l.expand(l.add_scalar("one", 1.0, dtype), gamma_dims);
  }
  std::vector<int64_t> order;
  if (axis != 1 && rank && *rank > 1) {  // the axis takes the place of the channels
    order.resize(static_cast<size_t>(*rank));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::swap(order[1], order[static_cast<size_t>(axis)]);
    x = l.transpose(x, order);
  }
  const double epsilon = l.number("eps", 1e-3);
  TensorId y = l.emit("BatchNormalization", {x, gamma, beta, mean, variance}, {{"epsilon", epsilon}});
  if (!order.empty()) y = l.transpose(y, order);
  if (l.op() == "_contrib_BatchNormWithReLU") y = l.unary("Relu", y);
  l.set_output(0, y);
  l.set_output(1, mean);
  l.set_output(2, l.unary("Reciprocal",
                          l.unary("Sqrt", l.with_scalar("Add", variance, epsilon))));  // "var" is what the data was multiplied by
  return {};
}

namespace {
Status instance_norm(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const auto channels = channels_of(l, x);
  const std::optional<Dims> dims = channels ? std::optional(Dims{*channels}) : std::nullopt;
  ORKNN_TRY_ASSIGN(const TensorId gamma, l.parameter(1, "gamma", dims, Fill::Ones, l.dtype_of(x)));
  ORKNN_TRY_ASSIGN(const TensorId beta, l.parameter(2, "beta", dims, Fill::Zeros, l.dtype_of(x)));
  l.set_output(l.emit("InstanceNormalization", {x, gamma, beta}, {{"epsilon", l.number("eps", 1e-3)}}));
  return {};
}

// Mean and standard deviation that normalizations hand out beside their result, without the normalized axes.
void set_moments(Layer& l, TensorId x, std::vector<int64_t> axes, double epsilon, bool keep) {
  const TensorId mean = l.reduce("ReduceMean", x, axes, true), centred = l.binary("Sub", x, mean);
  const TensorId variance = l.reduce("ReduceMean", l.binary("Mul", centred, centred), axes, keep);
  l.set_output(1, l.reduce("ReduceMean", x, axes, keep));
  l.set_output(2, l.unary("Sqrt", l.with_scalar("Add", variance, epsilon)));
}

Status layer_norm(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize an axis"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.integer("axis", -1), rank));
  const double epsilon = l.number("eps", 1e-5);
  const auto extent = channels_of(l, x, axis);
  const std::optional<Dims> dims = extent ? std::optional(Dims{*extent}) : std::nullopt;
  ORKNN_TRY_ASSIGN(const TensorId gamma, l.parameter(1, "gamma", dims, Fill::Ones, l.dtype_of(x)));
  ORKNN_TRY_ASSIGN(const TensorId beta, l.parameter(2, "beta", dims, Fill::Zeros, l.dtype_of(x)));
  if (l.flag("output_mean_var", false)) set_moments(l, x, {axis}, epsilon, true);
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[static_cast<size_t>(axis)], order.back());
  TensorId y = l.emit("LayerNormalization", {l.transpose(x, order), gamma, beta}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  l.set_output(0, l.transpose(y, order));
  return {};
}

Status group_norm(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to form groups"));
  const int64_t groups = l.integer("num_groups", 1);
  if (dims.size() < 3 || groups < 1 || dims[1] % groups != 0)
    return invalid_model("the channels do not divide into groups")
        .expected("a multiple of " + std::to_string(groups) + " channels")
        .found(to_string(dims));
  const double epsilon = l.number("eps", 1e-5);
  const DType dtype = l.dtype_of(x);
  ORKNN_TRY_ASSIGN(TensorId gamma, l.parameter(1, "gamma", Dims{groups}, Fill::Ones, dtype));
  ORKNN_TRY_ASSIGN(TensorId beta, l.parameter(2, "beta", Dims{groups}, Fill::Zeros, dtype));
  // 1.6 to 1.9 keep one factor per group, later versions one per channel.
  const auto per_channel = [&](TensorId p) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const Dims have, l.need_dims(p, "to apply it"));
    if (element_count(have) == dims[1]) return l.reshape(p, {dims[1]});
    if (element_count(have) != groups)
      return shape_mismatch("the factors do not fit the groups").expected(std::to_string(groups)).found(to_string(have));
    return l.reshape(l.expand(l.reshape(p, {groups, 1}), {groups, dims[1] / groups}), {dims[1]});
  };
  ORKNN_TRY_ASSIGN(gamma, per_channel(gamma));
  ORKNN_TRY_ASSIGN(beta, per_channel(beta));
  if (l.flag("output_mean_var", false)) {
    set_moments(l, l.reshape(x, {dims[0], groups, -1}), {2}, epsilon, false);
  }
  l.set_output(0, l.emit("GroupNormalization", {x, gamma, beta}, {{"num_groups", groups}, {"epsilon", epsilon}}));
  return {};
}

Status l2_normalization(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to normalize it"));
  const std::string mode = l.text("mode", "instance");
  std::vector<int64_t> axes;
  if (mode == "channel")
    axes = {1};
  else if (mode == "instance" || mode == "spatial")
    for (int64_t a = mode == "instance" ? 1 : 2; a < rank; ++a) axes.push_back(a);
  else
    return unsupported("unknown mode").expected("instance, channel or spatial").found(mode);
  if (axes.empty() || axes.back() >= rank)
    return shape_mismatch("the data has too few axes for mode " + mode).found(std::to_string(rank));
  const TensorId sum = l.reduce("ReduceSum", l.binary("Mul", x, x), axes, true);
  l.set_output(l.binary("Div", x, l.unary("Sqrt", l.with_scalar("Add", sum, l.number("eps", 1e-10)))));
  return {};
}

Status lrn(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const int64_t size = l.integer("nsize", 5);
  if (size < 1) return invalid_model("illegal nsize").found(std::to_string(size));
  l.set_output(l.emit(
      "LRN", {x},
      {{"size", size}, {"alpha", l.number("alpha", 1e-4)}, {"beta", l.number("beta", 0.75)}, {"bias", l.number("knorm", 2.0)}}));
  return {};
}

// --- activations

Result<TensorId> activate(Layer& l, TensorId x, const std::string& type) {
  if (type == "relu") return l.unary("Relu", x);
  if (type == "sigmoid") return l.unary("Sigmoid", x);
  if (type == "tanh") return l.unary("Tanh", x);
  if (type == "softrelu") return l.unary("Softplus", x);
  if (type == "softsign") return l.unary("Softsign", x);
  if (type == "log_sigmoid") return l.unary("Neg", l.unary("Softplus", l.unary("Neg", x)));
  if (type == "mish") return l.unary("Mish", x);
  return unsupported("unknown activation").expected("relu, sigmoid, tanh, softrelu, softsign, log_sigmoid or mish").found(type);
}

}  // namespace

Status activation(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId y, activate(l, x, l.text("act_type", "relu")));
  l.set_output(y);
  return {};
}

namespace {
Status leaky_relu(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const std::string type = l.text("act_type", "leaky");
  const double slope = l.number("slope", 0.25);
  if (type == "leaky")
    l.set_output(l.emit("LeakyRelu", {x}, {{"alpha", slope}}));
  else if (type == "elu")
    l.set_output(l.emit("Elu", {x}, {{"alpha", slope}}));
  else if (type == "selu")
    l.set_output(l.unary("Selu", x));
  else if (type == "gelu")
    l.set_output(l.unary("Gelu", x));
  else if (type == "rrelu")
    l.set_output(l.emit("LeakyRelu", {x}, {{"alpha", (l.number("lower_bound", 0.125) + l.number("upper_bound", 0.334)) / 2}}));
  else if (type == "prelu") {
    const auto channels = channels_of(l, x);
    ORKNN_TRY_ASSIGN(TensorId gamma, l.parameter(1, "gamma", channels ? std::optional(Dims{*channels}) : std::nullopt, Fill::Ones,
                                                 l.dtype_of(x)));
    ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to place the slopes"));
    if (const auto dims = l.dims_of(gamma); dims && dims->size() == 1 && rank > 1) {  // one slope per channel, or one for all
      std::vector<int64_t> shape(static_cast<size_t>(rank - 1), 1);
      shape[0] = (*dims)[0];
      gamma = l.reshape(gamma, shape);
    }
    l.set_output(l.binary("PRelu", x, gamma));
  } else {
    return unsupported("unknown activation").expected("leaky, prelu, elu, selu, gelu or rrelu").found(type);
  }
  return {};
}

Status hard_sigmoid(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(l.emit("HardSigmoid", {x}, {{"alpha", l.number("alpha", 0.2)}, {"beta", l.number("beta", 0.5)}}));
  return {};
}

// --- softmax

// Data divided by the temperature, as the type asked for.
Result<TensorId> softmax_input(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  if (!is_float(l.dtype_of(x))) x = l.cast(x, DType::Float32);
  const double temperature = l.number("temperature", 1.0);
  return temperature == 1.0 ? x : l.with_scalar("Div", x, temperature);
}

// Softmax over the first `length` elements of each row; 0 behind them.
Result<TensorId> masked_softmax_of(Layer& l, TensorId x, TensorId mask, int64_t axis, bool logarithm) {
  const DType dtype = l.dtype_of(x);
  const TensorId hidden = l.add_scalar("hidden", dtype == DType::Float16 ? -6e4 : -1e30, dtype),
                 kept = l.emit("Where", {mask, x, hidden});
  if (logarithm) {
    const TensorId infinite = l.add_scalar("infinite", -HUGE_VAL, dtype);
    return l.emit("Where", {mask, l.emit("LogSoftmax", {kept}, {{"axis", axis}}), infinite});
  }
  return l.emit("Where", {mask, l.emit("Softmax", {kept}, {{"axis", axis}}), l.add_scalar("zero", 0.0, dtype)});
}

Status softmax(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, softmax_input(l));
  if (l.op() == "softmin") x = l.unary("Neg", x);
  const int64_t axis = l.integer("axis", -1);
  const bool logarithm = l.op() == "log_softmax";
  TensorId y;
  if (l.flag("use_length", false)) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to mask by length"));
    ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(axis, static_cast<int64_t>(dims.size())));
    ORKNN_TRY_ASSIGN(const TensorId length, l.need(1));
    std::vector<int64_t> positions(static_cast<size_t>(dims[static_cast<size_t>(at)]));
    std::iota(positions.begin(), positions.end(), int64_t{0});
    std::vector<int64_t> shape(dims.size(), 1);
    shape[static_cast<size_t>(at)] = -1;
    const TensorId mask =
        l.binary("Less", l.reshape(l.add_ints("positions", positions), shape), l.unsqueeze(l.cast(length, DType::Int64), {at}));
    ORKNN_TRY_ASSIGN(y, masked_softmax_of(l, x, mask, at, logarithm));
  } else {
    y = l.emit(logarithm ? "LogSoftmax" : "Softmax", {x}, {{"axis", axis}});
  }
  l.set_output(l.cast(y, l.dtype("dtype", l.dtype_of(y))));
  return {};
}

Status masked_softmax(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, softmax_input(l));
  ORKNN_TRY_ASSIGN(const TensorId mask, l.need(1));
  ORKNN_TRY_ASSIGN(const TensorId y,
                   masked_softmax_of(l, x, l.cast(mask, DType::Bool), l.integer("axis", -1), l.op() == "masked_log_softmax"));
  l.set_output(y);
  return {};
}

TensorId softmax_of_instance(Layer& l, TensorId x) {
  if (const auto rank = l.rank_of(x); rank && *rank <= 2) return l.emit("Softmax", {x}, {{"axis", int64_t{-1}}});
  return l.emit("Softmax", {x}, {{"axis", int64_t{1}}, {"flatten", int64_t{1}}});
}

Status softmax_activation(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const std::string mode = l.text("mode", "instance");
  if (mode != "instance" && mode != "channel") return unsupported("unknown mode").expected("instance or channel").found(mode);
  l.set_output(l.emit("Softmax", {x}, {{"axis", int64_t{mode == "channel" ? 1 : -1}}}));  // "instance" means the last axis
  return {};
}

Status softmax_output(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  if (l.flag("multi_output", false))
    l.set_output(l.emit("Softmax", {x}, {{"axis", int64_t{1}}}));
  else if (l.flag("preserve_shape", false))
    l.set_output(l.emit("Softmax", {x}, {{"axis", int64_t{-1}}}));
  else
    l.set_output(softmax_of_instance(l, x));
  return {};
}

// --- what inference passes through

Status identity(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(l.unary("Identity", x));
  return {};
}

Status logistic_output(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(l.unary("Sigmoid", x));
  return {};
}

// -sum(log softmax(x)[label]) over the batch.
Status softmax_cross_entropy(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId label, l.need(1));
  const TensorId picked = l.emit(
      "GatherElements", {l.emit("LogSoftmax", {x}, {{"axis", int64_t{-1}}}), l.unsqueeze(l.cast(label, DType::Int64), {1})},
      {{"axis", int64_t{1}}});
  l.set_output(l.reshape(l.unary("Neg", l.reduce("ReduceSum", picked, {0, 1}, false)), {1}));
  return {};
}

Status training_only(Layer&) {
  return unsupported("this operator compares with labels, it only trains the network")
      .hint("save the symbol of the deployed network, or name the outputs to keep");
}

Status user_code(Layer& l) {
  return unsupported("this operator is Python code of the model's author" +
                     (l.has("op_type") ? " ('" + l.text("op_type", "") + "')" : std::string()))
      .hint("cut the model before it, or express it with built-in operators");
}
}  // namespace

std::span<const Row> nn_rows() {
  static const Row rows[] = {
      {"Convolution", convolution},
      {"Convolution_v1", convolution},
      {"Deconvolution", deconvolution},
      {"FullyConnected", fully_connected},
      {"BatchNorm", batch_norm},
      {"BatchNorm_v1", batch_norm},
      {"CuDNNBatchNorm", batch_norm},
      {"_contrib_SyncBatchNorm", batch_norm},
      {"_contrib_BatchNormWithReLU", batch_norm},
      {"InstanceNorm", instance_norm},
      {"LayerNorm", layer_norm},
      {"GroupNorm", group_norm},
      {"L2Normalization", l2_normalization},
      {"LRN", lrn},
      {"Activation", activation},
      {"LeakyReLU", leaky_relu},
      {"hard_sigmoid", hard_sigmoid},
      {"softmax", softmax},
      {"softmin", softmax},
      {"log_softmax", softmax},
      {"masked_softmax", masked_softmax},
      {"masked_log_softmax", masked_softmax},
      {"SoftmaxActivation", softmax_activation},
      {"SoftmaxOutput", softmax_output},
      {"Softmax", softmax_output},
      {"WarpCTC", softmax_output},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"Dropout", identity},
      {"_copy", identity},
      {"identity", identity},
      {"BlockGrad", identity},
      {"stop_gradient", identity},
      {"make_loss", identity},
      {"MakeLoss", identity},
      {"LinearRegressionOutput", identity},
      {"MAERegressionOutput", identity},
      {"SVMOutput", identity},
      {"LogisticRegressionOutput", logistic_output},
      {"IdentityAttachKLSparseReg", identity},
      {"_CrossDeviceCopy", identity},
      {"_contrib_gradientmultiplier", identity},
      {"_identity_with_attr_like_rhs", identity},
      {"cast_storage", identity},
      {"_contrib_MultiBoxTarget", training_only},
      {"MultiBoxTarget", training_only},
      {"_contrib_mrcnn_mask_target", training_only},
      {"CTCLoss", training_only},
      {"_contrib_CTCLoss", training_only},
      {"ctc_loss", training_only},
      {"Custom", user_code},
      {"_Native", user_code},
      {"_NDArray", user_code},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
