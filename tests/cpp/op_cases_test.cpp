// Runs every operator case through the reference evaluator: golden values, shape rules (with full, symbolic and no knowledge of
// the input shapes), text round trip, float16, and damaged variants that must be refused or computed, but never crash; and
// through the compiler and the simulator in float32 and, where the case's values allow, in float16.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>

#include "agreement.h"
#include "compile/compile.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "op_case.h"
#include "ops/eval.h"
#include "sim/executor.h"

namespace orknn::tests {
namespace {
using namespace ir;

// Ok when shapes and types agree and every element is within the tolerance (integers: equal; NaN and infinities: the same).
Status compare(const TensorData& found, const TensorData& expected, double absolute, double relative) {
  const auto type_text = [](const TensorData& t) { return std::string(dtype_name(t.dtype())) + ir::to_string(t.dims()); };
  if (found.dtype() != expected.dtype() || found.dims() != expected.dims())
    return shape_mismatch("another type or shape").expected(type_text(expected)).found(type_text(found));
  const bool exact = !is_float(expected.dtype());
  if (exact && ir::identical(found.view(), expected.view())) return {};
  const std::vector<double> a = ir::to_doubles(found.view()), b = ir::to_doubles(expected.view());
  for (size_t i = 0; i < a.size(); ++i)
    if (exact ? a[i] != b[i] : !agrees(a[i], b[i], absolute + relative * std::abs(b[i])))
      return Status::error(Code::Fail, "element " + std::to_string(i) + " differs in " + ir::print_tensor(found))
          .expected(std::to_string(b[i]))
          .found(std::to_string(a[i]));
  return exact ? Status::error(Code::Fail, "64-bit integers differ") : Status();
}

class CaseTest : public testing::Test {
 public:
  explicit CaseTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

void register_body(const char* suite, const std::string& name, const char* file, int line, std::function<void()> body) {
  testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, file, line,
                        [body = std::move(body)]() -> testing::Test* { return new CaseTest(body); });
}

// Registers one test per case, named <suite>.<file>/<case>, that calls `check`; a file that cannot be read becomes a failing
// test. For use in the initializer of a namespace-scope constant.
bool register_op_cases(const char* suite, std::function<void(const OpCase&)> check) {
  for (const std::string& path : op_case_files()) {
    auto cases = read_op_cases(path);
    if (!cases) {
      register_body(suite, std::filesystem::path(path).stem().string(), path.c_str(), 1,
                    [text = cases.status().to_string()] { FAIL() << text; });
      continue;
    }
    for (OpCase& c : *cases) {
      const std::string name = c.file + "/" + c.name;
      const int line = c.line;
      register_body(suite, name, path.c_str(), line, [check, path, rerun = std::string(suite) + "." + name, c = std::move(c)] {
        SCOPED_TRACE(path + ":" + std::to_string(c.line) + ", rerun with --gtest_filter='" + rerun + "'");
        check(c);
      });
    }
  }
  return true;
}

// Tolerance of a case rerun in float16: inputs and results are rounded to 11 bits.
constexpr double kHalfAbsolute = 1e-2, kHalfRelative = 2e-2;

Result<std::vector<TensorData>> infer_and_run(Graph& graph, std::span<const TensorData> inputs) {
  ORKNN_TRY(infer_shapes(graph, ops::builtin_ops()));
  return ops::eval_graph(graph, ops::builtin_ops(), inputs);
}

// The inferred shape may know less than the result, but nothing else.
void expect_consistent(const Tensor& inferred, const TensorData& expected, const char* knowledge) {
  EXPECT_EQ(inferred.dtype, expected.dtype()) << "type of '" << inferred.name << "' with " << knowledge;
  if (!inferred.shape) return;
  bool fits = inferred.shape->size() == expected.dims().size();
  for (size_t i = 0; fits && i < expected.dims().size(); ++i) {
    const Dim& d = (*inferred.shape)[i];
    fits = !d.is_known() || d.value() == expected.dims()[i];
  }
  EXPECT_TRUE(fits) << "shape rule of '" << inferred.name << "' with " << knowledge << " says " << to_string(*inferred.shape)
                    << ", expected " << to_string(expected.dims());
}

void check_shape_rules(const Graph& graph, const OpCase& c) {
  const auto infer_with = [&](const char* knowledge, auto&& change) {
    Graph g = graph;
    for (TensorId t : g.inputs()) change(g.tensor(t));
    const Status status = infer_shapes(g, ops::builtin_ops());
    EXPECT_TRUE(status) << "inference with " << knowledge << ": " << status.to_string();
    if (!status) return;
    for (size_t i = 0; i < c.outputs.size(); ++i) expect_consistent(g.tensor(g.outputs()[i]), c.outputs[i].value, knowledge);
  };
  infer_with("known input shapes", [](Tensor&) {});
  infer_with("symbolic input shapes", [](Tensor& t) {
    if (!t.shape) return;
    for (size_t i = 0; i < t.shape->size(); ++i) (*t.shape)[i] = Dim::symbol(t.name + std::to_string(i));
  });
  infer_with("anonymous input extents", [](Tensor& t) {
    if (t.shape) t.shape->assign(t.shape->size(), Dim());
  });
  infer_with("input shapes of unknown rank", [](Tensor& t) { t.shape.reset(); });
}

void check_round_trip(const Graph& graph) {
  const std::string text = print(graph);
  const auto again = parse(text);
  ASSERT_TRUE(again) << again.status().to_string() << "\n" << text;
  EXPECT_EQ(print(*again), text);
}

// Every float32 input and constant becomes float16.
void check_half(const Graph& graph, const OpCase& c) {
  Graph g = graph;
  std::vector<TensorData> inputs;
  const auto narrow = [](const TensorData& t) { return t.dtype() == DType::Float32 ? convert(t.view(), DType::Float16) : t; };
  for (size_t i = 0; i < g.tensor_count(); ++i) {
    Tensor& t = g.tensor(TensorId{static_cast<int32_t>(i)});
    if (t.dtype == DType::Float32) t.dtype = DType::Float16;
    if (t.is_constant()) t.constant = narrow(t.constant);
  }
  for (const TensorData& t : c.inputs) inputs.push_back(narrow(t));
  const auto results = infer_and_run(g, inputs);
  ASSERT_TRUE(results) << "in float16: " << results.status().to_string();
  for (size_t i = 0; i < results->size(); ++i) {
    const TensorData& expected = c.outputs[i].value;
    const TensorData found =
        (*results)[i].dtype() == DType::Float16 ? convert((*results)[i].view(), DType::Float32) : (*results)[i];
    const Status status = compare(found, expected, kHalfAbsolute, kHalfRelative);
    EXPECT_TRUE(status) << "in float16: " << status.to_string();
  }
}

TensorData rounded_to_half(const TensorData& t) {
  return t.dtype() == DType::Float32 ? convert(convert(t.view(), DType::Float16).view(), DType::Float32) : t;
}

Status compare_all(const std::vector<TensorData>& found, const OpCase& c, double absolute, double relative) {
  for (size_t i = 0; i < found.size(); ++i) {
    const TensorData& expected = c.outputs[i].value;
    if (c.outputs[i].any && found[i].dims() == expected.dims()) continue;
    const TensorData same_type = found[i].dtype() == DType::Float16 ? convert(found[i].view(), expected.dtype()) : found[i];
    ORKNN_TRY(compare(same_type, expected, absolute, relative));
  }
  return {};
}

// The rule by which a case goes through float16: it has float32 values, and rounding its inputs, constants and results to
// float16, with nothing but float32 between, leaves every result within the tolerance of float16.
bool holds_in_half(const Graph& graph, const OpCase& c) {
  Graph g = graph;
  bool any = false;
  for (size_t i = 0; i < g.tensor_count(); ++i) {
    Tensor& t = g.tensor(TensorId{static_cast<int32_t>(i)});
    any |= t.dtype == DType::Float32;
    if (t.is_constant()) t.constant = rounded_to_half(t.constant);
  }
  if (!any) return false;
  std::vector<TensorData> inputs;
  for (const TensorData& t : c.inputs) inputs.push_back(rounded_to_half(t));
  auto results = infer_and_run(g, inputs);
  if (!results) return false;
  for (TensorData& t : *results) t = rounded_to_half(t);
  return compare_all(*results, c, kHalfAbsolute, kHalfRelative).is_ok();
}

// The graph as text and back, compiled for the default chip, on the simulator.
Result<std::vector<TensorData>> compile_and_run(const Graph& inferred, std::span<const TensorData> inputs, DType float_dtype) {
  ORKNN_TRY_ASSIGN(Graph graph, parse(print(inferred)));
  ORKNN_TRY(infer_shapes(graph, ops::builtin_ops()));
  compile::CompileOptions options;
  options.float_dtype = float_dtype;
  ORKNN_TRY_ASSIGN(const format::Program program, compile::compile(std::move(graph), options));
  ORKNN_TRY_ASSIGN(const std::unique_ptr<sim::Executor> executor, sim::Executor::create(program, ops::builtin_ops()));
  std::vector<TensorData> fed;
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const DType wanted = program.graph.tensor(program.inputs[i].tensor).dtype;
    fed.push_back(inputs[i].dtype() == DType::Float32 && wanted == DType::Float16 ? convert(inputs[i].view(), wanted)
                                                                                  : inputs[i]);
  }
  for (const TensorData& t : fed) views.push_back(t.view());
  ORKNN_TRY(executor->run(views));
  std::vector<TensorData> results;
  for (size_t i = 0; i < program.outputs.size(); ++i) results.push_back(convert(executor->output(i), executor->output(i).dtype));
  return results;
}

void check_compiled(const Graph& inferred, const OpCase& c) {
  const auto exact = compile_and_run(inferred, c.inputs, DType::Float32);
  ASSERT_TRUE(exact) << "on the simulator: " << exact.status().to_string();
  const Status status = compare_all(*exact, c, c.absolute, c.relative);
  EXPECT_TRUE(status) << "on the simulator: " << status.to_string();
  if (!holds_in_half(inferred, c)) return;
  const auto half = compile_and_run(inferred, c.inputs, DType::Float16);
  ASSERT_TRUE(half) << "on the simulator in float16: " << half.status().to_string();
  const Status half_status = compare_all(*half, c, kHalfAbsolute, kHalfRelative);
  EXPECT_TRUE(half_status) << "on the simulator in float16: " << half_status.to_string();
}

// Runs a damaged variant; any Status or any result will do.
void survive(Graph graph, std::span<const TensorData> inputs, const std::string& what) {
  SCOPED_TRACE(what);
  const auto result = infer_and_run(graph, inputs);
  if (result) return;
  EXPECT_FALSE(result.status().to_string().empty());
  EXPECT_NE(result.status().code(), Code::Internal) << result.status().to_string();
  // A run is not always preceded by inference of the whole graph.
  (void)ops::eval_graph(graph, ops::builtin_ops(), inputs);
}

void check_damaged(const Graph& graph, const OpCase& c) {
  for (NodeId id : graph.order()) {
    for (size_t i = 0; i < graph.node(id).inputs.size(); ++i) {
      Graph g = graph;
      Node n = g.node(id);
      n.inputs[i] = {};
      g.replace_node(id, std::move(n));
      survive(std::move(g), c.inputs, "without input " + std::to_string(i) + " of " + graph.node(id).op);
    }
    if (graph.node(id).own_input_count() == graph.node(id).inputs.size() && !graph.node(id).inputs.empty()) {
      Graph g = graph;
      Node n = g.node(id);
      n.inputs.pop_back();
      g.replace_node(id, std::move(n));
      survive(std::move(g), c.inputs, "without the last input of " + graph.node(id).op);
    }
  }
  // Every input and constant in turn gets another shape or type; its contents are zeros then.
  const auto replace = [&](DType dtype, const Dims& dims, TensorId t, const std::string& what) {
    Graph g = graph;
    std::vector<TensorData> inputs = c.inputs;
    TensorData value = TensorData::zeros(dtype, dims);
    Tensor& tensor = g.tensor(t);
    tensor.dtype = dtype;
    tensor.shape = to_shape(dims);
    if (tensor.is_constant()) tensor.constant = value;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (g.inputs()[i] == t) inputs[i] = value;
    survive(std::move(g), inputs, "with '" + graph.tensor(t).name + "' " + what);
  };
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId t{static_cast<int32_t>(i)};
    const Tensor& tensor = graph.tensor(t);
    if (!tensor.is_constant() && !graph.is_input(t)) continue;
    Dims dims = {1};
    for (size_t k = 0; k < c.inputs.size(); ++k)
      if (graph.inputs()[k] == t) dims = c.inputs[k].dims();
    if (tensor.is_constant()) dims = tensor.constant.dims();
    replace(tensor.dtype, {}, t, "as a scalar");
    replace(tensor.dtype, {0}, t, "empty");
    replace(tensor.dtype, dims, t, "all zero");
    Dims higher = dims;
    higher.insert(higher.begin(), 2);
    replace(tensor.dtype, higher, t, "of higher rank");
    if (!dims.empty()) {
      Dims changed = dims;
      changed.back() += 1;
      replace(tensor.dtype, changed, t, "longer in its last axis");
      changed = dims;
      changed.front() = 0;
      replace(tensor.dtype, changed, t, "without elements");
      replace(tensor.dtype, Dims(dims.begin() + 1, dims.end()), t, "of lower rank");
    }
    for (DType dtype : {DType::Float32, DType::Float64, DType::Float16, DType::Int64, DType::Int8, DType::Bool, DType::UInt4})
      if (dtype != tensor.dtype) replace(dtype, dims, t, "as " + std::string(dtype_name(dtype)));
  }
}

void check(const OpCase& c) {
  auto graph = parse(c.graph);
  ASSERT_TRUE(graph) << graph.status().to_string();
  ASSERT_EQ(graph->inputs().size(), c.inputs.size()) << "one 'in' line per graph input";
  check_round_trip(*graph);
  if (!c.error.empty()) {
    const auto results = infer_and_run(*graph, c.inputs);
    ASSERT_FALSE(results) << "expected to be refused";
    if (Graph inferred = *graph; infer_shapes(inferred, ops::builtin_ops())) {
      EXPECT_FALSE(compile_and_run(inferred, c.inputs, DType::Float32)) << "the simulator computes what the reference refuses";
    }
    EXPECT_NE(results.status().to_string().find(c.error), std::string::npos) << results.status().to_string();
    return;
  }
  ASSERT_EQ(graph->outputs().size(), c.outputs.size()) << "one 'out' line per graph output";
  check_shape_rules(*graph, c);
  Graph inferred = *graph;
  const auto results = infer_and_run(inferred, c.inputs);
  ASSERT_TRUE(results) << results.status().to_string();
  for (size_t i = 0; i < results->size(); ++i) {
    const ExpectedOutput& expected = c.outputs[i];
    const TensorData& found = (*results)[i];
    const TensorData& wanted =
        expected.any && found.dims() == expected.value.dims() && found.dtype() == expected.value.dtype() ? found : expected.value;
    const Status status = compare(found, wanted, c.absolute, c.relative);
    EXPECT_TRUE(status) << "output " << i << ": " << status.to_string();
  }
  check_round_trip(inferred);
  check_compiled(inferred, c);
  if (c.half) check_half(*graph, c);
  check_damaged(*graph, c);
}

[[maybe_unused]] const bool registered = register_op_cases("OpCase", check);

TEST(OpCases, most_go_through_float16) {
  size_t with_floats = 0, left_out = 0;
  for (const std::string& path : op_case_files()) {
    const auto cases = read_op_cases(path);
    if (!cases) continue;  // its own test reports that
    for (const OpCase& c : *cases) {
      auto graph = parse(c.graph);
      if (!c.error.empty() || !graph || !infer_shapes(*graph, ops::builtin_ops())) continue;
      bool any = false;
      for (size_t i = 0; i < graph->tensor_count(); ++i)
        any |= graph->tensor(TensorId{static_cast<int32_t>(i)}).dtype == DType::Float32;
      with_floats += any;
      left_out += any && !holds_in_half(*graph, c);
    }
  }
  RecordProperty("with_floats", static_cast<int>(with_floats));
  RecordProperty("left_out", static_cast<int>(left_out));
  EXPECT_GT(with_floats, 1000u);
  EXPECT_LE(20 * left_out, with_floats) << left_out << " of " << with_floats << " cases are too delicate for float16";
}

TEST(OpCases, infinities_and_nan_have_no_tolerance) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto same = [](float found, float expected) {
    return compare(TensorData::scalar(found), TensorData::scalar(expected), 1e-2, 1e-2).is_ok();
  };
  EXPECT_TRUE(same(infinity, infinity) && same(-infinity, -infinity) && same(nan, nan) && same(1.001f, 1));
  EXPECT_FALSE(same(1, infinity) || same(infinity, 1) || same(-infinity, infinity) || same(1, nan) || same(nan, 1) ||
               same(nan, infinity) || same(1.1f, 1));
}

void collect_ops(const Graph& graph, std::set<std::string>& names) {
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    names.insert(n.op);
    for (const TailStep& step : n.tail) names.insert(step.op);
    for (const auto& [name, value] : n.attributes)
      if (const auto* body = std::get_if<std::shared_ptr<const Graph>>(&value)) collect_ops(**body, names);
  }
}

TEST(OpCases, every_op_has_cases) {
  std::set<std::string> tested;
  for (const std::string& path : op_case_files()) {
    const auto cases = read_op_cases(path);
    if (!cases) continue;  // its own test reports that
    for (const OpCase& c : *cases)
      if (const auto graph = parse(c.graph)) collect_ops(*graph, tested);
  }
  std::set<std::string_view> missing;
  for (const auto& [name, def] : ops::builtin_ops())
    if (!tested.contains(std::string(name))) missing.insert(name);
  std::string list;
  for (std::string_view name : missing) list += " " + std::string(name);
  EXPECT_TRUE(missing.empty()) << "ops without a case:" << list;
}

}  // namespace
}  // namespace orknn::tests
