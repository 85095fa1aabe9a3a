// libFuzzer target: any bytes as an encrypted .rknn. Nothing that was not encrypted with the key opens.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

#include "format/encrypted.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr std::string_view kBegin = "CYPTRKNNORKNNENC";
  std::vector<std::byte> file(reinterpret_cast<const std::byte*>(kBegin.data()),
                              reinterpret_cast<const std::byte*>(kBegin.data()) + kBegin.size());
  file.insert(file.end(), reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
  if (orknn::format::decrypt(file, "")) std::abort();
  return 0;
}
