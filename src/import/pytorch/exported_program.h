// Archives of torch.export (.pt2): a graph of operators as JSON with the weights beside it, in any of the layouts PyTorch has
// written since 2.1. Its nodes call the same operators as TorchScript code, so they go through the same tables.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "import/importer.h"
#include "import/lower/network.h"
#include "import/pytorch/interpreter.h"
#include "import/pytorch/model.h"

namespace orknn::importer::pytorch {

class ExportedProgram {
 public:
  // Reads the description; the weights are read when the program is executed.
  static Result<ExportedProgram> open(const Source& source, const zip::Archive& archive, const Contents& contents,
                                      Session& session);

  // Adds the inputs to the network and the nodes to the graph. Returns what forward returns.
  Result<Value> execute(const ImportOptions& options, Interpreter& interpreter, Network& network);
  // A value of the graph by the name its node has; None when there is none.
  Value find(const std::string& name) const;
  // Every node of the graph: its layer, and its operator by the name of its row or, if it has none, as the file spells it.
  std::vector<std::pair<std::string, std::string>> operators() const;
  std::vector<StatedPort> inputs() const;
  std::vector<StatedPort> outputs() const;

  std::string class_name() const;  // of the exported module
  std::string producer() const;
  int64_t version() const;

 private:
  using Values = std::unordered_map<std::string, Value>;
  ExportedProgram(const Source& source, const zip::Archive& archive, std::string root, Session& session)
      : source_(source), archive_(archive), root_(std::move(root)), session_(session) {}

  Status read_weights();
  Status read_payload(const std::string& folder, const std::string& list);
  Status read_pickled_weights(const std::string& name);
  Result<Value> weight(const std::string& name);
  Status bind_inputs(const ImportOptions& options, Network& network);
  Result<Port> stated_port(const std::string& name) const;
  std::vector<StatedPort> ports(std::string_view list, std::string_view kind) const;
  Status run(const Value& graph, Values& values);
  Status run_node(const Value& node, Values& values);
  Result<Value> call(const Value& node, const std::string& layer, Values& values);
  Result<Value> call_with_graphs(const Value& node, Values& values);
  Status bind_outputs(const Value& node, const Value& result, Values& values);
  Result<Value> argument(const Value& description, const Values& values);
  Result<Value> named(const std::string& name, const Values& values) const;
  Result<Value> result();

  const Source& source_;
  const zip::Archive& archive_;
  std::string root_;  // top folder with its slash, or empty
  Session& session_;
  Interpreter* interpreter_ = nullptr;
  Value description_;
  Values weights_, values_;
};

}  // namespace orknn::importer::pytorch
