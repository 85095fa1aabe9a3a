// A long read-only block that repeats a short pattern and occupies only the pattern's memory.
#pragma once

#include <cstddef>
#include <memory>

namespace orknn {

// Pseudo-random small positive float32 values, so that they can also stand for variances, `bytes` long. `start` chooses where in
// the pattern the block begins, in steps of 64 bytes: blocks of different starts differ. nullptr when the system gives no address
// space.
std::shared_ptr<const void> repeated_floats(size_t bytes, size_t start);

}  // namespace orknn
