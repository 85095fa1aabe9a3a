// Options and attributes that are not known: a misspelt one must not change the network silently.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orknn::importer {

// What to say about a name that is not among `known`, with the one it is most likely meant to be; nothing for a known name.
std::optional<std::string> unknown_name(std::string_view kind, std::string_view name, std::span<const std::string_view> known);

// The sentence for descriptions that came without weights.
inline constexpr std::string_view kRandomWeights = "no weights are given: random ones are used, good for speed and memory only";

}  // namespace orknn::importer
