// Models that parse but are wrong in meaning: one operand, attribute, shape, type or value of an operator case is changed at a
// time, and the graph goes through shape rules, optimizer, quantizer, compiler and simulator. Any result and any error will do;
// a crash, a report of the sanitizers or an internal error will not.
//
// ORKNN_MUTATIONS sets how many are tried, ORKNN_FIRST_MUTATION where to begin: a crash names its number on stderr, and
// ORKNN_FIRST_MUTATION=<number> ORKNN_MUTATIONS=1 repeats it.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "compile/compile.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "mutation.h"
#include "op_case.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "quantize/calibrate.h"
#include "sim/executor.h"

namespace orknn::tests {
namespace {
using namespace ir;

// Larger graphs are left alone: the subject is damage, not patience.
constexpr int64_t kMaxElements = 1 << 18;

char g_current[256];  // what is being tried, for the handler below

void name_the_mutation(int signal) {
  (void)!write(STDERR_FILENO, g_current, strnlen(g_current, sizeof g_current));
  ::signal(signal, SIG_DFL);
  raise(signal);
}

// Names the mutation that ends the process while it lives; then the handlers are as they were.
class Witness {
 public:
  Witness() {
    struct sigaction action {};
    action.sa_handler = name_the_mutation;
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &before_[i]);
  }
  ~Witness() {
    for (size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &before_[i], nullptr);
  }
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

 private:
  static constexpr std::array kSignals = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL};
  std::array<struct sigaction, kSignals.size()> before_;
};

struct Subject {
  const OpCase* origin = nullptr;
  Graph graph;
  std::vector<TensorData> inputs;
};

class Mutator {
 public:
  explicit Mutator(uint32_t seed) : random_(seed) {}

  // What was changed, or nothing when the chosen change does not apply.
  std::string apply(Subject& s) {
    switch (below(6)) {
      case 0: return change_attribute(s);
      case 1: return change_operands(s);
      case 2: return change_tensor(s);
      case 3: return change_values(s);
      case 4: return change_outputs(s);
      default: return insert_node(s);
    }
  }

 private:
  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }
  NodeId any_node(const Graph& g) {
    const std::vector<NodeId> order = g.order();
    return order.empty() ? NodeId{} : one_of(order);
  }
  int64_t odd_integer(int64_t near) {
    return one_of<int64_t>({-1, 0, 1, 2, 3, 7, -2, -3, near + 1, near - 1, -near, 2 * near, 255, 65536, INT32_MAX, INT32_MIN,
                            int64_t{1} << 40, INT64_MAX, INT64_MIN});
  }
  double odd_number() {
    return one_of<double>({0.0, -0.0, 1.0, -1.0, 0.5, 1e-30, 1e30, -1e30, std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::quiet_NaN()});
  }

  void change(std::vector<int64_t>& list) {
    switch (below(5)) {
      case 0: list.push_back(odd_integer(1)); break;
      case 1:
        if (!list.empty()) list.pop_back();
        break;
      case 2: list.clear(); break;
      default:
        if (!list.empty()) {
          int64_t& v = list[below(list.size())];
          v = odd_integer(v);
        }
    }
  }

  std::string change_attribute(Subject& s) {
    const NodeId id = any_node(s.graph);
    if (!id) return {};
    Node n = s.graph.node(id);
    const OpDef* def = ops::builtin_ops().find(n.op);
    if (!def || def->attributes.empty()) return {};
    const AttributeDef& a = one_of(def->attributes);
    const std::string name(a.name);
    if (n.attributes.has(name) && below(6) == 0) {
      n.attributes.erase(name);
    } else if (a.kind == AttributeKind::Int) {
      const int64_t* now = n.attributes.get<int64_t>(name);
      n.attributes.set(name, odd_integer(now ? *now : 1));
    } else if (a.kind == AttributeKind::Float) {
      n.attributes.set(name, odd_number());
    } else if (a.kind == AttributeKind::Ints) {
      const auto* now = n.attributes.get<std::vector<int64_t>>(name);
      std::vector<int64_t> list = now ? *now : std::vector<int64_t>(1 + below(4), 1);
      change(list);
      n.attributes.set(name, std::move(list));
    } else if (a.kind == AttributeKind::String) {
      n.attributes.set(name, one_of<std::string>({"", "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET", "linear", "cubic", "reflect",
                                                  "edge", "wrap", "add", "max", "none", "tanh"}));
    } else {
      return {};
    }
    s.graph.replace_node(id, std::move(n));
    return "attribute " + name;
  }

  std::string change_operands(Subject& s) {
    const NodeId id = any_node(s.graph);
    if (!id || s.graph.node(id).inputs.empty()) return {};
    Node n = s.graph.node(id);
    const size_t i = below(n.inputs.size());
    switch (below(3)) {
      case 0: n.inputs[i] = {}; break;
      case 1: std::swap(n.inputs[i], n.inputs[below(n.inputs.size())]); break;
      default: {  // a constant or an input in its place, which cannot close a cycle
        std::vector<TensorId> sources;
        for (size_t t = 0; t < s.graph.tensor_count(); ++t)
          if (const TensorId id_of{static_cast<int32_t>(t)}; s.graph.is_input(id_of) || s.graph.is_constant(id_of))
            sources.push_back(id_of);
        if (sources.empty()) return {};
        n.inputs[i] = one_of(sources);
      }
    }
    s.graph.replace_node(id, std::move(n));
    return "operand " + std::to_string(i);
  }

  std::string change_tensor(Subject& s) {
    std::vector<TensorId> sources;
    for (size_t t = 0; t < s.graph.tensor_count(); ++t)
      if (const TensorId id{static_cast<int32_t>(t)}; s.graph.is_input(id) || s.graph.is_constant(id)) sources.push_back(id);
    if (sources.empty()) return {};
    const TensorId id = one_of(sources);
    Tensor& tensor = s.graph.tensor(id);
    TensorData* value = tensor.is_constant() ? &tensor.constant : nullptr;
    for (size_t i = 0; i < s.inputs.size(); ++i)
      if (s.graph.inputs()[i] == id) value = &s.inputs[i];
    if (!value) return {};
    Dims dims = value->dims();
    DType dtype = value->dtype();
    switch (below(5)) {
      case 0:
        dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(below(dims.size() + 1)), 1 + static_cast<int64_t>(below(3)));
        break;
      case 1:
        if (dims.empty()) return {};
        dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(below(dims.size())));
        break;
      case 2:
        dtype = one_of<DType>({DType::Float32, DType::Float16, DType::Float64, DType::Int64, DType::Int32, DType::Int8,
                               DType::UInt8, DType::Bool, DType::BFloat16});
        break;
      default: {
        if (dims.empty()) return {};
        int64_t& d = dims[below(dims.size())];
        d = one_of<int64_t>({0, 1, d + 1, std::max<int64_t>(d - 1, 0), 2 * d, 17});
      }
    }
    const auto count = checked_element_count(dims, kMaxElements);
    if (!count) return {};
    TensorData fresh = TensorData::zeros(dtype, dims);
    if (is_float(dtype)) {
      TensorData numbers = TensorData::zeros(DType::Float32, dims);
      std::normal_distribution<float> normal;
      for (int64_t i = 0; i < *count; ++i) static_cast<float*>(numbers.mutable_data())[i] = normal(random_);
      fresh = convert(numbers.view(), dtype);
    } else if (dtype == value->dtype()) {
      std::memcpy(fresh.mutable_data(), value->data(), std::min(fresh.bytes(), value->bytes()));
    }
    tensor.dtype = dtype;
    tensor.shape = to_shape(dims);
    *value = fresh;
    return "'" + tensor.name + "' as " + std::string(dtype_name(dtype)) + to_string(dims);
  }

  std::string change_values(Subject& s) {
    std::vector<TensorId> constants;
    for (size_t t = 0; t < s.graph.tensor_count(); ++t)
      if (const TensorId id{static_cast<int32_t>(t)}; s.graph.is_constant(id) && s.graph.tensor(id).constant.count() > 0)
        constants.push_back(id);
    if (constants.empty()) return {};
    Tensor& tensor = s.graph.tensor(one_of(constants));
    const DType dtype = tensor.constant.dtype();
    if (dtype != DType::Int64 && dtype != DType::Int32 && dtype != DType::Float32) return {};
    TensorData value = convert(tensor.constant.view(), dtype);
    const size_t at = below(static_cast<size_t>(value.count()));
    if (dtype == DType::Int64) {
      int64_t& v = static_cast<int64_t*>(value.mutable_data())[at];
      v = odd_integer(v);
    } else if (dtype == DType::Int32) {
      int32_t& v = static_cast<int32_t*>(value.mutable_data())[at];
      v = static_cast<int32_t>(odd_integer(v));
    } else {
      static_cast<float*>(value.mutable_data())[at] = static_cast<float>(odd_number());
    }
    tensor.constant = value;
    return "a value of '" + tensor.name + "'";
  }

  // A result that nobody reads, or another one of the layer that leaves the graph.
  std::string change_outputs(Subject& s) {
    const NodeId id = any_node(s.graph);
    if (!id) return {};
    Node n = s.graph.node(id);
    const OpDef* def = ops::builtin_ops().find(n.op);
    if (!def || def->outputs.max < 2) return {};
    while (n.outputs.size() < 2 || (static_cast<int>(n.outputs.size()) < def->outputs.max && n.outputs.size() < 5 && below(2)))
      n.outputs.push_back(s.graph.add_tensor(n.name + "_extra" + std::to_string(n.outputs.size())));
    const size_t kept = 1 + below(n.outputs.size() - 1);
    if (!n.outputs[kept]) return {};
    s.graph.outputs() = {n.outputs[kept]};
    if (below(2)) n.outputs[0] = {};
    s.graph.replace_node(id, std::move(n));
    return "only output " + std::to_string(kept) + " is read";
  }

  // A layer that passes like to move or merge, after the first input.
  std::string insert_node(Subject& s) {
    if (s.graph.inputs().empty()) return {};
    const TensorId x = one_of(s.graph.inputs());
    const size_t rank = s.graph.tensor(x).shape ? s.graph.tensor(x).shape->size() : 0;
    if (rank == 0) return {};
    std::vector<int64_t> perm(rank);
    for (size_t i = 0; i < rank; ++i) perm[i] = static_cast<int64_t>(i);
    std::shuffle(perm.begin(), perm.end(), random_);
    if (below(2)) perm[below(rank)] -= static_cast<int64_t>(rank);
    Node n;
    n.name = n.op = one_of<std::string>({"Transpose", "Relu", "Identity", "Sigmoid", "Neg"});
    n.inputs = {x};
    if (n.op == "Transpose") n.attributes.set("perm", perm);
    const TensorId y = s.graph.add_tensor("inserted");
    n.outputs = {y};
    for (NodeId reader : s.graph.order()) {
      Node r = s.graph.node(reader);
      if (std::find(r.inputs.begin(), r.inputs.end(), x) == r.inputs.end()) continue;
      std::replace(r.inputs.begin(), r.inputs.end(), x, y);
      s.graph.replace_node(reader, std::move(r));
    }
    const std::string op = n.op;
    s.graph.add_node(std::move(n));
    return "a " + op + " inserted";
  }

  std::mt19937 random_;
};

bool is_small(const Graph& graph) {
  int64_t total = 0;
  for (NodeId id : graph.order())
    for (TensorId t : graph.node(id).outputs) {
      if (!t) continue;
      const Tensor& tensor = graph.tensor(t);
      if (!tensor.shape) continue;
      const auto dims = to_dims(*tensor.shape);
      if (!dims) continue;
      const auto count = checked_element_count(*dims, kMaxElements);
      if (!count) return false;
      total += *count;
    }
  return total <= 4 * kMaxElements;
}

Status run_compiled(Graph graph, std::span<const TensorData> inputs, DType float_dtype) {
  compile::CompileOptions options;
  options.float_dtype = float_dtype;
  ORKNN_TRY_ASSIGN(const format::Program program, compile::compile(std::move(graph), options));
  ORKNN_TRY_ASSIGN(const std::unique_ptr<sim::Executor> executor, sim::Executor::create(program, ops::builtin_ops()));
  std::vector<TensorData> fed;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Tensor& port = program.graph.tensor(program.inputs[i].tensor);
    fed.push_back(i < inputs.size() && port.shape && to_dims(*port.shape) == inputs[i].dims()
                      ? convert(inputs[i].view(), port.dtype)
                      : TensorData::zeros(port.dtype, port.shape ? to_dims(*port.shape).value_or(Dims{}) : Dims{}));
  }
  std::vector<TensorView> views;
  for (const TensorData& t : fed) views.push_back(t.view());
  return executor->run(views);
}

Status quantize_and_run(Graph graph, std::span<const TensorData> inputs) {
  const OpSet& ops = ops::builtin_ops();
  const quantize::RunSamples run = [&](const Graph& g, size_t, const quantize::Observe& observe) -> Status {
    ops::EvalOptions options;
    options.observe = [&](TensorId t, const TensorData& value) { observe(g.tensor(t).name, value.view()); };
    return ops::eval_graph(g, ops, inputs, options).status();
  };
  const quantize::QuantizeOptions options;
  const quantize::LayerForms forms(graph);
  ORKNN_TRY_ASSIGN(const quantize::Calibration calibration, quantize::calibrate(graph, ops, forms, run, 1, options));
  ORKNN_TRY(quantize::quantize(graph, ops, forms, calibration, options).status());
  return run_compiled(std::move(graph), inputs, DType::Float16);
}

// How far a mutation got, for the counts that the test ends with.
enum class Reached { Refused, Ran, RanInIntegers };

Reached try_out(Subject s, Status& problem) {
  const OpSet& ops = ops::builtin_ops();
  if (problem = infer_shapes(s.graph, ops); !problem) return Reached::Refused;
  if (!is_small(s.graph)) return Reached::Refused;
  if (problem = optimize::optimize(s.graph, ops); !problem) return Reached::Refused;
  if (!is_small(s.graph)) return Reached::Refused;
  if (problem = run_compiled(s.graph, s.inputs, DType::Float32); !problem) return Reached::Refused;
  problem = quantize_and_run(std::move(s.graph), s.inputs);
  return problem ? Reached::RanInIntegers : Reached::Ran;
}

int first_mutation() {
  const char* text = std::getenv("ORKNN_FIRST_MUTATION");
  return text ? std::atoi(text) : 0;
}

TEST(SemanticMutation, no_change_of_meaning_does_harm) {
  std::vector<OpCase> cases;
  for (const std::string& path : op_case_files()) {
    auto found = read_op_cases(path);
    ASSERT_TRUE(found) << found.status().to_string();
    for (OpCase& c : *found) cases.push_back(std::move(c));
  }
  const Witness witness;
  size_t tried = 0, reached[3] = {};
  const int first = first_mutation();
  for (int k = first; k < first + mutation_count(20000); ++k) {
    Mutator mutator(static_cast<uint32_t>(k));
    const OpCase& c = cases[static_cast<size_t>(k) * 2654435761u % cases.size()];
    auto graph = parse(c.graph);
    if (!graph || graph->inputs().size() != c.inputs.size()) continue;
    Subject subject{&c, *std::move(graph), c.inputs};
    const std::string what = mutator.apply(subject);
    if (what.empty()) continue;
    snprintf(g_current, sizeof g_current, "\nmutation %d: %s/%s: %s\n", k, c.file.c_str(), c.name.c_str(), what.c_str());
    ++tried;
    Status problem;
    ++reached[static_cast<size_t>(try_out(std::move(subject), problem))];
    EXPECT_NE(problem.code(), Code::Internal) << g_current << problem.to_string();
  }
  printf("%zu mutations: %zu refused, %zu ran, %zu of these in integers too\n", tried, reached[0], reached[1] + reached[2],
         reached[2]);
  if (first == 0) {
    // The mutator has to reach the later stages, or it tests the shape rules alone.
    EXPECT_GT(reached[1] + reached[2], tried / 10);
    EXPECT_GT(reached[2], tried / 20);
  }
}
}  // namespace
}  // namespace orknn::tests
