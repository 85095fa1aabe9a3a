#include "import/lower/norms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "emitted.h"

namespace orknn::importer {
namespace {
using Numbers = std::vector<double>;

TEST(LowerNorms, MomentsKeepOrDropTheirAxes) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({2, 2}, {1, 3, 5, 9});
  const Moments kept = moments(f.e, x, {1}, true), dropped = moments(f.e, x, {1}, false);
  EXPECT_EQ(f.values(kept.mean), (Numbers{2, 7}));
  EXPECT_EQ(f.values(kept.variance), (Numbers{1, 4}));
  EXPECT_EQ(f.dims(kept.variance), (ir::Dims{2, 1}));
  EXPECT_EQ(f.dims(dropped.mean), (ir::Dims{2}));
}

TEST(LowerNorms, BatchesAreNormalizedByThemselvesOrByWhatIsStored) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({2, 1, 1}, {1, 3});
  const NormParameters p{f.floats({1}, {2}), f.floats({1}, {10}), 0.0};
  const auto own = batch_norm(f.e, x, p, {});
  ASSERT_TRUE(own);
  EXPECT_EQ(f.values(*own), (Numbers{8, 12}));
  const auto stored = batch_norm(f.e, x, p, {f.floats({1}, {1}), f.floats({1}, {4})});
  ASSERT_TRUE(stored);
  EXPECT_EQ(f.values(*stored), (Numbers{10, 12}));
}

TEST(LowerNorms, AbsentFactorsAreOnes) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 2, 2}, {1, 3, 10, 30});
  const auto groups = group_norm(f.e, x, 2, {{}, {}, 0.0}), instances = instance_norm(f.e, x, {{}, {}, 0.0}),
             layers = layer_norm(f.e, x, {2}, {{}, {}, 0.0});
  for (const auto* y : {&groups, &instances, &layers}) {
    ASSERT_TRUE(*y) << y->status().to_string();
    const Numbers values = f.values(**y);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i], i % 2 == 0 ? -1 : 1, 1e-5);
  }
}

TEST(LowerNorms, VectorsGetLengthOne) {
  tests::Emitted f;
  const Numbers y = f.values(l2_normalized(f.e, f.floats({1, 2}, {3, 4}), {1}, 0));
  EXPECT_NEAR(y[0], 0.6, 1e-6);
  EXPECT_NEAR(y[1], 0.8, 1e-6);
}

TEST(LowerNorms, ShapesThatDoNotFitAreRefused) {
  tests::Emitted f;
  const ir::TensorId x = f.floats({1, 3}, {1, 2, 3});
  EXPECT_FALSE(group_norm(f.e, x, 2, {}));
  EXPECT_FALSE(group_norm(f.e, x, 0, {}));
  EXPECT_FALSE(instance_norm(f.e, x, {}));
  EXPECT_FALSE(layer_norm(f.e, x, {2}, {}));
  EXPECT_FALSE(rms_norm(f.e, x, {1, 1, 3}, {}));
  EXPECT_FALSE(batch_norm(f.e, f.floats({3}, {1, 2, 3}), {}, {}));
}

}  // namespace
}  // namespace orknn::importer
