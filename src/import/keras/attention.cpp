// Attention of sequences to sequences.
#include "import/lower/attention.h"

#include <cmath>

#include "import/keras/layer.h"
#include "import/lower/gather.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
constexpr double kFar = -1e9;  // what Keras adds to scores that do not count: rows without any that count stay finite

// 0 where a mask of truth values holds, far below where not.
TensorId as_terms(Layer& l, TensorId mask) {
  return l.mul(l.cast(l.unary("Not", l.cast(mask, DType::Bool)), DType::Float32), kFar);
}
TensorId joined_masks(Layer& l, TensorId a, TensorId b) { return a && b ? l.binary("And", a, b) : a ? a : b; }
TensorId truth(Layer& l, TensorId mask) { return mask ? l.cast(mask, DType::Bool) : mask; }

// Whose mask an argument states, or else that of the tensor.
TensorId stated_mask(Layer& l, const char* name, TensorId x) {
  const std::vector<TensorId> given = l.tensors(SIZE_MAX, name);
  return given.empty() ? l.mask_of(x) : truth(l, given[0]);
}

// --- MultiHeadAttention and GroupQueryAttention

// One of the projections: its place among the weights of a flat layer, and its names in archives.
struct Projection {
  size_t place;
  std::string name;
};
struct Projected {
  TensorId weight, bias;
  Dims dims;
};
Result<Projected> projection(Layer& l, const Projection& p) {
  const bool has_bias = l.flag("use_bias", true);
  const std::string below = l.has_weights_below("_" + p.name) ? "_" + p.name : p.name;
  const size_t first = p.place * (has_bias ? 2 : 1);
  Projected made;
  ORKNN_TRY_ASSIGN(made.weight, l.weight(0, below, first));
  made.dims = *l.dims_of(made.weight);
  if (made.dims.size() != 3) return shape_mismatch("a projection has the wrong rank").found(to_string(made.dims));
  if (has_bias) {
    ORKNN_TRY_ASSIGN(made.bias, l.weight(1, below, first));
  }
  return made;
}
// [batch, time, width] to [batch, heads, time, size]
Result<TensorId> heads_of(Layer& l, TensorId x, const Projection& p) {
  ORKNN_TRY_ASSIGN(const Projected w, projection(l, p));
  TensorId y = l.matmul(x, l.reshape(w.weight, {w.dims[0], w.dims[1] * w.dims[2]}));
  if (w.bias) y = l.add(y, l.reshape(w.bias, {w.dims[1] * w.dims[2]}));
  return l.transpose(l.reshape(y, {0, 0, w.dims[1], w.dims[2]}), {0, 2, 1, 3});
}

Result<std::vector<TensorId>> multi_head_attention(Layer& l) {
  const bool is_grouped = l.kind().starts_with("Group");
  const std::vector<TensorId> queries = l.tensors(0, "query"), values = l.tensors(1, "value"), keys = l.tensors(2, "key"),
                              masks = l.tensors(SIZE_MAX, "attention_mask");
  if (queries.size() != 1 || values.size() != 1 || keys.size() > 1 || masks.size() > 1)
    return invalid_model("the layer needs a query and a value");
  const TensorId query = queries[0], value = values[0], key = keys.empty() ? value : keys[0];
  for (TensorId x : {query, value, key})
    if (l.rank_of(x) != 3) return unsupported("attention of other than sequences of vectors is not supported");
  const int64_t width = l.integer("key_dim", l.integer("head_dim", 0));
  if (width < 1) return invalid_model("the layer has no key_dim");
  ORKNN_TRY_ASSIGN(const TensorId q, heads_of(l, query, {0, "query_dense"}));
  ORKNN_TRY_ASSIGN(const TensorId k, heads_of(l, key, {1, "key_dense"}));
  ORKNN_TRY_ASSIGN(const TensorId v, heads_of(l, value, {2, "value_dense"}));
  AttentionOptions options{.mask = {}, .scale = 1 / std::sqrt(static_cast<double>(width))};
  options.shares_heads = is_grouped;
  options.is_causal = l.argument(SIZE_MAX, "use_causal_mask").flag(false);
  // [batch, time, time] of both sequences, each of which may state its own.
  TensorId mask = masks.empty() ? TensorId{} : truth(l, masks[0]);
  if (const TensorId of_query = stated_mask(l, "query_mask", query)) mask = joined_masks(l, mask, l.unsqueeze(of_query, {2}));
  if (const TensorId of_value = stated_mask(l, "value_mask", value)) mask = joined_masks(l, mask, l.unsqueeze(of_value, {1}));
  if (const TensorId of_key = keys.empty() ? TensorId{} : stated_mask(l, "key_mask", key))
    mask = joined_masks(l, mask, l.unsqueeze(of_key, {1}));
  if (mask) options.mask = as_terms(l, l.rank_of(mask) == 3 ? l.unsqueeze(mask, {1}) : mask);
  ORKNN_TRY_ASSIGN(const Attended made, attend(l, q, k, v, options));
  ORKNN_TRY_ASSIGN(const Projected out, projection(l, {3, "output_dense"}));  // [heads, size, width]
  TensorId y = l.reshape(l.transpose(made.values, {0, 2, 1, 3}), {0, 0, out.dims[0] * out.dims[1]});
  y = l.matmul(y, l.reshape(out.weight, {out.dims[0] * out.dims[1], out.dims[2]}));
  if (out.bias) y = l.add(y, out.bias);
  if (const TensorId own = l.mask_of(query)) l.build.masks[y.index] = own;
  if (!l.argument(SIZE_MAX, "return_attention_scores").flag(false)) return std::vector{y};
  return std::vector{y, made.weights};
}

// --- Attention and AdditiveAttention

// Of the query with the key, or the value where there is none.
Result<std::vector<TensorId>> attention_layer(Layer& l) {
  const std::vector<TensorId> inputs = l.tensors(0, "inputs");
  if (inputs.size() < 2 || inputs.size() > 3) return invalid_model("the layer needs a query, a value and perhaps a key");
  const TensorId query = inputs[0], value = inputs[1], key = inputs.back();
  const bool is_additive = l.kind() == "AdditiveAttention";
  const std::string mode = l.text("score_mode", "dot");
  TensorId scale, scores;
  if (l.flag("use_scale", is_additive)) {
    ORKNN_TRY_ASSIGN(scale, l.weight(0));
  }
  if (is_additive || mode == "concat") {
    const TensorId sums = l.add(l.unsqueeze(query, {2}), l.unsqueeze(key, {1}));
    TensorId grown = l.unary("Tanh", !is_additive && scale ? l.mul(sums, scale) : sums);
    if (is_additive && scale) grown = l.mul(grown, scale);
    scores = l.reduce("ReduceSum", grown, {-1}, false);
    if (!is_additive) {
      ORKNN_TRY_ASSIGN(const TensorId factor, l.weight(scale ? 1 : 0));
      scores = l.mul(scores, factor);
    }
  } else if (mode == "dot") {
    ORKNN_TRY_ASSIGN(scores, matrix_product(l, query, key, false, true));
    if (scale) scores = l.mul(scores, scale);
  } else {
    return unsupported("this score_mode is not supported").expected("dot or concat").found(mode);
  }
  const std::vector<TensorId> stated = l.tensors(1, "mask");
  TensorId of_query = l.mask_of(query), of_value = l.mask_of(value);
  if (stated.size() == 2) of_query = truth(l, stated[0]);
  if (!stated.empty()) of_value = truth(l, stated.back());
  if (of_value) scores = l.add(scores, as_terms(l, l.unsqueeze(of_value, {1})));
  if (l.argument(SIZE_MAX, "use_causal_mask").flag(l.flag("causal", false))) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(scores, "to hide later steps"));
    if (dims.size() != 3)
      return shape_mismatch("the layer needs sequences of vectors").found("scores of rank " + std::to_string(dims.size()));
    scores = masked_scores(l, scores, causal_mask(l, dims[1], dims[2]));
  }
  const TensorId weights = l.softmax(scores, -1);
  TensorId y = l.matmul(weights, value);
  if (of_query) {
    y = l.mul(y, l.unsqueeze(l.cast(of_query, l.dtype_of(y)), {2}));
    l.build.masks[y.index] = of_query;
  }
  if (!l.argument(SIZE_MAX, "return_attention_scores").flag(false)) return std::vector{y};
  return std::vector{y, weights};
}
}  // namespace

std::span<const Row> attention_rows() {
  static const Row rows[] = {
      {"MultiHeadAttention|GroupQueryAttention|GroupedQueryAttention", multi_head_attention},
      {"Attention|AdditiveAttention", attention_layer},
  };
  return rows;
}

}  // namespace orknn::importer::keras
