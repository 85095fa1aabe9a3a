#include "toolkit/table.h"

#include <algorithm>

namespace orknn::toolkit {
namespace {

// Characters of UTF-8 text: continuation bytes do not count.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}
}  // namespace

std::string Table::to_text() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = width_of(columns_[i].title);
    for (const auto& row : rows_)
      if (i < row.size()) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const auto& cell) {
    std::string out;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string value = cell(i);
      const std::string gap(widths[i] - std::min(widths[i], width_of(value)), ' ');
      out += columns_[i].align == Align::Right ? gap + value : value + gap;
      out += "  ";
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line([&](size_t i) { return columns_[i].title; });
  line([&](size_t i) { return std::string(widths[i], '-'); });
  for (const auto& row : rows_) line([&](size_t i) { return i < row.size() ? row[i] : std::string(); });
  return text;
}

}  // namespace orknn::toolkit
