// Runs every tests/*.ir file: cases of `pass <names>`, a graph, `---`, and the expected graph or `unchanged`. Besides comparing
// the text, both graphs are evaluated on the same made-up inputs: a rewrite that changes values fails whatever the text says.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "agreement.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "test_paths.h"

namespace orknn::optimize {
namespace {
using namespace ir;

struct Case {
  std::string file;
  int line = 0;
  std::vector<std::string> passes;
  std::string before, after;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.file << ":" << c.line; }

std::filesystem::path test_folder() { return std::filesystem::path(tests::kSourceFolder) / "src/optimize/tests"; }

std::vector<Case> read_cases() {
  std::vector<Case> cases;
  std::set<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test_folder()))
    if (entry.path().extension() == ".ir") files.insert(entry.path());
  for (const auto& path : files) {
    std::ifstream in(path);
    std::string line;
    bool expected = false;
    for (int number = 1; std::getline(in, line); ++number) {
      if (line.rfind("pass ", 0) == 0) {
        cases.push_back({path.filename().string(), number, {}, "", ""});
        std::istringstream words(line.substr(5));
        for (std::string name; words >> name;) cases.back().passes.push_back(name);
        expected = false;
      } else if (line == "---") {
        expected = true;
      } else if (!cases.empty()) {
        (expected ? cases.back().after : cases.back().before) += line + "\n";
      }
    }
  }
  return cases;
}

// Values that differ from element to element and stay in a range where all functions are smooth.
TensorData made_up(DType dtype, const Dims& dims, uint32_t seed) {
  std::vector<double> values(static_cast<size_t>(element_count(dims)));
  for (double& v : values) {
    seed = seed * 1664525u + 1013904223u;
    const double unit = static_cast<double>(seed >> 8) / static_cast<double>(1 << 24);
    v = is_float(dtype) ? 4 * unit - 2 : dtype == DType::Bool ? std::floor(2 * unit) : std::floor(7 * unit);
  }
  return convert(TensorData::from<double>(dims, values).view(), dtype);
}

std::string compare(const Graph& before, const Graph& after) {
  std::vector<TensorData> inputs;
  for (TensorId id : before.inputs()) {
    const Tensor& t = before.tensor(id);
    Dims dims;
    for (const Dim& d : *t.shape) dims.push_back(d.is_known() ? d.value() : 2);
    inputs.push_back(made_up(t.dtype, dims, static_cast<uint32_t>(id.index + 1) * 7919u));
  }
  const auto x = ops::eval_graph(before, ops::builtin_ops(), inputs);
  if (!x) return "before: " + x.status().to_string();
  const auto y = ops::eval_graph(after, ops::builtin_ops(), inputs);
  if (!y) return "after: " + y.status().to_string();
  if (x->size() != y->size()) return "number of outputs";
  for (size_t i = 0; i < x->size(); ++i) {
    const std::string name = before.tensor(before.outputs()[i]).name;
    if (after.tensor(after.outputs()[i]).name != name)
      return "output '" + name + "' is now called '" + after.tensor(after.outputs()[i]).name + "'";
    if ((*x)[i].dtype() != (*y)[i].dtype() || (*x)[i].dims() != (*y)[i].dims()) return "type of '" + name + "'";
    const std::vector<double> a = to_doubles((*x)[i].view()), b = to_doubles((*y)[i].view());
    const bool half = (*x)[i].dtype() == DType::Float16 || (*x)[i].dtype() == DType::BFloat16;
    const double tolerance = half ? 2e-2 : 1e-4;
    for (size_t k = 0; k < a.size(); ++k)
      if (!tests::agrees(b[k], a[k], tolerance * std::max(1.0, std::abs(a[k]))))
        return "'" + name + "' element " + std::to_string(k) + ": " + std::to_string(a[k]) + " became " + std::to_string(b[k]);
  }
  return "";
}

// The lines after `unchanged` that begin with "remark".
std::string remarks_of(const std::string& text) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("remark ", 0) == 0) result += line + "\n";
  return result;
}

class PassText : public testing::TestWithParam<Case> {};

TEST_P(PassText, RewritesAsWritten) {
  const Case& c = GetParam();
  SCOPED_TRACE(c.file + ":" + std::to_string(c.line));
  Result<Graph> before = parse(c.before);
  ASSERT_TRUE(before) << before.status().to_string();
  const Status inferred = infer_shapes(*before, ops::builtin_ops());
  ASSERT_TRUE(inferred) << inferred.to_string();

  Graph after = *before;
  OptimizeOptions options;
  options.strict = true;
  Trace trace;
  const Status status = run_passes(after, ops::builtin_ops(), c.passes, options, &trace);
  ASSERT_TRUE(status) << status.to_string();
  EXPECT_EQ(compare(*before, after), "") << print(after);

  if (c.after.find_first_not_of(" \n") == c.after.find("unchanged")) {
    EXPECT_EQ(print(after), print(*before));
    std::string remarks;
    for (const TraceEntry& e : trace.entries) remarks += "remark " + e.text + "\n";
    EXPECT_EQ(remarks, remarks_of(c.after));
    return;
  }
  // Only the last pass is under test when several are named: the others prepare its input.
  EXPECT_TRUE(std::ranges::any_of(trace.entries, [&](const TraceEntry& e) { return e.pass == c.passes.back(); })) << print(after);
  Result<Graph> expected = parse(c.after);
  ASSERT_TRUE(expected) << expected.status().to_string();
  ASSERT_TRUE(infer_shapes(*expected, ops::builtin_ops()));
  expected->compact();
  EXPECT_EQ(print(after), print(*expected));
}

INSTANTIATE_TEST_SUITE_P(Files, PassText, testing::ValuesIn(read_cases()), [](const testing::TestParamInfo<Case>& info) {
  return std::regex_replace(info.param.file, std::regex("\\W"), "_") + "_line" + std::to_string(info.param.line);
});

TEST(Passes, EveryPassHasAPositiveAndANegativeCase) {
  std::set<std::string> positive, negative;
  for (const Case& c : read_cases()) {
    if (c.passes.empty()) continue;
    (c.after.find_first_not_of(" \n") == c.after.find("unchanged") ? negative : positive).insert(c.passes.back());
  }
  for (const Pass& p : pass_catalogue()) {
    EXPECT_TRUE(positive.contains(std::string(p.name))) << p.name << " has no case that rewrites";
    EXPECT_TRUE(negative.contains(std::string(p.name))) << p.name << " has no case that is left alone";
    EXPECT_TRUE((p.rule != nullptr) != (p.graph_pass != nullptr)) << p.name;
    EXPECT_FALSE(p.summary.empty()) << p.name;
  }
}

}  // namespace
}  // namespace orknn::optimize
