#include "base/version.h"

namespace orknn {

std::string_view version() { return ORKNN_VERSION; }

}  // namespace orknn
