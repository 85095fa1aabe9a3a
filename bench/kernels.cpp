// Speed of single kernels: the layers listed in bench/shapes in every form this machine can run, against the
// machine's own rate of multiply-adds, measured here too. One thread unless ORKNN_THREADS says otherwise.
#include <benchmark/benchmark.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "ir/infer.h"
#include "ops/eval.h"
#include "sim/kernel.h"
#include "sim/kernels/support/cpu.h"
#include "sim/kernels/support/int_forms.h"
#include "sim/kernels/support/forms.h"

namespace {
using namespace orknn;
using ir::Dims;
using ir::TensorData;
using ir::TensorId;
using sim::kernels::Isa;

ThreadPool& bench_pool() {
  static ThreadPool pool(std::getenv("ORKNN_THREADS") ? std::max(1, std::atoi(std::getenv("ORKNN_THREADS"))) : 1);
  return pool;
}

class Context final : public sim::KernelContext {
 public:
  Context(const ir::Node& n, const ir::OpDef& d, std::span<const ir::TensorView> in, std::span<const ir::MutableTensorView> out) : KernelContext(n, d, in, out, bench_pool()) {}
  std::byte* scratch(size_t bytes) override {
    if (memory_.bytes() < bytes || !memory_.has_value()) memory_ = TensorData::allocate(DType::UInt8, {static_cast<int64_t>(bytes) + 1});
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

// Runs one node with its fast kernel; `constants` of the inputs (the last ones) are weights.
void run_node(benchmark::State& state, Isa isa, DType dtype, ir::Node node, const std::vector<Dims>& shapes, size_t constants, double macs) {
  sim::kernels::set_current_isa(isa);
  std::vector<TensorData> inputs;
  std::vector<sim::OperandFacts> facts;
  std::vector<ir::TensorFacts> known;
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs.push_back(filled(dtype, shapes[i]));
    node.inputs.push_back(TensorId{static_cast<int32_t>(i)});
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    facts.push_back({dtype, shapes[i], i + constants >= shapes.size() ? &inputs[i] : nullptr});
    known.push_back({.dtype = dtype, .shape = ir::to_shape(shapes[i])});
  }
  node.outputs = {TensorId{100}};
  const auto inferred = ir::infer_node(node, ops::builtin_ops(), std::move(known));
  if (!inferred) return state.SkipWithError(inferred.status().to_string().c_str());
  const ir::OpDef& def = *ops::builtin_ops().find(node.op);
  const sim::OperandFacts outputs[] = {{dtype, *ir::to_dims(*(*inferred)[0].shape), nullptr}};
  const sim::KernelQuery query{node, def, facts, outputs};
  const sim::Kernel* kernel = sim::find_kernel(query);
  if (!kernel) return state.SkipWithError("no kernel");
  std::unique_ptr<const sim::KernelState> prepared;
  if (kernel->prepare) prepared = std::move(*kernel->prepare(query, bench_pool()));
  TensorData result = TensorData::allocate(dtype, outputs[0].dims);
  std::vector<ir::TensorView> views;
  for (const TensorData& t : inputs) views.push_back(t.view());
  const ir::MutableTensorView out[] = {{dtype, result.dims(), result.mutable_data()}};
  Context context(node, def, views, out);
  for (auto _ : state) {
    const Status status = kernel->run(context, prepared.get());
    benchmark::DoNotOptimize(status.is_ok());
  }
  state.SetLabel(std::string(kernel->name));
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * macs, benchmark::Counter::kIsIterationInvariantRate);
}

// The matrix core on operands that stay in the first-level cache: what the machine can do at best.
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
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * kPanelRows * kPanelColumns * kDepth, benchmark::Counter::kIsIterationInvariantRate);
}

// The same for the core of integer products.
void int_peak(benchmark::State& state, Isa isa, sim::kernels::Dot dot) {
  using namespace sim::kernels;
  constexpr int64_t kDepth = 128;
  const TensorData a = filled(DType::Int32, {kIntRows * kDepth}), b = filled(DType::Int32, {kIntColumns * kDepth});
  TensorData sums = TensorData::allocate(DType::Int32, {kIntRows * kIntColumns});
  std::vector<int64_t> offsets;
  for (int64_t k = 0; k < kDepth; ++k) offsets.push_back(k * kIntColumns * 4);
  IntTile t;
  t.dot = dot;
  t.a = a.as<int32_t>();
  t.b = static_cast<const std::byte*>(b.data());
  t.offsets = offsets.data();
  t.depth = kDepth;
  t.rows = kIntRows;
  t.columns = kIntColumns;
  t.sums = static_cast<int32_t*>(sums.mutable_data());
  for (auto _ : state) int_forms(isa).tile(t);
  const double macs = static_cast<double>(kIntRows * kIntColumns * kDepth * (dot == Dot::Words ? 2 : 4));
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * macs, benchmark::Counter::kIsIterationInvariantRate);
}

// The output converter of integer layers, with parameters of a usual size.
void set_stage(ir::Node& node) {
  node.attributes.set("multiplier", std::vector<int64_t>{20000});
  node.attributes.set("shift", std::vector<int64_t>{25});
  node.attributes.set("low", int64_t{-128});
  node.attributes.set("high", int64_t{127});
}

std::vector<std::vector<std::string>> rows(const std::string& file) {
  std::ifstream in(std::string(ORKNN_SHAPES_DIR) + "/" + file);
  std::vector<std::vector<std::string>> result;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::vector<std::string>& row = result.emplace_back();
    for (std::string word; words >> word;) row.push_back(word);
  }
  return result;
}

std::string label(const std::string& op, const std::vector<std::string>& row, Isa isa, DType dtype) {
  std::string name = op;
  for (const std::string& word : row) name += "/" + word;
  return name + "/" + std::string(dtype_name(dtype)) + "/" + std::string(sim::kernels::isa_name(isa));
}

void register_all() {
  for (Isa isa : sim::kernels::available_isas()) {
    benchmark::RegisterBenchmark(("peak/" + std::string(sim::kernels::isa_name(isa))).c_str(), [isa](benchmark::State& s) { peak(s, isa); });
    const auto dot = sim::kernels::int_forms(isa).has_bytes ? sim::kernels::Dot::BytesBUnsigned : sim::kernels::Dot::Words;
    benchmark::RegisterBenchmark(("peak_int8/" + std::string(sim::kernels::isa_name(isa))).c_str(), [isa, dot](benchmark::State& s) { int_peak(s, isa, dot); });
    for (DType dtype : {DType::Float32, DType::Float16, DType::Int8}) {
      const bool integer = dtype == DType::Int8;
      for (const auto& row : rows("conv.txt")) {
        const auto n = [&](size_t i) { return static_cast<int64_t>(std::stoll(row[i])); };
        const int64_t in = n(1), out = n(2), k = n(3), stride = n(4), height = n(5), width = n(6), groups = n(7), pad = k / 2;
        ir::Node node;
        node.op = integer ? "int:Conv" : "Conv";
        node.attributes = {{"pads", std::vector<int64_t>(4, pad)}, {"strides", std::vector<int64_t>(2, stride)}, {"group", groups}};
        if (integer) set_stage(node);
        else node.tail = {{.op = "Relu"}};
        const int64_t pixels = ((height + 2 * pad - k) / stride + 1) * ((width + 2 * pad - k) / stride + 1);
        std::vector<Dims> shapes{{1, in, height, width}, {out, in / groups, k, k}};
        if (!integer) shapes.push_back({out});
        const double macs = static_cast<double>(pixels * out * (in / groups) * k * k);
        benchmark::RegisterBenchmark(label("conv", row, isa, dtype).c_str(),
                                     [=](benchmark::State& s) { run_node(s, isa, dtype, node, shapes, shapes.size() - 1, macs); })->UseRealTime();
      }
      for (const auto& row : rows("matmul.txt")) {
        const auto n = [&](size_t i) { return static_cast<int64_t>(std::stoll(row[i])); };
        const int64_t batch = n(1), m = n(2), depth = n(3), columns = n(4);
        ir::Node node;
        node.op = integer ? "int:MatMul" : "MatMul";
        if (integer) set_stage(node);
        const std::vector<Dims> shapes = batch == 1 ? std::vector<Dims>{{m, depth}, {depth, columns}} : std::vector<Dims>{{batch, m, depth}, {batch, depth, columns}};
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
