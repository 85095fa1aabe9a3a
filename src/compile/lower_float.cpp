#include "compile/lower_float.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "base/files.h"
#include "base/refusal.h"
#include "base/threads.h"
#include "ir/custom_op.h"
#include "ir/infer.h"
#include "ir/packed.h"
#include "ops/facts.h"

namespace orknn::compile {
namespace {
using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Tensor;
using ir::TensorData;
using ir::TensorId;

bool wants_exact(const Node& node, size_t slot) { return ops::facts_of(node).is_exact_input(slot); }

// Computed values larger than this are data, not parameters.
constexpr int64_t kMaxParameterElements = 64;

bool is_small(const Tensor& t) {
  const auto dims = t.shape ? ir::to_dims(*t.shape) : std::nullopt;
  const auto count = dims ? ir::checked_element_count(*dims) : Result<int64_t>(invalid_argument("unknown shape"));
  return count && *count <= kMaxParameterElements;
}

bool has_subgraph(const Node& n) {
  return std::any_of(n.attributes.begin(), n.attributes.end(),
                     [](const auto& entry) { return ir::kind_of(entry.second) == ir::AttributeKind::Graph; });
}

// Rounds to half; `clamped` counts finite values outside of its range.
TensorData to_half(const TensorData& value, std::atomic<int64_t>& clamped) {
  TensorData result = TensorData::allocate(DType::Float16, value.dims());
  const float* from = value.as<float>();
  uint16_t* to = static_cast<uint16_t*>(result.mutable_data());
  const int64_t count = value.count();
  ThreadPool::shared().parallel_for(count, 1 << 16, [&](int64_t begin, int64_t end) {
    int64_t outside = 0;
    for (int64_t i = begin; i < end; ++i) {
      const float f = from[i];
      to[i] = float_to_half(f);
      if ((to[i] & 0x7fff) == 0x7c00 && std::isfinite(f)) {
        to[i] = static_cast<uint16_t>((to[i] & 0x8000) | 0x7bff);
        ++outside;
      }
    }
    if (outside) clamped += outside;
  });
  // An epsilon that protects a division or a logarithm must not vanish, whether it is one number or spread over a bias.
  const bool is_uniform = count > 0 && std::all_of(from, from + count, [&](float f) { return f == from[0]; });
  if (is_uniform && from[0] != 0 && (to[0] & 0x7fff) == 0)
    for (int64_t i = 0; i < count; ++i) to[i] |= 1;
  if (value.packed())
    if (TensorData unpacked = ir::unpack(value.packed(), DType::Float16); ir::identical(unpacked.view(), result.view()))
      return unpacked;
  release_mapped_pages({reinterpret_cast<const std::byte*>(from), value.bytes()});  // the source is rarely looked at again
  return result;
}

// The same for the bounds of a fused Clip: they are applied in float32, but what comes out is stored in half.
void keep_clip_bounds(Node& n) {
  for (ir::TailStep& step : n.tail) {
    if (ops::facts_of(step.op).bounds != ir::Bounds::Given) continue;
    for (const char* name : {"min", "max"}) {
      const double bound = step.attributes.float_or(name, 0);
      if (bound != 0 && (float_to_half(static_cast<float>(bound)) & 0x7fff) == 0)
        step.attributes.set(name, std::copysign(0x1p-24, bound));
    }
  }
}

// Inputs of the model come from the user, those of a body from tensors that are lowered as well.
enum class Inputs { OfModel, OfBody };

class Lowering {
 public:
  Lowering(Graph& graph, Inputs inputs, const ir::OpSet& ops, const std::function<void(std::string_view)>& warn,
           const std::function<void(uint64_t)>& converted)
      : graph_(graph), inputs_(inputs), ops_(ops), warn_(warn), converted_(converted) {}

  Status run() {
    const std::vector<NodeId> order = graph_.order();
    find_kept(order);
    retype_sources();
    Status problems;
    for (NodeId id : order)
      if (Status s = lower_node(id); !s) problems.also(s);
    return problems;
  }

 private:
  bool is_kept(TensorId t) const {
    return static_cast<size_t>(t.index) < kept_tensors_.size() && kept_tensors_[static_cast<size_t>(t.index)];
  }
  // float32 in the source, float16 by now; a source model's own float16 tensors are left as they are.
  bool was_lowered(TensorId t) const {
    return static_cast<size_t>(t.index) < was_float32_.size() && was_float32_[static_cast<size_t>(t.index)] &&
           graph_.tensor(t).dtype == DType::Float16;
  }
  bool is_kept(NodeId n) const { return kept_nodes_[static_cast<size_t>(n.index)]; }
  bool slot_stays(NodeId id, const Node& n, size_t slot) const { return is_kept(id) || wants_exact(n, slot); }
  // Operators of the user's own get the constants of the source model.
  bool constant_stays(NodeId id, const Node& n, size_t slot) const { return slot_stays(id, n, slot) || ir::is_custom(n.op); }

  // Marks computed float32 tensors that only feed exact inputs, and the nodes that make them.
  void find_kept(const std::vector<NodeId>& order) {
    kept_tensors_.assign(graph_.tensor_count(), false);
    for (size_t i = 0; i < graph_.tensor_count(); ++i)
      was_float32_.push_back(graph_.tensor({static_cast<int32_t>(i)}).dtype == DType::Float32);
    int32_t highest = -1;
    for (NodeId id : order) highest = std::max(highest, id.index);
    kept_nodes_.assign(static_cast<size_t>(highest + 1), false);
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      const Node& n = graph_.node(*it);
      if (has_subgraph(n)) continue;
      bool any = false, all = true;
      for (TensorId t : n.outputs) {
        if (!t || graph_.tensor(t).dtype != DType::Float32) continue;
        any = true;
        all &= !graph_.is_output(t) && !graph_.users(t).empty() && is_small(graph_.tensor(t)) && only_exact_readers(t);
      }
      if (!any || !all) continue;
      kept_nodes_[static_cast<size_t>(it->index)] = true;
      for (TensorId t : n.outputs)
        if (t && graph_.tensor(t).dtype == DType::Float32) kept_tensors_[static_cast<size_t>(t.index)] = true;
    }
  }

  // An input that only QuantizeLinear reads is quantized from what the user feeds, as the chip's input stage does, not from half;
  // the same holds for one that only exact inputs read.
  bool is_read_exactly(TensorId t) const {
    const auto users = graph_.users(t);
    if (users.empty() || graph_.is_output(t)) return false;
    return only_exact_readers(t) || std::all_of(users.begin(), users.end(), [&](NodeId user) {
             const Node& n = graph_.node(user);
             return ops::facts_of(n).conversion == ir::Conversion::ToIntegers && n.tail.empty() && n.input(0) == t &&
                    n.input(1) != t;
           });
  }

  bool only_exact_readers(TensorId t) const {
    for (NodeId user : graph_.users(t)) {
      const Node& n = graph_.node(user);
      for (size_t slot = 0; slot < n.inputs.size(); ++slot)
        if (n.inputs[slot] == t && !slot_stays(user, n, slot)) return false;
    }
    return true;
  }

  // An input that no chip's NPU ever reads has no reason to be rounded: its readers compute in float32 on the CPU, and only their
  // results are rounded.
  bool is_read_by_cpu_only(TensorId t) const {
    const auto users = graph_.users(t);
    return !users.empty() && !graph_.is_output(t) && std::all_of(users.begin(), users.end(), [&](NodeId user) {
      const Node& n = graph_.node(user);
      const ir::OpDef& def = ops::facts_of(n);
      const bool computes = def.pattern != ir::Pattern::Move && def.pattern != ir::Pattern::View;  // copies lose nothing
      return def.npu.form == ir::NpuForm::None && computes && !has_subgraph(n) && n.tail.empty();
    });
  }

  // Graph inputs and constants. A constant read both ways is split; the float32 half shares the bytes.
  void retype_sources() {
    const auto stays = [&](TensorId t) { return inputs_ == Inputs::OfModel && (is_read_exactly(t) || is_read_by_cpu_only(t)); };
    for (TensorId t : graph_.inputs())
      if (graph_.tensor(t).dtype == DType::Float32 && !graph_.is_constant(t) && !stays(t))
        graph_.tensor(t).dtype = DType::Float16;
    const size_t count = graph_.tensor_count();
    for (size_t i = 0; i < count; ++i) {
      const TensorId t{static_cast<int32_t>(i)};
      if (!graph_.is_constant(t) || graph_.tensor(t).dtype != DType::Float32) continue;
      bool exact = false, rounded = graph_.is_output(t);
      const std::vector<NodeId> users(graph_.users(t).begin(), graph_.users(t).end());
      for (NodeId user : users) {
        const Node& n = graph_.node(user);
        for (size_t slot = 0; slot < n.inputs.size(); ++slot)
          if (n.inputs[slot] == t) (constant_stays(user, n, slot) ? exact : rounded) = true;
      }
      if (exact && rounded) {
        const TensorData value = graph_.tensor(t).constant;
        const TensorId copy = graph_.add_constant(graph_.tensor(t).name + "_float32", value);
        for (NodeId user : users) {
          Node n = graph_.node(user);
          for (size_t slot = 0; slot < n.inputs.size(); ++slot)
            if (n.inputs[slot] == t && constant_stays(user, n, slot)) n.inputs[slot] = copy;
          graph_.replace_node(user, std::move(n));
        }
      }
      if (exact && !rounded) continue;
      Tensor& tensor = graph_.tensor(t);
      std::atomic<int64_t> clamped{0};
      if (converted_) converted_(tensor.constant.bytes());
      tensor.constant = to_half(tensor.constant, clamped);
      tensor.dtype = DType::Float16;
      if (clamped > 0 && warn_)
        warn_("constant '" + tensor.name + "' has " + std::to_string(clamped.load()) +
              " value(s) out of the float16 range, clamped to it!");
    }
  }

  // `t` in float32: through a Cast that is shared by all who ask.
  TensorId widened(TensorId t) {
    auto [it, inserted] = casts_.try_emplace(t.index, TensorId{});
    if (inserted) {
      const Tensor source = graph_.tensor(t);
      Node cast;
      cast.op = "Cast";
      cast.name = source.name + "_to_float32";
      cast.inputs = {t};
      cast.attributes.set("to", static_cast<int64_t>(DType::Float32));
      it->second = graph_.add_tensor(cast.name, DType::Float32, source.shape);
      graph_.tensor(it->second).layout = source.layout;
      cast.outputs = {it->second};
      graph_.add_node(std::move(cast));
    }
    return it->second;
  }

  // Importers leave types open inside bodies. The inputs of a body are those of its node, after what chooses it.
  void settle_types(const Node& n, Graph& body) const {
    const size_t first = ops::facts_of(n).chooses_body ? 1 : 0;
    for (size_t i = 0; i < body.inputs().size(); ++i) {
      Tensor& inside = body.tensor(body.inputs()[i]);
      const TensorId outside = n.input(first + i);
      if (inside.dtype != DType::Undefined || !outside) continue;
      inside.dtype = was_lowered(outside) ? DType::Float32 : graph_.tensor(outside).dtype;
    }
    // A body that cannot be inferred is reported by the lowering itself, with the node's name.
    static_cast<void>(ir::infer_shapes(body, ops_));
  }

  Status lower_attributes(Node& n) {
    static constexpr std::string_view kTypeAttributes[] = {"to", "dtype", "output_dtype", "output_datatype"};
    for (std::string_view name : kTypeAttributes)
      if (const int64_t* type = n.attributes.get<int64_t>(name); type && *type == static_cast<int64_t>(DType::Float32))
        n.attributes.set(std::string(name), static_cast<int64_t>(DType::Float16));
    // The scale stays float32, so the result's type has to be said.
    if (ops::facts_of(n).conversion == ir::Conversion::ToReals && n.input(1) && graph_.tensor(n.input(1)).dtype == DType::Float32)
      n.attributes.set("output_dtype", static_cast<int64_t>(DType::Float16));
    ir::Attributes changed = n.attributes;
    for (const auto& [name, value] : n.attributes) {
      if (const TensorData* data = std::get_if<TensorData>(&value); data && data->dtype() == DType::Float32) {
        std::atomic<int64_t> clamped{0};
        changed.set(name, to_half(*data, clamped));
      } else if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body) {
        Graph copy = **body;
        settle_types(n, copy);
        const Status lowered = Lowering(copy, Inputs::OfBody, ops_, warn_, converted_).run();
        // An alternative may fit other shapes than these: it stays as it is, and fails when it is taken.
        if (!lowered && !(ops::facts_of(n).chooses_body && is_refusal(lowered))) return lowered;
        if (lowered) changed.set(name, std::make_shared<const Graph>(std::move(copy)));
      }
    }
    n.attributes = std::move(changed);
    keep_clip_bounds(n);
    return {};
  }

  Result<std::vector<ir::TensorFacts>> infer(const Node& n) const {
    std::vector<ir::TensorFacts> facts;
    for (TensorId t : n.inputs) {
      ir::TensorFacts f;
      if (t) {
        f.dtype = graph_.tensor(t).dtype;
        f.shape = graph_.tensor(t).shape;
        f.constant = graph_.constant(t);
      }
      facts.push_back(std::move(f));
    }
    return ir::infer_node(n, ops_, std::move(facts));
  }

  Status lower_node(NodeId id) {
    Node n = graph_.node(id);
    const bool kept = is_kept(id);
    for (size_t slot = 0; slot < n.inputs.size(); ++slot)
      if (n.inputs[slot] && slot_stays(id, n, slot) && was_lowered(n.inputs[slot])) n.inputs[slot] = widened(n.inputs[slot]);
    const Node original = n;
    if (!kept && !ir::is_custom(n.op))
      if (Status s = lower_attributes(n); !s) return s.node(n.name, n.op);
    auto facts = infer(n);
    if (!facts && !kept && is_refusal(facts.status())) {  // an op that only knows float32: surround it with casts
      Node wide = original;
      for (TensorId& t : wide.inputs)
        if (t && was_lowered(t)) t = widened(t);
      if (auto retry = infer(wide)) {
        n = std::move(wide);
        facts = std::move(retry);
      }
    }
    if (!facts) return facts.status();
    std::vector<std::pair<TensorId, TensorId>> narrowed;  // float32 result, float16 tensor of the graph
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      const TensorId t = n.outputs[i];
      if (!t) continue;
      Tensor& tensor = graph_.tensor(t);
      const DType type = (*facts)[i].dtype;
      if (tensor.dtype == DType::Float32 && type == DType::Float32 && !is_kept(t)) {
        const std::string name = tensor.name + "_float32";
        const auto shape = tensor.shape;
        tensor.dtype = DType::Float16;
        n.outputs[i] = graph_.add_tensor(name, DType::Float32, shape);
        narrowed.emplace_back(n.outputs[i], t);
      } else if (type != DType::Undefined) {
        tensor.dtype = type;
      }
    }
    graph_.replace_node(id, std::move(n));
    for (const auto& [wide, half] : narrowed) {
      Node cast;
      cast.op = "Cast";
      cast.name = graph_.tensor(half).name + "_to_float16";
      cast.inputs = {wide};
      cast.outputs = {half};
      cast.attributes.set("to", static_cast<int64_t>(DType::Float16));
      cast.origin = graph_.node(id).origin;
      graph_.add_node(std::move(cast));
    }
    return {};
  }

  Graph& graph_;
  const Inputs inputs_;
  const ir::OpSet& ops_;
  const std::function<void(std::string_view)>& warn_;
  const std::function<void(uint64_t)>& converted_;
  std::vector<bool> was_float32_, kept_tensors_, kept_nodes_;
  std::unordered_map<int32_t, TensorId> casts_;
};

}  // namespace

Status lower_float(Graph& graph, const ir::OpSet& ops, const std::function<void(std::string_view)>& warn,
                   const std::function<void(uint64_t)>& converted) {
  return Lowering(graph, Inputs::OfModel, ops, warn, converted).run().stage("lower_float");
}

}  // namespace orknn::compile
