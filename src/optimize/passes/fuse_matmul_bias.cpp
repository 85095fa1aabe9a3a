// A bias of its own instead of an Add after a matrix product.
//
// Before: %m = MatMul(%x: [4,8], %w) ; %y = Add(%m, const[16])     After: %y = Gemm(%x, %w, const[16])
// Before: %m = MatMul(%x: [1,4,8], %w) ; %y = Add(%m, const[16])   After: %y = MatMul(%x, %w) + Add(const[16])
// Legal: floats, a constant along the last axis, the product is read nowhere else.
#include "optimize/linear.h"
#include "optimize/match.h"
#include "optimize/pass.h"

namespace orknn::optimize {
namespace {
using namespace ir;

Rewrite fuse_matmul_bias_rule(const Graph& g, const Node& n) {
  if (!n.tail.empty() || !is_float_tensor(g, n.output(0))) return no_match();
  for (size_t i = 0; i < 2; ++i) {
    const Node* product = g.sole_producer(n.input(i), "MatMul");
    if (!product) product = g.sole_producer(n.input(i), "Gemm");
    const TensorId bias = n.input(1 - i);
    const auto dims = dims_of(g, n.output(0));
    if (!product || product->has_input(2) || !dims || dims->empty() || !same_shape(g, n.input(i), n.output(0))) continue;
    const int64_t rank = static_cast<int64_t>(dims->size()), columns = dims->back();
    const auto values = per_channel(g, bias, rank - 1, rank, columns);
    if (!values) continue;
    Patch patch(g);
    Node fresh = *product;
    fresh.outputs = n.outputs;
    TensorId id = bias;
    if (rank_of(g, bias) != 1 || (*dims_of(g, bias))[0] != columns)
      id = patch.add_constant(g.tensor(bias).name, constant_from(*values, {columns}, dtype_of(g, n.output(0))));
    fresh.inputs.resize(2);
    fresh.inputs.push_back(id);
    if (rank == 2 && rank_of(g, product->input(0)) == 2 && rank_of(g, product->input(1)) == 2) {
      fresh.op = "Gemm";
      fresh.attributes.erase("beta");
    } else {
      fresh.tail.push_back({"Add", {}, 2, false});
    }
    replace_node(g, patch, n, std::move(fresh), {product});
    return rewrite(std::move(patch));
  }
  return no_match();
}
}  // namespace

Pass fuse_matmul_bias() {
  return {.name = "fuse_matmul_bias",
          .summary = "constant Add after MatMul or Gemm becomes its bias",
          .min_level = 1,
          .rule = fuse_matmul_bias_rule,
          .roots = {"Add"}};
}
}  // namespace orknn::optimize
