// Builds our graph from the messages of an ONNX model: names to tensors, functions inlined, bodies of control flow closed, the
// graph cut where the user asks, every node brought to the newest opset.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/lower/network.h"
#include "import/onnx/parse.h"
#include "import/onnx/sequences.h"
#include "import/onnx/tensors.h"

namespace orknn::importer::onnx {

// Version of each domain; the standard one is "".
using OpSets = std::map<std::string_view, int64_t>;
OpSets op_sets_of(const std::vector<OperatorSetProto>& imports);
bool is_constant_node(const NodeProto& node);

class GraphBuilder {
 public:
  GraphBuilder(const ModelProto& model, TensorReader& tensors, const ir::OpSet& ops);
  // All problems at once where they do not follow from each other.
  Result<ir::Graph> build(const ImportOptions& options);
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  using Names = std::unordered_set<std::string_view>;
  using Arguments = std::unordered_map<std::string_view, AttributeProto>;

  // The names one graph, body or function call sees.
  struct Scope {
    ir::Graph& graph;
    const OpSets& op_sets;
    Scope* outer = nullptr;                // around a body: its names are visible too
    const Arguments* arguments = nullptr;  // attribute values of the function call
    std::string prefix = {};               // put before the names of inlined nodes and tensors
    int function_depth = 0, body_depth = 0;
    std::unordered_map<std::string_view, ir::TensorId> values = {};
    Names defined = {};  // names that have their one definition
    Names cut = {};      // names the user made inputs, though a node may produce them too
    std::unordered_map<std::string_view, const TensorProto*> initializers = {};  // read when somebody asks
    std::unordered_map<std::string_view, const SparseTensorProto*> sparse_initializers = {};
    struct Capture {
      ir::TensorId outside, inside;
    };
    std::vector<Capture> captures = {};
  };

  // The nodes a result depends on, in execution order, and the names somebody reads.
  struct Plan {
    std::vector<const NodeProto*> nodes;
    Names read;
  };

  struct Body {
    std::string attribute;
    std::shared_ptr<ir::Graph> graph;
    std::vector<Scope::Capture> captures;
  };

  // A body that is written into the graph around it, as often as it is needed.
  struct InlinedBody {
    std::vector<std::string_view> inputs, outputs;
    Plan steps;
    Scope shared;     // the constants, which are the same in every copy
    size_t cost = 0;  // of a copy, in nodes
    size_t copies = 0;
  };

  Result<std::vector<Port>> ports(const ImportOptions& options);
  Result<Port> port_of(const ValueInfoProto& info);
  Status guess_inner_ports(std::vector<Port>& inner);
  std::optional<ir::Shape> shape_of(const TypeProto& type) const;
  void remark_stated_outputs(const ir::Graph& graph);

  Result<Plan> plan(const std::vector<NodeProto>& nodes, const std::vector<std::string_view>& outputs, const Names& stops) const;
  void add_initializers(Scope& scope, const GraphProto& graph);
  Status build_nodes(Scope& scope, const Plan& plan);
  Status declare(Scope& scope, const NodeProto& node, const Plan& plan);
  Status translate(Scope& scope, const NodeProto& node);
  Status add_custom(Scope& scope, ir::Node node, const NodeProto& proto);
  Status inline_function(Scope& scope, const NodeProto& node, const FunctionProto& function, const std::string& name);
  Status count_inlined(size_t nodes);
  // Makes `to` the same as `from`, a tensor or a sequence.
  void copy(ir::Graph& graph, ir::TensorId from, ir::TensorId to, std::string name, std::vector<std::string> origin);

  Result<Scope> body_scope(Scope& outer, ir::Graph& graph) const;
  Result<std::vector<const ValueInfoProto*>> body_inputs(const GraphProto& body) const;
  Result<Body> build_body(Scope& outer, const AttributeProto& attribute, const std::string& node_name);
  Status attach_bodies(Scope& scope, ir::Node& node, std::vector<Body> bodies);

  // Bodies that sequences go into or come out of (inline_bodies.cpp).
  bool must_inline_bodies(const Scope& scope, const NodeProto& node) const;
  Status inline_bodies(Scope& scope, const ir::Node& node, const std::vector<AttributeProto>& attributes);
  Status inline_branch(Scope& scope, const ir::Node& node, const std::vector<AttributeProto>& attributes);
  Status unroll_loop(Scope& scope, const ir::Node& node, const std::vector<AttributeProto>& attributes);
  Status map_sequence(Scope& scope, const ir::Node& node, const std::vector<AttributeProto>& attributes);
  Result<InlinedBody> open_body(Scope& scope, const ir::Node& node, const std::vector<AttributeProto>& attributes,
                                std::string_view attribute, size_t arguments);
  Result<std::vector<ir::TensorId>> write_body(InlinedBody& body, const std::vector<ir::TensorId>& arguments);

  // False when the name is nowhere to be found.
  Result<bool> find(Scope& scope, std::string_view name, ir::TensorId& id);
  Result<ir::TensorId> lookup(Scope& scope, std::string_view name);
  template <class Proto>
  Result<ir::TensorData> read(const Proto& tensor);
  Result<ir::TensorData> constant_value(const Scope& scope, const NodeProto& node);
  Result<ir::Attribute> to_attribute(const AttributeProto& attribute);
  std::vector<AttributeProto> resolved_attributes(const Scope& scope, const NodeProto& node) const;
  const FunctionProto* find_function(const NodeProto& node) const;

  const ModelProto& model_;
  TensorReader& tensors_;
  const ir::OpSet& ops_;
  OpSets op_sets_;
  std::map<std::string, const FunctionProto*> functions_;
  Symbols symbols_;  // dimension names settled by input_size_list
  std::vector<std::string> warnings_;
  Problems problems_;
  Sequences sequences_;
  std::unordered_map<const void*, ir::TensorData> values_read_;  // by the message: functions and bodies may repeat it
  size_t inlined_nodes_ = 0;
};

}  // namespace orknn::importer::onnx
