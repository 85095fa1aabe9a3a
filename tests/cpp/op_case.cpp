#include "op_case.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "agreement.h"
#include "ir/text.h"

namespace orknn::tests {
namespace {
using ir::TensorData;

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

class CaseTest : public testing::Test {
 public:
  explicit CaseTest(std::function<void()> body) : body_(std::move(body)) {}
  void TestBody() override { body_(); }

 private:
  std::function<void()> body_;
};

void register_body(const char* suite, const std::string& name, const char* file, int line, std::function<void()> body) {
  testing::RegisterTest(suite, name.c_str(), nullptr, nullptr, file, line,
                        [body = std::move(body)]() -> testing::Test* { return new CaseTest(body); });
}

}  // namespace

Result<std::vector<OpCase>> read_op_cases(const std::string& path) { return FileReader(path).cases(); }

std::vector<std::string> op_case_files() {
  std::vector<std::string> paths;
  std::error_code missing;  // no folder, no cases: the test that wants some for every op says so
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(ORKNN_SOURCE_DIR) + "/src/ops", missing))
    if (entry.path().extension() == ".cases") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool register_op_cases(const char* suite, std::function<void(const OpCase&)> check) {
  for (const std::string& path : op_case_files()) {
    auto cases = read_op_cases(path);
    if (!cases) {
      register_body(suite, std::filesystem::path(path).stem().string(), path.c_str(), 1,
                    [text = cases.status().to_string()] { FAIL() << text; });
      continue;
    }
    for (OpCase& c : *cases) {
      const std::string name = c.file + "/" + c.name;
      const int line = c.line;
      register_body(suite, name, path.c_str(), line, [check, path, rerun = std::string(suite) + "." + name, c = std::move(c)] {
        SCOPED_TRACE(path + ":" + std::to_string(c.line) + ", rerun with --gtest_filter='" + rerun + "'");
        check(c);
      });
    }
  }
  return true;
}

Status compare(const TensorData& found, const TensorData& expected, double absolute, double relative) {
  const auto type_text = [](const TensorData& t) { return std::string(dtype_name(t.dtype())) + ir::to_string(t.dims()); };
  if (found.dtype() != expected.dtype() || found.dims() != expected.dims())
    return shape_mismatch("another type or shape").expected(type_text(expected)).found(type_text(found));
  const bool exact = !is_float(expected.dtype());
  if (exact && ir::identical(found.view(), expected.view())) return {};
  const std::vector<double> a = ir::to_doubles(found.view()), b = ir::to_doubles(expected.view());
  for (size_t i = 0; i < a.size(); ++i)
    if (exact ? a[i] != b[i] : !agrees(a[i], b[i], absolute + relative * std::abs(b[i])))
      return Status::error(Code::Fail, "element " + std::to_string(i) + " differs in " + ir::print_tensor(found))
          .expected(std::to_string(b[i]))
          .found(std::to_string(a[i]));
  return exact ? Status::error(Code::Fail, "64-bit integers differ") : Status();
}

}  // namespace orknn::tests
