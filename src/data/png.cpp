// png through libpng with the transformations OpenCV asks for. libpng leaves by longjmp: the functions that call it hold nothing
// with a destructor.
#include <fmt/format.h>
#include <png.h>

#include <cstring>
#include <new>

#include "data/decoders.h"
#include "data/exif.h"

namespace orknn::data {
namespace {

struct PngReader {
  std::span<const std::byte> rest;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char problem[128] = "";
  bool out_of_memory = false;  // in the meantime; libpng reports it as damage, or leaves out what needed the memory

  explicit PngReader(std::span<const std::byte> bytes);
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  PngReader& reader = *static_cast<PngReader*>(png_get_error_ptr(png));
  std::strncpy(reader.problem, text, sizeof reader.problem - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

void on_read(png_structp png, png_bytep to, size_t count) {
  PngReader& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader.rest.size()) png_error(png, "the file is cut off");
  std::memcpy(to, reader.rest.data(), count);
  reader.rest = reader.rest.subspan(count);
}

png_voidp allocate(png_structp png, png_alloc_size_t bytes) {
  void* block = ::operator new(bytes, std::nothrow);
  if (!block) static_cast<PngReader*>(png_get_mem_ptr(png))->out_of_memory = true;
  return block;
}
void release(png_structp, png_voidp block) { ::operator delete(block, std::nothrow); }

PngReader::PngReader(std::span<const std::byte> bytes) : rest(bytes) {
  png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, this, on_error, on_warning, this, allocate, release);
  if (png) info = png_create_info_struct(png);
}

// Chunks that are skipped unread: text, and colour profiles, which older releases of libpng let decide about the grey of a
// picture.
constexpr png_byte kSkipped[] = "iCCP\0cICP\0sPLT\0tEXt\0zTXt\0iTXt";

bool read_png_header(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png))) return false;
  png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, kSkipped, sizeof kSkipped / 5);
  png_set_read_fn(reader.png, &reader, on_read);
  png_read_info(reader.png, reader.info);
  return true;
}

bool read_png_rows(PngReader& reader, Colour colour, size_t row_bytes, png_bytepp rows) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png))) return false;
  const int type = png_get_color_type(png, reader.info);
  if (png_get_bit_depth(png, reader.info) == 16) png_set_strip_16(png);
  png_set_strip_alpha(png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png);
  if (!(type & PNG_COLOR_MASK_COLOR)) png_set_expand_gray_1_2_4_to_8(png);
  if (colour == Colour::Rgb)
    png_set_gray_to_rgb(png);
  else
    png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  if (png_get_rowbytes(png, reader.info) != row_bytes) png_error(png, "unexpected row size");
  png_read_image(png, rows);
  png_read_end(png, reader.info);
  return true;
}

int orientation_of(const PngReader& reader) {
  png_uint_32 count = 0;
  png_bytep exif = nullptr;
  if (!png_get_eXIf_1(reader.png, reader.info, &count, &exif) || !exif) return 1;
  return exif_orientation({reinterpret_cast<const std::byte*>(exif), count}).value_or(1);
}
}  // namespace

Result<Picture> decode_png(std::span<const std::byte> bytes, Colour colour, int& orientation) {
  PngReader reader(bytes);
  const auto no_memory = [] { return Status::error(Code::OutOfMemory, "no memory for the png reader"); };
  if (!reader.info) return no_memory();
  const auto refused = [&] {
    if (reader.out_of_memory) return no_memory();
    return invalid_argument(fmt::format("damaged or unsupported png: {}", reader.problem));
  };
  if (!read_png_header(reader)) return refused();
  ORKNN_TRY_ASSIGN(Picture picture, make_picture(png_get_image_height(reader.png, reader.info),
                                                 png_get_image_width(reader.png, reader.info), colour, bytes.size()));
  const size_t row_bytes = static_cast<size_t>(picture.width * picture.channels);
  std::vector<png_bytep> rows(static_cast<size_t>(picture.height));
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = picture.pixels.data() + y * row_bytes;
  if (!read_png_rows(reader, colour, row_bytes, rows.data())) return refused();
  if (reader.out_of_memory) return no_memory();
  orientation = orientation_of(reader);
  return picture;
}

}  // namespace orknn::data
