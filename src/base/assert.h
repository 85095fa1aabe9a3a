// Checks of our own invariants. User input never reaches one: it gets a Status.
#pragma once

namespace orknn {
[[noreturn]] void assertion_failed(const char* condition, const char* invariant, const char* file, int line);
}

#define ORKNN_ASSERT(condition, invariant) \
  ((condition) ? (void)0 : ::orknn::assertion_failed(#condition, invariant, __FILE__, __LINE__))
