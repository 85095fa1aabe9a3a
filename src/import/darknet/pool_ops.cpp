// Sections that pool, normalize or end a network: maxpool, avgpool, softmax, lrn, detection heads.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
constexpr int64_t kMaxWindow = int64_t{1} << 12;

struct Window {
  int64_t size = 1, stride_x = 1, stride_y = 1, padding = 0;
  // `padding` counts both sides together; the side before gets the smaller half.
  Attributes attributes() const {
    const int64_t before = padding / 2, after = padding - before;
    return {{"kernel_shape", std::vector<int64_t>{size, size}},
            {"strides", std::vector<int64_t>{stride_y, stride_x}},
            {"pads", std::vector<int64_t>{before, before, after, after}}};
  }
};

Result<Window> window_of(const Layer& l) {
  Window w;
  ORKNN_TRY_ASSIGN(const int64_t stride, l.get_int("stride", 1, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(w.stride_x, l.get_int("stride_x", stride, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(w.stride_y, l.get_int("stride_y", stride, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(w.size, l.get_int("size", stride, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(w.padding, l.get_int("padding", w.size - 1, 0, kMaxWindow));
  return w;
}

// The greatest of the channels that are `out_channels` apart.
Status maxpool_depth(Layer& l, TensorId x, const Dims& dims) {
  ORKNN_TRY_ASSIGN(const int64_t out_channels, l.get_int("out_channels", 1, 1, dims[1]));
  const int64_t groups = (dims[1] + out_channels - 1) / out_channels, missing = groups * out_channels - dims[1];
  if (missing) {
    const TensorId lowest = l.add_scalar("lowest", -3.402823466e38);
    x = l.emit("Pad", {x, l.add_ints("pads", {0, 0, 0, 0, 0, missing, 0, 0}), lowest});
  }
  const TensorId split = l.reshape(x, {dims[0], groups, out_channels, dims[2], dims[3]});
  return l.finish(l.emit("ReduceMax", {split, l.add_ints("axes", {1})}, {{"keepdims", int64_t{0}}}));
}

Status maxpool(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to pool it"));
  if (l.get_flag("maxpool_depth")) return maxpool_depth(l, x, dims);
  ORKNN_TRY_ASSIGN(Window w, window_of(l));
  ORKNN_TRY_ASSIGN(const int64_t antialiasing, l.get_int("antialiasing", 0, 0, 2));
  if (!antialiasing) return l.finish(l.emit("MaxPool", {x}, w.attributes()));
  const Window strided = w;
  w.stride_x = w.stride_y = 1;
  ORKNN_TRY_ASSIGN(const TensorId y,
                   blur(l, l.emit("MaxPool", {x}, w.attributes()), dims[1], antialiasing, strided.stride_x, strided.stride_y));
  return l.finish(y);
}

Status local_avgpool(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const Window w, window_of(l));
  return l.finish(l.emit("AveragePool", {x}, w.attributes()));
}

Status avgpool(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  return l.finish(l.emit("GlobalAveragePool", {x}));
}

Status normalization(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  ORKNN_TRY_ASSIGN(const int64_t size, l.get_int("size", 5, 1, kMaxWindow));
  ORKNN_TRY_ASSIGN(const double alpha, l.get_float("alpha", 0.0001));
  ORKNN_TRY_ASSIGN(const double beta, l.get_float("beta", 0.75));
  ORKNN_TRY_ASSIGN(const double kappa, l.get_float("kappa", 1));
  // Our LRN divides alpha by the size.
  return l.finish(
      l.emit("LRN", {x}, {{"size", size}, {"alpha", alpha * static_cast<double>(size)}, {"beta", beta}, {"bias", kappa}}));
}

// How many values per place of the picture a detection layer reads: boxes, each with its numbers and a score per class.
Result<int64_t> values_of_boxes(Layer& l, int64_t numbers_per_box) {
  ORKNN_TRY_ASSIGN(const int64_t classes, l.get_int("classes", 20, 0, 1 << 20));
  ORKNN_TRY_ASSIGN(const int64_t anchors, l.get_int("num", 1, 1, 1 << 16));
  int64_t boxes = anchors;
  if (l.has("mask")) {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> mask, l.get_ints("mask"));
    for (int64_t m : mask)
      if (m < 0 || m >= anchors)
        return invalid_model("option 'mask' chooses an anchor that does not exist")
            .expected("0 to " + std::to_string(anchors - 1))
            .found(std::to_string(m));
    boxes = static_cast<int64_t>(mask.size());
  }
  return boxes * (classes + numbers_per_box);
}

// What a detection layer reads is an output of the model: decoding is left to the program that uses it.
Status head(Layer& l) {
  const std::string& type = l.section().type;
  int64_t numbers_per_box = type == "yolo" ? 5 : type == "Gaussian_yolo" ? 9 : 0;
  if (type == "region") {
    ORKNN_TRY_ASSIGN(const int64_t coordinates, l.get_int("coords", 4, 0, 1 << 10));
    numbers_per_box = coordinates + 1;
  }
  if (numbers_per_box > 0) {
    ORKNN_TRY_ASSIGN(const int64_t expected, values_of_boxes(l, numbers_per_box));
    if (const auto dims = l.dims_of(l.previous()); dims && dims->size() == 4 && (*dims)[1] != expected)
      l.warn("it reads " + std::to_string((*dims)[1]) + " channels where its classes and anchors need " +
             std::to_string(expected) + "; decoding the output will go wrong");
  }
  l.build().heads.push_back(l.previous());
  return l.hand_on(l.previous());
}

Status softmax(Layer& l) {
  if (l.has("tree")) {
    l.warn("the scores before the softmax over the word tree are handed out");
    return l.hand_on(l.previous());
  }
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(l.previous(), "to divide it into groups"));
  ORKNN_TRY_ASSIGN(const int64_t groups, l.get_int("groups", 1, 1, kMaxWindow * kMaxWindow));
  ORKNN_TRY_ASSIGN(const double temperature, l.get_float("temperature", 1));
  if (temperature == 0) return invalid_model("option 'temperature' must not be 0");
  TensorId x = l.previous();
  if (temperature != 1) x = l.emit("Mul", {x, l.add_scalar("inverse_temperature", 1 / temperature)});
  if (l.get_flag("spatial") && dims.size() == 4) return l.finish(l.emit("Softmax", {x}, {{"axis", int64_t{1}}}));
  ORKNN_TRY_ASSIGN(const TensorId rows, l.as_rows(x));
  ORKNN_TRY_ASSIGN(const Dims row_dims, l.need_dims(rows, "to divide it into groups"));
  if (row_dims[1] % groups != 0)
    return invalid_model("the values cannot be divided into groups")
        .expected("a multiple of " + std::to_string(groups))
        .found(std::to_string(row_dims[1]));
  const TensorId split = groups == 1 ? rows : l.reshape(rows, {row_dims[0], groups, row_dims[1] / groups});
  return l.finish(l.reshape(l.emit("Softmax", {split}, {{"axis", int64_t{-1}}}), dims));
}

Status logistic(Layer& l) { return l.hand_on(l.emit("Sigmoid", {l.previous()})); }

Status l2norm(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.as_image(l.previous()));
  return l.finish(l.emit("LpNormalization", {x}, {{"axis", int64_t{1}}, {"p", int64_t{2}}}));
}
}  // namespace

std::span<const Row> pool_rows() {
  static constexpr Row kRows[] = {
      {"maxpool", maxpool}, {"max", maxpool},  {"local_avgpool", local_avgpool}, {"local_avg", local_avgpool},
      {"avgpool", avgpool}, {"avg", avgpool},  {"normalization", normalization}, {"lrn", normalization},
      {"softmax", softmax}, {"soft", softmax}, {"logistic", logistic},           {"logxent", logistic},
      {"l2norm", l2norm},   {"yolo", head},    {"Gaussian_yolo", head},          {"region", head},
      {"detection", head},  {"iseg", head},
  };
  return kRows;
}

Result<TensorId> blur(Layer& l, TensorId x, int64_t channels, int64_t kind, int64_t stride_x, int64_t stride_y) {
  const int64_t size = kind == 2 ? 2 : 3, pad = kind == 2 ? 0 : 1;
  const float binomial[] = {1 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 4 / 16.f, 2 / 16.f, 1 / 16.f, 2 / 16.f, 1 / 16.f};
  ORKNN_TRY_ASSIGN(TensorData weight, l.build().weights.invent("blur", {channels, 1, size, size}, Filling::Zeros));
  float* to = static_cast<float*>(weight.mutable_data());
  for (int64_t i = 0; i < weight.count(); ++i) to[i] = kind == 2 ? 0.25f : binomial[i % 9];
  return l.emit("Conv", {x, l.add_constant("blur", std::move(weight))},
                {{"kernel_shape", std::vector<int64_t>{size, size}},
                 {"strides", std::vector<int64_t>{stride_y, stride_x}},
                 {"pads", std::vector<int64_t>(4, pad)},
                 {"group", channels}});
}

}  // namespace orknn::importer::darknet
