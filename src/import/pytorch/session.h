// What lasts for one import: the graph under construction, the values, and the tensors with their aliases.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "import/lower/emitter.h"
#include "import/pytorch/value.h"

namespace orknn::importer::pytorch {

// What QuantizeLinear and DequantizeLinear take besides their tensor.
struct QuantizationConstants {
  ir::TensorId scale, zero_point;
  ir::Attributes attributes;  // the axis, when there is one
};
QuantizationConstants add_quantization(Emitter& e, const Quantization& q);

class Session {
 public:
  Session(ir::Graph& graph_of_import, const ir::OpSet& op_set) : graph(graph_of_import), ops(op_set) {}

  ir::Graph& graph;
  const ir::OpSet& ops;
  Heap heap;
  std::vector<std::string> warnings;
  bool has_input_facts = false;   // the archive states shapes and types of the inputs
  bool divides_integers = false;  // division of integers gives integers, as before version 4 of the format
  int initializing = 0;           // objects whose stored state is being restored: their changes are part of loading

  // The archive does not say of which type an input is: float32 is tried first. A lowering that finds out better leaves its wish
  // here and fails; the import starts over.
  struct Retype {
    int input;
    DType dtype;  // Undefined: the type is right, but the given shape lacks the batch
  };
  std::optional<Retype> retype;

  // A new tensor for a value of the graph whose shape inference knows; an error that names the reason otherwise.
  Result<TensorValue*> tensor(ir::TensorId id);
  // Brings a tensor up to date: puts it into the graph when it lies in the archive, recomputes a view whose parent was written.
  Status refresh(Emitter& emitter, TensorValue& tensor);
  // Overwrites a tensor (already refreshed) with a value of its own shape and type; views and parents follow.
  Status assign(Emitter& emitter, TensorValue& tensor, ir::TensorId value);
  // The contents of a constant; nullptr otherwise.
  const ir::TensorData* constant(Emitter& emitter, TensorValue& tensor);
  // Adds a warning, once.
  void warn(std::string text);
  // A buffer or attribute of the model was changed while it ran.
  void note_changed_state(const std::string& name);
  // What to tell the user about them; nothing when nothing was changed.
  std::optional<std::string> warning_of_state() const;
  // The number in a constant of one element.
  std::optional<Value> constant_number(Emitter& emitter, TensorValue& tensor);

 private:
  Status materialize(Emitter& emitter, TensorValue& tensor);

  std::map<std::tuple<const Storage*, int64_t, ir::Dims, ir::Dims>, ir::TensorId> stored_;
  std::set<std::string> changed_state_;
};

}  // namespace orknn::importer::pytorch
