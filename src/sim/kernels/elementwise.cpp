// Element-wise functions of one or two tensors with broadcasting, and their tails, in one pass over the result.
#include <algorithm>
#include <array>

#include "sim/kernels/support/tail.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kChunk = 2048;     // elements that go through all steps while in the first-level cache
constexpr int64_t kGrain = 1 << 15;  // elements per piece of work

// One axis of the result after joining neighbours, with the stride of every operand.
struct Axis {
  int64_t extent = 1;
  std::vector<int64_t> strides;
};

struct State : KernelState {
  std::vector<Step> steps;       // the op itself, then its tail; operands in order
  std::vector<size_t> operands;  // node inputs: the value that is mapped, then one per step that takes an operand
  std::vector<Storage> storage;  // of `operands`
  std::vector<Axis> axes;        // outermost first; the innermost has strides 0 or 1
};

// A float scalar constant, nothing for anything else.
std::optional<float> scalar(const OperandFacts& o) {
  if (!o.constant || !storage_of(o.dtype) || o.constant->count() != 1) return std::nullopt;
  return static_cast<float>(ir::to_doubles(o.constant->view())[0]);
}

// The op of the node as a step, and which inputs it maps and combines.
std::optional<Step> main_step(const KernelQuery& q, std::vector<size_t>& operands) {
  const size_t count = q.node.own_input_count();
  Step step;
  if (q.node.op == "Clip") {
    step = *unary_step(q.node.op, q.node.attributes);
    for (size_t i = 1; i < count; ++i) {
      if (!q.node.has_input(i)) continue;
      const std::optional<float> bound = scalar(q.inputs[i]);
      if (!bound) return std::nullopt;
      (i == 1 ? step.a : step.b) = *bound;
    }
    operands = {0};
    return step;
  }
  if (q.node.op == "Pow" && count == 2) {
    const std::optional<float> exponent = scalar(q.inputs[1]);
    if (!exponent || ir::element_count(q.inputs[0].dims) != ir::element_count(q.outputs[0].dims)) return std::nullopt;
    if (*exponent == 2.0f)
      step.fn = Fn::Square;
    else if (*exponent == 3.0f)
      step.fn = Fn::Cube;
    else if (*exponent == 0.5f)
      step.fn = Fn::Sqrt;
    else if (*exponent == -0.5f)
      step.fn = Fn::InverseSqrt;
    else if (*exponent == -1.0f)
      step.fn = Fn::Reciprocal;
    else
      return std::nullopt;
    operands = {0};
    return step;
  }
  if (count == 1) {
    operands = {0};
    return unary_step(q.node.op, q.node.attributes);
  }
  if (count != 2) return std::nullopt;
  const std::optional<Fn> fn = binary_function(q.node.op, false);
  if (!fn) return std::nullopt;
  operands = {0, 1};
  return Step{.fn = *fn};
}

std::unique_ptr<State> plan(const KernelQuery& q) {
  auto s = std::make_unique<State>();
  if (q.inputs.empty() || !storage_of(q.outputs[0].dtype)) return nullptr;
  const std::optional<Step> first = main_step(q, s->operands);
  if (!first) return nullptr;
  s->steps.push_back(*first);
  for (const ir::TailStep& tail : q.node.tail) {
    if (tail.operand < 0) {
      const std::optional<Step> function = unary_step(tail.op, tail.attributes);
      if (!function) return nullptr;
      s->steps.push_back(*function);
    } else {
      const std::optional<Fn> fn = binary_function(tail.op, tail.operand_first);
      if (!fn) return nullptr;
      s->steps.push_back({.fn = *fn});
      s->operands.push_back(static_cast<size_t>(tail.operand));
    }
  }
  const ir::Dims& result = q.outputs[0].dims;
  std::vector<ir::Dims> strides;
  for (size_t input : s->operands) {
    const OperandFacts& o = q.inputs[input];
    const std::optional<Storage> storage = storage_of(o.dtype);
    if (!storage || o.dims.size() > result.size()) return nullptr;
    s->storage.push_back(*storage);
    ir::Dims aligned(result.size() - o.dims.size(), 1);
    aligned.insert(aligned.end(), o.dims.begin(), o.dims.end());
    ir::Dims stride = ir::strides_of(aligned);
    for (size_t i = 0; i < result.size(); ++i) {
      if (aligned[i] != result[i] && aligned[i] != 1) return nullptr;
      if (aligned[i] == 1) stride[i] = 0;
    }
    strides.push_back(std::move(stride));
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    Axis axis{result[i], {}};
    for (const ir::Dims& stride : strides) axis.strides.push_back(stride[i]);
    bool joins = !s->axes.empty();
    for (size_t k = 0; joins && k < strides.size(); ++k) joins = s->axes.back().strides[k] == axis.strides[k] * axis.extent;
    if (joins)
      axis.extent *= s->axes.back().extent, s->axes.back() = axis;
    else
      s->axes.push_back(axis);
  }
  if (s->axes.empty()) s->axes.push_back({1, std::vector<int64_t>(strides.size(), 0)});
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan(q));
}

const void* element(const ir::TensorView& t, int64_t offset) {
  return static_cast<const std::byte*>(t.data) + offset * static_cast<int64_t>(dtype_bytes(t.dtype));
}

// Computes `count` neighbouring results of the innermost axis. `offsets` are those of the operands.
void run_chunk(const Forms& f, const State& s, const KernelContext& c, std::span<const int64_t> offsets, int64_t out_offset,
               int64_t count, bool direct) {
  const std::vector<int64_t>& inner = s.axes.back().strides;
  std::array<Step, 16> local;
  std::vector<Step> many;
  Step* steps = local.data();
  if (s.steps.size() > local.size()) many.resize(s.steps.size()), steps = many.data();
  size_t operand = 1;
  for (size_t i = 0; i < s.steps.size(); ++i) {
    steps[i] = s.steps[i];
    if (!takes_operand(steps[i].fn)) continue;
    steps[i].operand = element(c.inputs[s.operands[operand]], offsets[operand]);
    steps[i].storage = s.storage[operand];
    steps[i].column_stride = inner[operand];
    ++operand;
  }
  const void* x = element(c.inputs[s.operands[0]], offsets[0]);
  const auto step_count = static_cast<int64_t>(s.steps.size());
  if (direct) {
    float* y = c.outputs[0].as<float>() + out_offset;
    const Step& first = steps[0];
    if (takes_operand(first.fn))
      f.map2(first.fn, static_cast<const float*>(x), inner[0] != 0, static_cast<const float*>(first.operand),
             first.column_stride != 0, y, count);
    else
      f.map(first.fn, first.a, first.b, static_cast<const float*>(x), y, count);
    if (step_count > 1) f.apply_steps(y, 0, 1, count, steps + 1, step_count - 1, 0, 0, 0);
    return;
  }
  alignas(64) float values[kChunk];
  if (inner[0] == 0)
    std::fill_n(values, count,
                s.storage[0] == Storage::Half ? static_cast<float>(*static_cast<const Half*>(x)) : *static_cast<const float*>(x));
  else if (s.storage[0] == Storage::Half)
    f.to_float(static_cast<const Half*>(x), values, count);
  else
    std::copy_n(static_cast<const float*>(x), count, values);
  f.apply_steps(values, 0, 1, count, steps, step_count, 0, 0, 0);
  if (c.outputs[0].dtype == DType::Float16)
    f.to_half(values, c.outputs[0].as<Half>() + out_offset, count);
  else
    std::copy_n(values, count, c.outputs[0].as<float>() + out_offset);
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Forms& f = forms();
  bool direct = c.outputs[0].dtype == DType::Float32 && s.steps[0].fn != Fn::Called;
  const size_t own = takes_operand(s.steps[0].fn) ? 2 : 1;
  for (size_t i = 0; i < s.operands.size(); ++i) {
    if (i < own)
      direct &= s.storage[i] == Storage::Float;
    else
      direct &= c.inputs[s.operands[i]].data != c.outputs[0].data;  // a tail operand must not be overwritten before it is read
  }
  const Axis& inner = s.axes.back();
  const int64_t chunks = divide_up(inner.extent, kChunk);
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < s.axes.size(); ++i) outer *= s.axes[i].extent;
  const int64_t grain = std::max<int64_t>(1, kGrain / std::min(inner.extent, kChunk));
  c.pool.parallel_for(outer * chunks, grain, [&](int64_t begin, int64_t end) {
    std::array<int64_t, 16> few;
    std::vector<int64_t> many(s.operands.size() > few.size() ? s.operands.size() : 0);
    const std::span<int64_t> offsets(many.empty() ? few.data() : many.data(), s.operands.size());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i % chunks * kChunk;
      int64_t index = i / chunks;
      for (size_t k = 0; k < offsets.size(); ++k) offsets[k] = start * inner.strides[k];
      for (size_t a = s.axes.size() - 1; a-- > 0; index /= s.axes[a].extent)
        for (size_t k = 0; k < offsets.size(); ++k) offsets[k] += index % s.axes[a].extent * s.axes[a].strides[k];
      run_chunk(f, s, c, offsets, i / chunks * inner.extent + start, std::min(kChunk, inner.extent - start), direct);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> elementwise() {
  static const Kernel kernels[] = {{"elementwise", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
