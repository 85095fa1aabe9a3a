// What an operator is: schema, shape rule, reference kernel, quantization rule, cost, and the facts that passes, quantizer,
// compiler and simulator ask about it. The ir room knows this shape of an operator and none by name; the operators themselves
// live in ops/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/threads.h"
#include "ir/graph.h"

namespace orknn::ir {

class OpSet;

struct AttributeDef {
  std::string_view name;
  AttributeKind kind;
  bool required = false;
  std::optional<Attribute> fallback;  // value when absent; nothing = the op tells absence from presence
  // Whose axes an int or a list of ints counts. In a graph whose shapes are inferred they are never negative (ir/infer.h).
  enum class AxesOf : uint8_t { Nothing, Input, Output } axes_of = AxesOf::Nothing;
};

// Shorthands for schema tables: attr_int("axis", 0), attr_ints("pads"), required(attr_graph("body")).
inline AttributeDef attr_int(std::string_view name) { return {name, AttributeKind::Int, false, {}}; }
inline AttributeDef attr_int(std::string_view name, int64_t v) { return {name, AttributeKind::Int, false, Attribute(v)}; }
inline AttributeDef attr_float(std::string_view name) { return {name, AttributeKind::Float, false, {}}; }
inline AttributeDef attr_float(std::string_view name, double v) { return {name, AttributeKind::Float, false, Attribute(v)}; }
inline AttributeDef attr_string(std::string_view name) { return {name, AttributeKind::String, false, {}}; }
inline AttributeDef attr_string(std::string_view name, std::string v) {
  return {name, AttributeKind::String, false, Attribute(std::move(v))};
}
inline AttributeDef attr_ints(std::string_view name) { return {name, AttributeKind::Ints, false, {}}; }
inline AttributeDef attr_ints(std::string_view name, std::vector<int64_t> v) {
  return {name, AttributeKind::Ints, false, Attribute(std::move(v))};
}
inline AttributeDef attr_floats(std::string_view name) { return {name, AttributeKind::Floats, false, {}}; }
inline AttributeDef attr_strings(std::string_view name) { return {name, AttributeKind::Strings, false, {}}; }
inline AttributeDef attr_tensor(std::string_view name) { return {name, AttributeKind::Tensor, false, {}}; }
inline AttributeDef attr_graph(std::string_view name) { return {name, AttributeKind::Graph, false, {}}; }
// Axes of input 0; axes of output 0.
inline AttributeDef axes_of_input(AttributeDef d) {
  d.axes_of = AttributeDef::AxesOf::Input;
  return d;
}
inline AttributeDef axes_of_output(AttributeDef d) {
  d.axes_of = AttributeDef::AxesOf::Output;
  return d;
}
inline AttributeDef required(AttributeDef d) {
  d.required = true;
  return d;
}

// Number of inputs or outputs an op takes. kMany = no upper bound.
struct Arity {
  static constexpr int kMany = 1 << 30;
  int min = 1, max = 1;
};

// Which block of the NPU an op belongs to when it is placed there.
enum class Engine : uint8_t { None, Conv, Depthwise, MatMul, Elementwise, Pool, Move, Lut, Norm, Recurrent };

// How quantization treats an op (used by the quantize room): the integer form of its layers, and whose parameters their results
// have. Results of rules that do not say so have their own, from calibration.
enum class QuantRule : uint8_t {
  Float,        // stays in float
  Compute,      // as OpDef::weights or OpDef::arithmetic say
  Slopes,       // input 1 holds factors for values below zero: one, or one per channel
  Exponent,     // as Table where input 1 is one constant, else as Float
  Average,      // mean over a sliding window
  Mean,         // mean over whole axes
  Softmax,      // exponentials divided by their sum: output range is exactly [0, 1]
  SameScale,    // copies values: output shares the parameters of input 0 (pooling, reshape, ...)
  Padding,      // as SameScale, with values of its own at the border
  Resample,     // as SameScale where it takes the nearest value; else it interpolates
  SharedScale,  // all data inputs and the output share one set (concat)
  Table,        // function of one value: a lookup table
  Fixed01,      // as Table, output range is exactly [0, 1]
  Fixed11,      // as Table, output range is exactly [-1, 1]
  Integer,      // works on integer contents (indices, shapes); never quantized
};

// What inference knows about one tensor.
struct TensorFacts {
  DType dtype = DType::Undefined;
  std::optional<Shape> shape;
  const TensorData* constant = nullptr;     // whole value, when known
  std::optional<std::vector<Dim>> content;  // elements of a small integer tensor, some of them possibly unknown
};

// Read access to a node's attributes with the schema's fallbacks.
class NodeReader {
 public:
  NodeReader(const Node& node, const struct OpDef& def) : node_(node), def_(def) {}
  const Node& node() const { return node_; }
  const OpDef& def() const { return def_; }
  // The attribute or its schema fallback; asserts that one of the two exists.
  int64_t get_int(std::string_view name) const;
  double get_float(std::string_view name) const;
  const std::string& get_string(std::string_view name) const;
  const std::vector<int64_t>& get_ints(std::string_view name) const;
  // nullptr when the node has none (fallbacks not considered).
  template <class T>
  const T* find(std::string_view name) const {
    return node_.attributes.get<T>(name);
  }

 private:
  const Attribute& lookup(std::string_view name) const;
  const Node& node_;
  const OpDef& def_;
};

// Passed to a shape rule: read the inputs, set every output.
class InferContext : public NodeReader {
 public:
  InferContext(const Node& node, const OpDef& def, const OpSet& op_set, std::vector<TensorFacts> inputs, size_t output_count)
      : NodeReader(node, def), ops(op_set), inputs_(std::move(inputs)), outputs_(output_count) {}
  const OpSet& ops;

  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i].dtype != DType::Undefined; }
  const TensorFacts& input(size_t i) const { return inputs_[i]; }
  DType dtype(size_t i) const { return inputs_[i].dtype; }
  // Shape of input i; nullptr when absent or of unknown rank.
  const Shape* shape(size_t i) const { return has_input(i) && inputs_[i].shape ? &*inputs_[i].shape : nullptr; }
  const TensorData* constant(size_t i) const { return has_input(i) ? inputs_[i].constant : nullptr; }
  // All elements of an integer input when every one is known (constant or computed shape arithmetic).
  std::optional<std::vector<int64_t>> ints(size_t i) const;
  // Elements of an integer input, unknown ones included; nothing when not even their number is known.
  std::optional<std::vector<Dim>> content(size_t i) const;

  size_t output_count() const { return outputs_.size(); }
  // Unknown rank = std::nullopt. Setting an output the node does not have is ignored.
  void set_output(size_t i, DType dtype, std::optional<Shape> shape);
  void set_content(size_t i, std::vector<Dim> content);
  const TensorFacts& output(size_t i) const { return outputs_[i]; }

 private:
  std::vector<TensorFacts> inputs_, outputs_;
};

// Passed to a kernel: read the inputs, ask for each output by its actual type and shape and fill it.
class RunContext : public NodeReader {
 public:
  RunContext(const Node& node, const OpDef& def, const OpSet& op_set, ThreadPool& thread_pool)
      : NodeReader(node, def), ops(op_set), pool(thread_pool) {}
  virtual ~RunContext() = default;
  const OpSet& ops;
  ThreadPool& pool;

  virtual size_t input_count() const = 0;
  virtual bool has_input(size_t i) const = 0;
  virtual TensorView input(size_t i) const = 0;  // only when has_input(i)
  virtual size_t output_count() const = 0;
  virtual bool has_output(size_t i) const = 0;  // false for an optional output without readers
  // Memory for output i. Where the shape was planned ahead the memory is the planned one and the shape must agree
  // (error otherwise); elsewhere it is allocated. Contents are uninitialized. Call once per existing output.
  virtual Result<MutableTensorView> output(size_t i, DType dtype, std::span<const int64_t> dims) = 0;
  // Hands over a finished value as output i (used by control flow).
  virtual Status set_output(size_t i, const TensorData& value) = 0;
};

// Work of one execution, for cost models.
struct OpCost {
  int64_t macs = 0;         // multiply-accumulates on the MAC array
  int64_t element_ops = 0;  // everything else
};

using InferFn = Status (*)(InferContext&);
using RunFn = Status (*)(RunContext&);
using CostFn = OpCost (*)(const NodeReader&, std::span<const Dims> inputs, std::span<const Dims> outputs);
using CopyFn = int (*)(const InferContext&);

// What happens to the samples that axis 0 of a result counts.
enum class BatchRule : uint8_t {
  Mixed,    // they meet, or it is not known that they do not
  OfFirst,  // each comes from that of input 0, whose axis 0 counts them too; other inputs are parameters
  OfAll,    // each comes from those of all inputs that are no constants
  Apart,    // they do not meet, whatever else holds
};
// Of a node whose first computed input has `rank` axes; `constants` are the slots of its constant inputs.
using BatchFn = BatchRule (*)(const NodeReader&, size_t rank, uint32_t constants);

// Where the elements of a result come from.
enum class Pattern : uint8_t {
  Other,
  Pointwise,     // the element at the same place in input 0; further inputs are parameters, one value each
  Broadcast,     // the elements at the same place in all inputs, which broadcast to one shape
  Rescale,       // as Pointwise, with parameters that are one value or one per position along attribute `axis`
  View,          // input 0 under another shape, in the same order
  Move,          // elements of the inputs at other places, none of them computed
  Window,        // a window that slides over the spatial axes of input 0
  GlobalWindow,  // all spatial axes of input 0
  Reduce,        // all elements along some axes
  Product,       // rows of input 0 times columns of input 1
};

// How a node names the axes it works along, when renaming them allows for a permuted input 0 (for joins: all inputs).
enum class AxisNames : uint8_t {
  None,           // it names none, or they cannot be renamed
  Attribute,      // int attribute `axis`
  FromAttribute,  // int attribute `axis` and all axes after it: only the first stays free
  Input1,         // ints of input 1; none = all
  Input3,         // ints of input 3; none = all, in order
  ListAttribute,  // ints attribute `axes`; none = all, in order
  PerAxis,        // input 1 has one value per axis
};

// How input 1 holds the weights of an op that multiplies by a matrix.
enum class Weights : uint8_t {
  None,
  OutIn,   // [out, in / group, kernel...]
  InOut,   // [in, out / group, kernel...]
  Matrix,  // [..., in, out]; [out, in] where attribute `transB` is set
};

// What an op computes of two values at the same place.
enum class Arithmetic : uint8_t { None, Add, Sub, Mul, Div, Max, Min };

// What a reduction makes of the elements that it takes together.
enum class Total : uint8_t { None, Sum, Mean, Max, Min, SumOfMagnitudes, SumOfSquares, RootOfSquares };

// How an op changes the number format of input 0.
enum class Conversion : uint8_t {
  None,
  ToIntegers,  // real numbers to integers, by the scale and zero point of inputs 1 and 2
  ToReals,     // the way back
  ToType,      // the same numbers in another type
};

// What an op cuts off from input 0, which passes otherwise.
enum class Bounds : uint8_t {
  None,
  Zero,   // what is below 0
  Given,  // what is outside of inputs 1 and 2, or of the attributes `min` and `max` of a fused step
};

// Whether tensors are parts of one another along attribute `axis`, in order.
enum class Parts : uint8_t {
  None,
  Joined,   // the inputs are parts of the result
  Divided,  // the results are parts of input 0
};

// What an NPU layer makes of the function in its last stage, before the result is stored (Node::tail).
enum class OutputStage : uint8_t {
  None,    // it is a layer of its own
  Addend,  // adds a second tensor
  Plain,   // bounds or bends a line: costs nothing
  Table,   // looked up in a table
};

// Rows of the lists of what NPUs compute. Types and limits of each row, per chip, are those of compile/npu_ops.cpp.
enum class NpuForm : uint8_t {
  None,  // no NPU computes it
  Convolution,
  FullyConnected,
  MatrixProduct,
  Attention,
  Recurrent,
  RecurrentFloat,
  Function,  // of one value, or anything else that only asks for tensors of few dimensions
  Broadcast,
  Expand,
  ChannelBroadcast,
  Division,
  Maximum,
  Minimum,
  Comparison,
  Selection,
  Slope,
  Power,
  Glu,
  Shuffle,
  Slice,
  Pad,
  Repeat,
  Gather,
  Transpose,
  Resize,
  ChannelSum,
  MaxPool,
  AveragePool,
  GlobalMaxPool,
  GlobalAveragePool,
  Softmax,
  Hardmax,
  Norm,
  MeanVarianceNorm,
};

struct NpuFacts {
  NpuForm form = NpuForm::None;
  std::string_view listed_as = {};  // name on the vendor's operator list, where it is another
  OutputStage stage = OutputStage::None;
  bool takes_tail = false;  // its layer has a last stage that computes the functions after it
  bool in_parts = false;    // chips of generation 1 compute it as three element-wise layers (Platform::functions_in_parts)
};

// Whether the vendor's runtime computes an op on the chip's CPU, and under which condition.
enum class CpuList : uint8_t { None, LargeChips, AllChips };
enum class CpuLimit : uint8_t { None, FourDimensions, OneSample, Product, Cast, Interpolation, RoiAverage };
struct CpuFacts {
  CpuList list = CpuList::None;
  CpuLimit limit = CpuLimit::None;
};

// What decides the time of an op that multiplies nothing.
enum class Work : uint8_t {
  AllElements,  // inputs and results
  Results,      // it does not look at the input elements that it does not return
  Softmax,      // exponentials and their sum along an axis
};

// The function of one float that a pointwise op computes, with the values of up to two float attributes, for kernels that apply
// it to results while they store them.
struct ScalarFunction {
  float (*call)(float x, float a, float b) = nullptr;
  std::string_view a = {}, b = {};  // names of the attributes
};

// A set of input numbers.
constexpr uint32_t input_slots(std::initializer_list<int> slots) {
  uint32_t set = 0;
  for (int s : slots) set |= 1u << s;
  return set;
}

struct OpDef {
  std::string_view name;
  std::string_view summary;  // one line for `openrknn ops`
  Arity inputs{1, 1};
  Arity outputs{1, 1};
  std::vector<AttributeDef> attributes = {};
  InferFn infer = nullptr;
  RunFn run = nullptr;
  // The kernel computes float16 and bfloat16 in float32: whoever calls it widens such inputs and narrows such outputs.
  // Kernels of these ops see float32, float64, integers and bool only. Pure data movement sets this to false.
  bool widen_half = true;
  QuantRule quant = QuantRule::Float;
  CostFn cost = nullptr;  // nullptr = one element op per output element
  Engine engine = Engine::None;
  // Same inputs, same outputs: may be folded. False for random ops.
  bool deterministic = true;

  // --- facts
  Pattern pattern = Pattern::Other;
  AxisNames axes = AxisNames::None;
  Weights weights = Weights::None;
  Arithmetic arithmetic = Arithmetic::None;
  Total total = Total::None;
  Conversion conversion = Conversion::None;
  Bounds bounds = Bounds::None;
  Parts parts = Parts::None;
  ScalarFunction scalar = {};
  // Axis 0 of input 0 counts samples, which never meet; other inputs are parameters.
  bool samples_apart = false;
  // The same where it depends on the node; nullptr = it does not.
  BatchFn batch = nullptr;
  // Axis 1 of input 0 counts channels, which never meet; other inputs have one value for each.
  bool channels_apart = false;
  // Results are at least 0. Follows from QuantRule::Fixed01 without being said.
  bool never_negative = false;
  // Results stay within the range of the inputs and 0, apart from bounds given beyond it.
  bool keeps_range = false;
  // 1 / (1 + exp(-x)): the score of a class.
  bool is_score = false;
  // Float attribute that values below zero are multiplied by, others pass; empty = it is no such function.
  std::string_view slope_attribute = {};
  // The smallest inputs decide the result: rounded to a step that suits the largest ones they would mean nothing.
  bool needs_small_values = false;
  // Results are the largest elements under a window: what is below all others never counts.
  bool takes_largest = false;
  // Each element of the result is that of one of the inputs after the first.
  bool selects = false;
  // Its bodies are alternatives: input 0 chooses one, the other inputs are those of the body.
  bool chooses_body = false;
  // f(s * x) = s * f(x) for every s > 0, other inputs unchanged.
  bool scales_through = false;
  // Inputs whose values decide shapes, counts, scales or what is kept: they stay float32 when a graph is lowered to float16.
  uint32_t exact_inputs = 0;
  // Input that is added to the result element by element; -1 = none.
  int addend_input = -1;
  // The input that a node gives back unchanged, element for element; -1 = none. The node has no tail, what is known about inputs
  // and output 0 is set. nullptr = never.
  CopyFn copied_input = nullptr;
  NpuFacts npu = {};
  CpuFacts cpu = {};
  Work work = Work::AllElements;
  // Name of the op that this integer op computes; empty = not an integer form.
  std::string_view integer_form_of = {};
  // Input of an integer op that holds a table of its function; -1 = none. Nodes may do without.
  int table_input = -1;
  // The integer form serves several ops: where attribute `fused` names any, the first is the one it computes.
  bool fused_names_op = false;

  bool is_elementwise() const { return pattern == Pattern::Pointwise || pattern == Pattern::Broadcast; }
  bool is_exact_input(size_t slot) const { return slot < 32 && (exact_inputs >> slot & 1) != 0; }
  // Float attribute `name` of a node or of a fused step, or its fallback, which it must have.
  double float_of(const Attributes& values, std::string_view name) const;
};

}  // namespace orknn::ir
