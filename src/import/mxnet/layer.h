// One node of a symbol as its lowering function sees it: inputs, parameters that may have to be made up, and attributes, which
// are all text in the file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "import/lower/network.h"
#include "import/lower/row.h"
#include "import/mxnet/symbol.h"

namespace orknn::importer::mxnet {

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
  using Outputs = std::vector<ir::TensorId>;  // none in place of an output that is not computed
  size_t operand_count() const { return inputs_.size(); }
  Result<ir::TensorId> operand(size_t i) const;
  ir::TensorId input(size_t i) const { return i < inputs_.size() ? inputs_[i] : ir::TensorId{}; }  // none when it is missing
  // Input `i` as a parameter called `role` (files of old versions leave some out; they are then found by name), as `dtype`. It
  // is made up when the model came without parameters.
  Result<ir::TensorId> parameter(size_t i, std::string_view role, const std::optional<ir::Dims>& dims, Fill fill, DType dtype,
                                 int64_t fan_in = 1);
  // The same for a vector of `length` elements, 0 when that is not known.
  Result<ir::TensorId> vector(size_t i, std::string_view role, int64_t length, Fill fill, DType dtype, int64_t fan_in = 1);
  // For a variant of another operator: what the rest of the lowering sees as inputs.
  void replace_inputs(std::vector<ir::TensorId> inputs) { inputs_ = std::move(inputs); }

  // --- attributes. A text that does not parse is kept as the layer's problem and the fallback is returned.
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

  // The axis stated under `key`, counted from the front.
  Result<int64_t> axis(std::string_view key, int64_t fallback, int64_t rank);

  // --- frequent pieces
  // The extent of an axis, which counts from the end when negative; 0 when it is not known.
  int64_t extent_of(ir::TensorId x, int64_t axis) const;
  // Data as channels first, whatever `layout` says, and a result back as it says.
  bool is_channels_last();
  Result<ir::TensorId> to_channels_first(ir::TensorId x) { return is_channels_last() ? channels_first(x) : x; }
  Result<ir::TensorId> to_layout(ir::TensorId x) { return is_channels_last() ? channels_last(x) : x; }
  ir::TensorId floats(std::string_view role, ir::Dims dims, std::span<const float> values);

 private:
  template <class T>
  T complain(std::string_view key, std::string_view expected, T fallback, std::string_view what = "does not parse");
  template <class T, class Parse>
  std::vector<T> list(std::string_view key, std::string_view expected, std::vector<T> fallback, const Parse& parse);

  const Symbol& symbol_;
  const SymbolNode& node_;
  std::vector<ir::TensorId> inputs_;
  ModelAccess& model_;
  Status problem_;
};

using Row = OperatorRow<Layer>;

// "(3, 3)", "[3,3]", "3" or "()": the elements as texts without spaces; nothing when it is no tuple.
std::optional<std::vector<std::string>> split_tuple(std::string_view text);
// "12", "12L", "12.0" of Python and C++ writers.
std::optional<int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);

// Operators that others are variants of.
Result<ir::TensorId> convolution(Layer& l, ir::TensorId x);
Result<ir::TensorId> fully_connected(Layer& l, ir::TensorId x);
Result<ir::TensorId> pooling(Layer& l, ir::TensorId x);
Result<std::vector<ir::TensorId>> activation(Layer& l, ir::TensorId x);
Result<ir::TensorId> embedding(Layer& l, ir::TensorId indices);
Result<std::vector<ir::TensorId>> batch_norm(Layer& l, ir::TensorId x);
ir::TensorId flatten(Layer& l, ir::TensorId x);

// The tables, one per family.
std::span<const Row> activation_rows(), attention_rows(), control_rows(), convolution_rows(), detection_rows(),
    elementwise_rows(), indexing_rows(), matrix_rows(), normalization_rows(), pooling_rows(), quantized_rows(), recurrent_rows(),
    reduction_rows(), sampling_rows(), shape_rows();

}  // namespace orknn::importer::mxnet
