// Pooling, plain and adaptive.
#include <functional>

#include "import/lower/adaptive_pool.h"
#include "import/lower/window.h"
#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// Runs `pool` on the input with a batch axis, whether it had one or not, and takes the axis from its results again.
using Pool = std::function<Result<std::vector<TensorId>>(TensorId x)>;
Result<std::vector<TensorId>> on_batch(Call& c, size_t spatial, const Pool& pool) {
  const bool lacks_batch = c.dims().size() == spatial + 1;
  if (c.dims().size() != spatial + 2 && !lacks_batch)
    return invalid_model("the input of the pool has the wrong number of axes")
        .expected(std::to_string(spatial + 2))
        .found(ir::to_string(c.dims()));
  const TensorId x = c.tensor("self");
  ORKNN_TRY_ASSIGN(std::vector<TensorId> results, pool(lacks_batch ? c.unsqueeze(x, {0}) : x));
  if (lacks_batch)
    for (TensorId& y : results)
      if (y) y = c.squeeze(y, {0});
  return results;
}
Result<TensorId> only(Result<std::vector<TensorId>> results) {
  if (!results) return results.status();
  return (*results)[0];
}

Result<ir::Attributes> window_attributes(Call& c, size_t spatial, bool has_dilation) {
  Window w;
  ORKNN_TRY_ASSIGN(w.kernel, c.ints("kernel_size", spatial));
  w.strides = w.kernel;
  if (!c.ints("stride").empty()) {
    ORKNN_TRY_ASSIGN(w.strides, c.ints("stride", spatial));
  }
  ORKNN_TRY_ASSIGN(w.pads_begin, c.ints("padding", spatial));
  w.pads_end = w.pads_begin;
  if (has_dilation) {
    ORKNN_TRY_ASSIGN(w.dilations, c.ints("dilation", spatial));
  }
  ir::Attributes attributes = w.attributes();
  attributes.set("ceil_mode", int64_t{c.flag("ceil_mode")});
  return attributes;
}

template <size_t Spatial>
Result<TensorId> max_pool(Call& c) {
  ORKNN_TRY_ASSIGN(const auto attributes, window_attributes(c, Spatial, true));
  return only(on_batch(c, Spatial, [&](TensorId x) -> Result<std::vector<TensorId>> {
    return std::vector<TensorId>{c.emit("MaxPool", {x}, attributes)};
  }));
}
template <size_t Spatial>
Result<std::vector<TensorId>> max_pool_with_indices(Call& c) {
  ORKNN_TRY_ASSIGN(const auto attributes, window_attributes(c, Spatial, true));
  return on_batch(c, Spatial, [&](TensorId x) -> Result<std::vector<TensorId>> {
    ORKNN_TRY_ASSIGN(const PooledMax y, max_pool_with_positions(c, x, attributes));
    return std::vector<TensorId>{y.values, y.positions};
  });
}

template <size_t Spatial>
Result<TensorId> avg_pool(Call& c) {
  ORKNN_TRY_ASSIGN(auto attributes, window_attributes(c, Spatial, false));
  const bool has_divisor = c.has("divisor_override");
  // Another divisor: the sum of the window is its mean over all taps, padding included, without those beyond the padded input.
  attributes.set("count_include_pad", static_cast<int64_t>(c.flag("count_include_pad") || has_divisor));
  double factor = 1;
  if (has_divisor) {
    if (c.integer("divisor_override") == 0) return invalid_model("a pool divides by zero");
    if (c.flag("ceil_mode")) return unsupported("divisor_override together with ceil_mode is not supported");
    for (int64_t k : attributes.ints_or("kernel_shape")) factor *= static_cast<double>(k);
    factor /= c.number("divisor_override");
  }
  return only(on_batch(c, Spatial, [&](TensorId x) -> Result<std::vector<TensorId>> {
    const TensorId y = c.emit("AveragePool", {x}, attributes);
    return std::vector<TensorId>{has_divisor ? c.mul(y, factor) : y};
  }));
}

// A scatter of each plane into zeros.
Result<TensorId> max_unpool(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const auto size, c.ints("output_size", 2));
  if (c.rank() != 4 || size[0] < 0 || size[1] < 0 || size[0] > (1 << 24) || size[1] > (1 << 24))
    return unsupported("this form of max_unpool2d is not supported");
  const Dims& dims = c.dims();
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("indices"));
  const TensorId zeros = c.full(Dims{dims[0], dims[1], size[0] * size[1]}, 0, c.dtype());
  const Dims flat{dims[0], dims[1], dims[2] * dims[3]};
  const TensorId y = c.emit("ScatterElements", {zeros, c.reshape(index, flat), c.reshape(x, flat)}, {{"axis", int64_t{2}}});
  return c.reshape(y, {dims[0], dims[1], size[0], size[1]});
}

// --- adaptive
// The sizes of the result; None keeps an extent.
Result<std::vector<int64_t>> adaptive_size(Call& c, size_t spatial) {
  const Value& given = c.value("output_size");
  const Dims& dims = c.dims();
  std::vector<int64_t> size;
  if (given.is_number()) size.assign(spatial, given.integer());
  if (given.is_sequence() && dims.size() >= spatial) {
    const auto& items = given.sequence().items;
    for (size_t i = 0; i < spatial && i < items.size(); ++i) {
      if (!items[i].is_none() && items[i].kind() != Kind::Int)
        return invalid_model("the size of an adaptive pool is a " + describe(items[i]));
      size.push_back(items[i].is_none() ? dims[dims.size() - spatial + i] : items[i].integer());
    }
    if (size.size() == 1) size.resize(spatial, size[0]);
  }
  if (size.size() != spatial) return invalid_model("the size of an adaptive pool does not fit its input").found(to_text(given));
  return size;
}
template <size_t Spatial>
Result<TensorId> adaptive_avg(Call& c) {
  ORKNN_TRY_ASSIGN(const auto size, adaptive_size(c, Spatial));
  return only(on_batch(c, Spatial, [&](TensorId x) -> Result<std::vector<TensorId>> {
    ORKNN_TRY_ASSIGN(const TensorId y, adaptive_average_pool(c, x, size));
    return std::vector<TensorId>{y};
  }));
}
template <size_t Spatial>
Result<std::vector<TensorId>> adaptive_max(Call& c) {
  ORKNN_TRY_ASSIGN(const auto size, adaptive_size(c, Spatial));
  return on_batch(c, Spatial, [&](TensorId x) -> Result<std::vector<TensorId>> {
    ORKNN_TRY_ASSIGN(const PooledMax y, adaptive_max_pool(c, x, size));
    return std::vector<TensorId>{y.values, y.positions};
  });
}

Status fractional(Call&) { return unsupported("fractional pooling is random and not supported"); }

#define ORKNN_MAX_POOL \
  "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, int[] dilation=1, bool ceil_mode=False)"
#define ORKNN_AVG_POOL                                                                                                          \
  "(Tensor self, int[] kernel_size, int[] stride=[], int[] padding=0, bool ceil_mode=False, bool count_include_pad=True, int? " \
  "divisor_override=None)"
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {
      {"max_pool1d|quantized_max_pool1d" ORKNN_MAX_POOL, max_pool<1>},
      {"max_pool2d|quantized_max_pool2d" ORKNN_MAX_POOL, max_pool<2>},
      {"max_pool3d" ORKNN_MAX_POOL, max_pool<3>},
      {"max_pool1d_with_indices" ORKNN_MAX_POOL, max_pool_with_indices<1>},
      {"max_pool2d_with_indices" ORKNN_MAX_POOL, max_pool_with_indices<2>},
      {"max_pool3d_with_indices" ORKNN_MAX_POOL, max_pool_with_indices<3>},
      {"avg_pool1d" ORKNN_AVG_POOL, avg_pool<1>},
      {"avg_pool2d" ORKNN_AVG_POOL, avg_pool<2>},
      {"avg_pool3d" ORKNN_AVG_POOL, avg_pool<3>},
      {"max_unpool2d(Tensor self, Tensor indices, int[] output_size)", max_unpool},
      {"adaptive_avg_pool1d(Tensor self, any output_size)", adaptive_avg<1>},
      {"adaptive_avg_pool2d|_adaptive_avg_pool2d(Tensor self, any output_size)", adaptive_avg<2>},
      {"adaptive_avg_pool3d|_adaptive_avg_pool3d(Tensor self, any output_size)", adaptive_avg<3>},
      {"adaptive_max_pool1d(Tensor self, any output_size)", adaptive_max<1>},
      {"adaptive_max_pool2d(Tensor self, any output_size)", adaptive_max<2>},
      {"adaptive_max_pool3d(Tensor self, any output_size)", adaptive_max<3>},
      {"fractional_max_pool2d|fractional_max_pool3d(...)", fractional},
  };
  return rows;
}
#undef ORKNN_MAX_POOL
#undef ORKNN_AVG_POOL

}  // namespace orknn::importer::pytorch
