#include "op_case.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/text.h"
#include "test_paths.h"

namespace orknn::tests {
namespace {

// `line` without its first word when that is `keyword`.
bool take_keyword(const std::string& line, std::string_view keyword, std::string& rest) {
  if (line.compare(0, keyword.size(), keyword) != 0) return false;
  if (line.size() > keyword.size() && line[keyword.size()] != ' ') return false;
  rest = line.size() > keyword.size() ? line.substr(keyword.size() + 1) : "";
  return true;
}

class FileReader {
 public:
  explicit FileReader(const std::string& path) : path_(path), stream_(path) {}

  Result<std::vector<OpCase>> cases() {
    if (!stream_) return io_error("cannot open " + path_);
    std::vector<OpCase> out;
    std::set<std::string> names;
    while (next()) {
      std::string rest;
      if (take_keyword(line_, "case", rest)) {
        if (rest.empty() || !names.insert(rest).second) return fail("a case needs a name of its own");
        out.emplace_back();
        out.back().file = std::filesystem::path(path_).stem().string();
        out.back().name = rest;
        out.back().line = number_;
        continue;
      }
      if (out.empty()) return fail("expected 'case'");
      ORKNN_TRY(property(out.back()));
    }
    for (const OpCase& c : out)
      if (c.graph.empty() || c.outputs.empty() == c.error.empty())
        return invalid_argument(path_ + ":" + std::to_string(c.line) + ": a case has a graph and either 'out' or 'error'");
    return out;
  }

 private:
  // Moves to the next line that is neither empty nor a comment; indented lines that follow are joined to it.
  bool next() {
    while (raw_line()) {
      if (line_.empty() || line_[0] == '#') continue;
      while (stream_.peek() == ' ') {
        const std::string head = line_;
        if (!raw_line()) break;
        line_ = head + "\n" + line_;
      }
      return true;
    }
    return false;
  }
  bool raw_line() {
    if (!std::getline(stream_, line_)) return false;
    ++number_;
    while (!line_.empty() && std::isspace(static_cast<unsigned char>(line_.back()))) line_.pop_back();
    return true;
  }
  Status fail(const std::string& what) const { return invalid_argument(path_ + ":" + std::to_string(number_) + ": " + what); }

  Status property(OpCase& c) {
    std::string rest;
    if (take_keyword(line_, "half", rest)) {
      c.half = true;
      return {};
    }
    if (take_keyword(line_, "tolerance", rest)) {
      std::istringstream values(rest);
      return values >> c.absolute >> c.relative ? Status() : fail("expected an absolute and a relative tolerance");
    }
    if (take_keyword(line_, "error", rest)) {
      c.error = rest;
      return rest.empty() ? fail("expected a part of the error message") : Status();
    }
    if (take_keyword(line_, "in", rest)) {
      auto value = ir::parse_tensor(rest);
      if (!value) return fail(value.status().message());
      c.inputs.push_back(std::move(*value));
      return {};
    }
    if (take_keyword(line_, "out", rest)) {
      const bool any = rest.size() > 4 && rest.ends_with(" any");
      if (any) rest = rest.substr(0, rest.size() - 3) + "splat 0";
      auto value = ir::parse_tensor(rest);
      if (!value) return fail(value.status().message());
      c.outputs.push_back({std::move(*value), any});
      return {};
    }
    if (take_keyword(line_, "graph", rest)) {
      c.graph = line_ + "\n";
      while (line_ != "}") {
        if (!raw_line()) return fail("a graph ends with '}' in the first column");
        c.graph += line_ + "\n";
      }
      return {};
    }
    return fail("unknown keyword in '" + line_ + "'");
  }

  std::string path_;
  std::ifstream stream_;
  std::string line_;
  int number_ = 0;
};

}  // namespace

Result<std::vector<OpCase>> read_op_cases(const std::string& path) { return FileReader(path).cases(); }

std::vector<std::string> op_case_files() {
  std::vector<std::string> paths;
  std::error_code missing;  // no folder, no cases: the test that wants some for every op says so
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(tests::kSourceFolder) + "/src/ops", missing))
    if (entry.path().extension() == ".cases") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace orknn::tests
