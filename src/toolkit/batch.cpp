#include "toolkit/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/refusal.h"
#include "ir/infer.h"
#include "ir/known_dims.h"
#include "ops/facts.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

int64_t axis_of(const Node& n, int64_t otherwise, int64_t rank) {
  const int64_t axis = n.attributes.int_or("axis", otherwise);
  return axis < 0 ? axis + rank : axis;
}

std::optional<std::vector<int64_t>> constant_ints(const Graph& g, TensorId t) {
  const TensorData* value = g.constant(t);
  if (!value || !is_integer(value->dtype())) return std::nullopt;
  std::vector<int64_t> out;
  for (double v : to_doubles(value->view())) out.push_back(static_cast<int64_t>(v));
  return out;
}

// One layer of works_on_samples_alone(): every tensor it computes from others has the samples along its first axis, which nothing
// mixes.
class LayerCheck {
 public:
  LayerCheck(const Graph& g, const Node& n)
      : g_(g),
        n_(n),
        def_(ops::facts_of(n)),
        x_(dims_of(g, first_computed(g, n)).value_or(Dims())),
        y_(dims_of(g, n.output(0)).value_or(Dims())) {}

  bool keeps_samples_apart() const {
    if (x_.empty() || y_.empty() || x_[0] != y_[0]) return false;
    if (def_.parts != Parts::Divided && std::any_of(n_.outputs.begin() + 1, n_.outputs.end(), [](TensorId t) { return bool(t); }))
      return false;  // MaxPool counts through all samples
    for (size_t i = n_.own_input_count(); i < n_.inputs.size(); ++i)
      if (!fits_every_sample(n_.input(i))) return false;
    if (def_.pattern == Pattern::Broadcast) return all_fit();
    const BatchRule rule = def_.batch ? def_.batch(NodeReader(n_, def_), x_.size(), constant_inputs()) : BatchRule::Mixed;
    if (rule == BatchRule::Apart) return true;
    if (g_.is_constant(n_.input(0)) || !addend_fits()) return false;
    const auto rank = static_cast<int64_t>(x_.size());
    if (def_.pattern == Pattern::Product) return multiplies_samples();
    if (def_.samples_apart || def_.pattern == Pattern::Pointwise || rule == BatchRule::OfFirst) return only_first_is_computed();
    if (rule == BatchRule::OfAll) return all_fit();
    if (def_.pattern == Pattern::Rescale) return axis_of(n_, 1, rank) > 0 && only_first_is_computed();
    return def_.axes != AxisNames::None && works_along_others(rank);
  }

 private:
  static TensorId first_computed(const Graph& g, const Node& n) {
    const auto it = std::find_if(n.inputs.begin(), n.inputs.end(), [&](TensorId t) { return t && !g.is_constant(t); });
    return it == n.inputs.end() ? TensorId{} : *it;
  }
  uint32_t constant_inputs() const {
    uint32_t slots = 0;
    for (int i = 0; i < std::min(static_cast<int>(n_.own_input_count()), 32); ++i)
      if (g_.is_constant(n_.input(static_cast<size_t>(i)))) slots |= input_slots({i});
    return slots;
  }
  // The axes that a node names are others than that of the samples.
  bool works_along_others(int64_t rank) const {
    const auto spares_samples = [&](const std::optional<std::vector<int64_t>>& axes) {
      return axes && !axes->empty() && std::none_of(axes->begin(), axes->end(), [&](int64_t a) { return a == 0 || a == -rank; });
    };
    switch (def_.axes) {
      case AxisNames::None:
      case AxisNames::PerAxis: return false;
      case AxisNames::Attribute:
      case AxisNames::FromAttribute: {
        const int64_t axis = NodeReader(n_, def_).get_int("axis");
        if (axis == 0 || axis == -rank) return false;
        const bool joins = def_.inputs.max == Arity::kMany;
        return joins ? std::none_of(n_.inputs.begin(), n_.inputs.end(), [&](TensorId t) { return g_.is_constant(t); })
                     : only_first_is_computed();
      }
      case AxisNames::Input1: return n_.has_input(1) && spares_samples(constant_ints(g_, n_.input(1)));
      case AxisNames::Input3:
        return only_first_is_computed() && (n_.has_input(3) ? spares_samples(constant_ints(g_, n_.input(3))) : pads_others(rank));
      case AxisNames::ListAttribute:  // factors for every axis, not sizes
        return x_.size() >= 3 && only_first_is_computed() && n_.has_input(2) && !n_.has_input(3) &&
               n_.attributes.ints_or("axes").empty();
    }
    return false;
  }
  // Of a Pad of all axes.
  bool pads_others(int64_t rank) const {
    const auto pads = def_.quant == QuantRule::Padding ? constant_ints(g_, n_.input(1)) : std::nullopt;
    return pads && static_cast<int64_t>(pads->size()) == 2 * rank && (*pads)[0] == 0 && (*pads)[static_cast<size_t>(rank)] == 0;
  }
  bool is_addend(size_t input) const { return def_.addend_input >= 0 && static_cast<size_t>(def_.addend_input) == input; }
  // A product per sample takes no constant addend: its rows need not be samples.
  bool addend_fits() const {
    if (def_.addend_input < 0) return true;
    const TensorId t = n_.input(static_cast<size_t>(def_.addend_input));
    return fits_every_sample(t) && !(t && def_.pattern == Pattern::Product && g_.is_constant(t));
  }

  // A constant that is the same for every sample, or a tensor with the samples along its first axis.
  bool fits_every_sample(TensorId t) const {
    if (!t) return true;
    const auto dims = dims_of(g_, t);
    if (!dims) return false;
    if (g_.is_constant(t)) return dims->size() < y_.size() || (dims->size() == y_.size() && (*dims)[0] == 1);
    return dims->size() == y_.size() && (*dims)[0] == y_[0];
  }
  bool all_fit() const {
    for (size_t i = 0; i < n_.own_input_count(); ++i)
      if (!fits_every_sample(n_.input(i))) return false;
    return true;
  }
  bool only_first_is_computed() const {
    for (size_t i = 1; i < n_.own_input_count(); ++i)
      if (!is_addend(i) && n_.input(i) && !g_.is_constant(n_.input(i))) return false;
    return true;
  }
  // Rows by one matrix, or one product per sample.
  bool multiplies_samples() const {
    const auto right = dims_of(g_, n_.input(1));
    if (!right || n_.attributes.int_or("transA", 0) != 0) return false;
    if (def_.addend_input < 0 && n_.own_input_count() > 2 && !fits_every_sample(n_.input(2))) return false;
    if (g_.is_constant(n_.input(1))) return right->size() == 2 && only_first_is_computed();
    return right->size() >= 3 && right->size() == x_.size() && (*right)[0] == y_[0];
  }

  const Graph& g_;
  const Node& n_;
  const OpDef& def_;
  const Dims x_, y_;
};

// A tensor like `from` under another name; constants are shared.
TensorId copy_tensor(const Graph& from, TensorId t, Graph& to, std::string name) {
  Tensor tensor = from.tensor(t);
  const TensorId id = tensor.is_constant() ? to.add_constant(std::move(name), tensor.constant)
                                           : to.add_tensor(std::move(name), tensor.dtype, tensor.shape);
  to.tensor(id).layout = tensor.layout;
  to.tensor(id).quant = std::move(tensor.quant);
  return id;
}

Status enlarge(Graph& graph, TensorId t, int64_t batch) {
  Tensor& tensor = graph.tensor(t);
  if (!tensor.shape || tensor.shape->empty())
    return unsupported(fmt::format("'{}' is a scalar and has no batch axis", tensor.name)).hint("leave rknn_batch_size unset");
  if (!(*tensor.shape)[0].is_known())
    return unsupported(fmt::format("the batch of '{}' is not known", tensor.name))
        .hint("give the input shapes with input_size_list");
  int64_t extent = 0;
  if (__builtin_mul_overflow((*tensor.shape)[0].value(), batch, &extent))
    return invalid_argument(fmt::format("rknn_batch_size {} is too large", batch));
  (*tensor.shape)[0] = Dim(extent);
  return {};
}

Result<Graph> enlarged(const Graph& graph, const OpSet& ops, int64_t batch) {
  Graph result = graph;
  for (TensorId t : result.inputs()) ORKNN_TRY(enlarge(result, t, batch));
  for (NodeId id : graph.order()) {
    if (graph.node(id).op != "Reshape") continue;
    std::vector<int64_t> shape = *constant_ints(graph, graph.node(id).input(1));
    if (shape[0] <= 0) continue;  // follows the input
    shape[0] *= batch;
    Node n = graph.node(id);
    n.inputs[1] = result.add_constant(graph.tensor(n.inputs[1]).name, TensorData::vector(shape));
    result.replace_node(id, std::move(n));
  }
  ORKNN_TRY(infer_shapes(result, ops));
  return result;
}

Result<Graph> repeated(const Graph& graph, const OpSet& ops, int64_t batch) {
  Graph result;
  result.name = graph.name;
  const auto copies = static_cast<size_t>(batch);
  std::vector<std::vector<TensorId>> ids(copies, std::vector<TensorId>(graph.tensor_count()));
  for (TensorId t : graph.inputs()) {
    const TensorId whole = copy_tensor(graph, t, result, graph.tensor(t).name);
    ORKNN_TRY(enlarge(result, whole, batch));
    result.inputs().push_back(whole);
    Node split;
    split.op = "Split";
    split.name = graph.tensor(t).name + "_samples";
    split.attributes.set("axis", int64_t{0});
    split.inputs = {whole};
    for (size_t k = 0; k < copies; ++k)
      split.outputs.push_back(ids[k][static_cast<size_t>(t.index)] =
                                  copy_tensor(graph, t, result, fmt::format("{}_sample{}", graph.tensor(t).name, k)));
    result.add_node(std::move(split));
  }
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId t{static_cast<int32_t>(i)};
    if (!graph.is_constant(t)) continue;
    const TensorId shared = copy_tensor(graph, t, result, graph.tensor(t).name);
    for (auto& map : ids) map[i] = shared;
  }
  for (size_t k = 0; k < copies; ++k)
    for (NodeId id : graph.order()) {
      Node n = graph.node(id);
      n.name += fmt::format("_sample{}", k);
      for (TensorId& t : n.inputs)
        if (t) t = ids[k][static_cast<size_t>(t.index)];
      for (TensorId& t : n.outputs) {
        if (!t) continue;
        const TensorId copy = copy_tensor(graph, t, result, fmt::format("{}_sample{}", graph.tensor(t).name, k));
        ids[k][static_cast<size_t>(t.index)] = copy;
        t = copy;
      }
      result.add_node(std::move(n));
    }
  for (TensorId t : graph.outputs()) {
    if (graph.is_input(t))
      return unsupported(fmt::format("the output '{}' is an input", graph.tensor(t).name)).hint("leave rknn_batch_size unset");
    Node concat;
    concat.op = "Concat";
    concat.name = graph.tensor(t).name + "_samples";
    concat.attributes.set("axis", int64_t{0});
    for (size_t k = 0; k < copies; ++k) concat.inputs.push_back(ids[k][static_cast<size_t>(t.index)]);
    const bool is_constant = graph.is_constant(t);
    const TensorId whole = result.add_tensor(graph.tensor(t).name, graph.tensor(t).dtype, graph.tensor(t).shape);
    result.tensor(whole).layout = graph.tensor(t).layout;
    result.tensor(whole).quant = graph.tensor(t).quant;
    ORKNN_TRY(enlarge(result, whole, batch));
    if (is_constant) {  // holds the name
      result.rename_tensor(concat.inputs[0], graph.tensor(t).name + "_sample");
      result.rename_tensor(whole, graph.tensor(t).name);
    }
    concat.outputs = {whole};
    result.add_node(std::move(concat));
    result.outputs().push_back(whole);
  }
  ORKNN_TRY(infer_shapes(result, ops));
  return result;
}
}  // namespace

bool works_on_samples_alone(const Graph& graph) {
  std::set<int64_t> batches;
  for (TensorId t : graph.inputs()) {
    const auto dims = dims_of(graph, t);
    if (!dims || dims->empty()) return false;
    batches.insert((*dims)[0]);
  }
  if (batches.size() != 1) return false;
  for (NodeId id : graph.order())
    if (!LayerCheck(graph, graph.node(id)).keeps_samples_apart()) return false;
  return std::all_of(graph.outputs().begin(), graph.outputs().end(),
                     [&](TensorId t) { return !graph.is_constant(t) && graph.producer(t); });
}

Result<Graph> with_batch(const Graph& graph, const OpSet& ops, int64_t batch) {
  for (TensorId t : graph.outputs())
    if (const auto dims = dims_of(graph, t); !dims || dims->empty())
      return unsupported(fmt::format("the output '{}' has no batch: {}", graph.tensor(t).name,
                                     dims ? "it is a single number" : "its shape is known only when the model runs"))
          .hint("leave rknn_batch_size unset");
  if (works_on_samples_alone(graph))
    if (auto larger = enlarged(graph, ops, batch); larger || !is_refusal(larger.status()))
      return larger;  // a layer may have constants of the old size after all
  return repeated(graph, ops, batch);
}

}  // namespace orknn::toolkit
