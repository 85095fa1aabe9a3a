// Quantized layers as float layers between QuantizeLinear and DequantizeLinear, with the parameters the model states. A quantized
// tensor is its real value in the graph; that it is quantized, and how, stays with the tensor value.
#include <cmath>

#include "import/pytorch/ops.h"
#include "import/pytorch/quantize.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

template <OpName Op, bool Relu>
Result<Value> combine(Call& c) {
  const TensorId y = c.emit(Op.string(), {c.tensor("self"), c.tensor("other")});
  return quantized_result(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
// A number on a quantized tensor moves its zero point or its scale instead of its integers.
template <bool Relu>
Result<Value> add_scalar(Call& c) {
  const auto& own = c.handle("self").quantization;
  if (!own || own->axis >= 0) return invalid_model("the tensor is not quantized as a whole");
  const double s = own->scales[0], least = static_cast<double>(dtype_min(own->dtype)),
               most = static_cast<double>(dtype_max(own->dtype));
  const double steps = std::nearbyint(c.number("other") / s), moved = static_cast<double>(own->zero_points[0]) - steps;
  Quantization q = *own;
  if (moved < least) {
    q.scales = {(most - moved) / (most - least) * s};
    q.zero_points = {static_cast<int64_t>(least)};
  } else if (moved > most) {
    q.scales = {(moved - least) / (most - least) * s};
    q.zero_points = {static_cast<int64_t>(most)};
  } else {
    q.zero_points = {static_cast<int64_t>(moved)};
  }
  const TensorId y = c.add(c.tensor("self"), c.scalar(steps * s, DType::Float32));
  return made_quantized(c, Relu ? c.emit("Relu", {y}) : y, std::move(q));
}
template <bool Relu>
Result<Value> mul_scalar(Call& c) {
  const auto& own = c.handle("self").quantization;
  if (!own || own->axis >= 0) return invalid_model("the tensor is not quantized as a whole");
  const double factor = c.number("other");
  Quantization q = *own;
  if (factor == 0) {
    q.scales = {1};
    q.zero_points = {0};
  } else {
    q.scales = {std::fabs(factor) * own->scales[0]};
    if (factor < 0) q.zero_points = {static_cast<int64_t>(dtype_max(own->dtype)) + dtype_min(own->dtype) - own->zero_points[0]};
  }
  const TensorId y = c.mul(c.tensor("self"), c.scalar(factor, DType::Float32));
  return made_quantized(c, Relu ? c.emit("Relu", {y}) : y, std::move(q));
}
template <bool Relu>
Result<Value> cat(Call& c) {
  std::vector<TensorId> parts;
  const auto& items = c.items("tensors");
  if (items.empty() || !items[0].is_tensor()) return invalid_model("a list of tensors is empty");
  for (const Value& v : items) {
    if (!v.is_tensor()) return invalid_model("a list of tensors holds None");
    parts.push_back(v.tensor().id);
  }
  Quantization q = items[0].tensor().quantization.value_or(Quantization{});
  if (c.has("scale")) q.scales = {c.number("scale")};
  if (c.has("zero_point")) q.zero_points = {c.integer("zero_point")};
  if (q.scales.size() != 1 || q.zero_points.size() != 1) return invalid_model("a concatenation has no scale");
  q.axis = -1;
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", static_cast<int64_t>(items[0].tensor().dims.size())));
  // Each part is brought to the scale of the result before they are joined.
  ORKNN_TRY(check_quantization(q));
  for (TensorId& part : parts) part = quantize_dequantize(c, Relu ? c.emit("Relu", {part}) : part, q);
  ORKNN_TRY_ASSIGN(const Value v, c.made(c.concat(std::move(parts), static_cast<int64_t>(axis))));
  v.tensor().quantization = std::move(q);
  return v;
}
template <OpName Op>
Result<Value> activation(Call& c) {
  return quantized_result(c, c.emit(Op.string(), {c.tensor("self")}), "self");
}
Result<Value> leaky_relu(Call& c) {
  return quantized_result(c, c.emit("LeakyRelu", {c.tensor("self")}, {{"alpha", c.number("negative_slope")}}), "self");
}
Result<Value> elu(Call& c) {
  return quantized_result(c, c.emit("Elu", {c.tensor("self")}, {{"alpha", c.number("alpha")}}), "self");
}
Result<Value> celu(Call& c) {
  return quantized_result(c, c.emit("Celu", {c.tensor("self")}, {{"alpha", c.number("alpha")}}), "self");
}
Result<Value> prelu(Call& c) {
  TensorId slope = c.tensor("weight");
  const int64_t count = ir::element_count(c.dims("weight")), rank = c.rank("self");
  if (count > 1 && rank >= 2) {
    std::vector<int64_t> shape(static_cast<size_t>(rank - 1), 1);
    shape[0] = count;
    slope = c.reshape(slope, shape);
  } else {
    slope = c.reshape(slope, {});
  }
  return quantized_result(c, c.emit("PRelu", {c.tensor("self"), slope}), "self");
}
Result<Value> softmax(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return quantized_result(c, c.softmax(c.tensor("self"), static_cast<int64_t>(axis)), "self");
}
Result<Value> relu6(Call& c) {
  const auto q = c.handle("self").quantization;
  if (!q) return invalid_model("the tensor is not quantized");
  return made_quantized(c, c.clip(c.tensor("self"), 0, 6), *q);
}
template <bool Relu>
Result<Value> batch_norm(Call& c) {
  const int64_t channels = c.rank("self") < 2 ? 0 : c.dims("self")[1];
  const auto parameter = [&](const char* name, double fallback) {
    return c.has(name) ? c.tensor(name) : c.full(Dims{channels}, fallback, DType::Float32);
  };
  const TensorId y = c.emit("BatchNormalization",
                            {c.tensor("self"), parameter("weight", 1), parameter("bias", 0), c.tensor("mean"), c.tensor("var")},
                            {{"epsilon", c.number("eps")}});
  return quantized_result(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
Result<Value> layer_norm(Call& c) {
  const Dims shape = c.ints("normalized_shape");
  std::vector<TensorId> inputs{c.tensor("self"), c.has("weight") ? c.tensor("weight") : c.full(shape, 1, DType::Float32)};
  if (c.has("bias")) inputs.push_back(c.tensor("bias"));
  return quantized_result(c,
                          c.emit("LayerNormalization", std::move(inputs),
                                 {{"axis", -static_cast<int64_t>(shape.size())}, {"epsilon", c.number("eps")}}),
                          "self");
}
Result<Value> group_norm(Call& c) {
  const int64_t channels = c.rank("self") < 2 ? 0 : c.dims("self")[1];
  const auto parameter = [&](const char* name, double fallback) {
    return c.has(name) ? c.tensor(name) : c.full(Dims{channels}, fallback, DType::Float32);
  };
  return quantized_result(c,
                          c.emit("GroupNormalization", {c.tensor("self"), parameter("weight", 1), parameter("bias", 0)},
                                 {{"epsilon", c.number("eps")}, {"num_groups", c.integer("num_groups")}}),
                          "self");
}
Result<Value> instance_norm(Call& c) {
  const int64_t channels = c.rank("self") < 2 ? 0 : c.dims("self")[1];
  const auto parameter = [&](const char* name, double fallback) {
    return c.has(name) ? c.tensor(name) : c.full(Dims{channels}, fallback, DType::Float32);
  };
  return quantized_result(c,
                          c.emit("InstanceNormalization", {c.tensor("self"), parameter("weight", 1), parameter("bias", 0)},
                                 {{"epsilon", c.number("eps")}}),
                          "self");
}

#define ORKNN_OUT "Scalar scale, int zero_point)"
}  // namespace

std::span<const Row> quantized_rows() {
  static constexpr Row kRows[] = {
      {"quantized::add(Tensor self, Tensor other, " ORKNN_OUT, combine<"Add", false>},
      {"quantized::add_relu(Tensor self, Tensor other, " ORKNN_OUT, combine<"Add", true>},
      {"quantized::mul(Tensor self, Tensor other, " ORKNN_OUT, combine<"Mul", false>},
      {"quantized::mul_relu(Tensor self, Tensor other, " ORKNN_OUT, combine<"Mul", true>},
      {"quantized::matmul(Tensor self, Tensor other, " ORKNN_OUT, combine<"MatMul", false>},
      {"quantized::add_scalar(Tensor self, Scalar other)", add_scalar<false>},
      {"quantized::add_scalar_relu(Tensor self, Scalar other)", add_scalar<true>},
      {"quantized::add(Tensor self, Scalar other)", add_scalar<false>},
      {"quantized::mul_scalar(Tensor self, Scalar other)", mul_scalar<false>},
      {"quantized::mul_scalar_relu(Tensor self, Scalar other)", mul_scalar<true>},
      {"quantized::mul(Tensor self, Scalar other)", mul_scalar<false>},
      {"quantized::cat(Tensor[] tensors, int dim, Scalar? scale=None, int? zero_point=None)", cat<false>},
      {"quantized::cat_relu(Tensor[] tensors, int dim, Scalar? scale=None, int? zero_point=None)", cat<true>},
      {"quantized::hardswish(Tensor self, " ORKNN_OUT, activation<"HardSwish">},
      {"quantized::sigmoid(Tensor self, " ORKNN_OUT, activation<"Sigmoid">},
      {"quantized::leaky_relu(Tensor self, Scalar negative_slope, any inplace, " ORKNN_OUT, leaky_relu},
      {"quantized::elu(Tensor self, "
       "Scalar scale, int zero_point, Scalar alpha=1, Scalar a=1, Scalar b=1)",
       elu},
      {"quantized::celu(Tensor self, "
       "Scalar scale, int zero_point, Scalar alpha=1)",
       celu},
      {"quantized::prelu(Tensor self, Tensor weight, " ORKNN_OUT, prelu},
      {"quantized::softmax(Tensor self, int dim, " ORKNN_OUT, softmax},
      {"quantized::relu6(Tensor self, bool inplace=False)", relu6},
      {"quantized::batch_norm(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT,
       batch_norm<false>},
      {"quantized::batch_norm1d(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT,
       batch_norm<false>},
      {"quantized::batch_norm2d(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT,
       batch_norm<false>},
      {"quantized::batch_norm3d(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT,
       batch_norm<false>},
      {"quantized::batch_norm2d_relu(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT,
       batch_norm<true>},
      {"quantized::batch_norm3d_relu(Tensor self, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, " ORKNN_OUT,
       batch_norm<true>},
      {"quantized::layer_norm(Tensor self, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT,
       layer_norm},
      {"quantized::group_norm(Tensor self, int num_groups, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT, group_norm},
      {"quantized::instance_norm(Tensor self, Tensor? weight, Tensor? bias, float eps, " ORKNN_OUT, instance_norm},
  };
  return kRows;
}
#undef ORKNN_OUT

}  // namespace orknn::importer::pytorch
