// The accuracy report as text: the table of Toolkit2, the lines of Toolkit1, and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/printable_line.h"
#include "toolkit/accuracy.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {

// Five significant digits: "4.7572", "22.639", "0.0".
std::string euclid_text(double v) {
  std::string text = fmt::format("{:.5g}", v);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  return text;
}

constexpr size_t kCosineWidth = 8, kEuclidWidth = 9;

std::string cell(const std::optional<Distance>& d, std::string_view who) {
  if (!d) return std::string(kCosineWidth + 3 + kEuclidWidth, ' ');
  const std::string word = d->word.empty() ? "" : fmt::format("{}{}", who, d->word);
  return fmt::format("{:>{}} | {:<{}}", word.empty() ? fmt::format("{:.5f}", d->cosine) : word, kCosineWidth,
                     word.empty() ? euclid_text(d->euclid) : word, kEuclidWidth);
}

std::string coloured(const std::string& text, const std::optional<Distance>& d, bool colours) {
  if (!colours || !d) return text;
  if (!d->word.empty() || d->cosine < kBadCosine) return "\033[31m" + text + "\033[0m";
  if (d->cosine < kSuspiciousCosine) return "\033[33m" + text + "\033[0m";
  return text;
}
}  // namespace

std::string accuracy_text(const AccuracyReport& report, bool colours, size_t line_width) {
  constexpr size_t kCell = kCosineWidth + 3 + kEuclidWidth, kPair = 2 * kCell;
  const size_t pairs = report.has_device ? 2 : 1;
  std::string text;
  const auto remark = [&](const char* words) {
    for (const std::string& line : wrapped(words, line_width ? std::max(line_width, kPair) - 2 : 0)) text += "# " + line + "\n";
  };
  remark("layer_name: [operator] name of its output tensor; a layer without numbers is computed inside the next one.");
  remark("cos: cosine of the angle between two tensors, 1 = same direction; euc: length of their difference.");
  remark("golden: the float model. simulator: the built model. single: the layer alone, fed with golden values.");
  remark(
      "simulator_error entire: golden against simulator, errors add up from the input on; single: golden against the layer "
      "alone.");
  if (report.has_device)
    remark(
        "runtime_error entire: golden against the device, errors add up; single_sim: simulator against the device, the layer "
        "alone.");
  remark("inf, nan: values that are not numbers; s_ in the simulator, q_ in the layer alone, rt_ on the device.");
  text += "\n";
  size_t width = std::string_view("layer_name").size();
  const auto row_name = [&](const LayerAccuracy& l) {
    return name_in_line(fmt::format("[{}] {}", l.type, l.name), line_width, pairs * kPair + 2);
  };
  for (const LayerAccuracy& l : report.layers) width = std::max(width, width_of(row_name(l)));
  width += 2;
  const auto titles = [&](std::string_view first, const std::vector<std::string_view>& names, size_t each) {
    std::string line = fmt::format("{:<{}}", first, width);
    for (std::string_view n : names) line += fmt::format("{:^{}}", n, each);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  const std::vector<std::string_view> cos_euc(report.has_device ? 4 : 2, "cos      euc");
  if (report.has_device) {
    titles("layer_name", {"simulator_error", "runtime_error"}, kPair);
    titles("", {"entire", "single", "entire", "single_sim"}, kCell);
  } else {
    titles("layer_name", {"simulator_error"}, kPair);
    titles("", {"entire", "single"}, kCell);
  }
  titles("", cos_euc, kCell);
  text += std::string(width + kPair * pairs, '-') + "\n";
  for (const LayerAccuracy& l : report.layers) {
    std::string line = row_name(l);
    line.append(width - width_of(line), ' ');
    if (!l.fused && (l.entire || l.single || l.device_entire)) {
      line += coloured(cell(l.entire, "s_"), l.entire, colours) + coloured(cell(l.single, "q_"), l.single, colours);
      if (report.has_device)
        line += coloured(cell(l.device_entire, "rt_"), l.device_entire, colours) +
                coloured(cell(l.device_single, "rt_"), l.device_single, colours);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string accuracy_text_toolkit1(const AccuracyReport& report, bool individual) {
  std::string text;
  size_t width = 0;
  for (const LayerAccuracy& l : report.layers) width = std::max(width, printable_line(l.name).size());
  for (const LayerAccuracy& l : report.layers) {
    const std::optional<Distance>& d = individual ? l.single : l.entire;
    if (l.fused || !d) continue;
    const auto number = [&](double v) { return d->word.empty() ? fmt::format("{:.6f}", v) : d->word; };
    text +=
        fmt::format("{:<{}}\teculidean_norm={}\tcosine_norm={}\teculidean={}\tcosine={}\n", printable_line(l.name), width,
                    number(std::sqrt(std::max(0.0, 2 - 2 * d->cosine))), number(d->cosine), number(d->euclid), number(d->cosine));
  }
  return text;
}

nlohmann::ordered_json to_json(const AccuracyReport& report) {
  const auto pair = [](const std::optional<Distance>& d) -> nlohmann::ordered_json {
    if (!d) return nullptr;
    if (!d->word.empty()) return {{"not_a_number", d->word}};
    return {{"cosine", d->cosine}, {"euclid", d->euclid}};
  };
  nlohmann::ordered_json layers = nlohmann::ordered_json::array();
  for (const LayerAccuracy& l : report.layers) {
    nlohmann::ordered_json j{{"type", l.type}, {"name", l.name}};
    if (l.fused)
      j["fused"] = true;
    else {
      j["dtype"] = l.values.dtype;
      j["entire"] = pair(l.entire);
      j["single"] = pair(l.single);
      if (report.has_device) {
        j["runtime_entire"] = pair(l.device_entire);
        j["runtime_single"] = pair(l.device_single);
      }
      j["range"] = {l.values.low, l.values.high};
      if (l.values.scale != 0) {
        j["scale"] = l.values.scale;
        j["clipped"] = l.values.clipped;
      }
      if (l.is_output) j["output"] = true;
      if (!l.suggestion.empty()) j["suggestion"] = l.suggestion;
    }
    layers.push_back(std::move(j));
  }
  const LayerAccuracy* worst = report.worst_output();
  return {{"model", report.model},
          {"platform", report.platform},
          {"number_format", report.number_format},
          {"worst_output", worst ? nlohmann::ordered_json{{"name", worst->name}, {"entire", pair(worst->entire)}} : nullptr},
          {"layers", std::move(layers)}};
}

}  // namespace orknn::toolkit
