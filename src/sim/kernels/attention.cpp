// Attention without caches: per head, K and V are packed once; then, per block of queries, scores = Q K', softmax of the rows,
// result = scores V, all while the few scores are in the first-level cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kScoreFloats = 5 << 10;  // scores of one block
constexpr int64_t kJobsPerThread = 3;

// One of Q, K, V: element (batch, head, step, i) at batch * batch_stride + head * head_stride + step * step_stride + i.
struct Heads {
  int64_t batch = 0, heads = 0, steps = 0, size = 0;
  int64_t batch_stride = 0, head_stride = 0, step_stride = 0;
};

std::optional<Heads> heads_of(const ir::Dims& dims, int64_t heads) {
  if (dims.size() == 4) return Heads{dims[0], dims[1], dims[2], dims[3], dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3]};
  if (dims.size() != 3 || heads < 1 || dims[2] % heads != 0) return std::nullopt;
  return Heads{dims[0], heads, dims[1], dims[2] / heads, dims[1] * dims[2], dims[2] / heads, dims[2]};
}

struct State : KernelState {
  Heads q, k, v, y;
  float scale = 1;
  bool causal = false, has_mask = false;
  int64_t mask_strides[3] = {0, 0, 0};  // batch, head, query
};

std::unique_ptr<State> plan(const KernelQuery& q) {
  if (q.node.op != "Attention" || !q.node.tail.empty()) return nullptr;
  const ir::Attributes& attributes = q.node.attributes;
  for (size_t i = 0; i < 3; ++i)
    if (!storage_of(q.inputs[i].dtype)) return nullptr;
  for (size_t i = 4; i < q.inputs.size(); ++i)
    if (q.inputs[i].exists()) return nullptr;
  for (size_t i = 1; i < q.outputs.size(); ++i)
    if (q.outputs[i].exists()) return nullptr;
  if (!storage_of(q.outputs[0].dtype) || attributes.float_or("softcap", 0) != 0) return nullptr;
  if (attributes.int_or("left_window_size", -1) >= 0 || attributes.int_or("right_window_size", -1) >= 0) return nullptr;
  const auto query = heads_of(q.inputs[0].dims, attributes.int_or("q_num_heads", 0)),
             key = heads_of(q.inputs[1].dims, attributes.int_or("kv_num_heads", 0)),
             value = heads_of(q.inputs[2].dims, attributes.int_or("kv_num_heads", 0)),
             result = heads_of(q.outputs[0].dims, attributes.int_or("q_num_heads", 0));
  if (!query || !key || !value || !result) return nullptr;
  if (key->batch != query->batch || value->batch != query->batch || key->size != query->size || key->heads != value->heads ||
      key->steps != value->steps)
    return nullptr;
  if (key->heads < 1 || query->heads % key->heads != 0 || key->steps < 1 || query->size < 1) return nullptr;
  auto s = std::make_unique<State>();
  s->q = *query;
  s->k = *key;
  s->v = *value;
  s->y = *result;
  s->scale = static_cast<float>(attributes.float_or("scale", 1 / std::sqrt(static_cast<double>(query->size))));
  s->causal = attributes.int_or("is_causal", 0) != 0;
  s->has_mask = q.node.has_input(3);
  if (s->has_mask) {
    const OperandFacts& mask = q.inputs[3];
    const ir::Dims full{query->batch, query->heads, query->steps, key->steps};
    if ((mask.dtype != DType::Bool && !storage_of(mask.dtype)) || mask.dims.empty() || mask.dims.size() > 4 ||
        mask.dims.back() != key->steps)
      return nullptr;
    const ir::Dims strides = ir::strides_of(mask.dims);
    for (size_t i = 0; i + 1 < mask.dims.size(); ++i) {
      const size_t axis = 4 - mask.dims.size() + i;
      if (mask.dims[i] != 1 && mask.dims[i] != full[axis]) return nullptr;
      if (mask.dims[i] != 1) s->mask_strides[axis] = strides[i];
    }
  }
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan(q));
}

const void* element(const ir::TensorView& t, int64_t offset) {
  return static_cast<const std::byte*>(t.data) + offset * static_cast<int64_t>(dtype_bytes(t.dtype));
}

// Adds the mask to the scores of query `row` and hides the future. False when nothing is left to attend to.
bool mask_row(const Forms& f, const State& s, const KernelContext& c, int64_t batch, int64_t head, int64_t row, float* scores) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  if (s.has_mask) {
    const ir::TensorView& mask = c.inputs[3];
    const int64_t offset = batch * s.mask_strides[0] + head * s.mask_strides[1] + row * s.mask_strides[2];
    if (mask.dtype == DType::Bool) {
      const bool* keep = mask.as<bool>() + offset;
      for (int64_t j = 0; j < s.k.steps; ++j)
        if (!keep[j]) scores[j] = kHidden;
    } else {
      const Step add{.fn = Fn::Add, .storage = *storage_of(mask.dtype), .operand = element(mask, offset), .column_stride = 1};
      f.apply_steps(scores, 0, 1, s.k.steps, &add, 1, 0, 0, 0);
    }
  }
  if (s.causal) std::fill(scores + std::min(row + 1, s.k.steps), scores + s.k.steps, kHidden);
  return f.reduce_row(Reduction::Max, scores, Storage::Float, s.k.steps) != -std::numeric_limits<double>::infinity();
}

// How queries are divided into blocks, and the working memory of one thread, in floats.
struct Division {
  int64_t rows = 0;                     // queries of a block
  int64_t parts = 0, part = 0;          // jobs per head, blocks of a job
  int64_t k_size = 0, v_size = 0;       // packed
  int64_t scores_size = 0, a_size = 0;  // of a block
  int64_t buffer_size = 0;
  int64_t per_thread() const { return (k_size + v_size + scores_size + a_size + buffer_size + 15) / 16 * 16; }
};
Division divide(const State& s, int64_t threads) {
  const int64_t total = s.k.steps, columns = panels_b(total) * kPanelColumns;
  Division d;
  d.rows = std::min(divide_up(s.q.steps, kPanelRows), std::max<int64_t>(kScoreFloats / columns / kPanelRows, 2)) * kPanelRows;
  const int64_t blocks = divide_up(s.q.steps, d.rows), heads = s.q.batch * s.q.heads;
  // Where heads are few, several jobs share one, and each packs its keys and values.
  d.parts = threads == 1 ? 1 : std::min(blocks, divide_up(kJobsPerThread * threads, heads));
  d.part = divide_up(blocks, d.parts);
  d.parts = divide_up(blocks, d.part);
  d.k_size = columns * s.q.size;
  d.v_size = panels_b(s.v.size) * kPanelColumns * total;
  d.scores_size = d.rows * columns;
  d.a_size = d.rows * std::max(s.q.size, total);
  d.buffer_size = columns;
  return d;
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  if (c.outputs[0].count() == 0) return {};
  const Forms& f = forms();
  const int64_t total = s.k.steps;
  const Division d = divide(s, c.pool.threads());
  const int64_t bytes = c.pool.threads() * d.per_thread() * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  const Storage y_storage = *storage_of(c.outputs[0].dtype);
  const int64_t shared_by = s.q.heads / s.k.heads;
  for_each_job(c.pool, s.q.batch * s.q.heads * d.parts, [&](int64_t job, int64_t worker) {
    const int64_t batch = job / (s.q.heads * d.parts), head = job / d.parts % s.q.heads, kv_head = head / shared_by;
    float* keys = scratch + worker * d.per_thread();
    float *values = keys + d.k_size, *scores = values + d.v_size, *a = scores + d.scores_size, *buffer = a + d.a_size;
    f.pack_b(element(c.inputs[1], batch * s.k.batch_stride + kv_head * s.k.head_stride), *storage_of(c.inputs[1].dtype), 1,
             s.k.step_stride, s.q.size, total, keys);
    f.pack_b(element(c.inputs[2], batch * s.v.batch_stride + kv_head * s.v.head_stride), *storage_of(c.inputs[2].dtype),
             s.v.step_stride, 1, total, s.v.size, values);
    const int64_t first = job % d.parts * d.part * d.rows, end = std::min(first + d.part * d.rows, s.q.steps);
    for (int64_t row = first; row < end; row += d.rows) {
      const int64_t count = std::min(d.rows, end - row);
      f.pack_a({.x = element(c.inputs[0], batch * s.q.batch_stride + head * s.q.head_stride + row * s.q.step_stride),
                .storage = *storage_of(c.inputs[0].dtype),
                .row_stride = s.q.step_stride,
                .rows = count,
                .depth = s.q.size},
               a);
      const Step scale{.fn = Fn::ScaleShift, .a = s.scale};
      GemmBlock g;
      g.a = a;
      g.a_panel_stride = kPanelRows * s.q.size;
      g.b = keys;
      g.b_panel_stride = kPanelColumns * s.q.size;
      g.rows = count;
      g.columns = total;
      g.depth = s.q.size;
      g.sum = scores;
      g.sum_row_stride = total;
      g.steps = &scale;
      g.step_count = 1;
      f.gemm(g);
      if (s.has_mask || s.causal) {
        for (int64_t i = 0; i < count; ++i) {
          if (mask_row(f, s, c, batch, head, row + i, scores + i * total))
            f.softmax_rows(scores + i * total, scores + i * total, Storage::Float, 1, total, false, buffer);
          else
            std::fill_n(scores + i * total, total, 0.0f);
        }
      } else {
        f.softmax_rows(scores, scores, Storage::Float, count, total, false, buffer);
      }
      f.pack_a({.x = scores, .row_stride = total, .rows = count, .depth = total}, a);
      GemmBlock v;
      v.a = a;
      v.a_panel_stride = kPanelRows * total;
      v.b = values;
      v.b_panel_stride = kPanelColumns * total;
      v.rows = count;
      v.columns = s.v.size;
      v.depth = total;
      v.storage = y_storage;
      v.c = const_cast<void*>(element(c.outputs[0], batch * s.y.batch_stride + head * s.y.head_stride + row * s.y.step_stride));
      v.c_row_stride = s.y.step_stride;
      v.sum = y_storage == Storage::Float ? static_cast<float*>(v.c) : nullptr;
      v.sum_row_stride = v.c_row_stride;
      f.gemm(v);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> attention() {
  static const Kernel kernels[] = {{"attention", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
