#include "import/lower/window.h"

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace tests;
using ir::Dims;

TEST(Window, ElementsOfWindowsBecomeChannels) {
  Emitted m;
  const auto y = window_elements(m.e, m.counted({1, 2, 2, 3}), 2, {.kernel = {1, 2}});
  EXPECT_EQ(m.dims(y), (Dims{1, 4, 2, 2}));
  EXPECT_EQ(m.values(y), (Values{0, 1, 3, 4, 1, 2, 4, 5, 6, 7, 9, 10, 7, 8, 10, 11}));
  EXPECT_FALSE(window_elements(m.e, m.counted({1, 2, 2, 3}), 2, {.kernel = {1 << 14, 1 << 14}}));
}

TEST(Window, AFilterWithoutBiasHasTwoInputs) {
  Emitted m;
  const ir::TensorId x = m.counted({1, 1, 2, 2}), weights = m.counted({1, 1, 1, 1}), bias = m.counted({1});
  EXPECT_EQ((Filter{weights, {}}.inputs(x)), (std::vector{x, weights}));
  EXPECT_EQ((Filter{weights, bias}.inputs(x)), (std::vector{x, weights, bias}));
  EXPECT_EQ((Filter{.weights = weights, .bias = {}, .groups = 3}.attributes().int_or("group", 0)), 3);
}

TEST(Emitter, OneNumberIsNeeded) {
  Emitted m;
  EXPECT_EQ(*m.e.need_integer(m.e.add_ints("one", {7}), "to count"), 7);
  EXPECT_EQ(*m.e.need_number(m.e.add_scalar("half", 0.5), "to scale"), 0.5);
  const auto two = m.e.need_integer(m.e.add_ints("two", {7, 8}), "to count");
  ASSERT_FALSE(two);
  EXPECT_NE(two.status().to_string().find("must hold one number"), std::string::npos);
  EXPECT_FALSE(m.e.need_integer(m.e.add_scalar("half", 0.5), "to count"));
  EXPECT_FALSE(m.e.need_number(m.input({1}), "to scale"));
}

}  // namespace
}  // namespace orknn::importer
