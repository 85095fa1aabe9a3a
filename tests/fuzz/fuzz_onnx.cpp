// libFuzzer entry for the ONNX importer: import, verify, infer shapes. Any order of bytes must be answered.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "import_samples.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  orknn::tests::import_survives(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
