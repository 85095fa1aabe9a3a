// Quantized layers as float layers between QuantizeLinear and DequantizeLinear, with the parameters the model states. A quantized
// tensor is its real value in the graph; that it is quantized, and how, stays with the tensor value.
#include <cmath>

#include "import/pytorch/normalization.h"
#include "import/pytorch/operators.h"
#include "import/pytorch/quantization.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;

template <bool Relu>
TensorId maybe_relu(Call& c, TensorId x) {
  return Relu ? c.unary("Relu", x) : x;
}
// A number on a quantized tensor moves its zero point or its scale instead of its integers.
template <bool Relu>
Result<Value> add_number(Call& c) {
  ORKNN_TRY_ASSIGN(Quantization q, quantization_of(c, true));
  const double s = q.scales[0], least = static_cast<double>(dtype_min(q.dtype)), most = static_cast<double>(dtype_max(q.dtype));
  const double steps = std::nearbyint(c.number("other") / s), moved = static_cast<double>(q.zero_points[0]) - steps;
  if (moved < least)
    q.scales = {(most - moved) / (most - least) * s};
  else if (moved > most)
    q.scales = {(moved - least) / (most - least) * s};
  q.zero_points = {static_cast<int64_t>(std::clamp(moved, least, most))};
  return made_quantized(c, maybe_relu<Relu>(c, c.add(c.tensor("self"), steps * s)), std::move(q));
}
template <bool Relu>
Result<Value> mul_number(Call& c) {
  ORKNN_TRY_ASSIGN(Quantization q, quantization_of(c, true));
  const double factor = c.number("other");
  if (factor == 0) {
    q.scales = {1};
    q.zero_points = {0};
  } else {
    q.scales = {std::fabs(factor) * q.scales[0]};
    if (factor < 0) q.zero_points = {static_cast<int64_t>(dtype_max(q.dtype)) + dtype_min(q.dtype) - q.zero_points[0]};
  }
  return made_quantized(c, maybe_relu<Relu>(c, c.mul(c.tensor("self"), factor)), std::move(q));
}
// Each part is brought to the scale of the result before they are joined.
template <bool Relu>
Result<Value> quantized_cat(Call& c) {
  ORKNN_TRY_ASSIGN(std::vector<TensorId> parts, c.tensors("tensors"));
  if (parts.empty()) return invalid_model("a list of tensors is empty");
  const TensorValue& first = c.items("tensors")[0].tensor();
  Quantization q = first.quantization.value_or(Quantization{});
  if (c.has("scale")) q.scales = {c.number("scale")};
  if (c.has("zero_point")) q.zero_points = {c.integer("zero_point")};
  if (q.scales.size() != 1 || q.zero_points.size() != 1) return invalid_model("a concatenation has no scale");
  q.axis = -1;
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), static_cast<int64_t>(first.dims.size())));
  ORKNN_TRY(check_quantization(q));
  for (TensorId& part : parts) part = quantize_dequantize(c, maybe_relu<Relu>(c, part), q);
  ORKNN_TRY_ASSIGN(const Value v, c.made(c.concat(std::move(parts), axis)));
  v.tensor().quantization = std::move(q);
  return v;
}
Result<TensorId> quantized_softmax(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  return c.softmax(x, axis);
}
Result<Value> quantized_relu6(Call& c) {
  ORKNN_TRY_ASSIGN(Quantization q, quantization_of(c, false));
  return made_quantized(c, relu6(c, c.tensor("self")), std::move(q));
}

#define ORKNN_OUT "Scalar scale, int zero_point)"
#define ORKNN_BATCH_NORM "(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT
}  // namespace

std::span<const Row> quantized_rows() {
  static const Row rows[] = {
      {"quantized::add(Tensor self, Tensor other, " ORKNN_OUT, requantized<same<"Add">>},
      {"quantized::add_relu(Tensor self, Tensor other, " ORKNN_OUT, requantized<relu_of<same<"Add">>>},
      {"quantized::mul(Tensor self, Tensor other, " ORKNN_OUT, requantized<same<"Mul">>},
      {"quantized::mul_relu(Tensor self, Tensor other, " ORKNN_OUT, requantized<relu_of<same<"Mul">>>},
      {"quantized::matmul(Tensor self, Tensor other, " ORKNN_OUT, requantized<same<"MatMul">>},
      {"quantized::add_scalar|quantized::add(Tensor self, Scalar other)", add_number<false>},
      {"quantized::add_scalar_relu(Tensor self, Scalar other)", add_number<true>},
      {"quantized::mul_scalar|quantized::mul(Tensor self, Scalar other)", mul_number<false>},
      {"quantized::mul_scalar_relu(Tensor self, Scalar other)", mul_number<true>},
      {"quantized::cat(Tensor[] tensors, int dim, Scalar? scale=None, int? zero_point=None)", quantized_cat<false>},
      {"quantized::cat_relu(Tensor[] tensors, int dim, Scalar? scale=None, int? zero_point=None)", quantized_cat<true>},
      {"quantized::hardswish(Tensor self, " ORKNN_OUT, requantized<same<"HardSwish">>},
      {"quantized::sigmoid(Tensor self, " ORKNN_OUT, requantized<same<"Sigmoid">>},
      {"quantized::leaky_relu(Tensor self, Scalar negative_slope, any inplace, " ORKNN_OUT, requantized<leaky_relu>},
      {"quantized::elu(Tensor self, Scalar scale, int zero_point, Scalar alpha=1, Scalar a=1, Scalar b=1)",
       requantized<stated_alpha<"Elu">>},
      {"quantized::celu(Tensor self, Scalar scale, int zero_point, Scalar alpha=1)", requantized<stated_alpha<"Celu">>},
      {"quantized::prelu(Tensor self, Tensor weight, " ORKNN_OUT, requantized<prelu>},
      {"quantized::softmax(Tensor self, int dim, " ORKNN_OUT, requantized<quantized_softmax>},
      {"quantized::relu6(Tensor self, bool inplace=False)", quantized_relu6},
      {"quantized::batch_norm|quantized::batch_norm1d|quantized::batch_norm2d|quantized::batch_norm3d" ORKNN_BATCH_NORM,
       requantized<batch_norm_by_stored>},
      {"quantized::batch_norm2d_relu|quantized::batch_norm3d_relu" ORKNN_BATCH_NORM, requantized<relu_of<batch_norm_by_stored>>},
      {"quantized::layer_norm(Tensor self, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT,
       requantized<layer_norm_layer>},
      {"quantized::group_norm(Tensor self, int num_groups, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT,
       requantized<group_norm_layer>},
      {"quantized::instance_norm(Tensor self, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT,
       requantized<instance_norm_by_own>},
  };
  return rows;
}
#undef ORKNN_OUT
#undef ORKNN_BATCH_NORM

}  // namespace orknn::importer::pytorch
