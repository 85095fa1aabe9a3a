#include "ops/support/pooling.h"

#include <algorithm>

#include "ops/support/floating.h"

namespace orknn::ops {
using namespace ir;

Dims PoolShape::output_dims() const {
  Dims dims{batch, channels};
  dims.insert(dims.end(), output.begin(), output.end());
  return dims;
}

std::vector<AttributeDef> pool_attributes() {
  return {attr_string("auto_pad", "NOTSET"),   attr_int("ceil_mode", 0), attr_ints("dilations"),
          required(attr_ints("kernel_shape")), attr_ints("pads"),        attr_ints("strides")};
}

namespace {
Status check_rank(size_t rank) {
  if (rank >= 3) return {};
  return shape_mismatch("input 0 has the wrong rank").expected("3 or more").found(std::to_string(rank));
}

// A window that lies in the padding altogether has no value.
Result<Window> read_pool_window(const NodeReader& node, size_t spatial_rank) {
  ORKNN_TRY_ASSIGN(Window w, read_window(node, spatial_rank));
  for (size_t i = 0; i < spatial_rank; ++i)
    if (std::max(w.pads_begin[i], w.pads_end[i]) > w.span(i))
      return invalid_model("padding is larger than the kernel")
          .expected("at most " + std::to_string(w.span(i)))
          .found(to_string(w.pads_begin) + " and " + to_string(w.pads_end));
  return w;
}
}  // namespace

Result<PoolShape> pool_shape(const NodeReader& node, std::span<const int64_t> x) {
  ORKNN_TRY(check_rank(x.size()));
  PoolShape s;
  s.batch = x[0];
  s.channels = x[1];
  ORKNN_TRY_ASSIGN(s.window, read_pool_window(node, x.size() - 2));
  s.input.assign(x.begin() + 2, x.end());
  ORKNN_TRY_ASSIGN(s.output, window_output(s.window, s.input));
  settle_pads(s.window, s.input);
  return s;
}

Result<std::optional<Shape>> infer_pool(const InferContext& c) {
  const Shape* x = c.shape(0);
  if (!x) return std::optional<Shape>();
  ORKNN_TRY(check_rank(x->size()));
  ORKNN_TRY_ASSIGN(const Window window, read_pool_window(c, x->size() - 2));
  Shape out = *x;
  for (size_t i = 2; i < out.size(); ++i) {
    ORKNN_TRY_ASSIGN(out[i], window_output(window, i - 2, (*x)[i]));
  }
  return std::optional<Shape>(std::move(out));
}

Status infer_float_pool(InferContext& c) {
  ORKNN_TRY(require_float(c, 0));
  ORKNN_TRY_ASSIGN(std::optional<Shape> shape, infer_pool(c));
  c.set_output(0, c.dtype(0), std::move(shape));
  return {};
}

Status check_norm_order(const NodeReader& node) {
  const int64_t p = node.get_int("p");
  return p >= 1 ? Status() : invalid_model("p is out of range").expected("at least 1").found(std::to_string(p));
}

OpCost pool_cost(const NodeReader& node, std::span<const Dims>, std::span<const Dims> outputs) {
  const auto w = outputs[0].size() > 2 ? read_window(node, outputs[0].size() - 2) : Result<Window>(Window{});
  return {.element_ops = w ? element_count(outputs[0]) * w->taps() : 0};
}

void for_each_plane(ThreadPool& pool, int64_t planes, const std::function<void(int64_t plane)>& body) {
  pool.parallel_for(planes, 4, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

}  // namespace orknn::ops
