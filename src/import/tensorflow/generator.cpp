// Operators that make tensors: ranges, fills, random numbers.
#include "import/lower/creation.h"
#include "import/lower/gather.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
TensorId range(Emitter& e, TensorId start, TensorId limit, TensorId delta) {
  const DType dtype = e.dtype_of(start);
  if (is_float(dtype) || dtype == DType::Int32 || dtype == DType::Int64 || dtype == DType::Int16)
    return e.emit("Range", {start, limit, delta});
  const auto wide = [&](TensorId x) { return e.cast(x, DType::Int64); };
  return e.cast(e.emit("Range", {wide(start), wide(limit), wide(delta)}), dtype);
}

Result<TensorId> linspace(Layer& l, TensorId first) {
  ORKNN_TRY_ASSIGN(const double start, l.number(0, "to space numbers evenly"));
  ORKNN_TRY_ASSIGN(const double stop, l.number(1, "to space numbers evenly"));
  ORKNN_TRY_ASSIGN(const int64_t count, l.integer(2, "to space numbers evenly"));
  if (count < 1) return invalid_model("the number of values is out of range").found(std::to_string(count));
  return evenly_spaced(l, start, stop, count, l.dtype_of(first));
}

TensorId fill(Emitter& e, TensorId shape, TensorId value) { return broadcast_to(e, value, shape); }

// Empty's contents are not defined: zeros are as good as any.
Result<TensorId> empty(Layer& l, TensorId shape) {
  const DType dtype = l.dtype_or("dtype", DType::Float32);
  if (dtype == DType::Undefined) return unsupported("values of this type are not supported");
  return broadcast_to(l, l.add_scalar("zero", 0, dtype), shape);
}

// Zeros or ones; of a list, zeros of each element.
template <int Number>
Result<Value> filled_like(Layer& l) {
  if (const auto& list = l.value(0).list) {
    TensorList filled = *list;
    for (TensorId& item : filled.items)
      if (item) item = l.full_like(item, Number);
    return Value(std::move(filled));
  }
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(0));
  return Value(l.full_like(x, Number));
}

// Left in a graph by mistake more often than on purpose; the numbers follow from the seed, not from TensorFlow's generator.
template <OpName Op>
Result<TensorId> random(Layer& l) {
  ORKNN_TRY_ASSIGN(const auto shape, l.ints(0, "to size the result"));
  const DType dtype = l.dtype_or("dtype", DType::Float32);
  if (!is_float(dtype)) return unsupported("random integers are not supported");
  l.import.warnings.push_back("node '" + l.layer() + "' draws random numbers, which are not those of TensorFlow");
  return l.emit(Op.string(), {},
                {{"shape", shape}, {"dtype", static_cast<int64_t>(dtype)}, {"seed", static_cast<double>(l.int_or("seed", 0))}});
}
Result<TensorId> truncated_normal(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, random<"RandomNormal">(l));
  return l.clip(x, -2, 2);
}
}  // namespace

std::span<const Row> generator_rows() {
  static const Row rows[] = {
      {"Range", range},
      {"LinSpace", linspace},
      {"Fill", fill},
      {"Empty", empty},
      {"ZerosLike", filled_like<0>, {.inputs = {.least = 1}}},
      {"OnesLike", filled_like<1>, {.inputs = {.least = 1}}},
      {"RandomUniform|StatelessRandomUniform|StatelessRandomUniformV2", random<"RandomUniform">},
      {"RandomStandardNormal|StatelessRandomNormal|StatelessRandomNormalV2", random<"RandomNormal">},
      {"TruncatedNormal|StatelessTruncatedNormal", truncated_normal},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
