// The executor on hand-made programs: planned memory, shared memory, checks of untrusted plans.
#include "sim/executor.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::sim {
namespace {
using format::Buffer;
using format::Program;

// A program over `text` with every computed tensor in the arena at its own place, outputs outside.
Program program_of(std::string_view text) {
  Program p;
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  p.graph = std::move(*graph);
  p.buffers.resize(p.graph.tensor_count());
  for (ir::NodeId id : p.graph.order()) {
    p.tasks.push_back({.node = id});
    for (ir::TensorId t : p.graph.node(id).outputs) {
      Buffer& b = p.buffers[static_cast<size_t>(t.index)];
      const auto dims = ir::to_dims(*p.graph.tensor(t).shape);
      if (!dims) continue;
      b.bytes = static_cast<uint64_t>(ir::element_count(*dims)) * dtype_bytes(p.graph.tensor(t).dtype);
      b.place = p.graph.is_output(t) ? Buffer::Place::External : Buffer::Place::Arena;
      if (b.place != Buffer::Place::Arena) continue;
      b.offset = p.arena_bytes;
      p.arena_bytes += (b.bytes + 63) / 64 * 64;
    }
  }
  for (ir::TensorId t : p.graph.inputs()) p.inputs.push_back({.tensor = t});
  for (ir::TensorId t : p.graph.outputs()) p.outputs.push_back({.tensor = t});
  return p;
}

constexpr std::string_view kChain = R"(graph "g" (%x: float32[2,2]) -> (%c) {
  %a: float32[2,2] = Relu(%x)
  %b: float32[2,2] = Relu(%a)
  %c: float32[2,2] = Relu(%b)
})";

std::vector<float> run(Executor& e, std::vector<float> x) {
  const ir::Dims dims{2, 2};
  const ir::TensorView in{DType::Float32, dims, x.data()};
  const Status s = e.run(std::span(&in, 1));
  EXPECT_TRUE(s) << s.to_string();
  const auto values = e.output(0).values<float>();
  return {values.begin(), values.end()};
}

TEST(Executor, RunsAPlannedChain) {
  const Program p = program_of(kChain);
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e) << e.status().to_string();
  EXPECT_EQ(run(**e, {1, -2, 3, -4}), (std::vector<float>{1, 0, 3, 0}));
  EXPECT_EQ(run(**e, {-1, 2, -3, 4}), (std::vector<float>{0, 2, 0, 4}));
  auto twin = (*e)->duplicate(ThreadPool::shared());
  ASSERT_TRUE(twin);
  EXPECT_EQ(run(**twin, {5, 6, 7, -8}), (std::vector<float>{5, 6, 7, 0}));
  EXPECT_EQ((*e)->output(0).as<float>()[1], 2);
}

TEST(Executor, HooksSeeEveryTask) {
  const Program p = program_of(kChain);
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e);
  std::vector<float> x{1, 2, 3, 4};
  const ir::Dims dims{2, 2};
  const ir::TensorView in{DType::Float32, dims, x.data()};
  std::vector<size_t> timed;
  std::vector<std::string> seen;
  RunHooks hooks;
  hooks.timing = [&](size_t i, std::chrono::nanoseconds) { timed.push_back(i); };
  hooks.observe = [&](ir::TensorId t, const ir::TensorView&) { seen.push_back(p.graph.tensor(t).name); };
  ASSERT_TRUE((*e)->run(std::span(&in, 1), hooks));
  EXPECT_EQ(timed, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(seen, (std::vector<std::string>{"x", "a", "b", "c"}));
}

TEST(Executor, RefusesMemoryOutsideTheArena) {
  Program p = program_of(kChain);
  p.buffers[static_cast<size_t>(p.graph.find_tensor("b").index)].offset = 64 * 1000;
  const auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_FALSE(e);
  EXPECT_EQ(e.status().code(), Code::InvalidModel);
}

TEST(Executor, RefusesMemoryInUse) {
  Program p = program_of(R"(graph "g" (%x: float32[2,2]) -> (%c, %d) {
  %a: float32[2,2] = Relu(%x)
  %b: float32[2,2] = Relu(%x)
  %c: float32[2,2] = Relu(%a)
  %d: float32[2,2] = Relu(%b)
})");
  p.buffers[static_cast<size_t>(p.graph.find_tensor("b").index)].offset =
      p.buffers[static_cast<size_t>(p.graph.find_tensor("a").index)].offset;
  EXPECT_FALSE(Executor::create(p, ops::builtin_ops()));
}

TEST(Executor, LetsAnOutputTakeItsInputsPlace) {
  Program p = program_of(kChain);
  p.buffers[static_cast<size_t>(p.graph.find_tensor("b").index)].offset =
      p.buffers[static_cast<size_t>(p.graph.find_tensor("a").index)].offset;
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e) << e.status().to_string();
  EXPECT_EQ(run(**e, {1, -2, 3, -4}), (std::vector<float>{1, 0, 3, 0}));
}

TEST(Executor, RefusesAShapeThatTheOperatorDoesNotGive) {
  const Program p = program_of(R"(graph "g" (%x: float32[2,2]) -> (%c) {
  %a: float32[1] = Relu(%x)
  %c: float32[1] = Relu(%a)
})");
  const auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_FALSE(e);
  EXPECT_NE(e.status().to_string().find("expected float32[2,2], found float32[1]"), std::string::npos) << e.status().to_string();
}

TEST(Executor, UnknownOperatorsFailOnlyWhenRun) {
  const Program p = program_of(R"(graph "g" (%x: float32[2,2]) -> (%c) {
  %c: float32[2,2] = "com.acme:Foo"(%x) "foo_1"
})");
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e) << e.status().to_string();
  const std::vector<float> x(4);
  const ir::Dims dims{2, 2};
  const ir::TensorView in{DType::Float32, dims, x.data()};
  const Status s = (*e)->run(std::span(&in, 1));
  EXPECT_EQ(s.code(), Code::Unsupported);
  EXPECT_NE(s.to_string().find("foo_1"), std::string::npos);
}

TEST(Executor, RefusesWrongInputs) {
  const Program p = program_of(kChain);
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e);
  const std::vector<float> x(4);
  const ir::Dims flat{4};
  const ir::TensorView in{DType::Float32, flat, x.data()};
  EXPECT_EQ((*e)->run(std::span(&in, 1)).code(), Code::InvalidArgument);
  EXPECT_EQ((*e)->run({}).code(), Code::InvalidArgument);
  EXPECT_EQ((*e)->output(0).data, nullptr);
}

TEST(Executor, AGraphInputMayBeAnOutput) {
  const Program p = program_of(R"(graph "g" (%x: float32[2,2]) -> (%x) {
})");
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e) << e.status().to_string();
  EXPECT_EQ(run(**e, {1, -2, 3, -4}), (std::vector<float>{1, -2, 3, -4}));
}
}  // namespace
}  // namespace orknn::sim
