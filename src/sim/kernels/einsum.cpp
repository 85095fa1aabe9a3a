// Einsum of two operands as a batch of matrix products. An operand whose indices do not lie as rows and columns of a matrix is
// copied so that they do; so is the result.
#include <algorithm>

#include "ops/support/einsum_equation.h"
#include "ops/support/movement.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

using ops::EinsumLabel;
using ops::EinsumLabels;

bool contains(const EinsumLabels& labels, EinsumLabel label) { return std::count(labels.begin(), labels.end(), label) > 0; }

// A tensor by its indices: strides are 0 where an index is absent or repeats an extent of 1.
struct Indexed {
  std::map<EinsumLabel, int64_t> strides;
  int64_t stride(EinsumLabel label) const {
    const auto at = strides.find(label);
    return at == strides.end() ? 0 : at->second;
  }
};

// Indices that act as one, outermost first.
struct Group {
  EinsumLabels labels;
  ir::Dims extents;

  void add(EinsumLabel label, int64_t extent) {
    labels.push_back(label);
    extents.push_back(extent);
  }
  int64_t count() const { return ir::element_count(extents); }
  ir::Dims strides(const Indexed& tensor) const {
    ir::Dims out;
    for (EinsumLabel label : labels) out.push_back(tensor.stride(label));
    return out;
  }
  // The stride of the group as one index, nothing when it has none.
  std::optional<int64_t> joined(const Indexed& tensor) const {
    int64_t stride = 1, extent = 1;
    for (size_t i = labels.size(); i-- > 0;) {
      if (extents[i] == 1) continue;
      if (extent != 1 && tensor.stride(labels[i]) != stride * extent) return std::nullopt;
      if (extent == 1) stride = tensor.stride(labels[i]);
      extent *= extents[i];
    }
    return stride;
  }
};

// How an operand or the result is seen as matrices.
struct Matrices {
  bool copied = false;
  ops::CopyAxes copy;  // towards the matrices, or from them for the result
  int64_t row_stride = 0, column_stride = 0;
  ir::Dims batch_strides;
  int64_t count = 0;  // elements of the copy
};

struct State : KernelState {
  size_t left = 0, right = 1;  // inputs
  ir::Dims batch;
  int64_t rows = 0, columns = 0, depth = 0;
  Matrices a, b, c;
};

Matrices describe(const Indexed& tensor, const Group& batch, const Group& rows, const Group& columns,
                  bool (*fits)(int64_t row, int64_t column), bool is_result) {
  Matrices m;
  const std::optional<int64_t> row = rows.joined(tensor), column = columns.joined(tensor);
  if (row && column && fits(rows.count() == 1 ? 1 : *row, columns.count() == 1 ? 1 : *column)) {
    m.row_stride = *row;
    m.column_stride = *column;
    m.batch_strides = batch.strides(tensor);
    return m;
  }
  m.copied = true;
  m.column_stride = 1;
  m.row_stride = columns.count();
  ir::Dims dims, strides;
  for (const Group* group : {&batch, &rows, &columns}) {
    dims.insert(dims.end(), group->extents.begin(), group->extents.end());
    const ir::Dims more = group->strides(tensor);
    strides.insert(strides.end(), more.begin(), more.end());
  }
  const ir::Dims dense = ir::strides_of(dims);
  m.batch_strides.assign(dense.begin(), dense.begin() + static_cast<int64_t>(batch.labels.size()));
  m.copy = ops::into_dense(dims, strides);
  if (is_result) {
    for (ops::CopyAxis& axis : m.copy) std::swap(axis.from_stride, axis.to_stride);
    std::stable_sort(m.copy.begin(), m.copy.end(),
                     [](const ops::CopyAxis& x, const ops::CopyAxis& y) { return x.to_stride > y.to_stride; });  // as written
  }
  m.count = ir::element_count(dims);
  return m;
}

std::unique_ptr<State> plan(const KernelQuery& q) {
  if (q.node.op != "Einsum" || !q.node.tail.empty() || q.inputs.size() != 2) return nullptr;
  if (!storage_of(q.inputs[0].dtype) || q.inputs[0].dtype != q.inputs[1].dtype || q.inputs[0].dtype != q.outputs[0].dtype)
    return nullptr;
  const std::vector<ir::Shape> shapes{ir::to_shape(q.inputs[0].dims), ir::to_shape(q.inputs[1].dims)};
  const auto einsum = ops::plan_einsum(q.attributes(), shapes);
  if (!einsum) return nullptr;
  const EinsumLabels& output = einsum->equation.output;
  const auto extent = [&](EinsumLabel label) { return einsum->dims.at(label).value(); };
  Indexed tensors[2], result;
  for (size_t i = 0; i < 2; ++i) {
    const EinsumLabels& labels = einsum->equation.inputs[i];
    const ir::Dims strides = ir::strides_of(q.inputs[i].dims);
    for (size_t k = 0; k < labels.size(); ++k) {
      if (tensors[i].strides.contains(labels[k])) return nullptr;  // a diagonal
      tensors[i].strides[labels[k]] = q.inputs[i].dims[k] == extent(labels[k]) ? strides[k] : 0;
      if (!contains(output, labels[k]) && !contains(einsum->equation.inputs[1 - i], labels[k]))
        return nullptr;  // a sum over one operand
    }
  }
  if (q.outputs[0].dims.size() != output.size()) return nullptr;
  const ir::Dims strides = ir::strides_of(q.outputs[0].dims);
  for (size_t k = 0; k < output.size(); ++k) {
    if (q.outputs[0].dims[k] != extent(output[k])) return nullptr;
    result.strides[output[k]] = strides[k];
  }
  Group batch, only[2], summed;
  for (EinsumLabel label : output) {
    const bool first = tensors[0].strides.contains(label), second = tensors[1].strides.contains(label);
    (first && second ? batch : only[first ? 0 : 1]).add(label, extent(label));
  }
  for (EinsumLabel label : einsum->equation.inputs[0])
    if (!contains(output, label)) summed.add(label, extent(label));
  if (only[0].count() == 1 && only[1].count() == 1) return nullptr;  // products of elements or of vectors
  // Rows of either operand may be the rows of the result: the way that spares a copy of it, else the first.
  std::unique_ptr<State> best;
  for (size_t left : {0u, 1u}) {
    auto s = std::make_unique<State>();
    s->left = left;
    s->right = 1 - left;
    const Group &rows = only[s->left], &columns = only[s->right];
    s->batch = batch.extents;
    s->rows = rows.count();
    s->columns = columns.count();
    s->depth = summed.count();
    s->a = describe(
        tensors[s->left], batch, rows, summed, [](int64_t, int64_t column) { return column == 1; }, false);
    s->b = describe(
        tensors[s->right], batch, summed, columns, [](int64_t row, int64_t column) { return row == 1 || column == 1; }, false);
    s->c = describe(
        result, batch, rows, columns, [](int64_t, int64_t column) { return column == 1; }, true);
    if (!s->c.copied) return s;
    if (!best) best = std::move(s);
  }
  return best;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan(q));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Storage storage = *storage_of(c.outputs[0].dtype);
  const size_t bytes = dtype_bytes(c.outputs[0].dtype);
  Product p;
  p.batches = ir::element_count(s.batch);
  p.rows = s.rows;
  p.columns = s.columns;
  p.depth = s.depth;
  p.a = {c.inputs[s.left].data, storage, s.a.row_stride, s.a.column_stride};
  p.b = {c.inputs[s.right].data, storage, s.b.row_stride, s.b.column_stride};
  p.c = c.outputs[0].data;
  p.storage = storage;
  p.c_row_stride = s.c.row_stride;
  p.place = [&s](int64_t batch) {
    Product::Place place;
    for (size_t i = s.batch.size(); i-- > 0; batch /= s.batch[i]) {
      const int64_t at = batch % s.batch[i];
      place.a += at * s.a.batch_strides[i];
      place.b += at * s.b.batch_strides[i];
      place.c += at * s.c.batch_strides[i];
    }
    return place;
  };
  const auto rounded = [&](const Matrices& m) { return m.copied ? (m.count * static_cast<int64_t>(bytes) + 63) / 64 * 64 : 0; };
  const int64_t total =
      rounded(s.a) + rounded(s.b) + rounded(s.c) + product_scratch(p, c.pool) * static_cast<int64_t>(sizeof(float));
  std::byte* scratch = c.scratch(static_cast<size_t>(total));
  if (!scratch) return out_of_scratch(total);
  if (s.a.copied) {
    ops::copy_strided(s.a.copy, p.a.data, scratch, bytes, c.pool);
    p.a.data = scratch;
    scratch += rounded(s.a);
  }
  if (s.b.copied) {
    ops::copy_strided(s.b.copy, p.b.data, scratch, bytes, c.pool);
    p.b.data = scratch;
    scratch += rounded(s.b);
  }
  if (s.c.copied) {
    p.c = scratch;
    scratch += rounded(s.c);
  }
  run_product(p, c.pool, reinterpret_cast<float*>(scratch));
  if (s.c.copied) ops::copy_strided(s.c.copy, p.c, c.outputs[0].data, bytes, c.pool);
  return {};
}
}  // namespace

std::span<const Kernel> einsum() {
  static const Kernel kernels[] = {{"einsum", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
