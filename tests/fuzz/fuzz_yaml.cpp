// libFuzzer target: any bytes as a YAML file.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)orknn::data::parse_yaml({reinterpret_cast<const char*>(data), size}).is_ok();
  return 0;
}
