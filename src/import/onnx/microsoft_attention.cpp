// Operators of the com.microsoft domain that exported and optimized transformers are made of: attention with its masks and
// caches, rotary positions, embeddings.
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
    // 3 * batch + 2: the lengths, then where the queries and the keys of each sequence begin when all are packed.
    if (dims[0] != extents.batch && dims[0] != 2 * extents.batch && dims[0] != 3 * extents.batch + 2)
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

// What the standard operator hands out as its fourth output.
enum class Scores : int64_t { None = -1, Masked = 2, Shares = 3 };
constexpr size_t kScores = 3;

// The standard operator's first three outputs, and the scores when they are asked for; the caches only when somebody reads them.
std::vector<TensorId> attend(Layer& l, Heads h, bool keeps_cache, Scores scores = Scores::None) {
  std::vector<TensorId> inputs{h.q, h.k, h.v};
  if (!h.term.is_none() || !h.past_key.is_none()) inputs.push_back(h.term);
  if (!h.past_key.is_none()) inputs.insert(inputs.end(), {h.past_key, h.past_value});
  if (scores == Scores::None) return l.emit_all("Attention", std::move(inputs), std::move(h.attributes), keeps_cache ? 3 : 1);
  h.attributes.set("qk_matmul_output_mode", static_cast<int64_t>(scores));
  return l.emit_all("Attention", std::move(inputs), std::move(h.attributes), kScores + 1);
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
  const auto fits = [&](int64_t size) { return size >= 1 && size <= columns[1]; };
  if (sizes.size() != 3 || !std::ranges::all_of(sizes, fits) || sizes[0] + sizes[1] + sizes[2] != columns[1])
    return invalid_model("the columns do not divide into queries, keys and values").found(ir::to_string(columns));
  TensorId projected = l.matmul(x, weight);
  if (!bias.is_none()) projected = l.add(projected, bias);
  const std::vector<TensorId> parts = l.split(projected, 2, sizes);
  Heads h{to_heads(l, parts[0], heads), to_heads(l, parts[1], heads), to_heads(l, parts[2], heads)};
  Extents extents{dims[0], dims[1], 0, dims[1]};
  if (l.has_input(past)) {
    ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(past), "to read the cache", 5));
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
Result<Heads> separate_heads(Layer& l, int64_t heads, TensorId bias) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(0), "to attend"));
  const auto packed = [&](TensorId x, int64_t which) {  // [batch, steps, heads, several, size]
    return l.transpose(l.gather(x, l.add_int_scalar("part", which), 3), {0, 2, 1, 3});
  };
  if (rank == 5) return Heads{packed(l.input(0), 0), packed(l.input(0), 1), packed(l.input(0), 2)};
  ORKNN_TRY(l.need_inputs({1}));
  TensorId q = l.input(0), k = l.input(1), v = l.input(2);
  ORKNN_TRY_ASSIGN(const int64_t key_rank, l.need_rank(k, "to attend"));
  if (!bias.is_none()) {
    ORKNN_TRY_ASSIGN(const Dims width, l.need_dims(q, "to add the bias"));
    ORKNN_TRY_ASSIGN(const Dims terms, l.need_dims(bias, "to add it"));
    if (terms.size() != 1 || width.size() != 3 || terms[0] < 2 * width[2])
      return invalid_model("the bias does not fit the queries");
    const auto biased = [&](TensorId x, int64_t from, int64_t to) { return l.add(x, l.slice(bias, 0, from, to)); };
    q = biased(q, 0, width[2]);
    if (key_rank == 3) {
      k = biased(k, width[2], 2 * width[2]);
      if (!v.is_none()) v = biased(v, 2 * width[2], terms[0]);
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
  ORKNN_TRY_ASSIGN(Heads h, separate_heads(l, heads, l.input(3)));
  if (l.has_input(8) || l.has_input(9)) return unsupported("a cache that is written in place is not supported");
  ORKNN_TRY_ASSIGN(const Dims q, l.need_dims(h.q, "to attend"));
  ORKNN_TRY_ASSIGN(const Dims k, l.need_dims(h.k, "to attend"));
  Extents extents{q[0], q[2], 0, k[2]};
  if (l.has_input(6)) {
    ORKNN_TRY(l.need_inputs({7}));
    ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(6), "to read the cache", 4));
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
  const bool is_causal = l.take_flag("unidirectional"), has_more_keys = extents.total > extents.past + extents.steps;
  if (is_causal && has_more_keys) {  // ONNX Runtime lets the last query see all keys
    const TensorId last = l.add_int_scalar("last", extents.steps - 1), own = l.unsqueeze(positions(l, extents.steps), {1});
    const TensorId seen =
        l.binary("Or", l.binary("LessOrEqual", positions(l, extents.total), l.add(own, l.add_int_scalar("past", extents.past))),
                 l.binary("Equal", own, last));
    h.term = sum_of_terms(l, h.term, as_term(l, seen, -std::numeric_limits<double>::infinity(), l.dtype_of(h.q)));
  }
  h.attributes = attention_attributes(l, is_causal && !has_more_keys);
  std::vector<TensorId> results =
      attend(l, std::move(h), reads(l, 1) || reads(l, 2), reads(l, kScores) ? Scores::Masked : Scores::None);
  results[0] = from_heads(l, results[0]);
  if (results.size() > kScores)  // what is hidden is the least number, not infinity
    results[kScores] = l.with_scalar("Max", results[kScores], -std::numeric_limits<float>::max());
  return results;
}

// One step of a decoder. A cache of fixed length is written where the lengths so far say, unless the keys are those of an
// encoder.
Result<Layer::Outputs> decoder_attention(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  if (l.has_input(9)) return unsupported("caches of several beams are not supported");
  if (reads(l, kScores)) return unsupported("the scores as an output are not supported");
  l.take_int("output_qk");
  ORKNN_TRY_ASSIGN(const int64_t heads, head_count(l, "num_heads"));
  ORKNN_TRY_ASSIGN(Heads h, separate_heads(l, heads, l.input(10)));
  ORKNN_TRY_ASSIGN(const Dims q, l.need_dims(h.q, "to attend"));
  ORKNN_TRY_ASSIGN(const Dims k, l.need_dims(h.k, "to attend"));
  if (q[2] != 1) return invalid_model("attention of a decoder takes one step at a time").found(ir::to_string(q));
  const double hidden = l.take_float("mask_filter_value").value_or(-10000);
  const auto mask = [&](int64_t past, int64_t total) -> Result<TensorId> {
    if (!l.has_input(3)) return l.input(4);
    ORKNN_TRY_ASSIGN(const TensorId term, mask_term(l, l.input(3), {q[0], q[2], past, total}, hidden, l.dtype_of(h.q)));
    return sum_of_terms(l, term, l.input(4));
  };
  h.attributes = attention_attributes(l, false);
  const bool shares_buffer = l.take_flag("past_present_share_buffer");
  if (!l.has_input(5)) {
    ORKNN_TRY_ASSIGN(h.term, mask(0, k[2]));
    std::vector<TensorId> results = attend(l, std::move(h), reads(l, 1) || reads(l, 2));
    results[0] = from_heads(l, results[0]);
    return results;
  }
  ORKNN_TRY(l.need_inputs({6}));
  ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(5), "to read the cache", 4));
  if (!shares_buffer) {
    h.past_key = l.input(5);
    h.past_value = l.input(6);
    ORKNN_TRY_ASSIGN(h.term, mask(cache[2], cache[2] + 1));
    std::vector<TensorId> results = attend(l, std::move(h), true);
    results[0] = from_heads(l, results[0]);
    return results;
  }
  ORKNN_TRY(l.need_inputs({7}));
  const TensorId places = l.reshape(positions(l, cache[2]), {1, 1, cache[2], 1});
  const TensorId now = l.reshape(l.cast(l.input(7), DType::Int64), {1, 1, 1, 1});
  const TensorId is_now = l.binary("Equal", places, now);
  h.k = l.where(is_now, h.k, l.input(5));
  h.v = l.where(is_now, h.v, l.input(6));
  const TensorId seen = l.transpose(l.binary("LessOrEqual", places, now), {0, 1, 3, 2});
  ORKNN_TRY_ASSIGN(h.term, mask(0, cache[2]));
  if (h.term.is_none()) {
    h.term = seen;
  } else {  // of the keys so far: the rest is masked
    ORKNN_TRY_ASSIGN(const Dims stated, l.need_dims(h.term, "to mask by it"));
    if (!stated.empty() && stated.back() == cache[2])
      h.term = l.add(h.term, as_term(l, seen, -std::numeric_limits<double>::infinity(), l.dtype_of(h.q)));
  }
  const TensorId keys = h.k, values = h.v;
  const std::vector<TensorId> results = attend(l, std::move(h), false);
  return Layer::Outputs{from_heads(l, results[0]), keys, values};
}

// --- language models: few heads of keys and values, positions that follow from the lengths

struct Rotation {
  TensorId cos, sin;
  bool interleaved = false;
};
// As much of each head as the tables have angles for.
TensorId rotated(Layer& l, TensorId x, TensorId ids, const Rotation& r) {
  Attributes attributes{{"interleaved", int64_t{r.interleaved}}};
  if (const auto table = l.dims_of(r.cos); table && !table->empty()) attributes.set("rotary_embedding_dim", 2 * table->back());
  return l.emit("RotaryEmbedding", {x, r.cos, r.sin, ids}, std::move(attributes));
}

// Keys or values that were kept, then the new ones, then zeros. `first`: where the new ones begin, [batch, 1]; all that was kept
// is valid unless the result is not longer than that.
Result<TensorId> extended(Layer& l, TensorId past, TensorId fresh, TensorId first, int64_t total) {
  if (past.is_none()) return fresh;
  ORKNN_TRY_ASSIGN(const Dims kept, l.need_dims(past, "to read the cache"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(fresh, "to extend the cache"));
  if (kept.size() != 4 || dims.size() != 4)
    return invalid_model("the cache has the wrong rank").expected("4").found(ir::to_string(kept.size() != 4 ? kept : dims));
  const TensorId whole = l.concat({past, fresh}, 2);
  if (total == kept[2] + dims[2]) return whole;
  const TensorId keys = positions(l, total);
  const TensorId fresh_place = l.add(l.sub(keys, first), l.add_int_scalar("kept", kept[2]));
  const TensorId last = l.add_int_scalar("last", kept[2] + dims[2] - 1);  // places after the new ones are hidden by the mask
  const TensorId index = l.where(l.binary("Less", keys, first), keys, l.binary("Min", fresh_place, last));
  const TensorId found =
      dims[0] == 1 ? l.gather(whole, l.reshape(index, {total}), 2)
                   : l.gather_elements(whole, l.expand(l.unsqueeze(index, {1, 3}), Dims{dims[0], dims[1], total, dims[3]}), 2);
  const TensorId end = l.add(first, l.add_int_scalar("fresh", dims[2]));
  return l.where(l.unsqueeze(l.binary("Less", keys, end), {1, 3}), found, l.scalar_like(found, 0));
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
std::optional<int64_t> stated_length(Layer& l, size_t input) {
  l.settle(l.input(input));
  const TensorData* stated = l.has_input(input) ? l.constant(input) : nullptr;
  if (!stated || stated->count() != 1) return std::nullopt;
  return to_ints(stated->view())[0];
}
int64_t total_length(Layer& l, size_t input, int64_t past, int64_t steps) {
  return std::clamp<int64_t>(stated_length(l, input).value_or(past + steps), past, past + steps);
}

// One more key that is in no input: its score is that of the sink, and its value zero.
void add_sink(Layer& l, Heads& h, TensorId sink, const Dims& scores, const Dims& k, const Dims& v) {
  const auto rest = [&](TensorId x, Dims dims) {
    dims[2] = 1;
    return l.concat({x, l.full(dims, 0, l.dtype_of(x))}, 2);
  };
  h.k = rest(h.k, k);
  h.v = rest(h.v, v);
  h.term = l.concat({l.expand(h.term, scores), l.expand(sink, Dims{scores[0], scores[1], scores[2], 1})}, 3);
}

Status refuse_group_query_options(Layer& l) {
  if (l.has_input(14) || l.has_input(15)) return unsupported("norms of queries and keys are not supported");
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
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(q, "to attend", 3));
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
    ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(3), "to read the cache", 4));
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
  const int64_t window = l.take_int("local_window_size").value_or(-1);
  const TensorId own = l.binary("Min", places, last);  // steps that only fill up a short sequence see what its last one sees
  const TensorId seen = l.take_flag("causal", true) ? causal_window(l, own, total, window)
                                                    : l.unsqueeze(l.binary("LessOrEqual", positions(l, total), last), {1, 2});
  const bool is_smooth = l.take_int("smooth_softmax").value_or(0) > 0, has_sink = l.has_input(11) || is_smooth;
  h.term = seen;
  if (l.has_input(10) || has_sink) h.term = as_term(l, seen, -std::numeric_limits<double>::infinity(), l.dtype_of(h.q));
  if (l.has_input(10)) h.term = l.add(h.term, l.input(10));
  h.attributes = attention_attributes(l, false);
  if (const double cap = l.take_float("softcap").value_or(0); cap > 0) h.attributes.set("softcap", cap);
  const TensorId keys = h.k, values = h.v;
  if (has_sink) {
    ORKNN_TRY_ASSIGN(const Dims k_dims, l.need_dims(h.k, "to add a sink"));
    ORKNN_TRY_ASSIGN(const Dims v_dims, l.need_dims(h.v, "to add a sink"));
    const TensorId sink =
        l.has_input(11) ? l.reshape(l.cast(l.input(11), l.dtype_of(h.q)), {1, heads, 1, 1}) : l.scalar_like(h.q, 0, "sink");
    add_sink(l, h, sink, {dims[0], heads, steps, total}, k_dims, v_dims);
  }
  const int64_t shown = l.take_int("qk_output").value_or(0);
  const Scores scores = !reads(l, kScores) ? Scores::None : shown == 1 ? Scores::Masked : Scores::Shares;
  const std::vector<TensorId> results = attend(l, std::move(h), false, scores);
  Layer::Outputs outputs{from_heads(l, results[0]), keys, values};
  if (results.size() > kScores) {
    const TensorId shown_scores = l.where(seen, l.slice(results[kScores], 3, 0, total), l.scalar_like(results[kScores], 0));
    outputs.push_back(
        l.slice(shown_scores, 3, 0, stated_length(l, 6).value_or(total)));  // neither the sink nor what is not written
  }
  return outputs;
}

// The input rotated by angles of each step, or of each position where there are positions, with the attributes of the node.
TensorId rotated_as_stated(Layer& l, const Dims& dims, const Dims& angles, std::vector<TensorId> inputs) {
  const double scale = l.take_float("scale").value_or(1);
  Attributes attributes{{"interleaved", int64_t{l.take_flag("interleaved")}}};
  int64_t heads = l.take_int("num_heads").value_or(0);
  const int64_t rotated_size = l.take_int("rotary_embedding_dim").value_or(0);
  if (heads == 0 && dims.size() == 3 && !angles.empty() && angles.back() > 0) heads = dims[2] / (2 * angles.back());
  if (dims.size() == 3) attributes.set("num_heads", heads);
  if (rotated_size > 0) attributes.set("rotary_embedding_dim", rotated_size);
  inputs.insert(inputs.begin(), l.input(0));
  const TensorId y = l.emit("RotaryEmbedding", std::move(inputs), std::move(attributes));
  return scale == 1 ? y : l.mul(y, scale);
}

// Positions are one number, where the sequence begins, or one per step.
Result<TensorId> rotary_embedding(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2, 3}));
  if (l.take_flag("is_packed_batching")) return unsupported("packed sequences are not supported");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.input(0), "to rotate it"));
  if (dims.size() != 3 && dims.size() != 4)
    return invalid_model("the input has the wrong rank").expected("3 or 4").found(ir::to_string(dims));
  const int64_t steps = dims.size() == 4 ? dims[2] : dims[1];
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.input(1), "to read the positions"));
  TensorId ids = l.cast(l.input(1), DType::Int64);
  if (rank < 2) ids = l.add(l.reshape(ids, {1, 1}), positions(l, steps));
  ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(2), "to rotate by it"));
  return rotated_as_stated(l, dims, cache, {l.input(2), l.input(3), l.expand(ids, Dims{dims[0], steps})});
}

// Three positions per step (time, row, column), each of which says a part of the angles. `mrope_layout` 1: the parts alternate,
// and where rows and columns are through the rest is time.
Result<TensorId> angles_of_three(Layer& l, TensorId cache, TensorId ids, const std::vector<int64_t>& sections, bool take_turns) {
  const int64_t half = sections[0] + sections[1] + sections[2];
  std::vector<int64_t> source(static_cast<size_t>(half), 0);
  for (int64_t i = 0; i < half; ++i) {
    int64_t& from = source[static_cast<size_t>(i)];
    if (take_turns)
      from = i % 3 != 0 && i < 3 * sections[static_cast<size_t>(i % 3)] ? i % 3 : 0;
    else
      from = i < sections[0] ? 0 : i < sections[0] + sections[1] ? 1 : 2;
  }
  const TensorId angles = l.gather(cache, ids, 0);  // [3, batch, steps, half]
  const auto of = [&](int64_t axis) { return l.squeeze(l.slice(angles, 0, axis, axis + 1), {0}); };
  const auto is_from = [&](int64_t axis) {
    return l.binary("Equal", l.add_ints("source", source), l.add_int_scalar("axis", axis));
  };
  return l.where(is_from(0), of(0), l.where(is_from(1), of(1), of(2)));
}

Result<TensorId> rotary_embedding_of_three(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2, 3}));
  if (l.take_flag("is_packed_batching")) return unsupported("packed sequences are not supported");
  const std::vector<int64_t> sections = l.take_ints("mrope_section").value_or(std::vector<int64_t>{});
  const bool take_turns = l.take_flag("mrope_layout");
  ORKNN_TRY_ASSIGN(const Dims cache, l.need_dims(l.input(2), "to rotate by it"));
  const auto is_sane = [&](int64_t n) { return n >= 0 && !cache.empty() && n <= cache.back(); };
  if (sections.size() != 3 || !std::ranges::all_of(sections, is_sane) || sections[0] + sections[1] + sections[2] != cache.back())
    return invalid_model("mrope_section does not divide the angles").found(ir::to_string(sections));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.input(0), "to rotate it"));
  const TensorId ids = l.cast(l.input(1), DType::Int64);
  ORKNN_TRY_ASSIGN(const TensorId cos, angles_of_three(l, l.input(2), ids, sections, take_turns));
  ORKNN_TRY_ASSIGN(const TensorId sin, angles_of_three(l, l.input(3), ids, sections, take_turns));
  return rotated_as_stated(l, dims, cache, {cos, sin});
}

// --- embeddings

Result<Layer::Outputs> embed_layer_normalization(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 2, 3, 5, 6}));
  ORKNN_TRY_ASSIGN(const Dims ids, l.need_dims(l.input(0), "to look up positions", 2));
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

// The tables and the parameters as integers, scales and zero points after them; the mask as in the other form.
Result<Layer::Outputs> quantized_embed_layer_normalization(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 2, 3, 5, 6, 8, 9, 11, 12}));
  for (size_t i = 0; i < 5; ++i) {
    const size_t table = i + 2;
    if (!l.has_input(table)) continue;
    ORKNN_TRY(l.need_inputs({8 + i, 13 + i}));
    l.set_input(table, l.emit_kept("DequantizeLinear", {l.input(table), l.input(8 + i), l.input(13 + i)}));
  }
  l.node.inputs.resize(std::min<size_t>(l.node.inputs.size(), 8));
  return embed_layer_normalization(l);
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
      {"com.microsoft:DecoderMaskedMultiHeadAttention", decoder_attention},
      {"com.microsoft:GroupQueryAttention", group_query_attention},
      {"com.microsoft:RotaryEmbedding", rotary_embedding},
      {"com.microsoft:MRotaryEmbedding", rotary_embedding_of_three},
      {"com.microsoft:EmbedLayerNormalization", embed_layer_normalization},
      {"com.microsoft:QEmbedLayerNormalization", quantized_embed_layer_normalization},
      {"com.microsoft:GroupNorm", group_norm},
      {"com.microsoft:BiasSplitGelu", bias_split_gelu},
      {"com.microsoft:BiasAdd", bias_add},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
