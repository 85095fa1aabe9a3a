#include "ops/support/subgraph.h"

#include <algorithm>
#include <cstring>

#include "ir/infer.h"
#include "ops/support/movement.h"

namespace orknn::ops {
using namespace ir;
namespace {
constexpr int kMaxDepth = 8;
constexpr int64_t kMaxIterations = int64_t{1} << 20;

struct Nesting {
  int depth = 0;
  int64_t iterations = 0;  // since the outermost body was entered
};
thread_local Nesting nesting;

bool same_shape(const TensorFacts& a, const TensorFacts& b) {
  return a.shape && b.shape ? *a.shape == *b.shape : a.shape.has_value() == b.shape.has_value();
}
}  // namespace

BodyScope::BodyScope() {
  if (nesting.depth++ == 0) nesting.iterations = 0;
}
BodyScope::~BodyScope() { --nesting.depth; }
Status BodyScope::status() const {
  return nesting.depth <= kMaxDepth
             ? Status()
             : unsupported("control flow is nested too deeply").expected("at most " + std::to_string(kMaxDepth) + " levels");
}
bool BodyScope::any() { return nesting.depth > 0; }
Status BodyScope::count_iteration() {
  if (++nesting.iterations <= kMaxIterations) return {};
  return unsupported("loops run for too long").expected("at most " + std::to_string(kMaxIterations) + " iterations");
}

Result<const Graph*> body_of(const NodeReader& node, std::string_view name, size_t inputs, size_t outputs, bool at_least) {
  const auto* body = node.find<std::shared_ptr<const Graph>>(name);
  if (!body || !*body) return invalid_model("attribute '" + std::string(name) + "' is missing");
  const Graph& graph = **body;
  const std::string what = "'" + std::string(name) + "' has the wrong number of ";
  if (graph.inputs().size() != inputs)
    return invalid_model(what + "inputs").expected(std::to_string(inputs)).found(std::to_string(graph.inputs().size()));
  if (at_least ? graph.outputs().size() < outputs : graph.outputs().size() != outputs)
    return invalid_model(what + "outputs").expected(std::to_string(outputs)).found(std::to_string(graph.outputs().size()));
  return &graph;
}

Result<std::vector<TensorFacts>> infer_body(const Graph& body, const OpSet& ops, std::span<const TensorFacts> inputs) {
  const BodyScope scope;
  ORKNN_TRY(scope.status());
  Graph graph = body;
  TensorContents contents(graph.tensor_count());
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor& t = graph.tensor(graph.inputs()[i]);
    t.dtype = inputs[i].dtype;
    t.shape = inputs[i].shape;
    if (inputs[i].constant) t.constant = *inputs[i].constant;
    contents[static_cast<size_t>(graph.inputs()[i].index)] = inputs[i].content;
  }
  if (graph.has_cycle()) return invalid_model("a body has a cycle");
  ORKNN_TRY(infer_shapes(graph, ops, &contents));
  std::vector<TensorFacts> out;
  for (TensorId id : graph.outputs()) {
    const Tensor& t = graph.tensor(id);
    if (t.dtype == DType::Undefined) return invalid_model("output '" + t.name + "' of a body has no type");
    out.push_back(
        {t.dtype, t.is_constant() ? to_shape(t.constant.dims()) : t.shape, nullptr, contents[static_cast<size_t>(id.index)]});
    if (t.is_constant() && is_integer(t.dtype) && t.constant.count() <= 64) {
      const std::vector<int64_t> values = to_ints(t.constant.view());
      out.back().content = std::vector<Dim>(values.begin(), values.end());
    }
  }
  return out;
}

Result<TensorFacts> join_facts(const TensorFacts& a, const TensorFacts& b) {
  if (a.dtype != b.dtype)
    return invalid_model("types differ between two ways to the same value")
        .expected(std::string(dtype_name(a.dtype)))
        .found(std::string(dtype_name(b.dtype)));
  TensorFacts out;
  out.dtype = a.dtype;
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size()) return out;
  out.shape = a.shape;
  for (size_t i = 0; i < out.shape->size(); ++i)
    if ((*a.shape)[i] != (*b.shape)[i]) (*out.shape)[i] = Dim();
  return out;
}

Result<std::vector<TensorFacts>> infer_repeated_body(const Graph& body, const OpSet& ops, std::vector<TensorFacts>& inputs,
                                                     size_t first, size_t count, size_t first_output) {
  for (size_t i = 0; i < count; ++i) {
    inputs[first + i].constant = nullptr;
    inputs[first + i].content.reset();
  }
  // First extents that change become unknown, then ranks; after that nothing is left to weaken.
  for (int round = 0;; ++round) {
    ORKNN_TRY_ASSIGN(std::vector<TensorFacts> outputs, infer_body(body, ops, inputs));
    bool stable = true;
    for (size_t i = 0; i < count; ++i) {
      TensorFacts& in = inputs[first + i];
      ORKNN_TRY_ASSIGN(TensorFacts joined, join_facts(in, outputs[first_output + i]));
      const bool open =
          in.shape && std::any_of(in.shape->begin(), in.shape->end(), [](const Dim& d) { return d.is_anonymous(); });
      if (same_shape(joined, in) || (open && joined.shape && to_string(*joined.shape) == to_string(*in.shape))) continue;
      stable = false;
      if (round > 0) joined.shape.reset();
      in = std::move(joined);
    }
    if (stable || round == 2) return outputs;
  }
}

TensorData borrowed_input(const RunContext& c, size_t i) {
  const TensorView v = c.input(i);
  return TensorData::wrap(v.dtype, Dims(v.dims.begin(), v.dims.end()), v.data, nullptr);
}

Status require_inputs(const InferContext& c, size_t first) {
  for (size_t i = first; i < c.input_count(); ++i)
    if (!c.has_input(i)) return invalid_model("input " + std::to_string(i) + " is absent");
  return {};
}

Status deliver_output(RunContext& c, size_t i, const TensorData& value) {
  if (!c.has_output(i)) return {};
  bool borrowed = false;
  for (size_t k = 0; k < c.input_count() && !borrowed; ++k) borrowed = c.has_input(k) && c.input(k).data == value.data();
  if (!borrowed) return c.set_output(i, value);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(i, value.dtype(), value.dims()));
  std::memcpy(y.data, value.data(), value.bytes());
  return {};
}

Status too_many_bytes(int64_t iterations) {
  return Status::error(Code::OutOfMemory, "the scan outputs take too much memory")
      .found(std::to_string(iterations) + " iterations");
}

Status check_scan_bytes(std::span<const TensorFacts> parts, int64_t iterations) {
  if (iterations == 0) return {};
  int64_t bytes = 0;
  for (const TensorFacts& part : parts) {
    const std::optional<Dims> dims = part.shape ? to_dims(*part.shape) : std::nullopt;
    ORKNN_TRY_ASSIGN(const int64_t count, dims ? checked_element_count(*dims) : Result<int64_t>(0));
    bytes += count * static_cast<int64_t>(dtype_bytes(part.dtype)) + static_cast<int64_t>(kPartOverhead);
    if (bytes > static_cast<int64_t>(kMaxLoopBytes) / iterations) return too_many_bytes(iterations);
  }
  return {};
}

Status changing_part(std::span<const int64_t> before, std::span<const int64_t> after) {
  return shape_mismatch("an output changes its shape between iterations").expected(to_string(before)).found(to_string(after));
}

Status deliver_scan(RunContext& c, size_t i, std::span<const TensorData> parts, int64_t axis, bool reverse,
                    const TensorFacts& empty) {
  if (!c.has_output(i)) return {};
  const auto count = static_cast<int64_t>(parts.size());
  Dims part;
  if (count > 0) {
    part = parts[0].dims();
  } else {
    for (const Dim& d : empty.shape.value_or(Shape())) part.push_back(d.is_known() ? d.value() : 0);
  }
  const DType dtype = count > 0 ? parts[0].dtype() : empty.dtype;
  ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(axis, static_cast<int64_t>(part.size()) + 1));
  for (const TensorData& p : parts)
    if (p.dims() != part || p.dtype() != dtype) return changing_part(part, p.dims());
  Dims dims = part;
  dims.insert(dims.begin() + at, count);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(i, dtype, dims));
  const int64_t outer = extent_product(part, 0, static_cast<size_t>(at)),
                run = extent_product(part, static_cast<size_t>(at), part.size());
  const size_t bytes = dtype_bytes(dtype);
  for (int64_t n = 0; n < count; ++n) {
    const TensorData& p = parts[static_cast<size_t>(reverse ? count - 1 - n : n)];
    copy_strided({{outer, run, count * run}, {run, 1, 1}}, p.data(), offset_by(y.data, n * run, bytes), bytes, c.pool);
  }
  return {};
}

}  // namespace orknn::ops
