// bmp: the headers of OS/2 1.x and of Windows since 3.0; 1, 4, 8, 16, 24 and 32 bits per pixel, run lengths, bit masks, both row
// orders. Where the format leaves a choice the result is OpenCV's.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "data/decoders.h"

namespace orknn::data {
namespace {

constexpr uint32_t kRgb = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3;

Status bad_bmp(std::string_view what) { return invalid_argument(fmt::format("damaged or unsupported bmp: {}", what)); }
Status cut_off() { return bad_bmp("the file is cut off"); }

struct Rgb {
  uint8_t red = 0, green = 0, blue = 0;
};

// One colour of a pixel of 32 bits: value = (pixel & mask) >> shift, stretched to 0..255.
struct Channel {
  uint32_t mask = 0;
  int shift = 0;
  float scale = 1;
  explicit Channel(uint32_t bits = 0)
      : mask(bits), shift(bits ? std::countr_zero(bits) : 0), scale(bits ? 255.0f / static_cast<float>(bits >> shift) : 1) {}
  uint8_t of(uint32_t pixel) const { return static_cast<uint8_t>(static_cast<float>((pixel & mask) >> shift) * scale); }
};

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  bool holds(uint64_t offset, uint64_t count) const { return offset <= bytes_.size() && count <= bytes_.size() - offset; }
  // The caller has made sure that the bytes exist.
  uint32_t u8(size_t offset) const { return static_cast<uint32_t>(bytes_[offset]); }
  uint32_t u16(size_t offset) const { return u8(offset) | u8(offset + 1) << 8; }
  uint32_t u32(size_t offset) const { return u16(offset) | u16(offset + 2) << 16; }
  const uint8_t* at(size_t offset) const { return reinterpret_cast<const uint8_t*>(bytes_.data()) + offset; }
  size_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

struct BmpHeader {
  uint64_t width = 0, height = 0;
  bool top_down = false;
  uint32_t bits = 0, compression = kRgb;
  bool green_has_6_bits = false;  // 16 bits per pixel
  std::array<Channel, 3> masks;   // red, green, blue of 32 bits per pixel
  bool masked = false;
  std::array<Rgb, 256> palette{};
  size_t data = 0;  // offset of the pixels
};

Status read_palette(const Bytes& file, size_t offset, size_t entries, size_t entry_bytes, BmpHeader& header) {
  if (!file.holds(offset, entries * entry_bytes)) return cut_off();
  for (size_t i = 0; i < entries; ++i) {
    const uint8_t* entry = file.at(offset + i * entry_bytes);
    header.palette[i] = {entry[2], entry[1], entry[0]};
  }
  return Status::ok();
}

Status read_os2_header(const Bytes& file, BmpHeader& header) {
  if (!file.holds(14, 12)) return cut_off();
  header.width = file.u16(18);
  header.height = file.u16(20);
  header.bits = file.u16(24);
  if (header.bits == 16) return bad_bmp("16 bits per pixel in an OS/2 header");
  return header.bits <= 8 ? read_palette(file, 26, size_t{1} << header.bits, 3, header) : Status::ok();
}

// OpenCV honours the masks of 32-bit pixels only where the header itself holds them, alpha included.
Status read_masks(const Bytes& file, uint32_t header_bytes, BmpHeader& header) {
  if (header.bits == 32) {
    if (header_bytes < 56) return Status::ok();
    for (size_t i = 0; i < 3; ++i) header.masks[i] = Channel(file.u32(54 + 4 * i));
    header.masked = std::ranges::all_of(header.masks, [](const Channel& c) { return c.mask != 0; });
    return Status::ok();
  }
  if (!file.holds(54, 12)) return cut_off();  // the same place whether they belong to the header or follow it
  const uint32_t red = file.u32(54), green = file.u32(58), blue = file.u32(62);
  header.green_has_6_bits = red == 0xf800 && green == 0x7e0 && blue == 0x1f;
  if (!header.green_has_6_bits && !(red == 0x7c00 && green == 0x3e0 && blue == 0x1f))
    return bad_bmp("bit masks other than 5-5-5 and 5-6-5");
  return Status::ok();
}

Status read_windows_header(const Bytes& file, uint32_t header_bytes, BmpHeader& header) {
  if (!file.holds(14, header_bytes)) return cut_off();
  const auto width = static_cast<int32_t>(file.u32(18)), height = static_cast<int32_t>(file.u32(22));
  if (width <= 0) return bad_bmp(fmt::format("width {}", width));
  header.width = static_cast<uint64_t>(width);
  header.top_down = height < 0;
  header.height = static_cast<uint64_t>(std::abs(int64_t{height}));
  header.bits = file.u16(28);
  header.compression = file.u32(30);
  const uint32_t colours = file.u32(46), bits = header.bits;
  switch (header.compression) {
    case kRgb: break;
    case kRle8:
      if (bits != 8) return bad_bmp(fmt::format("8-bit run lengths with {} bits per pixel", bits));
      break;
    case kRle4:
      if (bits != 4) return bad_bmp(fmt::format("4-bit run lengths with {} bits per pixel", bits));
      break;
    case kBitFields:
      if (bits != 16 && bits != 32) return bad_bmp(fmt::format("bit masks with {} bits per pixel", bits));
      break;
    default: return bad_bmp(fmt::format("compression {}", header.compression));
  }
  if (header.compression == kBitFields) return read_masks(file, header_bytes, header);
  if (bits > 8) return Status::ok();
  if (colours > 256) return bad_bmp(fmt::format("{} colours in the palette", colours));
  return read_palette(file, size_t{14} + header_bytes, colours ? colours : size_t{1} << bits, 4, header);
}

Result<BmpHeader> read_bmp_header(const Bytes& file) {
  if (!file.holds(0, 18)) return cut_off();
  BmpHeader header;
  header.data = file.u32(10);
  const uint32_t header_bytes = file.u32(14);
  if (header_bytes == 12)
    ORKNN_TRY(read_os2_header(file, header));
  else if (header_bytes >= 36)
    ORKNN_TRY(read_windows_header(file, header_bytes, header));
  else
    return bad_bmp(fmt::format("header of {} bytes", header_bytes));
  constexpr uint32_t kDepths[] = {1, 4, 8, 16, 24, 32};
  if (std::ranges::find(kDepths, header.bits) == std::end(kDepths)) return bad_bmp(fmt::format("{} bits per pixel", header.bits));
  return header;
}

// Writes the rows of a picture in the order of the file.
class Rows {
 public:
  Rows(Picture& picture, bool top_down) : picture_(picture), top_down_(top_down) {}
  uint8_t* operator[](uint64_t y) {
    const uint64_t row = top_down_ ? y : static_cast<uint64_t>(picture_.height) - 1 - y;
    return picture_.pixels.data() + row * static_cast<uint64_t>(picture_.width * picture_.channels);
  }
  void put(uint8_t* row, uint64_t x, Rgb c) const {
    if (picture_.channels == 1) {
      row[x] = grey_of(c.red, c.green, c.blue);
    } else {
      row[3 * x] = c.red;
      row[3 * x + 1] = c.green;
      row[3 * x + 2] = c.blue;
    }
  }

 private:
  Picture& picture_;
  bool top_down_;
};

Rgb pixel_16(const BmpHeader& header, uint32_t v) {
  if (header.green_has_6_bits)
    return {static_cast<uint8_t>(v >> 8 & 0xf8), static_cast<uint8_t>(v >> 3 & 0xfc), static_cast<uint8_t>(v << 3 & 0xf8)};
  return {static_cast<uint8_t>(v >> 7 & 0xf8), static_cast<uint8_t>(v >> 2 & 0xf8), static_cast<uint8_t>(v << 3 & 0xf8)};
}

void read_row(const BmpHeader& header, const Bytes& file, size_t from, Rows& rows, uint8_t* to) {
  const uint8_t* row = file.at(from);
  for (size_t x = 0; x < header.width; ++x) {
    switch (header.bits) {
      case 1: rows.put(to, x, header.palette[row[x / 8] >> (7 - x % 8) & 1]); break;
      case 4: rows.put(to, x, header.palette[x % 2 ? row[x / 2] & 15 : row[x / 2] >> 4]); break;
      case 8: rows.put(to, x, header.palette[row[x]]); break;
      case 16: rows.put(to, x, pixel_16(header, row[2 * x] | row[2 * x + 1] << 8)); break;
      case 24: rows.put(to, x, {row[3 * x + 2], row[3 * x + 1], row[3 * x]}); break;
      default: rows.put(to, x, {row[4 * x + 2], row[4 * x + 1], row[4 * x]}); break;
    }
  }
}

// OpenCV's grey of masked pixels: cut off, not rounded.
void read_masked_row(const BmpHeader& header, const Bytes& file, size_t from, Rows& rows, uint8_t* to, bool grey) {
  for (size_t x = 0; x < header.width; ++x) {
    const uint32_t pixel = file.u32(from + 4 * x);
    const Rgb c{header.masks[0].of(pixel), header.masks[1].of(pixel), header.masks[2].of(pixel)};
    if (grey)
      to[x] = static_cast<uint8_t>(0.299f * static_cast<float>(c.red) + 0.587f * static_cast<float>(c.green) +
                                   0.114f * static_cast<float>(c.blue));
    else
      rows.put(to, x, c);
  }
}

Status read_plain(const BmpHeader& header, const Bytes& file, Rows rows, bool grey) {
  const uint64_t pitch = (header.width * header.bits + 31) / 32 * 4;
  if (!file.holds(header.data, pitch * header.height)) return cut_off();
  for (uint64_t y = 0; y < header.height; ++y) {
    const size_t from = header.data + y * pitch;
    if (header.masked)
      read_masked_row(header, file, from, rows, rows[y], grey);
    else
      read_row(header, file, from, rows, rows[y]);
  }
  return Status::ok();
}

// Run lengths. Pixels that are skipped have colour 0. An 8-bit run that ends with its row goes on in the next one; an end-of-line
// code right after it is already obeyed.
Status read_runs(const BmpHeader& header, const Bytes& file, Rows rows) {
  const bool four = header.bits == 4;
  for (uint64_t y = 0; y < header.height; ++y)
    for (uint64_t x = 0; x < header.width; ++x) rows.put(rows[y], x, header.palette[0]);
  uint64_t x = 0, y = 0;
  bool wrapped = false;
  size_t at = header.data;
  while (y < header.height) {
    if (!file.holds(at, 2)) return cut_off();
    const uint32_t count = file.u8(at), code = file.u8(at + 1);
    at += 2;
    if (count) {
      if (x + count > header.width) return bad_bmp("a run leaves its row");
      for (uint32_t i = 0; i < count; ++i) rows.put(rows[y], x++, header.palette[!four ? code : i % 2 ? code & 15 : code >> 4]);
      wrapped = !four && x == header.width;
      if (wrapped) x = 0, ++y;
      continue;
    }
    if (code > 2) {  // pixels as they are, padded to 16 bits
      const size_t bytes = four ? (code + 3) / 4 * 2 : (code + 1) / 2 * 2;
      if (x + code > header.width) return bad_bmp("a run leaves its row");
      if (!file.holds(at, bytes)) return cut_off();
      for (uint32_t i = 0; i < code; ++i)
        rows.put(rows[y], x++,
                 header.palette[!four   ? file.u8(at + i)
                                : i % 2 ? file.u8(at + i / 2) & 15
                                        : file.u8(at + i / 2) >> 4]);
      at += bytes;
    } else if (code == 2) {  // move
      if (!file.holds(at, 2)) return cut_off();
      x += file.u8(at);
      y += file.u8(at + 1) + x / header.width;
      x %= header.width;
      at += 2;
    } else if (code == 1) {
      break;
    } else if (!wrapped) {
      x = 0, ++y;
    }
    wrapped = false;
  }
  return Status::ok();
}
}  // namespace

Result<Picture> decode_bmp(std::span<const std::byte> bytes, Colour colour) {
  const Bytes file(bytes);
  ORKNN_TRY_ASSIGN(const BmpHeader header, read_bmp_header(file));
  ORKNN_TRY_ASSIGN(Picture picture, make_picture(header.height, header.width, colour, bytes.size()));
  const Rows rows(picture, header.top_down);
  const bool runs = header.compression == kRle4 || header.compression == kRle8;
  ORKNN_TRY(runs ? read_runs(header, file, rows) : read_plain(header, file, rows, colour == Colour::Grey));
  return picture;
}

}  // namespace orknn::data
