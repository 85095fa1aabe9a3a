#include "import/darknet/parse.h"

#include <algorithm>

#include "import/wire/text_reader.h"

namespace orknn::importer::darknet {
namespace {
// No network has more layers than this; a file of nothing but brackets must not become millions of them.
constexpr size_t kMaxLayers = 20000;
constexpr size_t kMaxWarnings = 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\0'; }

// Takes the next line off the front, without its end.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string without_blanks(std::string_view line) {
  std::string result(line);
  result.erase(std::remove_if(result.begin(), result.end(), is_blank), result.end());
  return result;
}

bool is_net(std::string_view type) { return type == "net" || type == "network"; }

Status at_line(size_t line, std::string message) {
  return invalid_model("line " + std::to_string(line) + ": " + std::move(message));
}

// "$width" stands for what [net] says about width.
void resolve_references(Description& d) {
  for (Section& s : d.layers)
    for (auto& [key, value] : s.options)
      if (value.size() > 1 && value[0] == '$')
        if (const auto it = d.net.options.find(value.substr(1)); it != d.net.options.end()) value = it->second;
}
}  // namespace

std::string_view Section::get(const std::string& key) const {
  const auto it = options.find(key);
  return it == options.end() ? std::string_view() : it->second;
}

Result<Description> parse_description(std::span<const std::byte> bytes) {
  Description result;
  Section* current = nullptr;
  std::string_view text = wire::text_of(bytes);
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string line = without_blanks(take_line(text));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line[0] == '[') {
      const size_t close = line.find(']');
      if (close == std::string::npos) return at_line(number, "a section without closing bracket").found(line.substr(0, 40));
      std::string type = line.substr(1, close - 1);
      if (!current) {
        if (!is_net(type))
          return at_line(number, "the first section must describe the network")
              .expected("[net]")
              .found("[" + type.substr(0, 40) + "]");
        current = &result.net;
      } else {
        if (result.layers.size() >= kMaxLayers)
          return at_line(number, "too many layers").expected("at most " + std::to_string(kMaxLayers));
        current = &result.layers.emplace_back();
      }
      current->type = std::move(type);
      current->line = number;
      continue;
    }
    if (!current) return at_line(number, "an option before the first section").expected("[net]").found(line.substr(0, 40));
    const size_t equals = line.find('=');
    if (equals == std::string::npos) {  // Darknet passes over such lines too
      if (result.warnings.size() < kMaxWarnings)
        result.warnings.push_back("line " + std::to_string(number) + " is not an option and is left out: '" + line.substr(0, 40) +
                                  "'");
      continue;
    }
    std::string value = line.substr(equals + 1);
    if (const size_t comment = value.find('#'); comment != std::string::npos) value.resize(comment);
    const auto [kept, is_first] = current->options.insert_or_assign(line.substr(0, equals), std::move(value));
    if (!is_first && result.warnings.size() < kMaxWarnings)
      result.warnings.push_back("line " + std::to_string(number) + ": option '" + kept->first.substr(0, 40) +
                                "' is given again in [" + current->type.substr(0, 40) + "]; its last value '" +
                                kept->second.substr(0, 40) + "' counts here, the first one in Darknet itself");
  }
  if (!current) return invalid_model("the file holds no section").expected("[net] and layers").hint("is it a Darknet .cfg?");
  if (result.layers.empty()) return invalid_model("the network has no layers");
  resolve_references(result);
  return result;
}

bool looks_like_description(std::span<const std::byte> bytes) {
  std::string_view text = wire::text_of(bytes.first(std::min<size_t>(bytes.size(), 4096)));
  while (!text.empty()) {
    const std::string line = without_blanks(take_line(text));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    return line.starts_with("[net]") || line.starts_with("[network]");
  }
  return false;
}

}  // namespace orknn::importer::darknet
