// Which integer form a layer can take. Operators say it themselves (OpDef::quant, OpDef::weights); what is left to decide here is
// whether the attributes and constant operands of a node allow for it.
#pragma once

#include <string>
#include <vector>

#include "base/assert.h"
#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::quantize {

enum class Form {
  Float,    // no integer form
  Conv,     // constant weights; also ConvTranspose
  MatMul,   // also Gemm
  Binary,   // Add, Sub, Mul, Max, Min; Div by a constant
  Table,    // a function of one value
  PRelu,    // with a slope per channel
  Move,     // copies values: the result shares the parameters of input 0
  Concat,   // copies values of several tensors
  Average,  // AveragePool
  Mean,     // over neighbouring axes: ReduceMean, GlobalAveragePool
  Softmax,
  Resize,  // linear, of the last two axes
};

struct LayerForm {
  Form form = Form::Float;
  std::string reason;    // for Float
  bool notable = false;  // Float although there is an integer form, which would lose small or masked values
};

// By the node alone: operator, attributes, constant operands. Its tail does not count.
LayerForm form_of(const ir::Graph& graph, const ir::Node& node);

// The form of every layer of a graph; a layer whose form does not compute its whole tail stays in float. It is decided once,
// before calibration; steps that come later read it. Whether tensors have parameters does not count: that is what a Plan decides.
class LayerForms {
 public:
  LayerForms() = default;
  explicit LayerForms(const ir::Graph& graph);
  // Of a node that was added to the graph since.
  void add(const ir::Graph& graph, ir::NodeId id);

  LayerForm& operator[](ir::NodeId id) { return forms_[position(id)]; }
  const LayerForm& operator[](ir::NodeId id) const { return forms_[position(id)]; }

 private:
  size_t position(ir::NodeId id) const {
    ORKNN_ASSERT(id && static_cast<size_t>(id.index) < forms_.size(), "a step that adds a node gives it a form");
    return static_cast<size_t>(id.index);
  }
  std::vector<LayerForm> forms_;  // by node index
};

// How many of a node's first inputs are data of that form; the others are parameters.
size_t data_inputs(const ir::Node& node, Form form);

// The extents of a linear Resize and what it is given for them: one scale or size per axis.
struct AxisResize {
  int64_t from = 0, to = 0;
  double scale = 0;  // 0 = sizes are given
};
// By axis; nothing when they are not known or more than the last two change.
std::optional<std::vector<AxisResize>> linear_resize(const ir::Graph& graph, const ir::Node& node);

// True for operators that copy values of input 0 and take any type, the padding value of a Pad aside.
bool copies_values(const ir::Graph& graph, const ir::Node& node);

// Constant slopes of a PRelu on `x`: one for all, or one per channel of an axis.
struct Slopes {
  std::vector<double> values;
  int64_t axis = 1;
};
std::optional<Slopes> slopes_of(const ir::Graph& graph, ir::TensorId x, ir::TensorId slope);

// True for Arithmetic::Mul and Div.
bool multiplies_or_divides(const ir::Node& node);

// True for functions of one value (Relu, Sigmoid, ...) whose other operands are constants of one value.
bool is_function(const ir::Graph& graph, const ir::Node& node);
// The same of a step; also arithmetic with a constant of one value.
bool is_function(const ir::Graph& graph, const ir::Node& node, const ir::TailStep& step);
// The bounds that a step sets, when that is all it does (OpDef::bounds).
struct Interval {
  double low = 0, high = 0;  // may be infinite
};
std::optional<Interval> bounds_of(const ir::TailStep& step);
// The range a function cannot leave, when it has one: [0, 1] or [-1, 1].
bool has_unit_range(std::string_view op);       // Sigmoid, HardSigmoid, Softmax
bool has_symmetric_range(std::string_view op);  // Tanh, Erf, Softsign, ...

// A Pad before MaxPools with a value that never wins there: the lowest code of its tensor does the same.
bool pads_below_all(const ir::Graph& graph, const ir::Node& node);

// Axes that a mean is taken over, as [first, end); nothing when they are not neighbours or not known.
struct AxisRange {
  int64_t first = 0, end = 0;
};
std::optional<AxisRange> mean_axes(const ir::Graph& graph, const ir::Node& node);

}  // namespace orknn::quantize
