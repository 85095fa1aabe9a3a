// A table of text: columns as wide as their contents, two spaces apart.
#pragma once

#include <string>
#include <vector>

namespace orknn::toolkit {

class Table {
 public:
  enum class Align { Left, Right };
  struct Column {
    std::string title;
    Align align = Align::Left;
    // What may happen to the column when the table has to fit.
    bool may_shorten = false;  // long cells lose their middle
    bool may_drop = false;     // it is left out, the last such column first, and named below the table
    bool may_wrap = false;     // the last column only: its words go on in more lines
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);
  // Columns end where their longest cell ends; the last one is not padded. `width` > 0: columns give way until a line has at
  // most so many characters.
  std::string to_text(size_t width = 0) const;

 private:
  struct Layout;
  Layout natural_layout(const std::vector<size_t>& shown) const;
  Layout layout(size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Characters of UTF-8 text.
size_t width_of(const std::string& text);
// The text without its middle, in at most `width` characters; as it is for a width of 0.
std::string shortened(const std::string& text, size_t width);
// A name, shortened for a line of `width` characters (0 = any number) in which it stands with `others` more.
std::string name_in_line(const std::string& name, size_t width, size_t others);
// The words of a text in lines of at most `width` characters, all in one for a width of 0.
std::vector<std::string> wrapped(const std::string& text, size_t width);

}  // namespace orknn::toolkit
