// What the HTML reports share: escaping, and the look of a self-contained page.
#pragma once

#include <string>
#include <string_view>

namespace orknn::toolkit {

inline constexpr double kChartWidth = 1100;  // of every drawing, in units of its view box

std::string html_escaped(std::string_view text);
// Everything up to and including the heading; `extra_style` comes after the common style.
std::string html_head(std::string_view title, std::string_view extra_style = {});

}  // namespace orknn::toolkit
