// What the integer forms share while a float graph becomes one of integers: tensors in both representations, and the graph in the
// making.
#pragma once

#include "quantize/forms/functions.h"
#include "quantize/number_format.h"
#include "quantize/plan.h"

namespace orknn::quantize {

// What became of a layer.
class Outcome {
 public:
  // `loss` says what of the layer's precision is lost; empty = nothing.
  static Outcome lowered(std::string loss = {}) { return Outcome(true, std::move(loss)); }
  static Outcome stays_float(std::string because) { return Outcome(false, std::move(because)); }
  bool is_lowered() const { return is_lowered_; }
  const std::string& reason() const { return text_; }
  const std::string& loss() const { return text_; }

 private:
  Outcome(bool is_lowered, std::string text) : is_lowered_(is_lowered), text_(std::move(text)) {}
  bool is_lowered_;
  std::string text_;
};

// A layer that is not possible in integers stays in float; other problems are errors of the build.
Result<Outcome> outcome_of(Status problem);

class Lowering {
 public:
  Lowering(const ir::Graph& graph, const ir::OpSet& ops, const Plan& plan);

  const ir::Graph& graph() const { return in_; }
  const ir::OpSet& ops() const { return ops_; }
  const Plan& plan() const { return plan_; }

  // --- what integers of a tensor of the float graph mean
  const std::optional<ir::QuantParams>& parameters(ir::TensorId t) const { return plan_.parameters(t); }
  double scale(ir::TensorId t) const { return parameters(t)->scale[0]; }
  int64_t zero(ir::TensorId t) const { return parameters(t)->zero_point[0]; }
  DType type(ir::TensorId t) const { return plan_.type(t); }
  Limits limits(ir::TensorId t) const { return limits_of(type(t), parameters(t)->fixed_point); }
  int64_t quantized(double real, ir::TensorId t) const { return rounded(real, scale(t), zero(t), limits(t)); }
  // Every value in the parameters of `t`.
  ir::TensorData integers(ir::TensorId t, ir::Dims dims, std::span<const double> reals) const;
  // f of every integer that `x` can hold, in the parameters of `y`.
  Result<ir::TensorData> table_of(const Functions& f, ir::TensorId x, ir::TensorId y) const;
  // Why a multiplier that leads to the scale of `t` cannot be stated.
  Outcome scale_too_small(ir::TensorId t) const;

  // --- tensors of the integer graph
  // A tensor of the float graph in the representation asked for; converted where it has the other one.
  ir::TensorId real(ir::TensorId old);
  ir::TensorId integer(ir::TensorId old);
  // The one it was computed in.
  ir::TensorId primary(ir::TensorId old);
  ir::TensorId constant(const std::string& name, ir::TensorData value) { return out_.add_constant(name, std::move(value)); }
  // A tensor like `old` with its parameters.
  ir::TensorId add_integer_tensor(ir::TensorId old, const std::string& name) { return declare(old, name, true); }
  ir::Graph& out() { return out_; }

  // --- nodes of the integer graph
  void add_input(ir::TensorId t);
  // A layer that stays in float.
  void copy_node(const ir::Node& n);
  // The integer form of `n`; its results become integer tensors.
  void add_layer(const ir::Node& n, std::string op, std::vector<ir::TensorId> inputs, ir::Attributes attributes);
  // `y` = QuantizeLinear(real `x`) in the place of a layer that makes `y`.
  void quantize_as(ir::TensorId x, ir::TensorId y);

 private:
  struct Versions {
    ir::TensorId real, integer;
  };
  Versions& versions(ir::TensorId t) { return versions_[static_cast<size_t>(t.index)]; }
  ir::TensorId declare(ir::TensorId old, const std::string& name, bool integer);
  ir::TensorId convert(const std::string& op, ir::TensorId old, ir::TensorId from, const std::string& name, bool to_integer);

  const ir::Graph& in_;
  const ir::OpSet& ops_;
  const Plan& plan_;
  ir::Graph out_;
  std::vector<Versions> versions_;
};

// One file per form. An error is a defect of ours; what a form cannot state is an outcome.
Result<Outcome> lower_conv(Lowering& l, ir::NodeId id);
Result<Outcome> lower_matmul(Lowering& l, ir::NodeId id);
Result<Outcome> lower_binary(Lowering& l, const ir::Node& n);
Result<Outcome> lower_table(Lowering& l, const ir::Node& n);
Result<Outcome> lower_prelu(Lowering& l, const ir::Node& n);
Result<Outcome> lower_move(Lowering& l, const ir::Node& n);
Result<Outcome> lower_concat(Lowering& l, const ir::Node& n);
Result<Outcome> lower_average(Lowering& l, const ir::Node& n);
Result<Outcome> lower_mean(Lowering& l, const ir::Node& n);
Result<Outcome> lower_softmax(Lowering& l, const ir::Node& n);
Result<Outcome> lower_resize(Lowering& l, const ir::Node& n);

}  // namespace orknn::quantize
