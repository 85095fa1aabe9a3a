// How operators of the user's own are named in a graph: the operator T is "custom:T", whatever its domain in the source model and
// even when T is the name of a built-in operator. No stage has facts about such a name, so the node stays as it is.
#pragma once

#include <string>
#include <string_view>

namespace orknn::ir {

inline constexpr std::string_view kCustomPrefix = "custom:";
// Attributes of a custom node that begin with this character describe the node in its source model and are not the user's.
inline constexpr char kSourceMark = '.';
inline constexpr std::string_view kSourceDomain = ".domain", kSourceInputs = ".input", kSourceOutputs = ".output";

inline bool is_custom(std::string_view op) { return op.starts_with(kCustomPrefix); }
inline std::string custom_name(std::string_view type) { return std::string(kCustomPrefix).append(type); }
// The user's name for a custom operator; other names are given back as they are.
inline std::string_view custom_type(std::string_view op) { return is_custom(op) ? op.substr(kCustomPrefix.size()) : op; }

}  // namespace orknn::ir
