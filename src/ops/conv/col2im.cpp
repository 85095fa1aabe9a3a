// Col2Im: adds columns of sliding blocks back into an image, the inverse of cutting an image into blocks.
#include "ops/support/floating.h"
#include "ops/support/window.h"

namespace orknn::ops {
namespace {
using namespace ir;

struct Geometry {
  Dims image;
  Window window;  // kernel = block
  Dims blocks;    // number of blocks along each axis
};

Result<Geometry> geometry(const NodeReader& node, std::vector<int64_t> image, const std::vector<int64_t>& block) {
  if (image.empty() || image.size() != block.size())
    return shape_mismatch("image_shape and block_shape must have the same length")
        .expected("one extent per spatial axis")
        .found(to_string(image) + " and " + to_string(block));
  Geometry g{.image = std::move(image), .window = {}, .blocks = {}};
  ORKNN_TRY_ASSIGN(g.window, read_window(node, g.image.size(), block));
  ORKNN_TRY_ASSIGN(g.blocks, window_output(g.window, g.image));
  ORKNN_TRY(checked_element_count(g.blocks).status());
  return g;
}

// [N, C * block, L] -> [N, C, image...]; checks what is known of the input.
Result<Shape> output_shape(const Geometry& g, const Shape& x) {
  if (x.size() != 3) return shape_mismatch("input 0 has the wrong rank").expected("3").found(to_string(x));
  const int64_t taps = g.window.taps();
  if (x[1].is_known() && x[1].value() % taps != 0)
    return shape_mismatch("columns do not divide into blocks")
        .expected("a multiple of " + std::to_string(taps))
        .found(x[1].to_string());
  if (x[2].is_known() && x[2].value() != element_count(g.blocks))
    return shape_mismatch("wrong number of blocks").expected(std::to_string(element_count(g.blocks))).found(x[2].to_string());
  Shape out{x[0], x[1] / Dim(taps)};
  out.insert(out.end(), g.image.begin(), g.image.end());
  return out;
}

Status infer(InferContext& c) {
  if (c.dtype(0) == DType::Bool) return unsupported("element type is not supported").found("bool");
  const auto image = c.ints(1), block = c.ints(2);
  std::optional<Shape> out;
  if (image && block) {
    ORKNN_TRY_ASSIGN(const Geometry g, geometry(c, *image, *block));
    ORKNN_TRY_ASSIGN(out, output_shape(g, c.shape(0) ? *c.shape(0) : Shape(3)));
  } else if (const auto extents = c.content(1)) {
    out = Shape{c.shape(0) && !c.shape(0)->empty() ? c.shape(0)->front() : Dim(), Dim()};
    out->insert(out->end(), extents->begin(), extents->end());
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const Geometry g, geometry(c, to_ints(c.input(1)), to_ints(c.input(2))));
  ORKNN_TRY_ASSIGN(const Shape shape, output_shape(g, to_shape(x.dims)));
  const Dims dims = *to_dims(shape);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  const int64_t planes = dims[0] * dims[1], taps = g.window.taps(), block_count = element_count(g.blocks),
                plane_size = element_count(g.image);
  const Dims strides = strides_of(g.image);
  return visit_dtype(x.dtype, [&]<class T>(TypeTag<T>) -> Status {
    if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> || std::is_same_v<T, bool>) {
      return unsupported("element type is not supported").found(std::string(dtype_name(x.dtype)));
    } else {
      using Sum = std::conditional_t<std::is_integral_v<T>,
                                     std::make_unsigned_t<std::conditional_t<std::is_integral_v<T>, T, int>>, double>;
      c.pool.parallel_for(planes, 1, [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane) {
          std::vector<Sum> sums(static_cast<size_t>(plane_size));
          Dims tap(g.image.size(), 0);
          for (int64_t t = 0; t < taps; ++t, next_index(tap, g.window.kernel)) {
            const T* from = x.as<T>() + (plane * taps + t) * block_count;
            Dims at(g.image.size(), 0);
            for (int64_t b = 0; b < block_count; ++b, next_index(at, g.blocks)) {
              int64_t position = 0;
              bool inside = true;
              for (size_t i = 0; i < at.size() && inside; ++i) {
                const int64_t p = at[i] * g.window.strides[i] + tap[i] * g.window.dilations[i] - g.window.pads_begin[i];
                inside = p >= 0 && p < g.image[i];
                position += p * strides[i];
              }
              if (inside)
                sums[static_cast<size_t>(position)] =
                    static_cast<Sum>(sums[static_cast<size_t>(position)] + static_cast<Sum>(from[b]));
            }
          }
          T* to = y.as<T>() + plane * plane_size;
          for (int64_t i = 0; i < plane_size; ++i) to[i] = static_cast<T>(sums[static_cast<size_t>(i)]);
        }
      });
      return {};
    }
  });
}

OpCost cost(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims>) {
  return {.element_ops = element_count(inputs[0])};
}
}  // namespace

std::span<const OpDef> col2im() {
  static const OpDef def{.name = "Col2Im",
                         .summary = "sums sliding blocks back into an image",
                         .inputs = {3, 3},
                         .attributes = {attr_ints("dilations"), attr_ints("pads"), attr_ints("strides")},
                         .infer = infer,
                         .run = run,
                         .cost = cost};
  return {&def, 1};
}
}  // namespace orknn::ops
