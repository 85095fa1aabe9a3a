// Operators of the com.microsoft domain that exported and optimized transformers are made of: attention with its masks and
// caches, rotary positions, embeddings, products with weights of few bits.
#include <algorithm>
#include <limits>

#include "import/onnx/layer.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

// --- heads

// [batch, steps, heads * size] as [batch, heads, steps, size].
TensorId to_heads(Layer& l, TensorId x, int64_t heads) { return l.transpose(l.reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3}); }
TensorId from_heads(Layer& l, TensorId x) { return l.reshape(l.transpose(x, {0, 2, 1, 3}), {0, 0, -1}); }

Result<int64_t> head_count(Layer& l, const std::string& attribute) {
  const int64_t heads = l.take_int(attribute).value_or(0);
  if (heads < 1 || heads > 1 << 16)
    return invalid_model("attribute '" + attribute + "' is needed").expected("at least 1").found(std::to_string(heads));
  return heads;
}

// --- masks. All of them are terms of the scores, shaped to broadcast to [batch, heads, steps, total].

// 0 where the condition holds, `hidden` elsewhere.
TensorId as_term(Layer& l, TensorId condition, double hidden, DType dtype) {
  return l.where(condition, l.add_scalar("seen", 0, dtype), l.add_scalar("hidden", hidden, dtype));
}

// 0, 1, ..., count - 1
TensorId positions(Layer& l, int64_t count) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i);
  return l.add_ints("positions", values);
}

struct Extents {
  int64_t batch = 0, steps = 0, past = 0, total = 0;
};

// What a mask of integers says: the lengths of the sequences, their ends and beginnings, or 1 for every key that may be seen.
Result<TensorId> mask_term(Layer& l, TensorId mask, const Extents& extents, double hidden, DType dtype) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(mask, "to read the mask"));
  const TensorId integers = l.cast(mask, DType::Int64);
  if (dims.size() == 1) {
    if (dims[0] != extents.batch && dims[0] != 2 * extents.batch)
      return unsupported("this form of mask is not supported").expected("one length, or an end and a beginning, per sequence");
    const TensorId keys = positions(l, extents.total);
    const auto column = [&](int64_t from) {
      return l.reshape(l.slice(integers, 0, from, from + extents.batch), {extents.batch, 1, 1, 1});
    };
    TensorId seen = l.binary("Less", keys, column(0));
    if (dims[0] == 2 * extents.batch) seen = l.binary("And", seen, l.binary("GreaterOrEqual", keys, column(extents.batch)));
    return as_term(l, seen, hidden, dtype);
  }
  const TensorId seen = l.binary("Greater", integers, l.add_int_scalar("zero", 0));
  const TensorId term = as_term(l, seen, hidden, dtype);
  if (dims.size() == 2) return l.unsqueeze(term, {1, 2});
  if (dims.size() == 3) return l.unsqueeze(term, {1});
  if (dims.size() != 4) return unsupported("a mask of this rank is not supported").found(ir::to_string(dims));
  return l.slice(term, {extents.past, 0}, {extents.past + extents.steps, extents.total}, {2, 3});  // of the longest sequence
}

TensorId sum_of_terms(Layer& l, TensorId a, TensorId b) { return a.is_none() ? b : b.is_none() ? a : l.add(a, b); }

// --- attention

struct Heads {
  TensorId q, k, v;  // [batch, heads, steps, size]
  TensorId past_key = {}, past_value = {};
  TensorId term = {};  // of the scores, or truth values
  Attributes attributes = {};
};

// The standard operator's first three outputs; the caches only when somebody reads them.
std::vector<TensorId> attend(Layer& l, Heads h, bool keeps_cache) {
  std::vector<TensorId> inputs{h.q, h.k, h.v};
  if (!h.term.is_none() || !h.past_key.is_none()) inputs.push_back(h.term);
  if (!h.past_key.is_none()) inputs.insert(inputs.end(), {h.past_key, h.past_value});
  return l.emit_all("Attention", std::move(inputs), std::move(h.attributes), keeps_cache ? 3 : 1);
}

Attributes attention_attributes(Layer& l, bool is_causal) {
  Attributes attributes;
  if (const double scale = l.take_float("scale").value_or(0); scale != 0) attributes.set("scale", scale);
  if (is_causal) attributes.set("is_causal", int64_t{1});
  return attributes;
}

bool reads(const Layer& l, size_t output) { return !l.node.output(output).is_none(); }

// One product gives queries, keys and values; the cache is one tensor [2, batch, heads, past, size].
Result<Layer::Outputs> attention_of(Layer& l, TensorId x, TensorId weight, TensorId bias, size_t mask, size_t past, size_t term) {
  ORKNN_TRY_ASSIGN(const int64_t heads, head_count(l, "num_heads"));
  if (l.take_flag("do_rotary")) return unsupported("do_rotary of Attention is not supported");
  if (l.take_flag("past_present_share_buffer")) return unsupported("a cache that is written in place is not supported");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to attend"));
  ORKNN_TRY_ASSIGN(const Dims columns, l.need_dims(weight, "to attend"));
  if (dims.size() != 3 || columns.size() != 2)
    return invalid_model("attention needs sequences of vectors").found(ir::to_string(dims));
  std::vector<int64_t> sizes = l.take_ints("qkv_hidden_sizes").value_or(std::vector<int64_t>(3, columns[1] / 3));
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[1] < 1 || sizes[2] < 1 || sizes[0] + sizes[1] + sizes[2] != columns[1])
    return invalid_model("the columns do not divide into queries, keys and values").found(ir::to_string(columns));
  TensorId projected = l.matmul(x, weight);
  if (!bias.is_none()) projected = l.add(projected, bias);
  const std::vector<TensorId> parts = l.split(projected, 2, sizes);
  Heads h{to_heads(l, parts[0], heads), to_heads(l, parts[1], heads), to_heads(l, parts[2], heads)};
  Extents extents{dims[0], dims[1], 0, dims[1]};
  if (l.has_input(past)) {
    ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(past), "to read the cache"));
    if (cache.size() != 5) return invalid_model("the cache has the wrong rank").expected("5").found(ir::to_string(cache));
    extents.past = cache[3];
    extents.total += cache[3];
    h.past_key = l.gather(l.input(past), l.add_int_scalar("keys", 0), 0);
    h.past_value = l.gather(l.input(past), l.add_int_scalar("values", 1), 0);
  }
  const double hidden = l.take_float("mask_filter_value").value_or(-10000);
  if (l.has_input(mask)) {
    ORKNN_TRY_ASSIGN(h.term, mask_term(l, l.input(mask), extents, hidden, l.dtype_of(x)));
  }
  h.term = sum_of_terms(l, h.term, l.input(term));
  h.attributes = attention_attributes(l, l.take_flag("unidirectional"));
  const bool keeps_cache = reads(l, 1);
  const std::vector<TensorId> results = attend(l, std::move(h), keeps_cache);
  Layer::Outputs outputs{from_heads(l, results[0])};
  if (keeps_cache) outputs.push_back(l.stack({results[1], results[2]}, 0));
  return outputs;
}

Result<Layer::Outputs> attention(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1}));
  return attention_of(l, l.input(0), l.input(1), l.input(2), 3, 4, 5);
}

Result<Layer::Outputs> quantized_attention(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 3, 4}));
  const auto real = [&](size_t data, size_t scale, size_t zero_point) {
    std::vector<TensorId> inputs{l.input(data), l.input(scale)};
    if (l.has_input(zero_point)) inputs.push_back(l.input(zero_point));
    return l.emit_kept("DequantizeLinear", std::move(inputs), {{"axis", int64_t{1}}});
  };
  return attention_of(l, real(0, 3, 6), real(1, 4, 7), l.input(2), 5, 8, l.node.inputs.size());
}

// Query, key and value as they are, packed into one or two of them, or as heads already.
Result<Heads> separate_heads(Layer& l, int64_t heads) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(0), "to attend"));
  const auto packed = [&](TensorId x, int64_t which) {  // [batch, steps, heads, several, size]
    return l.transpose(l.gather(x, l.add_int_scalar("part", which), 3), {0, 2, 1, 3});
  };
  if (rank == 5) return Heads{packed(l.input(0), 0), packed(l.input(0), 1), packed(l.input(0), 2)};
  ORKNN_TRY(l.need_inputs({1}));
  TensorId q = l.input(0), k = l.input(1), v = l.input(2);
  ORKNN_TRY_ASSIGN(const int64_t key_rank, l.need_rank(k, "to attend"));
  if (l.has_input(3)) {
    ORKNN_TRY_ASSIGN(const Dims width, l.need_dims(q, "to add the bias"));
    ORKNN_TRY_ASSIGN(const Dims bias, l.need_dims(l.input(3), "to add it"));
    if (bias.size() != 1 || width.size() != 3 || bias[0] < 2 * width[2])
      return invalid_model("the bias does not fit the queries");
    const auto biased = [&](TensorId x, int64_t from, int64_t to) { return l.add(x, l.slice(l.input(3), 0, from, to)); };
    q = biased(q, 0, width[2]);
    if (key_rank == 3) {
      k = biased(k, width[2], 2 * width[2]);
      if (!v.is_none()) v = biased(v, 2 * width[2], bias[0]);
    }
  }
  if (key_rank == 5) return Heads{to_heads(l, q, heads), packed(k, 0), packed(k, 1)};
  ORKNN_TRY(l.need_inputs({2}));
  if (key_rank == 4) return Heads{to_heads(l, q, heads), k, v};
  return Heads{to_heads(l, q, heads), to_heads(l, k, heads), to_heads(l, v, heads)};
}

Result<Layer::Outputs> multi_head_attention(Layer& l) {
  ORKNN_TRY(l.need_inputs({0}));
  ORKNN_TRY_ASSIGN(const int64_t heads, head_count(l, "num_heads"));
  ORKNN_TRY_ASSIGN(Heads h, separate_heads(l, heads));
  if (l.has_input(8) || l.has_input(9)) return unsupported("a cache that is written in place is not supported");
  if (reads(l, 3)) return unsupported("the scores as an output are not supported");
  ORKNN_TRY_ASSIGN(const Dims q, l.need_dims(h.q, "to attend"));
  ORKNN_TRY_ASSIGN(const Dims k, l.need_dims(h.k, "to attend"));
  Extents extents{q[0], q[2], 0, k[2]};
  if (l.has_input(6)) {
    ORKNN_TRY(l.need_inputs({7}));
    ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(6), "to read the cache"));
    if (cache.size() != 4) return invalid_model("the cache has the wrong rank").expected("4").found(ir::to_string(cache));
    extents.past = cache[2];
    extents.total += cache[2];
    h.past_key = l.input(6);
    h.past_value = l.input(7);
  }
  const double hidden = l.take_float("mask_filter_value").value_or(-10000);
  if (l.has_input(4)) {
    ORKNN_TRY_ASSIGN(h.term, mask_term(l, l.input(4), extents, hidden, l.dtype_of(h.q)));
  }
  h.term = sum_of_terms(l, h.term, l.input(5));
  h.attributes = attention_attributes(l, l.take_flag("unidirectional"));
  std::vector<TensorId> results = attend(l, std::move(h), reads(l, 1) || reads(l, 2));
  results[0] = from_heads(l, results[0]);
  return results;
}

// --- language models: few heads of keys and values, positions that follow from the lengths

struct Rotation {
  TensorId cos, sin;
  bool interleaved = false;
};
TensorId rotated(Layer& l, TensorId x, TensorId ids, const Rotation& r) {
  return l.emit("RotaryEmbedding", {x, r.cos, r.sin, ids}, {{"interleaved", int64_t{r.interleaved}}});
}

// Keys or values that were kept, then the new ones, then zeros. `first`: where the new ones begin, [batch, 1]; all that was kept
// is valid unless the result is not longer than that.
Result<TensorId> extended(Layer& l, TensorId past, TensorId fresh, TensorId first, int64_t total) {
  if (past.is_none()) return fresh;
  ORKNN_TRY_ASSIGN(const Dims kept, l.need_dims(past, "to read the cache"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(fresh, "to extend the cache"));
  const TensorId whole = l.concat({past, fresh}, 2);
  if (total == kept[2] + dims[2]) return whole;
  if (dims[0] != 1) return unsupported("a cache of fixed length is supported for one sequence").found(ir::to_string(dims));
  const TensorId keys = positions(l, total), begin = l.reshape(first, {1});
  const TensorId fresh_place = l.add(l.sub(keys, begin), l.add_int_scalar("kept", kept[2]));
  const TensorId last = l.add_int_scalar("last", kept[2] + dims[2] - 1);  // places after the new ones are hidden by the mask
  const TensorId index = l.where(l.binary("Less", keys, begin), keys, l.binary("Min", fresh_place, last));
  const TensorId found = l.gather(whole, index, 2), end = l.add(begin, l.add_int_scalar("fresh", dims[2]));
  return l.where(l.reshape(l.binary("Less", keys, end), {1, 1, total, 1}), found, l.scalar_like(found, 0));
}

// Which keys a query sees, [batch, 1, steps, total]: those up to its own place, of these only the `window` last ones unless it is
// negative.
TensorId causal_window(Layer& l, TensorId places, int64_t total, int64_t window) {
  const TensorId keys = positions(l, total), own = l.unsqueeze(places, {1, 3});
  const TensorId seen = l.binary("LessOrEqual", keys, own);
  if (window < 0) return seen;
  return l.binary("And", seen, l.binary("GreaterOrEqual", keys, l.sub(own, l.add_int_scalar("before", window - 1))));
}

// How many keys there are in all. Models compute it from the shape of a mask; a cache that holds more is of fixed length.
int64_t total_length(Layer& l, size_t input, int64_t past, int64_t steps) {
  l.settle(l.input(input));
  const TensorData* stated = l.has_input(input) ? l.constant(input) : nullptr;
  if (!stated || stated->count() != 1) return past + steps;
  return std::clamp<int64_t>(to_ints(stated->view())[0], past, past + steps);
}

Status refuse_group_query_options(Layer& l) {
  if (l.has_input(11) || l.take_int("smooth_softmax").value_or(0) > 0)
    return unsupported("a softmax with a sink is not supported");
  for (const char* quantized : {"k_quant_type", "v_quant_type"})
    if (const auto kind = l.take_string(quantized); kind && *kind != "NONE")
      return unsupported("a cache of integers is not supported");
  return {};
}

Result<Layer::Outputs> group_query_attention(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 5}));
  ORKNN_TRY(refuse_group_query_options(l));
  ORKNN_TRY_ASSIGN(const int64_t heads, head_count(l, "num_heads"));
  ORKNN_TRY_ASSIGN(const int64_t key_heads, head_count(l, "kv_num_heads"));
  TensorId q = l.input(0), k = l.input(1), v = l.input(2);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(q, "to attend"));
  if (dims.size() != 3) return invalid_model("attention needs sequences of vectors").found(ir::to_string(dims));
  if (k.is_none()) {  // all in one
    const int64_t size = dims[2] / (heads + 2 * key_heads);
    const std::vector<TensorId> parts = l.split(q, 2, {heads * size, key_heads * size, key_heads * size});
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    ORKNN_TRY(l.need_inputs({2}));
  }
  Heads h{to_heads(l, q, heads), to_heads(l, k, key_heads), to_heads(l, v, key_heads)};
  int64_t past = 0;
  if (l.has_input(3)) {
    ORKNN_TRY(l.need_inputs({4}));
    ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(3), "to read the cache"));
    if (cache.size() != 4) return invalid_model("the cache has the wrong rank").expected("4").found(ir::to_string(cache));
    past = cache[2];
  }
  const int64_t steps = dims[1], total = total_length(l, 6, past, steps);
  // seqlens_k is the place of the last valid key of each sequence.
  const TensorId last = l.reshape(l.cast(l.input(5), DType::Int64), {-1, 1});
  const TensorId first = l.binary("Max", l.sub(last, l.add_int_scalar("before", steps - 1)), l.add_int_scalar("zero", 0));
  const TensorId places = l.add(first, positions(l, steps));  // [batch, steps]
  const bool interleaved = l.take_flag("rotary_interleaved");
  if (l.take_flag("do_rotary")) {
    ORKNN_TRY(l.need_inputs({7, 8}));
    const Rotation rotation{l.input(7), l.input(8), interleaved};
    const TensorId ids = l.expand(l.has_input(9) ? l.cast(l.input(9), DType::Int64) : places, Dims{dims[0], steps});
    h.q = rotated(l, h.q, ids, rotation);
    h.k = rotated(l, h.k, ids, rotation);
  }
  ORKNN_TRY_ASSIGN(h.k, extended(l, l.input(3), h.k, first, total));
  ORKNN_TRY_ASSIGN(h.v, extended(l, l.input(4), h.v, first, total));
  h.term = causal_window(l, places, total, l.take_int("local_window_size").value_or(-1));
  if (l.has_input(10)) {
    const TensorId hidden = as_term(l, h.term, -std::numeric_limits<double>::infinity(), l.dtype_of(h.q));
    h.term = l.add(hidden, l.input(10));
  }
  h.attributes = attention_attributes(l, false);
  if (const double cap = l.take_float("softcap").value_or(0); cap > 0) h.attributes.set("softcap", cap);
  const TensorId keys = h.k, values = h.v;
  const std::vector<TensorId> results = attend(l, std::move(h), false);
  return Layer::Outputs{from_heads(l, results[0]), keys, values};
}

// Positions are one number, where the sequence begins, or one per step.
Result<TensorId> rotary_embedding(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2, 3}));
  if (l.take_flag("is_packed_batching")) return unsupported("packed sequences are not supported");
  const double scale = l.take_float("scale").value_or(1);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.input(0), "to rotate it"));
  if (dims.size() != 3 && dims.size() != 4)
    return invalid_model("the input has the wrong rank").expected("3 or 4").found(ir::to_string(dims));
  const int64_t steps = dims.size() == 4 ? dims[2] : dims[1];
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(1), "to read the positions"));
  TensorId ids = l.cast(l.input(1), DType::Int64);
  if (rank < 2) ids = l.add(l.reshape(ids, {1, 1}), positions(l, steps));
  Attributes attributes{{"interleaved", int64_t{l.take_flag("interleaved")}}};
  ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(2), "to rotate by it"));
  int64_t heads = l.take_int("num_heads").value_or(0);
  const int64_t rotated_size = l.take_int("rotary_embedding_dim").value_or(0);
  if (heads == 0 && dims.size() == 3 && !cache.empty() && cache.back() > 0) heads = dims[2] / (2 * cache.back());
  if (dims.size() == 3) attributes.set("num_heads", heads);
  if (rotated_size > 0) attributes.set("rotary_embedding_dim", rotated_size);
  const TensorId y =
      l.emit("RotaryEmbedding", {l.input(0), l.input(2), l.input(3), l.expand(ids, Dims{dims[0], steps})}, std::move(attributes));
  return scale == 1 ? y : l.mul(y, scale);
}

// --- embeddings

Result<Layer::Outputs> embed_layer_normalization(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 2, 3, 5, 6}));
  ORKNN_TRY_ASSIGN(const Dims ids, l.need_dims(l.input(0), "to look up positions"));
  if (ids.size() != 2) return invalid_model("the ids have the wrong rank").expected("2").found(ir::to_string(ids));
  TensorId sum = l.gather(l.input(2), l.input(0), 0);
  sum = l.add(sum, l.has_input(8) ? l.gather(l.input(3), l.input(8), 0) : l.slice(l.input(3), 0, 0, ids[1]));
  if (l.has_input(1) && l.has_input(4)) sum = l.add(sum, l.gather(l.input(4), l.input(1), 0));
  const double epsilon = l.take_float("epsilon").value_or(1e-12);
  Layer::Outputs outputs{
      l.emit("LayerNormalization", {sum, l.input(5), l.input(6)}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}})};
  l.take_int("mask_index_type");
  if (reads(l, 1) || reads(l, 2))
    outputs.push_back(l.has_input(7) ? l.cast(l.reduce("ReduceSum", l.input(7), {1}, false), DType::Int32)
                                     : l.full(Dims{ids[0]}, 0, DType::Int32));
  if (reads(l, 2)) outputs.push_back(sum);
  return outputs;
}

// --- products with weights of few bits

// Numbers of `bits` bits, the lowest bits of a byte first, as bytes; `row_bytes` hold one row of `columns`.
TensorData unpacked(const TensorData& packed, int64_t rows, int64_t columns, int64_t row_bytes, int64_t bits) {
  TensorData out = TensorData::allocate(DType::UInt8, {rows, columns});
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  const uint8_t* from = packed.as<uint8_t>();
  const int64_t per_byte = 8 / bits, low_bits = (1 << bits) - 1;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      *to++ = static_cast<uint8_t>(from[r * row_bytes + c / per_byte] >> (c % per_byte * bits) & low_bits);
  return out;
}

struct FewBits {
  int64_t rows = 0, depth = 0, bits = 0, block = 0, blocks = 0;
};
Result<FewBits> few_bits(Layer& l) {
  FewBits f{l.take_int("N").value_or(0), l.take_int("K").value_or(0), l.take_int("bits").value_or(4),
            l.take_int("block_size").value_or(0)};
  l.take_int("accuracy_level");
  constexpr int64_t kMost = int64_t{1} << 31;
  if (f.rows < 1 || f.depth < 1 || f.block < 8 || f.rows > kMost || f.depth > kMost || f.block > kMost)
    return invalid_model("N, K and block_size do not describe a matrix");
  if (f.bits != 2 && f.bits != 4 && f.bits != 8)
    return unsupported("weights of " + std::to_string(f.bits) + " bits are not supported").expected("2, 4 or 8");
  f.blocks = (f.depth + f.block - 1) / f.block;
  return f;
}

// The zero points of all blocks, as bytes [rows, blocks]; none where they are numbers of the scales' type.
Result<TensorId> packed_zero_points(Layer& l, const FewBits& f) {
  if (!l.has_input(3)) {
    const TensorData middle = convert(TensorData::scalar<int64_t>(int64_t{1} << (f.bits - 1)).view(), DType::UInt8);
    return l.expand(l.add_constant("middle", middle), Dims{f.rows, f.blocks});
  }
  const int64_t row_bytes = (f.blocks * f.bits + 7) / 8;
  const TensorData* stored = l.constant(3);
  if (!stored || stored->dtype() != DType::UInt8 || stored->count() != f.rows * row_bytes)
    return unsupported("these zero points are not supported").expected("constant bytes, the zero points of a row packed");
  return l.add_constant("zero_points", unpacked(*stored, f.rows, f.blocks, row_bytes, f.bits));
}

Result<TensorId> matmul_few_bits(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  ORKNN_TRY_ASSIGN(const FewBits f, few_bits(l));
  if (l.has_input(4)) return unsupported("blocks in another order (g_idx) are not supported");
  const TensorData* stored = l.constant(1);
  const int64_t block_bytes = f.block * f.bits / 8;
  if (!stored || stored->dtype() != DType::UInt8 || stored->count() != f.rows * f.blocks * block_bytes)
    return unsupported("the weights are not as N, K and block_size say").expected("constant bytes [N, blocks, bytes of a block]");
  const TensorId data = l.add_constant("weights", unpacked(*stored, f.rows, f.blocks * f.block, f.blocks * block_bytes, f.bits));
  const TensorId scales = l.reshape(l.input(2), {f.rows, f.blocks});
  TensorId weight;
  if (l.has_input(3) && l.dtype(3) == l.dtype(2)) {  // zero points that are no integers
    const auto per_element = [&](TensorId x) { return l.unsqueeze(l.reshape(x, {f.rows, f.blocks}), {2}); };
    const TensorId blocks = l.reshape(l.cast(data, l.dtype(2)), {f.rows, f.blocks, f.block});
    weight = l.reshape(l.mul(l.sub(blocks, per_element(l.input(3))), per_element(scales)), {f.rows, f.blocks * f.block});
  } else {
    ORKNN_TRY_ASSIGN(const TensorId zero_points, packed_zero_points(l, f));
    weight = l.emit_kept("DequantizeLinear", {data, scales, zero_points}, {{"axis", int64_t{1}}, {"block_size", f.block}});
  }
  if (f.blocks * f.block != f.depth) weight = l.slice(weight, 1, 0, f.depth);
  const TensorId y = l.matmul(l.input(0), l.transpose(l.cast(weight, l.dtype(0)), {1, 0}));
  return l.has_input(5) ? l.add(y, l.input(5)) : y;
}

// A table of numbers of few bits whose rows are picked before they are scaled. Bytes hold 8 / bits numbers along the last axis.
Result<TensorId> gather_few_bits(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  const int64_t bits = l.take_int("bits").value_or(4), block = l.take_int("block_size").value_or(128);
  ORKNN_TRY_ASSIGN(const Dims packed, l.need_dims(l.input(0), "to unpack it"));
  ORKNN_TRY_ASSIGN(const int64_t picked_rank, l.need_rank(l.input(1), "to pick by it"));
  const int64_t rank = std::ssize(packed);
  ORKNN_TRY_ASSIGN(const int64_t gathered, normalize_axis(l.take_int("gather_axis").value_or(0), rank));
  ORKNN_TRY_ASSIGN(const int64_t quantized, normalize_axis(l.take_int("quantize_axis").value_or(1), rank));
  if (gathered == quantized) return unsupported("picking along the axis of the blocks is not supported");
  if (block < 1) return invalid_model("illegal block_size").found(std::to_string(block));
  const bool is_packed = l.dtype(0) == DType::UInt8 && bits < 8;
  if (is_packed && bits != 2 && bits != 4)
    return unsupported("weights of " + std::to_string(bits) + " bits are not supported").expected("2, 4 or 8");
  const auto numbers = [&](size_t i, std::string_view role) -> Result<TensorId> {
    if (!is_packed) return l.input(i);
    const TensorData* stored = l.constant(i);
    if (!stored || stored->dtype() != DType::UInt8 || stored->dims().empty())
      return unsupported("packed numbers that are computed are not supported").expected("constant bytes");
    Dims dims = stored->dims();
    const int64_t row_bytes = dims.back(), rows = row_bytes > 0 ? stored->count() / row_bytes : 0, columns = row_bytes * 8 / bits;
    dims.back() = columns;
    return l.add_constant(role, unpacked(*stored, rows, columns, row_bytes, bits).reshaped(dims));
  };
  const auto rows_of = [&](TensorId x) { return l.gather(x, l.input(1), gathered); };
  ORKNN_TRY_ASSIGN(const TensorId data, numbers(0, "numbers"));
  const TensorId scales = rows_of(l.input(2));
  std::vector<TensorId> inputs{rows_of(data), scales};
  if (l.has_input(3)) {
    ORKNN_TRY_ASSIGN(TensorId zero_points, numbers(3, "zero_points"));
    ORKNN_TRY_ASSIGN(const Dims of_scales, l.need_dims(l.input(2), "to cut the zero points"));
    zero_points = l.slice(zero_points, rank - 1, 0, of_scales.back());  // the last byte of a row may be half full
    inputs.push_back(rows_of(zero_points));
  } else if (l.dtype(0) == DType::UInt8) {
    const TensorData middle = convert(TensorData::scalar<int64_t>(int64_t{1} << (bits - 1)).view(), DType::UInt8);
    inputs.push_back(l.emit("Expand", {l.add_constant("middle", middle), l.unary("Shape", scales)}));
  }
  const int64_t axis = quantized > gathered ? quantized + picked_rank - 1 : quantized;
  return l.emit_kept("DequantizeLinear", std::move(inputs), {{"axis", axis}, {"block_size", block}});
}

// --- pieces of diffusion models

Result<TensorId> group_norm(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  const int64_t groups = l.take_int("groups").value_or(0);
  if (groups < 1) return invalid_model("attribute 'groups' is needed").expected("at least 1").found(std::to_string(groups));
  const bool channels_last = l.take_flag("channels_last", true), has_swish = l.take_flag("activation");
  const double epsilon = l.take_float("epsilon").value_or(1e-5);
  TensorId x = l.input(0);
  if (channels_last) {
    ORKNN_TRY_ASSIGN(x, l.channels_first(x));
  }
  const auto parameter = [&](size_t i) { return l.cast(l.input(i), l.dtype_of(x)); };
  x = l.emit("GroupNormalization", {x, parameter(1), parameter(2)}, {{"num_groups", groups}, {"epsilon", epsilon}});
  if (has_swish) x = l.unary("Swish", x);
  if (!channels_last) return x;
  return l.channels_last(x);
}

Result<TensorId> bias_split_gelu(Layer& l, TensorId x, TensorId bias) {
  const TensorId sum = l.add(x, bias);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(sum, "to split it"));
  if (dims.empty() || dims.back() % 2 != 0)
    return invalid_model("the last axis does not divide in two").found(ir::to_string(dims));
  const int64_t half = dims.back() / 2;
  const std::vector<TensorId> parts = l.split(sum, static_cast<int64_t>(dims.size()) - 1, {half, half});
  return l.mul(parts[0], l.unary("Gelu", parts[1]));
}

TensorId bias_add(Layer& l, TensorId x, TensorId bias, TensorId skip) { return l.add(l.add(x, bias), skip); }

}  // namespace

std::span<const Row> microsoft_attention_rows() {
  static const Row rows[] = {
      {"com.microsoft:Attention", attention},
      {"com.microsoft:QAttention", quantized_attention},
      {"com.microsoft:MultiHeadAttention", multi_head_attention},
      {"com.microsoft:GroupQueryAttention", group_query_attention},
      {"com.microsoft:RotaryEmbedding", rotary_embedding},
      {"com.microsoft:EmbedLayerNormalization", embed_layer_normalization},
      {"com.microsoft:MatMulNBits", matmul_few_bits},
      {"com.microsoft:GatherBlockQuantized", gather_few_bits},
      {"com.microsoft:GroupNorm", group_norm},
      {"com.microsoft:BiasSplitGelu", bias_split_gelu},
      {"com.microsoft:BiasAdd", bias_add},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
