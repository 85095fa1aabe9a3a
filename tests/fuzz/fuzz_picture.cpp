// Any bytes as a picture or a NumPy file: a value or a Status, never more.
#include <cstddef>
#include <cstdint>

#include "data/npy.h"
#include "data/picture.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const auto colour : {orknn::data::Colour::Grey, orknn::data::Colour::Rgb})
    (void)orknn::data::decode_picture(bytes, colour);
  (void)orknn::data::parse_npy(bytes);
  return 0;
}
