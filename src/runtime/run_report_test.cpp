// What RKNN_LOG_LEVEL, RKNN_DUMP_DIR, RKNN_DUMP_QUANT, NN_LAYER_DUMP and RKNN_MIN_TIMEOUT_MS do.
#include "runtime/run_report.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/half.h"
#include "data/npy.h"
#include "format_sample.h"
#include "ir/text.h"
#include "runtime/min_timeout.h"
#include "temporary_folder.h"

namespace orknn::runtime {
namespace {

// Sets a variable of the environment for one test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Log lines with the letter of their level, "0 text".
class Lines {
 public:
  Lines() : before_(log_level()) {
    set_log_level(LogLevel::Trace);
    set_log_sink([this](LogLevel level, std::string_view, std::string_view line) {
      text_ += std::to_string(static_cast<int>(level)) + " " + std::string(line) + "\n";
    });
  }
  ~Lines() {
    set_log_sink({});
    set_log_level(before_);
  }
  const std::string& text() const { return text_; }
  size_t count(const std::string& part) const {
    size_t n = 0;
    for (size_t at = text_.find(part); at != text_.npos; at = text_.find(part, at + 1)) ++n;
    return n;
  }

 private:
  LogLevel before_;
  std::string text_;
};

std::set<std::string> files_in(const std::filesystem::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::unique_ptr<Session> session_of(format::Model model) {
  auto session = Session::open(std::make_shared<const format::Model>(std::move(model)));
  EXPECT_TRUE(session) << session.status().to_string();
  return std::move(*session);
}

// x int8 with scale 0.5 and zero point 3, an index output.
format::Model quantized_model() {
  format::Model model;
  model.name = "quantized";
  model.target_platform = "rk3588";
  auto graph = ir::parse(R"(graph "q" (%"in/x:0": int8[1,4]) -> (%i) {
  %y: int8[1,4] = Identity(%"in/x:0") "same"
  %i: int64[1] = ArgMax(%y) {axis = 1, keepdims = 0} "best"
})");
  EXPECT_TRUE(graph) << graph.status().to_string();
  format::Program p;
  p.graph = std::move(*graph);
  for (const char* name : {"in/x:0", "y"})
    p.graph.tensor(p.graph.find_tensor(name)).quant = ir::QuantParams{{0.5f}, {3}, -1, {}, {}};
  for (ir::NodeId id : p.graph.order()) p.tasks.push_back({.node = id});
  p.buffers.resize(p.graph.tensor_count());
  p.inputs.push_back({.tensor = p.graph.inputs()[0]});
  p.outputs.push_back({.tensor = p.graph.outputs()[0], .dtype = DType::Int64});
  model.programs.push_back(std::move(p));
  return model;
}

TEST(RunReport, LevelOfTheEnvironment) {
  unsetenv("RKNN_LOG_LEVEL");
  EXPECT_EQ(environment_log_level(1), 1);
  const std::pair<const char*, int> cases[] = {{"0", 0},  {"3", 3}, {"6", 6},    {"7", 6},
                                               {"-2", 0}, {"", 1},  {"high", 1}, {"4x", 1}};
  for (const auto& [text, level] : cases) {
    const Variable set("RKNN_LOG_LEVEL", text);
    EXPECT_EQ(environment_log_level(1), level) << "'" << text << "'";
  }
}

TEST(RunReport, TablesAppearFromTheirLevelOn) {
  const tests::TemporaryFolder folder;
  const Variable set("RKNN_DUMP_DIR", folder.file(""));
  for (int level = 0; level <= 6; ++level) {
    const Lines lines;
    const auto session = session_of(format::sample_model());
    report_loading(*session, {.level = level});
    ASSERT_TRUE(run_with_report(*session, {.level = level}));
    EXPECT_EQ(lines.count("2 RKNN Runtime Information, librknnrt version: "), level >= 2) << level;
    EXPECT_EQ(lines.count("2 RKNN Model Information, version: "), level >= 2) << level;
    EXPECT_EQ(lines.count("Feature Tensor Information Table"), level >= 3) << level;
    EXPECT_EQ(lines.count("Total Internal Memory Size: "), level >= 3) << level;
    EXPECT_EQ(lines.count("Network Layer Information Table"), level >= 4) << level;
    EXPECT_EQ(lines.count("Operator Time Consuming Ranking Table"), level >= 4) << level;
    EXPECT_EQ(lines.count("dump npy tensor to: "), level >= 5 ? 5u : 0u) << level;
    EXPECT_EQ(lines.count("dump text tensor to: "), level >= 6 ? 5u : 0u) << level;
  }
}

TEST(LayerDump, OneFilePerLayerWithItsValues) {
  const tests::TemporaryFolder folder;
  const Variable set("RKNN_DUMP_DIR", folder.file(""));
  const auto session = session_of(format::sample_model());
  std::vector<float> pixels(12);
  for (size_t i = 0; i < 12; ++i) pixels[i] = static_cast<float>(i);
  ASSERT_TRUE(session->set_input(0, {.data = pixels.data(), .bytes = 48, .layout = ir::Layout::NCHW}));
  ASSERT_TRUE(run_with_report(*session, {.level = 5}));
  EXPECT_EQ(files_in(folder.file("")),
            (std::set<std::string>{"000_InputOperator_x_shape_1_3_2_2_float.npy", "001_ReluMul_a_shape_1_3_2_2_float.npy",
                                   "002_Add_b_shape_1_3_2_2_float.npy", "003_ReluMul_y_shape_1_3_2_2_float.npy",
                                   "004_Reshape_z_shape_3_4_float.npy"}));
  const auto x = data::read_npy(folder.file("000_InputOperator_x_shape_1_3_2_2_float.npy"));
  ASSERT_TRUE(x) << x.status().to_string();
  EXPECT_EQ(x->dims(), (ir::Dims{1, 3, 2, 2}));
  EXPECT_EQ(x->values<float>()[5], 0.75f) << "(5 - 2) / 4: after normalization";
  const auto z = data::read_npy(folder.file("004_Reshape_z_shape_3_4_float.npy"));
  ASSERT_TRUE(z);
  EXPECT_TRUE(ir::identical(z->view(), session->output(1).view()));
}

TEST(LayerDump, BoundInputsAreWrittenBeforeNormalization) {
  const tests::TemporaryFolder folder;
  const Variable set("RKNN_DUMP_DIR", folder.file(""));
  const auto session = session_of(format::sample_model());
  const uint8_t pixels[] = {0, 1, 2, 10, 11, 12, 0xcc, 0xcc, 0xcc, 20, 21, 22, 30, 31, 32, 0xcc, 0xcc, 0xcc};  // rows of 3 pixels
  ASSERT_TRUE(session->bind_input(
      0, {.dtype = DType::UInt8, .data = pixels, .bytes = sizeof pixels, .layout = ir::Layout::NHWC, .row_pixels = 3}));
  ASSERT_TRUE(run_with_report(*session, {.level = 5}));
  const auto x = data::read_npy(folder.file("000_InputOperator_x_shape_1_3_2_2_uint8.npy"));
  ASSERT_TRUE(x) << x.status().to_string();
  const auto values = x->values<uint8_t>();
  EXPECT_EQ(std::vector<int>(values.begin(), values.end()), (std::vector<int>{0, 10, 20, 30, 1, 11, 21, 31, 2, 12, 22, 32}));
  EXPECT_TRUE(std::filesystem::exists(folder.file("001_ReluMul_a_shape_1_3_2_2_float.npy")));
}

TEST(LayerDump, QuantizedValuesAsTheyAreOrAsNumbers) {
  const int8_t values[] = {3, 5, -1, 4};
  for (const bool stored : {false, true}) {
    const tests::TemporaryFolder folder;
    const Variable place("RKNN_DUMP_DIR", folder.file("")), types("RKNN_DUMP_QUANT", stored ? "1" : "0");
    const auto session = session_of(quantized_model());
    ASSERT_TRUE(session->set_input(0, {.dtype = DType::Int8, .data = values, .bytes = 4, .pass_through = true}));
    ASSERT_TRUE(run_with_report(*session, {.level = 6}));
    const std::string type = stored ? "int8" : "float", stem = folder.file("001_Identity_y_shape_1_4_" + type);
    EXPECT_EQ(files_in(folder.file("")).size(), 6u);
    EXPECT_TRUE(std::filesystem::exists(folder.file("000_InputOperator_in_x_0_shape_1_4_" + type + ".npy")))
        << "no slash and no colon in a file name";
    EXPECT_TRUE(std::filesystem::exists(folder.file("002_ArgMax_i_shape_1_int64.npy"))) << "indices are no real numbers";
    EXPECT_EQ(contents(stem + ".txt"), stored ? "3\n5\n-1\n4\n" : "0\n1\n-2\n0.5\n");
    const auto array = data::read_npy(stem + ".npy");
    ASSERT_TRUE(array) << array.status().to_string();
    EXPECT_EQ(array->dtype(), stored ? DType::Int8 : DType::Float32);
  }
}

TEST(LayerDump, AMissingFolderIsAnErrorLinePerFileAndNothingElse) {
  const tests::TemporaryFolder folder;
  const Variable set("RKNN_DUMP_DIR", folder.file("nowhere"));
  const Lines lines;
  const auto session = session_of(format::sample_model());
  ASSERT_TRUE(run_with_report(*session, {.level = 5}));
  EXPECT_TRUE(session->has_run());
  EXPECT_EQ(lines.count("0 failed open dump path: " + folder.file("nowhere") + "/00"), 5u) << lines.text();
  EXPECT_FALSE(std::filesystem::exists(folder.file("nowhere")));
}

TEST(LayerDump, DefaultFolderIsTheBoards) {
  unsetenv("RKNN_DUMP_DIR");
  const Lines lines;
  const auto session = session_of(format::sample_model());
  ASSERT_TRUE(run_with_report(*session, {.level = 5}));
  EXPECT_EQ(lines.count("5 dump npy tensor to: /userdata/dumps/000_InputOperator_x_shape_1_3_2_2_float.npy"), 1u) << lines.text();
}

TEST(LayerDump, TheFirstToolkitsFilesLieInTheCurrentDirectory) {
  const tests::TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.file(""));
  const auto session = session_of(format::sample_model());
  {
    const Variable off("NN_LAYER_DUMP", "0");
    EXPECT_TRUE(run_with_report(*session, {}));
    EXPECT_TRUE(files_in(".").empty());
  }
  const Variable on("NN_LAYER_DUMP", "1");
  EXPECT_TRUE(run_with_report(*session, {}));
  EXPECT_EQ(files_in("."), (std::set<std::string>{"x_0_out0_nchw_1_3_2_2.tensor", "act_1_out0_nchw_1_3_2_2.tensor",
                                                  "shift_2_out0_nchw_1_3_2_2.tensor", "last_3_out0_nchw_1_3_2_2.tensor",
                                                  "flat_4_out0_nd_3_4.tensor"}));
  EXPECT_EQ(contents("shift_2_out0_nchw_1_3_2_2.tensor"), "4\n4\n4\n4\n5\n5\n5\n5\n6\n6\n6\n6\n");
  std::filesystem::current_path(before);
}

TEST(MinTimeout, OnlyNumbersOfMillisecondsCount) {
  EXPECT_EQ(parse_minimum_timeout(nullptr), 0);
  EXPECT_EQ(parse_minimum_timeout(""), 0);
  EXPECT_EQ(parse_minimum_timeout("20000"), 20000);
  const Lines lines;
  EXPECT_EQ(parse_minimum_timeout("-5"), 0);
  EXPECT_EQ(parse_minimum_timeout("10s"), 0);
  EXPECT_EQ(lines.count("1 RKNN_MIN_TIMEOUT_MS is '"), 2u) << lines.text();
}

TEST(MinTimeout, WithoutAnEndStaysWithoutAnEnd) {
  EXPECT_EQ(effective_timeout_ms(0), 0);
  EXPECT_EQ(effective_timeout_ms(-1), 0);
  EXPECT_GE(effective_timeout_ms(7), 7);
}

}  // namespace
}  // namespace orknn::runtime
