// RotaryEmbedding: pairs of elements of each head are rotated by an angle that depends on the position in the sequence.
#include "ops/support/elementwise.h"
#include "ops/support/floating.h"
#include "ops/support/operands.h"

namespace orknn::ops {
namespace {
using namespace ir;

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_same_type(c, 0, 2));
  ORKNN_TRY(require_type(c, 3, DType::Int64));
  if (const Shape* x = c.shape(0); x && x->size() != 3 && x->size() != 4)
    return shape_mismatch("input 0 has the wrong rank").expected("3 or 4").found(to_string(*x));
  const size_t cache_rank = c.has_input(3) ? 2 : 3;
  ORKNN_TRY(require_rank(c, 1, cache_rank));
  ORKNN_TRY(require_rank(c, 2, cache_rank));
  ORKNN_TRY(require_rank(c, 3, 2));
  if (c.shape(1)) ORKNN_TRY(require_shape(c, 2, "sin_cache", *c.shape(1)));
  if (c.has_input(3) && c.shape(1)) ORKNN_TRY(require_values(c, 3, "a position is", 0, (*c.shape(1))[0] + Dim(-1)));
  if (const Shape* x = c.shape(0)) {
    const bool four = x->size() == 4;
    const Dim &batch = (*x)[0], &steps = (*x)[four ? 2 : 1];
    ORKNN_TRY(require_shape(c, 3, "position_ids", {batch, steps}));
    const int64_t heads = c.get_int("num_heads"), rotated = c.get_int("rotary_embedding_dim");
    if (!four && (heads < 1 || ((*x)[2].is_known() && (*x)[2].value() % heads != 0)))
      return invalid_model("num_heads is out of range")
          .expected("a divisor of " + (*x)[2].to_string())
          .found(std::to_string(heads));
    const Dim size = four ? (*x)[3] : (*x)[2] / Dim(heads), half = rotated != 0 ? Dim(rotated / 2) : size / Dim(2);
    if (rotated < 0 || rotated % 2 != 0 ||
        (size.is_known() && (rotated > size.value() || (rotated == 0 && size.value() % 2 != 0))))
      return invalid_model("rotary_embedding_dim is out of range")
          .expected("an even number up to " + size.to_string())
          .found(rotated != 0 ? std::to_string(rotated) : size.to_string());
    ORKNN_TRY(require_shape(c, 1, "cos_cache", c.has_input(3) ? Shape{Dim(), half} : Shape{batch, steps, half}));
  }
  return same_as_input(c);
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), cosines = c.input(1), sines = c.input(2);
  const bool four = x.rank() == 4;
  const int64_t batch = x.dims[0], steps = x.dims[four ? 2 : 1];
  const int64_t heads = four ? x.dims[1] : c.get_int("num_heads");
  if (heads < 1 || (!four && x.dims[2] % heads != 0))
    return invalid_model("num_heads is out of range")
        .expected("a divisor of " + std::to_string(x.dims.back()))
        .found(std::to_string(heads));
  const int64_t size = four ? x.dims[3] : x.dims[2] / heads;
  const int64_t given = c.get_int("rotary_embedding_dim"), rotated = given == 0 ? size : given, half = rotated / 2;
  if (rotated < 0 || rotated > size || rotated % 2 != 0)
    return invalid_model("rotary_embedding_dim is out of range")
        .expected("an even number up to " + std::to_string(size))
        .found(std::to_string(rotated));
  const int64_t* positions = nullptr;
  Dims expected{batch, steps, half};
  if (c.has_input(3)) {
    const TensorView ids = c.input(3);
    if (ids.dims[0] != batch || ids.dims[1] != steps) return wrong_shape("position_ids", to_string(Dims{batch, steps}), ids.dims);
    positions = ids.as<int64_t>();
    expected = {cosines.dims[0], half};
    for (int64_t i = 0; i < ids.count(); ++i)
      if (positions[i] < 0 || positions[i] >= cosines.dims[0])
        return invalid_argument("a position is out of range")
            .expected("between 0 and " + std::to_string(cosines.dims[0] - 1))
            .found(std::to_string(positions[i]));
  }
  for (const auto& [name, cache] : {std::pair{"cos_cache", cosines}, std::pair{"sin_cache", sines}})
    if (!std::equal(expected.begin(), expected.end(), cache.dims.begin(), cache.dims.end()))
      return wrong_shape(name, to_string(expected), cache.dims);
  const bool interleaved = c.get_int("interleaved") != 0;
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, x.dims));
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t s = 0; s < steps; ++s) {
        const int64_t angle = (positions ? positions[b * steps + s] : b * steps + s) * half;
        for (int64_t h = 0; h < heads; ++h) {
          const int64_t at = (four ? (b * heads + h) * steps + s : (b * steps + s) * heads + h) * size;
          const T* from = x.as<T>() + at;
          T* to = y.as<T>() + at;
          for (int64_t i = 0; i < half; ++i) {
            const int64_t first = interleaved ? 2 * i : i, second = interleaved ? 2 * i + 1 : half + i;
            const auto cosine = static_cast<double>(cosines.as<T>()[angle + i]),
                       sine = static_cast<double>(sines.as<T>()[angle + i]);
            const auto real = static_cast<double>(from[first]), imaginary = static_cast<double>(from[second]);
            to[first] = static_cast<T>(cosine * real - sine * imaginary);
            to[second] = static_cast<T>(sine * real + cosine * imaginary);
          }
          std::copy(from + rotated, from + size, to + rotated);
        }
      }
    return Status();
  });
}
}  // namespace

std::span<const OpDef> rotary_embedding() {
  static const OpDef def{
      .name = "RotaryEmbedding",
      .summary = "rotation of element pairs by position",
      .inputs = {3, 4},
      .attributes = {attr_int("interleaved", 0), attr_int("num_heads", 0), attr_int("rotary_embedding_dim", 0)},
      .infer = infer,
      .run = run,
      .engine = Engine::Elementwise};
  return {&def, 1};
}
}  // namespace orknn::ops
