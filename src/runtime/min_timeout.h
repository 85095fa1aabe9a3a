// RKNN_MIN_TIMEOUT_MS: no run is given up sooner than this, whatever the program asks for.
#pragma once

#include <cstdint>

namespace orknn::runtime {

// Milliseconds; 0 when the variable is not set. A value that is no number of milliseconds is a W line and 0.
int64_t minimum_timeout_ms();
// How long to wait for a run: `asked` (0 or negative = without end), raised to the minimum. 0 = without end.
int64_t effective_timeout_ms(int64_t asked);
// As minimum_timeout_ms, from `text` instead of the environment (nullptr = not set).
int64_t parse_minimum_timeout(const char* text);

}  // namespace orknn::runtime
