// Conversion between real and quantized tensors, per tensor, per axis or per block: QuantizeLinear, DequantizeLinear.
#include "ops/support/operands.h"
#include "ops/support/quantization.h"

namespace orknn::ops {
namespace {
using namespace ir;

// Checks what can be known about the shape of scales before the run.
// As many as scales; their extents may be spelled in another way.
Status check_zero_points(const InferContext& c, const Shape& scales) {
  const std::optional<Dims> scale = to_dims(scales), zero = c.shape(2) ? to_dims(*c.shape(2)) : std::nullopt;
  if (!scale || !zero || element_count(*scale) == element_count(*zero)) return {};
  return shape_mismatch("as many zero points as scales are needed").expected(to_string(*scale)).found(to_string(*zero));
}

Status check_layout(const InferContext& c) {
  if (c.shape(1)) ORKNN_TRY(check_zero_points(c, *c.shape(1)));
  if (!c.shape(0) || !c.shape(1)) return {};
  const std::optional<Dims> x = to_dims(*c.shape(0)), scale = to_dims(*c.shape(1));
  if (!x || !scale) return {};
  return ScaleLayout::make(*x, *scale, c.get_int("axis"), c.get_int("block_size")).status();
}

Result<DType> quantized_type(const InferContext& c) {
  ORKNN_TRY_ASSIGN(const DType stated, type_attribute(c, "output_dtype", DType::Undefined));
  const DType from_zero = c.has_input(2) ? c.dtype(2) : DType::Undefined;
  if (stated != DType::Undefined && from_zero != DType::Undefined && stated != from_zero)
    return invalid_model("output_dtype and the zero point disagree")
        .expected(std::string(dtype_name(stated)))
        .found(std::string(dtype_name(from_zero)));
  const DType t = from_zero != DType::Undefined ? from_zero : stated != DType::Undefined ? stated : DType::UInt8;
  if (!is_quantized_type(t)) return invalid_model("cannot quantize to this type").found(std::string(dtype_name(t)));
  return t;
}

Status infer_quantize(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return is_float(t) || t == DType::Int32; }, "a floating-point type or int32"));
  ORKNN_TRY(check_type(
      c, 1, [](DType t) { return is_float(t) || t == DType::Int32; }, "a floating-point type or int32"));
  ORKNN_TRY(check_scale_values(c, 1));
  ORKNN_TRY(type_attribute(c, "precision", DType::Undefined).status());
  ORKNN_TRY_ASSIGN(const DType type, quantized_type(c));
  ORKNN_TRY(check_layout(c));
  c.set_output(0, type, c.input(0).shape);
  return {};
}

Status run_quantize(RunContext& c) {
  const TensorView x = c.input(0), scale = c.input(1);
  ORKNN_TRY_ASSIGN(const ScaleLayout layout, ScaleLayout::make(x.dims, scale.dims, c.get_int("axis"), c.get_int("block_size")));
  ORKNN_TRY_ASSIGN(const DType stated, type_attribute(c, "output_dtype", DType::Undefined));
  ORKNN_TRY_ASSIGN(const DType precision, type_attribute(c, "precision", scale.dtype));
  const DType type = c.has_input(2) ? c.input(2).dtype : stated != DType::Undefined ? stated : DType::UInt8;
  const std::vector<double> scales = to_doubles(scale);
  std::vector<int32_t> zeros = read_zero_points(c, 2);
  if (!c.has_input(2)) zeros.resize(scales.size(), 0);
  if (zeros.size() != scales.size())
    return shape_mismatch("as many zero points as scales are needed").found(std::to_string(zeros.size()));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, x.dims));
  // The quotient is rounded to the stated precision before it is rounded to an integer.
  const auto divide = [precision](double v, double s) -> double {
    if (precision == DType::Float64) return v / s;
    const float quotient = static_cast<float>(v) / static_cast<float>(s);
    if (precision == DType::Float16) return static_cast<double>(static_cast<float>(Half(quotient)));
    if (precision == DType::BFloat16) return static_cast<double>(static_cast<float>(BFloat16(quotient)));
    return static_cast<double>(quotient);
  };
  const auto low = static_cast<int32_t>(dtype_min(type)), high = static_cast<int32_t>(dtype_max(type));
  const auto convert_from = [&]<class X>(const X* from) {
    visit_integer(type, [&]<class T>(TypeTag<T>) {
      T* to = y.as<T>();
      layout.for_runs(c.pool, x.count(), [&](int64_t at, int64_t n, int64_t which, int64_t step) {
        for (int64_t i = 0; i < n; ++i) {
          const auto k = static_cast<size_t>(which + i * step);
          to[at + i] = static_cast<T>(saturate(divide(static_cast<double>(from[at + i]), scales[k]), zeros[k], low, high));
        }
      });
    });
  };
  if (x.dtype == DType::Float32)
    convert_from(x.as<float>());
  else
    convert_from(convert(x, DType::Float64).as<double>());
  return {};
}

Status infer_dequantize(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return is_quantized_type(t) || t == DType::Int32; }, "an integer type of at most 16 bits or int32"));
  ORKNN_TRY(check_scale(c, 1, c.dtype(0)));
  ORKNN_TRY_ASSIGN(const DType stated, type_attribute(c, "output_dtype", DType::Undefined));
  if (stated != DType::Undefined && !is_float(stated))
    return invalid_model("output_dtype is not a floating-point type").found(std::string(dtype_name(stated)));
  ORKNN_TRY(check_layout(c));
  c.set_output(0, stated != DType::Undefined ? stated : c.dtype(1), c.input(0).shape);
  return {};
}

Status run_dequantize(RunContext& c) {
  const TensorView x = c.input(0), scale = c.input(1);
  ORKNN_TRY_ASSIGN(const ScaleLayout layout, ScaleLayout::make(x.dims, scale.dims, c.get_int("axis"), c.get_int("block_size")));
  ORKNN_TRY_ASSIGN(const DType stated, type_attribute(c, "output_dtype", DType::Undefined));
  const std::vector<float> scales = read_scales(c, 1);
  std::vector<int32_t> zeros = read_zero_points(c, 2);
  if (!c.has_input(2)) zeros.resize(scales.size(), 0);
  if (zeros.size() != scales.size())
    return shape_mismatch("as many zero points as scales are needed").found(std::to_string(zeros.size()));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stated != DType::Undefined ? stated : scale.dtype, x.dims));
  visit_integer(x.dtype, [&]<class X>(TypeTag<X>) {
    visit_dtype(y.dtype, [&]<class Y>(TypeTag<Y>) {
      if constexpr (!std::is_integral_v<Y>) {
        const X* from = x.as<X>();
        Y* to = y.as<Y>();
        layout.for_runs(c.pool, x.count(), [&](int64_t at, int64_t n, int64_t which, int64_t step) {
          for (int64_t i = 0; i < n; ++i) {
            const auto k = static_cast<size_t>(which + i * step);
            to[at + i] = static_cast<Y>(static_cast<float>(static_cast<int64_t>(from[at + i]) - zeros[k]) * scales[k]);
          }
        });
      }
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> quantize_linear() {
  static const OpDef defs[] = {
      {.name = "QuantizeLinear",
       .summary = "clamp(round(x / scale) + zero_point)",
       .inputs = {2, 3},
       .attributes = {attr_int("axis", 1), attr_int("block_size", 0), attr_int("output_dtype", 0), attr_int("precision", 0),
                      attr_int("saturate", 1)},
       .infer = infer_quantize,
       .run = run_quantize,
       .widen_half = false,
       .pattern = Pattern::Rescale,
       .conversion = Conversion::ToIntegers,
       .exact_inputs = input_slots({1}),
       .npu = {.form = NpuForm::Function, .listed_as = "exDataConvert"},
       .cpu = {CpuList::AllChips}},
      {.name = "DequantizeLinear",
       .summary = "(x - zero_point) * scale",
       .inputs = {2, 3},
       .attributes = {attr_int("axis", 1), attr_int("block_size", 0), attr_int("output_dtype", 0)},
       .infer = infer_dequantize,
       .run = run_dequantize,
       .widen_half = false,
       .pattern = Pattern::Rescale,
       .conversion = Conversion::ToReals,
       .exact_inputs = input_slots({1}),
       .cpu = {CpuList::AllChips}},
  };
  return defs;
}
}  // namespace orknn::ops
