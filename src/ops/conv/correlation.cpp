// How alike two feature maps are around each place (FlowNet): output channel d is the mean over channels and window of the first
// map times the second one moved by displacement d. Displacements run over rows, then columns.
#include <algorithm>

#include "ops/support/floating.h"
#include "ops/support/operands.h"
#include "ops/support/pooling.h"

namespace orknn::ops {
namespace {
using namespace ir;
constexpr int64_t kMost = int64_t{1} << 12;

struct Geometry {
  int64_t pad, kernel, displacement, stride, step;
  int64_t radius() const { return displacement / step; }
  int64_t side() const { return 2 * radius() + 1; }
  int64_t border() const { return displacement + (kernel - 1) / 2; }
  int64_t output(int64_t extent) const { return (extent + 2 * pad - 2 * border() + stride - 1) / stride; }
};

Result<Geometry> geometry_of(const NodeReader& c) {
  const Geometry g{c.get_int("pad"), c.get_int("kernel_size"), c.get_int("max_displacement"), c.get_int("stride_1"),
                   c.get_int("stride_2")};
  for (const auto& [value, least, name] :
       {std::tuple(g.pad, 0, "pad"), std::tuple(g.kernel, 1, "kernel_size"), std::tuple(g.displacement, 0, "max_displacement"),
        std::tuple(g.stride, 1, "stride_1"), std::tuple(g.step, 1, "stride_2")})
    if (value < least || value > kMost)
      return invalid_model("attribute '" + std::string(name) + "' is out of range")
          .expected(std::to_string(least) + " to " + std::to_string(kMost))
          .found(std::to_string(value));
  if (g.kernel % 2 == 0) return unsupported("kernel_size must be odd").found(std::to_string(g.kernel));
  return g;
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY(require_same_type(c, 0, 1));
  ORKNN_TRY(require_rank(c, 0, 4));
  ORKNN_TRY(require_rank(c, 1, 4));
  if (c.shape(0)) ORKNN_TRY(require_shape(c, 1, "the second map", *c.shape(0)));
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(c));
  Shape out{Dim(), g.side() * g.side(), Dim(), Dim()};
  if (const Shape* x = c.shape(0)) {
    out[0] = (*x)[0];
    for (size_t i : {size_t{2}, size_t{3}})
      if ((*x)[i].is_known()) {
        if ((*x)[i].value() + 2 * g.pad <= 2 * g.border())
          return shape_mismatch("the displacement reaches beyond the map")
              .expected("extents above " + std::to_string(2 * (g.border() - g.pad)))
              .found(to_string(*x));
        out[i] = g.output((*x)[i].value());
      }
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

Status run(RunContext& c) {
  const TensorView a = c.input(0), b = c.input(1);
  ORKNN_TRY_ASSIGN(const Geometry g, geometry_of(c));
  if (!std::equal(a.dims.begin(), a.dims.end(), b.dims.begin(), b.dims.end()))
    return shape_mismatch("both maps must have one shape").expected(to_string(a.dims)).found(to_string(b.dims));
  const int64_t channels = a.dims[1], height = a.dims[2], width = a.dims[3], rows = g.output(height), columns = g.output(width);
  if (height + 2 * g.pad <= 2 * g.border() || width + 2 * g.pad <= 2 * g.border())
    return shape_mismatch("the displacement reaches beyond the map").found(to_string(a.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, a.dtype, Dims{a.dims[0], g.side() * g.side(), rows, columns}));
  return run_as_float(a.dtype, [&]<class T>(TypeTag<T>) -> Status {
    const auto size = static_cast<double>(g.kernel * g.kernel * channels);
    for_each_plane(c.pool, a.dims[0] * g.side() * g.side(), [&](int64_t plane) {
      const int64_t image = plane / (g.side() * g.side()), d = plane % (g.side() * g.side());
      const int64_t down = (d / g.side() - g.radius()) * g.step, right = (d % g.side() - g.radius()) * g.step;
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t column = 0; column < columns; ++column) {
          double sum = 0;
          for (int64_t j = 0; j < g.kernel; ++j)
            for (int64_t i = 0; i < g.kernel; ++i) {
              const int64_t h = row * g.stride + g.displacement + j - g.pad, w = column * g.stride + g.displacement + i - g.pad;
              const int64_t other_h = h + down, other_w = w + right;
              if (h < 0 || h >= height || w < 0 || w >= width || other_h < 0 || other_h >= height || other_w < 0 ||
                  other_w >= width)
                continue;  // padding is zero
              const T* from = a.as<T>() + (image * channels * height + h) * width + w;
              const T* other = b.as<T>() + (image * channels * height + other_h) * width + other_w;
              for (int64_t k = 0; k < channels; ++k)
                sum += static_cast<double>(from[k * height * width]) * static_cast<double>(other[k * height * width]);
            }
          y.as<T>()[(plane * rows + row) * columns + column] = static_cast<T>(sum / size);
        }
    });
    return {};
  });
}

OpCost cost(const NodeReader& node, std::span<const Dims> inputs, std::span<const Dims> outputs) {
  const int64_t kernel = std::clamp<int64_t>(node.get_int("kernel_size"), 1, kMost);
  return {.macs = inputs[0].size() == 4 ? element_count(outputs[0]) * inputs[0][1] * kernel * kernel : 0};
}
}  // namespace

std::span<const OpDef> correlation() {
  static const OpDef def{.name = "Correlation",
                         .summary = "products of a feature map with another one at several displacements",
                         .inputs = {2, 2},
                         .attributes = {attr_int("pad", 0), attr_int("kernel_size", 1), attr_int("max_displacement", 0),
                                        attr_int("stride_1", 1), attr_int("stride_2", 1)},
                         .infer = infer,
                         .run = run,
                         .cost = cost};
  return {&def, 1};
}
}  // namespace orknn::ops
