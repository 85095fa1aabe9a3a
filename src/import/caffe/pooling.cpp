// Pooling with Caffe's rounding, pyramids of it, pooling with a mask and its inverse.
#include "import/caffe/layer.h"
#include "import/lower/functions.h"
#include "import/lower/reorganize.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
enum class Pool { Max, Average, Stochastic };

Pool pool_of(const Parameters& p) { return static_cast<Pool>(p.choice("pool", 0, {"MAX", "AVE", "STOCHASTIC"})); }

// In use, stochastic pooling is the mean weighted by the values themselves.
TensorId weighted_mean(Layer& l, TensorId x, const std::string& op, const Attributes& attributes) {
  return l.div(l.emit(op, {square(l, x)}, attributes), l.emit(op, {x}, attributes));
}

TensorId pooled(Layer& l, TensorId x, Pool pool, Window window) {
  window.counts_padding = pool != Pool::Max;  // the padding counts, what lies beyond it does not
  if (pool == Pool::Stochastic) return weighted_mean(l, x, "AveragePool", window.attributes());
  return l.emit(pool == Pool::Max ? "MaxPool" : "AveragePool", {x}, window.attributes());
}

TensorId globally_pooled(Layer& l, TensorId x, Pool pool) {
  if (pool == Pool::Stochastic) return weighted_mean(l, x, "GlobalAveragePool", {});
  return l.unary(pool == Pool::Max ? "GlobalMaxPool" : "GlobalAveragePool", x);
}

// Index of the first pixel of each plane in the memory of the whole tensor, [N,C,1,1].
Result<TensorId> plane_starts(Layer& l, int64_t images, int64_t channels, int64_t plane) {
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(Dims{images, channels}, int64_t{1} << 26));
  ORKNN_TRY(checked_element_count(Dims{images, channels, plane}).status());
  std::vector<int64_t> starts(static_cast<size_t>(count));
  for (size_t i = 0; i < starts.size(); ++i) starts[i] = static_cast<int64_t>(i) * plane;
  return l.add_constant("plane_starts", TensorData::from<int64_t>({images, channels, 1, 1}, starts));
}

// The second top tells where in its plane each maximum was.
Result<std::vector<TensorId>> pooled_with_mask(Layer& l, TensorId x, const Window& window) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to number its pixels", 4));
  const auto outputs = l.emit_all("MaxPool", {x}, window.attributes(), 2);
  ORKNN_TRY_ASSIGN(const TensorId starts, plane_starts(l, dims[0], dims[1], dims[2] * dims[3]));
  return std::vector{outputs[0], l.cast(l.sub(outputs[1], starts), DType::Float32)};
}

Result<std::vector<TensorId>> pooling(Layer& l, TensorId x) {
  const Parameters p = l.parameters("pooling_param");
  const Pool pool = pool_of(p);
  const bool global = p.flag("global_pooling", false), with_mask = l.top_count() > 1;
  if (with_mask && pool != Pool::Max) return unsupported("only MAX pooling has a mask");
  Window window;
  if (!global) {
    ORKNN_TRY_ASSIGN(window, window_of(l, x, p));
    window.dilations.clear();
    // Ceil is the default; newer schemas and forks can say otherwise.
    const std::string mode = p.word("round_mode", "CEIL");
    window.ceil = p.flag("ceil_mode", mode != "FLOOR" && mode != "1");
  } else if (with_mask) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to pool it with a mask", 4));
    window.kernel = {dims[2], dims[3]};
  }
  if (with_mask) return pooled_with_mask(l, x, window);
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to pool it"));
  if (rank < 3) return unsupported("pooling needs spatial axes").found(std::to_string(rank) + " axes");
  return std::vector{global ? globally_pooled(l, x, pool) : pooled(l, x, pool, window)};
}

// Pools at several sizes, all results in one row.
Result<TensorId> spatial_pyramid(Layer& l, TensorId x) {
  const Parameters p = l.parameters("spp_param");
  const Pool pool = pool_of(p);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to divide it", 4));
  if (dims[2] < 1 || dims[3] < 1) return invalid_model("the picture is empty").found(to_string(dims));
  std::vector<TensorId> rows;
  for (int64_t level = 0, levels = p.integer("pyramid_height", 1, 1, 16); level < levels; ++level) {
    const int64_t bins = int64_t{1} << level;
    Window w{.ceil = true};
    for (size_t axis : {size_t{2}, size_t{3}}) {
      const int64_t kernel = (dims[axis] + bins - 1) / bins;
      w.kernel.push_back(kernel);
      w.pads_begin.push_back((kernel * bins - dims[axis] + 1) / 2);
    }
    w.strides = w.kernel;
    w.pads_end = w.pads_begin;
    rows.push_back(l.emit("Flatten", {pooled(l, x, pool, w)}, {{"axis", int64_t{1}}}));
  }
  return l.concat(std::move(rows), 1);
}

// Enlarges by repeating pixels, or, with the mask of a pooling, puts each value back where it came from.
Result<TensorId> upsample(Layer& l, Operands bottoms) {
  constexpr int64_t kMostScale = 1024, kMostExtent = 1 << 20;
  const Parameters p = l.parameters("upsample_param");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(bottoms[0], "to enlarge it", 4));
  const int64_t scale = p.integer("scale", p.integer("stride", 2), 1, kMostScale);
  const int64_t scale_h = p.integer("scale_h", scale, 1, kMostScale), scale_w = p.integer("scale_w", scale, 1, kMostScale);
  if (bottoms.size() == 1) return repeat_pixels(l, bottoms[0], scale_h, scale_w);
  const int64_t height = p.integer("upsample_h", dims[2] * scale_h - p.flag("pad_out_h", false), 1, kMostExtent),
                width = p.integer("upsample_w", dims[3] * scale_w - p.flag("pad_out_w", false), 1, kMostExtent);
  ORKNN_TRY_ASSIGN(const TensorId starts, plane_starts(l, dims[0], dims[1], height * width));
  const TensorId places = l.add(l.cast(bottoms[1], DType::Int64), starts);
  const std::vector<int64_t> window{scale_h, scale_w};
  return l.emit("MaxUnpool", {bottoms[0], places, l.add_ints("output_shape", {dims[0], dims[1], height, width})},
                {{"kernel_shape", window}, {"strides", window}});
}
}  // namespace

std::span<const Row> pooling_rows() {
  static const Row rows[] = {
      {"Pooling|PoolWithArgmax|PoolingWithArgmax", pooling, kOne},
      {"SPP", spatial_pyramid, kOne},
      {"Upsample|Unpooling", upsample, kOneOrTwo},
  };
  return rows;
}

}  // namespace orknn::importer::caffe
