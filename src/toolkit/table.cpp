#include "toolkit/table.h"

#include <algorithm>

#include "base/utf8.h"

namespace orknn::toolkit {
namespace {

// Characters of UTF-8 text: continuation bytes do not count.
bool is_first_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }
size_t width_of(const std::string& text) { return static_cast<size_t>(std::count_if(text.begin(), text.end(), is_first_byte)); }

// The first `count` characters, and the last ones.
std::string head_of(const std::string& text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (is_first_byte(text[at]) && count-- == 0) break;
  return text.substr(0, at);
}
std::string end_of(const std::string& text, size_t count) { return text.substr(head_of(text, width_of(text) - count).size()); }

std::string shortened(const std::string& text, size_t width) {
  if (width_of(text) <= width || width < 3) return text;
  const size_t tail = (width - 1) / 2;
  return head_of(text, width - 1 - tail) + "…" + end_of(text, tail);
}
}  // namespace

void Table::add(std::vector<std::string> row) {
  for (std::string& cell : row) cell = printable(cell);  // names come from files
  rows_.push_back(std::move(row));
}

std::string Table::to_text(size_t limit) const {
  constexpr size_t kGap = 2, kLeast = 12;
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = width_of(columns_[i].title);
    for (const auto& row : rows_)
      if (i < row.size()) width = std::max(width, width_of(row[i]));
    widths.push_back(width);
    total += width + kGap;
  }
  for (size_t i = 0; i < columns_.size() && limit > 0 && total > limit + kGap; ++i) {
    if (!columns_[i].may_shorten) continue;
    const size_t cut = std::min(total - limit - kGap, widths[i] - std::min(widths[i], kLeast));
    widths[i] -= cut;
    total -= cut;
  }
  std::string text;
  const auto line = [&](const auto& cell) {
    std::string out;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::string value = shortened(cell(i), widths[i]);
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
