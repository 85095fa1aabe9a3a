#include "toolkit/normalization.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.h"

namespace orknn::toolkit {

size_t channel_axis(const ir::Tensor& tensor) {
  const size_t rank = tensor.shape ? tensor.shape->size() : 0;
  if (rank < 2) return 0;
  return tensor.layout == ir::Layout::NHWC ? rank - 1 : 1;
}

Result<std::vector<compile::Normalization>> normalization_of(const ir::Graph& graph, const BuildConfig& config,
                                                             std::string_view tag) {
  Status problems;
  std::vector<compile::Normalization> result;
  const struct {
    std::string_view name, default_name;
    const std::optional<ChannelValues>& values;
  } options[] = {{"mean_values", "zeros", config.mean_values}, {"std_values", "ones", config.std_values}};
  for (const auto& option : options)
    if (option.values && option.values->size() > graph.inputs().size())
      problems.also(invalid_argument(fmt::format("The len of {} ({}) is wrong, expect one list per input ({})!", option.name,
                                                 option.values->size(), graph.inputs().size())));
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ir::Tensor& tensor = graph.tensor(graph.inputs()[i]);
    int64_t channels = 1;
    if (tensor.shape && !tensor.shape->empty()) channels = (*tensor.shape)[channel_axis(tensor)].value();
    std::vector<double> rows[2];
    for (int k = 0; k < 2; ++k) {
      const auto& option = options[k];
      if (!option.values || i >= option.values->size()) {
        log(LogLevel::Warn, tag,
            fmt::format("The config.{} is None, {} will be set for input {}!", option.name, option.default_name, i));
        continue;
      }
      rows[k] = (*option.values)[i];
      if (config.first_value_for_one_channel && channels == 1 && !rows[k].empty()) rows[k].resize(1);
      if (config.one_value_for_all_channels && rows[k].size() == 1) rows[k].assign(static_cast<size_t>(channels), rows[k][0]);
      if (static_cast<int64_t>(rows[k].size()) != channels)
        problems.also(invalid_argument(
            fmt::format("The len of {} ({}) for input {} is wrong, expect {}!", option.name, rows[k], i, channels)));
    }
    compile::Normalization n;
    const bool neutral = std::all_of(rows[0].begin(), rows[0].end(), [](double v) { return v == 0; }) &&
                         std::all_of(rows[1].begin(), rows[1].end(), [](double v) { return v == 1; });
    if (!neutral && problems) {
      rows[0].resize(static_cast<size_t>(channels), 0);
      rows[1].resize(static_cast<size_t>(channels), 1);
      n.mean.assign(rows[0].begin(), rows[0].end());
      n.std.assign(rows[1].begin(), rows[1].end());
    }
    result.push_back(std::move(n));
  }
  if (!problems) return problems;
  return result;
}

}  // namespace orknn::toolkit
