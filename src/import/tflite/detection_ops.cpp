// Selection of boxes.
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
// The best boxes that overlap little, as a list of fixed length: what is missing at its end is 0.
Status non_max_suppression(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId boxes, l.real(0));
  ORKNN_TRY_ASSIGN(const TensorId scores, l.real(1));
  ORKNN_TRY_ASSIGN(const int64_t limit, l.int_scalar(2, "to size the outputs"));
  ORKNN_TRY_ASSIGN(const TensorId overlap, l.real(3));
  ORKNN_TRY_ASSIGN(const TensorId least, l.real(4));
  const bool soft = l.op().name == "NON_MAX_SUPPRESSION_V5";
  if (soft) {
    ORKNN_TRY_ASSIGN(const double sigma, l.number(5, "to know how boxes are suppressed"));
    if (sigma != 0) return unsupported("suppression that lowers scores instead of dropping boxes is not supported").expected("a sigma of 0").found(std::to_string(sigma));
  }
  if (limit < 1 || limit > INT32_MAX) return invalid_model("the number of boxes is impossible").found(std::to_string(limit));
  const TensorId picked = l.emit("NonMaxSuppression", {l.unsqueeze(boxes, {0}), l.unsqueeze(scores, {0, 1}), l.add_ints("limit", {limit}), l.reshape(overlap, {1}), l.reshape(least, {1})});
  const TensorId which = l.emit("Gather", {picked, l.add_int_scalar("box", 2)}, {{"axis", int64_t{1}}});
  // Zeros behind the picked ones, then cut to the fixed length.
  const auto padded = [&](TensorId list) {
    const TensorId zeros = l.add_constant("missing", TensorData::zeros(l.dtype_of(list), {limit}));
    return l.reshape(l.slice(l.emit("Concat", {list, zeros}, {{"axis", int64_t{0}}}), {0}, {limit}, {0}), {limit});
  };
  ORKNN_TRY(l.set(0, padded(which)));
  if (soft) ORKNN_TRY(l.set(1, padded(l.emit("Gather", {scores, which}, {{"axis", int64_t{0}}}))));
  return l.set(soft ? 2 : 1, l.reshape(l.emit("Shape", {which}), {}));
}
}  // namespace

std::span<const Row> detection_rows() {
  static constexpr Row rows[] = {{"NON_MAX_SUPPRESSION_V4", non_max_suppression}, {"NON_MAX_SUPPRESSION_V5", non_max_suppression}};
  return rows;
}

}  // namespace orknn::importer::tflite
