#include "base/nearest_name.h"

#include <gtest/gtest.h>

namespace orknn {

TEST(NearestName, SlipsAreSeen) {
  const std::vector<std::string_view> chips{"rk3566", "rk3588", "rv1106"};
  EXPECT_EQ(nearest_name("rk3558", chips), "rk3588") << "one letter differs, of two such the first is not better";
  EXPECT_EQ(nearest_name("rk358", chips), "rk3588");
  EXPECT_EQ(nearest_name("rk5388", chips), "rk3588") << "neighbours changed places";
  EXPECT_EQ(did_you_mean("rv1160", chips), "did you mean 'rv1106'?");
}

TEST(NearestName, OtherNamesAreNoSlips) {
  const std::vector<std::string_view> chips{"rk3566", "rk3588"};
  EXPECT_EQ(nearest_name("jetson", chips), "");
  EXPECT_EQ(did_you_mean("", chips), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), chips), "");
}

}  // namespace orknn
