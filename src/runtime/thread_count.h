// The pool that new contexts of the C API compute with.
#pragma once

#include <memory>

#include "base/threads.h"

namespace orknn::runtime {

// nullptr = the shared pool.
std::shared_ptr<ThreadPool> configured_pool();

}  // namespace orknn::runtime
