#include "runtime/custom_ops.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "ir/custom_op.h"
#include "ops/custom_ops.h"
#include "runtime/convert.h"

namespace orknn::runtime {
using namespace ir;

namespace {
thread_local CustomOps* active_ops = nullptr;
}

// What the executor sees: results are as the program states them, the kernel is whoever serves the node.
struct CustomNodes::Definition : OpDef {
  const CustomNodes* nodes = nullptr;  // nullptr = those of the running session
  std::string text;                    // holds OpDef::name

  static Result<const CustomNode*> node_of(const NodeReader& reader) {
    const auto& def = static_cast<const Definition&>(reader.def());
    const CustomNodes* of = def.nodes ? def.nodes : &active_ops->nodes();
    const CustomNode* node = of->find(reader.node());
    if (!node) return unsupported("a custom operator inside of a loop or branch is not supported");
    return node;
  }
  static Status infer_stated(InferContext& c) {
    ORKNN_TRY_ASSIGN(const CustomNode* node, node_of(c));
    for (size_t i = 0; i < c.output_count(); ++i)
      if (const TensorId t = node->node->output(i); t)
        c.set_output(i, node->graph->tensor(t).dtype, node->graph->tensor(t).shape);
    return {};
  }
  static Status run_served(RunContext& c) {
    ORKNN_TRY_ASSIGN(const CustomNode* node, node_of(c));
    ORKNN_ASSERT(active_ops, "a custom node runs inside of a session");
    return active_ops->run(*node, c);
  }
};

namespace {
// Steps fused with an integer operator are part of its arithmetic.
bool can_be_replaced(const Graph& graph, const Node& n) {
  if (n.tail.empty()) return true;
  return std::ranges::none_of(n.outputs, [&](TensorId t) { return t && is_quantized(graph.tensor(t)); });
}
}  // namespace

CustomNodes::CustomNodes(const format::Model& model, std::shared_ptr<const OpSet> known) : model_(model) {
  known_ = known ? std::move(known) : std::shared_ptr<const OpSet>(std::shared_ptr<void>(), &ops::builtin_ops());
  set_ = known_;
  for (const format::Program& program : model.programs) {
    std::map<std::string, size_t> counts;
    for (const format::Task& task : program.tasks) {
      if (!program.graph.is_alive(task.node)) continue;  // the executor refuses the program
      const Node& n = program.graph.node(task.node);
      const bool is_built_in = !is_custom(n.op);
      if (is_built_in ? !can_be_replaced(program.graph, n) : known_->find(n.op) != nullptr) continue;
      const std::string type(custom_type(n.op));
      nodes_[&n] = {&program.graph, &n, type, counts[n.op]++, is_built_in};
      if (is_built_in) continue;
      if (std::ranges::find(types_, type) == types_.end()) types_.push_back(type);
    }
  }
  if (types_.empty()) return;
  std::ranges::sort(types_);
  auto set = std::make_shared<OpSet>(*known_);
  for (const std::string& type : types_) {
    auto def = std::make_unique<Definition>();
    def->nodes = this;
    def->text = custom_name(type);
    def->name = def->text;
    def->inputs = {0, Arity::kMany};
    def->outputs = {1, Arity::kMany};
    def->infer = &Definition::infer_stated;
    def->run = &Definition::run_served;
    set->add({static_cast<const OpDef*>(def.get()), 1});
    definitions_.push_back(std::move(def));
  }
  set_ = std::move(set);
}

CustomNodes::~CustomNodes() = default;

const CustomNode* CustomNodes::find(const Node& node) const {
  const auto it = nodes_.find(&node);
  return it == nodes_.end() ? nullptr : &it->second;
}

std::vector<const CustomNode*> CustomNodes::of_type(std::string_view type) const {
  const bool is_built_in = !std::ranges::binary_search(types_, type);
  std::vector<const CustomNode*> list;
  for (const format::Task& task : model_.programs[0].tasks)
    if (const CustomNode* n = find(model_.programs[0].graph.node(task.node));
        n && n->type == type && n->is_built_in == is_built_in)
      list.push_back(n);
  return list;
}

size_t CustomNodes::fused_count(std::string_view type) const {
  size_t count = 0;
  const Graph& graph = model_.programs[0].graph;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    count += std::ranges::any_of(n.tail, [&](const TailStep& step) { return step.op == type; }) ||
             (n.op == type && !can_be_replaced(graph, n));
  }
  return count;
}

const OpDef& CustomNodes::replacement() {
  static const Definition* const def = [] {
    auto* d = new Definition;
    d->name = "replaced";
    d->inputs = {0, Arity::kMany};
    d->outputs = {1, Arity::kMany};
    d->infer = &Definition::infer_stated;
    d->run = &Definition::run_served;
    return d;
  }();
  return *def;
}

bool CustomOps::replaces(const Node& node) const {
  const CustomNode* n = nodes_->find(node);
  if (!n || !n->is_built_in) return false;
  const auto it = operators_.find(n->type);
  return it != operators_.end() && !it->second->leaves_to_built_in(*n);
}

std::vector<std::string> CustomOps::missing() const {
  std::vector<std::string> types = nodes_->types();
  std::erase_if(types, [this](const std::string& type) { return serves(type); });
  return types;
}

Result<CustomOps> CustomOps::duplicate() const {
  CustomOps copy(nodes_);
  copy.searched_ = searched_;
  for (const auto& [type, op] : operators_) {
    ORKNN_TRY_ASSIGN(std::unique_ptr<CustomOperator> second, op->duplicate(*nodes_));
    copy.serve(type, std::move(second));
  }
  return copy;
}

Status CustomOps::run(const CustomNode& node, RunContext& context) {
  const auto it = operators_.find(node.type);
  if (it != operators_.end()) return it->second->run(node, context);
  if (ops::builtin_of(node.node->op)) {
    if (!warned_)
      log(LogLevel::Warn, "run", "The custom operator '" + node.type + "' is not registered, the built-in one is used!");
    warned_ = true;
    return ops::run_as_builtin(context);
  }
  return Status::error(Code::NotFound, "the custom operator '" + node.type + "' is not registered" +
                                           (searched_.empty() ? "" : "; looked for a plug-in that serves it: " + searched_))
      .hint("call rknn_register_custom_ops after rknn_init (in Python reg_custom_op), or install its plug-in");
}

CustomOps::Active::Active(CustomOps& ops) : before_(active_ops) { active_ops = &ops; }
CustomOps::Active::~Active() { active_ops = before_; }

}  // namespace orknn::runtime
