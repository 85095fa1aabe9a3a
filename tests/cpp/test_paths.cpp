#include "test_paths.h"

namespace orknn::tests {
const char* const kSourceFolder = ORKNN_SOURCE_DIR;
const char* const kBuildFolder = ORKNN_BUILD_DIR;
}  // namespace orknn::tests
