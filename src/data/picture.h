// Pictures as files hold them: jpg, png and bmp, recognized by content. The pixels are those of OpenCV's imread with
// IMREAD_COLOR (in RGB instead of BGR order) or IMREAD_GRAYSCALE: turned as EXIF says, alpha dropped, 16 bits cut to 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace orknn::data {

// Pixels row by row from the top, channels together: 1 (grey) or 3 (red, green, blue).
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;  // height * width * channels
  std::string remark;           // what the decoder overlooked, e.g. that the end of a jpg is missing; usually empty
};

enum class Colour { Grey, Rgb };

// True when the bytes begin like a jpg, png or bmp file.
bool is_picture(std::span<const std::byte> bytes);
// The same for a file; an error when it cannot be read.
Result<bool> is_picture_file(const std::string& path);

Result<Picture> decode_picture(std::span<const std::byte> bytes, Colour colour);
Result<Picture> read_picture(const std::string& path, Colour colour);

}  // namespace orknn::data
