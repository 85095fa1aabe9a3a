// Optimizer passes are passes of the shared driver; this room calls them by their short names.
#pragma once

#include "passes/pass.h"

namespace orknn::optimize {

using passes::Pass;
using passes::Rewriter;

}  // namespace orknn::optimize
