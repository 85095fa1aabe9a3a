#include "data/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "base/files.h"
#include "data/decoders.h"

namespace orknn::data {
namespace {

enum class Kind { Unknown, Jpeg, Png, Bmp };

Kind kind_of(std::span<const std::byte> bytes) {
  const auto begins = [&](std::string_view mark) {
    return bytes.size() >= mark.size() && std::memcmp(bytes.data(), mark.data(), mark.size()) == 0;
  };
  if (begins("\xff\xd8\xff")) return Kind::Jpeg;
  if (begins("\x89PNG\r\n\x1a\n")) return Kind::Png;
  if (begins("BM")) return Kind::Bmp;
  return Kind::Unknown;
}

// Turns a picture as its EXIF orientation asks: from 5 on rows and columns change places; then mirroring.
Picture turned(Picture from, int orientation) {
  if (orientation < 2 || orientation > 8) return from;
  const bool transpose = orientation >= 5;
  const bool mirror_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool mirror_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Picture to = from;
  if (transpose) std::swap(to.height, to.width);
  uint8_t* out = to.pixels.data();
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x) {
      int64_t row = mirror_y ? to.height - 1 - y : y, column = mirror_x ? to.width - 1 - x : x;
      if (transpose) std::swap(row, column);
      const uint8_t* in = from.pixels.data() + (row * from.width + column) * from.channels;
      out = std::copy_n(in, from.channels, out);
    }
  return to;
}
}  // namespace

Result<Picture> make_picture(uint64_t height, uint64_t width, Colour colour, size_t file_bytes) {
  constexpr uint64_t kMostExtent = 1 << 20, kMostPixels = 1 << 30;  // OpenCV's
  // No png and no common jpg packs more pixels into a byte; small files get the benefit of the doubt.
  constexpr uint64_t kMostPixelsPerByte = 1 << 14, kAlwaysFine = 1 << 24;
  if (height == 0 || width == 0) return invalid_argument("a picture without pixels");
  if (height > kMostExtent || width > kMostExtent || height * width > kMostPixels)
    return unsupported("the picture is too large")
        .expected("at most 1048576 rows and columns and 1073741824 pixels")
        .found(fmt::format("{} x {}", width, height));
  if (height * width > std::max(kAlwaysFine, file_bytes * kMostPixelsPerByte))
    return invalid_argument(fmt::format("{} x {} pixels cannot come from {} bytes", width, height, file_bytes));
  Picture picture{static_cast<int64_t>(height), static_cast<int64_t>(width), colour == Colour::Grey ? 1 : 3, {}, {}};
  try {
    picture.pixels.resize(height * width * static_cast<uint64_t>(picture.channels));
  } catch (const std::bad_alloc&) {
    return Status::error(Code::OutOfMemory, fmt::format("no memory for a picture of {} x {}", width, height));
  }
  return picture;
}

bool is_picture(std::span<const std::byte> bytes) { return kind_of(bytes) != Kind::Unknown; }

Result<Picture> decode_picture(std::span<const std::byte> bytes, Colour colour) {
  int orientation = 1;
  const auto decode = [&]() -> Result<Picture> {
    switch (kind_of(bytes)) {
      case Kind::Jpeg: return decode_jpeg(bytes, colour, orientation);
      case Kind::Png: return decode_png(bytes, colour, orientation);
      case Kind::Bmp: return decode_bmp(bytes, colour);
      case Kind::Unknown: break;
    }
    return invalid_argument("not a jpg, png or bmp file");
  };
  ORKNN_TRY_ASSIGN(Picture picture, decode());
  return turned(std::move(picture), orientation);
}

Result<bool> is_picture_file(const std::string& path) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return is_picture(file->bytes());
}

Result<Picture> read_picture(const std::string& path, Colour colour) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto picture = decode_picture(file->bytes(), colour);
  ORKNN_TRY(file->check());
  if (!picture) return Status(picture.status()).model(path);
  return picture;
}

}  // namespace orknn::data
