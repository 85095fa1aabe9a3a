// MatMul and Gemm on the blocked matrix product. A constant right operand is packed once; of an activation the rows
// are packed when running.
#include <algorithm>

#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

// A * B with everything about shapes settled: operands as matrices per batch, possibly broadcast.
struct Plan {
  int64_t rows = 0, columns = 0, depth = 0;
  ir::Dims batch;                 // of the result; empty when all rows are one matrix
  ir::Dims a_strides, b_strides;  // per axis of `batch`, in elements
  MatrixSource a, b;              // without addresses
  MatrixView view;                // of the result, for the tail
};

struct State : KernelState {
  Plan plan;
  AlignedFloats packed_b;
  bool is_packed = false;
  AlignedFloats bias;  // Gemm's third operand, times beta
  std::optional<Step> bias_step;
  float alpha = 1;
  TailPlan tail;
};

// Strides of an operand's batch axes against those of the result, 0 where broadcast.
ir::Dims batch_strides(std::span<const int64_t> operand, const ir::Dims& batch, int64_t matrix) {
  ir::Dims strides(batch.size(), 0);
  int64_t stride = matrix;
  for (size_t i = 0; i < operand.size(); ++i) {
    const size_t from_end = operand.size() - 1 - i, to = batch.size() - 1 - i;
    if (operand[from_end] != 1) strides[to] = stride;
    stride *= operand[from_end];
  }
  return strides;
}

std::optional<Plan> plan_matmul(const KernelQuery& q) {
  ir::Dims a = q.inputs[0].dims, b = q.inputs[1].dims;
  const ir::Dims& y = q.outputs[0].dims;
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  Plan p;
  p.rows = a[a.size() - 2];
  p.depth = a.back();
  p.columns = b.back();
  if (b[b.size() - 2] != p.depth || y.size() < 2) return std::nullopt;
  p.a = {nullptr, *storage_of(q.inputs[0].dtype), p.depth, 1};
  p.b = {nullptr, *storage_of(q.inputs[1].dtype), p.columns, 1};
  const std::span<const int64_t> a_batch(a.data(), a.size() - 2), b_batch(b.data(), b.size() - 2);
  if (std::all_of(b_batch.begin(), b_batch.end(), [](int64_t d) { return d == 1; }) && a_batch.size() >= b_batch.size()) {
    p.rows *= ir::element_count(a_batch);  // one matrix on the right: the batches of A are more rows
    p.view = {0, y.size() - 1};
    return p;
  }
  p.batch.assign(y.begin(), y.end() - 2);
  p.a_strides = batch_strides(a_batch, p.batch, p.rows * p.depth);
  p.b_strides = batch_strides(b_batch, p.batch, p.depth * p.columns);
  p.view = {y.size() - 2, y.size() - 1};
  return p;
}

std::optional<Plan> plan_gemm(const KernelQuery& q) {
  const ir::Dims &a = q.inputs[0].dims, &b = q.inputs[1].dims;
  if (a.size() != 2 || b.size() != 2) return std::nullopt;
  const bool trans_a = q.node.attributes.int_or("transA", 0) != 0, trans_b = q.node.attributes.int_or("transB", 0) != 0;
  Plan p;
  p.rows = a[trans_a ? 1 : 0];
  p.depth = a[trans_a ? 0 : 1];
  p.columns = b[trans_b ? 0 : 1];
  if (b[trans_b ? 1 : 0] != p.depth) return std::nullopt;
  p.a = {nullptr, *storage_of(q.inputs[0].dtype), trans_a ? 1 : p.depth, trans_a ? p.rows : 1};
  p.b = {nullptr, *storage_of(q.inputs[1].dtype), trans_b ? 1 : p.columns, trans_b ? p.depth : 1};
  p.view = {0, 1};
  return p;
}

std::optional<Plan> plan(const KernelQuery& q) {
  if ((q.node.op != "MatMul" && q.node.op != "Gemm") || !storage_of(q.inputs[0].dtype) || !storage_of(q.inputs[1].dtype))
    return std::nullopt;
  if (!storage_of(q.outputs[0].dtype)) return std::nullopt;
  return q.node.op == "MatMul" ? plan_matmul(q) : plan_gemm(q);
}

bool accepts(const KernelQuery& q) {
  const std::optional<Plan> p = plan(q);
  if (!p || !TailPlan::create(q, p->view)) return false;
  if (q.node.op == "MatMul" || !q.node.has_input(2)) return true;
  const OperandFacts& c = q.inputs[2];
  return storage_of(c.dtype) && c.dims.size() <= 2 && (q.node.attributes.float_or("beta", 1.0) == 1.0 || c.constant);
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->plan = *plan(q);
  const Plan& p = s->plan;
  s->tail = *TailPlan::create(q, p.view);
  if (q.inputs[1].constant && p.batch.empty()) {
    const int64_t panels = panels_b(p.columns);
    if (!s->packed_b.allocate(panels * kPanelColumns * p.depth)) return out_of_scratch(panels * kPanelColumns * p.depth * 4);
    const ir::TensorData& b = *q.inputs[1].constant;
    const Forms& f = forms();
    pool.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t column = i * kPanelColumns;
        const auto* from =
            static_cast<const std::byte*>(b.data()) + column * p.b.column_stride * static_cast<int64_t>(dtype_bytes(b.dtype()));
        f.pack_b(from, p.b.storage, p.b.row_stride, p.b.column_stride, p.depth, std::min(kPanelColumns, p.columns - column),
                 s->packed_b.data() + column * p.depth);
      }
    });
    s->packed_b.share(b.data());
    s->is_packed = true;
  }
  if (q.node.op == "MatMul") return std::unique_ptr<const KernelState>(std::move(s));
  s->alpha = static_cast<float>(q.node.attributes.float_or("alpha", 1.0));
  if (q.node.has_input(2)) {
    const OperandFacts& c = q.inputs[2];
    Step step{.fn = Fn::Add, .storage = *storage_of(c.dtype)};
    const int64_t columns = c.dims.empty() ? 1 : c.dims.back(), rows = c.dims.size() == 2 ? c.dims[0] : 1;
    step.column_stride = columns > 1 ? 1 : 0;
    step.row_stride = rows > 1 ? columns : 0;
    if (c.constant) {
      const ir::TensorData values = ir::convert(c.constant->view(), DType::Float32);
      if (!s->bias.allocate(values.count())) return out_of_scratch(values.count() * 4);
      const auto beta = static_cast<float>(q.node.attributes.float_or("beta", 1.0));
      for (int64_t i = 0; i < values.count(); ++i) s->bias.data()[i] = beta * values.as<float>()[i];
      step.operand = s->bias.data();
      step.storage = Storage::Float;
    }
    s->bias_step = step;
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Plan& plan = s.plan;
  Product p;
  p.batches = ir::element_count(plan.batch);
  p.rows = plan.rows;
  p.columns = plan.columns;
  p.depth = plan.depth;
  p.a = plan.a;
  p.a.data = c.inputs[0].data;
  if (s.is_packed) p.packed_b = s.packed_b.data();
  p.b = plan.b;
  p.b.data = c.inputs[1].data;
  p.c = c.outputs[0].data;
  p.storage = *storage_of(c.outputs[0].dtype);
  p.c_row_stride = p.columns;
  if (s.alpha != 1.0f) p.steps.push_back({.fn = Fn::ScaleShift, .a = s.alpha});
  if (s.bias_step) {
    p.steps.push_back(*s.bias_step);
    if (!p.steps.back().operand) p.steps.back().operand = c.inputs[2].data;
  }
  for (const Step& step : s.tail.bind(c.inputs)) p.steps.push_back(step);
  p.place = [&](int64_t batch) {
    Product::Place place{.c = batch * p.rows * p.columns, .step_batch = batch};
    for (size_t i = plan.batch.size(); i-- > 0; batch /= plan.batch[i]) {
      place.a += batch % plan.batch[i] * plan.a_strides[i];
      place.b += batch % plan.batch[i] * plan.b_strides[i];
    }
    return place;
  };
  return run_product(p, c);
}
}  // namespace

std::span<const Kernel> matmul() {
  static const Kernel kernels[] = {{"matmul", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
