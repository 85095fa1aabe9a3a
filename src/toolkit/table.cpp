#include "toolkit/table.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "base/printable_line.h"

namespace orknn::toolkit {
namespace {
constexpr size_t kGap = 2;
constexpr size_t kLeastName = 12;   // characters of a shortened cell
constexpr size_t kLeastWords = 24;  // of a column of words; with less room they go below their row
constexpr size_t kBelow = 4;        // and are indented

// Continuation bytes of UTF-8 are no characters of their own.
bool is_first_byte(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

// The first `count` characters, and the last ones.
std::string head_of(const std::string& text, size_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at)
    if (is_first_byte(text[at]) && count-- == 0) break;
  return text.substr(0, at);
}
std::string end_of(const std::string& text, size_t count) { return text.substr(head_of(text, width_of(text) - count).size()); }

const std::string& cell_of(const std::vector<std::string>& row, size_t column) {
  static const std::string empty;
  return column < row.size() ? row[column] : empty;
}
}  // namespace

size_t width_of(const std::string& text) { return static_cast<size_t>(std::count_if(text.begin(), text.end(), is_first_byte)); }

std::string shortened(const std::string& text, size_t width) {
  if (width_of(text) <= width || width < 3) return text;
  const size_t tail = (width - 1) / 2;
  return head_of(text, width - 1 - tail) + "…" + end_of(text, tail);
}

std::string name_in_line(const std::string& name, size_t width, size_t others) {
  const std::string text = printable_line(name);
  return width == 0 ? text : shortened(text, std::max(width, others + kLeastName) - others);
}

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  if (width == 0) return {text};
  std::vector<std::string> lines;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    word = shortened(word, width);
    if (!lines.empty() && width_of(lines.back()) + 1 + width_of(word) <= width)
      lines.back() += " " + word;
    else
      lines.push_back(word);
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

void Table::add(std::vector<std::string> row) {
  for (std::string& text : row) text = printable_line(text);  // names come from files
  rows_.push_back(std::move(row));
}

struct Table::Layout {
  std::vector<size_t> shown;   // columns
  std::vector<size_t> widths;  // of those
  size_t words_below = 0;      // > 0: the last column's cells stand below their rows, this wide
  size_t total() const { return std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1)); }
};

Table::Layout Table::natural_layout(const std::vector<size_t>& shown) const {
  Layout layout{shown, {}, 0};
  for (const size_t column : shown) {
    size_t width = width_of(columns_[column].title);
    for (const auto& row : rows_) width = std::max(width, width_of(cell_of(row, column)));
    layout.widths.push_back(width);
  }
  return layout;
}

Table::Layout Table::layout(size_t limit) const {
  std::vector<size_t> shown(columns_.size());
  std::iota(shown.begin(), shown.end(), size_t{0});
  Layout layout = natural_layout(shown);
  if (limit == 0 || layout.total() <= limit) return layout;
  const bool has_words = columns_.back().may_wrap;
  if (has_words) {
    const size_t others = layout.total() - layout.widths.back();
    if (others + kLeastWords <= limit) {
      layout.widths.back() = limit - others;
      return layout;
    }
    shown.pop_back();
  }
  for (;;) {
    layout = natural_layout(shown);
    for (size_t i = 0; i < shown.size() && layout.total() > limit; ++i)
      if (columns_[shown[i]].may_shorten)
        layout.widths[i] -= std::min(layout.total() - limit, layout.widths[i] - std::min(layout.widths[i], kLeastName));
    const auto last = std::find_if(shown.rbegin(), shown.rend(), [&](size_t column) { return columns_[column].may_drop; });
    if (layout.total() <= limit || last == shown.rend()) break;
    shown.erase(std::next(last).base());
  }
  if (has_words) layout.words_below = limit - std::min(limit - 1, kBelow);
  return layout;
}

std::string Table::to_text(size_t limit) const {
  const Layout layout = this->layout(limit);
  std::string text;
  const auto line = [&](const auto& content) {
    std::string out;
    for (size_t i = 0; i < layout.shown.size(); ++i) {
      const std::string value = content(i);
      const std::string gap(layout.widths[i] - std::min(layout.widths[i], width_of(value)), ' ');
      out += columns_[layout.shown[i]].align == Align::Right ? gap + value : value + gap;
      out += std::string(kGap, ' ');
    }
    out.erase(out.find_last_not_of(' ') + 1);
    text += out + "\n";
  };
  line([&](size_t i) { return columns_[layout.shown[i]].title; });
  line([&](size_t i) { return std::string(layout.widths[i], '-'); });
  for (const auto& row : rows_) {
    std::vector<std::string> words{""};  // of the last column, where it is wrapped
    if (columns_.back().may_wrap)
      words = wrapped(cell_of(row, columns_.size() - 1), layout.words_below ? layout.words_below : layout.widths.back());
    for (size_t k = 0; k < (layout.words_below ? 1 : words.size()); ++k)
      line([&](size_t i) -> std::string {
        const size_t column = layout.shown[i];
        if (columns_[column].may_wrap) return words[k];
        return k == 0 ? shortened(cell_of(row, column), layout.widths[i]) : "";
      });
    if (layout.words_below && !words.front().empty())
      for (const std::string& part : words) text += std::string(kBelow, ' ') + part + "\n";
  }
  std::string dropped;
  for (size_t column = 0; column < columns_.size(); ++column)
    if (columns_[column].may_drop && std::find(layout.shown.begin(), layout.shown.end(), column) == layout.shown.end())
      dropped += (dropped.empty() ? "" : ", ") + columns_[column].title;
  if (!dropped.empty())
    for (const std::string& part : wrapped("(no room for: " + dropped + ")", limit)) text += part + "\n";
  return text;
}

}  // namespace orknn::toolkit
