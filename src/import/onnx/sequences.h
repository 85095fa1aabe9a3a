// Sequences of tensors. Our graphs have none: a sequence is a list of tensors that the importer keeps while it reads the model,
// so positions and lengths must be known then.
#pragma once

#include <map>
#include <vector>

#include "import/onnx/upgrade.h"

namespace orknn::importer::onnx {

class Sequences {
 public:
  // Carries out what a node does with sequences. True when nothing of the node is left; otherwise it is a node on tensors now.
  Result<bool> apply(Upgrade& u);
  bool contains(const ir::Graph& graph, ir::TensorId id) const { return lists_.contains({&graph, id.index}); }

 private:
  using Tensors = std::vector<ir::TensorId>;
  Result<Tensors> list(Upgrade& u) const;  // input 0
  bool keep(Upgrade& u, Tensors tensors);  // as output 0

  // By the tensor that stands for the sequence in the names of the model.
  std::map<std::pair<const ir::Graph*, int32_t>, Tensors> lists_;
};

}  // namespace orknn::importer::onnx
