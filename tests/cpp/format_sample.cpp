#include "format_sample.h"

#include <gtest/gtest.h>

#include "format/container.h"
#include "ir/packed.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "sim/executor.h"

namespace orknn::format {

Model sample_model(bool with_body) {
  Model model;
  model.name = "sample";
  model.target_platform = "rk3588";
  model.source_framework = "ONNX";
  model.toolkit_version = "0.1.0";
  model.custom_string = "hello";
  model.float_dtype = "float16";
  Program p;
  auto graph = ir::parse(R"(graph "sample" (%x: float16[1,3,2,2]) -> (%y, %z) {
  %w: float16[1,3,1,1] = const {1, 2, 0.5}
  %same_as_w: float16[3] = const {1, 2, 0.5}
  %other: float16[1,3,1,1] = const {4, 5, 6}
  %factors: float16[1,3,1,1] = const {3.5, -3.5, 0.75}
  %rows: int64[2] = const {3, 4}
  %a: float16[1,3,2,2] = Relu(%x) + Mul(%w) "act" from "conv_1", "relu_1"
  %b: float16[1,3,2,2] = Add(%a, %other) "shift"
  %y: float16[1,3,2,2] = Relu(%b) + Mul(%factors) "last"
  %z: float16[3,4] = Reshape(%a, %rows) "flat"
})");
  EXPECT_TRUE(graph) << graph.status().to_string();
  p.graph = std::move(*graph);
  ir::Graph& g = p.graph;
  // The same values as integers: two channels share a scale, the third has its own.
  const int8_t integers[] = {7, -7, 3};
  const float scales[] = {0.5f, 0.25f};
  g.tensor(g.find_tensor("factors")).constant =
      ir::unpack(ir::pack(DType::Int4, {1, 3, 1, 1}, {1, 2, 1, 1}, integers, scales), DType::Float16);
  g.tensor(g.find_tensor("x")).quant = ir::QuantParams{{0.5f}, {3}, -1, {-1.f}, {2.f}};
  if (with_body) {
    auto branch = ir::parse(R"(graph "branch" (%p: float16[3]) -> (%q) {
  %q: float16[3] = Relu(%p)
})");
    EXPECT_TRUE(branch) << branch.status().to_string();
    const auto body = std::make_shared<const ir::Graph>(std::move(*branch));
    const ir::TensorId condition = g.add_constant("condition", ir::TensorData::scalar(true));
    const ir::TensorId unused = g.add_tensor("unused", DType::Float16, ir::Shape{3});
    ir::Node node;
    node.op = "If";
    node.name = "choice";
    node.inputs = {condition, g.find_tensor("same_as_w")};
    node.outputs = {unused};
    node.attributes = {{"then_branch", body}, {"else_branch", body}};
    g.add_node(node);
  }

  p.buffers.resize(g.tensor_count());
  for (ir::NodeId id : g.order()) {
    Task task;
    task.node = id;
    task.device = p.tasks.empty() ? Device::Npu : Device::Cpu;
    task.engine = ir::Engine::Elementwise;
    task.reason = "because";
    p.tasks.push_back(task);
    for (ir::TensorId t : g.node(id).outputs) {
      Buffer& b = p.buffers[static_cast<size_t>(t.index)];
      b.bytes = static_cast<uint64_t>(ir::element_count(*ir::to_dims(*g.tensor(t).shape))) * dtype_bytes(g.tensor(t).dtype);
      b.place = g.is_output(t) ? Buffer::Place::External : Buffer::Place::Arena;
      if (b.place != Buffer::Place::Arena) continue;
      b.offset = p.arena_bytes;
      p.arena_bytes += aligned(b.bytes);
    }
  }
  for (ir::TensorId t : g.inputs()) p.inputs.push_back({t, DType::Float32, ir::Layout::NCHW, {1, 2, 3}, {2, 4, 8}});
  p.outputs.push_back({g.outputs()[0], DType::Float32, ir::Layout::NCHW, {}, {}});
  p.outputs.push_back({g.outputs()[1], DType::Float32, ir::Layout::Undefined, {}, {}});
  model.programs.push_back(std::move(p));
  return model;
}

namespace {
template <class T>
T& at(std::vector<std::byte>& file, size_t offset) {
  return *reinterpret_cast<T*>(file.data() + offset);
}
}  // namespace

void forge(std::vector<std::byte>& file, std::mt19937& random) {
  const auto payload = at<uint64_t>(file, 16), json = at<uint64_t>(file, kHeaderBytes + payload);
  const uint64_t trailer = aligned(kHeaderBytes + payload + 8 + json);
  const auto count = at<uint32_t>(file, trailer + 12);
  constexpr uint8_t interesting[] = {0, 1, 2, 7, 8, 0x10, 0x7f, 0x80, 0xfe, 0xff};
  for (uint32_t i = 0, changes = 1 + random() % 4; i < changes; ++i) {
    const size_t entry = trailer + kTrailerHeaderBytes + (random() % 8 == 0 ? random() % count : 1) * kSectionEntryBytes;
    const auto offset = at<uint64_t>(file, entry + 8), bytes = at<uint64_t>(file, entry + 16);
    std::byte& b = file[offset + random() % bytes];
    b = random() % 2 ? std::byte{interesting[random() % std::size(interesting)]} : b ^ (std::byte{1} << random() % 8);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const size_t entry = trailer + kTrailerHeaderBytes + i * kSectionEntryBytes;
    RangeChecksum sum;
    sum.add(std::span(file).subspan(at<uint64_t>(file, entry + 8), at<uint64_t>(file, entry + 16)));
    at<uint64_t>(file, entry + 24) = sum.finish();
  }
  const uint64_t table_bytes = aligned(kTrailerHeaderBytes + count * kSectionEntryBytes);
  at<uint64_t>(file, trailer + kTrailerChecksumOffset) = 0;
  const uint64_t sum = checksum64(std::span(file).subspan(trailer, table_bytes));
  at<uint64_t>(file, trailer + kTrailerChecksumOffset) = sum;
}

bool try_to_run(const Model& model) {
  for (const Program& program : model.programs) {
    auto executor = sim::Executor::create(program, ops::builtin_ops());
    if (!executor) return false;
    std::vector<ir::TensorData> inputs;
    std::vector<ir::TensorView> views;
    for (const Port& port : program.inputs) {
      const ir::Tensor& t = program.graph.tensor(port.tensor);
      const auto dims = t.shape ? ir::to_dims(*t.shape) : std::nullopt;
      if (!dims || ir::element_count(*dims) > 1 << 20) return false;
      inputs.push_back(ir::TensorData::zeros(t.dtype, *dims));
    }
    for (const ir::TensorData& t : inputs) views.push_back(t.view());
    if (!(*executor)->run(views)) return false;
  }
  return true;
}

}  // namespace orknn::format
