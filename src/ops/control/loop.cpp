// Runs a body until a trip count or a condition ends it. Inputs are (M, cond, carried..., captures...), body inputs
// (iteration, cond, carried..., captures...), body outputs (cond, carried..., scan outputs...).
#include "ops/eval.h"
#include "ops/support/operands.h"
#include "ops/support/subgraph.h"

namespace orknn::ops {
namespace {
using namespace ir;

// How the node's inputs and the body's outputs divide.
struct Layout {
  const Graph* body = nullptr;
  size_t carried = 0, captures = 0, scans = 0;
};

Result<Layout> layout_of(const NodeReader& c, size_t inputs, size_t outputs) {
  const int64_t captures = c.get_int("captures");
  if (inputs < 2 || captures < 0 || captures > static_cast<int64_t>(inputs) - 2)
    return invalid_model("illegal number of captures").found(std::to_string(captures));
  Layout l{.carried = inputs - 2 - static_cast<size_t>(captures), .captures = static_cast<size_t>(captures)};
  if (outputs < l.carried)
    return invalid_model("a loop has at least as many outputs as carried values")
        .expected(std::to_string(l.carried))
        .found(std::to_string(outputs));
  l.scans = outputs - l.carried;
  ORKNN_TRY_ASSIGN(l.body, body_of(c, "body", inputs, outputs + 1));
  return l;
}

// True when the body hands its condition on unchanged, or always says to go on.
bool always_continues(const Graph& body) {
  TensorId t = body.outputs()[0];
  for (const Node* n = body.producer_node(t); n && n->op == "Identity" && n->inputs.size() == 1; n = body.producer_node(t))
    t = n->inputs[0];
  if (const TensorData* value = body.constant(t))
    return value->dtype() == DType::Bool && value->count() == 1 && *value->as<bool>();
  return t == body.inputs()[1];
}

// The parts of a scan output have one shape. Where that of the carried values changes, the first two iterations can tell. An
// output that the node leaves out may do what it likes.
Status check_first_parts(const InferContext& c, const Layout& l, std::vector<TensorFacts> inputs) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorFacts> first, infer_body(*l.body, c.ops, inputs));
  for (size_t i = 0; i < l.carried; ++i) inputs[2 + i] = first[1 + i];
  ORKNN_TRY_ASSIGN(const std::vector<TensorFacts> second, infer_body(*l.body, c.ops, inputs));
  for (size_t i = 1 + l.carried; i < first.size(); ++i) {
    if (!c.node().outputs[i - 1]) continue;
    const std::optional<Shape>&a = first[i].shape, &b = second[i].shape;
    const std::optional<Dims> before = a ? to_dims(*a) : std::nullopt, after = b ? to_dims(*b) : std::nullopt;
    if (before && after && *before != *after) return changing_part(*before, *after);
  }
  return {};
}

Status endless() { return invalid_model("the loop has neither a trip count nor a condition that ends it"); }

Status infer(InferContext& c) {
  ORKNN_TRY(require_inputs(c, 2));
  ORKNN_TRY_ASSIGN(const Layout l, layout_of(c, c.input_count(), c.output_count()));
  if (c.has_input(0) && !is_integer(c.dtype(0)))
    return invalid_model("the trip count must be an integer").found(std::string(dtype_name(c.dtype(0))));
  if (c.has_input(1) && c.dtype(1) != DType::Bool)
    return invalid_model("the condition must be bool").found(std::string(dtype_name(c.dtype(1))));
  ORKNN_TRY(require_one_value(c, 0, "the trip count"));
  ORKNN_TRY(require_one_value(c, 1, "the condition"));
  std::vector<TensorFacts> inputs = {{DType::Int64, Shape{}}, {DType::Bool, Shape{}}};
  for (size_t i = 2; i < c.input_count(); ++i) inputs.push_back(c.input(i));
  const std::vector<TensorFacts> first_inputs = inputs;
  ORKNN_TRY_ASSIGN(const auto outputs, infer_repeated_body(*l.body, c.ops, inputs, 2, l.carried, 1));
  if (outputs[0].dtype != DType::Bool)
    return invalid_model("the first output of a loop body must be bool").found(std::string(dtype_name(outputs[0].dtype)));
  // After weakening, the carried inputs hold before the first and after every iteration.
  for (size_t i = 0; i < l.carried; ++i) c.set_output(i, inputs[2 + i].dtype, inputs[2 + i].shape);
  Dim trips;
  const auto starts = c.ints(1), count = c.ints(0);
  const bool certain = always_continues(*l.body) && (!c.has_input(1) || (starts && starts->size() == 1 && starts->front()));
  if (certain && !c.has_input(0)) return endless();
  if (certain && count && count->size() == 1) trips = std::max<int64_t>(0, count->front());
  if (trips.is_known() && l.scans > 0) {
    const auto parts = std::span(outputs).subspan(1 + l.carried);
    ORKNN_TRY(check_scan_bytes(parts, trips.value()));
    const bool same = std::ranges::all_of(parts, [](const TensorFacts& part) { return part.shape && is_static(*part.shape); });
    // Loops inside of a body leave this to their runs: two more inferences at each level would multiply.
    if (!same && trips.value() > 1 && !BodyScope::any()) ORKNN_TRY(check_first_parts(c, l, first_inputs));
  }
  for (size_t i = 0; i < l.scans; ++i) {
    const TensorFacts& part = outputs[1 + l.carried + i];
    std::optional<Shape> shape = part.shape;
    if (shape) shape->insert(shape->begin(), trips);
    c.set_output(l.carried + i, part.dtype, std::move(shape));
  }
  return {};
}

Result<int64_t> single(const TensorView& t, const char* what) {
  const std::vector<int64_t> values = to_ints(t);
  if (values.size() != 1) return invalid_argument(std::string(what) + " must be one value").found(to_string(t.dims));
  return values[0];
}

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Layout l, layout_of(c, c.input_count(), c.output_count()));
  int64_t trips = INT64_MAX, going = 1;
  if (c.has_input(0)) {
    ORKNN_TRY_ASSIGN(trips, single(c.input(0), "the trip count"));
  }
  if (c.has_input(1)) {
    ORKNN_TRY_ASSIGN(going, single(c.input(1), "the condition"));
  }
  if (!c.has_input(0) && going && always_continues(*l.body)) return endless();
  const BodyScope scope;
  ORKNN_TRY(scope.status());
  std::vector<TensorData> arguments(2);
  for (size_t i = 2; i < c.input_count(); ++i) arguments.push_back(borrowed_input(c, i));
  std::vector<std::vector<TensorData>> scans(l.scans);
  size_t scan_bytes = 0;
  for (int64_t n = 0; n < trips && going; ++n) {
    ORKNN_TRY(BodyScope::count_iteration());
    arguments[0] = TensorData::scalar<int64_t>(n);
    arguments[1] = TensorData::scalar<bool>(true);
    ORKNN_TRY_ASSIGN(auto results, eval_graph(*l.body, c.ops, arguments, {.pool = &c.pool}));
    ORKNN_TRY_ASSIGN(going, single(results[0].view(), "the condition"));
    for (size_t i = 0; i < l.carried; ++i) {
      if (results[1 + i].bytes() > kMaxLoopBytes)
        return Status::error(Code::OutOfMemory, "a carried value grows without bound").found(to_string(results[1 + i].dims()));
      arguments[2 + i] = std::move(results[1 + i]);
    }
    for (size_t i = 0; i < l.scans; ++i) {
      scan_bytes += results[1 + l.carried + i].bytes() + kPartOverhead;
      scans[i].push_back(std::move(results[1 + l.carried + i]));
    }
    if (scan_bytes > kMaxLoopBytes) return too_many_bytes(n + 1);
  }
  std::vector<TensorFacts> parts(l.scans);
  if (l.scans > 0 && scans[0].empty()) {
    std::vector<TensorFacts> inputs = {{DType::Int64, Shape{}}, {DType::Bool, Shape{}}};
    for (size_t i = 2; i < arguments.size(); ++i) inputs.push_back({arguments[i].dtype(), to_shape(arguments[i].dims())});
    ORKNN_TRY_ASSIGN(const auto outputs, infer_repeated_body(*l.body, c.ops, inputs, 2, l.carried, 1));
    parts.assign(outputs.begin() + 1 + static_cast<int64_t>(l.carried), outputs.end());
  }
  for (size_t i = 0; i < l.carried; ++i) ORKNN_TRY(deliver_output(c, i, arguments[2 + i]));
  for (size_t i = 0; i < l.scans; ++i) ORKNN_TRY(deliver_scan(c, l.carried + i, scans[i], 0, false, parts[i]));
  return {};
}
}  // namespace

std::span<const OpDef> loop() {
  static const OpDef def{.name = "Loop",
                         .summary = "runs a body repeatedly",
                         .inputs = {0, Arity::kMany},
                         .outputs = {1, Arity::kMany},
                         .attributes = {required(attr_graph("body")), attr_int("captures", 0)},
                         .infer = infer,
                         .run = run,
                         .widen_half = false};
  return {&def, 1};
}
}  // namespace orknn::ops
