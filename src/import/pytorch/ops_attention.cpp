// Attention, spelled out as products and a softmax, and the fused transformer layers that tracing without gradients gives.
#include <cmath>
#include <limits>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// A truth value keeps where it is true; numbers are added to the scores.
TensorId with_mask(Call& c, TensorId scores, TensorId mask) {
  const DType t = c.dtype_of(scores);
  if (c.dtype_of(mask) == DType::Bool) return c.where(mask, scores, c.scalar(-std::numeric_limits<double>::infinity(), t));
  return c.add(scores, c.cast(mask, t));
}
// True on and below the diagonal.
TensorId causal_mask(Call& c, int64_t rows, int64_t columns) {
  return c.cast(c.emit("Trilu", {c.full(Dims{rows, columns}, 1, DType::Int32)}, {{"upper", int64_t{0}}}), DType::Bool);
}

Result<Value> scaled_dot_product(Call& c) {
  const int64_t rank = c.rank("query");
  if (rank < 2 || c.rank("key") < 2 || c.rank("value") < 2) return invalid_model("attention needs sequences of vectors");
  if (c.number("dropout_p") != 0) c.warn_of_training("the dropout of attention");
  const TensorId q = c.tensor("query");
  TensorId k = c.tensor("key"), v = c.tensor("value");
  const DType t = c.dtype_of(q);
  const double scale =
      c.has("scale") ? c.number("scale") : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(c.dims("query").back(), 1)));
  if (c.flag("enable_gqa") && rank >= 3 && c.rank("key") == rank) {
    // Each key head serves several query heads.
    const size_t heads = static_cast<size_t>(rank) - 3;
    const int64_t own = c.dims("key")[heads], wanted = c.dims("query")[heads];
    if (own < 1 || wanted % own != 0) return invalid_model("the heads of attention do not divide");
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < std::min<int64_t>(wanted, 1 << 16); ++i) positions.push_back(i / (wanted / own));
    const TensorId index = c.add_ints("heads", positions);
    k = c.gather(k, index, static_cast<int64_t>(heads));
    v = c.gather(v, index, static_cast<int64_t>(heads));
  }
  TensorId scores = c.mul(c.matmul(q, c.swap_axes(k, -2, -1)), c.scalar(scale, t));
  if (c.flag("is_causal"))
    scores = with_mask(
        c, scores,
        causal_mask(c, c.dims("query")[static_cast<size_t>(rank) - 2], c.dims("key")[static_cast<size_t>(c.rank("key")) - 2]));
  if (c.has("attn_mask")) scores = with_mask(c, scores, c.tensor("attn_mask"));
  return c.made(c.matmul(c.softmax(scores, -1), v));
}

TensorId affine(Call& c, TensorId x, TensorId weight, TensorId bias) {
  return c.add(c.matmul(x, c.transpose(weight, {1, 0})), bias);
}

struct Heads {
  TensorId output, weights;  // [B, L, E]; [B, heads, L, S]
};
// Self-attention with the three projections in one matrix. Masks are true (or very negative) where not to look.
Result<Heads> self_attention(Call& c, TensorId x, const Dims& dims, int64_t heads, TensorId mask, int64_t mask_type) {
  const int64_t batch = dims[0], length = dims[1], width = dims[2];
  if (heads < 1 || width % heads != 0)
    return invalid_model("the width does not divide into heads").found(std::to_string(width) + " by " + std::to_string(heads));
  const DType t = c.dtype_of(x);
  const TensorId all = affine(c, x, c.tensor("qkv_weight"), c.tensor("qkv_bias"));
  TensorId parts[3];
  for (int64_t i = 0; i < 3; ++i) {
    const TensorId part = c.slice(all, 2, i * width, (i + 1) * width);
    parts[i] = c.transpose(c.reshape(part, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  }
  TensorId scores =
      c.matmul(c.mul(parts[0], c.scalar(1 / std::sqrt(static_cast<double>(width / heads)), t)), c.swap_axes(parts[1], -2, -1));
  if (mask) {
    const auto rank = c.rank_of(mask).value_or(0);
    TensorId wide = mask;
    if (rank == 2 && mask_type == 1) wide = c.unsqueeze(mask, {1, 2});  // [B, L]: which keys are padding
    if (rank == 3) wide = c.unsqueeze(mask, {1});
    if (c.dtype_of(mask) == DType::Bool)
      scores = c.where(wide, c.scalar(-std::numeric_limits<double>::infinity(), t), scores);
    else
      scores = c.add(scores, c.cast(wide, t));
  }
  const TensorId weights = c.softmax(scores, -1);
  const TensorId mixed = c.reshape(c.transpose(c.matmul(weights, parts[2]), {0, 2, 1, 3}), {batch, length, width});
  return Heads{affine(c, mixed, c.tensor("proj_weight"), c.tensor("proj_bias")), weights};
}

Result<Value> native_multi_head_attention(Call& c) {
  if (c.rank("query") != 3) return invalid_model("attention needs [batch, length, width]");
  if (&c.handle("query") != &c.handle("key") || &c.handle("query") != &c.handle("value")) {
    if (c.tensor("query") != c.tensor("key") || c.tensor("query") != c.tensor("value"))
      return c.fail("only self-attention is supported in this form").hint("trace the model with gradients enabled");
  }
  ORKNN_TRY_ASSIGN(const Heads h,
                   self_attention(c, c.tensor("query"), c.dims("query"), c.integer("num_head"), c.optional_tensor("mask"),
                                  c.integer_or("mask_type", c.rank("query") == 3 ? 0 : 1)));
  ORKNN_TRY_ASSIGN(const Value output, c.made(h.output));
  if (!c.flag("need_weights")) return c.tuple({output, Value()});
  ORKNN_TRY_ASSIGN(const Value weights, c.made(c.flag("average") ? c.reduce("ReduceMean", h.weights, {1}, false) : h.weights));
  return c.tuple({output, weights});
}

Result<Value> encoder_layer(Call& c) {
  if (c.rank("src") != 3) return invalid_model("a transformer layer needs [batch, length, width]");
  const double eps = c.number("eps");
  const auto norm = [&](TensorId x, const char* weight, const char* bias) {
    return c.emit("LayerNormalization", {x, c.tensor(weight), c.tensor(bias)}, {{"axis", int64_t{-1}}, {"epsilon", eps}});
  };
  const auto attend = [&](TensorId x) {
    return self_attention(c, x, c.dims("src"), c.integer("num_heads"), c.optional_tensor("mask"), c.integer_or("mask_type", 0));
  };
  const auto feed_forward = [&](TensorId x) {
    const TensorId hidden =
        c.emit(c.flag("use_gelu") ? "Gelu" : "Relu", {affine(c, x, c.tensor("ffn_weight_1"), c.tensor("ffn_bias_1"))});
    return affine(c, hidden, c.tensor("ffn_weight_2"), c.tensor("ffn_bias_2"));
  };
  const bool norm_first = c.flag("norm_first");
  TensorId x = c.tensor("src");
  ORKNN_TRY_ASSIGN(const Heads h, attend(norm_first ? norm(x, "norm_weight_1", "norm_bias_1") : x));
  x = c.add(x, h.output);
  if (!norm_first) x = norm(x, "norm_weight_1", "norm_bias_1");
  x = c.add(x, feed_forward(norm_first ? norm(x, "norm_weight_2", "norm_bias_2") : x));
  if (!norm_first) x = norm(x, "norm_weight_2", "norm_bias_2");
  return c.made(x);
}

// Fused forms of scaled_dot_product_attention return what training needs besides the result.
template <size_t More>
Result<Value> fused_attention(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y, scaled_dot_product(c));
  std::vector<Value> results(More + 1);
  results[0] = y;
  return c.tuple(std::move(results));
}
}  // namespace

std::span<const Row> attention_rows() {
  static constexpr Row kRows[] = {
      {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0, bool "
       "is_causal=False, *, float? scale=None, bool enable_gqa=False)",
       scaled_dot_product},
      {"_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0, bool "
       "is_causal=False, *, Tensor? attn_mask=None, float? scale=None, bool enable_gqa=False)",
       fused_attention<1>},
      {"_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0, "
       "bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False)",
       fused_attention<1>},
      {"_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
       "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, bool average=True, "
       "int? mask_type=None)",
       native_multi_head_attention},
      {"_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, Tensor "
       "proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor norm_bias_1, "
       "Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor ffn_weight_2, Tensor "
       "ffn_bias_2, Tensor? mask=None, int? mask_type=None)",
       encoder_layer},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
