#include "import/tensorflow/window.h"

namespace orknn::importer::tensorflow {
using namespace ir;

Result<PictureFormat> data_format_of(const Layer& layer, size_t spatial) {
  const std::string_view text = layer.string_or("data_format", spatial == 3 ? "NDHWC" : "NHWC");
  if (text != "NHWC" && text != "NDHWC" && text != "NCHW" && text != "NCDHW")
    return unsupported("the data format is not supported").expected("NHWC or NCHW").found(std::string(text));
  return PictureFormat{text[1] != 'C', spatial};
}

Result<std::vector<int64_t>> spatial_entries(const PictureFormat& format, const std::vector<int64_t>& list,
                                             std::string_view what) {
  if (list.size() != format.spatial + 2)
    return invalid_model(std::string(what) + " has the wrong length")
        .expected(std::to_string(format.spatial + 2))
        .found(std::to_string(list.size()));
  if (list[0] != 1 || list[format.channel_axis()] != 1)
    return unsupported(std::string(what) + " of batch and channels must be 1").found(to_string(list));
  std::vector<int64_t> entries;
  for (size_t i = 0; i < format.spatial; ++i) {
    entries.push_back(list[format.axis(i)]);
    if (entries.back() < 1 || entries.back() > kMaxWindow)
      return invalid_model(std::string(what) + " is out of range").found(to_string(list));
  }
  return entries;
}

Result<Window> with_padding(const Layer& layer, const PictureFormat& format, Window window,
                            const std::vector<std::optional<int64_t>>& extents) {
  const std::string_view name = layer.string_or("padding", "VALID");
  if (name == "SAME") {
    window.padding = Window::Padding::Same;
    return with_explicit_padding(std::move(window), extents);
  }
  window.pads_begin.assign(format.spatial, 0);
  window.pads_end.assign(format.spatial, 0);
  if (name == "VALID") return window;
  if (name != "EXPLICIT")
    return invalid_model("the padding is not known").expected("SAME, VALID or EXPLICIT").found(std::string(name));
  const auto list = layer.ints_or("explicit_paddings");
  if (list.size() != 2 * (format.spatial + 2))
    return invalid_model("explicit_paddings has the wrong length")
        .expected(std::to_string(2 * (format.spatial + 2)))
        .found(std::to_string(list.size()));
  const size_t channel = 2 * format.channel_axis();
  if (list[0] || list[1] || list[channel] || list[channel + 1])
    return unsupported("padding of batch and channels is not supported").found(to_string(list));
  for (size_t i = 0; i < format.spatial; ++i) {
    window.pads_begin[i] = list[2 * format.axis(i)];
    window.pads_end[i] = list[2 * format.axis(i) + 1];
  }
  ORKNN_TRY(window.check());
  return window;
}

}  // namespace orknn::importer::tensorflow
