// Attention over interleaved projections: [length, batch, heads * parts * width] holds queries, keys and values head by head.
#include <cmath>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
struct Projection {
  TensorId data;
  int64_t length = 0, batch = 0, heads = 0, parts = 0, width = 0;
};

Result<Projection> projection(Layer& l, TensorId x, int64_t parts) {
  Projection p{.data = x, .heads = l.integer("heads", 1), .parts = parts};
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to separate heads"));
  if (dims.size() != 3 || p.heads < 1 || dims[2] % (p.heads * parts) != 0)
    return shape_mismatch("projections must be [length, batch, heads * " + std::to_string(parts) + " * width]")
        .found(to_string(dims) + ", " + std::to_string(p.heads) + " heads");
  p.length = dims[0];
  p.batch = dims[1];
  p.width = dims[2] / (p.heads * parts);
  return p;
}

// One part as [batch * heads, length, width].
TensorId part_of(Layer& l, const Projection& p, int64_t part) {
  const TensorId split = l.reshape(p.data, {p.length, p.batch, p.heads, p.parts, p.width});
  const TensorId one = l.reshape(l.slice(split, 3, part, part + 1), {p.length, p.batch, p.heads, p.width});
  return l.reshape(l.transpose(one, {1, 2, 0, 3}), {p.batch * p.heads, p.length, p.width});
}

TensorId scores(Layer& l, const Projection& queries, const Projection& keys, int64_t key_part) {
  const TensorId q = l.div(part_of(l, queries, 0), std::sqrt(static_cast<double>(queries.width)));
  return l.matmul(q, l.transpose(part_of(l, keys, key_part), {0, 2, 1}));
}
Result<TensorId> own_scores(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Projection all, projection(l, x, 3));
  return scores(l, all, all, 1);
}
Result<TensorId> cross_scores(Layer& l, TensorId x, TensorId y) {
  ORKNN_TRY_ASSIGN(const Projection queries, projection(l, x, 1));
  ORKNN_TRY_ASSIGN(const Projection keys, projection(l, y, 2));
  return scores(l, queries, keys, 0);
}

// The last of `Parts` parts, weighted: [batch * heads, queries, width] and back to the layout of the projections.
template <int64_t Parts>
Result<TensorId> weighted_values(Layer& l, TensorId x, TensorId attention) {
  ORKNN_TRY_ASSIGN(const Projection p, projection(l, x, Parts));
  const TensorId y = l.matmul(attention, part_of(l, p, Parts - 1));
  const TensorId by_head = l.transpose(l.reshape(y, {p.batch, p.heads, -1, p.width}), {2, 0, 1, 3});
  return l.reshape(by_head, {0, 0, p.heads * p.width});
}
}  // namespace

std::span<const Row> attention_rows() {
  static const Row rows[] = {
      {"_contrib_interleaved_matmul_selfatt_qk", own_scores},
      {"_contrib_interleaved_matmul_encdec_qk", cross_scores},
      {"_contrib_interleaved_matmul_selfatt_valatt", weighted_values<3>},
      {"_contrib_interleaved_matmul_encdec_valatt", weighted_values<2>},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
