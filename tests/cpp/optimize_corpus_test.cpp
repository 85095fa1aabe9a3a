// Optimizing changes no results: every small model of the corpus, if it is there, evaluated before and after on its stored
// inputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>

#include "agreement.h"
#include "import/importer.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "test_paths.h"

namespace orknn::optimize {
namespace {
namespace fs = std::filesystem;
using namespace ir;

constexpr uintmax_t kMaxModelBytes = 400'000;
constexpr int64_t kMaxMacs = 30'000'000;

fs::path corpus() {
  if (const char* set = std::getenv("ORKNN_CORPUS")) return set;
  return fs::path(tests::kSourceFolder) / "../shared/corpus";
}

// A .npy file of version 1; nothing when it is not one or its type is none of ours.
TensorData read_npy(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.size() < 10 || bytes.compare(0, 6, "\x93NUMPY") != 0) return {};
  const size_t header = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  const std::string text = bytes.substr(10, header);
  std::smatch type, shape;
  if (!std::regex_search(text, type, std::regex("'descr': '[<|=]?([a-z][0-9]+)'")) ||
      !std::regex_search(text, shape, std::regex("\\(([0-9, ]*)\\)")))
    return {};
  static const std::map<std::string, DType> types = {{"f4", DType::Float32}, {"f8", DType::Float64}, {"f2", DType::Float16},
                                                     {"i1", DType::Int8},    {"i2", DType::Int16},   {"i4", DType::Int32},
                                                     {"i8", DType::Int64},   {"u1", DType::UInt8},   {"u2", DType::UInt16},
                                                     {"u4", DType::UInt32},  {"u8", DType::UInt64},  {"b1", DType::Bool}};
  const auto dtype = types.find(type[1]);
  if (dtype == types.end()) return {};
  Dims dims;
  const std::string list = shape[1];
  const std::regex number("[0-9]+");
  for (std::sregex_iterator it(list.begin(), list.end(), number), end; it != end; ++it) dims.push_back(std::stoll(it->str()));
  TensorData t = TensorData::allocate(dtype->second, dims);
  if (bytes.size() < 10 + header + t.bytes()) return {};
  std::memcpy(t.mutable_data(), bytes.data() + 10 + header, t.bytes());
  return t;
}

int64_t work(const Graph& g) {
  int64_t macs = 0;
  for (NodeId id : g.order()) {
    const Node& n = g.node(id);
    const OpDef* def = ops::builtin_ops().find(n.op);
    if (!def || !def->cost) continue;
    std::vector<Dims> inputs, outputs;
    for (TensorId t : n.inputs) inputs.push_back(t && g.tensor(t).shape ? to_dims(*g.tensor(t).shape).value_or(Dims{}) : Dims{});
    for (TensorId t : n.outputs)
      outputs.push_back(t && g.tensor(t).shape ? to_dims(*g.tensor(t).shape).value_or(Dims{}) : Dims{});
    if (std::ranges::any_of(outputs, [](const Dims& d) { return d.empty(); })) continue;
    macs += def->cost(NodeReader(n, *def), inputs, outputs).macs;
  }
  return macs;
}

bool is_random(const Graph& g) {
  for (NodeId id : g.order()) {
    const OpDef* def = ops::builtin_ops().find(g.node(id).op);
    if (!def || !def->deterministic || g.node(id).op == "Dropout") return true;
  }
  return false;
}

// How far two results are apart, in words; empty when they agree.
std::string difference(const TensorData& a, const TensorData& b) {
  if (a.dtype() != b.dtype() || a.dims() != b.dims())
    return "type or shape: " + to_string(a.dims()) + " and " + to_string(b.dims());
  const bool half = a.dtype() == DType::Float16 || a.dtype() == DType::BFloat16;
  const std::vector<double> x = to_doubles(a.view()), y = to_doubles(b.view());
  double largest = 1e-3;
  for (double v : x)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  for (size_t i = 0; i < x.size(); ++i) {
    if (tests::agrees(y[i], x[i], (half ? 2e-2 : 1e-3) * std::abs(x[i]) + (half ? 1e-2 : 1e-4) * largest)) continue;
    return "element " + std::to_string(i) + ": " + std::to_string(x[i]) + " and " + std::to_string(y[i]);
  }
  return "";
}

TEST(OptimizeCorpus, KeepsTheResultsOfEverySmallModel) {
  if (!fs::exists(corpus() / "onnx")) GTEST_SKIP() << "no corpus at " << corpus();
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(corpus() / "onnx"))
    if (fs::exists(entry.path() / "model.onnx") && fs::file_size(entry.path() / "model.onnx") < kMaxModelBytes)
      cases.push_back(entry.path());
  std::ranges::sort(cases);
  const char* only = std::getenv("ORKNN_CASE");
  size_t compared = 0;
  std::map<std::string, size_t> skipped;  // reason -> models
  for (const fs::path& path : cases) {
    if (only && path.filename() != only) continue;
    SCOPED_TRACE(path.filename().string());
    importer::ImportOptions import_options;
    std::vector<TensorData> inputs;
    for (size_t i = 0; fs::exists(path / ("input_" + std::to_string(i) + ".npy")); ++i) {
      inputs.push_back(read_npy(path / ("input_" + std::to_string(i) + ".npy")));
      import_options.input_size_list.push_back(inputs.back().dims());
    }
    if (std::ranges::any_of(inputs, [](const TensorData& t) { return !t.has_value(); })) {
      ++skipped["stored inputs of another kind"];
      continue;
    }
    auto imported = importer::load_file((path / "model.onnx").string(), import_options, ops::builtin_ops());
    if (!imported) imported = importer::load_file((path / "model.onnx").string(), {}, ops::builtin_ops());
    if (!imported || imported->graph.inputs().size() != inputs.size()) {
      ++skipped["not imported"];  // the importer's own tests judge that
      continue;
    }
    Graph& before = imported->graph;
    if (!infer_shapes(before, ops::builtin_ops())) {
      ++skipped["shapes not inferred"];
      continue;
    }
    if (is_random(before) || work(before) > kMaxMacs) {
      ++skipped["random or large"];
      continue;
    }
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].dtype() != before.tensor(before.inputs()[i]).dtype)
        inputs[i] = convert(inputs[i].view(), before.tensor(before.inputs()[i]).dtype);
    const auto expected = ops::eval_graph(before, ops::builtin_ops(), inputs);
    if (!expected) {
      ++skipped["not evaluated"];
      continue;
    }
    for (int level = 0; level <= 3; level += 3) {
      Graph after = before;
      OptimizeOptions options;
      options.level = level;
      options.strict = true;
      Trace trace;
      const Status status = optimize(after, ops::builtin_ops(), options, &trace);
      EXPECT_TRUE(status) << status.to_string();
      if (!status) continue;
      const auto found = ops::eval_graph(after, ops::builtin_ops(), inputs);
      EXPECT_TRUE(found) << found.status().to_string() << "\n" << trace.to_text();
      if (!found) continue;
      for (size_t i = 0; i < expected->size(); ++i) {
        EXPECT_EQ(before.tensor(before.outputs()[i]).name, after.tensor(after.outputs()[i]).name);
        const std::string apart = difference((*expected)[i], (*found)[i]);
        EXPECT_EQ(apart, "") << "level " << level << ", output " << i << "\n" << trace.to_text();
      }
    }
    ++compared;
  }
  std::string reasons;
  for (const auto& [reason, count] : skipped) reasons += " " + std::to_string(count) + " " + reason + ";";
  if (!only) {
    EXPECT_LE(20 * (cases.size() - compared), cases.size())
        << compared << " of " << cases.size() << " compared; left out:" << reasons;
  }
  RecordProperty("compared", static_cast<int>(compared));
}

}  // namespace
}  // namespace orknn::optimize
