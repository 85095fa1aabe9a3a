// Sliding windows as TensorFlow states them: lists in the order of data_format, padding by name, channels first or last.
#pragma once

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {

struct DataFormat {
  bool channels_last = true;
  size_t spatial = 2;                                                  // number of spatial axes
  size_t axis(size_t i) const { return i + (channels_last ? 1 : 2); }  // of the i-th spatial axis
  size_t channel_axis() const { return channels_last ? spatial + 1 : 1; }
};
Result<DataFormat> data_format_of(const Layer& layer, size_t spatial);

// Spatial entries of a list attribute in the order of data_format; entries of batch and channels must be 1.
Result<std::vector<int64_t>> spatial_entries(const DataFormat& format, const std::vector<int64_t>& list, std::string_view what);

struct Padding {
  std::vector<int64_t> begin, end;
  bool is_open = false;  // SAME over extents that are not known yet: left to auto_pad
};
// The padding a window needs. `input` are the spatial extents, nothing where not known; `kernel` counts dilation in.
Result<Padding> padding_of(const Layer& layer, const DataFormat& format, const std::vector<std::optional<int64_t>>& input,
                           const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides);
std::vector<std::optional<int64_t>> spatial_extents(const Layer& layer, const DataFormat& format, ir::TensorId x);
// Adds pads or auto_pad to the attributes of a node.
void set_padding(ir::Attributes& attributes, const Padding& padding);
std::vector<int64_t> joined(const std::vector<int64_t>& begin, const std::vector<int64_t>& end);

// To our order of axes, channels first, and back.
Result<ir::TensorId> to_channels_first(Layer& layer, const DataFormat& format, ir::TensorId x);
Result<ir::TensorId> from_channels_first(Layer& layer, const DataFormat& format, ir::TensorId x);

}  // namespace orknn::importer::tensorflow
