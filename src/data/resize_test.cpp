// The scaler against checksums of OpenCV's results (tests/data/make_resize_golden.py).
#include "data/resize.h"

#include <gtest/gtest.h>

#include "golden.h"

namespace orknn::data {
namespace {

Picture noise(int64_t height, int64_t width, int64_t channels) {
  Picture picture{height, width, channels, std::vector<uint8_t>(static_cast<size_t>(height * width * channels)), {}};
  auto state = static_cast<uint32_t>(height * 65536 + width * 256 + channels);
  for (uint8_t& byte : picture.pixels) byte = static_cast<uint8_t>((state = state * 1664525u + 1013904223u) >> 24);
  return picture;
}

TEST(Resize, EqualsOpenCv) {
  const auto lines = tests::golden_lines("resize.golden");
  ASSERT_GT(lines.size(), 90u);
  for (const auto& line : lines) {
    const auto number = [&](size_t i) { return std::stoll(line[i]); };
    const Picture picture = resize_linear(noise(number(0), number(1), number(2)), number(3), number(4));
    EXPECT_EQ(tests::crc32(picture.pixels), line[5])
        << line[0] << "x" << line[1] << "x" << line[2] << " to " << line[3] << "x" << line[4];
    EXPECT_EQ(picture.height, number(3));
    EXPECT_EQ(picture.width, number(4));
  }
}

TEST(Resize, KeepsConstantPictures) {
  for (int value : {0, 1, 127, 254, 255})
    for (const auto& [height, width] : {std::pair{3, 50}, {7, 7}, {64, 1}, {20, 26}}) {
      const Picture flat{10, 13, 3, std::vector<uint8_t>(390, static_cast<uint8_t>(value)), {}};
      for (uint8_t byte : resize_linear(flat, height, width).pixels) ASSERT_NEAR(byte, value, 1);
    }
}

}  // namespace
}  // namespace orknn::data
