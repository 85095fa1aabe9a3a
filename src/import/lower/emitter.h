// What every lowering function builds with: facts about tensors, constants, and nodes of ours for the layer at hand. Shapes are
// inferred as nodes are added, and small values that follow from constants or from known shapes become constants at once, so
// that a lowering can read the axes, pads and sizes that exporters compute in the graph.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::importer {

// Applies the shape rule to a node just added, as far as it goes; failures are left to ir::infer_shapes to report.
void infer_added_node(ir::Graph& graph, const ir::OpSet& ops, ir::NodeId id);

class Emitter {
 public:
  // `layer` names new tensors ("<layer>/<role>") and nodes; `origin` is what reports call their source.
  Emitter(ir::Graph& graph, const ir::OpSet& ops, std::string layer, std::vector<std::string> origin)
      : graph_(graph), ops_(ops), layer_(std::move(layer)), origin_(std::move(origin)) {}

  const std::string& layer() const { return layer_; }
  ir::Graph& graph() { return graph_; }
  const ir::OpSet& ops() const { return ops_; }

  // --- what is known about a tensor
  DType dtype_of(ir::TensorId id) const;             // float32 when not known
  const ir::Shape* shape_of(ir::TensorId id) const;  // nullptr when the rank is not known
  std::optional<int64_t> rank_of(ir::TensorId id) const;
  std::optional<ir::Dims> dims_of(ir::TensorId id) const;  // nothing unless every extent is known
  const ir::TensorData* constant_of(ir::TensorId id) const { return graph_.constant(id); }
  // Why the shape of a tensor, or an extent of it, is not known: the shape rule that failed on the way to it, or else `problem`
  // with the hint to give the sizes of the inputs.
  Status not_known(ir::TensorId id, std::string problem) const;
  // The same, or an error that says why it is needed ("to unroll the loop") and how to settle it.
  Result<int64_t> need_rank(ir::TensorId id, std::string_view reason) const;
  Result<ir::Dims> need_dims(ir::TensorId id, std::string_view reason)
      const;  // refuses extents whose product is absurd: callers may multiply and add them
  Result<ir::Dims> need_dims(ir::TensorId id, std::string_view reason, size_t rank) const;  // and another rank
  Result<std::vector<int64_t>> need_ints(ir::TensorId id, std::string_view reason) const;   // contents of a constant
  Result<std::vector<double>> need_doubles(ir::TensorId id, std::string_view reason) const;
  Result<int64_t> need_integer(ir::TensorId id, std::string_view reason) const;  // of a constant that holds one number
  Result<double> need_number(ir::TensorId id, std::string_view reason) const;
  // Computes a small tensor that follows from constants and known shapes, for importers that keep their nodes as they are: it
  // and what it is computed from become constants. Another one stays as it is.
  void settle(ir::TensorId id);

  // --- constants
  ir::TensorId add_constant(std::string_view role, ir::TensorData value);
  ir::TensorId add_ints(std::string_view role, std::span<const int64_t> values);
  ir::TensorId add_ints(std::string_view role, std::initializer_list<int64_t> values) {
    return add_ints(role, std::span(values.begin(), values.size()));
  }
  ir::TensorId add_int_scalar(std::string_view role, int64_t value);
  ir::TensorId add_scalar(std::string_view role, double value, DType dtype = DType::Float32);

  // --- nodes
  ir::TensorId emit(std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes = {});
  std::vector<ir::TensorId> emit_all(std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes, size_t outputs);
  // The same for one output, computed here or not: the node stays.
  ir::TensorId emit_kept(std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes = {});
  // Nothing is added when the permutation or the shape changes nothing.
  ir::TensorId transpose(ir::TensorId x, std::vector<int64_t> permutation);
  ir::TensorId reshape(ir::TensorId x, std::vector<int64_t> shape);  // 0 keeps an extent, -1 takes what is left
  ir::TensorId cast(ir::TensorId x, DType to);
  // One of our operators on these inputs, whose number is checked.
  Result<ir::TensorId> emit_same(std::string_view op, std::span<const ir::TensorId> inputs);

  // --- arithmetic. Numbers take the type of the tensor they are combined with.
  ir::TensorId scalar_like(ir::TensorId x, double value, std::string_view role = "scalar") {
    return add_scalar(role, value, dtype_of(x));
  }
  ir::TensorId unary(std::string_view op, ir::TensorId x) { return emit(std::string(op), {x}); }
  ir::TensorId binary(std::string_view op, ir::TensorId a, ir::TensorId b) { return emit(std::string(op), {a, b}); }
  ir::TensorId with_scalar(std::string_view op, ir::TensorId x, double value) { return binary(op, x, scalar_like(x, value)); }
  ir::TensorId add(ir::TensorId a, ir::TensorId b) { return emit("Add", {a, b}); }
  ir::TensorId sub(ir::TensorId a, ir::TensorId b) { return emit("Sub", {a, b}); }
  ir::TensorId mul(ir::TensorId a, ir::TensorId b) { return emit("Mul", {a, b}); }
  ir::TensorId div(ir::TensorId a, ir::TensorId b) { return emit("Div", {a, b}); }
  ir::TensorId add(ir::TensorId x, double term) { return with_scalar("Add", x, term); }
  ir::TensorId sub(ir::TensorId x, double term) { return with_scalar("Sub", x, term); }
  ir::TensorId mul(ir::TensorId x, double factor) { return with_scalar("Mul", x, factor); }
  ir::TensorId div(ir::TensorId x, double divisor) { return with_scalar("Div", x, divisor); }
  ir::TensorId matmul(ir::TensorId a, ir::TensorId b) { return emit("MatMul", {a, b}); }
  // Rows times the transposed weights [out, in], plus the bias where there is one.
  ir::TensorId linear(ir::TensorId rows, ir::TensorId weights, ir::TensorId bias = {});
  ir::TensorId where(ir::TensorId condition, ir::TensorId a, ir::TensorId b) { return emit("Where", {condition, a, b}); }
  ir::TensorId clip(ir::TensorId x, std::optional<double> least, std::optional<double> most);
  ir::TensorId softmax(ir::TensorId x, int64_t axis) { return emit("Softmax", {x}, {{"axis", axis}}); }
  // Reduces over `axes`; x itself when there are none.
  ir::TensorId reduce(std::string_view op, ir::TensorId x, const std::vector<int64_t>& axes, bool keep);

  // --- axes and extents. An empty list of axes changes nothing.
  ir::TensorId unsqueeze(ir::TensorId x, const std::vector<int64_t>& axes);
  ir::TensorId squeeze(ir::TensorId x, const std::vector<int64_t>& axes);
  // Axes are counted from the end when negative. A tensor of unknown rank is taken for a matrix: the shape rule refuses any other
  // once its rank is known.
  ir::TensorId swap_axes(ir::TensorId x, int64_t a, int64_t b);
  ir::TensorId slice(ir::TensorId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  ir::TensorId slice(ir::TensorId x, const std::vector<int64_t>& starts, const std::vector<int64_t>& ends,
                     const std::vector<int64_t>& axes, const std::vector<int64_t>& steps = {});
  ir::TensorId reverse(ir::TensorId x, const std::vector<int64_t>& axes);
  ir::TensorId gather(ir::TensorId x, ir::TensorId indices, int64_t axis) {
    return emit("Gather", {x, indices}, {{"axis", axis}});
  }
  // One element along the axis for each index, whose shape is the result's.
  ir::TensorId gather_elements(ir::TensorId x, ir::TensorId indices, int64_t axis) {
    return emit("GatherElements", {x, indices}, {{"axis", axis}});
  }
  // The largest elements along an axis, in descending order, and their places.
  std::vector<ir::TensorId> top_k(ir::TensorId x, ir::TensorId count, int64_t axis) {
    return emit_all("TopK", {x, count}, {{"axis", axis}}, 2);
  }
  std::vector<ir::TensorId> top_k(ir::TensorId x, int64_t count, int64_t axis) { return top_k(x, add_ints("k", {count}), axis); }
  ir::TensorId concat(std::vector<ir::TensorId> parts, int64_t axis);  // a single part is the result
  ir::TensorId stack(std::vector<ir::TensorId> parts, int64_t axis);   // along a new axis
  std::vector<ir::TensorId> split(ir::TensorId x, int64_t axis, const std::vector<int64_t>& sizes);
  ir::TensorId expand(ir::TensorId x, std::span<const int64_t> dims);
  ir::TensorId full(std::span<const int64_t> dims, double value, DType dtype);
  ir::TensorId full_like(ir::TensorId x, double value);
  // A list of axes as distinct non-negative ones in ascending order; all axes when `axes` is empty.
  static Result<std::vector<int64_t>> axes_of(std::span<const int64_t> axes, int64_t rank);
  // Channels last to channels first and back, for tensors of rank 3 and more.
  Result<ir::TensorId> channels_first(ir::TensorId x);
  Result<ir::TensorId> channels_last(ir::TensorId x);

 protected:
  ir::Graph& graph_;
  const ir::OpSet& ops_;

 private:
  ir::NodeId add_node(std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes, size_t outputs);
  void settle_node(ir::NodeId id);
  void fold(ir::NodeId id);

  std::string layer_;
  std::vector<std::string> origin_;
};

// A layer with another number of inputs than its operator takes.
Status wrong_input_count(size_t found, size_t least, size_t most);
// A layer of `count` inputs without this one.
Status missing_input(size_t i, size_t count);

}  // namespace orknn::importer
