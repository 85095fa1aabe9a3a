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
    bool may_shorten = false;  // long cells lose their middle when the table has to fit
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row);
  // Columns end where their longest cell ends; the last one is not padded. `width` > 0: columns that may be shortened give way
  // until a line has at most so many characters.
  std::string to_text(size_t width = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace orknn::toolkit
