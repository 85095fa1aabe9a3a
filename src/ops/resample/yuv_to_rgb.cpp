// Luma and chroma become red, green and blue, as the colour converters of video hardware do it: chroma is repeated, not
// interpolated, and the matrix is ITU-R BT.601 for studio range (luma 16 to 235), in 8-bit fixed point.
#include "ops/resample/yuv_to_rgb.h"

#include <algorithm>

#include "ir/op_def.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum class Chroma : uint8_t { None, Interleaved, Planes, Packed };

struct Format {
  std::string_view name;
  Chroma chroma = Chroma::None;
  int across = 1, down = 1;   // pixels that share a chroma value
  bool v_first = false;       // V is stored before U
  bool chroma_first = false;  // packed: U Y V Y instead of Y U Y V
};

constexpr Format kFormats[] = {
    {"nv12", Chroma::Interleaved, 2, 2},
    {"nv21", Chroma::Interleaved, 2, 2, true},
    {"nv16", Chroma::Interleaved, 2, 1},
    {"nv61", Chroma::Interleaved, 2, 1, true},
    {"nv24", Chroma::Interleaved, 1, 1},
    {"nv42", Chroma::Interleaved, 1, 1, true},
    {"i420", Chroma::Planes, 2, 2},
    {"yv12", Chroma::Planes, 2, 2, true},
    {"yuv444", Chroma::Planes, 1, 1},
    {"yuyv", Chroma::Packed, 2, 1},
    {"uyvy", Chroma::Packed, 2, 1, false, true},
    {"gray", Chroma::None, 1, 1},
};

Result<const Format*> format_of(const std::string& name) {
  for (const Format& f : kFormats)
    if (f.name == name) return &f;
  std::string legal;
  for (const Format& f : kFormats) legal += (legal.empty() ? "" : ", ") + std::string(f.name);
  return unsupported("unknown picture format").expected(legal).found(name);
}

// Rows and columns of bytes per pixel row and column, as fractions: rows = height * num / den.
struct Shape2 {
  int64_t row_num, row_den, column_num;
};
Shape2 bytes_of(const Format& f) {
  if (f.chroma == Chroma::None) return {1, 1, 1};
  if (f.chroma == Chroma::Packed) return {1, 1, 2};
  const int64_t shared = f.across * f.down;  // two chroma values for so many pixels
  return {shared + 2, shared, 1};
}

Result<const Format*> read(const NodeReader& c) {
  const std::string& order = c.get_string("order");
  if (order != "rgb" && order != "bgr") return unsupported("unknown channel order").expected("rgb or bgr").found(order);
  return format_of(c.get_string("format"));
}

// Extents of the picture whose bytes have these extents.
Result<Dims> pixels(const Format& f, std::span<const int64_t> bytes) {
  if (bytes.size() != 4 || bytes[1] != 1)
    return shape_mismatch("the bytes of a picture are [N,1,rows,columns]")
        .found(to_string(to_shape(Dims(bytes.begin(), bytes.end()))));
  const Shape2 s = bytes_of(f);
  const int64_t height = bytes[2] * s.row_den / s.row_num, width = bytes[3] / s.column_num;
  ORKNN_TRY_ASSIGN(const Dims expected, picture_dims(std::string(f.name), height, width));
  if (expected[2] != bytes[2] || expected[3] != bytes[3])
    return shape_mismatch("these are not the bytes of a picture in " + std::string(f.name))
        .found(std::to_string(bytes[2]) + " rows of " + std::to_string(bytes[3]));
  return Dims{bytes[0], 3, height, width};
}

Status infer(InferContext& c) {
  ORKNN_TRY_ASSIGN(const Format* format, read(c));
  if (c.dtype(0) != DType::UInt8)
    return invalid_model("pictures are bytes").expected("uint8").found(std::string(dtype_name(c.dtype(0))));
  const std::optional<Dims> bytes = c.shape(0) ? to_dims(*c.shape(0)) : std::nullopt;
  if (!bytes) {
    c.set_output(0, DType::UInt8, c.shape(0) ? std::optional(Shape{(*c.shape(0))[0], Dim(3), Dim(), Dim()}) : std::nullopt);
    return {};
  }
  ORKNN_TRY_ASSIGN(const Dims out, pixels(*format, *bytes));
  c.set_output(0, DType::UInt8, to_shape(out));
  return {};
}

// Where the parts of one picture lie.
class Picture {
 public:
  Picture(const Format& f, const uint8_t* bytes, int64_t height, int64_t width)
      : f_(f), bytes_(bytes), width_(width), luma_(height * width), plane_(luma_ / (f.across * f.down)) {}

  int luma(int64_t row, int64_t column) const {
    if (f_.chroma != Chroma::Packed) return bytes_[row * width_ + column];
    return bytes_[(row * width_ + column) * 2 + (f_.chroma_first ? 1 : 0)];
  }
  // 0 = U, 1 = V.
  int chroma(int which, int64_t row, int64_t column) const {
    constexpr int kGray = 128;
    const int place = f_.v_first ? 1 - which : which;
    const int64_t r = row / f_.down, c = column / f_.across, columns = width_ / f_.across;
    switch (f_.chroma) {
      case Chroma::None: return kGray;
      case Chroma::Interleaved: return bytes_[luma_ + (r * columns + c) * 2 + place];
      case Chroma::Planes: return bytes_[luma_ + place * plane_ + r * columns + c];
      case Chroma::Packed: return bytes_[(row * width_ + c * 2) * 2 + 2 * place + (f_.chroma_first ? 0 : 1)];
    }
    return kGray;
  }

 private:
  const Format& f_;
  const uint8_t* bytes_;
  int64_t width_, luma_, plane_;
};

uint8_t pixel(int fixed) { return static_cast<uint8_t>(std::clamp((fixed + 128) >> 8, 0, 255)); }

Status run(RunContext& c) {
  ORKNN_TRY_ASSIGN(const Format* format, read(c));
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const Dims dims, pixels(*format, x.dims));
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, DType::UInt8, dims));
  const bool bgr = c.get_string("order") == "bgr";
  const int64_t height = dims[2], width = dims[3], area = height * width;
  const int64_t picture_bytes = dims[0] == 0 ? 0 : x.count() / dims[0];
  auto* to = static_cast<uint8_t*>(y.data);
  for (int64_t n = 0; n < dims[0]; ++n) {
    const Picture picture(*format, static_cast<const uint8_t*>(x.data) + n * picture_bytes, height, width);
    uint8_t* red = to + n * 3 * area + (bgr ? 2 * area : 0);
    uint8_t* green = to + n * 3 * area + area;
    uint8_t* blue = to + n * 3 * area + (bgr ? 0 : 2 * area);
    for (int64_t row = 0; row < height; ++row)
      for (int64_t column = 0; column < width; ++column) {
        const int luma = 298 * (picture.luma(row, column) - 16);
        const int u = picture.chroma(0, row, column) - 128, v = picture.chroma(1, row, column) - 128;
        const int64_t at = row * width + column;
        red[at] = pixel(luma + 409 * v);
        green[at] = pixel(luma - 100 * u - 208 * v);
        blue[at] = pixel(luma + 516 * u);
      }
  }
  return {};
}
}  // namespace

std::vector<std::string> picture_formats() {
  std::vector<std::string> names;
  for (const Format& f : kFormats) names.emplace_back(f.name);
  return names;
}

Result<Dims> picture_dims(const std::string& format, int64_t height, int64_t width) {
  ORKNN_TRY_ASSIGN(const Format* f, format_of(format));
  if (height < 1 || width < 1 || height % f->down != 0 || width % f->across != 0)
    return shape_mismatch("a picture of this size cannot be stored in " + format)
        .expected("a height that is a multiple of " + std::to_string(f->down) + ", a width that is a multiple of " +
                  std::to_string(f->across))
        .found(std::to_string(height) + " x " + std::to_string(width));
  const Shape2 s = bytes_of(*f);
  return Dims{1, 1, height * s.row_num / s.row_den, width * s.column_num};
}

std::span<const OpDef> yuv_to_rgb() {
  static const OpDef def{.name = "YuvToRgb",
                         .summary = "pictures of luma and chroma as red, green and blue",
                         .attributes = {required(attr_string("format")), attr_string("order", "rgb")},
                         .infer = infer,
                         .run = run,
                         .quant = QuantRule::Integer,
                         .samples_apart = true,
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
