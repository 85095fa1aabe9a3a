// Finds what a misspelt name was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orknn {

// The name among `known` that differs least from `name`, when that is little enough to be a slip; empty when there is none.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);
// "did you mean 'rk3588'?", or empty.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view name, std::span<const std::string> known);

}  // namespace orknn
