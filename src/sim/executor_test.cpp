// The executor on hand-made programs: planned memory, shared memory, checks of untrusted plans.
#include "sim/executor.h"

#include <gtest/gtest.h>

#include <map>

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

TEST(Executor, TensorsWithoutElementsHaveAPlace) {
  const Program p = program_of(R"(graph "g" (%x: float32[0,2]) -> (%c) {
  %a: float32[0,2] = Dropout(%x)
  %b: float32[0,2] = Dropout(%a)
  %c: float32[0,2] = Dropout(%b)
})");
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e) << e.status().to_string();
  const ir::Dims dims{0, 2};
  const ir::TensorView in{DType::Float32, dims, nullptr};
  size_t placed = 0;
  RunHooks hooks;
  hooks.observe = [&](ir::TensorId, const ir::TensorView& t) { placed += t.data != nullptr; };
  ASSERT_TRUE((*e)->run(std::span(&in, 1), hooks));
  EXPECT_EQ(placed, 4u);
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

// Two convolutions, a sum, and a transposition that wants rows; the first result is an output, too.
constexpr std::string_view kMaps = R"(graph "g" (%x: int8[1,3,5,6]) -> (%a, %y) {
  %w: int8[20,3,3,3] = const splat 3
  %v: int8[20,20,1,1] = const splat -2
  %a: int8[1,20,5,6] = "int:Conv"(%x, %w) {pads = [1,1,1,1], x_zero_point = 4, multiplier = [20000], shift = [20], low = -128, high = 127}
  %b: int8[1,20,5,6] = "int:Conv"(%a, %v) {multiplier = [20000], shift = [21], low = -128, high = 127}
  %c: int8[1,20,5,6] = "int:Add"(%a, %b) {a_multiplier = 64, b_multiplier = 32768, b_shift = 9, multiplier = [20000], shift = [21], low = -128, high = 127}
  %y: int8[1,5,6,20] = Transpose(%c) {perm = [0,2,3,1]}
})";

// Feature maps lie in blocks between their kernels; whoever looks at them or changes them sees rows, as does the rest.
TEST(Executor, MapsInBlocksAreRowsOutside) {
  const Program p = program_of(kMaps);
  auto e = Executor::create(p, ops::builtin_ops());
  ASSERT_TRUE(e) << e.status().to_string();
  EXPECT_TRUE((*e)->kernel_name(1).starts_with("blocked_")) << (*e)->kernel_name(1);
  EXPECT_TRUE((*e)->kernel_name(2).starts_with("blocked_")) << (*e)->kernel_name(2);
  // %a is an output, so it is rows: the first convolution turns it into them, the others into blocks again.
  const auto tensor = [&](size_t task) { return p.graph.node(p.tasks[task].node).outputs[0]; };
  for (size_t task = 0; task < 4; ++task)
    EXPECT_EQ((*e)->form(tensor(task)), task == 1 || task == 2 ? Form::Blocked : Form::Rows) << task;
  EXPECT_EQ((*e)->conversions(0), std::vector{tensor(0)});
  EXPECT_EQ((*e)->conversions(1), std::vector{tensor(0)});
  EXPECT_EQ((*e)->conversions(2), std::vector{tensor(0)});
  EXPECT_EQ((*e)->conversions(3), std::vector{tensor(2)});
  ir::TensorData x = ir::TensorData::allocate(DType::Int8, {1, 3, 5, 6});
  for (int64_t i = 0; i < x.count(); ++i) static_cast<int8_t*>(x.mutable_data())[i] = static_cast<int8_t>(i * 37);
  const auto keep = [](const ir::TensorView& v) { return std::vector<int8_t>(v.as<int8_t>(), v.as<int8_t>() + v.count()); };
  const auto reference = ops::eval_graph(p.graph, ops::builtin_ops(), {&x, 1});
  ASSERT_TRUE(reference) << reference.status().to_string();

  const ir::TensorView in = x.view();
  std::map<std::string, std::vector<int8_t>> seen;
  RunHooks hooks;
  hooks.observe = [&](ir::TensorId t, const ir::TensorView& v) { seen[p.graph.tensor(t).name] = keep(v); };
  ASSERT_TRUE((*e)->run(std::span(&in, 1), hooks));
  EXPECT_EQ(keep((*e)->output(0)), keep((*reference)[0].view()));
  EXPECT_EQ(keep((*e)->output(1)), keep((*reference)[1].view()));
  // What %c was before it was transposed.
  for (int64_t channel = 0; channel < 20; ++channel)
    for (int64_t pixel = 0; pixel < 30; ++pixel)
      EXPECT_EQ(seen["c"][static_cast<size_t>(channel * 30 + pixel)], seen["y"][static_cast<size_t>(pixel * 20 + channel)]);

  // An operator that knows rows only may take the place of one of blocks.
  (*e)->replace_operator(1, ops::builtin_ops().find("int:Conv"));
  ASSERT_TRUE((*e)->run(std::span(&in, 1)));
  EXPECT_EQ(keep((*e)->output(1)), keep((*reference)[1].view()));

  // Every map turned into one value: what follows reads that.
  hooks.amend = [&](ir::TensorId t, const ir::MutableTensorView& v) {
    if (p.graph.tensor(t).name == "c") std::fill_n(v.as<int8_t>(), v.count(), int8_t{-7});
  };
  ASSERT_TRUE((*e)->run(std::span(&in, 1), hooks));
  EXPECT_EQ(keep((*e)->output(1)), std::vector<int8_t>(600, -7));
}

// What memory of somebody else's may be used for: bytes that no kernel looks at before they are in another form.
TEST(Executor, KnowsWhatItOnlyConverts) {
  const std::string weights = "  %v: int8[20,20,1,1] = const splat -2\n", shape = "int8[1,20,5,6]";
  const auto conv = [&](const std::string& to, const std::string& from) {
    return "  %" + to + ": " + shape + " = \"int:Conv\"(%" + from +
           ", %v) {multiplier = [20000], shift = [21], low = -128, high = 127}\n";
  };
  const auto plain = [&](const std::string& to, const std::string& from) {
    return "  %" + to + ": int8[1,5,6,20] = Transpose(%" + from + ") {perm = [0,2,3,1]}\n";
  };
  const auto facts = [&](const std::string& outputs, const std::string& nodes, int replaced = -1) {
    const Program p = program_of("graph \"g\" (%x: " + shape + ") -> (" + outputs + ") {\n" + weights + nodes + "}");
    auto e = Executor::create(p, ops::builtin_ops());
    EXPECT_TRUE(e) << e.status().to_string();
    if (replaced >= 0) (*e)->replace_operator(static_cast<size_t>(replaced), ops::builtin_ops().find("int:Conv"));
    return std::pair((*e)->only_converts_input(0), (*e)->only_converts_output(0));
  };
  const std::string both = conv("a", "x") + conv("y", "a");
  EXPECT_EQ(facts("%y", both), std::pair(true, true));
  EXPECT_EQ(facts("%y", both, 0), std::pair(false, true));
  EXPECT_EQ(facts("%y", both, 1), std::pair(true, false));
  EXPECT_EQ(facts("%y, %x", both), std::pair(false, true));
  EXPECT_EQ(facts("%y, %y", both), std::pair(true, false));
  EXPECT_EQ(facts("%y, %z", both + plain("z", "x")), std::pair(false, true));
  EXPECT_EQ(facts("%y, %z", both + plain("z", "y")), std::pair(true, false));
  EXPECT_EQ(facts("%y", plain("y", "x")), std::pair(false, false));
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

// A tensor whose shape the file leaves out may hold any number of elements, whatever the shape rules know of its producer.
TEST(Executor, ContentsWithoutAStatedShapeAreLeftToTheRun) {
  const struct {
    const char *text, *problem;
    std::vector<ir::Dims> inputs;
  } rows[] = {{R"(graph "g" (%x: float32[1,1,2,2], %i: int64[1,1,2,2], %z: int64[5,6]) -> (%y) {
  %s: int64[2] = Shape(%z)
  %y: float32[1,1,4,4] = MaxUnpool(%x, %i, %s) {kernel_shape = [2,2], strides = [2,2]}
})",
               "output_shape has the wrong shape",
               {{1, 1, 2, 2}, {1, 1, 2, 2}, {5, 6}}},
              {R"(graph "g" (%x: float32[3], %z: int64[]) -> (%y) {
  %s: int64[0] = Shape(%z)
  %y: float32[3] = CumSum(%x, %s)
})",
               "the axis is one value",
               {{3}, {}}}};
  for (const auto& row : rows) {
    Program p = program_of(row.text);
    const ir::TensorId s = p.graph.find_tensor("s");
    p.graph.tensor(s).shape.reset();
    p.buffers[static_cast<size_t>(s.index)] = {};
    auto e = Executor::create(p, ops::builtin_ops());
    ASSERT_TRUE(e) << e.status().to_string();
    std::vector<ir::TensorData> values;
    std::vector<ir::TensorView> inputs;
    for (size_t i = 0; i < row.inputs.size(); ++i)
      values.push_back(ir::TensorData::zeros(p.graph.tensor(p.graph.inputs()[i]).dtype, row.inputs[i]));
    for (const ir::TensorData& value : values) inputs.push_back(value.view());
    const Status status = (*e)->run(inputs);
    EXPECT_NE(status.to_string().find(row.problem), std::string::npos) << status.to_string();
  }
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
