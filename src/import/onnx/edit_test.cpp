// Models whose inputs and outputs get other shapes compute the same.
#include "import/onnx/edit.h"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <random>

#include "base/files.h"
#include "import_onnx.h"
#include "mutation.h"
#include "temporary_folder.h"

namespace orknn::importer::onnx {
namespace {
using namespace tests;

struct Files {
  TemporaryFolder folder;
  std::string model = folder.file("model.onnx"), edited = folder.file("edited.onnx");

  explicit Files(const std::string& bytes) { std::ofstream(model, std::ios::binary) << bytes; }
  Result<Edited> edit(const TensorFormulas& inputs, const TensorFormulas& outputs) const {
    return edit_model(model, edited, inputs, outputs);
  }
  std::string problem(const TensorFormulas& inputs, const TensorFormulas& outputs) const {
    return edit(inputs, outputs).status().to_string();
  }
};

std::vector<float> counting(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

Result<Imported> import_file(const std::string& path, const ImportOptions& options = {}) {
  return load_file(path, options, ops::builtin_ops(), "onnx");
}

// y = 2 * x for any x.
Message doubling(const std::vector<std::string>& dims, int64_t opset = 17) {
  return model(graph({.nodes = {node("Add", {"x", "x"}, {"y"})},
                      .inputs = {value_info("x", kFloat, dims)},
                      .outputs = {value_info("y", kFloat, dims)},
                      .value_info = {value_info("y", kFloat, dims)}}),
               opset, opset < 9 ? 3 : 8);
}

// The order in which an input formula hands over the elements: the edited model, fed with 0, 1, 2, ..., gives these halves.
std::vector<double> restored(const std::string& formula, const std::vector<std::string>& dims, ir::Dims new_dims,
                             int64_t opset = 17) {
  const Files files(doubling(dims, opset).bytes());
  const auto edited = files.edit({{"x", formula}}, {});
  EXPECT_TRUE(edited) << edited.status().to_string();
  if (!edited) return {};
  auto imported = import_file(files.edited);
  const int64_t count = ir::element_count(new_dims);
  auto values = run_import_values(std::move(imported), std::vector{floats(std::move(new_dims), counting(count))});
  for (double& v : values[0]) v /= 2;
  return values[0];
}

TEST(OnnxEdit, InputsAreRestored) {
  EXPECT_EQ(restored("a,b->b,a", {"2", "3"}, {3, 2}), (Values{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(restored("a,b->b,a", {"2", "3"}, {3, 2}, 4), (Values{0, 2, 4, 1, 3, 5})) << "without an input for the shape";
  EXPECT_EQ(restored("ab,c[a=2]->b,ca", {"4", "1"}, {2, 2}), (Values{0, 2, 1, 3}));
  EXPECT_EQ(restored("ab,c[a=2]->b,ca", {"4", "1"}, {2, 2}, 4), (Values{0, 2, 1, 3}));
  EXPECT_EQ(restored("a,bc[b=2]->ab,c,1", {"1", "4"}, {2, 2, 1}), (Values{0, 1, 2, 3}));
  EXPECT_EQ(restored("a,b->a,b", {"1", "2"}, {1, 2}), (Values{0, 1})) << "nothing changes";
}

TEST(OnnxEdit, LeavesOutStepsThatChangeNothing) {
  const auto steps = [](const std::string& formula, const std::vector<std::string>& dims) {
    const Files files(doubling(dims).bytes());
    const auto edited = files.edit({{"x", formula}}, {});
    EXPECT_TRUE(edited) << edited.status().to_string();
    std::string text;
    if (edited)
      for (const std::string& line : edited->log)
        if (line.starts_with("- Insert ")) text += line.substr(9, 7) + line.substr(line.find(". ") + 1) + "\n";
    return text;
  };
  EXPECT_EQ(steps("a,b,c,d->a,c,d,b", {"1", "3", "224", "320"}),
            "transpo [1, 224, 320, 3] transpose(0, 3, 1, 2) to [1, 3, 224, 320].\n");
  EXPECT_EQ(steps("a,bc,d[b=8]->a,b,d,c", {"1", "64", "49"}),
            "transpo [1, 8, 49, 8] transpose(0, 1, 3, 2) to [1, 8, 8, 49].\nreshape [1, 8, 8, 49] reshape to [1, 64, 49].\n");
  EXPECT_EQ(steps("a,bc[b=2,c=32]->ab,c,1,1", {"3", "64"}), "reshape [6, 32, 1, 1] reshape to [3, 64].\n");
  EXPECT_EQ(steps("a,1,b,c->c,ab", {"5", "1", "6", "7"}),
            "reshape [7, 30] reshape to [7, 5, 6].\ntranspo [7, 5, 6] transpose(1, 2, 0) to [5, 6, 7].\nreshape [5, 6, 7] "
            "reshape to [5, 1, 6, 7].\n");
  EXPECT_EQ(
      steps("a,bcd,e[b=2,d=4]->ad,e,cb", {"2", "24", "9"}),
      "reshape [8, 9, 6] reshape to [2, 4, 9, 3, 2].\ntranspo [2, 4, 9, 3, 2] transpose(0, 4, 3, 1, 2) to [2, 2, 3, 4, 9].\n"
      "reshape [2, 2, 3, 4, 9] reshape to [2, 24, 9].\n");
}

TEST(OnnxEdit, OutputsGetTheirShape) {
  const Files files(doubling({"2", "3", "4"}).bytes());
  const auto edited = files.edit({}, {{"y", "a,b,c->c,1,ba"}});
  ASSERT_TRUE(edited) << edited.status().to_string();
  const auto results = run_import(import_file(files.edited), std::vector{floats({2, 3, 4}, counting(24))});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].dims(), (ir::Dims{4, 1, 6}));
  const auto values = ir::to_doubles(results[0].view());
  for (size_t c = 0; c < 4; ++c)
    for (size_t b = 0; b < 3; ++b)
      for (size_t a = 0; a < 2; ++a) EXPECT_EQ(values[c * 6 + b * 2 + a], 2.0 * static_cast<double>(a * 12 + b * 4 + c));
}

TEST(OnnxEdit, OpenDimensionsStayOpen) {
  const Files files(doubling({"n", "2"}).bytes());
  const auto edited = files.edit({{"x", "ab,c[a=2]->c,a,b"}}, {});
  ASSERT_TRUE(edited) << edited.status().to_string();
  EXPECT_EQ(edited->log[1], "Input:'x' was reset as shape-[2, 2, ?].(Origin shape is [?, 2])");
  ImportOptions options;
  options.input_size_list = {{2, 2, 3}};
  const auto results = run_import(import_file(files.edited, options), std::vector{floats({2, 2, 3}, counting(12))});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].dims(), (ir::Dims{6, 2}));
  EXPECT_EQ(ir::to_doubles(results[0].view()), (Values{0, 12, 2, 14, 4, 16, 6, 18, 8, 20, 10, 22}));
}

TEST(OnnxEdit, SeveralOpenDimensionsAreComputed) {
  const Files files(doubling({"n", "m", "4"}).bytes());
  const auto edited = files.edit({{"x", "a,b,cd[c=2]->1,b,a,c,d"}}, {{"y", "a,b,c->ab,c"}});
  ASSERT_TRUE(edited) << edited.status().to_string();
  ImportOptions options;
  options.input_size_list = {{1, 3, 2, 2, 2}};
  const auto results = run_import(import_file(files.edited, options), std::vector{floats({1, 3, 2, 2, 2}, counting(24))});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].dims(), (ir::Dims{6, 4}));
  const auto values = ir::to_doubles(results[0].view());
  for (size_t a = 0; a < 2; ++a)
    for (size_t b = 0; b < 3; ++b)
      for (size_t c = 0; c < 4; ++c) EXPECT_EQ(values[(a * 3 + b) * 4 + c], 2.0 * static_cast<double>((b * 2 + a) * 4 + c));
}

TEST(OnnxEdit, StatedSizesFixOpenDimensions) {
  const Files files(doubling({"?", "?", "2"}).bytes());
  const auto edited = files.edit({{"x", "ab,c,d[a=2,b=3,c=2]->ab,d,c"}}, {});
  ASSERT_TRUE(edited) << edited.status().to_string();
  EXPECT_EQ(edited->log[1], "Input:'x' was reset as shape-[6, 2, 2].(Origin shape is [6, 2, 2])");
  EXPECT_EQ(edited->inputs[0].dims, (ir::Dims{-1, -1, 2}));
  EXPECT_EQ(run_import(import_file(files.edited), std::vector{floats({6, 2, 2}, counting(24))}).size(), 1u);
}

// Bodies read tensors of the graph around them, and may hand them out.
TEST(OnnxEdit, BodiesReadTheRestoredInput) {
  const Message then = graph({.nodes = {node("Neg", {"x"}, {"t"})}, .outputs = {value_info_without_shape("t", kFloat)}}, "then");
  const Message other =
      graph({.nodes = {node("Identity", {"x"}, {"e"})}, .outputs = {value_info_without_shape("e", kFloat)}}, "other");
  const Message m = model(
      graph({.nodes = {node("If", {"c"}, {"y"}, {attribute_graph("then_branch", then), attribute_graph("else_branch", other)})},
             .inputs = {value_info("c", kBool, {}), value_info("x", kFloat, {"2", "2"})},
             .outputs = {value_info("y", kFloat, {"2", "2"})}}),
      17);
  const Files files(m.bytes());
  const auto edited = files.edit({{"x", "a,b->b,a"}}, {{"y", "a,b->ab"}});
  ASSERT_TRUE(edited) << edited.status().to_string();
  const bool yes = true;
  const auto results = run_import_values(
      import_file(files.edited), std::vector{ir::TensorData::from<bool>({}, std::span(&yes, 1)), floats({2, 2}, {0, 1, 2, 3})});
  EXPECT_EQ(results[0], (Values{0, -2, -1, -3}));
}

TEST(OnnxEdit, ExternalWeightsGoAlong) {
  Message location;
  location.text(1, "location").text(2, "w.bin");
  Message external;
  external.number(1, 2).number(2, kFloat).text(8, "w").message(13, location).number(14, 1);
  const Message m = model(graph({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                 .initializers = {external},
                                 .inputs = {value_info("x", kFloat, {"1", "2"})},
                                 .outputs = {value_info("y", kFloat, {"1", "2"})}}),
                          17);
  const Files files(m.bytes());
  const float values[] = {10, 20};
  std::ofstream(files.folder.file("w.bin"), std::ios::binary).write(reinterpret_cast<const char*>(values), sizeof values);
  const TemporaryFolder other;
  const auto edited = edit_model(files.model, other.file("edited.onnx"), {{"x", "a,b->b,a"}}, {});
  ASSERT_TRUE(edited) << edited.status().to_string();
  EXPECT_EQ(run_import_values(import_file(other.file("edited.onnx")), std::vector{floats({2, 1}, {1, 2})})[0], (Values{11, 22}));
}

TEST(OnnxEdit, SaysWhatIsWrong) {
  const Files files(doubling({"2", "3"}).bytes());
  const std::string both = files.problem({{"z", "a,b->b,a"}, {"x", "a->a"}}, {});
  EXPECT_TRUE(contains(both, "the model has no input 'z'; expected one of 'x'")) << both;
  EXPECT_TRUE(contains(both, "another rank")) << both;
  EXPECT_TRUE(contains(files.problem({}, {{"x", "a,b->b,a"}}), "no output 'x'"));
  EXPECT_FALSE(std::ifstream(files.edited).good()) << "nothing is written";
  EXPECT_TRUE(contains(Files("PK no model").problem({}, {}), "onnx_edit"));
  const Message passed =
      model(graph({.nodes = {}, .inputs = {value_info("x", kFloat, {"2"})}, .outputs = {value_info("x", kFloat, {"2"})}}), 17);
  EXPECT_TRUE(contains(Files(passed.bytes()).problem({{"x", "a->a,1"}}, {}), "at once"));
  const Message shapeless = model(graph({.nodes = {node("Neg", {"x"}, {"y"})},
                                         .inputs = {value_info("x", kFloat, {"2"})},
                                         .outputs = {value_info_without_shape("y", kFloat)}}),
                                  17);
  EXPECT_TRUE(contains(Files(shapeless.bytes()).problem({}, {{"y", "a->a,1"}}), "states no shape"));
  const Files open(doubling({"?", "?"}).bytes());
  EXPECT_TRUE(contains(open.problem({{"x", "a,b->ab"}}, {}), "cannot be split off again"))
      << open.problem({{"x", "a,b->ab"}}, {});
}

TEST(OnnxEdit, DamageDoesNoHarm) {
  const std::string good = doubling({"2", "6"}).bytes();
  std::mt19937 random(11);
  Tally tally;
  for (int i = 0; i < mutation_count(500); ++i) {
    const Files files(mutate(good, random));
    tally.add(files.edit({{"x", "a,bc[b=2]->c,ab"}}, {{"y", "a,b->b,a"}}).is_ok());
  }
  EXPECT_GT(tally.read, 0u);
  EXPECT_GT(tally.refused, 0u);
}

}  // namespace
}  // namespace orknn::importer::onnx
