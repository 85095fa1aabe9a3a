// Layers as folders: our own small ones in tests/data/npu, and the independent generators' streams where they lie beside the
// checkout (../shared/corpus/npu).
#include "toolkit/layer_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "temporary_folder.h"
#include "test_paths.h"

namespace orknn::toolkit {
namespace {
namespace fs = std::filesystem;
using nlohmann::ordered_json;

const fs::path kOwn = fs::path(tests::kSourceFolder) / "tests" / "data" / "npu";
const fs::path kCorpus = fs::path(tests::kSourceFolder) / ".." / "shared" / "corpus" / "npu";

std::vector<fs::path> layers_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().filename() == "layer.json") found.push_back(entry.path().parent_path());
  std::ranges::sort(found);
  return found;
}

ordered_json json_of(const fs::path& file) {
  std::ifstream in(file);
  return ordered_json::parse(in);
}
std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void expect_stored_streams_give_results(const fs::path& layer) {
  const Result<StoredRun> run = run_stored_layer(layer.string());
  ASSERT_TRUE(run) << layer << ": " << run.status().to_string();
  EXPECT_GT(run->elements, 0) << layer;
  EXPECT_EQ(run->different, 0) << layer;
}

TEST(LayerFolder, OwnLayersGiveTheirStoredResultsAndTheirBytesAgain) {
  const std::vector<fs::path> layers = layers_in(kOwn);
  ASSERT_GE(layers.size(), 4u);
  const tests::TemporaryFolder scratch;
  for (const fs::path& layer : layers) {
    expect_stored_streams_give_results(layer);
    const std::string out = scratch.file(layer.filename().string());
    const Result<EmitReport> report = emit_layer(layer.string(), out);
    ASSERT_TRUE(report) << layer << ": " << report.status().to_string();
    for (const auto& entry : fs::directory_iterator(layer))
      EXPECT_EQ(bytes_of(entry), bytes_of(fs::path(out) / entry.path().filename())) << entry.path();
  }
}

TEST(LayerFolder, ChipModelReproducesTheStreamsOfOthers) {
  if (!fs::exists(kCorpus)) GTEST_SKIP() << "no vectors in " << kCorpus;
  size_t reproduced = 0;
  for (const fs::path& layer : layers_in(kCorpus)) {
    expect_stored_streams_give_results(layer);
    ++reproduced;
  }
  EXPECT_GE(reproduced, 49u);
}

// Registers that may differ between generators: grains, banks, lanes of the padding, addresses, chaining.
const std::set<std::string> kFree{"0x1010", "0x1040", "0x1184", "0x0000", "0x0010", "0x0014", "0x1070",
                                  "0x1110", "0x4020", "0x5018", "0x5020", "0x5038", "0x6070", "0x701c"};

std::map<std::string, std::string> registers_of(const ordered_json& task) {
  std::map<std::string, std::string> values;
  for (const ordered_json& word : task.at("words"))
    if (!kFree.contains(word[1].get<std::string>()) && word[2] != "0x00000000") values[word[1]] = word[2];
  return values;
}

TEST(LayerFolder, EmittedRegistersAndPackedBytesEqualThoseOfOthers) {
  if (!fs::exists(kCorpus)) GTEST_SKIP() << "no vectors in " << kCorpus;
  const tests::TemporaryFolder scratch;
  size_t compared = 0;
  for (const fs::path& layer : layers_in(kCorpus)) {
    if (fs::exists(layer / "output_cube.bin")) continue;  // a board's buffers, not a described layer
    const fs::path out = scratch.file(layer.filename().string());
    const Result<EmitReport> report = emit_layer(layer.string(), out.string(), {.grouping = silicon::Grouping::Short});
    ASSERT_TRUE(report) << layer << ": " << report.status().to_string();
    const ordered_json theirs = json_of(layer / "regcmd.json"), ours = json_of(out / "regcmd.json");
    ASSERT_EQ(theirs.size(), ours.size()) << layer;
    for (size_t i = 0; i < ours.size(); ++i) EXPECT_EQ(registers_of(ours[i]), registers_of(theirs[i])) << layer << " task " << i;
    for (const auto& entry : fs::directory_iterator(layer)) {
      if (!entry.path().filename().string().starts_with("packed_")) continue;
      EXPECT_EQ(bytes_of(entry), bytes_of(out / entry.path().filename())) << entry.path();
    }
    ++compared;
  }
  EXPECT_GE(compared, 48u);
}

// emit_layer itself compares what the chip model computes with the folder's results.
TEST(LayerFolder, WholeGroupsGiveTheSameResults) {
  if (!fs::exists(kCorpus)) GTEST_SKIP() << "no vectors in " << kCorpus;
  const tests::TemporaryFolder scratch;
  for (const fs::path& layer : layers_in(kCorpus)) {
    if (fs::exists(layer / "output_cube.bin")) continue;
    const std::string out = scratch.file(layer.filename().string());
    const Result<EmitReport> report = emit_layer(layer.string(), out);
    ASSERT_TRUE(report) << layer << ": " << report.status().to_string();
    expect_stored_streams_give_results(out);
  }
}

TEST(LayerFolder, BadFoldersAreReported) {
  const tests::TemporaryFolder scratch;
  const auto problem = [&](const std::string& text) {
    std::ofstream(scratch.file("layer.json")) << text;
    const auto report = emit_layer(fs::path(scratch.file("layer.json")).parent_path().string(), scratch.file("out"));
    return report ? std::string() : report.status().to_string();
  };
  EXPECT_NE(problem("not json").find("not a JSON object"), std::string::npos);
  EXPECT_NE(problem("{}").find("layer"), std::string::npos);
  EXPECT_NE(problem(R"({"layer": {"kind": "softmax"}})").find("softmax"), std::string::npos);
  EXPECT_NE(problem(R"({"tensors": [], "ops": [{"kind": "conv", "input": 3}]})").find("'input' names no tensor: 3"),
            std::string::npos);
  const auto pool = [&](const char* shape) {
    return problem(
        std::string(R"({"layer": {"kind": "pool", "method": "max", "dtype": "i8", "kernel": [2, 2], "stride": [2, 2], )") +
        shape + "}}");
  };
  EXPECT_NE(pool(R"("channels": -4, "in_height": 4, "in_width": 4, "out_height": 2, "out_width": 2)")
                .find("'layer.channels' is -4, expected 1 to 65536"),
            std::string::npos);
  EXPECT_NE(pool(R"("channels": 4, "in_height": 4, "in_width": 4, "out_height": 2, "out_width": 2)").find("input.npy"),
            std::string::npos);
}

// What layer.json says is checked before anything is computed or written.
TEST(LayerFolder, DescriptionsThatCannotBeAreRefused) {
  const tests::TemporaryFolder scratch;
  const fs::path layer = kOwn / "odd_channels";
  const ordered_json sound = json_of(layer / "layer.json");
  const auto refusal = [&](const std::function<void(ordered_json&)>& change) {
    const fs::path folder = scratch.file("changed"), out = scratch.file("out") + "/inside";
    fs::remove_all(folder);
    fs::copy(layer, folder, fs::copy_options::recursive);
    ordered_json json = sound;
    change(json);
    std::ofstream(folder / "layer.json") << json.dump();
    const Result<EmitReport> report = emit_layer(folder.string(), out.string());
    EXPECT_FALSE(fs::exists(out.parent_path() / "escaped.npy"));
    return report ? std::string("accepted") : report.status().to_string();
  };
  ASSERT_TRUE(sound.contains("ops")) << layer;
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  std::string text = refusal([](ordered_json& j) { j["tensors"].back()["file"] = "../escaped.npy"; });
  EXPECT_TRUE(says(text, "'tensors[1].file' is \"../escaped.npy\", expected the name of a file in the folder")) << text;
  text = refusal([](ordered_json& j) { j["tensors"][0]["height"] = int64_t{1} << 40; });
  EXPECT_TRUE(says(text, "'tensors[0].height' is 1099511627776, expected 1 to 65536")) << text;
  text = refusal([](ordered_json& j) { j["ops"][0]["kernel"] = {int64_t{1} << 40, 1}; });
  EXPECT_TRUE(says(text, "'kernel' holds 1099511627776, expected 0 to 1024")) << text;
  text = refusal([](ordered_json& j) { j["tensors"][0]["height"] = "tall"; });
  EXPECT_TRUE(says(text, "layer.json: 'tensors[0].height' is \"tall\", expected a whole number")) << text;
  text = refusal([](ordered_json& j) { j["ops"][0]["stride"] = {1.5, 1}; });
  EXPECT_TRUE(says(text, "'ops[0].stride' is [1.5,1], expected a list of whole numbers")) << text;
  text = refusal([](ordered_json& j) { j["ops"][0].erase("output"); });
  EXPECT_TRUE(says(text, "'ops[0].output' is missing")) << text;
  text = refusal([](ordered_json& j) { j["ops"] = "conv"; });
  EXPECT_TRUE(says(text, "'ops' is \"conv\", expected a list")) << text;
  text = refusal([](ordered_json& j) { j["ops"][0]["weights_scale_hex"] = "much"; });
  EXPECT_TRUE(says(text, "'ops[0].weights_scale_hex' is \"much\", expected a hexadecimal float")) << text;
  text = refusal([](ordered_json& j) { std::swap(j["tensors"][0]["height"], j["tensors"][0]["width"]); });
  EXPECT_TRUE(says(text, "'input.npy' does not fit layer.json")) << text;
}

// The single form; `ew` is null or the name of an operation.
TEST(LayerFolder, ElementWiseOperationsAreNamed) {
  const tests::TemporaryFolder scratch;
  const auto problem = [&](const char* operation) {
    std::ofstream(scratch.file("layer.json"))
        << R"({"layer": {"kind": "matmul", "dtype": "f16", "in_channels": 32, "out_channels": 32,
      "in_height": 4, "in_width": 1, "out_height": 4, "out_width": 1, "ew": )"
        << operation << "}}";
    return emit_layer(fs::path(scratch.file("layer.json")).parent_path().string(), scratch.file("out")).status().to_string();
  };
  EXPECT_NE(problem("3").find("'layer.ew' is 3, expected text"), std::string::npos) << problem("3");
  EXPECT_NE(problem("\"xor\"").find("unknown element-wise operation 'xor'"), std::string::npos);
  EXPECT_NE(problem("null").find("weights.npy"), std::string::npos) << problem("null");
}
}  // namespace
}  // namespace orknn::toolkit
