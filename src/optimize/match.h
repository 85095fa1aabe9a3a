// Questions that rules ask about a graph, and the rewrites they return.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/known_dims.h"
#include "ir/patch.h"

namespace orknn::optimize {

// --- tensors
// -1 when unknown.
int64_t rank_of(const ir::Graph& g, ir::TensorId id);
DType dtype_of(const ir::Graph& g, ir::TensorId id);
bool is_float_tensor(const ir::Graph& g, ir::TensorId id);
// Both shapes are surely equal; symbols count, unknown extents do not.
bool same_shape(const ir::Graph& g, ir::TensorId a, ir::TensorId b);

// --- constants
// Elements of a constant integer tensor.
std::optional<std::vector<int64_t>> constant_ints(const ir::Graph& g, ir::TensorId id);
// The value of a constant with exactly one element.
std::optional<double> constant_scalar(const ir::Graph& g, ir::TensorId id);
// The value all elements of a constant share.
std::optional<double> constant_splat(const ir::Graph& g, ir::TensorId id);
// A constant of one element within `tolerance` (relative) of `value`.
bool is_scalar(const ir::Graph& g, ir::TensorId id, double value, double tolerance = 0);
bool nearly(double a, double b, double tolerance = 5e-4);
// Doubles as a constant of type `dtype`.
ir::TensorData constant_from(const std::vector<double>& values, ir::Dims dims, DType dtype);

// --- neighbours
ir::NodeId id_of(const ir::Graph& g, const ir::Node& node);
// The producer of `id` if it is of type `op` and has no tail; any number of readers.
const ir::Node* producer(const ir::Graph& g, ir::TensorId id, std::string_view op);
// Output `id` is read by one input slot and is no graph output.
bool read_once(const ir::Graph& g, ir::TensorId id);
// The only node reading `id`, which is no graph output; nullptr otherwise.
const ir::Node* only_reader(const ir::Graph& g, ir::TensorId id);
// Only `root` and the other nodes read what `nodes` compute: replacing `root` removes them all.
bool is_closed(const ir::Graph& g, const std::vector<const ir::Node*>& nodes, const ir::Node& root);
// All outputs but the first are absent or unread.
bool only_first_output(const ir::Graph& g, const ir::Node& node);
// Reading `to` instead of `from` keeps every graph output under its name.
bool can_replace(const ir::Graph& g, ir::TensorId from, ir::TensorId to);

// --- axes
// Reduction axes of a Reduce* node (input 1, or all of them), normalized and sorted; nothing when not constant.
std::optional<std::vector<int64_t>> reduce_axes(const ir::Graph& g, const ir::Node& node);
// Permutation of a Transpose node; nothing when the rank is unknown.
std::optional<std::vector<int64_t>> transpose_perm(const ir::Graph& g, const ir::Node& node);
std::vector<int64_t> inverse_perm(const std::vector<int64_t>& perm);

// --- rewrites
// Appends the tail of `from` to that of `to`, with its operands.
void append_tail(ir::Node& to, const ir::Node& from);
inline ir::Rewrite rewrite(ir::Patch patch) { return std::optional<ir::Patch>(std::move(patch)); }
// A node like `old` (same outputs, name, origin) that computes something else.
ir::Node successor(const ir::Node& old, std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes = {});
// A patch in which `fresh` takes the place of `old`: its outputs, and the origins of all nodes in `merged` besides.
ir::Rewrite replace_node(const ir::Graph& g, const ir::Node& old, ir::Node fresh, std::vector<const ir::Node*> merged = {});
// The same for a patch that already holds constants or nodes.
void replace_node(const ir::Graph& g, ir::Patch& patch, const ir::Node& old, ir::Node fresh,
                  std::vector<const ir::Node*> merged = {});
// A patch in which readers of `from` read `to`.
ir::Rewrite bypass(const ir::Graph& g, ir::TensorId from, ir::TensorId to);

}  // namespace orknn::optimize
