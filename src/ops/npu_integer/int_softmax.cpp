// Softmax in integers: the exponentials of all differences to the largest value (256, or 65536 of 16-bit values) are a table of
// fixed-point numbers, so sums are exact and the same in any order. y_factor is 256 divided by the result's scale.
#include "ops/support/elementwise.h"
#include "ops/support/moments.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status check_powers(std::span<const int32_t> powers) {
  for (const int32_t power : powers)
    if (power < 0 || power > 1 << 24 || powers[0] == 0)
      return invalid_model("the table of exponentials is out of range").found(std::to_string(power));
  return {};
}

Status check_factor(int64_t factor) {
  if (factor >= 1 && factor <= kMaxSoftmaxFactor) return {};
  return invalid_model("y_factor is out of range")
      .expected("1 to " + std::to_string(kMaxSoftmaxFactor))
      .found(std::to_string(factor));
}

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_npu_integer, "int8, uint8 or int16"));
  ORKNN_TRY(check_type(
      c, 1, [](DType t) { return t == DType::Int32; }, "int32"));
  if (const auto table = c.shape(1) ? to_dims(*c.shape(1)) : std::nullopt; table && *table != Dims{softmax_entries(c.dtype(0))})
    return shape_mismatch("the table does not have one entry per difference")
        .expected(std::to_string(softmax_entries(c.dtype(0))))
        .found(to_string(*c.shape(1)));
  if (const TensorData* table = c.constant(1)) ORKNN_TRY(check_powers(table->view().values<int32_t>()));
  ORKNN_TRY(read_zero_point(c, "y_zero_point").status());
  ORKNN_TRY(check_factor(c.get_int("y_factor")));
  if (c.shape(0)) ORKNN_TRY(normalize_axis(c.get_int("axis"), static_cast<int64_t>(c.shape(0)->size())).status());
  c.set_output(0, c.dtype(0), c.shape(0) ? std::optional(*c.shape(0)) : std::nullopt);
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), table = c.input(1);
  const int64_t entries = softmax_entries(x.dtype);
  if (table.count() != entries)
    return shape_mismatch("the table does not have one entry per difference")
        .expected(std::to_string(entries))
        .found(std::to_string(table.count()));
  const int32_t* powers = table.as<int32_t>();  // entry d: 2^24 * exp(-d * scale)
  ORKNN_TRY(check_powers(table.values<int32_t>()));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(c.get_int("axis"), x.rank()));
  const AxisSplit split = split_at(x.dims, axis);
  ORKNN_TRY_ASSIGN(const int64_t zero, read_zero_point(c, "y_zero_point"));
  const int64_t factor = c.get_int("y_factor");
  ORKNN_TRY(check_factor(factor));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  if (x.count() == 0) return {};
  visit_npu_integer(x.dtype, [&]<class T>(TypeTag<T>) {
    constexpr int64_t low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    c.pool.parallel_for(split.outer * split.inner, 16, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t start = item / split.inner * split.extent * split.inner + item % split.inner;
        const T* from = x.as<T>() + start;
        T* to = y.as<T>() + start;
        T top = from[0];
        for (int64_t i = 1; i < split.extent; ++i) top = std::max(top, from[i * split.inner]);
        int64_t sum = 0;
        for (int64_t i = 0; i < split.extent; ++i) sum += powers[top - from[i * split.inner]];
        for (int64_t i = 0; i < split.extent; ++i)
          to[i * split.inner] = static_cast<T>(std::clamp<int64_t>(
              (2 * factor * powers[top - from[i * split.inner]] + 256 * sum) / (512 * sum) + zero, low, high));
      }
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> int_softmax() {
  static const OpDef defs[] = {
      {.name = "int:Softmax",
       .summary = "softmax of integers",
       .inputs = {2, 2},
       .attributes = {axes_of_input(attr_int("axis", -1)), required(attr_int("y_zero_point")), attr_int("y_factor", 255 * 256),
                      attr_strings("fused")},
       .infer = infer,
       .run = run,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .engine = Engine::Norm,
       .axes = AxisNames::Attribute,
       .integer_form_of = "Softmax",
       .table_input = 1},
  };
  return defs;
}
}  // namespace orknn::ops
