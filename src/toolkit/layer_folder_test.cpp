// Layers as folders: our own small ones in tests/data/npu, and the independent generators' streams where they lie beside the
// checkout (../shared/corpus/npu).
#include "toolkit/layer_folder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "data/npy.h"
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
  EXPECT_NE(problem(R"({"tensors": [{"id": 0, "height": 1, "width": 1, "channels": 1, "zero_point": 0}],
                        "ops": [{"kind": "conv", "input": 3, "output": 0}]})")
                .find("'input' names no tensor: 3"),
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

// A convolution by one, fused with an addition; all scales are one, so results are plain sums.
class FusedAddition {
 public:
  FusedAddition() {
    fs::create_directories(folder_);
    write("input", x_, {4, 4, kChannels});
    write("tensor_2", b_, {4, 4, kChannels});
    std::vector<int8_t> diagonal(kChannels * kChannels);
    for (size_t c = 0; c < kChannels; ++c) diagonal[c * kChannels + c] = 1;
    write("weights_0", diagonal, {kChannels, 1, 1, kChannels});
    write("bias_0", std::vector<int32_t>(kChannels), {kChannels});
    const auto tensor = [](int id) {
      return ordered_json{{"id", id}, {"height", 4}, {"width", 4}, {"channels", kChannels}, {"zero_point", 0}, {"scale", 1.0}};
    };
    json = {{"tensors", {tensor(0), tensor(1), tensor(2), tensor(3)}},
            {"ops",
             {{{"kind", "conv"}, {"input", 0}, {"output", 1}, {"weights", "weights_0.npy"}, {"bias", "bias_0.npy"}},
              {{"kind", "add"}, {"a", 1}, {"b", 2}, {"output", 3}}}}};
    json["tensors"][0]["file"] = "input.npy";
    json["tensors"][1]["virtual"] = true;
  }
  // The text of the refusal, or of a difference from `expected` of (x, b).
  std::string emit(const std::function<int(int, int)>& expected = {}) const {
    std::ofstream(fs::path(folder_) / "layer.json") << json.dump();
    fs::remove(fs::path(folder_) / "tensor_3.npy");
    if (expected) {
      std::vector<int8_t> sums;
      for (size_t i = 0; i < x_.size(); ++i) sums.push_back(static_cast<int8_t>(expected(x_[i], b_[i])));
      write("tensor_3", sums, {4, 4, kChannels});
    }
    const Result<EmitReport> report = emit_layer(folder_, scratch_.file("out"));
    if (!report) return report.status().to_string();
    return report->compared == 1 ? "equal" : "accepted";
  }

  ordered_json json;

 private:
  static constexpr size_t kChannels = 16;
  template <class T>
  void write(const std::string& name, const std::vector<T>& values, const ir::Dims& dims) const {
    ir::TensorData data = ir::TensorData::allocate(sizeof(T) == 1 ? DType::Int8 : DType::Int32, dims);
    std::memcpy(data.mutable_data(), values.data(), values.size() * sizeof(T));
    ASSERT_TRUE(data::write_npy((fs::path(folder_) / (name + ".npy")).string(), data).ok());
  }
  static std::vector<int8_t> pattern(int step, int count, int lowest) {
    std::vector<int8_t> values;
    for (int i = 0; i < 4 * 4 * static_cast<int>(kChannels); ++i)
      values.push_back(static_cast<int8_t>(i * step % count + lowest));
    return values;
  }

  tests::TemporaryFolder scratch_;
  std::string folder_ = scratch_.file("layer");
  std::vector<int8_t> x_ = pattern(5, 41, -20), b_ = pattern(7, 31, -18);
};

TEST(LayerFolder, ActivationsStayOnTheirSideOfAnAddition) {
  FusedAddition layer;
  EXPECT_EQ(layer.emit([](int x, int b) { return x + b; }), "equal");
  layer.json["ops"][0]["activation"] = "relu";
  EXPECT_EQ(layer.emit([](int x, int b) { return std::max(x, 0) + b; }), "equal");
  layer.json["ops"][0]["activation"] = "relu6";
  EXPECT_EQ(layer.emit([](int x, int b) { return std::clamp(x, 0, 6) + b; }), "equal");
  layer.json["ops"][1]["activation"] = "relu";
  const std::string both = layer.emit();
  EXPECT_NE(both.find("'ops[1].activation' is \"relu\", expected none, as the convolution before has one"), both.npos) << both;
  layer.json["ops"][0].erase("activation");
  EXPECT_EQ(layer.emit([](int x, int b) { return std::max(x + b, 0); }), "equal");
}

TEST(LayerFolder, ChainsThatCannotRunInOrderAreRefused) {
  const auto refusal = [](const std::function<void(ordered_json&)>& change) {
    FusedAddition layer;
    change(layer.json);
    return layer.emit();
  };
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  std::string text = refusal([](ordered_json& j) { j["ops"][0]["input"] = 3; });
  EXPECT_TRUE(says(text, "'ops[0].input' is 3, expected a tensor of the folder or of an operation before this one")) << text;
  text = refusal([](ordered_json& j) { j["ops"][1]["output"] = 1; });
  EXPECT_TRUE(says(text, "'ops[1].output' is 1, expected a tensor that no other operation computes")) << text;
  text = refusal([](ordered_json& j) { j["ops"][1]["b"] = 1; });
  EXPECT_TRUE(says(text, "'ops[1].b' is 1, expected a tensor that is not virtual")) << text;
  text = refusal([](ordered_json& j) { j["tensors"][2]["channels"] = 8; });
  EXPECT_TRUE(says(text, "'ops[1].b' is 2, expected a tensor of the shape of 'a'")) << text;
  text = refusal([](ordered_json& j) { j["ops"].erase(1); });
  EXPECT_TRUE(says(text, "tensor 1 is virtual, and no addition is fused with what computes it")) << text;
  text = refusal([](ordered_json& j) { j["ops"][0] = {{"kind", "pool"}, {"method", "max"}, {"input", 0}, {"output", 1}}; });
  EXPECT_TRUE(says(text, "an addition follows the convolution that it is fused with")) << text;
  const auto pool_to = [](const char* field, const ordered_json& value) {
    return [field, value](ordered_json& j) {
      j["ops"] = {{{"kind", "pool"}, {"method", "max"}, {"input", 0}, {"output", 3}}};
      j["tensors"][3][field] = value;
    };
  };
  text = refusal(pool_to("zero_point", 5));
  EXPECT_TRUE(says(text, "'tensors[3].zero_point' differs from that of the pool's input") && says(text, "5")) << text;
  text = refusal(pool_to("scale", 0.5));
  EXPECT_TRUE(says(text, "'tensors[3].scale' differs from that of the pool's input") && says(text, "0.5")) << text;
  text = refusal(pool_to("channels", 8));
  EXPECT_TRUE(says(text, "'tensors[3].channels' differs from that of the pool's input")) << text;
}

TEST(LayerFolder, FieldsThatWouldBeDroppedAreRefused) {
  const tests::TemporaryFolder scratch;
  const auto refusal = [&](const char* name, const std::function<void(ordered_json&)>& change) {
    const fs::path folder = scratch.file("changed");
    fs::remove_all(folder);
    fs::copy(kOwn / name, folder, fs::copy_options::recursive);
    ordered_json json = json_of(folder / "layer.json");
    change(json);
    std::ofstream(folder / "layer.json") << json.dump();
    const Result<EmitReport> report = emit_layer(folder.string(), scratch.file("out"));
    return report ? std::string("accepted") : report.status().to_string();
  };
  const auto says = [](const std::string& text, const char* part) { return text.find(part) != text.npos; };
  const auto with = [](const char* field, const ordered_json& value) {
    return [field, value](ordered_json& j) { (j.contains("ops") ? j["ops"][0] : j["layer"])[field] = value; };
  };
  std::string text = refusal("average_pool", with("activation", "relu"));
  EXPECT_TRUE(says(text, "'layer.activation' is \"relu\", expected no such field of a pool")) << text;
  text = refusal("average_pool", with("bias", "bias.npy"));
  EXPECT_TRUE(says(text, "'layer.bias' is \"bias.npy\", expected no such field of a pool")) << text;
  text = refusal("average_pool", with("out_dtype", "f16"));
  EXPECT_TRUE(says(text, "'layer.out_dtype' is \"f16\", expected i8")) << text;
  text = refusal("average_pool", [](ordered_json& j) { j["layer"]["kind"] = "conv", j["layer"]["bias"] = "bias.npy"; });
  EXPECT_TRUE(says(text, "'layer.method' is \"average\", expected no such field of a single convolution") ||
              says(text, "'layer.bias' is \"bias.npy\", expected no such field of a single convolution"))
      << text;
  text = refusal("odd_channels", with("groups", 3));
  EXPECT_TRUE(says(text, "'ops[0].groups' is 3, expected no such field of a convolution")) << text;
  text = refusal("odd_channels", with("ceiling", 4));
  EXPECT_TRUE(says(text, "'ops[0].ceiling' is 4, expected no such field with the activation 'none'")) << text;
  text = refusal("per_channel_relu", [](ordered_json& j) {
    (j.contains("per_channel") ? j : j["ops"][0])["per_channel"].erase("channel_multipliers");
  });
  EXPECT_TRUE(says(text, "per_channel.channel_multipliers' is missing")) << text;
  text = refusal("odd_channels", [](ordered_json& j) { j["jobs"][0]["clip_truncate"] = 1; });
  EXPECT_TRUE(says(text, "'jobs[0].clip_truncate' is 1, expected 0")) << text;

  // Remarks, and what says the same as no field.
  EXPECT_EQ(refusal("odd_channels", with("remark", "of no account")), "accepted");
  EXPECT_EQ(refusal("odd_channels", with("groups", 1)), "accepted");
  EXPECT_EQ(refusal("average_pool", with("activation", "none")), "accepted");
}

TEST(LayerFolder, OtherChipsAreRefused) {
  const tests::TemporaryFolder scratch;
  const fs::path folder = scratch.file("changed");
  fs::copy(kOwn / "odd_channels", folder, fs::copy_options::recursive);
  ordered_json json = json_of(folder / "layer.json");
  const auto say = [&](const char* chip) {
    json["chip"] = chip;
    std::ofstream(folder / "layer.json") << json.dump();
  };
  say("rk3588");
  EXPECT_TRUE(emit_layer(folder.string(), scratch.file("out")));
  EXPECT_TRUE(run_stored_layer(folder.string()));
  say("rk3568");
  for (const Status& status :
       {emit_layer(folder.string(), scratch.file("out")).status(), run_stored_layer(folder.string()).status()}) {
    const std::string text = status.to_string();
    EXPECT_NE(text.find("'chip'"), text.npos) << text;
    EXPECT_NE(text.find("rk3568"), text.npos) << text;
    EXPECT_NE(text.find("streams of one chip do not run on another"), text.npos) << text;
  }
}

// A board's folder has no plain operands that a recipe could start from.
TEST(LayerFolder, FoldersOfPackedOperandsAreExecutedOnly) {
  const tests::TemporaryFolder scratch;
  const fs::path folder = scratch.file("board");
  fs::create_directories(folder);
  std::ofstream(folder / "layer.json") << R"({"layer": {"kind": "depthwise", "channels": 64, "height": 8, "width": 8}})";
  std::ofstream(folder / "input_cube.bin") << "cube";
  const std::string text = emit_layer(folder.string(), scratch.file("out")).status().to_string();
  EXPECT_NE(text.find("holds packed operands only"), text.npos) << text;
  EXPECT_NE(text.find("--execute"), text.npos) << text;
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
  text = refusal([](ordered_json& j) {
    for (ordered_json& t : j["tensors"]) std::swap(t["height"], t["width"]);
  });
  EXPECT_TRUE(says(text, "'input.npy' does not fit layer.json")) << text;
}

// Nothing is written for what boards compute wrongly or nobody has run.
TEST(LayerFolder, LayersWithoutARecipeAreRefused) {
  const tests::TemporaryFolder scratch;
  const auto ones = [&](const char* file, DType dtype, const ir::Dims& dims) {
    const ir::TensorData data =
        ir::convert(ir::TensorData::from<float>(dims, std::vector<float>(ir::element_count(dims), 1)).view(), dtype);
    ASSERT_TRUE(data::write_npy(scratch.file(file), data));
  };
  const auto problem = [&](const std::string& layer) {
    std::ofstream(scratch.file("layer.json")) << "{\"layer\": {" << layer << "}}";
    const auto report = emit_layer(fs::path(scratch.file("layer.json")).parent_path().string(), scratch.file("out"));
    return report ? std::string("accepted") : report.status().to_string();
  };
  const auto product = [&](int64_t rows) {
    ones("input.npy", DType::Float16, {32, rows, 1});
    const std::string n = std::to_string(rows);
    return problem(R"("kind": "matmul", "dtype": "f16", "in_channels": 32, "out_channels": 32, "in_width": 1, "out_width": 1,
                      "in_height": )" +
                   n + R"(, "out_height": )" + n);
  };
  ones("weights.npy", DType::Float16, {32, 32, 1, 1});
  for (const int64_t rows : {1, 4, 8}) EXPECT_EQ(product(rows), "accepted") << rows;
  for (const int64_t rows : {2, 3, 5, 6}) {
    EXPECT_NE(product(rows).find("rows of a product"), std::string::npos) << product(rows);
    EXPECT_NE(product(rows).find("found " + std::to_string(rows)), std::string::npos) << product(rows);
  }
  const auto depthwise = [&](DType dtype, const char* in, const char* out) {
    ones("input.npy", dtype, {64, 8, 8});
    ones("weights.npy", dtype, {1, 64, 3, 3});
    return problem(std::string(R"("kind": "depthwise", "in_channels": 64, "out_channels": 64, "in_height": 8, "in_width": 8,
                                  "out_height": 6, "out_width": 6, "kernel": [3, 3], "dtype": ")") +
                   in + R"(", "out_dtype": ")" + out + "\"");
  };
  EXPECT_EQ(depthwise(DType::Float16, "f16", "f16"), "accepted");
  for (const std::string& text : {depthwise(DType::Int8, "i8", "i32"), depthwise(DType::Float16, "f16", "f32")})
    EXPECT_NE(text.find("no proven depthwise convolution with results of 32 bits"), std::string::npos) << text;
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
