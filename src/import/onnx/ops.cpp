// Standard ONNX operators: what changed between opset 1 and the newest one, a function per kind of change.
#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <optional>

#include "import/onnx/upgrade.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

// --- attributes that became inputs

// Moves an integer list from an attribute to input `i`.
template <size_t I>
Status list_to_input(Upgrade& u, const std::string& name) {
  if (const auto values = u.take_ints(name)) u.set_input(I, u.add_ints(name, *values));
  return {};
}
Status axes_to_input(Upgrade& u) { return list_to_input<1>(u, "axes"); }
Status shape_to_input(Upgrade& u) { return list_to_input<1>(u, "shape"); }

Status clip(Upgrade& u) {
  if (const auto low = u.take_float("min")) u.set_input(1, u.add_scalar("min", *low, u.dtype(0)));
  if (const auto high = u.take_float("max")) u.set_input(2, u.add_scalar("max", *high, u.dtype(0)));
  return {};
}

Status dropout(Upgrade& u) {
  u.drop("ratio");
  u.drop("is_test");
  return {};
}

Status pad_names(Upgrade& u) {
  u.rename("paddings", "pads");
  return {};
}
Status pad(Upgrade& u) {
  const auto value = u.take_float("value");
  ORKNN_TRY(list_to_input<1>(u, "pads"));
  if (value && *value != 0) u.set_input(2, u.add_scalar("value", *value, u.dtype(0)));
  return {};
}

Status slice(Upgrade& u) {
  ORKNN_TRY(list_to_input<1>(u, "starts"));
  ORKNN_TRY(list_to_input<2>(u, "ends"));
  return list_to_input<3>(u, "axes");
}

Status split(Upgrade& u) {
  ORKNN_TRY(list_to_input<1>(u, "split"));
  if (const TensorData* sizes = u.constant(1);
      sizes && is_float(sizes->dtype())) {  // the first opset gave them the type of the data
    std::vector<int64_t> whole;
    for (double v : to_doubles(sizes->view())) whole.push_back(std::abs(v) < 1e9 ? static_cast<int64_t>(v) : -1);
    u.set_input(1, u.add_ints("split", whole));
  }
  if (!u.has_input(1) && !u.node.attributes.has("num_outputs"))
    u.node.attributes.set("num_outputs", static_cast<int64_t>(u.node.outputs.size()));
  return {};
}

Status top_k(Upgrade& u) {
  if (const auto k = u.take_int("k")) u.set_input(1, u.add_ints("k", std::array{*k}));
  return {};
}

Status dft(Upgrade& u) {
  u.set_input(2, u.add_int_scalar("axis", u.take_int("axis").value_or(1)));
  return {};
}

// The value of a constant of one element, which old opsets may write as a float.
std::optional<int64_t> whole_number(const TensorData* t) {
  if (!t || t->count() != 1) return std::nullopt;
  const double value = to_doubles(t->view())[0];
  return std::abs(value) < 1e9 ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
}

// Tile(input, tiles, axis) repeated along one axis only.
Status tile(Upgrade& u) {
  const auto tiles = whole_number(u.constant(1)), axis = whole_number(u.constant(2));
  if (!tiles || !axis) return unsupported("this old form needs constant tiles and axis").expected("one number each");
  ORKNN_TRY_ASSIGN(const int64_t rank, u.need_rank(u.input(0), "to tile one axis"));
  ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(*axis, rank));
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(at)] = *tiles;
  u.become("Tile", {u.input(0), u.add_ints("repeats", repeats)});
  return {};
}

// --- attributes that changed their meaning

Status cast_name_to_number(Upgrade& u) {
  const auto name = u.take_string("to");
  if (!name) return {};
  static constexpr std::pair<std::string_view, int64_t> kTypes[] = {
      {"FLOAT", 1}, {"UINT8", 2}, {"INT8", 3},     {"UINT16", 4},  {"INT16", 5},   {"INT32", 6},
      {"INT64", 7}, {"BOOL", 9},  {"FLOAT16", 10}, {"DOUBLE", 11}, {"UINT32", 12}, {"UINT64", 13}};
  std::string upper = *name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  for (const auto& [text, number] : kTypes)
    if (text == upper) {
      u.node.attributes.set("to", number);
      return {};
    }
  return unsupported("cannot cast to this type").found("'" + *name + "'");
}

Status concat_axis(Upgrade& u) {
  if (!u.node.attributes.has("axis")) u.node.attributes.set("axis", int64_t{1});
  return {};
}

// Before opset 13 all axes from `axis` on are normalized together; that is the same as one axis when it is the last.
Status softmax(Upgrade& u) {
  const int64_t axis = u.take_int("axis").value_or(1);
  u.node.attributes.set("axis", axis);
  const auto rank = u.rank(0);
  if (axis == -1 || (rank && axis == *rank - 1)) return {};
  u.node.attributes.set("flatten", int64_t{1});
  return {};
}

Status norm_power_to_int(Upgrade& u) {
  if (const auto p = u.take_float("p")) u.node.attributes.set("p", *p > 0 && *p < 1e6 ? static_cast<int64_t>(*p) : int64_t{0});
  return {};
}

Status selu_defaults(Upgrade& u) {
  if (!u.node.attributes.has("alpha")) u.node.attributes.set("alpha", 1.6732);
  if (!u.node.attributes.has("gamma")) u.node.attributes.set("gamma", 1.0507);
  return {};
}

Status grid_sample_modes(Upgrade& u) {
  const auto mode = u.take_string("mode");
  if (!mode) return {};
  u.node.attributes.set("mode", *mode == "bilinear" ? "linear" : *mode == "bicubic" ? "cubic" : *mode);
  return {};
}

Status roi_align(Upgrade& u) {
  u.node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return {};
}

Status recurrent(Upgrade& u) {
  u.drop("output_sequence");
  return {};
}

// Batch-first sequences with states that are direction-first, as layout 0 has them: some writers mean only the sequences by
// layout 1. The node becomes one of layout 0 with its sequences transposed.
Status states_of_layout_0(Upgrade& u) {
  const Shape* x = u.shape(0);
  const Shape* state = u.shape(5);
  if (u.node.attributes.int_or("layout", 0) != 1 || !x || !state || x->size() != 3 || state->size() != 3) return {};
  const Dim directions(u.node.attributes.string_or("direction", "forward") == "bidirectional" ? 2 : 1);
  const bool as_stated = (*state)[0] == (*x)[0] && (*state)[1] == directions;
  if (as_stated || !((*state)[0] == directions && (*state)[1] == (*x)[0])) return {};
  u.node.attributes.set("layout", int64_t{0});
  u.set_input(0, u.emit("Transpose", {u.input(0)}, {{"perm", std::vector<int64_t>{1, 0, 2}}}));
  if (!u.node.output(0)) return {};
  Node inner = u.node;
  const TensorId sequences = u.graph().add_tensor(u.node.name + "/Y");
  inner.outputs[0] = sequences;
  infer_added_node(u.graph(), u.ops(), u.graph().add_node(std::move(inner)));
  u.node.outputs.resize(1);
  u.become("Transpose", {sequences}, {{"perm", std::vector<int64_t>{2, 0, 1, 3}}});
  return {};
}

Status mean_variance_normalization(Upgrade& u) {
  if (u.take_int("normalize_variance").value_or(1) == 0)
    return unsupported("normalizing the mean without the variance is not supported");
  const bool across_channels = u.take_int("across_channels").value_or(0) != 0;
  u.node.attributes.set("axes", across_channels ? std::vector<int64_t>{1, 2, 3} : std::vector<int64_t>{2, 3});
  return {};
}

// spatial = 0: scale, bias, mean and variance have a value for every element of a sample.
Status batch_normalization_spatial(Upgrade& u) {
  u.drop("is_test");
  if (u.take_int("spatial").value_or(1) != 0) return {};
  for (size_t i = 0; i < 5; ++i)
    if (!u.has_input(i)) return invalid_model("input " + std::to_string(i) + " is required but absent");
  ORKNN_TRY(u.only_first_output());
  const TensorId epsilon = u.add_scalar("epsilon", u.take_float("epsilon").value_or(1e-5), u.dtype(0));
  const TensorId deviation = u.emit("Sqrt", {u.emit("Add", {u.input(4), epsilon})});
  const TensorId normalized = u.emit("Div", {u.emit("Sub", {u.input(0), u.input(3)}), deviation});
  u.become("Add", {u.emit("Mul", {normalized, u.input(1)}), u.input(2)});
  return {};
}
Status batch_normalization(Upgrade& u) { return u.only_first_output(); }

// --- broadcasting

bool has_one_element(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(), [](const Dim& d) { return d.is_known() && d.value() == 1; });
}

// Gives input `i` `count` trailing axes of extent 1.
void add_trailing_axes(Upgrade& u, size_t i, int64_t rank, int64_t count) {
  std::vector<int64_t> axes(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) axes[static_cast<size_t>(k)] = rank + k;
  u.set_input(i, u.emit("Unsqueeze", {u.input(i), u.add_ints("axes", axes)}));
}

// B is laid along A from `axis` on; without an axis it fits the end, as today.
Status old_broadcast(Upgrade& u) {
  const int64_t broadcast = u.take_int("broadcast").value_or(0);
  const auto axis = u.take_int("axis");
  if (!broadcast || !axis) return {};
  if (const Shape* b = u.shape(1); b && has_one_element(*b)) return {};
  ORKNN_TRY_ASSIGN(const int64_t rank, u.need_rank(u.input(0), "to broadcast along an axis"));
  ORKNN_TRY_ASSIGN(const int64_t inner_rank, u.need_rank(u.input(1), "to broadcast along an axis"));
  ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(*axis, rank));
  const int64_t trailing = rank - at - inner_rank;
  if (trailing < 0)
    return shape_mismatch("input 1 does not fit input 0 from axis " + std::to_string(*axis) + " on")
        .expected("rank at most " + std::to_string(rank - at))
        .found(std::to_string(inner_rank));
  if (trailing > 0) add_trailing_axes(u, 1, inner_rank, trailing);
  return {};
}

// All operands from `First` on shall have one type. Some writers leave constants in another one: those are converted. Computed
// operands of two types are a mistake of the model, which the shape rule of the op reports.
template <size_t First>
Status same_types(Upgrade& u) {
  DType wanted = DType::Undefined;
  bool from_constant = true;
  for (size_t i = First; i < u.node.inputs.size(); ++i) {
    if (!u.is_typed(i)) return {};
    const bool stronger = wanted == DType::Undefined || (from_constant && !u.constant(i)) ||
                          (from_constant == (u.constant(i) != nullptr) && is_float(u.dtype(i)) && !is_float(wanted));
    if (stronger) {
      wanted = u.dtype(i);
      from_constant = u.constant(i) != nullptr;
    }
  }
  for (size_t i = First; i < u.node.inputs.size(); ++i)
    if (u.dtype(i) != wanted && u.constant(i))
      u.set_input(i, u.emit("Cast", {u.input(i)}, {{"to", static_cast<int64_t>(wanted)}}));
  return {};
}

Status drop_broadcast(Upgrade& u) {
  u.drop("broadcast");
  return {};
}

// A slope with one value per channel: old exporters write it as [C] whatever the rank of the input.
Status prelu(Upgrade& u) {
  const Shape* x = u.shape(0);
  const Shape* slope = u.shape(1);
  if (!x || !slope || slope->size() != 1 || x->size() < 3 || !(*slope)[0].is_known() || (*slope)[0].value() == 1) return {};
  const bool fits_last = !(x->back().is_known() && x->back().value() != (*slope)[0].value());
  if (u.opset >= 7 && fits_last) return {};
  add_trailing_axes(u, 1, 1, static_cast<int64_t>(x->size()) - 2);
  return {};
}

// --- Resize and its ancestor

// Opset 10 knew one rule: out(i) = in(i / scale), nearest truncating when growing and rounding up when shrinking.
void set_old_resize_rules(Upgrade& u, const TensorData* scales) {
  u.node.attributes.set("coordinate_transformation_mode", std::string("asymmetric"));
  std::vector<double> factors;
  if (scales && is_float(scales->dtype())) factors = to_doubles(scales->view());
  const bool shrinks = std::any_of(factors.begin(), factors.end(), [](double f) { return f < 1; }) &&
                       std::all_of(factors.begin(), factors.end(), [](double f) { return f <= 1; });
  u.node.attributes.set("nearest_mode", std::string(shrinks ? "ceil" : "floor"));
}

Status resize_10(Upgrade& u) {
  const TensorId scales = u.input(1);
  set_old_resize_rules(u, u.constant(1));
  u.node.inputs = {u.input(0), TensorId{}, scales};
  return {};
}

Status upsample(Upgrade& u) {
  const std::string mode = u.take_string("mode").value_or("nearest");
  std::optional<std::vector<double>> factors = u.take_floats("scales");
  const auto height = u.take_float("height_scale"), width = u.take_float("width_scale");
  if (height && width) factors = {1.0, 1.0, *height, *width};
  if (factors) {
    std::vector<float> values(factors->begin(), factors->end());
    u.set_input(1, u.add_constant("scales", TensorData::from<float>({static_cast<int64_t>(values.size())}, values)));
  }
  if (!u.has_input(1)) return invalid_model("scales are missing");
  u.node.op = "Resize";
  u.node.attributes.set("mode", mode == "bilinear" ? "linear" : mode);
  return resize_10(u);
}

// --- others

Status rename_scatter(Upgrade& u) {
  u.node.op = "ScatterElements";
  return {};
}

// There are no optional values in our graphs: a tensor is there or it is not.
Status optional_value(Upgrade& u) {
  if (!u.has_input(0)) return unsupported("an empty optional value is not supported");
  u.become("Identity", {u.input(0)});
  return {};
}
Status optional_has_element(Upgrade& u) {
  u.become("Identity", {u.add_constant("present", TensorData::scalar<bool>(u.has_input(0)))});
  return {};
}

// Opset 18 scaled per group, newer ones per channel: every value is repeated for the channels of its group.
Status group_normalization(Upgrade& u) {
  const Shape* x = u.shape(0);
  const int64_t groups = u.node.attributes.int_or("num_groups", 0);
  if (!x || x->size() < 2 || !(*x)[1].is_known()) return u.not_known(u.node.inputs[0], "the number of channels must be known");
  const int64_t channels = (*x)[1].value();
  if (groups < 1 || channels % groups != 0)
    return shape_mismatch("channels cannot be divided into groups")
        .expected("a divisor of " + std::to_string(channels))
        .found(std::to_string(groups));
  for (size_t i = 1; i <= 2; ++i) {
    const Shape* s = u.shape(i);
    if (groups == channels || !u.has_input(i) || !s || s->size() != 1 || !((*s)[0] == Dim(groups))) continue;
    const TensorId column = u.emit("Unsqueeze", {u.input(i), u.add_ints("axes", std::array{int64_t{1}})});
    const TensorId repeated = u.emit("Expand", {column, u.add_ints("shape", std::array{groups, channels / groups})});
    u.set_input(i, u.emit("Reshape", {repeated, u.add_ints("shape", std::array{channels})}));
  }
  return {};
}

// Scan of opset 8 has a batch axis in front of everything. One Scan over the batch around the Scan over the sequence says the
// same.
Status scan_8(Upgrade& u) {
  if (u.has_input(0)) return unsupported("sequences of different lengths are not supported").expected("no sequence_lens");
  if (u.node.inputs.empty()) return invalid_model("Scan has no inputs");
  const int64_t captures = u.node.attributes.int_or("captures", 0);
  const auto given = static_cast<int64_t>(u.node.inputs.size()) - 1 - captures;
  if (given < 0) return invalid_model("Scan has too few inputs");
  u.rename("directions", "scan_input_directions");
  auto body = std::make_shared<Graph>();
  body->name = u.node.name + "/batch";
  Node inner;
  inner.op = "Scan";
  inner.name = u.node.name;
  inner.origin = u.node.origin;
  inner.attributes = u.node.attributes;
  for (size_t i = 1; i < u.node.inputs.size(); ++i) {
    if (!u.node.inputs[i]) return invalid_model("input " + std::to_string(i) + " is required but absent");
    const Tensor& outside = u.graph().tensor(u.node.inputs[i]);
    std::optional<Shape> shape = outside.shape;
    if (static_cast<int64_t>(i) <= given && shape && !shape->empty()) shape->erase(shape->begin());
    inner.inputs.push_back(body->add_tensor(outside.name, outside.dtype, shape));
  }
  body->inputs() = inner.inputs;
  for (size_t i = 0; i < u.node.outputs.size(); ++i)
    inner.outputs.push_back(body->add_tensor(u.node.name + "/out" + std::to_string(i)));
  body->outputs() = inner.outputs;
  infer_added_node(*body, u.ops(), body->add_node(std::move(inner)));
  u.become("Scan", {u.node.inputs.begin() + 1, u.node.inputs.end()},
           {{"num_scan_inputs", given}, {"captures", captures}, {"body", std::shared_ptr<const Graph>(std::move(body))}});
  return {};
}

// --- operators that only the experimental first opsets had

Status image_scaler(Upgrade& u) {
  const double scale = u.take_float("scale").value_or(1);
  const auto bias = u.take_floats("bias");
  const TensorId scaled = u.emit("Mul", {u.input(0), u.add_scalar("scale", scale, u.dtype(0))});
  if (!bias) {
    u.become("Identity", {scaled});
    return {};
  }
  const TensorData values = TensorData::from<double>({static_cast<int64_t>(bias->size()), 1, 1}, *bias);
  u.become("Add", {scaled, u.add_constant("bias", convert(values.view(), u.dtype(0)))});
  return {};
}

Status affine(Upgrade& u) {
  const double alpha = u.take_float("alpha").value_or(1), beta = u.take_float("beta").value_or(0);
  const TensorId scaled = u.emit("Mul", {u.input(0), u.add_scalar("alpha", alpha, u.dtype(0))});
  u.become("Add", {scaled, u.add_scalar("beta", beta, u.dtype(0))});
  return {};
}

Status scale(Upgrade& u) {
  u.become("Mul", {u.input(0), u.add_scalar("scale", u.take_float("scale").value_or(1), u.dtype(0))});
  return {};
}

Status scaled_tanh(Upgrade& u) {
  const double alpha = u.take_float("alpha").value_or(1), beta = u.take_float("beta").value_or(1);
  const TensorId inner = u.emit("Mul", {u.input(0), u.add_scalar("beta", beta, u.dtype(0))});
  u.become("Mul", {u.emit("Tanh", {inner}), u.add_scalar("alpha", alpha, u.dtype(0))});
  return {};
}

Status parametric_softplus(Upgrade& u) {
  const double alpha = u.take_float("alpha").value_or(1), beta = u.take_float("beta").value_or(1);
  const TensorId inner = u.emit("Mul", {u.input(0), u.add_scalar("beta", beta, u.dtype(0))});
  u.become("Mul", {u.emit("Softplus", {inner}), u.add_scalar("alpha", alpha, u.dtype(0))});
  return {};
}

// Cuts a border (left, top, right, bottom) off the last two axes, or a window of `scale` from its corner.
Status crop(Upgrade& u) {
  const auto border = u.take_ints("border");
  const auto window = u.take_ints("scale");
  if (!border || border->size() != 4) return invalid_model("border is missing").expected("four numbers");
  if (window && window->size() != 2) return invalid_model("scale has the wrong length").expected("two numbers");
  const int64_t left = (*border)[0], top = (*border)[1], right = (*border)[2], bottom = (*border)[3];
  for (int64_t b : *border)
    if (b < 0 || b > INT32_MAX) return invalid_model("border is out of range").found(std::to_string(b));
  std::array<int64_t, 2> ends = {bottom > 0 ? -bottom : INT64_MAX, right > 0 ? -right : INT64_MAX};
  if (window) {
    for (int64_t w : *window)
      if (w < 0 || w > INT32_MAX) return invalid_model("scale is out of range").found(std::to_string(w));
    ends = {top + (*window)[0], left + (*window)[1]};
  }
  u.become("Slice", {u.input(0), u.add_ints("starts", std::array{top, left}), u.add_ints("ends", ends),
                     u.add_ints("axes", std::array{int64_t{2}, int64_t{3}})});
  return {};
}

// Written by ONNX Runtime into the standard domain: RMSNormalization under an older name.
Status simplified_layer_normalization(Upgrade& u) {
  ORKNN_TRY(u.only_first_output());
  u.node.op = "RMSNormalization";
  return {};
}
}  // namespace

std::span<const UpgradeRow> standard_rows() {
  // Rows that turn attributes into inputs hold for every version: some files state a newer opset than they follow.
  static constexpr UpgradeRow kRows[] = {
      {"Add", 7, old_broadcast},
      {"Sub", 7, old_broadcast},
      {"Mul", 7, old_broadcast},
      {"Div", 7, old_broadcast},
      {"Pow", 7, old_broadcast},
      {"And", 7, old_broadcast},
      {"Or", 7, old_broadcast},
      {"Xor", 7, old_broadcast},
      {"Equal", 7, old_broadcast},
      {"Greater", 7, old_broadcast},
      {"Less", 7, old_broadcast},
      {"Add", kAnyVersion, same_types<0>},
      {"Sub", kAnyVersion, same_types<0>},
      {"Mul", kAnyVersion, same_types<0>},
      {"Div", kAnyVersion, same_types<0>},
      {"Equal", kAnyVersion, same_types<0>},
      {"Greater", kAnyVersion, same_types<0>},
      {"Less", kAnyVersion, same_types<0>},
      {"GreaterOrEqual", kAnyVersion, same_types<0>},
      {"LessOrEqual", kAnyVersion, same_types<0>},
      {"Mod", kAnyVersion, same_types<0>},
      {"Max", kAnyVersion, same_types<0>},
      {"Min", kAnyVersion, same_types<0>},
      {"Mean", kAnyVersion, same_types<0>},
      {"Sum", kAnyVersion, same_types<0>},
      {"Where", kAnyVersion, same_types<1>},
      {"Concat", kAnyVersion, same_types<0>},
      {"Affine", kAnyVersion, affine},
      {"BatchNormalization", 9, batch_normalization_spatial},
      {"BatchNormalization", 14, batch_normalization},
      {"Cast", 6, cast_name_to_number},
      {"Clip", kAnyVersion, clip},
      {"Concat", 4, concat_axis},
      {"Crop", kAnyVersion, crop},
      {"DFT", 20, dft},
      {"Dropout", 12, dropout},
      {"GRU", 7, recurrent},
      {"LSTM", 7, recurrent},
      {"RNN", 7, recurrent},
      {"GRU", kAnyVersion, states_of_layout_0},
      {"LSTM", kAnyVersion, states_of_layout_0},
      {"RNN", kAnyVersion, states_of_layout_0},
      {"Gemm", 7, drop_broadcast},
      {"GlobalLpPool", 2, norm_power_to_int},
      {"LpPool", 2, norm_power_to_int},
      {"GridSample", 20, grid_sample_modes},
      {"GroupNormalization", 21, group_normalization},
      {"Hardmax", 13, softmax},
      {"LogSoftmax", 13, softmax},
      {"Softmax", 13, softmax},
      {"ImageScaler", kAnyVersion, image_scaler},
      {"MeanVarianceNormalization", 9, mean_variance_normalization},
      {"Optional", kAnyVersion, optional_value},
      {"OptionalGetElement", kAnyVersion, optional_value},
      {"OptionalHasElement", kAnyVersion, optional_has_element},
      {"PRelu", kAnyVersion, prelu},
      {"Pad", 2, pad_names},
      {"Pad", kAnyVersion, pad},
      {"ParametricSoftplus", kAnyVersion, parametric_softplus},
      {"ReduceL1", kAnyVersion, axes_to_input},
      {"ReduceL2", kAnyVersion, axes_to_input},
      {"ReduceLogSum", kAnyVersion, axes_to_input},
      {"ReduceLogSumExp", kAnyVersion, axes_to_input},
      {"ReduceMax", kAnyVersion, axes_to_input},
      {"ReduceMean", kAnyVersion, axes_to_input},
      {"ReduceMin", kAnyVersion, axes_to_input},
      {"ReduceProd", kAnyVersion, axes_to_input},
      {"ReduceSum", kAnyVersion, axes_to_input},
      {"ReduceSumSquare", kAnyVersion, axes_to_input},
      {"Reshape", kAnyVersion, shape_to_input},
      {"Resize", 11, resize_10},
      {"RoiAlign", 16, roi_align},
      {"Scale", kAnyVersion, scale},
      {"ScaledTanh", kAnyVersion, scaled_tanh},
      {"Scan", 9, scan_8},
      {"Scatter", kAnyVersion, rename_scatter},
      {"Selu", 6, selu_defaults},
      {"SimplifiedLayerNormalization", kAnyVersion, simplified_layer_normalization},
      {"Slice", kAnyVersion, slice},
      {"Split", kAnyVersion, split},
      {"Squeeze", kAnyVersion, axes_to_input},
      {"Unsqueeze", kAnyVersion, axes_to_input},
      {"Tile", 6, tile},
      {"TopK", kAnyVersion, top_k},
      {"Upsample", kAnyVersion, upsample},
  };
  return kRows;
}

}  // namespace orknn::importer::onnx
