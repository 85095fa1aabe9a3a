// LinearAttention of opset 27, and of com.microsoft: a state instead of a cache, written out step by step.
#include <cmath>

#include "import/onnx/layer.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

constexpr int64_t kMaxSteps = 4096;

struct LinearForm {
  int64_t batch = 0, steps = 0, query_heads = 0, heads = 0, key_width = 0, value_width = 0;
  bool has_decay = false, has_correction = false;
  double scale = 1;
};

Result<LinearForm> linear_form(Layer& l) {
  ORKNN_TRY_ASSIGN(const Dims q, l.need_dims(l.input(0), "to unroll the steps"));
  ORKNN_TRY_ASSIGN(const Dims k, l.need_dims(l.input(1), "to unroll the steps"));
  ORKNN_TRY_ASSIGN(const Dims v, l.need_dims(l.input(2), "to unroll the steps"));
  LinearForm f;
  f.query_heads = l.take_int("q_num_heads").value_or(0);
  f.heads = l.take_int("kv_num_heads").value_or(0);
  l.take_int("chunk_size");  // how fast it is elsewhere
  if (q.size() != 3 || k.size() != 3 || v.size() != 3)
    return invalid_model("queries, keys and values have the wrong rank")
        .expected("[batch, steps, heads * width]")
        .found(ir::to_string(q));
  if (f.heads < 1 || f.query_heads < 1 || f.query_heads % f.heads != 0 || q[2] % f.query_heads != 0 || k[2] % f.heads != 0 ||
      v[2] % f.heads != 0 || q[2] / f.query_heads != k[2] / f.heads || k[0] != q[0] || v[0] != q[0] || k[1] != q[1] ||
      v[1] != q[1])
    return invalid_model("q_num_heads and kv_num_heads do not fit the inputs")
        .found(ir::to_string(q) + ", " + ir::to_string(k) + " and " + ir::to_string(v));
  f.batch = q[0];
  f.steps = q[1];
  f.key_width = k[2] / f.heads;
  f.value_width = v[2] / f.heads;
  if (f.steps > kMaxSteps)
    return unsupported("the sequence has too many steps to unroll")
        .expected("at most " + std::to_string(kMaxSteps))
        .found(std::to_string(f.steps));
  const std::string rule = l.take_string("update_rule").value_or("gated_delta");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta")
    return invalid_model("unknown update_rule").expected("linear, gated, delta or gated_delta").found("'" + rule + "'");
  f.has_decay = rule.starts_with("gated");
  f.has_correction = rule.ends_with("delta");
  if (f.has_decay) ORKNN_TRY(l.need_inputs({4}));
  if (f.has_correction) ORKNN_TRY(l.need_inputs({5}));
  f.scale = l.take_float("scale").value_or(0);
  if (f.scale == 0) f.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(f.key_width, 1)));
  return f;
}

// [batch, steps, n] as [steps, batch, heads, ...]: `rest` are the axes of one head at one step.
TensorId by_steps(Layer& l, const LinearForm& f, TensorId x, int64_t heads, std::vector<int64_t> rest) {
  std::vector<int64_t> shape{f.batch, f.steps, heads};
  shape.insert(shape.end(), rest.begin(), rest.end());
  std::vector<int64_t> order{1, 0};
  for (int64_t i = 2; i < std::ssize(shape); ++i) order.push_back(i);
  return l.transpose(l.reshape(l.cast(x, DType::Float32), shape), order);
}

Result<Layer::Outputs> linear_attention(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  ORKNN_TRY_ASSIGN(const LinearForm f, linear_form(l));
  const int64_t shared = f.query_heads / f.heads;
  const TensorId q = by_steps(l, f, l.input(0), f.heads, {shared, f.key_width});  // rows of the queries that share a head
  const TensorId k = by_steps(l, f, l.input(1), f.heads, {f.key_width, 1});
  const TensorId v = by_steps(l, f, l.input(2), f.heads, {1, f.value_width});
  TensorId decay, rate;
  if (f.has_decay) {
    ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(l.input(4), "to apply it"));
    if (d.size() != 3 || (d[2] != f.heads && d[2] != f.heads * f.key_width))
      return invalid_model("decay has the wrong shape").found(ir::to_string(d));
    decay = l.unary("Exp", by_steps(l, f, l.input(4), f.heads, {d[2] / f.heads, 1}));
  }
  if (f.has_correction) {
    ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(l.input(5), "to apply it"));
    if (d.size() != 3 || (d[2] != f.heads && d[2] != 1)) return invalid_model("beta has the wrong shape").found(ir::to_string(d));
    rate = by_steps(l, f, l.input(5), d[2], {1, 1});
  }
  const DType state_type = l.has_input(3) ? l.dtype(3) : l.dtype(0);
  TensorId state = l.has_input(3) ? l.cast(l.input(3), DType::Float32)
                                  : l.full(Dims{f.batch, f.heads, f.key_width, f.value_width}, 0, DType::Float32);
  std::vector<TensorId> results;
  for (int64_t t = 0; t < f.steps; ++t) {
    const auto now = [&](TensorId x) { return l.squeeze(l.slice(x, 0, t, t + 1), {0}); };
    if (f.has_decay) state = l.mul(state, now(decay));
    TensorId written = now(v);
    const TensorId key = now(k);
    if (f.has_correction) {
      const TensorId recalled = l.matmul(l.swap_axes(key, -1, -2), state);
      written = l.mul(l.sub(written, recalled), now(rate));
    }
    state = l.add(state, l.mul(key, written));
    results.push_back(l.mul(l.matmul(now(q), state), f.scale));  // [batch, heads, shared, value_width]
  }
  if (results.empty()) return unsupported("attention needs at least one step");
  const TensorId all = l.reshape(l.stack(results, 1), {f.batch, f.steps, f.query_heads * f.value_width});
  return Layer::Outputs{l.cast(all, l.dtype(0)), l.cast(state, state_type)};
}
}  // namespace

std::span<const Row> linear_attention_rows() {
  static const Row rows[] = {
      {"LinearAttention|com.microsoft:LinearAttention", linear_attention},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
