// Scaling of pictures.
#pragma once

#include "data/picture.h"

namespace orknn::data {

// Bilinear interpolation with the bytes of OpenCV's resize(..., INTER_LINEAR). Extents are at least 1.
Picture resize_linear(const Picture& picture, int64_t height, int64_t width);

}  // namespace orknn::data
