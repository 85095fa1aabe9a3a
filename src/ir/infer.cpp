#include "ir/infer.h"

#include <algorithm>

#include "ir/verify.h"

namespace orknn::ir {
namespace {
// Integer tensors longer than this are not followed element by element.
constexpr int64_t kMaxContent = 64;

// Content counts only with a static shape of as many elements, so that shape rules which have checked the shape may index it. A
// file may state another shape than the rule gives, or none.
void drop_unfit_content(TensorFacts& f) {
  if (!f.content) return;
  const std::optional<Dims> dims = f.shape ? to_dims(*f.shape) : std::nullopt;
  const Result<int64_t> count = dims ? checked_element_count(*dims, kMaxContent) : Result<int64_t>(-1);
  if (!count || *count != static_cast<int64_t>(f.content->size())) f.content.reset();
}
}  // namespace

Result<std::vector<TensorFacts>> infer_node(const Node& node, const OpSet& ops, std::vector<TensorFacts> inputs) {
  const OpDef* def = ops.find(node.op);
  if (!def) return unsupported("operator is not known").node(node.name, node.op);
  ORKNN_TRY(verify_node(node, *def));
  inputs.resize(node.own_input_count());
  for (TensorFacts& f : inputs) drop_unfit_content(f);
  InferContext context(node, *def, ops, std::move(inputs), node.outputs.size());
  if (Status s = def->infer(context); !s) return s.node(node.name, node.op);
  std::vector<TensorFacts> out;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    out.push_back(context.output(i));
    drop_unfit_content(out.back());
  }
  return out;
}

namespace {
// Brings the axes that a node names into the one form that passes and kernels see. The shape rule has accepted them.
void normalize_axes(Graph& graph, NodeId id, const OpDef& def) {
  for (const AttributeDef& a : def.attributes) {
    if (a.axes_of == AttributeDef::AxesOf::Nothing) continue;
    const Node& node = graph.node(id);
    const TensorId counted = a.axes_of == AttributeDef::AxesOf::Input ? node.input(0) : node.output(0);
    if (!counted || !graph.tensor(counted).shape) continue;
    const auto rank = static_cast<int64_t>(graph.tensor(counted).shape->size());
    const auto is_foreign = [](int64_t axis) { return axis < 0; };
    const auto from_first = [&](int64_t axis) { return axis < 0 ? axis + rank : axis; };
    if (const auto* axis = node.attributes.get<int64_t>(a.name); axis && is_foreign(*axis))
      graph.set_attribute(id, std::string(a.name), from_first(*axis));
    else if (const auto* axes = node.attributes.get<std::vector<int64_t>>(a.name);
             axes && std::ranges::any_of(*axes, is_foreign)) {
      std::vector<int64_t> normal = *axes;
      std::ranges::transform(normal, normal.begin(), from_first);
      graph.set_attribute(id, std::string(a.name), std::move(normal));
    }
  }
}
}  // namespace

Status infer_shapes(Graph& graph, const OpSet& ops, TensorContents* known_contents) {
  Status problems;
  TensorContents contents;
  if (known_contents) contents = std::move(*known_contents);
  contents.resize(graph.tensor_count());
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    std::vector<TensorFacts> facts;
    bool inputs_typed = true;
    for (TensorId t : n.inputs) {
      TensorFacts f;
      if (t) {
        const Tensor& tensor = graph.tensor(t);
        f.dtype = tensor.dtype;
        f.shape = tensor.shape;
        f.constant = graph.constant(t);
        f.content = contents[static_cast<size_t>(t.index)];
        inputs_typed &= tensor.dtype != DType::Undefined;
      }
      facts.push_back(std::move(f));
    }
    if (!inputs_typed) continue;  // follows from a problem reported already
    auto result = infer_node(n, ops, std::move(facts));
    if (!result) {
      problems.also(result.status());
      for (TensorId t : n.outputs)
        if (t) graph.tensor(t).dtype = DType::Undefined;
      continue;
    }
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (!n.outputs[i]) continue;
      Tensor& tensor = graph.tensor(n.outputs[i]);
      tensor.dtype = (*result)[i].dtype;
      tensor.shape = std::move((*result)[i].shape);
      contents[static_cast<size_t>(n.outputs[i].index)] = std::move((*result)[i].content);
    }
    normalize_axes(graph, id, *ops.find(n.op));
  }
  if (known_contents) *known_contents = std::move(contents);
  return problems.stage("infer_shapes");
}

}  // namespace orknn::ir
