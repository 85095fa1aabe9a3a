#include "compile/place.h"

#include <algorithm>
#include <set>

#include "base/nearest_name.h"
#include "compile/cpu_ops.h"
#include "compile/npu_ops.h"
#include "ir/custom_op.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "platform/gpu.h"

namespace orknn::compile {
namespace {
using format::Device;

// Operator list 3.6: what several cores may share. Activations that need a table stop some chips from dividing a convolution.
bool splittable(const NodeFacts& facts) {
  const auto only = [&](auto&& allowed) {
    const auto functions = facts.functions();
    return std::all_of(functions.begin(), functions.end(), allowed);
  };
  const bool lut = facts.platform().multi_core_lut;
  // A product with constant weights runs as a convolution.
  const ir::Weights weights = facts.def().weights;
  if (weights == ir::Weights::OutIn || (weights == ir::Weights::Matrix && facts.is_constant(1)))
    return lut || only([&](std::string_view f) {
             const ir::OutputStage stage = ops::facts_of(f).npu.stage;
             return stage == ir::OutputStage::Plain || stage == ir::OutputStage::Addend;
           });
  if (facts.form() == ir::NpuForm::Broadcast)
    return only([](std::string_view f) { return ops::facts_of(f).bounds == ir::Bounds::Zero; });
  return facts.def().parts == ir::Parts::Joined ||
         (facts.form() == ir::NpuForm::Attention && lut);  // Concat: by the vendor's logs
}

// What the user asked for this node: by output tensor, by node name, by type.
const std::string* wish(const CompileOptions& options, const NodeFacts& facts) {
  const auto look_up = [&](std::string_view key) -> const std::string* {
    const auto it = options.op_target.find(std::string(key));
    return it == options.op_target.end() ? nullptr : &it->second;
  };
  const ir::Node& n = facts.node();
  for (ir::TensorId t : n.outputs)
    if (t)
      if (const std::string* found = look_up(facts.graph().tensor(t).name)) return found;
  if (!n.name.empty())
    if (const std::string* found = look_up(n.name)) return found;
  return look_up(facts.op());
}

struct Decision {
  Device device = Device::Cpu;
  std::string reason;
  bool off_list = false;
};

Decision decide(const NodeFacts& facts, const std::string* asked, const CompileOptions& options) {
  const Objection npu = npu_objection(facts), cpu = cpu_objection(facts);
  const bool cpu_wanted = asked && (*asked == "cpu" || *asked == "gpu");
  if (asked && *asked == "gpu" && platform::has_gpu(facts.platform()))
    return {Device::Gpu, "op_target says gpu; times of the GPU are not published, the CPU's is used", false};
  if (npu.empty() && !cpu_wanted) {
    const auto window = facts.def().weights == ir::Weights::OutIn ? window_of(facts) : std::nullopt;
    const std::string_view vendor = listed_name(facts.def());  // Gemm is a convolution there
    const std::string name =
        vendor == facts.op() ? std::string(vendor) : std::string(facts.op()) + " runs as " + std::string(vendor) + ", which";
    return {Device::Npu,
            name + " is on the NPU operator list and within its limits" +
                (window && pads_before(*window) ? "; its wide border is padded before it" : ""),
            false};
  }
  if (asked && *asked == "npu" && options.warn)
    options.warn("op_target asks for the npu for '" + facts.node().name + "' (" + std::string(facts.op()) + "), but " + npu +
                 "!");
  if (!npu.empty() && !cpu_wanted && facts.platform().has_shader)
    return {Device::Npu, npu + "; runs on the shader of the NPU", false};
  std::string because = npu.empty() ? "op_target says " + *asked : npu;
  if (cpu.empty()) return {Device::Cpu, because + "; on the CPU operator list", false};
  if (npu.empty()) return {Device::Cpu, because + "; runs on the CPU reference kernel", false};
  return {Device::Cpu,
          "not on the vendor's operator list; runs on the CPU reference kernel (" + because + (because == cpu ? "" : "; " + cpu) +
              ")",
          true};
}

// The runtime calls operators of the user's own for nodes of the graph, not for those inside of a loop or branch.
Status refuse_custom_in_bodies(const ir::Node& node) {
  for (const auto& [name, value] : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<const ir::Graph>>(&value);
    if (!body || !*body) continue;
    for (ir::NodeId id : (*body)->order()) {
      const ir::Node& inner = (*body)->node(id);
      if (ir::is_custom(inner.op))
        return unsupported("a custom operator inside of the body of " + node.op + " is not supported")
            .node(inner.name, ir::custom_type(inner.op));
      ORKNN_TRY(refuse_custom_in_bodies(inner));
    }
  }
  return {};
}
}  // namespace

Result<std::vector<format::Task>> place(const ir::Graph& graph, const CompileOptions& options) {
  const ir::OpSet& ops = options.ops ? *options.ops : ops::builtin_ops();
  const platform::Platform& platform = options.platform ? *options.platform : platform::default_platform();
  Status problems;
  std::vector<format::Task> tasks;
  std::map<std::string, std::vector<std::string>> off_list;  // op -> nodes
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    const ir::OpDef* def = ops.find(n.op);
    if (!def) {
      problems.also(unsupported("operator is not known").node(n.name, n.op));
      continue;
    }
    problems.also(refuse_custom_in_bodies(n));
    const NodeFacts facts(graph, n, platform);
    const Decision decision = ir::is_custom(n.op) ? Decision{Device::Custom, "an operator of the user's own", false}
                                                  : decide(facts, wish(options, facts), options);
    format::Task task;
    task.node = id;
    task.device = decision.device;
    task.reason = decision.reason;
    if (decision.device == Device::Npu) {
      task.engine = def->engine;
      if (facts.form() == ir::NpuForm::Convolution)
        if (const auto window = window_of(facts); window && window->depthwise) task.engine = ir::Engine::Depthwise;
      if (!options.single_core && platform.cores > 1 && splittable(facts)) task.core_mask = (1u << platform.cores) - 1;
    }
    if (decision.off_list) {
      const std::string op(facts.op());
      off_list[op].push_back(n.name.empty() ? op : n.name);
    }
    tasks.push_back(std::move(task));
  }
  if (!problems) return problems.stage("place");
  if (options.warn) {
    for (const auto& [op, nodes] : off_list) {
      std::string names;
      for (size_t i = 0; i < nodes.size() && i < 3; ++i) names += (i ? ", '" : "'") + nodes[i] + "'";
      if (nodes.size() > 3) names += " and " + std::to_string(nodes.size() - 3) + " more";
      options.warn("The Op of '" + op + "' (" + names + ") is not on the operator list of " + std::string(platform.name) +
                   " for this type and shape, it runs on the CPU reference kernel!");
    }
    for (const std::string& remark : remarks_on_targets(graph, options.op_target, platform)) options.warn(remark);
  }
  return tasks;
}

std::vector<std::string> remarks_on_targets(const ir::Graph& graph, const std::map<std::string, std::string>& op_target,
                                            const platform::Platform& platform) {
  std::vector<std::string> remarks;
  if (op_target.empty()) return remarks;
  std::set<std::string, std::less<>> known;
  for (ir::NodeId id : graph.order()) {
    const ir::Node& n = graph.node(id);
    known.insert(n.name);
    known.emplace(NodeFacts(graph, n, platform).op());
    for (ir::TensorId t : n.outputs)
      if (t) known.insert(graph.tensor(t).name);
  }
  for (const auto& [key, value] : op_target) {
    if (!known.contains(key)) {
      const std::string hint = did_you_mean(key, std::vector<std::string_view>(known.begin(), known.end()));
      remarks.push_back("op_target names '" + key + "', which is neither a tensor, a node nor an op type of this model" +
                        (hint.empty() ? "!" : ": " + hint));
    } else if (value == "gpu" && !platform::has_gpu(platform)) {
      remarks.push_back("op_target sends '" + key + "' to the gpu, which " + std::string(platform.name) +
                        " does not have: it runs on the CPU!");
    }
  }
  return remarks;
}

}  // namespace orknn::compile
