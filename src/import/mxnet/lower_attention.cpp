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

Result<Projection> projection(Layer& l, size_t input, int64_t parts) {
  Projection p;
  p.parts = parts;
  p.heads = l.integer("heads", 1);
  ORKNN_TRY_ASSIGN(p.data, l.need(input));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(p.data, "to separate heads"));
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

Status scores(Layer& l) {
  const bool is_self = l.op() == "_contrib_interleaved_matmul_selfatt_qk";
  ORKNN_TRY_ASSIGN(const Projection queries, projection(l, 0, is_self ? 3 : 1));
  ORKNN_TRY_ASSIGN(const Projection keys, projection(l, is_self ? 0 : 1, is_self ? 3 : 2));
  const TensorId q = l.with_scalar("Div", part_of(l, queries, 0), std::sqrt(static_cast<double>(queries.width)));
  l.set_output(l.binary("MatMul", q, l.transpose(part_of(l, keys, is_self ? 1 : 0), {0, 2, 1})));
  return {};
}

Status values(Layer& l) {
  const bool is_self = l.op() == "_contrib_interleaved_matmul_selfatt_valatt";
  ORKNN_TRY_ASSIGN(const Projection p, projection(l, 0, is_self ? 3 : 2));
  ORKNN_TRY_ASSIGN(const TensorId attention, l.need(1));
  const TensorId y = l.binary("MatMul", attention, part_of(l, p, is_self ? 2 : 1));  // [batch * heads, queries, width]
  const TensorId by_head = l.transpose(l.reshape(y, {p.batch, p.heads, -1, p.width}), {2, 0, 1, 3});
  l.set_output(l.reshape(by_head, {0, 0, p.heads * p.width}));
  return {};
}
}  // namespace

std::span<const Row> attention_rows() {
  static const Row rows[] = {
      {"_contrib_interleaved_matmul_selfatt_qk", scores},
      {"_contrib_interleaved_matmul_encdec_qk", scores},
      {"_contrib_interleaved_matmul_selfatt_valatt", values},
      {"_contrib_interleaved_matmul_encdec_valatt", values},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
