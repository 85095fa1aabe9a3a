// float32 becomes float16, except where a rounded value would change a shape or a selection.
#include "compile/lower_float.h"

#include <gtest/gtest.h>

#include "compile/compile.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::compile {
namespace {

ir::Graph lowered(const char* text, std::vector<std::string>* warnings = nullptr) {
  auto graph = ir::parse(text);
  EXPECT_TRUE(graph) << graph.status().to_string();
  if (!graph) return {};
  EXPECT_TRUE(ir::infer_shapes(*graph, ops::builtin_ops()).is_ok());
  const Status s = lower_float(*graph, ops::builtin_ops(), [&](std::string_view w) {
    if (warnings) warnings->emplace_back(w);
  });
  EXPECT_TRUE(s.is_ok()) << s.to_string();
  return std::move(*graph);
}

DType type_of(const ir::Graph& g, std::string_view name) {
  const ir::TensorId t = g.find_tensor(name);
  return t ? g.tensor(t).dtype : DType::Undefined;
}

TEST(LowerFloat, TensorsConstantsAndResults) {
  std::vector<std::string> warnings;
  const ir::Graph g = lowered(R"(graph "g" (%x: float32[2], %i: int64[2], %d: float64[2]) -> (%y, %j, %e) {
  %w: float32[2] = const {0.5, -3.4e38}
  %tiny: float32[1] = const {1e-12}
  %a: float32[2] = Mul(%x, %w)
  %y: float32[2] = Add(%a, %tiny)
  %j: int64[2] = Add(%i, %i)
  %e: float64[2] = Add(%d, %d)
})",
                              &warnings);
  EXPECT_EQ(type_of(g, "x"), DType::Float16);
  EXPECT_EQ(type_of(g, "a"), DType::Float16);
  EXPECT_EQ(type_of(g, "y"), DType::Float16);
  EXPECT_EQ(type_of(g, "j"), DType::Int64);
  EXPECT_EQ(type_of(g, "e"), DType::Float64);
  const ir::TensorData* w = g.constant(g.find_tensor("w"));
  ASSERT_EQ(w->dtype(), DType::Float16);
  EXPECT_EQ(static_cast<float>(w->as<Half>()[1]), -65504.0f) << "a finite constant stays finite";
  EXPECT_GT(static_cast<float>(g.constant(g.find_tensor("tiny"))->as<Half>()[0]), 0.0f) << "an epsilon does not vanish";
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("'w'"), std::string::npos);
}

TEST(LowerFloat, CastsFollow) {
  const ir::Graph g = lowered(R"(graph "g" (%x: int32[2]) -> (%y) {
  %a: float32[2] = Cast(%x) {to = 1}
  %y: float32[2] = Relu(%a)
})");
  EXPECT_EQ(type_of(g, "a"), DType::Float16);
  EXPECT_EQ(g.producer_node(g.find_tensor("a"))->attributes.int_or("to", 0), 10);
}

TEST(LowerFloat, ScalesOfResizeStayExact) {
  const ir::Graph g = lowered(R"(graph "g" (%x: float32[1,1,3,3], %r: float32[4]) -> (%y, %z, %q) {
  %s: float32[4] = const {1, 1, 1.3333334, 1.3333334}
  %y = Resize(%x, _, %s)
  %z: float32[4] = Relu(%s)
  %m: float32[4] = Mul(%r, %s)
  %q = Resize(%x, _, %m)
})");
  const ir::Node* resize = g.producer_node(g.find_tensor("y"));
  EXPECT_EQ(g.tensor(resize->inputs[2]).dtype, DType::Float32);
  EXPECT_EQ(g.constant(resize->inputs[2])->as<float>()[2], 1.3333334f);
  EXPECT_EQ(type_of(g, "y"), DType::Float16);
  EXPECT_EQ(type_of(g, "z"), DType::Float16);
  EXPECT_EQ(type_of(g, "m"), DType::Float32) << "computed scales stay exact too";
  EXPECT_EQ(type_of(g, "r"), DType::Float32) << "so does an input that nothing else reads";
}

TEST(LowerFloat, InputsThatOnlyTheCpuReadsStayExact) {
  const ir::Graph g = lowered(R"(graph "g" (%ids: float32[2], %x: float32[2], %angle: float32[2]) -> (%i, %y, %z) {
  %i: int64[2] = Cast(%ids) {to = 7}
  %y: float32[2] = Relu(%x)
  %t: float32[2] = Tan(%angle)
  %z: float32[2] = Mul(%t, %x)
})");
  EXPECT_EQ(type_of(g, "ids"), DType::Float32) << "4097 is no half";
  EXPECT_EQ(type_of(g, "angle"), DType::Float32);
  EXPECT_EQ(type_of(g, "t"), DType::Float16) << "results are rounded";
  EXPECT_EQ(type_of(g, "x"), DType::Float16) << "the NPU reads it";
}

TEST(LowerFloat, RangeCountsInFloat32) {
  const ir::Graph g = lowered(R"(graph "g" (%n: float32[]) -> (%y) {
  %zero: float32[] = const {0}
  %step: float32[] = const {0.1}
  %y = Range(%zero, %n, %step)
})");
  EXPECT_EQ(type_of(g, "step"), DType::Float32);
  EXPECT_EQ(type_of(g, "y"), DType::Float16);
  EXPECT_EQ(g.producer_node(g.find_tensor("y"))->op, "Cast");
}

TEST(LowerFloat, BodiesWithOpenTypes) {
  const ir::Graph g = lowered(R"(graph "g" (%n: int64[], %c: bool[], %x: float32[2]) -> (%y) {
  %y = Loop(%n, %c, %x) {body = graph "b" (%i: int64[], %k: bool[], %prev) -> (%k2, %next) {
    %one: float32[] = const {1}
    %k2: bool[] = Identity(%k)
    %next = Add(%prev, %one)
  }, captures = 0}
})");
  EXPECT_EQ(type_of(g, "y"), DType::Float16);
  const ir::Node* loop = g.producer_node(g.find_tensor("y"));
  const ir::Graph& body = **loop->attributes.get<std::shared_ptr<const ir::Graph>>("body");
  EXPECT_EQ(type_of(body, "prev"), DType::Float16);
  EXPECT_EQ(type_of(body, "one"), DType::Float16);
  EXPECT_EQ(type_of(body, "next"), DType::Float16);
}

// What a body reads was lowered outside, whoever reads it inside.
TEST(LowerFloat, InputsOfBodiesHaveTheTypesOfWhatTheyAre) {
  const ir::Graph g = lowered(R"(graph "g" (%c: bool[], %x: float32[2]) -> (%y) {
  %y = If(%c, %x) {then_branch = graph "a" (%v: float32[2]) -> (%r) {
    %one: float32[] = const {1}
    %r: bool[2] = Less(%v, %one)
  }, else_branch = graph "b" (%v: float32[2]) -> (%r) {
    %r: bool[2] = Cast(%v) {to = 9}
  }}
})");
  EXPECT_EQ(type_of(g, "x"), DType::Float16);
  for (const char* name : {"then_branch", "else_branch"}) {
    const ir::Node* branch = g.producer_node(g.find_tensor("y"));
    const ir::Graph& body = **branch->attributes.get<std::shared_ptr<const ir::Graph>>(name);
    EXPECT_EQ(type_of(body, "v"), DType::Float16) << name;
  }
  for (const bool condition : {true, false}) {
    const std::vector<ir::TensorData> inputs{ir::TensorData::scalar<bool>(condition),
                                             ir::TensorData::from<Half>({2}, std::vector<Half>{Half(0.5f), Half(0.0f)})};
    const auto results = ops::eval_graph(g, ops::builtin_ops(), inputs);
    ASSERT_TRUE(results) << results.status().to_string();
    EXPECT_TRUE((*results)[0].as<bool>()[0]);
    EXPECT_EQ((*results)[0].as<bool>()[1], condition);
  }
}

TEST(Compile, KeepsTheSourceTypesOfPorts) {
  auto graph = ir::parse(R"(graph "g" (%x: float32[1,8,4,4]) -> (%y) {
  %a: float32[1,8,4,4] = Relu(%x)
  %b: float32[1,8,4,4] = Relu(%a)
  %y: float32[1,8,4,4] = Relu(%b)
})");
  ASSERT_TRUE(graph);
  CompileOptions options;
  options.normalization = {{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 1, 1, 1, 2}}};
  const auto program = compile(*graph, options);
  ASSERT_TRUE(program) << program.status().to_string();
  EXPECT_EQ(program->inputs[0].dtype, DType::Float32);
  EXPECT_EQ(program->inputs[0].layout, ir::Layout::NCHW);
  EXPECT_EQ(program->inputs[0].mean[7], 8);
  EXPECT_EQ(program->graph.tensor(program->inputs[0].tensor).dtype, DType::Float16);
  EXPECT_EQ(program->tasks.size(), 3u);
  EXPECT_EQ(program->arena_bytes, 2u * 8 * 16 * 2);
  EXPECT_EQ(program->buffers[static_cast<size_t>(program->outputs[0].tensor.index)].place, format::Buffer::Place::External);

  options.float_dtype = DType::Float32;
  const auto exact = compile(*graph, options);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->graph.tensor(exact->inputs[0].tensor).dtype, DType::Float32);
  options.float_dtype = DType::Int8;
  EXPECT_FALSE(compile(*graph, options));
}

}  // namespace
}  // namespace orknn::compile
