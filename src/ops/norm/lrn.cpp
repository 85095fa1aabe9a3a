// LRN: each value divided by a power of the sum of squares of its neighbour channels.
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/floating.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  if (c.get_int("size") < 1)
    return invalid_model("size is out of range").expected("at least 1").found(std::to_string(c.get_int("size")));
  if (c.shape(0) && c.shape(0)->size() < 2)
    return shape_mismatch("input 0 has the wrong rank").expected("2 or more").found(to_string(*c.shape(0)));
  return same_as_input(c);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  const int64_t batch = x.dims[0], channels = x.dims[1], inner = element_count(x.dims.subspan(2)), size = c.get_int("size");
  const double factor = c.get_float("alpha") / static_cast<double>(size), beta = c.get_float("beta"), bias = c.get_float("bias");
  // Channels before and after; an even size reaches one further after.
  const int64_t before = std::min((size - 1) / 2, channels), after = std::min(size - 1 - (size - 1) / 2, channels);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(batch * channels, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> squares(static_cast<size_t>(inner));
      for (int64_t plane = begin; plane < end; ++plane) {
        const int64_t image = plane / channels, ch = plane % channels;
        std::fill(squares.begin(), squares.end(), 0.0);
        for (int64_t k = std::max<int64_t>(ch - before, 0); k <= std::min(ch + after, channels - 1); ++k) {
          const T* from = x.as<T>() + (image * channels + k) * inner;
          for (int64_t i = 0; i < inner; ++i)
            squares[static_cast<size_t>(i)] += static_cast<double>(from[i]) * static_cast<double>(from[i]);
        }
        for (int64_t i = 0; i < inner; ++i)
          y.as<T>()[plane * inner + i] = static_cast<T>(static_cast<double>(x.as<T>()[plane * inner + i]) /
                                                        std::pow(bias + factor * squares[static_cast<size_t>(i)], beta));
      }
    });
    return Status();
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims>, std::span<const Dims> outputs) {
  return {.element_ops = element_count(outputs[0]) * (std::clamp<int64_t>(node.get_int("size"), 1, 1 << 20) + 4)};
}
}  // namespace

std::span<const OpDef> lrn() {
  static const OpDef def{
      .name = "LRN",
      .summary = "local response normalization across channels",
      .attributes = {attr_float("alpha", 1e-4), attr_float("beta", 0.75), attr_float("bias", 1.0), required(attr_int("size"))},
      .infer = infer,
      .run = run,
      .cost = cost,
      .engine = Engine::Norm,
      .samples_apart = true,
      .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
