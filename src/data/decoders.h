// The three decoders of picture.h, and what they share.
#pragma once

#include "data/picture.h"

namespace orknn::data {

// Pixels as stored (not yet turned); `orientation` gets the EXIF value 1..8 where the file has one.
Result<Picture> decode_jpeg(std::span<const std::byte> bytes, Colour colour, int& orientation);
Result<Picture> decode_png(std::span<const std::byte> bytes, Colour colour, int& orientation);
Result<Picture> decode_bmp(std::span<const std::byte> bytes, Colour colour);

// A picture of the stated size with room for its pixels, or an error when OpenCV would refuse the size or when it is out of
// all proportion to the file, so that a damaged header cannot demand gigabytes.
Result<Picture> make_picture(uint64_t height, uint64_t width, Colour colour, size_t file_bytes);

// OpenCV's grey of its bmp and CMYK readers: weights of 14 bits.
inline uint8_t grey_of(int red, int green, int blue) {
  constexpr int kRed = 4899, kGreen = 9617, kBlue = (1 << 14) - kRed - kGreen;
  return static_cast<uint8_t>((red * kRed + green * kGreen + blue * kBlue + (1 << 13)) >> 14);
}

}  // namespace orknn::data
