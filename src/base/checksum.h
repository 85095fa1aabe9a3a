// 64-bit checksum of a byte range, for detecting damage (not for security). Fixed forever: it is part of .rknn files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace orknn {

uint64_t checksum64(std::span<const std::byte> bytes);

}  // namespace orknn
