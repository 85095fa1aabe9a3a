// Sliding windows as TensorFlow states them: lists in the order of data_format, padding by name, channels first or last.
#pragma once

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {

Result<PictureFormat> data_format_of(const Layer& layer, size_t spatial);

// Spatial entries of a list attribute in the order of data_format; entries of batch and channels must be 1.
Result<std::vector<int64_t>> spatial_entries(const PictureFormat& format, const std::vector<int64_t>& list,
                                             std::string_view what);

// Completes a window of kernel and strides by the layer's padding over these extents, explicit unless an extent is open.
Result<Window> with_padding(const Layer& layer, const PictureFormat& format, Window window,
                            const std::vector<std::optional<int64_t>>& extents);

}  // namespace orknn::importer::tensorflow
