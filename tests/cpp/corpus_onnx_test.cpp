// Every ONNX case of the test corpus through importer, shape inference and reference evaluator, judged like the corpus' own
// check.py in its float32 mode. ORKNN_CASE=text runs only the cases whose name contains it, and says more.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "agreement.h"
#include "data/npy.h"
#include "import/importer.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "ops/eval.h"
#include "test_paths.h"

namespace orknn {
namespace {
namespace fs = std::filesystem;
using nlohmann::json;

// Beyond what an inference toolkit must read: may be refused, must not be wrong.
constexpr std::string_view kExtra[] = {
    "TfIdfVectorizer", "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", "Unique", "Compress", "NonZero", "Scan", "Loop"};

bool is_extra(const json& info) {
  for (const std::string op : info["op_types"])
    if (op.starts_with("ai.onnx.ml:") || op.starts_with("com.microsoft:") ||
        std::find(std::begin(kExtra), std::end(kExtra), op) != std::end(kExtra))
      return true;
  return false;
}

std::string text_or(const json& entry, const char* key) {
  return entry.contains(key) && entry[key].is_string() ? entry[key].get<std::string>() : "";
}
bool has(const json& entry, const char* key) { return entry.contains(key) && !entry[key].is_null(); }

// Python writes an infinite difference as Infinity, which JSON does not know.
json read_case(const fs::path& folder) {
  std::ifstream file(folder / "case.json");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  for (size_t at; (at = text.find(": Infinity")) != std::string::npos;) text.replace(at, 10, ": 1e300");
  return json::parse(text);
}

// The stored array of an input or output; without value when there is none.
Result<ir::TensorData> stored(const fs::path& folder, const json& entry) {
  if (entry.contains("feed"))
    return ir::TensorData::scalar<double>(entry["feed"].is_boolean() ? entry["feed"].get<bool>() : entry["feed"].get<double>());
  if (!has(entry, "file")) return ir::TensorData{};
  ORKNN_TRY_ASSIGN(ir::TensorData data, data::read_npy((folder / entry["file"].get<std::string>()).string()));
  if (has(entry, "stored_as") || (text_or(entry, "dtype") == "bfloat16" && data.dtype() == DType::UInt16))
    return ir::TensorData::wrap(DType::BFloat16, data.dims(), data.data(), std::make_shared<ir::TensorData>(data));
  return data;
}

// Empty when the arrays agree, else a sentence.
std::string difference(const ir::TensorData& got, const ir::TensorData& want, const json& entry, const json& info) {
  if (got.dims() != want.dims()) {
    const int64_t longest = got.dims().empty() ? 1 : *std::max_element(got.dims().begin(), got.dims().end());
    if (got.count() != want.count() || got.count() != longest)
      return "shape " + ir::to_string(got.dims()) + ", expected " + ir::to_string(want.dims());
  }
  if (want.count() == 0) return "";
  if (!is_float(want.dtype())) {
    const auto a = ir::to_ints(got.view()), b = ir::to_ints(want.view());
    size_t bad = 0;
    for (size_t i = 0; i < a.size(); ++i) bad += a[i] != b[i];
    return bad ? std::to_string(bad) + " of " + std::to_string(a.size()) + " integers differ" : "";
  }
  const auto a = ir::to_doubles(got.view()), b = ir::to_doubles(want.view());
  double peak = 0, dot = 0, norm_a = 0, norm_b = 0;
  size_t finite = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if ((!std::isfinite(a[i]) || !std::isfinite(b[i])) && !tests::agrees(a[i], b[i], 0))
      return "NaN or infinity in different places";
    if (!std::isfinite(b[i])) continue;
    ++finite;
    peak = std::max(peak, std::abs(b[i]));
    dot += a[i] * b[i];
    norm_a += a[i] * a[i];
    norm_b += b[i] * b[i];
  }
  const json& verified = info["verified"];
  const double known = verified.is_object() && has(verified, "max_abs_diff") ? verified["max_abs_diff"].get<double>() : 0.0;
  const double floor = text_or(info, "golden") == "source_inexact" ? 0.02 * peak : 1e-5 * std::max(1.0, peak);
  const bool is_net = info["kind"] == "net";
  const std::string dtype = text_or(entry, "dtype");
  double worst = 0, expected = 0, found = 0;
  size_t off = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!std::isfinite(b[i])) continue;
    double allowed = std::max(floor, 2 * known) + 1e-3 * std::abs(b[i]);
    if (is_net) allowed = std::max(allowed, 2e-4 * peak);
    if (dtype == "float16") allowed += 2e-3 * std::abs(b[i]) + 1e-4 * peak;
    if (dtype == "bfloat16") allowed += 1e-2 * std::abs(b[i]);
    const double over = std::abs(a[i] - b[i]) - allowed;
    off += over > 0;
    if (over > worst) {
      worst = over;
      expected = b[i];
      found = a[i];
    }
  }
  if (!off) return "";
  const bool quantized = std::any_of(info["op_types"].begin(), info["op_types"].end(),
                                     [](const json& op) { return op.get<std::string>().find("Quantize") != std::string::npos; });
  if (is_net && finite > 4 && quantized && dot / (std::sqrt(norm_a) * std::sqrt(norm_b) + 1e-30) > 0.999) return "";
  return std::to_string(expected) + " expected, " + std::to_string(found) + " found; " + std::to_string(off) + " of " +
         std::to_string(finite) + " values off";
}

enum class Verdict { Pass, Ran, Refused, Wrong };
struct Outcome {
  Verdict verdict;
  std::string why;
};

Outcome run_case(const fs::path& folder, const json& info, bool verbose) {
  const auto refused = [](const Status& s) { return Outcome{Verdict::Refused, s.to_string()}; };
  std::string model;
  for (const std::string file : info["model_files"])
    if (file.ends_with(".onnx")) model = (folder / file).string();
  std::vector<ir::TensorData> arrays;
  bool fixed = true, complete = true;
  for (const json& entry : info["inputs"]) {
    auto data = stored(folder, entry);
    if (!data) return refused(data.status());
    complete &= data->has_value();
    arrays.push_back(*data);
    if (!has(entry, "shape") || entry["shape"].empty())
      fixed = false;
    else
      for (const json& d : entry["shape"]) fixed &= d.is_number_integer() && d.get<int64_t>() >= 0;
  }
  importer::ImportOptions options;
  if (!fixed)
    for (size_t i = 0; i < arrays.size(); ++i) {
      const json& entry = info["inputs"][i];
      options.inputs.push_back(entry["name"]);
      if (arrays[i].has_value()) {
        options.input_size_list.push_back(arrays[i].dims());
        continue;
      }
      ir::Dims& dims = options.input_size_list.emplace_back();
      for (const json& d : has(entry, "model_shape_here") ? entry["model_shape_here"] : entry["shape"])
        dims.push_back(d.is_number_integer() ? d.get<int64_t>() : -1);
    }
  const ir::OpSet& ops = ops::builtin_ops();
  auto imported = importer::load_file(model, options, ops);
  if (!imported) return refused(imported.status());
  ir::Graph& graph = imported->graph;
  const Status inferred = infer_shapes(graph, ops);
  if (verbose) std::printf("%s\n", ir::print(graph, {.max_elements = 32}).c_str());
  if (!inferred) return refused(inferred);
  if (info["kind"] == "structure" || !complete) return {Verdict::Ran, ""};
  if (arrays.size() != graph.inputs().size())
    return {Verdict::Wrong, std::to_string(graph.inputs().size()) + " inputs, expected " + std::to_string(arrays.size())};
  for (size_t i = 0; i < arrays.size(); ++i) {
    const ir::Tensor& input = graph.tensor(graph.inputs()[i]);
    if (arrays[i].dtype() != input.dtype) arrays[i] = convert(arrays[i].view(), input.dtype);
    if (const auto dims = input.shape ? ir::to_dims(*input.shape) : std::nullopt;
        dims && ir::element_count(*dims) == arrays[i].count())
      arrays[i] = arrays[i].reshaped(*dims);
  }
  ops::EvalOptions watch;
  if (verbose)
    watch.observe = [&](ir::TensorId id, const ir::TensorData& value) {
      if (value.count() <= 64) std::printf("%%%s = %s\n", graph.tensor(id).name.c_str(), ir::print_tensor(value).c_str());
    };
  auto results = ops::eval_graph(graph, ops, arrays, watch);
  if (!results) return refused(results.status());
  const json& expected = info["outputs"];
  if (results->size() != expected.size())
    return {Verdict::Wrong, std::to_string(results->size()) + " outputs, expected " + std::to_string(expected.size())};
  size_t judged = 0;
  std::string problems;
  for (size_t i = 0; i < expected.size(); ++i) {
    auto want = stored(folder, expected[i]);
    if (!want) return refused(want.status());
    if (!want->has_value()) continue;
    ++judged;
    if (const std::string d = difference((*results)[i], *want, expected[i], info); !d.empty())
      problems += "output " + std::to_string(i) + ": " + d + "; ";
  }
  if (!problems.empty()) return {Verdict::Wrong, problems};
  return {judged ? Verdict::Pass : Verdict::Ran, ""};
}

TEST(Corpus, Onnx) {
  const char* set = std::getenv("ORKNN_CORPUS");
  const fs::path corpus = set ? fs::path(set) : fs::path(tests::kSourceFolder).parent_path() / "shared" / "corpus";
  if (!fs::is_directory(corpus / "onnx")) GTEST_SKIP() << "no corpus at " << corpus << "; set ORKNN_CORPUS";
  const char* filter = std::getenv("ORKNN_CASE");
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(corpus / "onnx"))
    if (fs::exists(entry.path() / "case.json") && (!filter || entry.path().filename().string().find(filter) != std::string::npos))
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  ASSERT_FALSE(folders.empty());
  size_t core = 0, core_good = 0, extra = 0, extra_good = 0;
  std::string failures;
  for (const fs::path& folder : folders) {
    const json info = read_case(folder);
    const bool beyond = is_extra(info);
    const auto start = std::chrono::steady_clock::now();
    Outcome outcome = run_case(folder, info, filter && folders.size() == 1);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (seconds > 5) std::printf("%s took %.1f s\n", folder.filename().c_str(), seconds);
    if (info["kind"] == "negative") outcome.verdict = outcome.verdict == Verdict::Refused ? Verdict::Pass : Verdict::Wrong;
    const bool good = outcome.verdict == Verdict::Pass || outcome.verdict == Verdict::Ran;
    (beyond ? extra : core) += 1;
    (beyond ? extra_good : core_good) += good;
    if (good) continue;
    const std::string line = std::string(outcome.verdict == Verdict::Wrong ? "wrong   " : "refused ") +
                             (beyond ? "extra " : "core  ") + folder.filename().string() + ": " + outcome.why + "\n";
    if (outcome.verdict == Verdict::Wrong || !beyond)
      failures += line;
    else
      std::printf("%s", line.c_str());
  }
  std::printf("%zu of %zu core cases good, %zu of %zu extra\n", core_good, core, extra_good, extra);
  EXPECT_TRUE(failures.empty()) << failures;
}

}  // namespace
}  // namespace orknn
