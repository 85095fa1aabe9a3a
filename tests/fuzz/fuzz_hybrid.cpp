// libFuzzer target: the files of hybrid quantization. The first byte chooses: even = the rest is the text that people edit, odd =
// the rest is the .data file. What is read prints, and what is printed is read again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "toolkit/hybrid_data.h"
#include "toolkit/hybrid_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orknn::toolkit;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] & 1) {
    const auto read = parse_hybrid_data(text);
    if (read && !parse_hybrid_data(print(*read))) std::abort();
    return 0;
  }
  const auto read = parse_hybrid_file(text);
  if (read) (void)print(*read, false).size();
  return 0;
}
