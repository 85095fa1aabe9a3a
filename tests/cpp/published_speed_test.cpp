// Published memory sizes and speeds against what we predict from the structures of the networks. Needs the shared models and
// figures (ORKNN_SHARED, or ../shared beside the tree) and is skipped without them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "import/importer.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "test_paths.h"
#include "toolkit/profile.h"

namespace orknn::toolkit {
namespace {
namespace fs = std::filesystem;

fs::path shared_folder() {
  const char* set = std::getenv("ORKNN_SHARED");
  fs::path folder = set ? fs::path(set) : fs::path(tests::kSourceFolder).parent_path() / "shared";
  return fs::exists(folder / "models" / "models.csv") ? folder : fs::path();
}

// Rows of a CSV file by column name; quoted fields may hold commas.
std::vector<std::map<std::string, std::string>> read_csv(const fs::path& path) {
  std::vector<std::map<std::string, std::string>> rows;
  std::vector<std::string> names;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        fields.emplace_back();
      else
        fields.back() += c;
    }
    if (names.empty()) {
      names = fields;
      continue;
    }
    std::map<std::string, std::string> row;
    for (size_t i = 0; i < names.size() && i < fields.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

ir::Graph structure(const std::string& name) {
  importer::ImportOptions options;
  options.missing_weights = true;
  auto imported =
      importer::load_file((shared_folder() / "models" / (name + ".onnx.structure")).string(), options, ops::builtin_ops());
  EXPECT_TRUE(imported) << name << ": " << imported.status().to_string();
  if (!imported) return {};
  EXPECT_FALSE(imported->source.warnings.empty()) << "missing weights must be told";
  const Status s = optimize::optimize(imported->graph, ops::builtin_ops(), {}, nullptr);
  EXPECT_TRUE(s) << s.to_string();
  return std::move(imported->graph);
}

Profile one(const ir::Graph& graph, std::string_view chip, const std::string& dtype) {
  auto rows = profile(graph, *platform::find(chip), {.dtype = dtype, .cores = {1}});
  EXPECT_TRUE(rows) << rows.status().to_string();
  return rows ? rows->front() : Profile{};
}

#define NEED_SHARED() \
  if (shared_folder().empty()) GTEST_SKIP() << "no shared models: set ORKNN_SHARED"

// Sizes that the vendor's tool printed.
TEST(PublishedMemory, MobileNetV2AndYolov5) {
  NEED_SHARED();
  const Profile mobilenet = one(structure("mobilenet_v2"), "rk3588", "w8a8");
  EXPECT_EQ(mobilenet.internal_bytes, 1605632u);
  EXPECT_NEAR(static_cast<double>(mobilenet.weight_bytes) / 1024, 3610.81, 3610.81 * 0.001);
  const Profile yolo = one(structure("yolov5s_relu"), "rk3588", "w8a8");
  EXPECT_EQ(yolo.internal_bytes + 3 * 640 * 640, 6000u * 1024) << "the 1.x planner counted the input too";
}

// The published constants of a chip with another packing. Its log computes the last pool as a depthwise convolution (0x18800 and
// 0x1800 bytes), and has 64 bytes that nothing explains.
TEST(PublishedMemory, PackedWeightsOfTheSmallChips) {
  NEED_SHARED();
  EXPECT_EQ(one(structure("mobilenet_v1"), "rv1106", "w8a8").weight_bytes, 4447296u - 0x18800 - 0x1800 - 64);
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
}

TEST(PublishedSpeed, VisibleNetworks) {
  NEED_SHARED();
  std::map<std::string, std::string> structures;
  for (auto& row : read_csv(shared_folder() / "models" / "models.csv"))
    if (!row["stands_for"].empty()) structures.emplace(row["stands_for"], row["name"]);
  std::map<std::string, ir::Graph> graphs;
  std::vector<double> second_int8, all;
  for (auto& row : read_csv(shared_folder() / "spec" / "perf-anchors.csv")) {
    if (row["source"].rfind("model_zoo_README_v2.3.2", 0) != 0 || row["fps"].empty() || !structures.contains(row["model"]))
      continue;
    std::string chip = row["platform"].substr(0, row["platform"].find('_'));
    const std::string& name = structures[row["model"]];
    if (!graphs.contains(name)) graphs.emplace(name, structure(name));
    const Profile p = one(graphs[name], chip, row["dtype"] == "INT8" ? "w8a8" : "float16");
    ASSERT_TRUE(p.problem.empty()) << p.problem;
    const double error = std::abs(p.fps / std::stod(row["fps"]) - 1);
    all.push_back(error);
    if (platform::find(chip)->generation == 2 && row["dtype"] == "INT8") second_int8.push_back(error);
  }
  ASSERT_GT(all.size(), 150u);
  EXPECT_LE(quantile(second_int8, 0.5), 0.04);
  EXPECT_LE(quantile(second_int8, 0.9), 0.15);
  EXPECT_LE(quantile(all, 0.5), 0.06);
  EXPECT_LE(quantile(all, 0.9), 0.25);
}

// How much faster sparse weights make a network: release 2.0.0 against the dense figures next to it.
TEST(PublishedSpeed, SparseGains) {
  NEED_SHARED();
  std::map<std::string, std::string> structures;
  for (auto& row : read_csv(shared_folder() / "models" / "models.csv"))
    if (!row["stands_for"].empty()) structures.emplace(row["stands_for"], row["name"]);
  std::map<std::string, double> dense, sparse;
  for (auto& row : read_csv(shared_folder() / "spec" / "perf-anchors.csv")) {
    if (row["fps"].empty() || !structures.contains(row["model"])) continue;
    if (row["platform"] == "RK3576_1core_sparse") sparse[row["model"]] = std::stod(row["fps"]);
    // Older releases are listed only where they differ.
    if (row["platform"] == "RK3576_1core" && (row["source"].find("2.0.0") != std::string::npos || !dense.contains(row["model"])))
      dense[row["model"]] = std::stod(row["fps"]);
  }
  std::vector<double> errors;
  for (const auto& [model, fps] : sparse) {
    const ir::Graph graph = structure(structures[model]);
    const auto with = profile(graph, *platform::find("rk3576"), {.cores = {1}, .sparse_percent = 50});
    ASSERT_TRUE(with);
    errors.push_back(std::abs(with->front().fps / one(graph, "rk3576", "w8a8").fps / (fps / dense[model]) - 1));
  }
  ASSERT_GT(errors.size(), 15u);
  EXPECT_LE(quantile(errors, 0.5), 0.05);
  EXPECT_LE(quantile(errors, 0.9), 0.1);
}

// Every structure on every chip: an answer or a sentence.
TEST(PublishedSpeed, EveryStructureOnEveryChip) {
  NEED_SHARED();
  for (auto& row : read_csv(shared_folder() / "models" / "models.csv")) {
    const ir::Graph graph = structure(row["name"]);
    for (const platform::Platform& chip : platform::all())
      for (const char* dtype : {"w8a8", "float16"}) {
        const Profile p = one(graph, chip.name, dtype);
        EXPECT_TRUE(!p.problem.empty() || !p.unknown.empty() || (p.fps > 0 && std::isfinite(p.fps)))
            << row["name"] << " on " << chip.name;
      }
  }
}

}  // namespace
}  // namespace orknn::toolkit
