// Decompresses DEFLATE (RFC 1951), the one compression that model archives use.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/status.h"

namespace orknn::importer::zip {

// The decompressed bytes, exactly `size` of them. Memory grows with what was really decoded, never with what is promised; a
// stream that yields more or less than `size` is refused.
Result<std::vector<std::byte>> inflate(std::span<const std::byte> compressed, size_t size);

}  // namespace orknn::importer::zip
