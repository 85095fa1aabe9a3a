// The public headers, whose functions are visible in the library. Files of this room include them through this one: whoever
// includes rknn_api.h first decides about visibility.
#pragma once

#include <cstdint>
#include <cstring>

#pragma GCC visibility push(default)
#include "openrknn.h"
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#pragma GCC visibility pop

namespace orknn::runtime {

// The value of an enum of the caller's, which need not be one of its members: read as bytes, since reading it as the enum would
// be undefined.
template <class Enum>
uint32_t number(const Enum& value) {
  static_assert(sizeof value == sizeof(uint32_t));
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace orknn::runtime
