// Limits values to a range. Bounds are inputs; as a tail step they are attributes.
#include <limits>

#include "ops/support/copies.h"
#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(check_types(c, is_arithmetic, "a number type of at least 8 bits"));
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i) || !c.shape(i)) continue;
    const std::optional<Dims> dims = to_dims(*c.shape(i));
    if (dims && element_count(*dims) != 1) return shape_mismatch("a bound is one value").found(to_string(*dims));
  }
  return same_as_input(c);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  visit_arithmetic(x.dtype, [&]<class T>(TypeTag<T>) {
    const auto bound = [&](size_t input, std::string_view attribute, bool& present) {
      present = c.has_input(input) || c.node().attributes.has(attribute);
      if (c.has_input(input)) return c.input(input).as<T>()[0];
      const double value = c.node().attributes.float_or(attribute, 0);
      if constexpr (std::is_integral_v<T>) {  // bounds beyond the type bound nothing
        if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
        if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
      }
      return static_cast<T>(value);
    };
    bool has_low = false, has_high = false;
    const T low = bound(1, "min", has_low), high = bound(2, "max", has_high);
    map_elements(c.pool, x.as<T>(), y.as<T>(), x.count(), [&](T v) {
      if (has_low && v < low) v = low;
      return has_high && v > high ? high : v;
    });
  });
  return {};
}

// Without bounds, or with infinite ones.
int copied(const InferContext& c) {
  if (c.node().attributes.has("min") || c.node().attributes.has("max")) return kNoCopy;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto is_free = [&](size_t i, double bound) { return !c.node().has_input(i) || scalar_of(c, i) == bound; };
  return is_free(1, -kInfinity) && is_free(2, kInfinity) ? 0 : kNoCopy;
}
}  // namespace

std::span<const OpDef> clip() {
  static const OpDef def{.name = "Clip",
                         .summary = "limits values to [min, max]",
                         .inputs = {1, 3},
                         .attributes = {attr_float("min"), attr_float("max")},
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Table,
                         .engine = Engine::Elementwise,
                         .pattern = Pattern::Pointwise,
                         .bounds = Bounds::Given,
                         .keeps_range = true,
                         .copied_input = copied,
                         .npu = {.form = NpuForm::Function, .stage = OutputStage::Plain},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
