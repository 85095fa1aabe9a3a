// From subgraphs of a TFLite file to one graph of ours: ports, cutting, constants, the order of operators, bodies of control
// flow.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "import/importer.h"
#include "import/tflite/layer.h"

namespace orknn::importer::tflite {

class GraphBuilder {
 public:
  GraphBuilder(const Model& model, const FlatFile& file, std::shared_ptr<const void> keeper, const ir::OpSet& ops);

  Result<ir::Graph> build(const ImportOptions& options);
  const std::vector<std::string>& warnings() const { return network_.warnings; }

  Network& network() { return network_; }
  const Model& model() const { return model_; }

  // --- for layers
  // The value of a tensor of the scope, constants and variables made when first read.
  Result<Value*> value(Scope& scope, size_t tensor);
  const std::string& name_of(Scope& scope, size_t tensor);
  // The tensor's value from now on, under its name.
  void bind(Scope& scope, size_t tensor, ir::TensorId stored, std::string_view layer);
  // Runs a subgraph on the given values inside of the graph; returns its outputs. `label` tells this run from others.
  Result<std::vector<Value>> run_subgraph(int64_t index, const std::vector<Value>& arguments, Scope& caller,
                                          const std::string& label);
  // What is unrolled counts as operators, of which there may be only so many.
  Status count_lowered(size_t operators);
  // Variables of the whole model, by name.
  std::map<std::string, Value>& variables() { return variables_; }
  // What SPACE_TO_BATCH_ND made.
  CutTensors& cut_tensors() { return cut_tensors_; }
  void warn_once(const std::string& text);

 private:
  struct Ports;
  Scope make_scope(const Subgraph& subgraph, std::string prefix, size_t depth);
  std::string unique(std::string name);
  Result<Ports> find_ports(Scope& scope, const ImportOptions& options);
  Result<size_t> find_tensor(const Scope& scope, const std::string& name, std::string_view list,
                             std::span<const std::string> names) const;
  // The operators that `outputs` depend on, and those with effects elsewhere; `stops` are tensors that have a value already.
  std::vector<char> needed_operators(const Subgraph& subgraph, std::span<const size_t> outputs,
                                     const std::unordered_set<size_t>& stops) const;
  // Lowers the needed operators in their order. In the model itself problems are reported and what does not depend on them goes
  // on.
  Status lower_all(Scope& scope, const std::vector<char>& needed);
  Status lower(Scope& scope, const Operator& op, size_t index);

  const Model& model_;
  const FlatFile& file_;
  std::shared_ptr<const void> keeper_;
  Network network_;
  std::unordered_map<std::string, int64_t> taken_;                 // names, and how often they were wanted
  std::map<std::pair<const Subgraph*, size_t>, Value> constants_;  // shared by all runs through a subgraph
  std::map<std::string, Value> variables_;
  CutTensors cut_tensors_;
  std::unordered_set<std::string> warned_;
  size_t lowered_ = 0;  // operators so far, those of unrolled bodies included
};

}  // namespace orknn::importer::tflite
