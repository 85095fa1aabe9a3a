// Attention and the fused transformer layers that tracing without gradients gives.
#include "import/lower/attention.h"

#include <cmath>

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

Result<TensorId> scaled_dot_product(Call& c) {
  if (c.number("dropout_p") != 0) c.warn_of_training("the dropout of attention");
  AttentionOptions options{c.optional_tensor("attn_mask"), c.flag("is_causal"), c.flag("enable_gqa"), std::nullopt};
  if (c.has("scale")) options.scale = c.number("scale");
  return attention(c, c.tensor("query"), c.tensor("key"), c.tensor("value"), options);
}

TensorId affine(Call& c, TensorId x, std::string_view weight, std::string_view bias) {
  return c.add(c.matmul(x, c.transpose(c.tensor(weight), {1, 0})), c.tensor(bias));
}

struct Heads {
  TensorId output, weights;  // [B, L, E]; [B, heads, L, S]
};
// Self-attention with the three projections in one matrix. Masks are true (or very negative) where not to look.
Result<Heads> self_attention(Call& c, TensorId x, const Dims& dims, int64_t heads) {
  const int64_t batch = dims[0], length = dims[1], width = dims[2];
  if (heads < 1 || width % heads != 0)
    return invalid_model("the width does not divide into heads").found(std::to_string(width) + " by " + std::to_string(heads));
  const TensorId all = affine(c, x, "qkv_weight", "qkv_bias");
  TensorId parts[3];
  for (int64_t i = 0; i < 3; ++i) {
    const TensorId part = c.slice(all, 2, i * width, (i + 1) * width);
    parts[i] = c.transpose(c.reshape(part, {batch, length, heads, width / heads}), {0, 2, 1, 3});
  }
  const TensorId queries = c.mul(parts[0], 1 / std::sqrt(static_cast<double>(width / heads)));
  TensorId scores = c.matmul(queries, c.transpose(parts[1], {0, 1, 3, 2}));
  if (TensorId mask = c.optional_tensor("mask")) {
    const int64_t rank = c.rank("mask");
    if (rank == 2 && c.integer_or("mask_type", 0) == 1) mask = c.unsqueeze(mask, {1, 2});  // [B, L]: which keys are padding
    if (rank == 3) mask = c.unsqueeze(mask, {1});
    scores = masked_scores(c, scores, mask, true);
  }
  const TensorId weights = c.softmax(scores, -1);
  const TensorId mixed = c.reshape(c.transpose(c.matmul(weights, parts[2]), {0, 2, 1, 3}), {batch, length, width});
  return Heads{affine(c, mixed, "proj_weight", "proj_bias"), weights};
}

Result<std::vector<TensorId>> native_multi_head_attention(Call& c, TensorId query, TensorId key, TensorId value) {
  if (c.rank("query") != 3) return invalid_model("attention needs [batch, length, width]");
  if (query != key || query != value)
    return unsupported("only self-attention is supported in this form").hint("trace the model with gradients enabled");
  ORKNN_TRY_ASSIGN(const Heads h, self_attention(c, query, c.dims("query"), c.integer("num_head")));
  if (!c.flag("need_weights")) return std::vector<TensorId>{h.output, {}};
  return std::vector<TensorId>{h.output, c.flag("average") ? c.reduce("ReduceMean", h.weights, {1}, false) : h.weights};
}

Result<TensorId> encoder_layer(Call& c, TensorId x) {
  if (c.rank("src") != 3) return invalid_model("a transformer layer needs [batch, length, width]");
  const auto norm = [&](TensorId y, const char* weight, const char* bias) {
    return c.emit("LayerNormalization", {y, c.tensor(weight), c.tensor(bias)},
                  {{"axis", int64_t{-1}}, {"epsilon", c.number("eps")}});
  };
  const auto feed_forward = [&](TensorId y) {
    const TensorId hidden = c.unary(c.flag("use_gelu") ? "Gelu" : "Relu", affine(c, y, "ffn_weight_1", "ffn_bias_1"));
    return affine(c, hidden, "ffn_weight_2", "ffn_bias_2");
  };
  const bool norm_first = c.flag("norm_first");
  ORKNN_TRY_ASSIGN(const Heads h, self_attention(c, norm_first ? norm(x, "norm_weight_1", "norm_bias_1") : x, c.dims("src"),
                                                 c.integer("num_heads")));
  x = c.add(x, h.output);
  if (!norm_first) x = norm(x, "norm_weight_1", "norm_bias_1");
  x = c.add(x, feed_forward(norm_first ? norm(x, "norm_weight_2", "norm_bias_2") : x));
  return norm_first ? x : norm(x, "norm_weight_2", "norm_bias_2");
}
}  // namespace

std::span<const Row> attention_rows() {
  static const Row rows[] = {
      {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0, bool "
       "is_causal=False, *, float? scale=None, bool enable_gqa=False)",
       scaled_dot_product},
      {"_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0, bool "
       "is_causal=False, *, Tensor? attn_mask=None, float? scale=None, bool enable_gqa=False)",
       with_unused<scaled_dot_product, 1>},
      {"_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0, "
       "bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool enable_gqa=False)",
       with_unused<scaled_dot_product, 1>},
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
  return rows;
}

}  // namespace orknn::importer::pytorch
