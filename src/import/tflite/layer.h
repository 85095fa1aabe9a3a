// One operator of a TFLite model while it is lowered: its options, its inputs as they are stored or as the real numbers they
// stand for, and its outputs, which are quantized as the model says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/lower/emitter.h"
#include "import/lower/network.h"
#include "import/tflite/parse.h"

namespace orknn::importer::tflite {

// A tensor of the file in a graph under construction.
struct Value {
  ir::TensorId stored;   // as the file has it: integers of a quantized tensor, halves
  ir::TensorId real;     // what they stand for, made when first asked for
  std::string resource;  // name of the variable a handle refers to
  bool failed = false;   // its operator could not be lowered, which was reported
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
  Layer(GraphBuilder& builder, Scope& scope, const Operator& op, std::string name);

  const Operator& op() const { return op_; }
  const Table& options() const { return op_.options; }
  Scope& scope() { return scope_; }
  GraphBuilder& builder() { return builder_; }

  size_t input_count() const { return op_.inputs.size(); }
  size_t output_count() const { return op_.outputs.size(); }
  bool has_input(size_t i) const { return i < op_.inputs.size() && op_.inputs[i] >= 0; }
  bool has_output(size_t i) const { return i < op_.outputs.size() && op_.outputs[i] >= 0; }
  // Only for inputs and outputs that exist.
  const TensorInfo& input_info(size_t i) const { return scope_.subgraph.tensors[static_cast<size_t>(op_.inputs[i])]; }
  const TensorInfo& output_info(size_t i) const { return scope_.subgraph.tensors[static_cast<size_t>(op_.outputs[i])]; }
  size_t input_index(size_t i) const { return static_cast<size_t>(op_.inputs[i]); }
  bool is_complex_input(size_t i) const;

  // --- inputs; an absent one is an error
  Result<ir::TensorId> stored(size_t i);
  Result<ir::TensorId> real(size_t i);  // integers that stand for nothing else stay integers
  // Real numbers of a constant with its axes permuted. The permutation goes to the stored constant, so that the optimizer folds
  // it.
  Result<ir::TensorId> weights(size_t i, const std::vector<int64_t>& permutation);
  // One number per output channel; no tensor when absent. Biases without a scale of their own have that of input times weights.
  Result<ir::TensorId> bias(size_t i, size_t data, size_t weights);
  // The contents of an integer input that is constant by now.
  Result<std::vector<int64_t>> ints(size_t i, std::string_view reason);
  Result<int64_t> int_scalar(size_t i, std::string_view reason);
  Result<double> number(size_t i, std::string_view reason);
  // An integer input as the int64 vector our shape operators take.
  Result<ir::TensorId> int64_input(size_t i);

  // --- outputs
  Status set(size_t i, ir::TensorId real);
  // A value already in the output's own numbers.
  Status set_stored(size_t i, ir::TensorId stored);
  // The next value of a variable tensor that is an input.
  Status set_variable(size_t input, ir::TensorId real);
  // Moving elements around does not touch them: works on the stored numbers when input and output share their parameters.
  bool moves_stored(size_t input, size_t output) const;
  Result<ir::TensorId> movable(size_t input, size_t output) { return moves_stored(input, output) ? stored(input) : real(input); }
  Status set_moved(size_t input, size_t output, ir::TensorId value) {
    return moves_stored(input, output) ? set_stored(output, value) : set(output, value);
  }

  // --- pieces of many operators
  Activation activation(unsigned field) const { return static_cast<Activation>(options().number<int8_t>(field)); }
  Result<ir::TensorId> activate(ir::TensorId x, Activation function);
  ir::TensorId float_scalar(std::string_view role, double value) { return add_scalar(role, value); }
  ir::TensorId unsqueeze(ir::TensorId x, std::vector<int64_t> axes);
  ir::TensorId squeeze(ir::TensorId x, std::vector<int64_t> axes);
  ir::TensorId slice(ir::TensorId x, std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
                     std::vector<int64_t> steps = {});
  ir::TensorId concat(std::vector<ir::TensorId> parts, int64_t axis);

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

  GraphBuilder& builder_;
  Scope& scope_;
  const Operator& op_;
};

using Row = LoweringRow<Layer>;

// The tables, one per family of operators.
std::span<const Row> conv_rows();
std::span<const Row> pool_rows();
std::span<const Row> elementwise_rows();
std::span<const Row> matrix_rows();
std::span<const Row> reduce_rows();
std::span<const Row> shape_rows();
std::span<const Row> index_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> detection_rows();
std::span<const Row> control_rows();
// Custom operators go by names of their own.
std::span<const Row> conv_custom_rows();
std::span<const Row> pool_custom_rows();
std::span<const Row> detection_custom_rows();

}  // namespace orknn::importer::tflite
