#include "import/tensorflow/window.h"

#include <algorithm>

namespace orknn::importer::tensorflow {
using namespace ir;

Result<DataFormat> data_format_of(const Layer& layer, size_t spatial) {
  const std::string_view text = layer.string_or("data_format", spatial == 3 ? "NDHWC" : "NHWC");
  if (text != "NHWC" && text != "NDHWC" && text != "NCHW" && text != "NCDHW")
    return unsupported("the data format is not supported").expected("NHWC or NCHW").found(std::string(text));
  return DataFormat{text[1] != 'C', spatial};
}

Result<std::vector<int64_t>> spatial_entries(const DataFormat& format, const std::vector<int64_t>& list, std::string_view what) {
  if (list.size() != format.spatial + 2)
    return invalid_model(std::string(what) + " has the wrong length")
        .expected(std::to_string(format.spatial + 2))
        .found(std::to_string(list.size()));
  if (list[0] != 1 || list[format.channel_axis()] != 1)
    return unsupported(std::string(what) + " of batch and channels must be 1").found(to_string(list));
  std::vector<int64_t> entries;
  for (size_t i = 0; i < format.spatial; ++i) {
    const int64_t value = list[format.axis(i)];
    if (value < 1 || value > (int64_t{1} << 20))
      return invalid_model(std::string(what) + " must be positive and not absurd").found(to_string(list));
    entries.push_back(value);
  }
  return entries;
}

std::vector<std::optional<int64_t>> spatial_extents(const Layer& layer, const DataFormat& format, TensorId x) {
  std::vector<std::optional<int64_t>> extents(format.spatial);
  const Shape* shape = layer.shape_of(x);
  if (!shape || shape->size() != format.spatial + 2) return extents;
  for (size_t i = 0; i < format.spatial; ++i)
    if (const Dim& d = (*shape)[format.axis(i)]; d.is_known()) extents[i] = d.value();
  return extents;
}

Result<Padding> padding_of(const Layer& layer, const DataFormat& format, const std::vector<std::optional<int64_t>>& input,
                           const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides) {
  Padding p{std::vector<int64_t>(format.spatial, 0), std::vector<int64_t>(format.spatial, 0)};
  const std::string_view name = layer.string_or("padding", "VALID");
  if (name == "EXPLICIT") {
    const auto list = layer.ints_or("explicit_paddings");
    if (list.size() != 2 * (format.spatial + 2))
      return invalid_model("explicit_paddings has the wrong length")
          .expected(std::to_string(2 * (format.spatial + 2)))
          .found(std::to_string(list.size()));
    const size_t channel = 2 * format.channel_axis();
    if (list[0] || list[1] || list[channel] || list[channel + 1])
      return unsupported("padding of batch and channels is not supported").found(to_string(list));
    for (size_t i = 0; i < format.spatial; ++i) {
      p.begin[i] = list[2 * format.axis(i)];
      p.end[i] = list[2 * format.axis(i) + 1];
      if (p.begin[i] < 0 || p.end[i] < 0) return invalid_model("explicit_paddings must not be negative").found(to_string(list));
    }
    return p;
  }
  if (name == "VALID") return p;
  if (name != "SAME")
    return invalid_model("the padding is not known").expected("SAME, VALID or EXPLICIT").found(std::string(name));
  for (size_t i = 0; i < format.spatial; ++i) {
    if (!input[i]) {
      p.is_open = true;
      continue;
    }
    const int64_t out = *input[i] / strides[i] + (*input[i] % strides[i] != 0);
    const int64_t total = std::max<int64_t>((out - 1) * strides[i] + kernel[i] - *input[i], 0);
    p.begin[i] = total / 2;
    p.end[i] = total - total / 2;
  }
  return p;
}

std::vector<int64_t> joined(const std::vector<int64_t>& begin, const std::vector<int64_t>& end) {
  std::vector<int64_t> list = begin;
  list.insert(list.end(), end.begin(), end.end());
  return list;
}

void set_padding(Attributes& attributes, const Padding& padding) {
  if (padding.is_open)
    attributes.set("auto_pad", std::string("SAME_UPPER"));
  else
    attributes.set("pads", joined(padding.begin, padding.end));
}

Result<TensorId> to_channels_first(Layer& layer, const DataFormat& format, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to find its channels"));
  if (rank != static_cast<int64_t>(format.spatial) + 2)
    return shape_mismatch("the value has the wrong rank")
        .expected(std::to_string(format.spatial + 2))
        .found(std::to_string(rank));
  return format.channels_last ? layer.channels_first(x) : Result<TensorId>(x);
}

// The rank is known to be right even where inference could not tell it.
Result<TensorId> from_channels_first(Layer& layer, const DataFormat& format, TensorId x) {
  if (!format.channels_last) return x;
  std::vector<int64_t> permutation{0};
  for (size_t i = 0; i < format.spatial; ++i) permutation.push_back(static_cast<int64_t>(i) + 2);
  permutation.push_back(1);
  return layer.transpose(x, std::move(permutation));
}

}  // namespace orknn::importer::tensorflow
