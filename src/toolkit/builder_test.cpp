// Options, loading rules, and the whole building side on a bundled network.
#include "toolkit/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/log.h"
#include "data/npy.h"
#include "format/rknn_file.h"
#include "ir/text.h"
#include "runtime/session.h"
#include "temporary_folder.h"
#include "test_paths.h"
#include "toolkit/normalization.h"
#include "toolkit/report.h"

namespace orknn::toolkit {
namespace {

const std::string kModel = std::string(tests::kSourceFolder) + "/examples/models/shapes.onnx";

// Collects log lines while it lives.
class LogLines {
 public:
  LogLines() {
    set_log_level(LogLevel::Info);
    set_log_sink([this](LogLevel level, std::string_view tag, std::string_view line) {
      if (level <= LogLevel::Warn)
        lines.push_back(std::string(level == LogLevel::Error ? "E " : "W ") + std::string(tag) + ": " + std::string(line));
    });
  }
  ~LogLines() {
    set_log_sink({});
    set_log_level(before_);
  }
  bool has(std::string_view text) const {
    for (const std::string& l : lines)
      if (l.find(text) != l.npos) return true;
    return false;
  }
  std::vector<std::string> lines;

 private:
  LogLevel before_ = log_level();
};

using tests::TemporaryFolder;

BuildConfig for_default_chip() {
  BuildConfig c;
  c.target_platform = "RK3588";
  return c;
}

TEST(BuildConfig, ReportsEveryProblemInTheVendorsWords) {
  BuildConfig c = for_default_chip();
  c.target_platform = "rv9999";
  c.quantized_dtype = "float16";
  c.float_dtype = "int3";
  c.optimization_level = 7;
  c.std_values = ChannelValues{{0, 1}};
  c.op_target = {{"Conv_0", "fpga"}};
  c.dynamic_input = {{{1, 3}}, {{1, 0}}};
  c.remove_weight = true;
  const auto result = Builder::create(c);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.status().count(), 8u);
  const std::string text = result.status().to_string();
  for (const char* wanted :
       {"Invalid target_platform 'rv9999'",
        "Invalid quantized_dtype 'float16', expect in ['w8a8', 'w8a16', 'w16a16i', 'w16a16i_dfp', 'w4a16']!",
        "Invalid float_dtype 'int3'", "Invalid optimization_level 7", "Invalid std_values", "Invalid op_target 'fpga'",
        "Invalid dynamic_input set [[1,0]]", "Invalid remove_weight True, models with 'dynamic_input' cannot share weights!"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
}

TEST(BuildConfig, ChipsOfAListRunTheSameModel) {
  LogLines log;
  BuildConfig c;
  c.target_platform = "rk3566";
  c.other_platforms = {"RK3568"};
  EXPECT_TRUE(Builder::create(c));
  c.other_platforms = {"rk3568", "rk3588", "rv9999"};
  const auto refused = Builder::create(c);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.status().count(), 2u) << refused.status().to_string();
  EXPECT_NE(refused.status().to_string().find("Invalid target_platform 'rk3588' beside 'rk3566', the chips of a list must run"),
            std::string::npos)
      << refused.status().to_string();
}

TEST(BuildConfig, ValuesOfInputsAreChecked) {
  LogLines log;
  BuildConfig c = for_default_chip();
  c.mean_values = ChannelValues{{INFINITY, 0}};
  c.std_values = ChannelValues{{1, 2}, {0, 1}};
  c.reorder_channel = {true};
  c.quant_img_RGB2BGR = {true};
  c.dynamic_input = {{{1, 3}}, {{1, int64_t{1} << 31}}};
  const std::string text = Builder::create(c).status().to_string();
  for (const char* wanted :
       {"Invalid mean_values [[inf, 0]], expect finite numbers!", "Invalid std_values [[1, 2], [0, 1]], zero is not allowed!",
        "quant_img_RGB2BGR would swap them back", "Invalid dynamic_input set [[1,2147483648]]"})
    EXPECT_NE(text.find(wanted), std::string::npos) << wanted << "\n" << text;
}

TEST(BuildConfig, WarnsAboutWhatHasNoEffect) {
  LogLines log;
  BuildConfig c;
  c.disable_rules = {"squeeze_1_in_nd_transpose"};
  ASSERT_TRUE(Builder::create(c));
  EXPECT_TRUE(log.has("W config: 'target_platform' is None"));
  EXPECT_TRUE(log.has("'squeeze_1_in_nd_transpose'"));
}

TEST(Normalization, DefaultsAndLengths) {
  auto graph = ir::parse(R"(graph "g" (%a: float32[1,3,8,8], %b: float32[1,32], %c: float32[4], %d: float32[]) -> (%a) {
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  graph->tensor(graph->inputs()[0]).layout = ir::Layout::NCHW;
  LogLines log;
  BuildConfig c;
  c.mean_values = ChannelValues{{128, 128, 128}};
  auto n = normalization_of(*graph, c, "load_onnx");
  ASSERT_TRUE(n) << n.status().to_string();
  EXPECT_EQ((*n)[0].mean, (std::vector<float>{128, 128, 128}));
  EXPECT_EQ((*n)[0].std, (std::vector<float>{1, 1, 1}));
  EXPECT_TRUE((*n)[1].mean.empty() && (*n)[1].std.empty());
  EXPECT_TRUE(log.has("W load_onnx: The config.mean_values is None, zeros will be set for input 1!"));
  EXPECT_TRUE(log.has("W load_onnx: The config.std_values is None, ones will be set for input 0!"));
  EXPECT_FALSE(log.has("mean_values is None, zeros will be set for input 0"));

  c.mean_values = ChannelValues{{0, 0, 0}, {128, 128, 128}};
  n = normalization_of(*graph, c, "load_tflite");
  ASSERT_FALSE(n);
  EXPECT_NE(n.status().to_string().find("The len of mean_values ([128, 128, 128]) for input 1 is wrong, expect 32!"),
            std::string::npos)
      << n.status().to_string();

  graph->tensor(graph->inputs()[0]).layout = ir::Layout::NHWC;
  c.mean_values = ChannelValues{{1, 2, 3, 4, 5, 6, 7, 8}};
  EXPECT_TRUE(normalization_of(*graph, c, "load_tflite")) << "the channels of NHWC come last";
}

TEST(Builder, NeedsItsStepsInOrder) {
  auto builder = Builder::create(for_default_chip());
  ASSERT_TRUE(builder);
  EXPECT_FALSE(builder->build());
  EXPECT_FALSE(builder->export_rknn("/nonexistent/x.rknn"));
  EXPECT_FALSE(builder->load_model({"/nonexistent/x.onnx"}));
  EXPECT_EQ(builder->imported(), nullptr);
}

// A list with one sample for the bundled classifier.
std::string write_dataset(const TemporaryFolder& folder) {
  std::vector<float> values(3 * 64 * 64);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 37) % 256);
  const Status written =
      data::write_npy(folder.file("sample.npy"), ir::TensorData::from<float>({1, 3, 64, 64}, std::span<const float>(values)));
  EXPECT_TRUE(written) << written.to_string();
  std::ofstream(folder.file("dataset.txt")) << "sample.npy\n";
  return folder.file("dataset.txt");
}

TEST(Builder, NothingOfAnEarlierModelSurvives) {
  LogLines log;
  TemporaryFolder folder;
  auto builder = Builder::create(for_default_chip());
  ASSERT_TRUE(builder);
  ASSERT_TRUE(builder->load_model({kModel}));
  const Status quantized = builder->build({.do_quantization = true, .dataset = write_dataset(folder)});
  ASSERT_TRUE(quantized) << quantized.to_string();
  ASSERT_NE(builder->built()->calibration, nullptr);

  ASSERT_TRUE(builder->build());
  EXPECT_EQ(builder->built()->calibration, nullptr) << "of the build before";
  EXPECT_TRUE(builder->built()->hybrid_summary.empty());
  EXPECT_FALSE(builder->build({.do_quantization = true, .dataset = folder.file("missing.txt")}));
  EXPECT_EQ(builder->built(), nullptr) << "a failed build leaves no model";

  ASSERT_TRUE(builder->build({.do_quantization = true, .dataset = folder.file("dataset.txt")}));
  ASSERT_TRUE(builder->load_model({kModel}));
  EXPECT_EQ(builder->built(), nullptr) << "a new load leaves nothing of the old model";
  EXPECT_FALSE(builder->export_rknn(folder.file("old.rknn")));
  ASSERT_TRUE(builder->build());
  EXPECT_EQ(builder->built()->calibration, nullptr);
  EXPECT_FALSE(builder->load_model({folder.file("missing.onnx")}));
  EXPECT_EQ(builder->imported(), nullptr) << "a failed load leaves no model";
  EXPECT_EQ(builder->built(), nullptr);
  EXPECT_FALSE(builder->analyse_accuracy({}));
}

TEST(Builder, StagesDoNotDependOnWhatWasBuiltBefore) {
  LogLines log;
  TemporaryFolder folder;
  const std::string dataset = write_dataset(folder);
  const auto options = make_options(for_default_chip());
  ASSERT_TRUE(options);
  const auto imported = import_model(*options, {kModel});
  ASSERT_TRUE(imported) << imported.status().to_string();
  const auto bytes_of = [&](const BuildRequest& request) {
    const auto built = build_model(*options, *imported, request);
    EXPECT_TRUE(built) << built.status().to_string();
    return built ? *format::write_rknn_to_memory(*built->model) : std::vector<std::byte>();
  };
  const auto floats = bytes_of({}), integers = bytes_of({.do_quantization = true, .dataset = dataset});
  EXPECT_NE(floats, integers);
  EXPECT_EQ(bytes_of({}), floats);
  EXPECT_EQ(bytes_of({.do_quantization = true, .dataset = dataset}), integers);
}

TEST(Builder, KnowsTheSizeOfItsFile) {
  LogLines log;
  TemporaryFolder folder;
  EXPECT_FALSE(Builder::create(for_default_chip())->file_bytes());
  BuildConfig plain = for_default_chip(), coded = plain, lighter = plain, packed = plain, bare = plain, sizes = plain;
  coded.compress_weight = true;
  lighter.remove_weight = true;
  packed.registers = true;
  bare.remove_streams = true;
  sizes.dynamic_input = {{{1, 3, 64, 64}}, {{1, 3, 32, 32}}};
  std::set<uint64_t> seen;
  for (const BuildConfig& config : {plain, coded, lighter, packed, bare, sizes}) {
    auto builder = Builder::create(config);
    ASSERT_TRUE(builder) << builder.status().to_string();
    ASSERT_TRUE(builder->load_model({kModel}));
    ASSERT_TRUE(builder->build());
    const auto bytes = builder->file_bytes();
    ASSERT_TRUE(bytes) << bytes.status().to_string();
    ASSERT_TRUE(builder->export_rknn(folder.file("a.rknn")));
    EXPECT_EQ(*bytes, std::filesystem::file_size(folder.file("a.rknn")));
    seen.insert(*bytes);
  }
  EXPECT_EQ(seen.size(), 6u) << "the options have no effect";
}

TEST(Builder, BuildsExportsAndRuns) {
  LogLines log;
  TemporaryFolder folder;
  std::string files[2];
  for (int i = 0; i < 2; ++i) {
    BuildConfig c = for_default_chip();
    c.custom_string = "hello";
    auto builder = Builder::create(c);
    ASSERT_TRUE(builder);
    const Status loaded = builder->load_model({kModel});
    ASSERT_TRUE(loaded) << loaded.to_string();
    const Status quantized = builder->build({.do_quantization = true});
    EXPECT_NE(quantized.to_string().find("quantization needs a dataset"), std::string::npos);
    const Status built = builder->build();
    ASSERT_TRUE(built) << built.to_string();
    files[i] = folder.file(i ? "b.rknn" : "a.rknn");
    const Status exported = builder->export_rknn(files[i]);
    ASSERT_TRUE(exported) << exported.to_string();
    if (i) continue;

    const ModelReport report = describe(*builder->built()->model);
    EXPECT_EQ(report.platforms, std::vector<std::string>{"rk3588"});
    EXPECT_GT(report.programs[0].npu_layers, 5u);
    EXPECT_GT(report.programs[0].macs, 100000u);
    EXPECT_GT(report.weight_bytes, 1000u);
    EXPECT_NE(layers_text(report).find("NPU"), std::string::npos);
    EXPECT_NE(memory_text(report).find("0x00000000"), std::string::npos);
    EXPECT_EQ(to_json(report)["programs"][0]["layers"].size(), report.programs[0].layers.size());

    auto session = runtime::Session::open(builder->built()->model);
    ASSERT_TRUE(session) << session.status().to_string();
    const Status ran = (*session)->run();
    ASSERT_TRUE(ran) << ran.to_string();
    auto from_file = runtime::Session::open(files[0]);
    ASSERT_TRUE(from_file) << from_file.status().to_string();
    ASSERT_TRUE((*from_file)->run());
    EXPECT_TRUE(ir::identical((*session)->output(0).view(), (*from_file)->output(0).view()));
  }
  std::ifstream a(files[0], std::ios::binary), b(files[1], std::ios::binary);
  const std::string bytes_a(std::istreambuf_iterator<char>(a), {}), bytes_b(std::istreambuf_iterator<char>(b), {});
  EXPECT_FALSE(bytes_a.empty());
  EXPECT_TRUE(bytes_a == bytes_b) << "the same build gives the same bytes";
}

}  // namespace
}  // namespace orknn::toolkit
