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
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // Columns end where their longest cell ends; the last one is not padded.
  std::string to_text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace orknn::toolkit
