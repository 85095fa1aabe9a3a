// The one thing we take from EXIF data: how to turn the picture.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace orknn::data {

// The orientation tag of a TIFF structure (what follows "Exif\0\0" in a jpg, the content of a png's eXIf chunk). Like OpenCV the
// reader goes through the first directory in order and stops at an entry whose data lies outside; what it met before counts.
std::optional<int> exif_orientation(std::span<const std::byte> tiff);

}  // namespace orknn::data
