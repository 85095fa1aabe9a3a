// Fully connected layers, matrix products and transforms.
#include "import/lower/gather.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {
using namespace ir;

namespace {
Result<TensorId> fully_connected(Layer& l, TensorId x) {
  const Table& o = l.options();
  if (o.number<int8_t>(1) != 0)
    return unsupported("weights in the shuffled format are not supported")
        .hint("convert the model with the default weights format");
  ORKNN_TRY_ASSIGN(const TensorId w, l.weights(1, {0, 1}));
  ORKNN_TRY_ASSIGN(const TensorId bias, l.bias(2, 0, 1));
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to take its rows"));
  ORKNN_TRY_ASSIGN(const Dims kernel, l.need_dims(w, "to size the layer"));
  const int64_t depth = kernel[1], count = element_count(dims);
  if (depth < 1 || count % depth != 0)
    return shape_mismatch("the input does not split into rows of the weights' length")
        .expected(std::to_string(depth))
        .found(to_string(dims));
  const bool keep_dims = o.flag(2) && !dims.empty();
  if (keep_dims && dims.back() != depth)
    return shape_mismatch("the last extent of the input does not fit the weights")
        .expected(std::to_string(depth))
        .found(to_string(dims));
  ORKNN_TRY_ASSIGN(const TensorId y, l.activate_by(l.linear(l.reshape(x, {count / depth, depth}), w, bias), 0));
  if (!keep_dims) return y;
  dims.back() = kernel[0];
  return l.reshape(y, std::move(dims));
}

Result<TensorId> batch_matmul(Layer& l, TensorId a, TensorId b) {
  return matrix_product(l, a, b, l.options().flag(0), l.options().flag(1));
}

// Fourier transform of the last two axes, the inner one of real numbers; the result are pairs on an extra axis.
Result<TensorId> rfft2d(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> length, l.ints(1, "to transform that many elements"));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to transform it"));
  const auto rank = static_cast<int64_t>(dims.size());
  if (length.size() != 2 || rank < 2 || length[0] < 1 || length[1] < 1)
    return invalid_model("the transform has an impossible length").found(to_string(length));
  x = l.unsqueeze(x, {rank});
  x = l.emit("DFT", {x, l.add_int_scalar("width", length[1]), l.add_int_scalar("axis", rank - 1)}, {{"onesided", int64_t{1}}});
  if (length[0] == 1 && dims[static_cast<size_t>(rank) - 2] <= 1) return x;
  return l.emit("DFT", {x, l.add_int_scalar("height", length[0]), l.add_int_scalar("axis", rank - 2)});
}

TensorId embedding_lookup(Emitter& e, TensorId ids, TensorId table) { return e.gather(table, ids, 0); }
}  // namespace

std::span<const Row> matrix_rows() {
  static const Row rows[] = {
      {"FULLY_CONNECTED", fully_connected},
      {"BATCH_MATMUL", batch_matmul},
      {"RFFT2D", rfft2d},
      {"EMBEDDING_LOOKUP", embedding_lookup},
  };
  return rows;
}

}  // namespace orknn::importer::tflite
