// What placement and prediction ask about a node: shapes, types and attributes with their defaults.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op_def.h"
#include "platform/platforms.h"

namespace orknn::compile {

// Extents of a tensor brought to four dimensions.
struct Extents {
  int64_t n = 1, c = 1, h = 1, w = 1;
};

// Why something is not possible; empty = it is.
using Objection = std::string;

class NodeFacts {
 public:
  NodeFacts(const ir::Graph& graph, const ir::Node& node, const platform::Platform& platform);
  const ir::Graph& graph() const { return graph_; }
  const ir::Node& node() const { return node_; }
  const platform::Platform& platform() const { return platform_; }

  // The operator as the lists of operators name it: an integer form goes by the name of what it computes.
  std::string_view op() const { return op_; }
  // What that operator says about itself.
  const ir::OpDef& def() const { return *def_; }
  ir::NpuForm form() const { return def_->npu.form; }
  bool is_integer_form() const { return !own_->integer_form_of.empty(); }
  // The functions computed in the layer's last stage: steps of its tail, or what an integer layer says is fused into it.
  std::vector<std::string_view> functions() const;
  bool has_input(size_t i) const { return node_.has_input(i); }
  // Static extents of input or output i; nullopt when absent or unknown.
  std::optional<ir::Dims> input(size_t i) const { return node_.has_input(i) ? dims_of(node_.inputs[i]) : std::nullopt; }
  std::optional<ir::Dims> output(size_t i = 0) const { return dims_of(node_.output(i)); }
  std::optional<ir::Dims> dims_of(ir::TensorId t) const;
  DType input_type(size_t i) const { return node_.has_input(i) ? graph_.tensor(node_.inputs[i]).dtype : DType::Undefined; }
  bool is_constant(size_t i) const { return node_.has_input(i) && graph_.is_constant(node_.inputs[i]); }
  // Value of a constant input with one element.
  std::optional<double> scalar(size_t i) const;
  // Contents of a constant integer input.
  std::optional<std::vector<int64_t>> ints(size_t i) const;
  // Attribute `axis` counted from the front, for tensors of this rank.
  int64_t axis(int64_t fallback, int64_t rank) const;

 private:
  const ir::Graph& graph_;
  const ir::Node& node_;
  const platform::Platform& platform_;
  const ir::OpDef* own_;  // of the node itself
  std::string_view op_;
  const ir::OpDef* def_;  // of `op_`
};

// The window of a convolution or pooling with all defaults resolved, for 1-D and 2-D (a 1-D window is one row high).
struct Window {
  bool transposed = false, depthwise = false;
  int64_t group = 1, in_channels = 0, out_channels = 0;
  std::array<int64_t, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1}, pad_begin{0, 0}, pad_end{0, 0};
  Extents in, out;
  int64_t dilated(int axis) const { return (kernel[static_cast<size_t>(axis)] - 1) * dilation[static_cast<size_t>(axis)] + 1; }
};

// nullopt for a node without static shapes or with three and more spatial axes. Padding that auto_pad leaves open counts as
// what SAME needs.
std::optional<Window> window_of(const NodeFacts& facts);

// The extents as N, C, H, W: leading ones are added in front of shorter shapes. nullopt above rank 4.
std::optional<Extents> extents(const std::optional<ir::Dims>& dims);

}  // namespace orknn::compile
