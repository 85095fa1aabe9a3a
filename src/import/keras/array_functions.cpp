// Functions of keras.ops that are composed: products, norms, order statistics, differences, pooling, attention.
#include <algorithm>
#include <cmath>

#include "import/keras/layer.h"
#include "import/lower/attention.h"
#include "import/lower/functions.h"
#include "import/lower/gather.h"
#include "import/lower/norms.h"
#include "import/lower/quantile.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// All axes where the configuration states none.
Result<std::vector<int64_t>> stated_axes(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axes"));
  return Emitter::axes_of(l.argument(SIZE_MAX, "axis").integers(), rank);
}
Result<int64_t> stated_axis(Layer& l, TensorId x, int64_t otherwise) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find the axis"));
  return normalize_axis(l.argument(SIZE_MAX, "axis").integer(otherwise), rank);
}
bool keeps_axes(Layer& l) { return l.argument(SIZE_MAX, "keepdims").flag(false); }

// --- products

// Over the last axis of a and the last but one of b, which has at most two.
Result<TensorId> product(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const int64_t rank_a, l.need_rank(a, "to multiply"));
  ORKNN_TRY_ASSIGN(const int64_t rank_b, l.need_rank(b, "to multiply"));
  if (rank_a == 0 || rank_b == 0) return l.mul(a, b);
  if (rank_b > 2) return unsupported("the second operand of a product has too many axes").expected("at most 2");
  return l.matmul(a, l.kind() == "Inner" && rank_b == 2 ? l.transpose(b, {1, 0}) : b);
}

// Over as many last axes of a and first ones of b as stated, or over the listed ones.
Result<TensorId> tensordot(Layer& l, TensorId a, TensorId b) {
  ORKNN_TRY_ASSIGN(const int64_t rank_a, l.need_rank(a, "to multiply"));
  ORKNN_TRY_ASSIGN(const int64_t rank_b, l.need_rank(b, "to multiply"));
  const Json& stated = l.argument(SIZE_MAX, "axes");
  std::vector<int64_t> of_a, of_b;
  if (stated.kind == Json::Kind::List && stated.items.size() == 2) {
    of_a = stated.items[0].integers();
    of_b = stated.items[1].integers();
  } else {
    const int64_t count = stated.integer(2);
    for (int64_t i = 0; i < std::min(count, rank_b); ++i) {
      of_a.push_back(rank_a - count + i);
      of_b.push_back(i);
    }
  }
  if (of_a.size() != of_b.size() || rank_a + rank_b > 26) return unsupported("these axes of a product are not supported");
  std::string letters_a, letters_b, result;
  for (int64_t i = 0; i < rank_a; ++i) letters_a.push_back(static_cast<char>('a' + i));
  for (int64_t i = 0; i < rank_b; ++i) letters_b.push_back(static_cast<char>('a' + rank_a + i));
  for (size_t i = 0; i < of_a.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t axis_a, normalize_axis(of_a[i], rank_a));
    ORKNN_TRY_ASSIGN(const int64_t axis_b, normalize_axis(of_b[i], rank_b));
    letters_b[static_cast<size_t>(axis_b)] = letters_a[static_cast<size_t>(axis_a)];
  }
  for (const char c : letters_a)
    if (letters_b.find(c) == std::string::npos) result.push_back(c);
  for (const char c : letters_b)
    if (letters_a.find(c) == std::string::npos) result.push_back(c);
  return l.emit("Einsum", {a, b}, {{"equation", letters_a + "," + letters_b + "->" + result}});
}

// Queries, keys and values [batch, steps, heads, width].
Result<TensorId> dot_product_attention(Layer& l, TensorId q, TensorId k, TensorId v) {
  const std::vector<TensorId> bias = l.tensors(3, "bias"), mask = l.tensors(4, "mask");
  if (l.argument(SIZE_MAX, "attn_logits_soft_cap").number(0) != 0) return unsupported("attn_logits_soft_cap is not supported");
  AttentionOptions options{.is_causal = l.argument(6, "is_causal").flag(false), .shares_heads = true};
  if (const Json& scale = l.argument(5, "scale"); !scale.is_null()) options.scale = scale.number(1);
  if (!bias.empty() && !mask.empty()) return unsupported("bias and mask together are not supported");
  if (!bias.empty()) options.mask = bias[0];
  if (!mask.empty()) options.mask = l.cast(mask[0], DType::Bool);
  const auto heads_first = [&](TensorId x) { return l.transpose(x, {0, 2, 1, 3}); };
  ORKNN_TRY_ASSIGN(const TensorId y, attention(l, heads_first(q), heads_first(k), heads_first(v), options));
  return heads_first(y);
}

// --- norms

Result<TensorId> norm_of(Layer& l, TensorId x, const Json& order, const std::vector<int64_t>& axes, bool keep) {
  const std::string name = order.string();
  const double p = order.number(2);
  const bool is_of_matrix = !order.is_null() && axes.size() == 2 && name != "fro";
  if (is_of_matrix) return unsupported("this norm of matrices is not supported").found(order.text);
  if (name == "inf" || std::isinf(p)) return l.reduce(p < 0 ? "ReduceMin" : "ReduceMax", l.unary("Abs", x), axes, keep);
  if (order.is_null() || name == "fro" || p == 2) return l.reduce("ReduceL2", x, axes, keep);
  if (p == 1) return l.reduce("ReduceL1", x, axes, keep);
  if (!(p > 0)) return unsupported("this norm is not supported").found(order.text);
  const TensorId sum = l.reduce("ReduceSum", l.with_scalar("Pow", l.unary("Abs", x), p), axes, keep);
  return l.with_scalar("Pow", sum, 1 / p);
}
Result<TensorId> norm(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, stated_axes(l, x));
  return norm_of(l, x, l.argument(SIZE_MAX, "ord"), axes, keeps_axes(l));
}
Result<TensorId> normalized(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, stated_axis(l, x, -1));
  const double epsilon = l.argument(SIZE_MAX, "epsilon").number(1e-7);
  ORKNN_TRY_ASSIGN(const TensorId length, norm_of(l, x, l.argument(SIZE_MAX, "order"), {axis}, true));
  return l.div(x, l.clip(length, epsilon, std::nullopt));
}
Result<TensorId> rms_normalized(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, stated_axis(l, x, -1));
  const double epsilon = l.argument(SIZE_MAX, "epsilon").number(1e-7);
  const TensorId squares = l.reduce("ReduceMean", square(l, x), {axis}, true);
  const TensorId y = l.mul(x, rsqrt(l, l.add(squares, epsilon)));
  const std::vector<TensorId> scale = l.tensors(1, "scale");
  return scale.empty() ? y : l.mul(y, scale[0]);
}

// --- statistics

Result<TensorId> average(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, stated_axes(l, x));
  return l.reduce("ReduceMean", x, axes, false);
}
Result<TensorId> nonzero_count(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto axes, stated_axes(l, x));
  return l.reduce("ReduceSum", l.cast(l.cast(x, DType::Bool), DType::Int32), axes, false);
}
Result<TensorId> quantile_of(Layer& l, TensorId x, TensorId share, const std::string& method) {
  ORKNN_TRY_ASSIGN(const auto axes, stated_axes(l, x));
  return quantiles(l, {.x = l.cast(x, DType::Float32),
                       .share = share,
                       .axes = axes,
                       .keeps_axes = keeps_axes(l),
                       .interpolation = method,
                       .skips_nan = l.kind().starts_with("Nan")});
}
Result<TensorId> median(Layer& l, TensorId x) { return quantile_of(l, x, l.add_scalar("half", 0.5), "linear"); }
// `Whole`: the number that stands for all elements.
template <int Whole>
Result<TensorId> quantile(Layer& l, TensorId x) {
  const std::vector<TensorId> given = l.tensors(1, "q");
  const Json& stated = l.argument(1, "q");
  TensorId share;
  if (!given.empty()) {
    if (given.size() != 1) return unsupported("the shares of quantiles are several tensors");
    share = l.div(l.cast(given[0], DType::Float32), Whole);
  } else {
    std::vector<float> shares;
    for (const Json& item : stated.items) shares.push_back(static_cast<float>(item.number(NAN) / Whole));
    if (stated.kind == Json::Kind::Scalar) shares = {static_cast<float>(stated.number(NAN) / Whole)};
    if (shares.empty() || !std::ranges::all_of(shares, [](float s) { return s >= 0 && s <= 1; }))
      return invalid_model("a quantile needs a share, or a list of them").expected("0 to " + std::to_string(Whole));
    const ir::Dims dims = stated.kind == Json::Kind::Scalar ? ir::Dims{} : ir::Dims{static_cast<int64_t>(shares.size())};
    share = l.add_constant("shares", TensorData::from(dims, std::span<const float>(shares)));
  }
  std::string method = l.argument(SIZE_MAX, "method").string("linear");
  if (l.kind() == "Quantile" && method != "linear") {  // seen in Keras 3.15; its other functions do what they are told
    l.warn("quantiles are interpolated linearly, as Keras does in a model whatever its 'method' is");
    method = "linear";
  }
  return quantile_of(l, x, share, method);
}

// --- others

Result<TensorId> difference(Layer& l, TensorId x) {
  const int64_t times = l.argument(SIZE_MAX, "n").integer(1);
  ORKNN_TRY_ASSIGN(const int64_t axis, stated_axis(l, x, -1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to take differences"));
  int64_t extent = dims[static_cast<size_t>(axis)];
  if (times < 0 || times >= extent) return invalid_model("there are too few elements for so many differences");
  for (int64_t i = 0; i < times; ++i, --extent) x = l.sub(l.slice(x, axis, 1, extent), l.slice(x, axis, 0, extent - 1));
  return x;
}
template <int64_t Axis>
TensorId joined_parts(Layer& l, Operands inputs) {
  const auto rank = l.rank_of(inputs[0]);
  std::vector<TensorId> parts(inputs.begin(), inputs.end());
  if (Axis == 0 && rank && *rank < 2)
    for (TensorId& part : parts) part = l.unsqueeze(part, {0});
  return l.concat(std::move(parts), Axis == 1 && rank && *rank < 2 ? 0 : Axis);
}
TensorId without_nan(Layer& l, TensorId x) {
  constexpr double kMost = std::numeric_limits<float>::max();
  const double nan = l.argument(SIZE_MAX, "nan").number(0), most = l.argument(SIZE_MAX, "posinf").number(kMost),
               least = l.argument(SIZE_MAX, "neginf").number(-kMost);
  const TensorId infinite = l.unary("IsInf", x), is_positive = l.with_scalar("Greater", x, 0);
  const TensorId finite = l.where(infinite, l.where(is_positive, l.scalar_like(x, most), l.scalar_like(x, least)), x);
  return l.where(l.unary("IsNaN", x), l.scalar_like(x, nan), finite);
}
// Of each place the choice whose condition is the first to hold.
Result<TensorId> selected(Layer& l) {
  const std::vector<TensorId> conditions = l.tensors(0, "condlist"), choices = l.tensors(1, "choicelist");
  if (conditions.empty() || conditions.size() != choices.size()) return unsupported("select needs a tensor for each condition");
  const std::vector<TensorId> stated = l.tensors(2, "default");
  TensorId y = stated.empty() ? l.scalar_like(choices[0], l.argument(2, "default").number(0)) : stated[0];
  for (size_t i = choices.size(); i-- > 0;) y = l.where(l.cast(conditions[i], DType::Bool), choices[i], y);
  return y;
}
template <OpName Op>
Result<TensorId> pooled(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pool it"));
  if (rank < 3) return shape_mismatch("pooling needs spatial axes").found("rank " + std::to_string(rank));
  const auto spatial = static_cast<size_t>(rank - 2);
  const PictureFormat format{l.argument(4, "data_format").string("channels_last") != "channels_first", spatial};
  return pooled_pictures(l, Op.chars, format, x, l.argument(1, "pool_size"), l.argument(2, "strides"), l.argument(3, "padding"));
}
}  // namespace

std::span<const Row> array_function_rows() {
  static const Row rows[] = {
      {"Average", average},
      {"AveragePool", pooled<"AveragePool">},
      {"CountNonzero", nonzero_count},
      {"Diff", difference},
      {"Dot|Inner", product},
      {"DotProductAttention", dot_product_attention},
      {"Hstack", joined_parts<1>, {.inputs = {.least = 1}}},
      {"MaxPool", pooled<"MaxPool">},
      {"Median|Nanmedian", median},
      {"NanToNum", without_nan},
      {"Norm", norm},
      {"Normalize", normalized},
      {"Percentile|Nanpercentile", quantile<100>},
      {"Quantile|Nanquantile", quantile<1>},
      {"RMSNorm", rms_normalized},
      {"Select", selected, {.inputs = {.least = 2}}},
      {"Tensordot|tensordot", tensordot},
      {"Vstack", joined_parts<0>, {.inputs = {.least = 1}}},
  };
  return rows;
}

}  // namespace orknn::importer::keras
