#include "import/lower/strided_slice.h"

#include "emitted.h"

namespace orknn::importer {
namespace {
using namespace tests;
using ir::Dims;

struct Cut {
  const char* name;
  std::vector<int64_t> begin, end, strides;
  SliceMasks masks;
  Dims dims;
  Values values;
};

TEST(StridedSlice, FormsOfPython) {
  const Cut cuts[] = {
      {"[1:2, 0:3:2]", {1, 0}, {2, 3}, {1, 2}, {}, {1, 2}, {3, 5}},
      {"[-1]", {-1}, {0}, {1}, {.shrink = 1}, {3}, {3, 4, 5}},
      {"[..., 1]", {0, 1}, {0, 2}, {1, 1}, {.ellipsis = 1, .shrink = 2}, {2}, {1, 4}},
      {"[:, newaxis, ::-1]",
       {0, 0, 0},
       {0, 0, 0},
       {1, 1, -1},
       {.begin = 5, .end = 5, .new_axis = 2},
       {2, 1, 3},
       {2, 1, 0, 5, 4, 3}},
      {"[0:9, -2:]", {0, -2}, {9, 0}, {1, 1}, {.end = 2}, {2, 2}, {1, 2, 4, 5}},
      {"[:, 1:1+2]", {0, 1}, {0, 2}, {1, 1}, {.begin = 1, .end = 1, .end_is_offset = true}, {2, 2}, {1, 2, 4, 5}},
  };
  for (const Cut& c : cuts) {
    SCOPED_TRACE(c.name);
    Emitted m;
    const auto y =
        strided_slice(m.e, m.counted({2, 3}), m.e.add_ints("begin", c.begin), m.e.add_ints("end", c.end), c.strides, c.masks);
    EXPECT_EQ(m.values(y), c.values);
    EXPECT_EQ(m.dims(y), c.dims);
  }
}

TEST(StridedSlice, WhatIsReversedHasAShape) {
  Emitted m;
  EXPECT_EQ(m.dims(m.e.reverse(m.input({2, 3}), {0, 1})), (Dims{2, 3}));
}

TEST(StridedSlice, RolledElementsComeInAtTheOtherEnd) {
  Emitted m;
  const ir::TensorId x = m.counted({2, 3});
  EXPECT_EQ(m.values(roll(m.e, x, {1}, {1})), (Values{2, 0, 1, 5, 3, 4}));
  EXPECT_EQ(m.values(roll(m.e, x, {-4, 3}, {-1, 0})), (Values{4, 5, 3, 1, 2, 0}));
  EXPECT_EQ(m.values(roll(m.e, x, {0}, {0})), (Values{0, 1, 2, 3, 4, 5}));
  const auto in_order = roll(m.e, x, {2}, {});
  EXPECT_EQ(m.values(in_order), (Values{4, 5, 0, 1, 2, 3}));
  EXPECT_EQ(m.dims(in_order), (Dims{2, 3}));
  EXPECT_FALSE(roll(m.e, x, {1, 1}, {0}));
  EXPECT_FALSE(roll(m.e, x, {1, 1}, {}));
  EXPECT_FALSE(roll(m.e, x, {1}, {2}));
}

TEST(StridedSlice, RefusesImpossibleCuts) {
  Emitted m;
  const ir::TensorId x = m.counted({2, 3}), one = m.e.add_ints("one", {1}), two = m.e.add_ints("two", {1, 1});
  EXPECT_FALSE(strided_slice(m.e, x, one, one, {0}, {}));
  EXPECT_FALSE(strided_slice(m.e, x, one, two, {1}, {}));
  EXPECT_FALSE(strided_slice(m.e, x, two, two, {1, 1}, {.ellipsis = 3}));
  const ir::TensorId three = m.e.add_ints("three", {0, 0, 0});
  EXPECT_FALSE(strided_slice(m.e, x, three, three, {1, 1, 1}, {}));
}

TEST(StridedSlice, BeginsWhereTheDataSays) {
  Emitted m;
  const ir::TensorId begin = m.input({2}, DType::Int32), x = m.counted({2, 3});
  EXPECT_EQ(m.dims(strided_slice(m.e, x, begin, m.e.add_ints("end", {0, 0}), {1, 1}, {.begin = 2, .end = 2, .shrink = 1})),
            (Dims{3}));
  EXPECT_TRUE(slice_of_size(m.e, x, begin, m.e.add_ints("size", {1, 2})));
  EXPECT_FALSE(slice_of_size(m.e, x, begin, m.e.add_ints("size", {1, -1})));
}

TEST(StridedSlice, SizesAddUp) {
  Emitted m;
  const ir::TensorId x = m.counted({7}), open = m.graph.add_tensor("open", DType::Float32, ir::Shape{ir::Dim()});
  const auto parts = split_to_sizes(m.e, x, -1, {2, -1, 1});
  ASSERT_TRUE(parts) << parts.status().to_string();
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ(m.values((*parts)[1]), (Values{2, 3, 4, 5}));
  for (const std::vector<int64_t>& sizes :
       {std::vector<int64_t>{2, -1, -1}, {2, 4}, {8, -1}, {8, -1, 0}, {-2, 9}, {}, {INT64_MAX, INT64_MAX}})
    EXPECT_FALSE(split_to_sizes(m.e, x, 0, sizes)) << ir::to_string(sizes);
  EXPECT_FALSE(split_to_sizes(m.e, x, 1, {7}));
  EXPECT_FALSE(split_to_sizes(m.e, open, 0, {-1, 1}));
  EXPECT_TRUE(split_to_sizes(m.e, open, 0, {3, 4}));
  EXPECT_TRUE(split_equally(m.e, x, 0, 7));
  EXPECT_FALSE(split_equally(m.e, x, 0, 3));
  EXPECT_FALSE(split_equally(m.e, x, 0, 0));
  EXPECT_FALSE(split_equally(m.e, x, 0, -1));
}

TEST(StridedSlice, MirrorsWithAndWithoutTheEdge) {
  Emitted m;
  const ir::TensorId x = m.counted({4});
  EXPECT_EQ(m.values(mirror_pad(m.e, x, {2, 1}, false)), (Values{2, 1, 0, 1, 2, 3, 2}));
  EXPECT_EQ(m.values(mirror_pad(m.e, x, {1, 1}, true)), (Values{0, 0, 1, 2, 3, 3}));
  EXPECT_EQ(m.values(mirror_pad(m.e, x, {2, 3}, true)), (Values{1, 0, 0, 1, 2, 3, 3, 2, 1}));
  EXPECT_FALSE(mirror_pad(m.e, x, {5, 0}, true));
  EXPECT_FALSE(pads_of_rows({1, 2, 3}));
  EXPECT_FALSE(pads_of_rows({1, -2}));
}
}  // namespace
}  // namespace orknn::importer
