// Runs a body over the slices of its scan inputs. Inputs are (states..., scan inputs..., captures...), body inputs
// (states..., slices..., captures...), body outputs (states..., scan outputs...).
#include "ops/eval.h"
#include "ops/support/movement.h"
#include "ops/support/subgraph.h"

namespace orknn::ops {
namespace {
using namespace ir;

struct Layout {
  const Graph* body = nullptr;
  size_t states = 0, inputs = 0, captures = 0, outputs = 0;
  std::vector<int64_t> input_axes, output_axes;
  std::vector<bool> input_reversed, output_reversed;
};

Result<std::vector<int64_t>> entries(const NodeReader& c, std::string_view name, size_t count) {
  const auto* given = c.find<std::vector<int64_t>>(name);
  if (!given) return std::vector<int64_t>(count, 0);
  if (given->size() != count)
    return invalid_model("attribute '" + std::string(name) + "' has the wrong length")
        .expected(std::to_string(count))
        .found(std::to_string(given->size()));
  return *given;
}

Result<std::vector<bool>> directions(const NodeReader& c, std::string_view name, size_t count) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> given, entries(c, name, count));
  std::vector<bool> out;
  for (int64_t d : given) {
    if (d != 0 && d != 1) return invalid_model("a direction is 0 or 1").found(std::to_string(d));
    out.push_back(d == 1);
  }
  return out;
}

Result<Layout> layout_of(const NodeReader& c, size_t inputs, size_t outputs) {
  const int64_t captures = c.get_int("captures"), scanned = c.get_int("num_scan_inputs");
  const auto total = static_cast<int64_t>(inputs);
  if (captures < 0 || scanned < 1 || captures > total || scanned > total - captures)
    return invalid_model("num_scan_inputs and captures do not fit the inputs")
        .expected(std::to_string(total) + " in all")
        .found(std::to_string(scanned) + " and " + std::to_string(captures));
  Layout l{.states = static_cast<size_t>(total - captures - scanned),
           .inputs = static_cast<size_t>(scanned),
           .captures = static_cast<size_t>(captures)};
  if (outputs < l.states)
    return invalid_model("a scan has at least as many outputs as states")
        .expected(std::to_string(l.states))
        .found(std::to_string(outputs));
  l.outputs = outputs - l.states;
  ORKNN_TRY_ASSIGN(l.body, body_of(c, "body", inputs, outputs));
  ORKNN_TRY_ASSIGN(l.input_axes, entries(c, "scan_input_axes", l.inputs));
  ORKNN_TRY_ASSIGN(l.output_axes, entries(c, "scan_output_axes", l.outputs));
  ORKNN_TRY_ASSIGN(l.input_reversed, directions(c, "scan_input_directions", l.inputs));
  ORKNN_TRY_ASSIGN(l.output_reversed, directions(c, "scan_output_directions", l.outputs));
  return l;
}

Status infer(InferContext& c) {
  ORKNN_TRY(require_inputs(c, 0));
  ORKNN_TRY_ASSIGN(const Layout l, layout_of(c, c.input_count(), c.output_count()));
  std::vector<TensorFacts> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back(c.input(i));
  Dim length;
  for (size_t i = 0; i < l.inputs; ++i) {
    TensorFacts& f = inputs[l.states + i];
    f.constant = nullptr;
    f.content.reset();
    if (!f.shape) continue;
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.input_axes[i], static_cast<int64_t>(f.shape->size())));
    const Dim extent = (*f.shape)[static_cast<size_t>(axis)];
    if (length.is_known() && extent.is_known() && length != extent)
      return shape_mismatch("scan inputs differ in length").expected(length.to_string()).found(extent.to_string());
    if (!length.is_known() && !extent.is_anonymous()) length = extent;
    f.shape->erase(f.shape->begin() + axis);
  }
  ORKNN_TRY_ASSIGN(const auto outputs, infer_repeated_body(*l.body, c.ops, inputs, 0, l.states, 0));
  if (length.is_known()) ORKNN_TRY(check_scan_bytes(std::span(outputs).subspan(l.states), length.value()));
  for (size_t i = 0; i < l.states; ++i) c.set_output(i, inputs[i].dtype, inputs[i].shape);
  for (size_t i = 0; i < l.outputs; ++i) {
    const TensorFacts& part = outputs[l.states + i];
    std::optional<Shape> shape = part.shape;
    if (shape) {
      ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.output_axes[i], static_cast<int64_t>(shape->size()) + 1));
      shape->insert(shape->begin() + axis, length);
    }
    c.set_output(l.states + i, part.dtype, std::move(shape));
  }
  return {};
}

// Slice `at` of x along `axis`, without that axis.
TensorData slice_of(const TensorView& x, size_t axis, int64_t at, ThreadPool& pool) {
  Dims dims(x.dims.begin(), x.dims.end());
  dims.erase(dims.begin() + static_cast<int64_t>(axis));
  TensorData out = TensorData::allocate(x.dtype, dims);
  const int64_t outer = extent_product(x.dims, 0, axis), inner = extent_product(x.dims, axis + 1, x.dims.size());
  const size_t bytes = dtype_bytes(x.dtype);
  copy_strided({{outer, x.dims[axis] * inner, inner}, {inner, 1, 1}}, offset_by(x.data, at * inner, bytes), out.mutable_data(),
               bytes, pool);
  return out;
}

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Layout l, layout_of(c, c.input_count(), c.output_count()));
  std::vector<size_t> axes;
  int64_t length = 0;
  for (size_t i = 0; i < l.inputs; ++i) {
    const TensorView x = c.input(l.states + i);
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.input_axes[i], x.rank()));
    axes.push_back(static_cast<size_t>(axis));
    if (i == 0) length = x.dims[axes[i]];
    if (x.dims[axes[i]] != length)
      return shape_mismatch("scan inputs differ in length")
          .expected(std::to_string(length))
          .found(std::to_string(x.dims[axes[i]]));
  }
  const BodyScope scope;
  ORKNN_TRY(scope.status());
  std::vector<TensorData> arguments;
  for (size_t i = 0; i < c.input_count(); ++i) arguments.push_back(borrowed_input(c, i));
  std::vector<std::vector<TensorData>> scans(l.outputs);
  size_t scan_bytes = 0;
  for (int64_t n = 0; n < length; ++n) {
    ORKNN_TRY(BodyScope::count_iteration());
    for (size_t i = 0; i < l.inputs; ++i)
      arguments[l.states + i] = slice_of(c.input(l.states + i), axes[i], l.input_reversed[i] ? length - 1 - n : n, c.pool);
    ORKNN_TRY_ASSIGN(auto results, eval_graph(*l.body, c.ops, arguments, {.pool = &c.pool}));
    for (size_t i = 0; i < l.states; ++i) {
      if (results[i].bytes() > kMaxLoopBytes)
        return Status::error(Code::OutOfMemory, "a state grows without bound").found(to_string(results[i].dims()));
      arguments[i] = std::move(results[i]);
    }
    for (size_t i = 0; i < l.outputs; ++i) {
      scan_bytes += results[l.states + i].bytes() + kPartOverhead;
      scans[i].push_back(std::move(results[l.states + i]));
    }
    if (scan_bytes > kMaxLoopBytes) return too_many_bytes(n + 1);
  }
  std::vector<TensorFacts> parts(l.outputs);
  if (length == 0) {
    std::vector<TensorFacts> inputs;
    for (size_t i = 0; i < c.input_count(); ++i) inputs.push_back({c.input(i).dtype, to_shape(c.input(i).dims)});
    for (size_t i = 0; i < l.inputs; ++i)
      inputs[l.states + i].shape->erase(inputs[l.states + i].shape->begin() + static_cast<int64_t>(axes[i]));
    ORKNN_TRY_ASSIGN(const auto outputs, infer_repeated_body(*l.body, c.ops, inputs, 0, l.states, 0));
    parts.assign(outputs.begin() + static_cast<int64_t>(l.states), outputs.end());
  }
  for (size_t i = 0; i < l.states; ++i) ORKNN_TRY(deliver_output(c, i, arguments[i]));
  for (size_t i = 0; i < l.outputs; ++i)
    ORKNN_TRY(deliver_scan(c, l.states + i, scans[i], l.output_axes[i], l.output_reversed[i], parts[i]));
  return {};
}
}  // namespace

std::span<const OpDef> scan() {
  static const OpDef def{
      .name = "Scan",
      .summary = "runs a body over slices",
      .inputs = {1, Arity::kMany},
      .outputs = {1, Arity::kMany},
      .attributes = {required(attr_graph("body")), required(attr_int("num_scan_inputs")), attr_ints("scan_input_axes"),
                     attr_ints("scan_input_directions"), attr_ints("scan_output_axes"), attr_ints("scan_output_directions"),
                     attr_int("captures", 0)},
      .infer = infer,
      .run = run,
      .widen_half = false};
  return {&def, 1};
}
}  // namespace orknn::ops
