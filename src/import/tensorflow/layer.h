// One node of a TensorFlow graph while it is lowered: its attributes and the values it reads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/lower/row.h"
#include "import/lower/space.h"
#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {

// A TensorArray or TensorList while the graph is lowered: its elements are tensors of ours, none where nothing was written yet.
struct TensorList {
  std::vector<ir::TensorId> items;
  DType dtype = DType::Float32;
  std::optional<ir::Dims> element;  // shape of the elements, when the graph states it
};

// What flows along an edge.
struct Value {
  ir::TensorId tensor;
  std::shared_ptr<const TensorList> list;
  bool failed = false;  // its producer was reported: who reads it has nothing to add

  Value() = default;
  Value(ir::TensorId id) : tensor(id) {}
  Value(TensorList items) : list(std::make_shared<const TensorList>(std::move(items))) {}
  static Value failure() {
    Value v;
    v.failed = true;
    return v;
  }
  bool is_set() const { return tensor || list || failed; }
};

// A call of a function: its attributes are the values of the attributes that the function's nodes leave open.
struct CallSite {
  const NodeDef* node = nullptr;
  const CallSite* outer = nullptr;
};

// What the layers of one import share.
struct Import {
  std::shared_ptr<const void> keeper;  // of the bytes constants point into
  std::vector<std::string> warnings;
  CutTensors cut_tensors;                       // what SpaceToBatch made
  std::unordered_set<int32_t> complex_tensors;  // their last axis holds real and imaginary parts
};

class Layer : public Emitter {
 public:
  using Outputs = std::vector<Value>;

  Layer(Import& shared, ir::Graph& graph, const ir::OpSet& op_set, const NodeDef& node, const CallSite* call, std::string name,
        std::vector<Value> inputs)
      : Emitter(graph, op_set, std::move(name), {std::string(node.name)}),
        import(shared),
        node_(node),
        call_(call),
        inputs_(std::move(inputs)) {}

  Import& import;
  const NodeDef& node() const { return node_; }
  std::string_view op() const { return node_.op; }

  // --- what it reads
  size_t operand_count() const { return inputs_.size(); }
  Result<ir::TensorId> operand(size_t i) const;  // an error when there is none, or when it is a list
  Result<const TensorList*> list(size_t i) const;
  const Value& value(size_t i) const { return inputs_[i]; }
  std::vector<Value>& values() { return inputs_; }
  // Tools that strip casts leave half-precision weights beside single-precision data: the wider type is taken for all.
  void join_float_types();
  // Contents of a constant input.
  Result<std::vector<int64_t>> ints(size_t i, std::string_view reason) const;
  Result<std::vector<double>> doubles(size_t i, std::string_view reason) const;
  Result<int64_t> integer(size_t i, std::string_view reason) const;
  Result<double> number(size_t i, std::string_view reason) const;

  // --- attributes; an absent one, or one of another type, is the fallback
  AttributeValue attribute(std::string_view name) const;
  int64_t int_or(std::string_view name, int64_t fallback) const;
  double float_or(std::string_view name, double fallback) const;
  bool bool_or(std::string_view name, bool fallback) const;
  std::string_view string_or(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> ints_or(std::string_view name, std::vector<int64_t> fallback = {}) const;
  std::vector<std::string_view> strings_or_none(std::string_view name) const;
  // The element type in an attribute; Undefined for one of TensorFlow's own.
  DType dtype_or(std::string_view name, DType fallback) const;

 private:
  Status need_inputs(size_t count) const;  // at least so many

  const NodeDef& node_;
  const CallSite* call_;
  std::vector<Value> inputs_;
};

using Row = OperatorRow<Layer>;

// The tables, by family.
std::span<const Row> elementwise_rows(), convolution_rows(), pooling_rows(), normalization_rows(), image_rows(), matrix_rows(),
    reduction_rows(), shape_rows(), indexing_rows(), generator_rows(), quantized_rows(), recurrent_rows(), detection_rows(),
    list_rows(), signal_rows();

// Operators we know and refuse: the reason and the way out.
struct Refusal {
  std::string_view op, reason, hint;
};
const Refusal* find_refusal(std::string_view op);

}  // namespace orknn::importer::tensorflow
