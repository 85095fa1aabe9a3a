// Pictures as cameras and video decoders store them: luma and chroma, most with chroma at half the resolution.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "ir/tensor_data.h"

namespace orknn::ops {

// Names that the attribute `format` of YuvToRgb takes.
std::vector<std::string> picture_formats();

// [1, 1, rows, columns] of the bytes of a picture of `height` x `width` pixels. Fails where chroma would be cut in half.
Result<ir::Dims> picture_dims(const std::string& format, int64_t height, int64_t width);

}  // namespace orknn::ops
