// Sections that normalize: batchnorm, normalization (LRN), softmax, l2norm.
#include "import/darknet/layer.h"

namespace orknn::importer::darknet {
using namespace ir;

namespace {
// The forks differ (1e-6 beside the root, 1e-5 under it); this one lies between them and is what other readers of these files
// use.
constexpr double kEpsilon = 1e-6;

Result<TensorId> batchnorm(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t channels = in.dims[1];
  Parameters p;
  ORKNN_TRY_ASSIGN(
      p.bias, l.build().weights.is_fork() ? l.take("bias", {channels}, Fill::Zeros) : l.invent("bias", {channels}, Fill::Zeros));
  ORKNN_TRY(take_statistics(l, p, channels, true, ""));
  return l.activated(batch_normalized(l, in.x, p));
}

Result<TensorId> local_response(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  const int64_t size = l.integer("size", 5, 1, kMaxSize);
  const double alpha = l.number("alpha", 0.0001) * static_cast<double>(size);  // our LRN divides by the size
  return l.activated(l.emit(
      "LRN", {in.x}, {{"size", size}, {"alpha", alpha}, {"beta", l.number("beta", 0.75)}, {"bias", l.number("kappa", 1)}}));
}

Result<TensorId> softmax(Layer& l, TensorId x) {
  if (l.has("tree")) {
    l.warn("a softmax over a tree of words is not supported; the output holds the scores before it");
    return x;
  }
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to divide it into groups"));
  const int64_t groups = l.integer("groups", 1, 1, kMaxSize * kMaxSize);
  const double temperature = l.number("temperature", 1);
  if (temperature == 0) return invalid_model("option 'temperature' must not be 0");
  if (temperature != 1) x = l.mul(x, 1 / temperature);
  if (l.flag("spatial") && dims.size() == 4) return l.activated(l.softmax(x, 1));
  ORKNN_TRY_ASSIGN(const Pictures rows, l.rows(x));
  if (rows.dims[1] % groups != 0)
    return invalid_model("the values cannot be divided into groups")
        .expected("a multiple of " + std::to_string(groups))
        .found(std::to_string(rows.dims[1]));
  const TensorId split = groups == 1 ? rows.x : l.reshape(rows.x, {rows.dims[0], groups, rows.dims[1] / groups});
  return l.activated(l.reshape(l.softmax(split, -1), dims));
}

Result<TensorId> l2norm(Layer& l, TensorId previous) {
  ORKNN_TRY_ASSIGN(const Pictures in, l.pictures(previous));
  return l.activated(l.emit("LpNormalization", {in.x}, {{"axis", int64_t{1}}, {"p", int64_t{2}}}));
}
}  // namespace

std::span<const Row> normalization_rows() {
  static const Row rows[] = {
      {"batchnorm", batchnorm}, {"normalization|lrn", local_response}, {"softmax|soft", softmax}, {"l2norm", l2norm}};
  return rows;
}

Status take_statistics(Layer& l, Parameters& p, int64_t channels, bool load, const std::string& prefix) {
  const auto next = [&](const char* role, Fill fill) {
    return load ? l.take(prefix + role, {channels}, fill) : l.invent(prefix + role, {channels}, fill);
  };
  ORKNN_TRY_ASSIGN(p.scale, next("scale", Fill::Ones));
  ORKNN_TRY_ASSIGN(p.mean, next("mean", Fill::Zeros));
  ORKNN_TRY_ASSIGN(p.variance, next("variance", Fill::Ones));
  return {};
}

TensorId batch_normalized(Layer& l, TensorId x, const Parameters& p) {
  return l.emit("BatchNormalization", {x, p.scale, p.bias, p.mean, p.variance}, {{"epsilon", kEpsilon}});
}

}  // namespace orknn::importer::darknet
