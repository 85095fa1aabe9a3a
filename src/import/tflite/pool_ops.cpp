// Pooling, resizing and other operators on pictures, and their channels-first forms.
#include <algorithm>
#include <cmath>

#include "import/tflite/window.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
Result<Window> pool_window(Layer& l) {
  const Table& o = l.options();
  Window w{static_cast<Padding>(o.number<int8_t>(0)),
           {o.number<int32_t>(4), o.number<int32_t>(3)},
           {o.number<int32_t>(2), o.number<int32_t>(1)},
           {}};
  ORKNN_TRY(w.check());
  return w;
}

// A picture in channels-first order.
Result<TensorId> picture(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to take it for a picture"));
  if (rank != 4) return invalid_model("the input has the wrong number of dimensions").expected("4").found(std::to_string(rank));
  return l.channels_first(x);
}

// `make` builds the pool of a channels-first picture. Real numbers even for integers: the neighbours of a pool are real, and the
// layout changes around it can cancel.
Status pool(Layer& l, TensorId (*make)(Layer&, TensorId x, const Window&)) {
  ORKNN_TRY_ASSIGN(const Window window, pool_window(l));
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId first, picture(l, x));
  ORKNN_TRY_ASSIGN(const TensorId y, l.activate(make(l, first, window), l.activation(5)));
  ORKNN_TRY_ASSIGN(const TensorId last, l.channels_last(y));
  return l.set(0, last);
}

TensorId average(Layer& l, TensorId x, const Window& window) { return l.emit("AveragePool", {x}, window.attributes()); }
Status average_pool(Layer& l) { return pool(l, average); }
Status max_pool(Layer& l) {
  return pool(l, [](Layer& layer, TensorId x, const Window& window) { return layer.emit("MaxPool", {x}, window.attributes()); });
}
// The root of the mean of squares.
Status l2_pool(Layer& l) {
  return pool(l, [](Layer& layer, TensorId x, const Window& window) {
    return layer.emit("Sqrt", {average(layer, layer.emit("Mul", {x, x}), window)});
  });
}

Status local_response_normalization(Layer& l) {
  const Table& o = l.options();
  const int64_t radius = o.number<int32_t>(0);
  if (radius < 0 || radius > 1 << 20) return invalid_model("the radius is impossible").found(std::to_string(radius));
  const int64_t size = 2 * radius + 1;
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId first, picture(l, x));
  const TensorId y = l.emit("LRN", {first},
                            {{"size", size},
                             {"bias", double{o.number<float>(1)}},
                             {"alpha", double{o.number<float>(2)} * static_cast<double>(size)},
                             {"beta", double{o.number<float>(3)}}});
  ORKNN_TRY_ASSIGN(const TensorId last, l.channels_last(y));
  return l.set(0, last);
}

Status resize(Layer& l, const std::string& mode, bool align_corners, bool half_pixel_centers) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.real(0));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> size, l.ints(1, "to resize to it"));
  if (size.size() != 2 || size[0] < 1 || size[1] < 1 || size[0] > 1 << 20 || size[1] > 1 << 20)
    return invalid_model("the new size is impossible").expected("height and width").found(to_string(size));
  ORKNN_TRY_ASSIGN(const TensorId first, picture(l, x));
  const Shape& shape = *l.shape_of(first);
  if (!shape[0].is_known() || !shape[1].is_known())
    return unsupported("the batch and channels must be known to resize").hint("give the input shapes with input_size_list");
  if (mode == "nearest" && align_corners && half_pixel_centers) {
    // No mode of ours: positions are shifted by half before they are scaled to the corners.
    TensorId y = first;
    for (int64_t axis = 2; axis < 4; ++axis) {
      ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(first, "to pick its elements"));
      const int64_t from = dims[static_cast<size_t>(axis)], to = size[static_cast<size_t>(axis) - 2];
      const float scale =
          to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : static_cast<float>(from) / static_cast<float>(to);
      std::vector<int64_t> picked;
      for (int64_t i = 0; i < to; ++i)
        picked.push_back(
            std::clamp<int64_t>(static_cast<int64_t>(std::round((static_cast<float>(i) + 0.5f) * scale)), 0, from - 1));
      y = l.emit("Gather", {y, l.add_ints("picked", picked)}, {{"axis", axis}});
    }
    ORKNN_TRY_ASSIGN(const TensorId last, l.channels_last(y));
    return l.set(0, last);
  }
  Attributes attributes{{"mode", mode},
                        {"coordinate_transformation_mode", std::string(align_corners        ? "align_corners"
                                                                       : half_pixel_centers ? "half_pixel"
                                                                                            : "asymmetric")}};
  // Rounding to the nearest goes up at one half; without either flag positions are cut off.
  if (mode == "nearest")
    attributes.set("nearest_mode", std::string(align_corners || half_pixel_centers ? "round_prefer_ceil" : "floor"));
  const TensorId sizes = l.add_ints("sizes", {shape[0].value(), shape[1].value(), size[0], size[1]});
  ORKNN_TRY_ASSIGN(const TensorId last,
                   l.channels_last(l.emit("Resize", {first, TensorId{}, TensorId{}, sizes}, std::move(attributes))));
  return l.set(0, last);
}

Status resize_bilinear(Layer& l) { return resize(l, "linear", l.options().flag(2), l.options().flag(3)); }
Status resize_nearest(Layer& l) { return resize(l, "nearest", l.options().flag(0), l.options().flag(1)); }

Status blocks(Layer& l, const char* op, Attributes attributes) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.movable(0, 0));
  ORKNN_TRY_ASSIGN(const TensorId first, picture(l, x));
  ORKNN_TRY_ASSIGN(const TensorId last, l.channels_last(l.emit(op, {first}, std::move(attributes))));
  return l.set_moved(0, 0, last);
}

Status space_to_depth(Layer& l) { return blocks(l, "SpaceToDepth", {{"blocksize", int64_t{l.options().number<int32_t>(0)}}}); }
Status depth_to_space(Layer& l) {
  return blocks(l, "DepthToSpace", {{"blocksize", int64_t{l.options().number<int32_t>(0)}}, {"mode", std::string("DCR")}});
}
}  // namespace

std::span<const Row> pool_rows() {
  static constexpr Row rows[] = {
      {"AVERAGE_POOL_2D", average_pool},
      {"MAX_POOL_2D", max_pool},
      {"L2_POOL_2D", l2_pool},
      {"LOCAL_RESPONSE_NORMALIZATION", local_response_normalization},
      {"RESIZE_BILINEAR", resize_bilinear},
      {"RESIZE_NEAREST_NEIGHBOR", resize_nearest},
      {"SPACE_TO_DEPTH", space_to_depth},
      {"DEPTH_TO_SPACE", depth_to_space},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
