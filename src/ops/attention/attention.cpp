// Attention: softmax(scale * Q K' + bias) V, with grouped heads, masks, windows, soft cap and key/value caches.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/floating.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum Slot : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };
constexpr double kMasked = -std::numeric_limits<double>::infinity();

// One of Q, K, V seen as [batch, heads, steps, size]; 3-D tensors keep the heads inside the last axis.
struct Heads {
  Dim batch, heads, steps, size;
};

Result<Heads> heads_of(const NodeReader& node, const Shape& shape, std::string_view attribute) {
  const auto* given = node.find<int64_t>(attribute);
  if (shape.size() == 4) {
    if (given && shape[1].is_known() && *given != shape[1].value() && *given != 0)
      return shape_mismatch(std::string(attribute) + " differs from the input")
          .expected(shape[1].to_string())
          .found(std::to_string(*given));
    return Heads{shape[0], shape[1], shape[2], shape[3]};
  }
  if (shape.size() != 3) return shape_mismatch("Q, K and V have the wrong rank").expected("3 or 4").found(to_string(shape));
  if (!given || *given < 1)
    return invalid_model("attribute '" + std::string(attribute) + "' is needed for 3-D inputs")
        .expected("at least 1")
        .found(given ? std::to_string(*given) : "nothing");
  if (shape[2].is_known() && shape[2].value() % *given != 0)
    return shape_mismatch("the last axis does not divide into heads")
        .expected("a multiple of " + std::to_string(*given))
        .found(shape[2].to_string());
  return Heads{shape[0], *given, shape[1], shape[2] / Dim(*given)};
}

Status wrong_extents(std::string_view what, std::string expected, const Shape& found) {
  return shape_mismatch(std::string(what) + " has the wrong shape").expected(std::move(expected)).found(to_string(found));
}

bool is_longer(const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a.value() > b.value(); }

// Whether keys and values belong to the queries, as far as extents are known.
Status check_heads(const Heads& q, const Heads& k, const Heads& v) {
  const auto differ = [](const Dim& a, const Dim& b) { return a.is_known() && b.is_known() && a.value() != b.value(); };
  const bool are_known = q.heads.is_known() && k.heads.is_known();
  const bool divides = !are_known || (k.heads.value() > 0 && q.heads.value() % k.heads.value() == 0);
  if (differ(k.batch, q.batch) || differ(k.size, q.size) || !divides)
    return wrong_extents("K", "heads that divide those of Q " + to_string(Shape{q.batch, q.heads, q.steps, q.size}),
                         {k.batch, k.heads, k.steps, k.size});
  if (differ(v.batch, k.batch) || differ(v.heads, k.heads) || differ(v.steps, k.steps))
    return wrong_extents("V", to_string(Shape{k.batch, k.heads, k.steps, v.size}), {v.batch, v.heads, v.steps, v.size});
  return {};
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, kQuery));
  ORKNN_TRY(require_float(c, kValue));
  ORKNN_TRY(require_same_type(c, kQuery, kKey));
  ORKNN_TRY(require_same_type(c, kKey, kPastKey));
  ORKNN_TRY(require_same_type(c, kValue, kPastValue));
  if (c.has_input(kMask) && c.dtype(kMask) != DType::Bool && !is_integer(c.dtype(kMask)))
    ORKNN_TRY(require_float(c, kMask));  // integers are added too
  ORKNN_TRY(require_type(c, kLengths, DType::Int64));
  if (c.has_input(kPastKey) != c.has_input(kPastValue))
    return invalid_model("past_key and past_value come together or not at all");
  ORKNN_TRY(require_rank(c, kPastKey, 4));
  ORKNN_TRY(require_rank(c, kPastValue, 4));
  const int64_t mode = c.get_int("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) return invalid_model("unknown qk_matmul_output_mode").expected("0 to 3").found(std::to_string(mode));
  // Without a rank nothing can be said about the outputs but their types.
  std::optional<Shape> y, present_key, present_value, scores;
  if (c.shape(kQuery) && c.shape(kKey) && c.shape(kValue)) {
    ORKNN_TRY_ASSIGN(const Heads q, heads_of(c, *c.shape(kQuery), "q_num_heads"));
    ORKNN_TRY_ASSIGN(const Heads k, heads_of(c, *c.shape(kKey), "kv_num_heads"));
    ORKNN_TRY_ASSIGN(const Heads v, heads_of(c, *c.shape(kValue), "kv_num_heads"));
    ORKNN_TRY(require_shape(c, kPastKey, "past_key", {k.batch, k.heads, Dim(), k.size}));
    const Dim past = c.shape(kPastKey) ? (*c.shape(kPastKey))[2] : Dim();
    ORKNN_TRY(require_shape(c, kPastValue, "past_value", {v.batch, v.heads, past, v.size}));
    ORKNN_TRY(check_heads(q, k, v));
    ORKNN_TRY(require_shape(c, kLengths, "nonpad_kv_seqlen", {q.batch}));
    Dim total = k.steps;
    if (c.has_input(kPastKey)) total = c.shape(kPastKey) ? (*c.shape(kPastKey))[2] + k.steps : Dim();
    y = c.shape(kQuery)->size() == 4 ? Shape{q.batch, q.heads, q.steps, v.size} : Shape{q.batch, q.steps, q.heads * v.size};
    present_key = Shape{k.batch, k.heads, total, k.size};
    present_value = Shape{v.batch, v.heads, total, v.size};
    scores = Shape{q.batch, q.heads, q.steps, total};
    Shape mask = *scores;
    mask.back() = Dim();  // one that is too short masks the rest
    ORKNN_TRY(require_broadcast(c, kMask, "attn_mask", mask));
    if (const Shape* given = c.shape(kMask); given && (given->empty() || is_longer(given->back(), total)))
      return wrong_extents("attn_mask", "something that broadcasts to " + to_string(*scores), *given);
  }
  c.set_output(0, c.dtype(kQuery), std::move(y));
  c.set_output(1, c.dtype(kKey), std::move(present_key));
  c.set_output(2, c.dtype(kValue), std::move(present_value));
  c.set_output(3, c.dtype(kQuery), std::move(scores));
  return {};
}

// A tensor in the order [batch, heads, steps, size].
struct Packed {
  int64_t batch = 0, heads = 0, steps = 0, size = 0;
  std::vector<double> values;
  const double* row(int64_t b, int64_t h, int64_t s) const { return values.data() + ((b * heads + h) * steps + s) * size; }
  Dims dims() const { return {batch, heads, steps, size}; }
};

Result<Packed> pack(const RunContext& c, Slot slot, std::string_view attribute) {
  const TensorView t = c.input(slot);
  ORKNN_TRY_ASSIGN(const Heads h, heads_of(c, to_shape(t.dims), attribute));
  Packed p{h.batch.value(), h.heads.value(), h.steps.value(), h.size.value(), to_doubles(t)};
  if (t.rank() == 4) return p;
  const std::vector<double> from = std::move(p.values);
  p.values.resize(from.size());
  for (int64_t b = 0; b < p.batch; ++b)
    for (int64_t s = 0; s < p.steps; ++s)
      for (int64_t head = 0; head < p.heads; ++head)
        std::copy_n(from.data() + ((b * p.steps + s) * p.heads + head) * p.size, p.size,
                    p.values.data() + ((b * p.heads + head) * p.steps + s) * p.size);
  return p;
}

// Past steps in front of the new ones.
Result<Packed> append(const TensorView& past, const Packed& fresh, std::string_view name) {
  const Dims expected{fresh.batch, fresh.heads, past.dims[2], fresh.size};
  if (!std::equal(expected.begin(), expected.end(), past.dims.begin(), past.dims.end()))
    return wrong_shape(name, to_string(expected), past.dims);
  Packed out{fresh.batch, fresh.heads, past.dims[2] + fresh.steps, fresh.size, {}};
  const std::vector<double> old = to_doubles(past);
  out.values.reserve(old.size() + fresh.values.size());
  for (int64_t plane = 0; plane < fresh.batch * fresh.heads; ++plane) {
    const auto take = [&](const std::vector<double>& from, int64_t steps) {
      out.values.insert(out.values.end(), from.begin() + plane * steps * fresh.size,
                        from.begin() + (plane + 1) * steps * fresh.size);
    };
    take(old, past.dims[2]);
    take(fresh.values, fresh.steps);
  }
  return out;
}

// What is added to the scores of one query, from mask, causality, window and lengths.
class Bias {
 public:
  static Result<Bias> read(const RunContext& c, const Packed& q, int64_t past, int64_t total) {
    Bias bias;
    bias.total_ = total;
    bias.causal_ = c.get_int("is_causal") != 0;
    // Windows wider than everything are as good as none, and sums with them stay small.
    constexpr int64_t kWidest = int64_t{1} << 40;
    bias.left_ = std::clamp<int64_t>(c.get_int("left_window_size"), -1, kWidest);
    bias.right_ = std::clamp<int64_t>(c.get_int("right_window_size"), -1, kWidest);
    bias.offsets_.assign(static_cast<size_t>(q.batch), past);
    bias.lengths_.assign(static_cast<size_t>(q.batch), total);
    if (c.has_input(kLengths)) {
      const TensorView lengths = c.input(kLengths);
      if (lengths.rank() != 1 || lengths.dims[0] != q.batch)
        return wrong_shape("nonpad_kv_seqlen", "[" + std::to_string(q.batch) + "]", lengths.dims);
      for (int64_t b = 0; b < q.batch; ++b) {
        const int64_t length = lengths.as<int64_t>()[b];
        if (length < 0 || length > total)
          return invalid_argument("nonpad_kv_seqlen is out of range")
              .expected("0 to " + std::to_string(total))
              .found(std::to_string(length));
        bias.lengths_[static_cast<size_t>(b)] = length;
        if (!c.has_input(kPastKey)) bias.offsets_[static_cast<size_t>(b)] = length - q.steps;
      }
    }
    if (!c.has_input(kMask)) return bias;
    const TensorView mask = c.input(kMask);
    const Dims full{q.batch, q.heads, q.steps, total};
    bool fits = mask.rank() >= 1 && mask.rank() <= 4 && mask.dims.back() <= total;
    for (size_t i = 0; fits && i + 1 < mask.dims.size(); ++i) {
      const int64_t want = full[4 - mask.dims.size() + i];
      fits = mask.dims[i] == 1 || mask.dims[i] == want;
    }
    if (!fits) return wrong_shape("attn_mask", "something that broadcasts to " + to_string(full), mask.dims);
    bias.mask_ = to_doubles(mask);
    if (mask.dtype == DType::Bool)
      for (double& v : bias.mask_) v = v != 0 ? 0 : kMasked;
    bias.has_mask_ = true;
    bias.mask_length_ = mask.dims.back();
    const Dims strides = strides_of(mask.dims);
    for (size_t i = 0; i + 1 < mask.dims.size(); ++i)
      if (mask.dims[i] != 1) bias.mask_strides_[4 - mask.dims.size() + i] = strides[i];
    return bias;
  }

  // Fills `row` for query i; false when every key is masked.
  bool fill(int64_t batch, int64_t head, int64_t i, std::span<double> row) const {
    const int64_t position = offsets_[static_cast<size_t>(batch)] + i, length = lengths_[static_cast<size_t>(batch)];
    const double* mask = mask_.data() + batch * mask_strides_[0] + head * mask_strides_[1] + i * mask_strides_[2];
    bool any = false;
    for (int64_t j = 0; j < total_; ++j) {
      const bool hidden = j >= length || (causal_ && j > position) || (left_ >= 0 && j < position - left_) ||
                          (right_ >= 0 && j > position + right_);
      double value = hidden ? kMasked : 0;
      if (has_mask_) value += j < mask_length_ ? mask[j] : kMasked;
      row[static_cast<size_t>(j)] = value;
      any |= value != kMasked;
    }
    return any;
  }

 private:
  int64_t total_ = 0, left_ = -1, right_ = -1, mask_length_ = 0;
  bool causal_ = false, has_mask_ = false;
  std::vector<int64_t> offsets_, lengths_;  // per batch: position of query 0, number of valid keys
  std::vector<double> mask_;
  int64_t mask_strides_[3] = {0, 0, 0};
};

Status write(RunContext& c, size_t output, DType type, const Dims& dims, std::span<const double> values) {
  if (!c.has_output(output)) return {};
  ORKNN_TRY_ASSIGN(const MutableTensorView out, c.output(output, type, dims));
  return run_as_float(type, [&]<class T>(TypeTag<T>) {
    std::transform(values.begin(), values.end(), out.as<T>(), [](double v) { return static_cast<T>(v); });
    return Status();
  });
}

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Packed q, pack(c, kQuery, "q_num_heads"));
  ORKNN_TRY_ASSIGN(Packed k, pack(c, kKey, "kv_num_heads"));
  ORKNN_TRY_ASSIGN(Packed v, pack(c, kValue, "kv_num_heads"));
  int64_t past = 0;
  if (c.has_input(kPastKey)) {
    past = c.input(kPastKey).dims[2];
    ORKNN_TRY_ASSIGN(k, append(c.input(kPastKey), k, "past_key"));
    ORKNN_TRY_ASSIGN(v, append(c.input(kPastValue), v, "past_value"));
  }
  if (k.batch != q.batch || k.size != q.size || k.heads < 1 || q.heads % k.heads != 0)
    return wrong_shape("K", "heads that divide those of Q " + to_string(q.dims()), k.dims());
  if (v.batch != k.batch || v.heads != k.heads || v.steps != k.steps)
    return wrong_shape("V", to_string(Dims{k.batch, k.heads, k.steps, v.size}), v.dims());
  ORKNN_TRY_ASSIGN(const Bias bias, Bias::read(c, q, past, k.steps));
  const double scale = c.node().attributes.float_or("scale", 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.size, 1))));
  const double softcap = c.get_float("softcap");
  const int64_t mode = c.get_int("qk_matmul_output_mode"), shared_by = q.heads / k.heads;
  const bool four = c.input(kQuery).rank() == 4;
  const Dims score_dims{q.batch, q.heads, q.steps, k.steps};
  const Dims y_dims = four ? Dims{q.batch, q.heads, q.steps, v.size} : Dims{q.batch, q.steps, q.heads * v.size};
  ORKNN_TRY(checked_element_count(y_dims).status());
  std::vector<double> y(static_cast<size_t>(element_count(y_dims))), shown;
  if (c.has_output(3)) {
    ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(score_dims));
    shown.resize(static_cast<size_t>(count));
  }
  c.pool.parallel_for(q.batch * q.heads * q.steps, 4, [&](int64_t begin, int64_t end) {
    std::vector<double> scores(static_cast<size_t>(k.steps)), added(scores.size());
    for (int64_t item = begin; item < end; ++item) {
      const int64_t b = item / (q.heads * q.steps), head = item / q.steps % q.heads, i = item % q.steps;
      const auto show = [&](int64_t stage) {
        if (stage == mode && !shown.empty()) std::copy(scores.begin(), scores.end(), shown.begin() + item * k.steps);
      };
      for (int64_t j = 0; j < k.steps; ++j) {
        const double *a = q.row(b, head, i), *x = k.row(b, head / shared_by, j);
        double sum = 0;
        for (int64_t e = 0; e < q.size; ++e) sum += a[e] * x[e];
        scores[static_cast<size_t>(j)] = sum * scale;
      }
      show(0);
      if (softcap > 0)
        for (double& s : scores) s = softcap * std::tanh(s / softcap);
      show(1);
      const bool any = bias.fill(b, head, i, added);
      double top = kMasked, total = 0;
      for (size_t j = 0; j < scores.size(); ++j) top = std::max(top, scores[j] += added[j]);
      show(2);
      for (size_t j = 0; j < scores.size(); ++j) total += scores[j] = any && added[j] != kMasked ? std::exp(scores[j] - top) : 0;
      for (double& s : scores) s = any ? s / total : 0;  // a query without keys gives zeros
      show(3);
      double* to = y.data() + (four ? item : (b * q.steps + i) * q.heads + head) * v.size;
      for (int64_t j = 0; j < k.steps; ++j) {
        if (scores[static_cast<size_t>(j)] == 0) continue;
        const double* from = v.row(b, head / shared_by, j);
        for (int64_t e = 0; e < v.size; ++e) to[e] += scores[static_cast<size_t>(j)] * from[e];
      }
    }
  });
  const DType type = c.input(kQuery).dtype;
  ORKNN_TRY(write(c, 0, type, y_dims, y));
  ORKNN_TRY(write(c, 1, c.input(kKey).dtype, k.dims(), k.values));
  ORKNN_TRY(write(c, 2, c.input(kValue).dtype, v.dims(), v.values));
  return write(c, 3, type, score_dims, shown);
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims>) {
  if (inputs.size() < 3) return {};
  const auto q = heads_of(node, to_shape(inputs[kQuery]), "q_num_heads"),
             k = heads_of(node, to_shape(inputs[kKey]), "kv_num_heads"),
             v = heads_of(node, to_shape(inputs[kValue]), "kv_num_heads");
  if (!q || !k || !v) return {};
  const int64_t past = inputs.size() > kPastKey && inputs[kPastKey].size() == 4 ? inputs[kPastKey][2] : 0;
  const int64_t scores = q->batch.value() * q->heads.value() * q->steps.value() * (k->steps.value() + past);
  return {.macs = scores * (k->size.value() + v->size.value()), .element_ops = 4 * scores};
}

// Keys and values of each sample; where they are constants, they need not be those of samples.
BatchRule batch_rule(const NodeReader&, size_t rank, uint32_t constants) {
  return rank >= 3 && !(constants & input_slots({1, 2})) ? BatchRule::OfAll : BatchRule::Mixed;
}
}  // namespace

std::span<const OpDef> attention() {
  static const OpDef def{
      .name = "Attention",
      .summary = "scaled dot-product attention",
      .inputs = {3, 7},
      .outputs = {1, 4},
      .attributes = {attr_int("is_causal", 0), attr_int("kv_num_heads"), attr_int("left_window_size", -1),
                     attr_int("q_num_heads"), attr_int("qk_matmul_output_mode", 0), attr_int("right_window_size", -1),
                     attr_float("scale"), attr_float("softcap", 0.0), attr_int("softmax_precision")},
      .infer = infer,
      .run = run,
      .cost = cost,
      .engine = Engine::MatMul,
      .batch = batch_rule,
      .npu = {.form = NpuForm::Attention, .listed_as = "exSDPAttention"}};
  return {&def, 1};
}
}  // namespace orknn::ops
