#include "import/lower/window.h"

#include <algorithm>
#include <utility>

namespace orknn::importer {
using namespace ir;

Status Window::check() const {
  const auto within = [](const std::vector<int64_t>& list, int64_t least) {
    return std::ranges::all_of(list, [&](int64_t v) { return v >= least && v <= kMaxWindow; });
  };
  for (const auto& [list, what, least] :
       {std::tuple(&kernel, "kernel", 1), std::tuple(&strides, "strides", 1), std::tuple(&dilations, "dilations", 1),
        std::tuple(&pads_begin, "padding", 0), std::tuple(&pads_end, "padding", 0)})
    if (!within(*list, least))
      return invalid_model(std::string("the ") + what + " is impossible")
          .expected("from " + std::to_string(least) + " to " + std::to_string(kMaxWindow))
          .found(to_string(*list));
  return {};
}

Attributes Window::attributes() const {
  Attributes a;
  if (!kernel.empty()) a.set("kernel_shape", kernel);
  if (!strides.empty()) a.set("strides", strides);
  if (!dilations.empty()) a.set("dilations", dilations);
  if (padding != Padding::Explicit) a.set("auto_pad", std::string(padding == Padding::Same ? "SAME_UPPER" : "VALID"));
  if (!pads_begin.empty()) a.set("pads", joined(pads_begin, pads_end));
  if (ceil) a.set("ceil_mode", int64_t{1});
  if (counts_padding) a.set("count_include_pad", int64_t{1});
  return a;
}

int64_t Window::reach(size_t axis) const { return (kernel[axis] - 1) * (dilations.empty() ? 1 : dilations[axis]) + 1; }

std::vector<TensorId> Filter::inputs(TensorId x) const { return bias ? std::vector{x, weights, bias} : std::vector{x, weights}; }

Attributes Filter::attributes() const {
  Attributes a = window.attributes();
  a.set("group", groups);
  return a;
}

int64_t same_padding(int64_t extent, int64_t reach, int64_t stride) {
  const int64_t outputs = extent / stride + (extent % stride != 0);
  return std::max<int64_t>((outputs - 1) * stride + reach - extent, 0);
}

Window with_explicit_padding(Window window, const std::vector<std::optional<int64_t>>& extents) {
  if (window.padding != Window::Padding::Same || !std::ranges::all_of(extents, [](const auto& e) { return e.has_value(); }))
    return window;
  window.padding = Window::Padding::Explicit;
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t total = same_padding(*extents[i], window.reach(i), window.strides.empty() ? 1 : window.strides[i]);
    window.pads_begin.push_back(total / 2);
    window.pads_end.push_back(total - total / 2);
  }
  return window;
}

Result<TensorId> window_elements(Emitter& e, TensorId x, int64_t channels, const Window& window) {
  const std::vector<int64_t>& kernel = window.kernel;
  ORKNN_TRY(checked_element_count(joined(joined({channels}, kernel), kernel), int64_t{1} << 26).status());  // of the picks
  const int64_t size = element_count(kernel);
  TensorData picks = TensorData::zeros(DType::Float32, joined({channels * size, 1}, kernel));
  float* values = static_cast<float*>(picks.mutable_data());
  for (int64_t i = 0; i < channels * size; ++i) values[i * size + i % size] = 1;
  const Filter filter{e.cast(e.add_constant("picks", std::move(picks)), e.dtype_of(x)), {}, window, channels};
  return e.emit("Conv", filter.inputs(x), filter.attributes());
}

std::vector<int64_t> joined(std::vector<int64_t> begin, const std::vector<int64_t>& end) {
  begin.insert(begin.end(), end.begin(), end.end());
  return begin;
}

}  // namespace orknn::importer
