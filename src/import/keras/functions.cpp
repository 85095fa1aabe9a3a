// The functions of keras.ops in functional models: what `x * 2 + y` and `ops.mean(x)` are stored as; and those of TensorFlow in
// models of Keras 2, by the last part of their names. They have no weights, and their arguments are tensors or numbers in any
// order.
#include "import/lower/functions.h"

#include <algorithm>

#include "import/keras/call.h"
#include "import/keras/layer.h"
#include "import/lower/axes.h"
#include "import/lower/cumulative.h"
#include "import/lower/gather.h"
#include "import/lower/norms.h"
#include "import/lower/one_hot.h"
#include "import/lower/space.h"
#include "import/lower/strided_slice.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// --- of two operands

struct Pair {
  TensorId a, b;
};
// One of them may be a number, which has the type of the other; whole numbers give way to others.
Result<Pair> two_operands(Layer& l) {
  const Json &first = l.argument(0, "x1"), &second = l.argument(1, "x2");
  Pair p;
  if (l.operand_count() == 2) {
    ORKNN_TRY_ASSIGN(p.a, l.operand(0));
    ORKNN_TRY_ASSIGN(p.b, l.operand(1));
  } else {
    const bool is_first = !references_in(first).empty();
    const Json& number = is_first ? second : first;
    if (l.operand_count() != 1 || number.kind != Json::Kind::Scalar)
      return unsupported("its operands are not tensors and numbers");
    ORKNN_TRY_ASSIGN(TensorId x, l.operand(0));
    if (is_integer(l.dtype_of(x)) && number.text.find_first_of(".eE") != std::string::npos) x = l.cast(x, DType::Float32);
    const TensorId constant = l.scalar_like(x, number.number(0));
    p = is_first ? Pair{x, constant} : Pair{constant, x};
  }
  if (is_float(l.dtype_of(p.a)) != is_float(l.dtype_of(p.b))) {
    p.a = l.cast(p.a, DType::Float32);
    p.b = l.cast(p.b, DType::Float32);
  }
  return p;
}
template <OpName Op>
Result<TensorId> binary(Layer& l) {
  ORKNN_TRY_ASSIGN(const Pair p, two_operands(l));
  return l.binary(Op.chars, p.a, p.b);
}
template <auto Function>
Result<TensorId> composed(Layer& l) {
  ORKNN_TRY_ASSIGN(const Pair p, two_operands(l));
  return Function(l, p.a, p.b);
}
Result<TensorId> divide(Layer& l) {
  ORKNN_TRY_ASSIGN(const Pair p, two_operands(l));
  return l.div(l.cast(p.a, DType::Float32), l.cast(p.b, DType::Float32));
}
Result<TensorId> matmul(Layer& l, TensorId a, TensorId b) {
  return matrix_product(l, a, b, l.argument(SIZE_MAX, "transpose_a").flag(false),
                        l.argument(SIZE_MAX, "transpose_b").flag(false));
}
Result<TensorId> einsum(Layer& l, Operands inputs) {
  const std::string equation = l.config["subscripts"].string(l.argument(0, "subscripts").string());
  return l.emit("Einsum", {inputs.begin(), inputs.end()}, {{"equation", equation}});
}

// --- along axes

Result<int64_t> axis_of(Layer& l, TensorId x, size_t place, const char* name, int64_t otherwise, int64_t more = 0) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axis"));
  return normalize_axis(l.argument(place, name).integer(otherwise), rank + more);
}
// All axes where it states none.
Result<std::vector<int64_t>> axes_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axes"));
  const Json& stated = l.argument(1, "axis");
  if (stated.kind == Json::Kind::List && stated.items.empty()) return std::vector<int64_t>{};
  return Emitter::axes_of(stated.integers(), rank);
}
bool keeps(Layer& l) { return l.argument(2, "keepdims").flag(false); }

template <OpName Op>
Result<TensorId> reduction(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, axes_of(l, x));
  return l.reduce(Op.chars, x, axes, keeps(l));
}
template <OpName Op>
Result<TensorId> logical_reduction(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const TensorId y, reduction<Op>(l, l.cast(l.cast(x, DType::Bool), DType::Int32)));
  return l.cast(y, DType::Bool);
}
Result<TensorId> variance(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, axes_of(l, x));
  const TensorId y = moments(l, x, axes, keeps(l)).variance;
  return l.kind() == "Std" || l.kind() == "reduce_std" ? l.unary("Sqrt", y) : y;
}
template <OpName Op>
Result<TensorId> place_of_extreme(Layer& l, TensorId x) {
  const bool has_axis = !l.argument(1, "axis").is_null(), is_kept = keeps(l);
  if (!has_axis) x = l.reshape(x, {-1});
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 1, "axis", 0));
  const TensorId y = l.emit(Op.chars, {x}, {{"axis", axis}, {"keepdims", int64_t{is_kept && has_axis}}});
  return l.cast(y, l.generation() >= 3 ? DType::Int32 : DType::Int64);
}
template <OpName Op>
Result<TensorId> running(Layer& l, TensorId x) {
  if (l.argument(1, "axis").is_null()) x = l.reshape(x, {-1});
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 1, "axis", 0));
  return cumulative(l, Op.chars, x, axis, l.argument(2, "exclusive").flag(false), l.argument(3, "reverse").flag(false));
}
Result<std::vector<TensorId>> top_k(Layer& l, TensorId x) {
  const TensorId k = l.add_ints("k", {l.argument(1, "k").integer(1)});
  const bool sorted = l.argument(2, "sorted").flag(true);
  const auto results = l.emit_all("TopK", {x, k}, {{"axis", int64_t{-1}}, {"sorted", int64_t{sorted}}}, 2);
  return std::vector{results[0], l.cast(results[1], DType::Int32)};
}
template <bool IsOrder>
Result<TensorId> sorted(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 1, "axis", -1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to sort it"));
  const TensorId k = l.add_ints("k", {dims[static_cast<size_t>(axis)]});
  const auto results = l.emit_all("TopK", {x, k}, {{"axis", axis}, {"largest", int64_t{0}}}, 2);
  return IsOrder ? l.cast(results[1], DType::Int32) : results[0];
}

// --- shapes

TensorId reshape(Layer& l, TensorId x) { return l.reshape(x, l.argument(1, "newshape").integers()); }
TensorId ravel(Layer& l, TensorId x) { return l.reshape(x, {-1}); }
Result<TensorId> transpose(Layer& l, TensorId x) { return permuted(l, x, l.argument(1, "axes").integers()); }
Result<TensorId> swap_axes(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t a, axis_of(l, x, 1, "axis1", 0));
  ORKNN_TRY_ASSIGN(const int64_t b, axis_of(l, x, 2, "axis2", 0));
  return l.swap_axes(x, a, b);
}
Result<TensorId> move_axis(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to move its axes"));
  const std::vector<int64_t> from = l.argument(1, "source").integers(), to = l.argument(2, "destination").integers();
  if (from.size() != to.size()) return invalid_model("as many axes must go as come");
  std::vector<int64_t> order(static_cast<size_t>(rank), -1), rest;
  std::vector<bool> is_moved(order.size(), false);
  for (size_t i = 0; i < from.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t source, normalize_axis(from[i], rank));
    ORKNN_TRY_ASSIGN(const int64_t target, normalize_axis(to[i], rank));
    order[static_cast<size_t>(target)] = source;
    is_moved[static_cast<size_t>(source)] = true;
  }
  for (int64_t i = rank - 1; i >= 0; --i)
    if (!is_moved[static_cast<size_t>(i)]) rest.push_back(i);
  for (int64_t& axis : order)
    if (axis < 0 && !rest.empty()) {
      axis = rest.back();
      rest.pop_back();
    }
  return l.transpose(x, order);
}
Result<TensorId> concatenate(Layer& l, Operands inputs) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, inputs[0], 1, "axis", 0));
  return l.concat({inputs.begin(), inputs.end()}, axis);
}
Result<TensorId> stack(Layer& l, Operands inputs) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, inputs[0], 1, "axis", 0, 1));
  return l.stack({inputs.begin(), inputs.end()}, axis);
}
Result<std::vector<TensorId>> split(Layer& l, TensorId x) {
  const Json& parts =
      l.argument(1, "indices_or_sections").is_null() ? l.argument(1, "num_or_size_splits") : l.argument(1, "indices_or_sections");
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 2, "axis", 0));
  if (parts.kind == Json::Kind::Scalar) return split_equally(l, x, axis, parts.integer(1));
  std::vector<int64_t> sizes = parts.integers();
  if (l.generation() < 3) return split_to_sizes(l, x, axis, sizes);
  sizes.push_back(-1);  // places to cut at, of which sizes follow
  for (size_t i = sizes.size() - 1; i-- > 1;) sizes[i] -= sizes[i - 1];
  return split_to_sizes(l, x, axis, sizes);
}
Result<std::vector<TensorId>> unstack_axis(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 2, "axis", 0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take it apart"));
  const int64_t count = dims[static_cast<size_t>(axis)];
  if (count > (1 << 16)) return unsupported("there are too many parts").found(std::to_string(count));
  return unstack(l, x, axis, count);
}
Result<TensorId> expand_dims(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 1, "axis", 0, 1));
  return l.unsqueeze(x, {axis});
}
Result<TensorId> squeeze(Layer& l, TensorId x) {
  std::vector<int64_t> axes = l.argument(1, "axis").integers();
  if (l.argument(1, "axis").is_null()) {
    ORKNN_TRY_ASSIGN(axes, axes_of_extent_one(l, x));
  }
  return l.squeeze(x, axes);
}
Result<TensorId> tiled(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to repeat it"));
  const std::vector<int64_t> repeats = l.argument(1, "repeats").integers(static_cast<size_t>(rank));
  if (std::ssize(repeats) != rank) return unsupported("tile needs a number for each axis");
  return tile(l, x, l.add_ints("repeats", repeats));
}
Result<TensorId> repeat(Layer& l, TensorId x) {
  const int64_t times = l.argument(1, "repeats").integer(0);
  if (l.argument(2, "axis").is_null()) x = l.reshape(x, {-1});
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 2, "axis", 0));
  return repeat_elements(l, x, axis, times);
}
Result<TensorId> flipped(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, axes_of(l, x));
  return l.reverse(x, axes);
}
Result<TensorId> rolled(Layer& l, TensorId x) {
  return roll(l, x, l.argument(1, "shift").integers(), l.argument(2, "axis").integers());
}
TensorId broadcast(Layer& l, TensorId x) { return l.expand(x, l.argument(1, "shape").integers()); }
template <bool IsUpper>
TensorId triangle(Layer& l, TensorId x) {
  return l.emit("Trilu", {x, l.add_int_scalar("k", l.argument(1, "k").integer(0))}, {{"upper", int64_t{IsUpper}}});
}
Result<TensorId> padded(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pad it"));
  const std::string mode = l.argument(2, "mode").string("constant");
  const double value = l.argument(3, "constant_values").number(0);
  std::vector<int64_t> rows;
  for (const Json& axis : l.argument(1, "pad_width").items)
    for (const int64_t side : axis.integers(2)) rows.push_back(side);
  if (std::ssize(rows) != 2 * rank) return unsupported("padding needs two numbers for each axis");
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> pads, pads_of_rows(rows));
  if (mode == "constant") return pad(l, x, pads, value == 0 ? TensorId{} : l.scalar_like(x, value));
  if (mode != "reflect" && mode != "symmetric" && mode != "REFLECT" && mode != "SYMMETRIC")
    return unsupported("this mode of padding is not supported").expected("constant, reflect or symmetric").found(mode);
  return mirror_pad(l, x, pads, mode == "symmetric" || mode == "SYMMETRIC");
}

// Parts of a tensor, `x[:, 1:5, ::2, None, 0]`, as masks say the same.
Result<TensorId> get_item(Layer& l, TensorId x) {
  const Json& key = l.argument(1, "key");
  const std::vector<Json> parts = key.kind == Json::Kind::List ? key.items : std::vector{key};
  if (l.operand_count() != 1 || parts.size() > 31) return unsupported("parts of a tensor that tensors state are not supported");
  std::vector<int64_t> begin, end, step;
  SliceMasks masks;
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string kind = parts[i]["class_name"].string();
    const Json& range = parts[i]["config"];
    const bool is_range = kind == "__slice__";  // call_of has seen to those of Keras 2
    const uint64_t bit = uint64_t{1} << i;
    begin.push_back(is_range ? range["start"].integer(0) : parts[i].integer(0));
    end.push_back(is_range ? range["stop"].integer(0) : begin.back() + 1);
    step.push_back(is_range ? range["step"].integer(1) : 1);
    if (is_range) {
      masks.begin |= range["start"].is_null() ? bit : 0;
      masks.end |= range["stop"].is_null() ? bit : 0;
    } else if (kind == "__ellipsis__") {
      masks.ellipsis |= bit;
    } else if (parts[i].is_null()) {
      masks.new_axis |= bit;
    } else if (parts[i].kind == Json::Kind::Scalar) {
      masks.shrink |= bit;
    } else {
      return unsupported("a part of a tensor is stated in a way that is not supported");
    }
  }
  return strided_slice(l, x, l.add_ints("begin", begin), l.add_ints("end", end), step, masks);
}

Result<TensorId> take(Layer& l, TensorId x) {
  const Json& places = l.argument(1, "indices");
  if (l.argument(2, "axis").is_null() && l.generation() >= 3) x = l.reshape(x, {-1});
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 2, "axis", 0));
  if (l.operand_count() == 2) {
    ORKNN_TRY_ASSIGN(const TensorId indices, l.operand(1));
    return l.gather(x, indices, axis);
  }
  const bool is_one = places.kind == Json::Kind::Scalar;
  return l.gather(x, is_one ? l.add_int_scalar("place", places.integer(0)) : l.add_ints("places", places.integers()), axis);
}
Result<TensorId> take_along(Layer& l, TensorId x, TensorId indices) {
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 2, "axis", -1));
  return l.gather_elements(x, indices, axis);
}
Result<TensorId> as_one_hot(Layer& l, TensorId x) {
  const int64_t count = l.argument(1, "num_classes").integer(l.argument(1, "depth").integer(0));
  ORKNN_TRY_ASSIGN(const int64_t axis, axis_of(l, x, 2, "axis", -1, 1));
  if (count < 1 || count > kMaxWindow) return invalid_model("the number of classes is impossible").found(std::to_string(count));
  return one_hot(l, l.cast(x, DType::Int64), count, axis, l.add_scalar("on", 1), l.add_scalar("off", 0));
}

// --- others

// Numbers or tensors as limits.
Result<TensorId> clip(Layer& l, TensorId x) {
  const Json &low = l.argument(1, "x_min"), &high = l.argument(2, "x_max");
  if (low.kind != Json::Kind::Scalar || high.kind != Json::Kind::Scalar) return unsupported("clip needs two numbers");
  return l.clip(x, low.number(0), high.number(0));
}
Result<TensorId> cast(Layer& l, TensorId x) {
  const std::string name = l.argument(1, "dtype").string(l.argument(1, "dtype")["config"].string());
  const DType to = dtype_from_name(name);
  if (to == DType::Undefined) return unsupported("a cast to '" + name + "' is not supported");
  return l.cast(x, is_float(to) ? DType::Float32 : to);
}
// Each of the three may be a number.
Result<TensorId> where(Layer& l) {
  std::vector<TensorId> parts;
  for (const auto& [place, name] : {std::pair(0u, "condition"), std::pair(1u, "x1"), std::pair(2u, "x2")}) {
    const std::vector<TensorId> held = l.tensors(place, name);
    const Json& stated = l.argument(place, name);
    if (held.empty() && stated.kind != Json::Kind::Scalar) return unsupported("where needs three tensors or numbers");
    parts.push_back(held.empty() ? l.add_scalar("number", stated.number(0)) : held[0]);
  }
  if (l.constant_of(parts[1])) parts[1] = l.cast(parts[1], l.dtype_of(parts[2]));
  if (l.constant_of(parts[2])) parts[2] = l.cast(parts[2], l.dtype_of(parts[1]));
  return select(l, parts[0], parts[1], parts[2]);
}
Result<TensorId> resized_to(Layer& l, TensorId x) {
  const std::vector<int64_t> size = l.argument(1, "size").integers();
  const std::string way = l.argument(2, "interpolation").string("bilinear");
  if (way != "bilinear" && way != "nearest") return unsupported("resizing needs the nearest or a linear way").found(way);
  const bool is_last = l.argument(SIZE_MAX, "data_format").string("channels_last") != "channels_first";
  const Resizing how{.mode = way == "nearest" ? way : "linear", .half_pixel_centers = true};
  if (is_last) return resize(l, x, size, how);
  ORKNN_TRY_ASSIGN(const TensorId y, resize(l, from_channels_first(l, {}, x), size, how));
  return to_channels_first(l, {}, y);
}
template <auto Move>
Result<TensorId> moved_blocks(Layer& l, TensorId x) {
  const bool is_last = l.argument(2, "data_format").string("channels_last") != "channels_first";
  return Move(l, {is_last, 2}, x, l.argument(1, "block_size").integer(0));
}
Result<TensorId> filled_like(Layer& l, TensorId x) {
  const double value = l.kind() == "FullLike" ? l.argument(1, "fill_value").number(0) : l.kind().find("nes") == 1 ? 1 : 0;
  const DType dtype = dtype_from_name(l.argument(l.kind() == "FullLike" ? 2 : 1, "dtype").string());
  return l.full_like(dtype == DType::Undefined ? x : l.cast(x, is_float(dtype) ? DType::Float32 : dtype), value);
}
}  // namespace

std::span<const Row> function_rows() {
  constexpr RowLimits kAny{.inputs = {.least = 1}};
  static const Row rows[] = {
      {"Abs|Absolute|abs", same<"Abs">},
      {"Add|add", binary<"Add">},
      {"All|reduce_all", logical_reduction<"ReduceMin">},
      {"Any|reduce_any", logical_reduction<"ReduceMax">},
      {"Arccos|acos", same<"Acos">},
      {"Arccosh|acosh", same<"Acosh">},
      {"Arcsin|asin", same<"Asin">},
      {"Arcsinh|asinh", same<"Asinh">},
      {"Arctan|atan", same<"Atan">},
      {"Arctan2|atan2", binary<"Atan2">},
      {"Arctanh|atanh", same<"Atanh">},
      {"Argmax|argmax", place_of_extreme<"ArgMax">},
      {"Argmin|argmin", place_of_extreme<"ArgMin">},
      {"Argsort", sorted<true>},
      {"BroadcastTo|broadcast_to", broadcast},
      {"Cast|cast", cast},
      {"Cbrt", cube_root},
      {"Ceil|ceil", same<"Ceil">},
      {"Clip|clip_by_value", clip},
      {"Concatenate|concat", concatenate, kAny},
      {"Copy|Identity|identity|StopGradient|stop_gradient", pass_on},
      {"Cos|cos", same<"Cos">},
      {"Cosh|cosh", same<"Cosh">},
      {"Cumprod|cumprod", running<"CumProd">},
      {"Cumsum|cumsum", running<"CumSum">},
      {"Deg2rad", radians},
      {"DepthToSpace|depth_to_space", moved_blocks<depth_to_space>},
      {"Divide|TrueDivide|divide|truediv", divide},
      {"DivideNoNan|divide_no_nan", composed<div_no_nan>},
      {"Einsum|einsum", einsum, kAny},
      {"Equal|equal", binary<"Equal">},
      {"Erf|erf", same<"Erf">},
      {"Erfc|erfc", same<"Erfc">},
      {"Erfinv|erfinv", same<"ErfInv">},
      {"Exp2", exp2},
      {"ExpandDims|expand_dims", expand_dims},
      {"Expm1|expm1", expm1},
      {"Flip|reverse", flipped},
      {"Floor|floor", same<"Floor">},
      {"FloorDivide|floordiv|floor_div", composed<floor_of_quotient>},
      {"Fmod", composed<truncate_mod>},
      {"FullLike|OnesLike|ones_like|ZerosLike|zeros_like", filled_like},
      {"GetItem|getitem", get_item},
      {"Greater|greater", binary<"Greater">},
      {"GreaterEqual|greater_equal", binary<"GreaterOrEqual">},
      {"Hypot", composed<hypot>},
      {"Isfinite|is_finite", is_finite},
      {"Isinf|is_inf", same<"IsInf">},
      {"Isnan|is_nan", same<"IsNaN">},
      {"Less|less", binary<"Less">},
      {"LessEqual|less_equal", binary<"LessOrEqual">},
      {"Log|log", same<"Log">},
      {"Log10", log10},
      {"Log1p|log1p", log1p},
      {"Log2", log2},
      {"Logaddexp", composed<log_add_exp>},
      {"LogicalAnd|logical_and", binary<"And">},
      {"LogicalNot|logical_not", same<"Not">},
      {"LogicalOr|logical_or", binary<"Or">},
      {"LogicalXor|logical_xor", binary<"Xor">},
      {"Logsumexp|reduce_logsumexp", reduction<"ReduceLogSumExp">},
      {"Matmul|matmul", matmul, {.inputs = {2, 2}}},
      {"Max|Amax|reduce_max", reduction<"ReduceMax">},
      {"Maximum|maximum", binary<"Max">},
      {"Mean|reduce_mean", reduction<"ReduceMean">},
      {"Min|Amin|reduce_min", reduction<"ReduceMin">},
      {"Minimum|minimum", binary<"Min">},
      {"Mod|floormod|mod", composed<floor_mod>},
      {"Moveaxis", move_axis},
      {"Multiply|multiply", binary<"Mul">},
      {"Negative|negative", same<"Neg">},
      {"NotEqual|not_equal", composed<not_equal>},
      {"OneHot|one_hot", as_one_hot},
      {"Pad|pad", padded},
      {"Power|pow", binary<"Pow">},
      {"Prod|reduce_prod", reduction<"ReduceProd">},
      {"Rad2deg", degrees},
      {"Ravel", ravel},
      {"Reciprocal|reciprocal", same<"Reciprocal">},
      {"Repeat", repeat},
      {"Reshape|reshape", reshape},
      {"Resize|resize", resized_to},
      {"Roll|roll", rolled},
      {"Round|round", same<"Round">},
      {"Rsqrt|rsqrt", rsqrt},
      {"Sign|sign", same<"Sign">},
      {"Sin|sin", same<"Sin">},
      {"Sinh|sinh", same<"Sinh">},
      {"Sort", sorted<false>},
      {"SpaceToDepth|space_to_depth", moved_blocks<space_to_depth>},
      {"Split|split", split},
      {"Sqrt|sqrt", same<"Sqrt">},
      {"Square|square", square},
      {"SquaredDifference|squared_difference", composed<squared_difference>},
      {"Squeeze|squeeze", squeeze},
      {"Stack|stack", stack, kAny},
      {"Std|Var|reduce_std|reduce_variance", variance},
      {"Subtract|subtract", binary<"Sub">},
      {"Sum|reduce_sum", reduction<"ReduceSum">},
      {"Swapaxes", swap_axes},
      {"Take|gather", take},
      {"TakeAlongAxis", take_along},
      {"Tan|tan", same<"Tan">},
      {"Tile|tile", tiled},
      {"TopK|top_k", top_k},
      {"Transpose|transpose", transpose},
      {"Tril", triangle<false>},
      {"Triu", triangle<true>},
      {"Trunc", truncate},
      {"Unstack|unstack", unstack_axis},
      {"Where|where", where},
  };
  return rows;
}

}  // namespace orknn::importer::keras
