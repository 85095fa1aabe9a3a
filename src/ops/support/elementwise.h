// Shape rules and loops shared by element-wise ops.
#pragma once

#include <functional>
#include <span>

#include "ir/op_def.h"
#include "ops/support/scratch_dims.h"

namespace orknn::ops {

// Elements per parallel chunk: small enough to share work, large enough to hide the cost of handing it out.
constexpr int64_t kElementGrain = 16384;

// ---- types
// Floats and integers of 8 bits or more: what arithmetic is defined on.
bool is_arithmetic(DType t);
bool is_wide_integer(DType t);  // integers of 8 bits or more
bool is_any(DType t);

// Ok when all inputs the node has are of one type and `allowed` holds for it; `what` names the allowed types in the error.
Status check_types(const ir::InferContext& c, bool (*allowed)(DType), std::string_view what);
// The same for one input.
Status check_type(const ir::InferContext& c, size_t input, bool (*allowed)(DType), std::string_view what);

// The element type an int attribute names by its ONNX number; `fallback` when the node has none, or 0.
Result<DType> type_attribute(const ir::NodeReader& c, std::string_view name, DType fallback);

// ---- shape rules
// Output 0 has the type and shape of input 0.
Status same_as_input(ir::InferContext& c);
Status float_same_as_input(ir::InferContext& c);       // refuses what is not a float
Status arithmetic_same_as_input(ir::InferContext& c);  // refuses bool and 4-bit integers
// Output 0 broadcasts all inputs; type of input 0.
Status broadcast_inputs(ir::InferContext& c);
// The same with a bool result (comparisons).
Status broadcast_to_bool(ir::InferContext& c);
// Sets output 0 to the broadcast shape of all inputs and the given type.
Status broadcast_all(ir::InferContext& c, DType result);

// The shape of a PRelu's slope as it broadcasts to x. A vector that does not fit the last axis but has one entry per channel
// (axis 1) is meant per channel, as older frameworks write it.
ir::Dims slope_dims(std::span<const int64_t> x, std::span<const int64_t> slope);

// Shape arithmetic: when output 0 (set before) is a small vector or scalar and the elements of all inputs are known well enough,
// computes its elements as f(elements of the inputs at one place).
void fold_content(ir::InferContext& c, const std::function<ir::Dim(std::span<const ir::Dim>)>& f);

// ---- loops
// Calls f(TypeTag<T>{}) for float, double and integers; anything else does nothing. The shape rule has refused other types.
template <class F>
void visit_arithmetic(DType t, F&& f) {
  visit_dtype(t, [&]<class T>(TypeTag<T> tag) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16> && !std::is_same_v<T, bool>) f(tag);
  });
}
template <class F>
void visit_real(DType t, F&& f) {
  if (t == DType::Float64)
    f(TypeTag<double>{});
  else if (t == DType::Float32)
    f(TypeTag<float>{});
}
template <class F>
void visit_integer(DType t, F&& f) {
  visit_dtype(t, [&]<class T>(TypeTag<T> tag) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f(tag);
  });
}

// to[i] = f(from[i]) for n elements.
template <class From, class To, class F>
void map_elements(ThreadPool& pool, const From* from, To* to, int64_t n, F&& f) {
  pool.parallel_for(n, kElementGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = static_cast<To>(f(from[i]));
  });
}

// Calls f on each element of input 0 in its own type (float, double, integers) and writes the result in that type.
template <class F>
Status map_numeric(ir::RunContext& c, F&& f) {
  const ir::TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const ir::MutableTensorView y, c.output(0, x.dtype, x.dims));
  visit_arithmetic(x.dtype, [&]<class T>(TypeTag<T>) { map_elements(c.pool, x.as<T>(), y.as<T>(), x.count(), f); });
  return {};
}
// The same for float and double only.
template <class F>
Status map_float(ir::RunContext& c, F&& f) {
  const ir::TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const ir::MutableTensorView y, c.output(0, x.dtype, x.dims));
  visit_real(x.dtype, [&]<class T>(TypeTag<T>) { map_elements(c.pool, x.as<T>(), y.as<T>(), x.count(), f); });
  return {};
}

// ---- definitions
// What the NPU makes of a function that it looks up in a table. `listed_as`: its name on the vendor's list, where it is another.
constexpr ir::NpuFacts table_function(std::string_view listed_as = {}) {
  return {.form = ir::NpuForm::Function, .listed_as = listed_as, .stage = ir::OutputStage::Table};
}

// Completes the definition of a float function of one value: shape rule, kernel, pattern and engine. `F` is a lambda without
// captures, []<class T>(T x, T a, T b), for float and double; a and b are the float attributes that `def.scalar` names, or 0.
template <class F>
ir::OpDef float_function(ir::OpDef def, F) {
  def.infer = float_same_as_input;
  def.run = [](ir::RunContext& c) {
    const ir::ScalarFunction& names = c.def().scalar;
    const double a = names.a.empty() ? 0 : c.get_float(names.a), b = names.b.empty() ? 0 : c.get_float(names.b);
    return map_float(c, [&]<class T>(T x) { return F{}(x, static_cast<T>(a), static_cast<T>(b)); });
  };
  def.pattern = ir::Pattern::Pointwise;
  def.scalar.call = [](float x, float a, float b) -> float { return F{}(x, a, b); };
  if (def.npu.form != ir::NpuForm::None && def.npu.stage == ir::OutputStage::Table) def.engine = ir::Engine::Lut;
  return def;
}

// How several tensors broadcast to one, as rows in which each input either advances by one element or stands still.
class Broadcast {
 public:
  static Result<Broadcast> plan(std::initializer_list<std::span<const int64_t>> inputs);
  std::span<const int64_t> dims() const { return dims_; }
  // 0 or 1: how input i moves inside a row.
  int64_t step(size_t i) const { return stride(loop_.size() - 1, i); }
  // Calls row(out, in, n): n elements from out on; in[i] is where input i starts. Rows may run in parallel.
  using Row = std::function<void(int64_t out, const int64_t* in, int64_t n)>;
  void for_rows(ThreadPool& pool, const Row& row) const;
  // Any function object, which is only referred to: a call allocates nothing.
  template <class Function>
  void for_rows(ThreadPool& pool, Function&& row) const {
    const Row reference(std::ref(row));
    for_rows(pool, reference);
  }

 private:
  int64_t stride(size_t axis, size_t input) const { return strides_[axis * inputs_ + input]; }
  int64_t& stride(size_t axis, size_t input) { return strides_[axis * inputs_ + input]; }
  size_t inputs_ = 0;
  ScratchDims dims_;
  ScratchDims loop_;     // merged axes, the last one is the row; never empty
  ScratchDims strides_;  // per merged axis, per input
};

// y = f(a, b) over a broadcast plan of two inputs.
template <class A, class B, class Y, class F>
void map_rows(ThreadPool& pool, const Broadcast& plan, const A* a, const B* b, Y* y, F&& f) {
  const int64_t step_a = plan.step(0), step_b = plan.step(1);
  plan.for_rows(pool, [&](int64_t out, const int64_t* in, int64_t n) {
    const A* pa = a + in[0];
    const B* pb = b + in[1];
    Y* to = y + out;
    if (step_a == 1 && step_b == 1)
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Y>(f(pa[i], pb[i]));
    else
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<Y>(f(pa[i * step_a], pb[i * step_b]));
  });
}

}  // namespace orknn::ops
