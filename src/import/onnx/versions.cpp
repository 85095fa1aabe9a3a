// Standard ONNX operators: what changed between opset 1 and the newest one, a function per kind of change.
#include <algorithm>
#include <cctype>
#include <cmath>

#include "import/lower/window.h"
#include "import/onnx/layer.h"
#include "import/onnx/tensors.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

// --- attributes that became inputs

// Moves an integer list from an attribute to input `i`.
void list_to_input(Layer& l, size_t i, const std::string& name) {
  if (const auto values = l.take_ints(name)) l.set_input(i, l.add_ints(name, *values));
}
void number_to_input(Layer& l, size_t i, const std::string& name) {
  if (const auto value = l.take_float(name)) l.set_input(i, l.add_scalar(name, *value, l.dtype(0)));
}
template <OpName Name>
void to_second_input(Layer& l) {
  list_to_input(l, 1, Name.string());
}

void clip(Layer& l) {
  number_to_input(l, 1, "min");
  number_to_input(l, 2, "max");
}

void pad(Layer& l) {
  if (l.opset < 2) l.rename("paddings", "pads");
  const auto value = l.take_float("value");
  list_to_input(l, 1, "pads");
  if (value && *value != 0) l.set_input(2, l.add_scalar("value", *value, l.dtype(0)));
}

void slice(Layer& l) {
  list_to_input(l, 1, "starts");
  list_to_input(l, 2, "ends");
  list_to_input(l, 3, "axes");
}

void split(Layer& l) {
  list_to_input(l, 1, "split");
  // The first opset gave the sizes the type of the data.
  if (const TensorData* sizes = l.constant(1); sizes && is_float(sizes->dtype())) {
    std::vector<int64_t> whole;
    for (double v : to_doubles(sizes->view())) whole.push_back(std::abs(v) < 1e9 ? static_cast<int64_t>(v) : -1);
    l.set_input(1, l.add_ints("split", whole));
  }
  if (!l.has_input(1)) l.set_default("num_outputs", std::ssize(l.node.outputs));
}

void dft(Layer& l) { l.set_input(2, l.add_int_scalar("axis", l.take_int("axis").value_or(1))); }

// The value of a constant of one element, which old opsets may write as a float.
std::optional<int64_t> whole_number(const TensorData* t) {
  if (!t || t->count() != 1) return std::nullopt;
  const double value = to_doubles(t->view())[0];
  return std::abs(value) < 1e9 ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

// Tile(input, tiles, axis) repeated along one axis only.
Status tile(Layer& l) {
  const auto tiles = whole_number(l.constant(1)), axis = whole_number(l.constant(2));
  if (!tiles || !axis) return unsupported("this old form needs constant tiles and axis").expected("one number each");
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(0), "to tile one axis"));
  ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(*axis, rank));
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(at)] = *tiles;
  l.node.inputs = {l.input(0), l.add_ints("repeats", repeats)};
  return {};
}

// --- attributes that changed their meaning

Status cast_name_to_number(Layer& l) {
  const auto name = l.take_string("to");
  if (!name) return {};
  static constexpr std::pair<std::string_view, int64_t> kTypes[] = {
      {"FLOAT", 1}, {"UINT8", 2}, {"INT8", 3},     {"UINT16", 4},  {"INT16", 5},   {"INT32", 6},
      {"INT64", 7}, {"BOOL", 9},  {"FLOAT16", 10}, {"DOUBLE", 11}, {"UINT32", 12}, {"UINT64", 13}};
  std::string upper = *name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [text, number] : kTypes)
    if (text == upper) {
      l.node.attributes.set("to", number);
      return {};
    }
  return unsupported("cannot cast to this type").found("'" + *name + "'");
}

void concat_axis(Layer& l) { l.set_default("axis", int64_t{1}); }

// Before opset 13 all axes from `axis` on are normalized together; that is the same as one axis when it is the last.
void softmax(Layer& l) {
  const int64_t axis = l.take_int("axis").value_or(1);
  l.node.attributes.set("axis", axis);
  const auto rank = l.rank_of(l.input(0));
  if (axis == -1 || (rank && axis == *rank - 1)) return;
  l.node.attributes.set("flatten", int64_t{1});
}

void norm_power_to_int(Layer& l) {
  if (const auto p = l.take_float("p")) l.node.attributes.set("p", *p > 0 && *p < 1e6 ? static_cast<int64_t>(*p) : int64_t{0});
}

void selu_defaults(Layer& l) {
  l.set_default("alpha", 1.6732);
  l.set_default("gamma", 1.0507);
}

void grid_sample_modes(Layer& l) {
  const auto mode = l.take_string("mode");
  if (!mode) return;
  l.node.attributes.set("mode", *mode == "bilinear" ? "linear" : *mode == "bicubic" ? "cubic" : *mode);
}

void roi_align(Layer& l) { l.node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel")); }

// Batch-first sequences with states that are direction-first, as layout 0 has them: some writers mean only the sequences by
// layout 1. The node becomes one of layout 0 with its sequences transposed.
Result<Layer::Outputs> states_of_layout_0(Layer& l) {
  const Shape* x = l.shape(0);
  const Shape* state = l.shape(5);
  if (l.node.attributes.int_or("layout", 0) != 1 || !x || !state || x->size() != 3 || state->size() != 3) return Layer::Outputs{};
  const Dim directions(l.node.attributes.string_or("direction", "forward") == "bidirectional" ? 2 : 1);
  const bool as_stated = (*state)[0] == (*x)[0] && (*state)[1] == directions;
  if (as_stated || !((*state)[0] == directions && (*state)[1] == (*x)[0])) return Layer::Outputs{};
  l.node.attributes.set("layout", int64_t{0});
  l.set_input(0, l.transpose(l.input(0), {1, 0, 2}));
  if (!l.node.output(0)) return Layer::Outputs{};
  std::vector<TensorId> outputs = l.node.outputs;
  const TensorId sequences = outputs[0] = l.graph().add_tensor(l.node.name + "/Y");
  l.add_node(l.node.op, l.node.name, l.node.inputs, std::move(outputs), l.node.attributes);
  return Layer::Outputs{l.transpose(sequences, {2, 0, 1, 3})};
}

Status mean_variance_normalization(Layer& l) {
  if (!l.take_flag("normalize_variance", true)) return unsupported("normalizing the mean without the variance is not supported");
  const bool across_channels = l.take_flag("across_channels");
  l.node.attributes.set("axes", across_channels ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{2, 3});
  return {};
}

Status batch_normalization(Layer& l) { return l.only_first_output(); }
// spatial = 0: scale, bias, mean and variance have a value for every element of a sample.
Result<Layer::Outputs> batch_normalization_spatial(Layer& l) {
  l.node.attributes.erase("is_test");
  const bool per_element = !l.take_flag("spatial", true);
  if (per_element) ORKNN_TRY(l.need_inputs({0, 1, 2, 3, 4}));
  ORKNN_TRY(l.only_first_output());
  if (!per_element) return Layer::Outputs{};
  const TensorId epsilon = l.add_scalar("epsilon", l.take_float("epsilon").value_or(1e-5), l.dtype(0));
  const TensorId deviation = l.unary("Sqrt", l.add(l.input(4), epsilon));
  const TensorId normalized = l.div(l.sub(l.input(0), l.input(3)), deviation);
  return Layer::Outputs{l.add(l.mul(normalized, l.input(1)), l.input(2))};
}

// --- broadcasting

bool has_one_element(const Shape& shape) {
  return std::ranges::all_of(shape, [](const Dim& d) { return d == Dim(1); });
}

// Gives input `i` `count` trailing axes of extent 1.
void add_trailing_axes(Layer& l, size_t i, int64_t rank, int64_t count) {
  std::vector<int64_t> axes;
  for (int64_t k = 0; k < count; ++k) axes.push_back(rank + k);
  l.set_input(i, l.unsqueeze(l.input(i), axes));
}

// B is laid along A from `axis` on; without an axis it fits the end, as today.
Status old_broadcast(Layer& l) {
  const bool broadcast = l.take_flag("broadcast");
  const auto axis = l.take_int("axis");
  if (!broadcast || !axis) return {};
  if (const Shape* b = l.shape(1); b && has_one_element(*b)) return {};
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(0), "to broadcast along an axis"));
  ORKNN_TRY_ASSIGN(const int64_t inner_rank, l.need_rank(l.input(1), "to broadcast along an axis"));
  ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(*axis, rank));
  const int64_t trailing = rank - at - inner_rank;
  if (trailing < 0)
    return shape_mismatch("input 1 does not fit input 0 from axis " + std::to_string(*axis) + " on")
        .expected("rank at most " + std::to_string(rank - at))
        .found(std::to_string(inner_rank));
  add_trailing_axes(l, 1, inner_rank, trailing);
  return {};
}

// All operands from `First` on shall have one type. Some writers leave constants in another one: those are converted. Computed
// operands of two types are a mistake of the model, which the shape rule of the op reports.
template <size_t First>
void same_types(Layer& l) {
  DType wanted = DType::Undefined;
  bool from_constant = true;
  for (size_t i = First; i < l.node.inputs.size(); ++i) {
    if (!l.is_typed(i)) return;
    const bool stronger = wanted == DType::Undefined || (from_constant && !l.constant(i)) ||
                          (from_constant == (l.constant(i) != nullptr) && is_float(l.dtype(i)) && !is_float(wanted));
    if (stronger) {
      wanted = l.dtype(i);
      from_constant = l.constant(i) != nullptr;
    }
  }
  for (size_t i = First; i < l.node.inputs.size(); ++i)
    if (l.constant(i)) l.set_input(i, l.cast(l.input(i), wanted));
}

// A slope with one value per channel: old exporters write it as [C] whatever the rank of the input.
void prelu(Layer& l) {
  const Shape* x = l.shape(0);
  const Shape* slope = l.shape(1);
  if (!x || !slope || slope->size() != 1 || x->size() < 3 || !(*slope)[0].is_known() || (*slope)[0].value() == 1) return;
  const bool fits_last = !(x->back().is_known() && x->back().value() != (*slope)[0].value());
  if (l.opset >= 7 && fits_last) return;
  add_trailing_axes(l, 1, 1, std::ssize(*x) - 2);
}

// --- Resize and its ancestor

// Opset 10 knew one rule: out(i) = in(i / scale), nearest truncating when growing and rounding up when shrinking.
void resize_10(Layer& l) {
  const TensorData* scales = l.constant(1);
  std::vector<double> factors;
  if (scales && is_float(scales->dtype())) factors = to_doubles(scales->view());
  const bool shrinks = std::ranges::any_of(factors, [](double f) { return f < 1; }) &&
                       std::ranges::all_of(factors, [](double f) { return f <= 1; });
  l.node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  l.node.attributes.set("nearest_mode", std::string(shrinks ? "ceil" : "floor"));
  l.node.inputs = {l.input(0), TensorId{}, l.input(1)};
}

Status upsample(Layer& l) {
  const std::string mode = l.take_string("mode").value_or("nearest");
  std::optional<std::vector<double>> factors = l.take_floats("scales");
  const auto height = l.take_float("height_scale"), width = l.take_float("width_scale");
  if (height && width) factors = {1.0, 1.0, *height, *width};
  if (factors) {
    std::vector<float> values(factors->begin(), factors->end());
    l.set_input(1, l.add_constant("scales", TensorData::from<float>({std::ssize(values)}, values)));
  }
  if (!l.has_input(1)) return invalid_model("scales are missing");
  l.node.op = "Resize";
  l.node.attributes.set("mode", mode == "bilinear" ? "linear" : mode);
  resize_10(l);
  return {};
}

// --- others

// There are no optional values in our graphs: a tensor is there or it is not.
Result<TensorId> optional_value(Layer& l) {
  if (!l.has_input(0)) return unsupported("an empty optional value is not supported");
  return l.input(0);
}
TensorId optional_has_element(Layer& l) { return l.add_constant("present", TensorData::scalar<bool>(l.has_input(0))); }

// Opset 18 scaled per group, newer ones per channel: every value is repeated for the channels of its group.
Status group_normalization(Layer& l) {
  ORKNN_TRY(l.need_inputs({0}));
  const Shape* x = l.shape(0);
  const int64_t groups = l.node.attributes.int_or("num_groups", 0);
  if (!x || x->size() < 2 || !(*x)[1].is_known()) return l.not_known(l.input(0), "the number of channels must be known");
  const int64_t channels = (*x)[1].value();
  if (groups < 1 || channels % groups != 0)
    return shape_mismatch("channels cannot be divided into groups")
        .expected("a divisor of " + std::to_string(channels))
        .found(std::to_string(groups));
  for (size_t i = 1; i <= 2; ++i) {
    const Shape* s = l.shape(i);
    if (groups == channels || !l.has_input(i) || !s || s->size() != 1 || !((*s)[0] == Dim(groups))) continue;
    l.set_input(i, l.reshape(l.expand(l.unsqueeze(l.input(i), {1}), Dims{groups, channels / groups}), {channels}));
  }
  return {};
}

// Scan of opset 8 has a batch axis in front of everything. One Scan over the batch around the Scan over the sequence says the
// same.
Status scan_8(Layer& l) {
  if (l.has_input(0)) return unsupported("sequences of different lengths are not supported").expected("no sequence_lens");
  if (l.node.inputs.empty()) return invalid_model("Scan has no inputs");
  const int64_t captures = l.node.attributes.int_or("captures", 0);
  const int64_t given = std::ssize(l.node.inputs) - 1 - captures;
  if (given < 0) return invalid_model("Scan has too few inputs");
  l.rename("directions", "scan_input_directions");
  auto body = std::make_shared<Graph>();
  body->name = l.node.name + "/batch";
  Node inner;
  inner.op = "Scan";
  inner.name = l.node.name;
  inner.origin = l.node.origin;
  inner.attributes = l.node.attributes;
  for (size_t i = 1; i < l.node.inputs.size(); ++i) {
    if (!l.node.inputs[i]) return missing_input(i, l.node.inputs.size());
    const Tensor& outside = l.graph().tensor(l.node.inputs[i]);
    std::optional<Shape> shape = outside.shape;
    if (static_cast<int64_t>(i) <= given && shape && !shape->empty()) shape->erase(shape->begin());
    inner.inputs.push_back(body->add_tensor(outside.name, outside.dtype, shape));
  }
  body->inputs() = inner.inputs;
  for (size_t i = 0; i < l.node.outputs.size(); ++i)
    inner.outputs.push_back(body->add_tensor(l.node.name + "/out" + std::to_string(i)));
  body->outputs() = inner.outputs;
  infer_added_node(*body, l.ops(), body->add_node(std::move(inner)));
  l.node.inputs.erase(l.node.inputs.begin());
  l.node.attributes = {
      {"num_scan_inputs", given}, {"captures", captures}, {"body", std::shared_ptr<const Graph>(std::move(body))}};
  return {};
}

// --- operators that only the experimental first opsets had

// x times the number an attribute holds.
TensorId times(Layer& l, TensorId x, const std::string& name) {
  return l.mul(x, l.scalar_like(x, l.take_float(name).value_or(1), name));
}

TensorId image_scaler(Layer& l, TensorId x) {
  const auto bias = l.take_floats("bias");
  const TensorId scaled = times(l, x, "scale");
  if (!bias) return scaled;
  const TensorData values = TensorData::from<double>({std::ssize(*bias), 1, 1}, *bias);
  return l.add(scaled, l.add_constant("bias", convert(values.view(), l.dtype_of(x))));
}

TensorId affine(Layer& l, TensorId x) {
  const TensorId scaled = times(l, x, "alpha");
  return l.add(scaled, l.scalar_like(x, l.take_float("beta").value_or(0), "beta"));
}

TensorId scale(Layer& l, TensorId x) { return times(l, x, "scale"); }

// alpha * Op(beta * x)
template <OpName Op>
TensorId scaled_function(Layer& l, TensorId x) {
  return times(l, l.unary(Op.chars, times(l, x, "beta")), "alpha");
}

// Cuts a border (left, top, right, bottom) off the last two axes, or a window of `scale` from its corner.
Result<TensorId> crop(Layer& l, TensorId x) {
  const auto border = l.take_ints("border");
  const auto window = l.take_ints("scale");
  if (!border || border->size() != 4) return invalid_model("border is missing").expected("four numbers");
  if (window && window->size() != 2) return invalid_model("scale has the wrong length").expected("two numbers");
  const int64_t left = (*border)[0], top = (*border)[1], right = (*border)[2], bottom = (*border)[3];
  for (int64_t b : *border)
    if (b < 0 || b > INT32_MAX) return invalid_model("border is out of range").found(std::to_string(b));
  std::vector<int64_t> ends{bottom > 0 ? -bottom : INT64_MAX, right > 0 ? -right : INT64_MAX};
  if (window) {
    for (int64_t w : *window)
      if (w < 0 || w > INT32_MAX) return invalid_model("scale is out of range").found(std::to_string(w));
    ends = {top + (*window)[0], left + (*window)[1]};
  }
  return l.slice(x, {top, left}, ends, {2, 3});
}

// Written by ONNX Runtime into the standard domain: RMSNormalization under an older name.
Status simplified_layer_normalization(Layer& l) {
  ORKNN_TRY(l.only_first_output());
  l.node.op = "RMSNormalization";
  return {};
}

// Attributes that no longer say anything.
template <OpName... Names>
void drop(Layer& l) {
  (l.node.attributes.erase(Names.string()), ...);
}

// One step after another.
template <auto... Steps>
Result<Layer::Outputs> each(Layer& l) {
  Result<Layer::Outputs> results = Layer::Outputs{};
  static_cast<void>(((results = Lowering<Layer>(Steps)(l)) && ...));
  return results;
}
TensorId swi_glu(Layer& l, TensorId gate, TensorId value) {
  return l.mul(l.emit("Swish", {gate}, {{"alpha", l.take_float("alpha").value_or(1)}}), value);
}

// A depthwise convolution that looks back: the state holds the steps before the first one.
Result<Layer::Outputs> causal_conv_with_state(Layer& l, TensorId x, TensorId weight) {
  // ONNX Runtime's form has more attributes.
  const int64_t axes = l.take_int("ndim").value_or(1), dilation = l.take_int("dilation").value_or(1);
  const bool is_channels_last = l.take_flag("channels_last");
  if (axes != 1 || dilation < 1 || dilation > kMaxWindow || l.take_int("state_window").value_or(0) != 0)
    return unsupported("this form is not supported").expected("one spatial axis, one state");
  TensorId stored = l.input(3);
  if (is_channels_last) {
    ORKNN_TRY_ASSIGN(x, l.channels_first(x));
    if (!stored.is_none()) {
      ORKNN_TRY_ASSIGN(stored, l.channels_first(stored));
    }
  }
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to pad it"));
  ORKNN_TRY_ASSIGN(const Dims kernel, l.need_dims(weight, "to pad by it"));
  if (dims.size() != 3 || kernel.size() != 3 || kernel[2] < 1)
    return invalid_model("input and weight have the wrong rank")
        .expected("3")
        .found(ir::to_string(dims) + " and " + ir::to_string(kernel));
  const int64_t state = (kernel[2] - 1) * dilation;
  const std::string activation = l.take_string("activation").value_or("none");
  if (activation != "none" && activation != "silu" && activation != "swish")
    return unsupported("this activation is not supported").expected("none, silu or swish").found(activation);
  const TensorId past = !stored.is_none() ? stored : l.full(Dims{dims[0], dims[1], state}, 0, l.dtype(0));
  const TensorId whole = state > 0 ? l.concat({past, x}, 2) : x;
  std::vector<TensorId> inputs{whole, weight};
  if (l.has_input(2)) inputs.push_back(l.input(2));
  TensorId y = l.emit("Conv", std::move(inputs), {{"group", dims[1]}, {"dilations", std::vector<int64_t>{dilation}}});
  if (activation != "none") y = l.unary("Swish", y);
  TensorId kept = l.slice(whole, 2, dims[2], dims[2] + state);
  if (is_channels_last) {
    ORKNN_TRY_ASSIGN(y, l.channels_last(y));
    ORKNN_TRY_ASSIGN(kept, l.channels_last(kept));
  }
  return Layer::Outputs{y, kept};
}

// The order of the channels became an attribute; the old one has the places of a block outside.
Result<Layer::Outputs> space_to_depth(Layer& l) {
  const std::string mode = l.take_string("mode").value_or("DCR");
  if (mode == "DCR") return Layer::Outputs{};
  if (mode != "CRD") return invalid_model("unknown mode").expected("DCR or CRD").found("'" + mode + "'");
  const int64_t block = l.take_int("blocksize").value_or(0);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.input(0), "to divide it into blocks"));
  if (dims.size() != 4 || block < 1 || dims[2] % block != 0 || dims[3] % block != 0)
    return shape_mismatch("the picture does not divide into blocks").found(ir::to_string(dims));
  const TensorId blocks = l.reshape(l.input(0), {dims[0], dims[1], dims[2] / block, block, dims[3] / block, block});
  return Layer::Outputs{
      l.reshape(l.transpose(blocks, {0, 1, 3, 5, 2, 4}), {dims[0], dims[1] * block * block, dims[2] / block, dims[3] / block})};
}

}  // namespace

std::span<const Row> version_rows() {
  // Rows that turn attributes into inputs hold for every version: some files state a newer opset than they follow.
  static const Row rows[] = {
      {"Add|Sub|Mul|Div|Equal|Greater|Less", each<old_broadcast, same_types<0>>, {.below = 7}},
      {"Add|Sub|Mul|Div|Equal|Greater|Less", same_types<0>, {.since = 7}},
      {"Pow|And|Or|Xor", old_broadcast, {.below = 7}},
      {"GreaterOrEqual|LessOrEqual|Mod|Max|Min|Mean|Sum", same_types<0>},
      {"Where", same_types<1>},
      {"Concat", each<same_types<0>, concat_axis>, {.below = 4}},
      {"Concat", same_types<0>, {.since = 4}},
      {"Affine", affine},
      {"BatchNormalization", batch_normalization_spatial, {.below = 9}},
      {"BatchNormalization", batch_normalization, {.since = 9, .below = 14}},
      {"Cast", cast_name_to_number, {.below = 6}},
      {"CausalConvWithState|com.microsoft:CausalConvWithState", causal_conv_with_state},
      {"Clip", clip},
      {"Crop", crop},
      {"DFT", dft, {.below = 20}},
      {"Dropout", drop<"ratio", "is_test">, {.below = 12}},
      {"GRU|LSTM|RNN", each<drop<"output_sequence">, states_of_layout_0>, {.below = 7}},
      {"GRU|LSTM|RNN", states_of_layout_0, {.since = 7}},
      {"Gemm", drop<"broadcast">, {.below = 7}},
      {"GlobalLpPool|LpPool", norm_power_to_int, {.below = 2}},
      {"GridSample", grid_sample_modes, {.below = 20}},
      {"GroupNormalization", group_normalization, {.below = 21}},
      {"Hardmax|LogSoftmax|Softmax", softmax, {.below = 13}},
      {"ImageScaler", image_scaler},
      {"MeanVarianceNormalization", mean_variance_normalization, {.below = 9}},
      {"Optional|OptionalGetElement", optional_value},
      {"OptionalHasElement", optional_has_element},
      {"PRelu", prelu},
      {"Pad", pad},
      {"ParametricSoftplus", scaled_function<"Softplus">},
      {"ReduceL1|ReduceL2|ReduceLogSum|ReduceLogSumExp|ReduceMax|ReduceMean|ReduceMin|ReduceProd|ReduceSum|"
       "ReduceSumSquare|Squeeze|Unsqueeze",
       to_second_input<"axes">},
      {"Reshape", to_second_input<"shape">},
      {"Resize", resize_10, {.below = 11}},
      {"RoiAlign", roi_align, {.below = 16}},
      {"Scale", scale},
      {"ScaledTanh", scaled_function<"Tanh">},
      {"Scan", scan_8, {.below = 9}},
      {"Scatter", same<"ScatterElements">},
      {"Selu", selu_defaults, {.below = 6}},
      {"SimplifiedLayerNormalization", simplified_layer_normalization},
      {"Slice", slice},
      {"SpaceToDepth", space_to_depth},
      {"Split", split},
      {"SwiGLU", swi_glu},
      {"Tile", tile, {.below = 6}},
      {"TopK", to_second_input<"k">},
      {"Upsample", upsample},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
