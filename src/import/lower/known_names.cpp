#include "import/lower/known_names.h"

#include <algorithm>

#include "base/nearest_name.h"

namespace orknn::importer {
namespace {
constexpr size_t kMaxName = 64;  // shown of it
}

std::optional<std::string> unknown_name(std::string_view kind, std::string_view name, std::span<const std::string_view> known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return std::nullopt;
  std::string text = std::string(kind) + " '" + std::string(name.substr(0, kMaxName)) + "' is not known and has no effect";
  if (const std::string hint = did_you_mean(name, known); !hint.empty()) text += "; " + hint;
  return text;
}

}  // namespace orknn::importer
