#include "ops/support/window.h"

#include <gtest/gtest.h>

namespace orknn::ops {
namespace {
using namespace ir;

// A window on one axis.
Window make(int64_t kernel, int64_t stride, int64_t dilation, int64_t begin, int64_t end, AutoPad auto_pad = AutoPad::NotSet,
            bool ceil_mode = false) {
  return {{kernel}, {stride}, {dilation}, {begin}, {end}, auto_pad, ceil_mode};
}

TEST(Window, output_extent) {
  const struct {
    const char* name;
    Window window;
    Dim input;
    const char* output;
  } rows[] = {
      {"valid", make(3, 1, 1, 0, 0), 8, "6"},
      {"padded_strided", make(3, 2, 1, 1, 1), 8, "4"},
      {"dilated", make(3, 1, 2, 0, 0), 8, "4"},
      {"same", make(3, 2, 1, 0, 0, AutoPad::SameUpper), 7, "4"},
      {"ceil", make(3, 2, 1, 0, 0, AutoPad::NotSet, true), 8, "4"},
      {"ceil_drops_a_window_in_the_right_padding", make(2, 2, 1, 0, 1, AutoPad::NotSet, true), 2, "1"},
      {"ceil_partial_only_window", make(5, 2, 1, 0, 0, AutoPad::NotSet, true), 4, "1"},
      {"symbol_kept", make(3, 1, 1, 1, 1), Dim::symbol("H"), "H"},
      {"symbol_shrinks", make(3, 1, 1, 0, 0), Dim::symbol("H"), "(H+-2)"},
      {"symbol_strided", make(3, 2, 1, 1, 1), Dim::symbol("H"), "(((H+-1)/2)+1)"},
      {"symbol_same", make(3, 1, 1, 0, 0, AutoPad::SameLower), Dim::symbol("H"), "H"},
      {"unknown", make(3, 2, 1, 1, 1), Dim(), "?"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const auto output = window_output(row.window, 0, row.input);
    ASSERT_TRUE(output) << output.status().to_string();
    EXPECT_EQ(output->to_string(), row.output);
  }
}

TEST(Window, kernel_larger_than_the_padded_input_is_refused) {
  EXPECT_FALSE(window_output(make(5, 1, 1, 0, 0), 0, Dim(4)));
  EXPECT_FALSE(window_output(make(1, 1, 1, -3, -2), 0, Dim(4)));
}

TEST(Window, settle_pads) {
  Window upper = make(4, 1, 1, 0, 0, AutoPad::SameUpper), lower = make(4, 1, 1, 0, 0, AutoPad::SameLower),
         short_kernel = make(1, 3, 1, 0, 0, AutoPad::SameUpper, true);
  const Dims input{6};
  settle_pads(upper, input);
  settle_pads(lower, input);
  settle_pads(short_kernel, input);
  EXPECT_EQ(upper.pads_begin, Dims{1});
  EXPECT_EQ(upper.pads_end, Dims{2});
  EXPECT_EQ(lower.pads_begin, Dims{2});
  EXPECT_EQ(lower.pads_end, Dims{1});
  EXPECT_EQ(short_kernel.pads_end, Dims{0});
  EXPECT_EQ(*window_output(upper, input), Dims{6});
  EXPECT_EQ(*window_output(short_kernel, input), Dims{2});
}

TEST(Window, outputs_inside) {
  const auto check = [](int64_t offset, int64_t stride, int64_t input, int64_t output) {
    const OutputRange range = outputs_inside(offset, stride, input, output);
    for (int64_t o = 0; o < output; ++o) {
      const int64_t at = o * stride + offset;
      EXPECT_EQ(at >= 0 && at < input, o >= range.begin && o < range.end)
          << "offset " << offset << " stride " << stride << " output " << o;
    }
  };
  for (int64_t offset = -7; offset <= 7; ++offset)
    for (int64_t stride = 1; stride <= 4; ++stride) check(offset, stride, 5, 6);
}

}  // namespace
}  // namespace orknn::ops
