// Turns a TensorFlow graph into ours. Values are asked for from the outputs backwards, so that branches not taken, training code
// and control edges cost nothing; functions are inlined, conditionals with a constant predicate taken, others selected element by
// element, and loops unrolled as long as their conditions can be computed while importing.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "import/lower/network.h"
#include "import/tensorflow/layer.h"
#include "import/tensorflow/scope.h"

namespace orknn::importer::tensorflow {

class Lowering {
 public:
  Lowering(const GraphDef& graph, std::shared_ptr<const void> keeper, const ir::OpSet& ops);
  // Inputs that leave nothing but the batch open, and whose size is not given, have one sample.
  void take_one_sample() { takes_one_sample_ = true; }
  Result<ir::Graph> run(const ImportOptions& options);
  std::vector<std::string> warnings() const { return import_.warnings; }

 private:
  struct NodeState {
    std::vector<Value> outputs;
    size_t next_input = 0;  // inputs before this one are there
    bool is_active = false, is_done = false;
  };
  // One evaluation of a scope: the graph itself, a call of a function, or one iteration of a loop (then `outer` is around the
  // loop).
  struct Frame {
    Scope* scope = nullptr;
    Frame* outer = nullptr;
    const CallSite* call = nullptr;
    std::string prefix;
    std::vector<Value> arguments;
    int depth = 0;
    std::unordered_map<int32_t, NodeState> states;
  };

  // --- ports
  static Value& output_of(NodeState& state, int32_t output);
  Status find_inputs(const ImportOptions& options);
  Status find_outputs(const ImportOptions& options);
  Status add_port(const Reference& reference, std::string name);
  std::vector<int32_t> reachable(std::span<const Reference> from) const;
  std::vector<std::vector<int32_t>> readers_of_nodes() const;  // who reads any output of each
  bool feeds_pictures(const Reference& from) const;
  Reference port_for(const Reference& named, const ir::Dims& size);
  bool is_predicate(const Reference& from) const;
  Result<Reference> named(const std::string& name, std::string_view list, std::span<const std::string> names) const;

  // --- evaluation
  Status settle(Frame& frame, const Reference& reference);
  Result<Value> get(Frame& frame, const Reference& reference);  // settles first
  const Value* find(Frame& frame, const Reference& reference) const;
  Result<Reference> next_requirement(Frame& frame, int32_t index, NodeState& state);
  Status lower(Frame& frame, int32_t index, NodeState& state);
  Status lower_plain(Frame& frame, int32_t index, NodeState& state, std::vector<Value> inputs);
  void finish(Frame& frame, int32_t index, NodeState& state, std::vector<Value> outputs);

  // --- control flow
  Status lower_merge(Frame& frame, int32_t index, NodeState& state);
  Status run_loop(Frame& frame, const LoopFrame& loop);
  Result<std::vector<Value>> call(Frame& frame, const NodeDef& node, std::string_view function, std::vector<Value> arguments);
  Result<std::vector<Value>> lower_call(Frame& frame, const NodeDef& node, Layer& layer);
  Result<std::vector<Value>> lower_if(Frame& frame, const NodeDef& node, Layer& layer);
  Result<std::vector<Value>> lower_while(Frame& frame, const NodeDef& node, Layer& layer);
  std::optional<bool> constant_truth(const Value& value) const;
  Result<std::vector<Value>> select(Emitter& emitter, ir::TensorId predicate, const std::vector<Value>& when_true,
                                    const std::vector<Value>& when_false);

  const GraphDef& graph_;
  Import import_;
  Network network_;
  FunctionIndex functions_;
  std::unordered_map<std::string_view, std::unique_ptr<Scope>> function_scopes_;
  std::unique_ptr<Scope> root_scope_;
  Frame root_;
  std::vector<Port> ports_;
  std::vector<Reference> port_references_;
  std::vector<std::pair<std::string, Reference>> outputs_;
  std::unordered_map<int32_t, char> named_;  // tensors that go by a name of the user's
  size_t lowered_ = 0;
  bool takes_one_sample_ = false;
};

}  // namespace orknn::importer::tensorflow
