// One operator of a TFLite model while it is lowered: its options, its inputs as they are stored or as the real numbers they
// stand for, and its outputs, which are quantized as the model says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/lower/network.h"
#include "import/lower/row.h"
#include "import/lower/space.h"
#include "import/tflite/parse.h"

namespace orknn::importer::tflite {

// A tensor of the file in a graph under construction, or what a lowering made for one.
struct Value {
  ir::TensorId stored;   // as the file has it: integers of a quantized tensor, halves
  ir::TensorId real;     // what they stand for, made when first asked for
  std::string resource;  // name of the variable a handle refers to
  bool failed = false;   // its operator could not be lowered, which was reported

  Value() = default;
  Value(ir::TensorId real_numbers) : real(real_numbers) {}  // stored when it is handed over
  static Value of_stored(ir::TensorId id);
};

// The values of one run through a subgraph. Bodies of control flow are run inside of the model's own graph.
struct Scope {
  const Subgraph& subgraph;
  std::string prefix;              // of the names of its tensors
  size_t depth = 0;                // of control flow around it
  std::vector<std::string> names;  // unique in the graph, given when first needed
  std::vector<Value> values;
};

class GraphBuilder;

// Fused activations by their number in the schema.
enum class Activation : int8_t { None = 0, Relu = 1, ReluN1To1 = 2, Relu6 = 3, Tanh = 4, SignBit = 5 };

class Layer : public Emitter {
 public:
  using Outputs = std::vector<Value>;
  enum : size_t { kNoInput = SIZE_MAX, kAllInputs = SIZE_MAX - 1 };

  Layer(GraphBuilder& builder, Scope& scope, const Operator& op, std::string name);

  const Operator& op() const { return op_; }
  const Table& options() const { return op_.options; }
  Scope& scope() { return scope_; }
  GraphBuilder& builder() { return builder_; }

  size_t output_count() const { return op_.outputs.size(); }
  bool has_input(size_t i) const { return i < op_.inputs.size() && op_.inputs[i] >= 0; }
  bool has_output(size_t i) const { return i < op_.outputs.size() && op_.outputs[i] >= 0; }
  // Only for inputs and outputs that exist.
  const TensorInfo& input_info(size_t i) const { return scope_.subgraph.tensors[static_cast<size_t>(op_.inputs[i])]; }
  const TensorInfo& output_info(size_t i) const { return scope_.subgraph.tensors[static_cast<size_t>(op_.outputs[i])]; }
  size_t input_index(size_t i) const { return static_cast<size_t>(op_.inputs[i]); }
  bool is_complex_input(size_t i) const;
  // The first output's extents as the file states them, open ones below 0.
  Result<std::vector<int64_t>> stated_shape() const;

  // --- inputs; an absent one is an error
  size_t operand_count() const { return op_.inputs.size(); }
  // Real numbers, or the stored ones of an input whose elements are only moved.
  Result<ir::TensorId> operand(size_t i) { return moved_ == i || moved_ == kAllInputs ? stored(i) : real(i); }
  Result<ir::TensorId> stored(size_t i);
  Result<ir::TensorId> real(size_t i);  // integers that stand for nothing else stay integers
  // Real numbers of a constant with its axes permuted. The permutation goes to the stored constant, so that the optimizer folds
  // it.
  Result<ir::TensorId> weights(size_t i, const std::vector<int64_t>& permutation);
  // One number per output channel; no tensor when absent. Biases without a scale of their own have that of input times weights.
  Result<ir::TensorId> bias(size_t i, size_t data, size_t weights);
  // The contents of an integer input that is constant by now.
  Result<std::vector<int64_t>> ints(size_t i, std::string_view reason);
  Result<int64_t> integer(size_t i, std::string_view reason);
  Result<double> number(size_t i, std::string_view reason);

  // --- operators that only move elements
  // Calls the lowering with the stored numbers of input `from` where all outputs share its parameters (for kAllInputs: where all
  // inputs do too); what it makes then is stored as it is.
  Result<Outputs> move(size_t from, const Lowering<Layer>& lowering);
  bool is_moving() const { return moved_ != kNoInput; }
  // Another input in the same numbers as the one that is moved.
  Result<ir::TensorId> like_moved(size_t i) { return is_moving() ? stored(i) : real(i); }

  // --- outputs
  // Hands over what a lowering made: real numbers are quantized as the model says.
  Status set(size_t i, const Value& value);
  // The next value of a variable tensor that is an input.
  Status set_variable(size_t input, ir::TensorId real);

  // --- pieces of many operators
  Activation activation(unsigned field) const { return static_cast<Activation>(options().number<int8_t>(field)); }
  Result<ir::TensorId> activate(ir::TensorId x, Activation function);
  // The activation that an option names.
  Result<ir::TensorId> activate_by(ir::TensorId x, unsigned field) { return activate(x, activation(field)); }
  // A window over the spatial axes, outermost first, in fields of the options; padding is the first field.
  struct WindowFields {
    std::vector<unsigned> strides, dilations = {}, kernel = {};
  };
  Result<Window> window(const WindowFields& fields) const;
  // The options of MediaPipe's operators: C structures that begin with padding and the width and height of the stride.
  Result<std::vector<int64_t>> custom_fields(size_t count) const;

  // Quantizes and dequantizes with the parameters of a tensor of this scope.
  Result<ir::TensorId> quantize(ir::TensorId real, size_t tensor);
  Result<ir::TensorId> dequantize(ir::TensorId stored, size_t tensor, const std::vector<int64_t>& permutation, bool keep);
  // Rounds real numbers to those the tensor can hold.
  Result<ir::TensorId> round_to(ir::TensorId real, size_t tensor);

 private:
  struct Parameters {
    ir::TensorId scale, zero_point;
    ir::Attributes attributes;
  };
  Result<Parameters> parameters(size_t tensor, const std::vector<int64_t>& permutation);
  Result<Value*> value(size_t i);
  bool moves_stored(size_t input) const;

  GraphBuilder& builder_;
  Scope& scope_;
  const Operator& op_;
  size_t moved_ = kNoInput;
};

// A row's lowering that only moves elements of input `From`.
template <auto Function, size_t From = 0>
Result<std::vector<Value>> moved(Layer& l) {
  return l.move(From, Lowering<Layer>(Function));
}

using Row = OperatorRow<Layer>;

// The tables, one per family of operators.
std::span<const Row> convolution_rows(), pooling_rows(), elementwise_rows(), matrix_rows(), reduction_rows(), shape_rows(),
    indexing_rows(), recurrent_rows(), detection_rows(), control_rows();
// Custom operators go by names of their own.
std::span<const Row> custom_convolution_rows(), custom_pooling_rows(), custom_detection_rows();

}  // namespace orknn::importer::tflite
