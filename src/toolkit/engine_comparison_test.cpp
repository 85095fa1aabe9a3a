// What counts as equal up to rounding, and what does not.
#include "toolkit/engine_comparison.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/half.h"
#include "ops/eval.h"
#include "silicon/drivers/board.h"
#include "small_network.h"
#include "stand_in_kernel.h"

namespace orknn::toolkit {
namespace {

LayerComparison compared(const std::vector<float>& a, const std::vector<float>& b, const std::vector<double>& allowed = {}) {
  const auto halves = [](const std::vector<float>& v) {
    const ir::Dims dims{static_cast<int64_t>(v.size())};
    return ir::convert(ir::TensorData::from<float>(dims, v).view(), DType::Float16);
  };
  LayerComparison layer;
  compare_elements(halves(a).view(), halves(b).view(), allowed, layer);
  return layer;
}

TEST(EngineComparison, OneUnitOfAFloat16NumberIsRounding) {
  const LayerComparison same = compared({1, -2, NAN, INFINITY}, {1, -2, NAN, INFINITY});
  EXPECT_EQ(same.unequal, 0);
  const LayerComparison unit = compared({1, 1000, 0}, {1 + 0x1p-10f, 1000.5f, 0x1p-24f});
  EXPECT_EQ(unit.unequal, 3);
  EXPECT_EQ(unit.beyond, 0);
  EXPECT_EQ(unit.largest_units, 1);
  const LayerComparison two = compared({1, 1000, 0}, {1 + 0x1p-9f, 1001, 0x1p-23f});
  EXPECT_EQ(two.beyond, 3);
  EXPECT_EQ(two.largest_units, 2);
  EXPECT_EQ(compared({1, 1000, 0}, {1 + 0x1p-9f, 1001, 0x1p-23f}, {0x1p-10, 0.5, 0}).beyond, 1);
}

TEST(EngineComparison, NumbersAreNoneWhereTheOtherEngineHasNone) {
  EXPECT_EQ(compared({NAN, 1, INFINITY}, {1, NAN, 65504}, {9e9, 9e9, 9e9}).beyond, 3);
}

TEST(EngineComparison, IntegersAreEqual) {
  const ir::TensorData a = ir::TensorData::vector(std::vector<int64_t>{1, 2, 3}),
                       b = ir::TensorData::vector(std::vector<int64_t>{1, 4, 3});
  LayerComparison layer;
  compare_elements(a.view(), b.view(), {9, 9, 9}, layer);
  EXPECT_EQ(layer.beyond, 1);
  EXPECT_EQ(layer.largest_units, 2);
}

TEST(EngineComparison, StepsThatEnlargeDifferences) {
  const auto keeps = [](const char* op, ir::Attributes attributes = {}, int32_t operand = -1) {
    return keeps_distances({op, std::move(attributes), operand}, ops::builtin_ops(), ThreadPool::shared()).value();
  };
  for (const char* op : {"Relu", "Clip", "Tanh", "Sigmoid", "HardSigmoid", "Abs"}) EXPECT_TRUE(keeps(op)) << op;
  for (const char* op : {"HardSwish", "Mish", "Gelu", "Exp", "Log"}) EXPECT_FALSE(keeps(op)) << op;
  EXPECT_TRUE(keeps("Elu", {{"alpha", 1.0}}));
  EXPECT_FALSE(keeps("Elu", {{"alpha", 2.0}}));
  for (const char* op : {"Add", "Sub", "Max", "Min"}) EXPECT_TRUE(keeps(op, {}, 1)) << op;
  for (const char* op : {"Mul", "Div"}) EXPECT_FALSE(keeps(op, {}, 1)) << op;
}

TEST(EngineComparison, ErrorsNameTheFirstTensor) {
  EngineComparison total, bad;
  bad.layers.resize(1);
  bad.tensors = 3;
  bad.different = 1;
  bad.first_different = "logits";
  EXPECT_TRUE(status_of(total));
  merge(total, bad);
  merge(total, bad);
  EXPECT_EQ(total.tensors, 6u);
  EXPECT_NE(status_of(total).to_string().find("'logits'"), std::string::npos);
}

// A model for the RK3588, and random bytes for its input.
struct Networked {
  explicit Networked(silicon::SmallNetwork small) : input(std::move(small.input)) {
    auto m = std::make_shared<format::Model>();
    m->name = "small";
    m->target_platform = "rk3588";
    m->programs.push_back(std::move(small.program));
    model = std::move(m);
  }
  Status feed(runtime::Session& session) const {
    runtime::InputData data;
    data.dtype = input.dtype();
    data.data = input.data();
    data.bytes = input.bytes();
    data.dims = input.dims();
    data.pass_through = true;
    return session.set_input(0, data);
  }
  ir::TensorData input;
  std::shared_ptr<const format::Model> model;
};

TEST(EngineComparison, TheNpuOfTheSessionComputesTheStreams) {
  using Driver = silicon::StandInKernel::Driver;
  for (const Driver driver : {Driver::Rocket, Driver::Rknpu}) {
    silicon::StandInKernel kernel(driver, "rk3588");
    const Networked network{silicon::SmallNetwork()};
    const auto simulator = runtime::Session::open(network.model), streams = runtime::Session::open(network.model);
    ASSERT_TRUE(simulator) << simulator.status().to_string();
    ASSERT_TRUE(streams) << streams.status().to_string();
    ASSERT_TRUE((*streams)->use_registers([&] { return silicon::open_board("rk3588", kernel); }));
    const auto result = compare_engines(**simulator, **streams, ThreadPool::shared(),
                                        [&](runtime::Session& session) { return network.feed(session); });
    ASSERT_TRUE(result) << result.status().to_string();
    for (const std::string& c : kernel.complaints) ADD_FAILURE() << c;
    EXPECT_GE(kernel.jobs, 5u);
    EXPECT_GE(kernel.tasks_run, 5u);
    EXPECT_EQ(result->different, 0u);
    EXPECT_EQ(result->unit, driver == Driver::Rocket ? "rocket (/dev/accel/accel0)" : "rknpu (/dev/dri/renderD128)");
    EXPECT_NE(engine_comparison_text(*result, false).find(result->unit), std::string::npos);
  }
}

TEST(EngineComparison, TheChipModelComputesTheStreamsWhereThereIsNoNpu) {
  const Networked network{silicon::SmallNetwork()};
  const auto result =
      compare_engines(network.model, ThreadPool::shared(), [&](runtime::Session& session) { return network.feed(session); });
  ASSERT_TRUE(result) << result.status().to_string();
  EXPECT_EQ(result->different, 0u);
  EXPECT_EQ(result->unit, "the chip model");
}

}  // namespace
}  // namespace orknn::toolkit
