// Linear interpolation of the last two axes of integers. Where every row and column of the result lies between those of the data
// is given as tables, [extent, 2] of int32: the position before it, and the share of the next one in 2048ths (8-bit data) or
// 16384ths (int16). Sums are exact, the output converter rounds once. Inputs: data, rows, columns, optional table.
#include "ops/support/elementwise.h"
#include "ops/support/requantize.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr size_t kRows = 1, kColumns = 2, kTable = 3;

Status infer(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_npu_integer, "int8, uint8 or int16"));
  ORKNN_TRY_ASSIGN(const DType type, output_stage_type(c, kTable));
  ORKNN_TRY(check_output_stage(c, kTable, {.max_factor = kMaxResizeFactor}));
  ORKNN_TRY(read_zero_point(c, "x_zero_point").status());
  std::optional<Shape> shape;
  if (c.shape(0)) shape = *c.shape(0);
  if (shape && shape->size() < 2) return shape_mismatch("the data has no rows and columns").found(to_string(*shape));
  for (size_t i : {kRows, kColumns}) {
    ORKNN_TRY(check_type(
        c, i, [](DType t) { return t == DType::Int32; }, "int32"));
    const Shape* places = c.shape(i);
    if (places && (places->size() != 2 || (places->back().is_known() && places->back().value() != 2)))
      return shape_mismatch("places are pairs of a position and a share").found(to_string(*places));
    if (places && shape) {
      Dim& extent = (*shape)[shape->size() - 3 + i];
      if (c.constant(i) && extent.is_known())
        ORKNN_TRY(check_places(c.constant(i)->view(), extent.value(), int64_t{1} << resize_bits(c.dtype(0))));
      extent = places->front();
    } else {
      shape.reset();
    }
  }
  c.set_output(0, type, std::move(shape));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0), rows = c.input(kRows), columns = c.input(kColumns);
  if (x.rank() < 2) return shape_mismatch("the data has no rows and columns").found(to_string(x.dims));
  const int64_t height = x.dims[x.dims.size() - 2], width = x.dims.back(), bits = resize_bits(x.dtype), one = int64_t{1} << bits;
  ORKNN_TRY(check_places(rows, height, one));
  ORKNN_TRY(check_places(columns, width, one));
  ORKNN_TRY_ASSIGN(const OutputStage stage, read_output_stage(c, kTable, {.max_factor = kMaxResizeFactor}));
  ORKNN_TRY_ASSIGN(const int64_t zero, read_zero_point(c, "x_zero_point"));
  Dims dims(x.dims.begin(), x.dims.end());
  dims[dims.size() - 2] = rows.dims[0];
  dims.back() = columns.dims[0];
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, stage.dtype, dims));
  if (y.count() == 0) return {};
  const int64_t out_height = rows.dims[0], out_width = columns.dims[0];
  visit_npu_integer(x.dtype, [&]<class T>(TypeTag<T>) {
    visit_npu_integer(y.dtype, [&]<class Y>(TypeTag<Y>) {
      c.pool.parallel_for(y.count() / out_width, 4, [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int32_t* at = rows.as<int32_t>() + row % out_height * 2;
          const T* upper = x.as<T>() + (row / out_height * height + at[0]) * width;
          const T* lower = at[1] == 0 ? upper : upper + width;
          for (int64_t i = 0; i < out_width; ++i) {
            const int32_t* place = columns.as<int32_t>() + i * 2;
            const int64_t left = place[0], right = place[1] == 0 ? left : left + 1, share = place[1];
            const int64_t top = (upper[left] - zero) * (one - share) + (upper[right] - zero) * share;
            const int64_t bottom = (lower[left] - zero) * (one - share) + (lower[right] - zero) * share;
            y.as<Y>()[row * out_width + i] = static_cast<Y>(stage.finish(top * (one - at[1]) + bottom * at[1]));
          }
        }
      });
    });
  });
  return {};
}
}  // namespace

std::span<const OpDef> int_resize() {
  static const OpDef defs[] = {
      {.name = "int:Resize",
       .summary = "linear interpolation of rows and columns of integers",
       .inputs = {3, 4},
       .attributes = output_stage_attributes({attr_int("x_zero_point", 0)}),
       .infer = infer,
       .run = run,
       .widen_half = false,
       .quant = QuantRule::Integer,
       .engine = Engine::Pool,
       .samples_apart = true,
       .integer_form_of = "Resize",
       .table_input = 3},
  };
  return defs;
}
}  // namespace orknn::ops
