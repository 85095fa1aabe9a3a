// Saved models: a graph whose variables lie in files beside it becomes one that holds their values.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "import/tensorflow/parse.h"

namespace orknn::importer::tensorflow {

// A way to call the model: tensors of the graph, "node:0", in the order of their names in the signature.
struct Signature {
  std::string name;
  std::vector<std::string> inputs, outputs;
};
// serving_default, else the only one or the first with outputs; without outputs when the file states none.
Result<Signature> signature_of(Bytes saved_model);

// What the nodes of a changed graph point into.
struct OwnedMessages {
  std::deque<std::vector<std::byte>> messages;
};

bool has_variables(const GraphDef& graph);
// Variables become constants, with the values of the files at `prefix` (variables/variables); only nodes that the outputs need
// stay. `saved_model`: the file that the graph was read from.
Status freeze(GraphDef& graph, Bytes saved_model, const std::vector<std::string>& outputs, const std::string& prefix,
              OwnedMessages& owned);

}  // namespace orknn::importer::tensorflow
