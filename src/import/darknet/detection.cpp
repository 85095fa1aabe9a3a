// Detection layers are not part of the model: what they read is an output, and decoding is left to the program that uses it.
#include <algorithm>

#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
// How many values per place of the picture a detection layer reads: boxes, each with its numbers and a score per class.
// Options that contradict each other are warned of: the output is the same whatever they say.
Result<int64_t> values_of_boxes(Layer& l, int64_t numbers_per_box) {
  const int64_t classes = l.integer("classes", 20, 0, 1 << 20), anchors = l.integer("num", 1, 1, 1 << 16);
  if (const std::string listed = l.text("anchors", ""); !listed.empty()) {
    const auto numbers = std::ranges::count(listed, ',') + (listed.back() == ',' ? 0 : 1);
    if (numbers != 2 * anchors)
      l.warn("option 'anchors' has " + std::to_string(numbers) + " numbers where 'num' (" + std::to_string(anchors) + ") needs " +
             std::to_string(2 * anchors) + "; decoding the output will go wrong");
  }
  int64_t boxes = anchors;
  if (l.has("mask")) {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> mask, l.integers("mask"));
    for (int64_t m : mask)
      if (m < 0 || m >= anchors)
        l.warn("option 'mask' chooses anchor " + std::to_string(m) + ", which does not exist: there are 0 to " +
               std::to_string(anchors - 1) + "; decoding the output will go wrong");
    boxes = static_cast<int64_t>(mask.size());
  }
  return boxes * (classes + numbers_per_box);
}

Result<TensorId> read_boxes(Layer& l, TensorId x, int64_t numbers_per_box) {
  ORKNN_TRY_ASSIGN(const int64_t expected, values_of_boxes(l, numbers_per_box));
  if (const auto dims = l.dims_of(x); dims && dims->size() == 4 && (*dims)[1] != expected)
    l.warn("it reads " + std::to_string((*dims)[1]) + " channels where its classes and anchors need " + std::to_string(expected) +
           "; decoding the output will go wrong");
  l.build().heads.push_back(x);
  return x;
}

Result<TensorId> yolo(Layer& l, TensorId x) { return read_boxes(l, x, 5); }
Result<TensorId> gaussian_yolo(Layer& l, TensorId x) { return read_boxes(l, x, 9); }
Result<TensorId> region(Layer& l, TensorId x) { return read_boxes(l, x, l.integer("coords", 4, 0, 1 << 10) + 1); }

TensorId other_head(Layer& l, TensorId x) {
  l.build().heads.push_back(x);
  return x;
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {
      {"yolo", yolo}, {"Gaussian_yolo", gaussian_yolo}, {"region", region}, {"detection|iseg", other_head}};
  return rows;
}

}  // namespace orknn::importer::darknet
