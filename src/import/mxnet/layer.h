// One node of a symbol as its lowering function sees it: inputs, parameters that may have to be made up, and attributes, which
// are all text in the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/lower/emitter.h"
#include "import/mxnet/symbol.h"

namespace orknn::importer::mxnet {

// How a parameter without a value is made up.
enum class Fill { Random, Zeros, Ones };

// What layers need from the model they belong to.
class ModelAccess {
 public:
  virtual ~ModelAccess() = default;
  // The parameter of this name: from the params file, or made up when there is none. `dims` may be unknown as long as it exists.
  virtual Result<ir::TensorId> parameter(const std::string& name, const std::optional<ir::Dims>& dims, Fill fill,
                                         int64_t fan_in) = 0;
  // Lowers the body of a layer once: `inputs` stand for its variables, in their order.
  virtual Result<std::vector<ir::TensorId>> lower_body(const Symbol& body, std::span<const ir::TensorId> inputs,
                                                       const std::string& prefix) = 0;
  virtual void warn(std::string text) = 0;
};

class Layer : public Emitter {
 public:
  // `inputs` has one id per input of the node, none for variables without a value.
  Layer(ir::Graph& graph, const ir::OpSet& ops, const Symbol& symbol, const SymbolNode& node, std::string name,
        std::vector<ir::TensorId> inputs, ModelAccess& model)
      : Emitter(graph, ops, name, {name}), symbol_(symbol), node_(node), inputs_(std::move(inputs)), model_(model) {}

  const std::string& op() const { return node_.op; }
  const SymbolNode& node() const { return node_; }
  ModelAccess& model() { return model_; }
  int64_t version() const { return symbol_.version; }  // of MXNet; 10901 = 1.9.1

  // --- inputs
  size_t input_count() const { return inputs_.size(); }
  ir::TensorId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : ir::TensorId{}; }
  Result<ir::TensorId> need(size_t i) const;
  // Input `i` as a parameter called `role` (files of old versions leave some out; they are then found by name), as `dtype`. It
  // is made up when the model came without parameters.
  Result<ir::TensorId> parameter(size_t i, std::string_view role, const std::optional<ir::Dims>& dims, Fill fill, DType dtype,
                                 int64_t fan_in = 1);

  // For a variant of another operator: what the rest of the lowering sees as inputs.
  void replace_inputs(std::vector<ir::TensorId> inputs) { inputs_ = std::move(inputs); }

  // --- outputs
  void set_output(size_t i, ir::TensorId id);
  void set_output(ir::TensorId id) { set_output(0, id); }
  std::span<const ir::TensorId> outputs() const { return outputs_; }

  // --- attributes. A text that does not parse is kept as the layer's problem and the fallback is answered.
  bool has(std::string_view key) const;  // present and not "None"
  std::string text(std::string_view key, std::string_view fallback);
  int64_t integer(std::string_view key, int64_t fallback);
  double number(std::string_view key, double fallback);
  bool flag(std::string_view key, bool fallback);
  std::vector<int64_t> integers(std::string_view key, std::vector<int64_t> fallback = {});
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback = {});
  // A tuple whose elements may be None.
  std::vector<std::optional<int64_t>> bounds(std::string_view key);
  DType dtype(std::string_view key, DType fallback);
  // A tuple with `rank` positive elements, or `fallback` for each when absent.
  std::vector<int64_t> window(std::string_view key, size_t rank, int64_t fallback, int64_t least);
  const Status& problem() const { return problem_; }

  // --- frequent pieces
  ir::TensorId unary(std::string_view op, ir::TensorId x) { return emit(std::string(op), {x}); }
  ir::TensorId binary(std::string_view op, ir::TensorId a, ir::TensorId b) { return emit(std::string(op), {a, b}); }
  ir::TensorId with_scalar(std::string_view op, ir::TensorId x, double value) {
    return emit(std::string(op), {x, add_scalar("value", value, dtype_of(x))});
  }
  ir::TensorId reduce(std::string_view op, ir::TensorId x, std::vector<int64_t> axes, bool keep);
  ir::TensorId slice(ir::TensorId x, int64_t axis, int64_t begin, int64_t end, int64_t step = 1);
  ir::TensorId gather_rows(ir::TensorId x, ir::TensorId indices, int64_t axis);
  ir::TensorId unsqueeze(ir::TensorId x, std::vector<int64_t> axes) { return emit("Unsqueeze", {x, add_ints("axes", axes)}); }
  ir::TensorId squeeze(ir::TensorId x, std::vector<int64_t> axes) { return emit("Squeeze", {x, add_ints("axes", axes)}); }
  ir::TensorId expand(ir::TensorId x, std::vector<int64_t> shape) { return emit("Expand", {x, add_ints("shape", shape)}); }
  ir::TensorId concat(std::vector<ir::TensorId> parts, int64_t axis);
  ir::TensorId floats(std::string_view role, ir::Dims dims, std::span<const float> values);

 private:
  template <class T>
  T complain(std::string_view key, std::string_view expected, T fallback);

  const Symbol& symbol_;
  const SymbolNode& node_;
  std::vector<ir::TensorId> inputs_;
  std::vector<ir::TensorId> outputs_;
  ModelAccess& model_;
  Status problem_;
};

using Row = LoweringRow<Layer>;

// "(3, 3)", "[3,3]", "3" or "()": the elements as texts without spaces; nothing when it is no tuple.
std::optional<std::vector<std::string>> split_tuple(std::string_view text);
// "12", "12L", "12.0" of Python and C++ writers.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// Operators that others are variants of.
Status convolution(Layer& l);
Status fully_connected(Layer& l);
Status batch_norm(Layer& l);
Status activation(Layer& l);
Status pooling(Layer& l);
Status flatten(Layer& l);
Status embedding(Layer& l);

// The tables, one per family.
std::span<const Row> nn_rows();
std::span<const Row> pool_rows();
std::span<const Row> math_rows();
std::span<const Row> shape_rows();
std::span<const Row> reduce_rows();
std::span<const Row> index_rows();
std::span<const Row> rnn_rows();
std::span<const Row> sequence_rows();
std::span<const Row> detect_rows();
std::span<const Row> sampling_rows();
std::span<const Row> attention_rows();
std::span<const Row> quantized_rows();
std::span<const Row> control_rows();

}  // namespace orknn::importer::mxnet
