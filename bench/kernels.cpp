// Speed of single kernels: the layers listed in bench/shapes in every form this machine can run; products with their share of
// what the machine multiplies at best, in registers alone (peak.h), convolutions also of feature maps in blocks (sim/form.h);
// and, where ORKNN_CASES asks for them, operator cases on the simulator. One thread unless ORKNN_THREADS says otherwise.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "compile/compile.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "op_case.h"
#include "ops/eval.h"
#include "peak.h"
#include "sim/executor.h"
#include "sim/kernel.h"
#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/cpu.h"
#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/int_forms.h"

namespace {
using namespace orknn;
using ir::Dims;
using ir::TensorData;
using ir::TensorId;
using sim::Form;
using sim::kernels::Isa;

ThreadPool& bench_pool() {
  static ThreadPool pool(std::getenv("ORKNN_THREADS") ? std::max(1, std::atoi(std::getenv("ORKNN_THREADS"))) : 1);
  return pool;
}

class Context final : public sim::KernelContext {
 public:
  Context(const ir::Node& n, const ir::OpDef& d, std::span<const ir::TensorView> in, std::span<const ir::MutableTensorView> out)
      : KernelContext(n, d, in, out, bench_pool()) {}
  std::byte* scratch(size_t bytes) override {
    if (memory_.bytes() < bytes || !memory_.has_value())
      memory_ = TensorData::allocate(DType::UInt8, {static_cast<int64_t>(bytes) + 1});
    return static_cast<std::byte*>(memory_.mutable_data());
  }

 private:
  TensorData memory_;
};

TensorData filled(DType dtype, Dims dims) {
  TensorData t = TensorData::allocate(DType::Float32, std::move(dims));
  auto* p = static_cast<float*>(t.mutable_data());
  for (int64_t i = 0; i < t.count(); ++i) p[i] = static_cast<float>(i % 17) * 0.05f - 0.4f;
  return dtype == DType::Float32 ? t : ir::convert(t.view(), dtype);
}

// Multiply-accumulates per second, and what share of the threads' best rate that is.
void count_macs(benchmark::State& state, Isa isa, DType dtype, double macs) {
  static std::map<std::pair<Isa, bool>, double> peaks;
  const auto [place, is_new] = peaks.try_emplace({isa, !is_float(dtype)});
  if (is_new) place->second = bench::register_peak(isa, !is_float(dtype));
  state.counters["GMAC/s"] = benchmark::Counter(1e-9 * macs, benchmark::Counter::kIsIterationInvariantRate);
  if (const double peak = place->second * bench_pool().threads(); peak > 0)
    state.counters["of_peak"] = benchmark::Counter(macs / peak, benchmark::Counter::kIsIterationInvariantRate);
}

// Pictures stay in rows: the first layer of a network reads them so.
constexpr int64_t kPictureChannels = 4;

// Runs one node with its fast kernel, or with the reference kernel where there is none. In blocks there is no reference.
void measure(benchmark::State& state, Isa isa, const ir::Node& node, const std::vector<TensorData>& inputs,
             const std::vector<bool>& constant, double macs, Form form = Form::Rows) {
  sim::kernels::set_current_isa(isa);
  std::vector<sim::OperandFacts> facts;
  std::vector<ir::TensorFacts> known;
  std::vector<ir::TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].has_value())
      facts.push_back({inputs[i].dtype(), inputs[i].dims(), constant[i] ? &inputs[i] : nullptr});
    else
      facts.emplace_back();
    known.emplace_back();
    if (inputs[i].has_value())
      known.back() = {.dtype = facts[i].dtype, .shape = ir::to_shape(facts[i].dims), .constant = facts[i].constant};
    views.push_back(inputs[i].has_value() ? inputs[i].view() : ir::TensorView{});
  }
  const auto inferred = ir::infer_node(node, ops::builtin_ops(), std::move(known));
  if (!inferred) return state.SkipWithError(inferred.status().to_string().c_str());
  const ir::OpDef& def = *ops::builtin_ops().find(node.op);
  const std::vector<sim::OperandFacts> outputs{{(*inferred)[0].dtype, *ir::to_dims(*(*inferred)[0].shape), nullptr, form}};
  TensorData blocks;
  if (form == Form::Blocked && facts[0].dims[1] > kPictureChannels) {
    facts[0].form = form;
    blocks = TensorData::allocate(DType::UInt8, {sim::blocked_bytes(facts[0].dtype, facts[0].dims)});
    sim::kernels::to_blocks(inputs[0].view(), blocks.mutable_data(), bench_pool());
    views[0].data = blocks.data();
  }
  const sim::KernelQuery query{node, def, facts, outputs};
  if (macs > 0) count_macs(state, isa, facts[0].dtype, macs);
  const sim::Kernel* kernel = sim::find_kernel(query);
  if (!kernel && form == Form::Blocked) return state.SkipWithError("no kernel for blocks");
  if (!kernel) {
    for (auto _ : state) benchmark::DoNotOptimize(ops::eval_node(node, ops::builtin_ops(), inputs, bench_pool()).is_ok());
    state.SetLabel("reference");
    return;
  }
  std::unique_ptr<const sim::KernelState> prepared;
  if (kernel->prepare) prepared = std::move(*kernel->prepare(query, bench_pool()));
  const auto bytes = form == Form::Blocked
                         ? sim::blocked_bytes(outputs[0].dtype, outputs[0].dims)
                         : ir::element_count(outputs[0].dims) * static_cast<int64_t>(dtype_bytes(outputs[0].dtype));
  TensorData result = TensorData::allocate(DType::UInt8, {bytes});
  const ir::MutableTensorView out[] = {{outputs[0].dtype, outputs[0].dims, result.mutable_data()}};
  Context context(node, def, views, out);
  for (auto _ : state) {
    const Status status = kernel->run(context, prepared.get());
    benchmark::DoNotOptimize(status.is_ok());
  }
  state.SetLabel(std::string(kernel->name));
}

// A node of these shapes; `constants` of the inputs (the last ones) are weights.
void run_node(benchmark::State& state, Isa isa, DType dtype, ir::Node node, const std::vector<Dims>& shapes, size_t constants,
              double macs, Form form = Form::Rows) {
  std::vector<TensorData> inputs;
  std::vector<bool> constant;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(filled(dtype, shapes[i]));
    constant.push_back(i + constants >= shapes.size());
    node.inputs.push_back(TensorId{static_cast<int32_t>(i)});
  }
  node.outputs = {TensorId{100}};
  measure(state, isa, node, inputs, constant, macs, form);
}

// The only node of a graph; `dtype` in the place of the float inputs' type.
void run_layer(benchmark::State& state, Isa isa, DType dtype, const ir::Graph& graph) {
  const ir::Node& node = graph.node(graph.order().front());
  std::vector<TensorData> inputs;
  std::vector<bool> constant;
  for (TensorId t : node.inputs) {
    const ir::Tensor* tensor = t ? &graph.tensor(t) : nullptr;
    constant.push_back(tensor && (tensor->is_constant() || tensor->name.starts_with("w")));
    inputs.push_back(!tensor                 ? TensorData{}
                     : tensor->is_constant() ? tensor->constant
                                             : filled(dtype, *ir::to_dims(*tensor->shape)));
  }
  measure(state, isa, node, inputs, constant, 0);
}

// A row of src/ops/**/*.cases, compiled for the default chip and run on the simulator: all its tasks, start included.
void run_case(benchmark::State& state, Isa isa, const tests::OpCase& c) {
  sim::kernels::set_current_isa(isa);
  compile::CompileOptions options;
  options.float_dtype = DType::Float32;
  auto graph = ir::parse(c.graph);
  if (!graph) return state.SkipWithError(graph.status().to_string().c_str());
  if (const Status s = ir::infer_shapes(*graph, ops::builtin_ops()); !s) return state.SkipWithError(s.to_string().c_str());
  const auto program = compile::compile(std::move(*graph), options);
  if (!program) return state.SkipWithError(program.status().to_string().c_str());
  const auto executor = sim::Executor::create(*program, ops::builtin_ops(), bench_pool());
  if (!executor) return state.SkipWithError(executor.status().to_string().c_str());
  std::vector<ir::TensorView> inputs;
  for (const TensorData& t : c.inputs) inputs.push_back(t.view());
  for (auto _ : state)
    if (const Status s = (*executor)->run(inputs); !s) return state.SkipWithError(s.to_string().c_str());
  if (!program->tasks.empty()) state.SetLabel(std::string((*executor)->kernel_name(0)));
}

// Cases whose "file/name" contains what ORKNN_CASES says; those that must be refused are left out.
std::vector<tests::OpCase> wanted_cases() {
  std::vector<tests::OpCase> wanted;
  const char* part = std::getenv("ORKNN_CASES");
  if (!part) return wanted;
  for (const std::string& path : tests::op_case_files()) {
    auto cases = tests::read_op_cases(path);
    if (!cases) {
      std::fprintf(stderr, "%s\n", cases.status().to_string().c_str());
      continue;
    }
    for (tests::OpCase& c : *cases)
      if (c.error.empty() && (c.file + "/" + c.name).find(part) != std::string::npos) wanted.push_back(std::move(c));
  }
  return wanted;
}

// The matrix core on operands that stay in the first-level cache.
void peak(benchmark::State& state, Isa isa) {
  using namespace sim::kernels;
  constexpr int64_t kDepth = 128;
  const TensorData a = filled(DType::Float32, {kPanelRows * kDepth}), b = filled(DType::Float32, {kPanelColumns * kDepth});
  TensorData c = TensorData::allocate(DType::Float32, {kPanelRows * kPanelColumns});
  GemmBlock g;
  g.a = a.as<float>();
  g.b = b.as<float>();
  g.rows = kPanelRows;
  g.columns = g.sum_row_stride = kPanelColumns;
  g.depth = kDepth;
  g.sum = static_cast<float*>(c.mutable_data());
  g.c = g.sum;
  for (auto _ : state) forms(isa).gemm(g);
  count_macs(state, isa, DType::Float32, kPanelRows * kPanelColumns * kDepth);
}

// The same for the core of integer products.
void int_peak(benchmark::State& state, Isa isa, sim::kernels::Dot dot) {
  using namespace sim::kernels;
  constexpr int64_t kDepth = 128;
  const TensorData a = filled(DType::Int32, {kIntRows * kDepth}), b = filled(DType::Int32, {kIntColumns * kDepth});
  TensorData sums = TensorData::allocate(DType::Int32, {kIntRows * kIntColumns});
  IntTile t;
  t.dot = dot;
  t.a = a.as<int32_t>();
  t.b = static_cast<const std::byte*>(b.data());
  t.depth = kDepth;
  t.rows = kIntRows;
  t.columns = kIntColumns;
  t.sums = static_cast<int32_t*>(sums.mutable_data());
  for (auto _ : state) int_forms(isa).tile(t);
  count_macs(state, isa, DType::Int8, static_cast<double>(kIntRows * kIntColumns * kDepth * (dot == Dot::Words ? 2 : 4)));
}

// The output converter of integer layers, with parameters of a usual size.
void set_stage(ir::Node& node, DType dtype) {
  node.attributes.set("multiplier", std::vector<int64_t>{20000});
  node.attributes.set("shift", std::vector<int64_t>{dtype == DType::Int16 ? 33 : 25});
  node.attributes.set("low", dtype == DType::Int16 ? int64_t{-32768} : int64_t{-128});
  node.attributes.set("high", dtype == DType::Int16 ? int64_t{32767} : int64_t{127});
  node.attributes.set("y_type", static_cast<int64_t>(dtype));
}

// A file of bench/shapes; ORKNN_SHAPES says where they are on machines without the sources.
std::ifstream shapes(const std::string& file) {
  const char* folder = std::getenv("ORKNN_SHAPES");
  return std::ifstream(std::string(folder ? folder : ORKNN_SHAPES_DIR) + "/" + file);
}

std::vector<std::vector<std::string>> rows(const std::string& file) {
  std::ifstream in = shapes(file);
  std::vector<std::vector<std::string>> result;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::vector<std::string>& row = result.emplace_back();
    for (std::string word; words >> word;) row.push_back(word);
  }
  return result;
}

// Graphs as text, apart by empty lines.
std::vector<ir::Graph> graphs(const std::string& file) {
  std::ifstream in = shapes(file);
  std::vector<ir::Graph> result;
  std::string text;
  for (std::string line; in;) {
    if (!std::getline(in, line)) line.clear();
    if (!line.empty() && line[0] != '#') text += line + "\n";
    if (!line.empty() || text.empty()) continue;
    Result<ir::Graph> graph = ir::parse(text);
    if (graph)
      result.push_back(std::move(*graph));
    else
      std::fprintf(stderr, "%s: %s\n", file.c_str(), graph.status().to_string().c_str());
    text.clear();
  }
  return result;
}

std::string label(const std::string& op, const std::vector<std::string>& row, Isa isa, DType dtype) {
  std::string name = op;
  for (const std::string& word : row) name += "/" + word;
  return name + "/" + std::string(dtype_name(dtype)) + "/" + std::string(sim::kernels::isa_name(isa));
}

void register_all() {
  static const std::vector<ir::Graph> layers = graphs("layers.txt");
  static const std::vector<tests::OpCase> cases = wanted_cases();
  for (Isa isa : sim::kernels::available_isas()) {
    for (const tests::OpCase& c : cases)
      benchmark::RegisterBenchmark(label("cases", {c.file, c.name}, isa, DType::Float32).c_str(), [&c, isa](benchmark::State& s) {
        run_case(s, isa, c);
      })->UseRealTime();
    for (const ir::Graph& layer : layers)
      for (DType dtype : {DType::Float32, DType::Float16})
        benchmark::RegisterBenchmark(label(layer.name, {}, isa, dtype).c_str(), [&layer, isa, dtype](benchmark::State& s) {
          run_layer(s, isa, dtype, layer);
        })->UseRealTime();
    benchmark::RegisterBenchmark(("peak/" + std::string(sim::kernels::isa_name(isa))).c_str(),
                                 [isa](benchmark::State& s) { peak(s, isa); });
    const auto dot = sim::kernels::int_forms(isa).has_bytes ? sim::kernels::Dot::BytesBUnsigned : sim::kernels::Dot::Words;
    benchmark::RegisterBenchmark(("peak_int8/" + std::string(sim::kernels::isa_name(isa))).c_str(),
                                 [isa, dot](benchmark::State& s) { int_peak(s, isa, dot); });
    for (DType dtype : {DType::Float32, DType::Float16, DType::Int8, DType::Int16}) {
      const bool integer = !is_float(dtype);
      for (const auto& row : rows("conv.txt")) {
        const auto n = [&](size_t i) { return static_cast<int64_t>(std::stoll(row[i])); };
        const int64_t in = n(1), out = n(2), k = n(3), stride = n(4), height = n(5), width = n(6), groups = n(7), pad = k / 2;
        ir::Node node;
        node.op = integer ? "int:Conv" : "Conv";
        node.attributes = {
            {"pads", std::vector<int64_t>(4, pad)}, {"strides", std::vector<int64_t>(2, stride)}, {"group", groups}};
        if (integer)
          set_stage(node, dtype);
        else
          node.tail = {{.op = "Relu"}};
        const int64_t pixels = ((height + 2 * pad - k) / stride + 1) * ((width + 2 * pad - k) / stride + 1);
        std::vector<Dims> shapes{{1, in, height, width}, {out, in / groups, k, k}};
        if (!integer) shapes.push_back({out});
        const double macs = static_cast<double>(pixels * out * (in / groups) * k * k);
        for (Form form : {Form::Rows, Form::Blocked}) {
          if (form == Form::Blocked && !sim::can_be_blocked(dtype, shapes[0])) continue;
          const char* op = form == Form::Blocked ? "blocked_conv" : "conv";
          benchmark::RegisterBenchmark(label(op, row, isa, dtype).c_str(), [=](benchmark::State& s) {
            run_node(s, isa, dtype, node, shapes, shapes.size() - 1, macs, form);
          })->UseRealTime();
        }
      }
      for (const auto& row : rows("matmul.txt")) {
        const auto n = [&](size_t i) { return static_cast<int64_t>(std::stoll(row[i])); };
        const int64_t batch = n(1), m = n(2), depth = n(3), columns = n(4);
        ir::Node node;
        node.op = integer ? "int:MatMul" : "MatMul";
        if (integer) set_stage(node, dtype);
        const std::vector<Dims> shapes = batch == 1 ? std::vector<Dims>{{m, depth}, {depth, columns}}
                                                    : std::vector<Dims>{{batch, m, depth}, {batch, depth, columns}};
        benchmark::RegisterBenchmark(label("matmul", row, isa, dtype).c_str(), [=](benchmark::State& s) {
          run_node(s, isa, dtype, node, shapes, batch == 1 ? 1 : 0, static_cast<double>(batch * m * depth * columns));
        })->UseRealTime();
      }
    }
  }
}
}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
