// Operators that make tensors: ranges, fills, random numbers.
#include <cmath>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Status lower_range(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId start, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId limit, layer.input(1));
  ORKNN_TRY_ASSIGN(const TensorId delta, layer.input(2));
  const DType dtype = layer.dtype_of(start);
  if (is_float(dtype) || dtype == DType::Int32 || dtype == DType::Int64 || dtype == DType::Int16) {
    layer.set(layer.emit("Range", {start, limit, delta}));
  } else {
    const auto wide = [&](TensorId x) { return layer.cast(x, DType::Int64); };
    layer.set(layer.cast(layer.emit("Range", {wide(start), wide(limit), wide(delta)}), dtype));
  }
  return {};
}

Status lower_linspace(Layer& layer) {
  ORKNN_TRY_ASSIGN(const double start, layer.number(0, "to space numbers evenly"));
  ORKNN_TRY_ASSIGN(const double stop, layer.number(1, "to space numbers evenly"));
  ORKNN_TRY_ASSIGN(const int64_t count, layer.integer(2, "to space numbers evenly"));
  constexpr int64_t kMost = 1 << 24;
  if (count < 1 || count > kMost) return invalid_model("the number of values is out of range").found(std::to_string(count));
  std::vector<double> values(static_cast<size_t>(count));
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  for (size_t i = 0; i < values.size(); ++i) values[i] = start + step * static_cast<double>(i);
  if (count > 1) values.back() = stop;
  layer.set(
      layer.cast(layer.add_constant("values", TensorData::from<double>({count}, values)), layer.dtype_of(layer.value(0).tensor)));
  return {};
}

Status lower_fill(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId shape, layer.input(0));
  ORKNN_TRY_ASSIGN(const TensorId value, layer.input(1));
  layer.set(layer.emit("Expand", {value, layer.cast(shape, DType::Int64)}));
  return {};
}

// Empty's contents are not defined: zeros are as good as any.
Status lower_empty(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId shape, layer.input(0));
  const DType dtype = layer.dtype_or("dtype", DType::Float32);
  if (dtype == DType::Undefined) return unsupported("values of this type are not supported");
  layer.set(layer.emit("Expand", {layer.add_scalar("zero", 0, dtype), layer.cast(shape, DType::Int64)}));
  return {};
}

// Zeros or ones; of a list, zeros of each element.
Status lower_like(Layer& layer) {
  ORKNN_TRY(layer.need_inputs(1));
  const double value = layer.op() == "OnesLike" ? 1 : 0;
  const auto fill = [&](TensorId x) {
    return layer.emit("Expand", {layer.constant_like(x, "value", value), layer.emit("Shape", {x})});
  };
  if (const auto& list = layer.value(0).list) {
    TensorList filled = *list;
    for (TensorId& item : filled.items)
      if (item) item = fill(item);
    layer.set(Value(std::move(filled)));
    return {};
  }
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  layer.set(fill(x));
  return {};
}

// Left in a graph by mistake more often than on purpose; the numbers follow from the seed, not from TensorFlow's generator.
Status lower_random(Layer& layer) {
  ORKNN_TRY_ASSIGN(const auto shape, layer.ints(0, "to size the result"));
  const DType dtype = layer.dtype_or("dtype", DType::Float32);
  if (!is_float(dtype)) return unsupported("random integers are not supported");
  const bool uniform = layer.op().find("Uniform") != std::string_view::npos;
  Attributes attributes{
      {"shape", shape}, {"dtype", static_cast<int64_t>(dtype)}, {"seed", static_cast<double>(layer.int_or("seed", 0))}};
  TensorId x = layer.emit(uniform ? "RandomUniform" : "RandomNormal", {}, std::move(attributes));
  if (layer.op().find("Truncated") != std::string_view::npos)
    x = layer.emit("Clip", {x, layer.constant_like(x, "low", -2), layer.constant_like(x, "high", 2)});
  layer.set(x);
  layer.import.warnings.push_back("node '" + layer.layer() + "' draws random numbers, which are not those of TensorFlow");
  return {};
}
}  // namespace

std::span<const Row> generator_rows() {
  static constexpr Row kRows[] = {
      {"Range", lower_range},
      {"LinSpace", lower_linspace},
      {"Fill", lower_fill},
      {"Empty", lower_empty},
      {"ZerosLike", lower_like},
      {"OnesLike", lower_like},
      {"RandomUniform", lower_random},
      {"RandomStandardNormal", lower_random},
      {"TruncatedNormal", lower_random},
      {"StatelessRandomUniform", lower_random},
      {"StatelessRandomUniformV2", lower_random},
      {"StatelessRandomNormal", lower_random},
      {"StatelessRandomNormalV2", lower_random},
      {"StatelessTruncatedNormal", lower_random},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
