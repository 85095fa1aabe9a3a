// Sequences of tensors. Our graphs have none: a sequence is a list of tensors that the importer keeps while it reads the model,
// so positions and lengths must be known then. Bodies that a sequence goes into or comes out of are written into the graph
// around them (inline_bodies.cpp).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "import/onnx/layer.h"

namespace orknn::importer::onnx {

class Sequences {
 public:
  using Tensors = std::vector<ir::TensorId>;

  // Carries out what a node does with sequences. The tensors it is replaced by, none when its result is a sequence; nothing for
  // a node on tensors.
  Result<std::optional<Tensors>> apply(Layer& l);
  // nullptr for a tensor, and for a sequence that is not known.
  const Tensors* find(const ir::Graph& graph, ir::TensorId id) const;
  // The same, or an error.
  Result<Tensors> need(const ir::Graph& graph, ir::TensorId id) const;
  bool contains(const ir::Graph& graph, ir::TensorId id) const { return find(graph, id) != nullptr; }
  // From now on `id` stands for this sequence.
  void set(const ir::Graph& graph, ir::TensorId id, Tensors tensors) { lists_[{&graph, id.index}] = std::move(tensors); }

 private:
  Result<std::optional<Tensors>> keep(Layer& l, Tensors tensors);  // as output 0
  Status count(size_t tensors);

  // By the tensor that stands for the sequence in the names of the model.
  std::map<std::pair<const ir::Graph*, int32_t>, Tensors> lists_;
  size_t handled_ = 0;  // tensors of all lists
};

}  // namespace orknn::importer::onnx
