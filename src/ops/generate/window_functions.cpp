// Window functions of signal processing, all of them sums of cosines: HannWindow, HammingWindow, BlackmanWindow.
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr int64_t kMaxLength = int64_t{1} << 28;

Result<DType> output_type(const NodeReader& c) {
  ORKNN_TRY_ASSIGN(const DType t, type_attribute(c, "output_datatype", DType::Float32));
  if (!is_arithmetic(t)) return unsupported("a window cannot have this type").found(std::string(dtype_name(t)));
  return t;
}

Result<int64_t> checked_length(const std::vector<int64_t>& values) {
  if (values.size() != 1)
    return shape_mismatch("the length of a window is one value").found(std::to_string(values.size()) + " values");
  if (values[0] < 0 || values[0] > kMaxLength)
    return invalid_model("the length of a window is out of range").found(std::to_string(values[0]));
  return values[0];
}

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return t == DType::Int32 || t == DType::Int64; }, "an int32 or int64 length"));
  ORKNN_TRY(require_one_value(c, 0, "the length of a window"));
  ORKNN_TRY_ASSIGN(const DType type, output_type(c));
  c.set_output(0, type, Shape(1));
  if (const auto values = c.ints(0)) {
    ORKNN_TRY_ASSIGN(const int64_t length, checked_length(*values));
    c.set_output(0, type, Shape{length});
  }
  return {};
}

struct Cosines {
  double a0, a1, a2;
};
constexpr Cosines kHann{0.5, 0.5, 0}, kHamming{25.0 / 46, 21.0 / 46, 0}, kBlackman{0.42, 0.5, 0.08};

template <const Cosines& w>
Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const int64_t length, checked_length(to_ints(c.input(0))));
  ORKNN_TRY_ASSIGN(const DType type, output_type(c));
  TensorData values = TensorData::allocate(DType::Float64, {length});
  auto* to = static_cast<double*>(values.mutable_data());
  const auto period = static_cast<double>(c.get_int("periodic") ? length : length - 1);
  for (int64_t i = 0; i < length; ++i) {
    const double angle = 6.283185307179586476925 * static_cast<double>(i) / period;
    to[i] = length == 1 ? 1.0 : w.a0 - w.a1 * std::cos(angle) + w.a2 * std::cos(2 * angle);
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, values.dims()));
  convert_elements(values.view(), y);
  return {};
}

OpDef define(std::string_view name, std::string_view summary, RunFn run_fn) {
  return {.name = name,
          .summary = summary,
          .attributes = {attr_int("output_datatype", 1), attr_int("periodic", 1)},
          .infer = infer,
          .run = run_fn,
          .widen_half = false};
}
}  // namespace

std::span<const OpDef> window_functions() {
  static const OpDef defs[] = {
      define("HannWindow", "Hann window", run<kHann>),
      define("HammingWindow", "Hamming window", run<kHamming>),
      define("BlackmanWindow", "Blackman window", run<kBlackman>),
  };
  return defs;
}
}  // namespace orknn::ops
