// Matrix product with NumPy's rules: vectors, batches, broadcasting of batch axes; integers too.
#include "ops/support/floating.h"
#include "ops/support/matrix.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_same_type(c, 0, 1));
  if (c.dtype(0) == DType::Bool) return invalid_model("input 0 has the wrong type").expected("a numeric type").found("bool");
  std::optional<Shape> out;
  if (c.shape(0) && c.shape(1)) {
    ORKNN_TRY_ASSIGN(out, matmul_output(*c.shape(0), *c.shape(1)));
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const MatMulShape s, matmul_shape(a.dims, b.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, a.dtype, s.output));
  visit_dtype(a.dtype, [&]<class T>(TypeTag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16> && !std::is_same_v<T, bool>) {
      const auto one = [&](size_t i) {
        T* to = y.as<T>() + static_cast<int64_t>(i) * s.rows * s.columns;
        multiply<ProductSum<T>>(c.pool, s.rows, s.depth, s.columns, a.as<T>() + s.a_offsets[i], b.as<T>() + s.b_offsets[i],
                                [&](int64_t row, auto sums) {
                                  for (size_t j = 0; j < sums.size(); ++j)
                                    to[row * s.columns + static_cast<int64_t>(j)] = static_cast<T>(sums[j]);
                                });
      };
      // Many small matrices: split the batch; few big ones: the rows inside.
      const auto batch = static_cast<int64_t>(s.a_offsets.size());
      if (batch < c.pool.threads()) {
        for (int64_t i = 0; i < batch; ++i) one(static_cast<size_t>(i));
      } else {
        c.pool.parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) one(static_cast<size_t>(i));
        });
      }
    }
  });
  return {};
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  return {.macs = inputs[0].empty() ? 0 : element_count(outputs[0]) * inputs[0].back()};
}
}  // namespace

std::span<const OpDef> matmul() {
  static const OpDef def{.name = "MatMul",
                         .summary = "matrix product, batched",
                         .inputs = {2, 2},
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Compute,
                         .cost = cost,
                         .engine = Engine::MatMul,
                         .pattern = Pattern::Product,
                         .weights = Weights::Matrix,
                         .npu = {.form = NpuForm::MatrixProduct, .listed_as = "exMatMul", .takes_tail = true},
                         .cpu = {CpuList::LargeChips, CpuLimit::Product}};
  return {&def, 1};
}
}  // namespace orknn::ops
