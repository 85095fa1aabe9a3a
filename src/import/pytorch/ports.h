// The arguments of a model's forward method as inputs of the graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "import/importer.h"
#include "import/lower/network.h"
#include "import/pytorch/interpreter.h"
#include "import/pytorch/model.h"

namespace orknn::importer::pytorch {

// What earlier attempts found out about the inputs (Session::retype).
struct InputNotes {
  std::map<int, DType> types;
  std::vector<char> lacks_batch;
};

// Adds inputs to the network and returns their values. Sizes and values of `options` apply to `ports`, in the order of
// `options.inputs` if there are any; `settle` may then fill in what is still open.
Result<std::vector<Value>> add_ports(std::vector<Port>& ports, const ImportOptions& options, const InputNotes& notes,
                                     Session& session, Network& network, const std::function<void(Port&)>& settle = {});
// Adds the inputs to the network and returns the arguments to call forward with.
Result<std::vector<Argument>> make_arguments(const Function& forward, const Model& model, const ImportOptions& options,
                                             const InputNotes& notes, Interpreter& interpreter, Session& session,
                                             Network& network);

}  // namespace orknn::importer::pytorch
