// Placement follows the operator lists: a row per limit, with the sentence the user reads.
#include "compile/place.h"

#include <gtest/gtest.h>

#include "compile/cpu_ops.h"
#include "compile/npu_ops.h"
#include "ir/text.h"
#include "ops/eval.h"

namespace orknn::compile {
namespace {

struct Case {
  const char* chip;
  const char* graph;          // the last node is asked about
  const char* npu;            // "" = on the NPU, else part of the objection
  const char* cpu = nullptr;  // same for the CPU list; nullptr = not asked
};

const char* const kConv = R"(graph "g" (%x: float16[1,32,20,20]) -> (%y) {
  %w: float16[8,32,3,3] = const splat 0.5
  %y: float16[1,8,20,20] = Conv(%x, %w) {pads = [1,1,1,1]}
})";
const char* const kComputedWeights = R"(graph "g" (%x: float16[1,32,20,20], %w: float16[8,32,3,3]) -> (%y) {
  %y: float16[1,8,20,20] = Conv(%x, %w) {pads = [1,1,1,1]}
})";
const char* const kResize = R"(graph "g" (%x: float16[1,8,20,20], %s: float32[4]) -> (%y) {
  %y: float16[1,8,40,40] = Resize(%x, _, %s) {mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor"}
})";

const char* const kReduceChannels = R"(graph "g" (%x: float16[1,64,40,40]) -> (%y) {
  %a: int64[1] = const {1}
  %y: float16[1,1,40,40] = ReduceMean(%x, %a)
})";
const char* const kInterpolate = R"(graph "g" (%x: float16[1,8,20,20], %s: float32[4]) -> (%y) {
  %y: float16[1,8,160,160] = Resize(%x, _, %s) {mode = "linear"}
})";
const char* const kBoxes = R"(graph "g" (%x: float16[1,20,20,8]) -> (%y) {
  %s: int64[3] = const {1,800,4}
  %y: float16[1,800,4] = Reshape(%x, %s)
})";

const Case kCases[] = {
    {"rk3588", kConv, "", ""},
    {"rk3566", kConv, ""},
    {"rv1106", kConv, "does not compute Conv in float16", "not a CPU operator"},
    {"rv1106b", kConv, "does not compute Conv in float16", "not a CPU operator"},
    {"rk2118", kConv, "", "computes nothing on its CPU"},
    {"rv1106", R"(graph "g" (%x: int8[1,32,20,20]) -> (%y) {
  %w: int8[8,32,3,3] = const splat 1
  %y: int8[1,8,20,20] = Conv(%x, %w) {pads = [1,1,1,1]}
})",
     ""},
    {"rk3588", kComputedWeights, ""},
    {"rk3566", kComputedWeights, ""},
    {"rk2118", kComputedWeights, "weights are not constant"},
    {"rk1808", kComputedWeights, "weights are not constant"},
    {"rk3588", R"(graph "g" (%x: float16[1,32,20,20], %w: float16[8,16,3,3]) -> (%y) {
  %y: float16[1,8,20,20] = Conv(%x, %w) {pads = [1,1,1,1], group = 2}
})",
     "weights are not constant", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,32,40,40]) -> (%y) {
  %w: float16[8,32,33,33] = const splat 0.5
  %y: float16[1,8,8,8] = Conv(%x, %w)
})",
     "kernel height 33 is not in 1..31"},
    {"rk3588", R"(graph "g" (%x: float16[1,32,40,40]) -> (%y) {
  %w: float16[32,1,9,9] = const splat 0.5
  %y: float16[1,32,32,32] = Conv(%x, %w) {group = 32}
})",
     "depthwise kernel height 9 is not in 1..8"},
    {"rk3588", R"(graph "g" (%x: float16[1,32,40,40]) -> (%y) {
  %w: float16[32,32,8,8] = const splat 0.5
  %y: float16[1,32,5,5] = Conv(%x, %w) {strides = [8,8]}
})",
     "stride 8 is not in 1..7"},
    {"rk3588", R"(graph "g" (%x: float16[1,32,1,400]) -> (%y) {
  %w: float16[32,32,1,11] = const splat 0.5
  %y: float16[1,32,1,400] = Conv(%x, %w) {pads = [0,25,0,25], dilations = [1,5]}
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,3,8,8,8]) -> (%y) {
  %w: float16[8,3,3,3,3] = const splat 0.5
  %y: float16[1,8,6,6,6] = Conv(%x, %w)
})",
     "3-D convolution"},
    {"rk3588", R"(graph "g" (%x: float16[1,3,8,8200]) -> (%y) {
  %w: float16[8,3,3,3] = const splat 0.5
  %y: float16[1,8,6,8198] = Conv(%x, %w)
})",
     "8200 wide"},
    {"rk3566", R"(graph "g" (%x: float16[1,3,64,2048]) -> (%y) {
  %w: float16[8,3,7,7] = const splat 0.5
  %y: float16[1,8,58,2042] = Conv(%x, %w)
})",
     "does not fit the convolution buffer"},
    {"rk3588", R"(graph "g" (%x: float16[1,16,20,20]) -> (%y) {
  %w: float16[16,16,4,4] = const splat 0.5
  %y: float16[1,16,40,40] = ConvTranspose(%x, %w) {strides = [2,2], pads = [1,1,1,1]}
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,16,20,20]) -> (%y) {
  %w: float16[16,16,3,3] = const splat 0.5
  %y: float16[1,16,60,60] = ConvTranspose(%x, %w) {strides = [3,3]}
})",
     "stride 3 is not 1, 2, 4 or 8"},
    {"rk3562", R"(graph "g" (%x: float16[1,16,20,20]) -> (%y) {
  %w: float16[16,16,3,3] = const splat 0.5
  %y: float16[1,16,60,60] = ConvTranspose(%x, %w) {strides = [3,3]}
})",
     ""},
    {"rk3588", kResize, "", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8,20,20], %s: float32[4]) -> (%y) {
  %y: float16[1,8,50,50] = Resize(%x, _, %s) {mode = "linear"}
})",
     "not enlarging by whole factors", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8,20,20], %s: float32[4]) -> (%y) {
  %y: float16[1,8,40,40] = Resize(%x, _, %s) {mode = "cubic"}
})",
     "cubic", "cubic"},
    {"rk3588", R"(graph "g" (%x: float16[1,8,20,20]) -> (%y) {
  %y: float16[1,8,10,10] = MaxPool(%x) {kernel_shape = [2,2], strides = [2,2]}
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8,20,20]) -> (%y) {
  %y: float16[1,8,20,20] = MaxPool(%x) {kernel_shape = [9,9], pads = [4,4,4,4]}
})",
     "kernel 9 is not in 1..7", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8,20,20]) -> (%y) {
  %y: float16[1,8,1,1] = GlobalAveragePool(%x)
})",
     "", "not a CPU operator"},
    {"rk3566", R"(graph "g" (%x: float16[1,8,20,20]) -> (%y) {
  %y: float16[1,8,20,20] = Softmax(%x) {axis = 1}
})",
     "Softmax is not an NPU operator of rk3566", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8,20,20]) -> (%y) {
  %y: float16[1,8,20,20] = Softmax(%x) {axis = 1}
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[2,8,20,20]) -> (%y) {
  %y: float16[2,8,20,20] = Softmax(%x) {axis = 2}
})",
     "axis 2 is neither", "batch is not 1"},
    {"rk3588", R"(graph "g" (%x: int64[1,8]) -> (%y) {
  %y: int64[1,8] = Add(%x, %x)
})",
     "does not compute Add in int64", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,2,3,4,5]) -> (%y) {
  %y: float16[1,2,3,4,5] = Relu(%x)
})",
     "rank 5", "not a CPU operator"},
    {"rk3588", R"(graph "g" (%x: float16[1,8,5,5], %b: float16[1,8,1,5]) -> (%y) {
  %y: float16[1,8,5,5] = Sub(%x, %b)
})",
     "one value per channel", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8,5,5], %b: float16[1,8,1,5]) -> (%y) {
  %y: float16[1,8,5,5] = Add(%x, %b)
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8]) -> (%y) {
  %e: float16[] = const {2.5}
  %y: float16[1,8] = Pow(%x, %e)
})",
     "exponent is not 0", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,64,16,16]) -> (%y) {
  %y: float16[1,16,16,64] = Transpose(%x) {perm = [0,2,3,1]}
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,64,15,15]) -> (%y) {
  %y: float16[1,15,15,64] = Transpose(%x) {perm = [0,2,3,1]}
})",
     "permutation 0231", ""},
    {"rk3588", kReduceChannels, ""},
    {"rk3566", kReduceChannels, ""},
    {"rk3588", R"(graph "g" (%x: float16[1,16,6,6]) -> (%y) {
  %y: float16[1,1,1,1] = ReduceMean(%x)
})",
     ""},
    {"rk1808", R"(graph "g" (%x: float16[1,16,6,6]) -> (%y) {
  %y: float16[1,1,1,1] = ReduceMean(%x)
})",
     "reduces over rows or columns"},
    {"rk3588", R"(graph "g" (%x: float16[1,16,64,64]) -> (%y) {
  %y: float16[1,1,1,1] = ReduceMean(%x)
})",
     "extent 64 is not in 1..31", ""},
    {"rk3588", R"(graph "g" (%x: float16[2,16,6,6]) -> (%y) {
  %y: float16[1,1,1,1] = ReduceMean(%x)
})",
     "more than channels, rows and columns", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,16,64]) -> (%y) {
  %a: int64[1] = const {2}
  %y: float16[1,16,1] = ReduceMean(%x, %a)
})",
     "rank 3 is not 4", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,16,6,6]) -> (%y) {
  %a: int64[1] = const {1}
  %y: float16[1,1,6,6] = ReduceMax(%x, %a)
})",
     "ReduceMax is not an NPU operator", ""},
    {"rk3588", R"(graph "g" (%x: float16[1,16,20,40]) -> (%y) {
  %y: float16[1,16,5,16] = AveragePool(%x) {kernel_shape = [4,10], strides = [4,2]}
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,16,20,20]) -> (%y) {
  %y: float16[1,16,20,20] = AveragePool(%x) {kernel_shape = [3,3], pads = [1,1,1,1]}
})",
     "padding is not counted", ""},
    // Floats become integers on the NPU; the other way needs the CPU.
    {"rk3588", R"(graph "g" (%x: float16[1,16,20,20]) -> (%y) {
  %s: float32[] = const {0.5}
  %z: int8[] = const {3}
  %y: int8[1,16,20,20] = QuantizeLinear(%x, %s, %z)
})",
     ""},
    {"rk3588", R"(graph "g" (%x: int8[1,16,20,20]) -> (%y) {
  %s: float32[] = const {0.5}
  %z: int8[] = const {3}
  %y: float32[1,16,20,20] = DequantizeLinear(%x, %s, %z)
})",
     "DequantizeLinear is not an NPU operator", ""},
    {"rk3588", kInterpolate, ""},
    {"rk3566", kInterpolate, "does not interpolate", ""},
    {"rk3588", kBoxes, "a last axis of 4 is made on the CPU", ""},
    {"rk3566", kBoxes, "a last axis of 4 is made on the CPU", ""},
    {"rk3576", kBoxes, ""},
    {"rk3588", R"(graph "g" (%x: float16[1,N]) -> (%y) {
  %y: float16[1,N] = Relu(%x)
})",
     "known only at run time"},
    {"rk3588", R"(graph "g" (%x: float16[1,8]) -> (%y) {
  %y: float16[1,8] = Atan(%x)
})",
     "Atan is not an NPU operator", "not a CPU operator"},
    {"rk3576", R"(graph "g" (%x: float16[1,8], %z: float16[1,8]) -> (%y) {
  %y: bool[1,8] = Greater(%x, %z)
})",
     ""},
    {"rk3588", R"(graph "g" (%x: float16[1,8], %z: float16[1,8]) -> (%y) {
  %y: bool[1,8] = Greater(%x, %z)
})",
     "not an NPU operator of rk3588", ""},
};

TEST(Place, OperatorLists) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(std::string(c.chip) + ": " + c.graph);
    const auto graph = ir::parse(c.graph);
    ASSERT_TRUE(graph) << graph.status().to_string();
    const ir::Node& node = graph->node(graph->order().back());
    const NodeFacts facts(*graph, node, *platform::find(c.chip));
    const auto expect = [](const std::string& found, const char* wanted) {
      if (*wanted)
        EXPECT_NE(found.find(wanted), std::string::npos) << found;
      else
        EXPECT_EQ(found, "");
    };
    expect(npu_objection(facts), c.npu);
    if (c.cpu) expect(cpu_objection(facts), c.cpu);
  }
}

TEST(Place, OverridesReasonsAndWarnings) {
  auto graph = ir::parse(R"(graph "g" (%x: float16[1,8,5,5]) -> (%c) {
  %a: float16[1,8,5,5] = Relu(%x) "first"
  %b: float16[1,8,5,5] = Relu(%a) "second"
  %c: float16[1,8,5,5] = Atan(%b) "third"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  std::vector<std::string> warnings;
  CompileOptions options;
  options.op_target = {{"a", "cpu"}, {"Atan", "npu"}, {"nothing", "auto"}};
  options.warn = [&](std::string_view text) { warnings.emplace_back(text); };
  const auto tasks = place(*graph, options);
  ASSERT_TRUE(tasks) << tasks.status().to_string();
  EXPECT_EQ((*tasks)[0].device, format::Device::Cpu);
  EXPECT_NE((*tasks)[0].reason.find("op_target says cpu"), std::string::npos);
  EXPECT_EQ((*tasks)[1].device, format::Device::Npu);
  EXPECT_EQ((*tasks)[2].device, format::Device::Cpu);
  EXPECT_EQ((*tasks)[2].reason.find("not on the vendor's operator list; runs on the CPU reference kernel"), 0u)
      << (*tasks)[2].reason;
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_NE(warnings[0].find("'third'"), std::string::npos);
  EXPECT_NE(warnings[1].find("The Op of 'Atan'"), std::string::npos);
  EXPECT_NE(warnings[2].find("'nothing'"), std::string::npos);
}

// A border wider than a convolution can pad is a layer before it.
TEST(Place, WideBorders) {
  auto graph = ir::parse(R"(graph "g" (%x: float16[1,32,1,400]) -> (%y) {
  %w: float16[32,32,1,11] = const splat 0.5
  %y: float16[1,32,1,400] = Conv(%x, %w) {pads = [0,25,0,25], dilations = [1,5]} "wide"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  CompileOptions options;
  options.platform = platform::find("rk3588");
  auto result = estimate(std::move(*graph), options);
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_NE(result->program.tasks[0].reason.find("padded before it"), std::string::npos) << result->program.tasks[0].reason;
  ASSERT_EQ(result->costs[0].steps.size(), 2u);
  EXPECT_EQ(result->costs[0].steps[1].work, Step::Work::Move);
  EXPECT_EQ(result->costs[0].steps[1].bytes, 2.0 * 2 * 32 * 400);
}

// Generation 1 computes nothing on its CPU unless it is told to.
TEST(Place, LeftoversOfTheFirstGenerationRunOnItsShader) {
  auto graph = ir::parse(R"(graph "g" (%x: float16[1,8,5,5]) -> (%b) {
  %a: float16[1,8,5,5] = Atan(%x) "first"
  %b: float16[1,8,5,5] = Atan(%a) "second"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  CompileOptions options;
  options.platform = platform::find("rk1808");
  options.op_target = {{"second", "cpu"}};
  const auto tasks = place(*graph, options);
  ASSERT_TRUE(tasks) << tasks.status().to_string();
  EXPECT_EQ((*tasks)[0].device, format::Device::Npu);
  EXPECT_NE((*tasks)[0].reason.find("runs on the shader"), std::string::npos) << (*tasks)[0].reason;
  EXPECT_EQ((*tasks)[1].device, format::Device::Cpu);
}

TEST(Place, ReasonsNameTheOpAndSayThingsOnce) {
  auto graph = ir::parse(R"(graph "g" (%x: float16[1,64], %p: float16[1,8,20,20], %s: float32[4]) -> (%y, %z) {
  %w: float16[64,32] = const splat 0.5
  %y: float16[1,32] = Gemm(%x, %w) "gemm"
  %z: float16[1,8,40,40] = Resize(%p, _, %s) {mode = "cubic"} "resize"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  const auto tasks = place(*graph, {});
  ASSERT_TRUE(tasks) << tasks.status().to_string();
  EXPECT_EQ((*tasks)[0].reason.find("Gemm runs as "), 0u) << (*tasks)[0].reason;
  const std::string& cubic = (*tasks)[1].reason;
  EXPECT_NE(cubic.find("mode cubic"), std::string::npos) << cubic;
  EXPECT_EQ(cubic.find("mode cubic"), cubic.rfind("mode cubic")) << cubic;
}

// What is not simulated is said, and so are names that nothing has.
TEST(Place, RemarksOnTargets) {
  auto graph = ir::parse(R"(graph "g" (%x: float16[1,8,5,5]) -> (%b) {
  %a: float16[1,8,5,5] = Relu(%x) "first"
  %b: float16[1,8,5,5] = Sigmoid(%a) "second"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  const auto remarks = remarks_on_targets(*graph, {{"first", "gpu"}, {"Sigmoid", "cpu"}, {"b", "npu"}, {"third", "cpu"}},
                                          *platform::find("rv1106"));
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[0].find("'first' to the gpu, which rv1106 does not have"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[1].find("'third'"), std::string::npos) << remarks[1];
}

TEST(Place, TheGpuTakesWhatIsSentThere) {
  const auto graph = ir::parse(R"(graph "g" (%x: float16[1,8,5,5]) -> (%b) {
  %a: float16[1,8,5,5] = Relu(%x) "first"
  %b: float16[1,8,5,5] = Sigmoid(%a) "second"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  CompileOptions options;
  options.op_target = {{"Sigmoid", "gpu"}};
  for (const auto& [chip, device] : {std::pair("rk3588", format::Device::Gpu), std::pair("rv1106", format::Device::Cpu)}) {
    options.platform = platform::find(chip);
    const auto tasks = place(*graph, options);
    ASSERT_TRUE(tasks) << tasks.status().to_string();
    EXPECT_EQ((*tasks)[1].device, device) << chip;
    EXPECT_NE((*tasks)[0].device, format::Device::Gpu) << chip;
  }
}

// Operator list 3.3: a slope for all values or one per channel.
TEST(Place, SlopesOfIntegers) {
  const auto graph = ir::parse(R"(graph "g" (%x: int8[1,32,20,20]) -> (%a, %b) {
  %a: int8[1,32,20,20] = "int:PRelu"(%x) {multiplier = [1], shift = [1], slope_multiplier = [1], slope_shift = 2, low = -128, high = 127} "one"
  %b: int8[1,32,20,20] = "int:PRelu"(%x) {axis = 2, multiplier = [1], shift = [1], slope_multiplier = [1,1], slope_shift = 2, low = -128, high = 127} "rows"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  CompileOptions options;
  options.platform = platform::find("rk3588");
  const auto tasks = place(*graph, options);
  ASSERT_TRUE(tasks) << tasks.status().to_string();
  EXPECT_EQ((*tasks)[0].device, format::Device::Npu);
  EXPECT_EQ((*tasks)[1].device, format::Device::Cpu);
}

TEST(Place, ReportsEveryUnknownOperator) {
  auto graph = ir::parse(R"(graph "g" (%x: float16[1]) -> (%b) {
  %a: float16[1] = Foo(%x) "first"
  %b: float16[1] = Bar(%a) "second"
})");
  ASSERT_TRUE(graph);
  const auto tasks = place(*graph, {});
  ASSERT_FALSE(tasks);
  EXPECT_EQ(tasks.status().count(), 2u);
  EXPECT_NE(tasks.status().to_string().find("'second' (Bar)"), std::string::npos) << tasks.status().to_string();
}

// Operator list 3.6: convolutions are shared unless a table activation stands in the way, data moves as the chip's logs show it.
TEST(Place, LayersThatCoresShare) {
  const auto graph = ir::parse(R"(graph "g" (%x: int8[1,32,20,20]) -> (%d, %t) {
  %w: int8[32,32,1,1] = const splat 1
  %a: int8[1,32,20,20] = Conv(%x, %w) "plain"
  %b: int8[1,32,20,20] = "int:Conv"(%x, %w) {fused = strings["Swish"]} "table"
  %c: int8[1,32,20,20] = "int:Conv"(%x, %w) {fused = strings["Add","Relu"]} "integer"
  %d: int8[1,96,20,20] = Concat(%a, %b, %c) {axis = 1} "joined"
  %t: int8[1,20,20,32] = Transpose(%a) {perm = [0,2,3,1]} "turned"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  CompileOptions options;
  const auto masks = [&](std::string_view chip, bool single) {
    options.platform = platform::find(chip);
    options.single_core = single;
    const auto tasks = place(*graph, options);
    EXPECT_TRUE(tasks) << tasks.status().to_string();
    std::vector<uint32_t> found;
    if (tasks)
      for (const format::Task& t : *tasks) found.push_back(t.core_mask);
    return found;
  };
  EXPECT_EQ(masks("rk3588", false), (std::vector<uint32_t>{7, 1, 7, 7, 1}));
  EXPECT_EQ(masks("rk3576", false), (std::vector<uint32_t>{3, 3, 3, 3, 1}));
  EXPECT_EQ(masks("rk3588", true), (std::vector<uint32_t>{1, 1, 1, 1, 1}));
  EXPECT_EQ(masks("rk3566", false), (std::vector<uint32_t>{1, 1, 1, 1, 1}));
}

}  // namespace
}  // namespace orknn::compile
