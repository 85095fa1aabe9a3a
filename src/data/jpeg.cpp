// jpg through libjpeg-turbo with its default (exact integer) transform, like OpenCV. libjpeg leaves by longjmp: the functions
// that call it hold nothing with a destructor.
#include <fmt/format.h>
#include <jerror.h>
#include <jpeglib.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "data/decoders.h"
#include "data/exif.h"

namespace orknn::data {
namespace {

constexpr int kMostScans = 500;  // a progressive file of many tiny scans would keep the decoder busy for hours

struct JpegReader {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape;
  char problem[JMSG_LENGTH_MAX] = "";
  bool out_of_memory = false;  // what the problem is
  char remark[JMSG_LENGTH_MAX] = "";

  JpegReader();
  ~JpegReader() { jpeg_destroy_decompress(&info); }
  JpegReader(const JpegReader&) = delete;
};

JpegReader& reader_of(j_common_ptr info) { return *static_cast<JpegReader*>(info->client_data); }

[[noreturn]] void on_error(j_common_ptr info) {
  JpegReader& reader = reader_of(info);
  info->err->format_message(info, reader.problem);
  const int code = info->err->msg_code;
  reader.out_of_memory = code == JERR_OUT_OF_MEMORY || code == JERR_NO_BACKING_STORE;
  std::longjmp(reader.escape, 1);
}

// Remembers the first warning; traces (level >= 0) are of no interest.
void on_message(j_common_ptr info, int level) {
  JpegReader& reader = reader_of(info);
  if (level < 0 && !reader.remark[0]) info->err->format_message(info, reader.remark);
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr info) {
  JpegReader& reader = reader_of(info);
  if (reader.info.input_scan_number <= kMostScans) return;
  std::snprintf(reader.problem, sizeof reader.problem, "more than %d scans", kMostScans);
  std::longjmp(reader.escape, 1);
}

JpegReader::JpegReader() {
  info.err = jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = on_message;
  errors.output_message = on_output;
  info.client_data = this;
}

bool read_jpeg_header(JpegReader& reader, std::span<const std::byte> bytes) {
  if (setjmp(reader.escape)) return false;
  jpeg_create_decompress(&reader.info);
  reader.progress.progress_monitor = on_progress;
  reader.info.progress = &reader.progress;
  jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<unsigned long>(bytes.size()));
  jpeg_save_markers(&reader.info, JPEG_APP0 + 1, 0xffff);
  jpeg_read_header(&reader.info, TRUE);
  return true;
}

// One row of inverted CMYK, as Adobe writes it, to grey or RGB.
void convert_cmyk(const uint8_t* cmyk, uint8_t* to, int64_t width, Colour colour) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4) {
    const int k = cmyk[3];
    const auto mix = [k](int ink) { return k - ((255 - ink) * k >> 8); };
    const int red = mix(cmyk[0]), green = mix(cmyk[1]), blue = mix(cmyk[2]);
    if (colour == Colour::Grey) {
      *to++ = grey_of(red, green, blue);
    } else {
      *to++ = static_cast<uint8_t>(red);
      *to++ = static_cast<uint8_t>(green);
      *to++ = static_cast<uint8_t>(blue);
    }
  }
}

// `cmyk` has room for a row of four components.
bool read_jpeg_rows(JpegReader& reader, Colour colour, Picture& picture, uint8_t* cmyk) {
  if (setjmp(reader.escape)) return false;
  jpeg_decompress_struct& info = reader.info;
  const bool four = info.num_components == 4;
  info.out_color_space = four ? JCS_CMYK : colour == Colour::Grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_start_decompress(&info);
  while (info.output_scanline < info.output_height) {
    uint8_t* row =
        picture.pixels.data() + static_cast<size_t>(info.output_scanline) * static_cast<size_t>(picture.width * picture.channels);
    uint8_t* target = four ? cmyk : row;
    jpeg_read_scanlines(&info, &target, 1);
    if (four) convert_cmyk(cmyk, row, picture.width, colour);
  }
  return true;
}

int orientation_of(const jpeg_decompress_struct& info) {
  for (jpeg_saved_marker_ptr marker = info.marker_list; marker; marker = marker->next) {
    if (marker->marker != JPEG_APP0 + 1 || marker->data_length <= 6 || std::memcmp(marker->data, "Exif\0\0", 6) != 0) continue;
    const std::span<const std::byte> tiff(reinterpret_cast<const std::byte*>(marker->data) + 6, marker->data_length - 6);
    if (const auto value = exif_orientation(tiff)) return *value;
  }
  return 1;
}
}  // namespace

Result<Picture> decode_jpeg(std::span<const std::byte> bytes, Colour colour, int& orientation) {
  JpegReader reader;
  const auto refused = [&] {
    if (reader.out_of_memory) return Status::error(Code::OutOfMemory, "no memory for the jpg reader");
    return invalid_argument(fmt::format("damaged or unsupported jpg: {}", reader.problem));
  };
  if (!read_jpeg_header(reader, bytes)) return refused();
  orientation = orientation_of(reader.info);
  ORKNN_TRY_ASSIGN(Picture picture, make_picture(reader.info.image_height, reader.info.image_width, colour, bytes.size()));
  std::vector<uint8_t> cmyk(reader.info.num_components == 4 ? static_cast<size_t>(picture.width) * 4 : 0);
  if (!read_jpeg_rows(reader, colour, picture, cmyk.data())) return refused();
  picture.remark = reader.remark;
  return picture;
}

}  // namespace orknn::data
