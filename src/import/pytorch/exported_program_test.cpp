// Archives of torch.export (.pt2), written in memory: both layouts, arguments, open sizes, blocks, structure of the result,
// refusals.
#include <gtest/gtest.h>

#include "import/importer.h"
#include "ops/eval.h"
#include "run_import.h"
#include "torch_writer.h"

namespace orknn {
namespace {
using namespace tests;
using importer::Imported;
using importer::ImportOptions;
using ir::TensorData;
using Numbers = std::vector<double>;

Result<Imported> import_bytes(const std::string& content, const ImportOptions& options = {}) {
  return import_content("test.pt2", content, options);
}
std::string error_of(const std::string& bytes, const ImportOptions& options = {}) {
  const auto result = import_bytes(bytes, options);
  return result ? "no error" : result.status().to_string();
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string tensor(std::string_view name) { return R"({"as_tensor":{"name":")" + std::string(name) + R"("}})"; }
std::string argument(std::string_view name, std::string_view of, int kind = 1) {
  return exported_argument(name, tensor(of), kind);
}
// y = x * w^T + k
std::string linear(std::string_view output = "y", int kind = 1) {
  return exported_node("torch.ops.aten.linear.default",
                       argument("input", "x", kind) + "," + argument("weight", "p_w", kind) + "," + argument("bias", "b_k", kind),
                       output, "fc");
}
std::vector<Numbers> run(const ExportedModel& model, ir::Dims dims, const std::vector<float>& values,
                         const ImportOptions& options = {}) {
  const TensorData x = TensorData::from<float>(std::move(dims), values);
  return run_import_values(import_bytes(model.bytes(), options), std::span(&x, 1));
}
std::string names_of(const std::vector<ir::TensorId>& ids, const ir::Graph& graph) {
  std::string text;
  for (ir::TensorId id : ids) text += graph.tensor(id).name + " ";
  return text;
}

TEST(ImportExportedProgram, BothLayoutsGiveTheSame) {
  ExportedModel model{.nodes = linear()};
  EXPECT_EQ(run(model, {1, 3}, {1, 1, 1})[0], (Numbers{16, 35}));
  model.nodes = linear("y", 0);
  model.is_old = true;
  EXPECT_EQ(run(model, {1, 3}, {1, 1, 1})[0], (Numbers{16, 35}));
  const auto imported = import_bytes(model.bytes());
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->source.framework, "pytorch");
  EXPECT_EQ(imported->source.producer, "pytorch 2.9.0");
  EXPECT_EQ(imported->graph.name, "Net");
}

TEST(ImportExportedProgram, ArgumentsOutOfPlaceAreMeantByName) {
  // Old files do not say so: keepdim is the fourth parameter, and the third argument here.
  const std::string sum = exported_node("torch.ops.aten.sum.dim_IntList",
                                        argument("self", "x", 0) + "," + exported_argument("dim", R"({"as_ints":[1]})", 0) + "," +
                                            exported_argument("dtype", R"({"as_scalar_type":8})", 0),
                                        "y");
  const auto imported = import_bytes(ExportedModel{.nodes = sum}.bytes());
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).dtype, DType::Float64);
}

TEST(ImportExportedProgram, NumbersAreComputedWhileImporting) {
  const std::string nodes =
      R"({"target":"torch.ops.aten.sym_size.int","inputs":[)" + argument("self", "x") + "," +
      exported_argument("dim", R"({"as_int":0})") +
      R"(],"outputs":[{"as_sym_int":{"as_name":"n"}}]},)"
      R"({"target":"_operator.mul","inputs":[)" +
      exported_argument("a", R"({"as_sym_int":{"as_name":"n"}})") + "," +
      exported_argument("b", R"({"as_sym_int":{"as_int":3}})") + R"(],"outputs":[{"as_sym_int":{"as_name":"m"}}]},)" +
      exported_node("torch.ops.aten.view.default",
                    argument("self", "x") + "," + exported_argument("size", R"({"as_sym_ints":[{"as_name":"m"}]})"), "y");
  ExportedModel model{.nodes = nodes, .sizes = R"([{"as_expr":{"expr_str":"s0","hint":{"as_int":2}}},{"as_int":3}])"};
  const auto imported = import_bytes(model.bytes());  // the example's size
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(ir::to_string(*imported->graph.tensor(imported->graph.outputs()[0]).shape), "[6]");
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_TRUE(contains(imported->source.warnings[0], "input 'x' may have other sizes"));
  ImportOptions options;
  options.input_size_list = {{4, 3}};
  EXPECT_EQ(run(model, {4, 3}, std::vector<float>(12, 1), options)[0].size(), 12u);
  options.input_size_list = {{4, 6}};
  EXPECT_TRUE(
      contains(error_of(model.bytes(), options), "input 'x' was exported with a fixed size; expected [s0,3], found [4,6]"));
  model.sizes = R"([{"as_expr":{"expr_str":"s0"}},{"as_int":3}])";
  EXPECT_TRUE(contains(error_of(model.bytes()), "Invalid input_shape = [s0,3] for input 0!"));
  model.sizes =
      R"json([{"as_expr":{"expr_str":"Symbol('s77', positive=True, integer=True)"}},{"as_expr":{"expr_str":"Mul(Integer(2), Symbol('s1'))"}}])json";
  EXPECT_TRUE(contains(error_of(model.bytes()), "Invalid input_shape = [s77,Mul(Integer(2), s1)] for input 0!"))
      << error_of(model.bytes());
}

TEST(ImportExportedProgram, ListsOfResultsAreBound) {
  const std::string split = R"({"target":"torch.ops.aten.split.Tensor","inputs":[)" + argument("self", "x") + "," +
                            exported_argument("split_size", R"({"as_int":1})") + "," +
                            exported_argument("dim", R"({"as_int":1})") +
                            R"(],"outputs":[{"as_tensors":[{"name":"a"},{"name":"b"},{"name":"c"}]}]},)";
  const std::string max = R"({"target":"torch.ops.aten.max.dim","inputs":[)" + argument("self", "x") + "," +
                          exported_argument("dim", R"({"as_int":1})") +
                          R"(],"outputs":[{"as_tensor":{"name":"v"}},{"as_tensor":{"name":"i"}}]},)";
  const std::string cat = exported_node("torch.ops.aten.cat.default",
                                        exported_argument("tensors", R"({"as_tensors":[{"name":"c"},{"name":"a"}]})") + "," +
                                            exported_argument("dim", R"({"as_int":1})"),
                                        "y");
  const auto y = run(
      {.nodes = split + max + cat,
       .outputs = R"([{"user_output":{"arg":{"as_tensor":{"name":"y"}}}},{"user_output":{"arg":{"as_tensor":{"name":"i"}}}}])"},
      {1, 3}, {5, 9, 7});
  EXPECT_EQ(y[0], (Numbers{7, 5}));
  EXPECT_EQ(y[1], (Numbers{1}));
}

TEST(ImportExportedProgram, BlocksRunInPlace) {
  const std::string graph = R"({"inputs":[{"as_tensor":{"name":"q"}}],"outputs":[{"as_tensor":{"name":"r"}}],"nodes":[)" +
                            exported_node("torch.ops.aten.neg.default", argument("self", "q"), "r") + "]}";
  const std::string block = exported_node("torch.ops.higher_order.wrap_with_set_grad_enabled",
                                          exported_argument("enabled", R"({"as_bool":false})") + "," +
                                              exported_argument("wrapped", R"({"as_graph":{"name":"g","graph":)" + graph + "}}") +
                                              "," + argument("x", "x"),
                                          "y");
  EXPECT_EQ(run({.nodes = block}, {1, 3}, {1, 2, 3})[0], (Numbers{-1, -2, -3}));
  const std::string loop = exported_node("torch.ops.higher_order.while_loop", argument("x", "x"), "y", "inner");
  EXPECT_TRUE(contains(error_of(ExportedModel{.nodes = loop}.bytes()),
                       "node 'inner' (torch.ops.higher_order.while_loop): operator is not supported"));
}

TEST(ImportExportedProgram, FloatsAsTruthValuesStayFloats) {
  const ExportedModel model{.nodes = exported_node("torch.ops.aten.logical_not.default", argument("self", "x"), "y")};
  const auto imported = import_bytes(model.bytes());
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->graph.tensor(imported->graph.inputs()[0]).dtype, DType::Float32);
}

TEST(ImportExportedProgram, OutputsAreNamedAndCut) {
  const std::string relu = "," + exported_node("torch.ops.aten.relu.default", argument("self", "y"), "z");
  ExportedModel model{
      .nodes = linear() + relu,
      .outputs =
          R"([{"user_output":{"arg":{"as_tensor":{"name":"z"}}}},{"user_output":{"arg":{"as_tensor":{"name":"y"}}}},{"buffer_mutation":{"arg":{"name":"y"},"buffer_name":"k"}}])",
      .structure =
          R"([1,{\"type\":\"builtins.dict\",\"context\":\"[\\\"boxes\\\",\\\"scores\\\"]\",\"children_spec\":[{\"type\":null,\"context\":null,\"children_spec\":[]},{\"type\":null,\"context\":null,\"children_spec\":[]}]}])"};
  auto imported = import_bytes(model.bytes());
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(names_of(imported->graph.outputs(), imported->graph), "boxes scores ");
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_TRUE(contains(imported->source.warnings[0], "changes its own state"));
  ImportOptions options;
  options.outputs = {"y"};
  imported = import_bytes(model.bytes(), options);
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(names_of(imported->graph.outputs(), imported->graph), "y ");
  options.outputs = {"nowhere"};
  EXPECT_TRUE(contains(error_of(model.bytes(), options), "the 'nowhere' in outputs"));
}

TEST(ImportExportedProgram, QuantizedTensorsAreIntegers) {
  const std::string parameters =
      exported_argument("scale", R"({"as_float":0.5})") + "," + exported_argument("zero_point", R"({"as_int":1})") + "," +
      exported_argument("quant_min", R"({"as_int":-127})") + "," + exported_argument("quant_max", R"({"as_int":127})") + "," +
      exported_argument("dtype", R"({"as_scalar_type":2})");
  const std::string nodes = exported_node("torch.ops.quantized_decomposed.quantize_per_tensor.default",
                                          argument("input", "x") + "," + parameters, "q") +
                            "," +
                            exported_node("torch.ops.quantized_decomposed.dequantize_per_tensor.default",
                                          argument("input", "q") + "," + parameters, "y");
  const auto y = run(
      {.nodes = nodes,
       .outputs = R"([{"user_output":{"arg":{"as_tensor":{"name":"y"}}}},{"user_output":{"arg":{"as_tensor":{"name":"q"}}}}])"},
      {1, 3}, {1.2f, -1000, 0});
  EXPECT_EQ(y[0], (Numbers{1, -64, 0}));
  EXPECT_EQ(y[1], (Numbers{3, -127, 1}));
}

TEST(ImportExportedProgram, RefusalsSayWhatAndWhere) {
  const std::string unknown = exported_node("torch.ops.aten.foo.default", argument("self", "x"), "y", "head.0") + "," +
                              exported_node("torch.ops.my.bar.default", argument("self", "y"), "z", "head.1");
  std::string error = error_of(ExportedModel{.nodes = unknown}.bytes());
  EXPECT_TRUE(contains(error, "node 'head.0' (aten::foo): operator is not supported")) << error;
  EXPECT_TRUE(contains(error, "node 'head.1' (my::bar): operator is not supported")) << error;
  EXPECT_TRUE(contains(
      error_of(ExportedModel{.nodes = exported_node("torch.ops.aten.relu.default", argument("self", "w"), "y", "act")}.bytes()),
      "node 'act' (torch.ops.aten.relu.default): value 'w' is read but nothing produces it"));
  EXPECT_TRUE(
      contains(error_of(ExportedModel{.nodes = exported_node("torch.ops.aten.relu.default",
                                                             exported_argument("self", R"({"as_custom_obj":{"name":"o"}})"), "y")}
                            .bytes()),
               "as_custom_obj"));
  EXPECT_TRUE(contains(error_of(ExportedModel{.nodes = "3"}.bytes()), "operator is not supported"));

  ZipEntries entries = ExportedModel{.nodes = linear()}.entries();
  entries[2].second.resize(20);  // of 24 bytes
  error = error_of(zip_archive(entries));
  EXPECT_TRUE(contains(error, "is outside its storage")) << error;
  EXPECT_TRUE(contains(error, "weight_0")) << error;
  entries.erase(entries.begin() + 2);
  EXPECT_TRUE(contains(error_of(zip_archive(entries)), "the archive has no entry 'm/data/weights/weight_0'"));
  entries.erase(entries.begin() + 1);
  EXPECT_TRUE(contains(error_of(zip_archive(entries)), "the archive holds no weight 'w'"));
  entries[0].second.resize(100);
  EXPECT_TRUE(contains(error_of(zip_archive(entries)), "m/models/model.json"));
}

TEST(ImportExportedProgram, IsSurveyed) {
  const std::string bytes = ExportedModel{.nodes = linear()}.bytes();
  importer::Source source;
  source.bytes = std::as_bytes(std::span(bytes.data(), bytes.size()));
  const auto survey = importer::find_importer("pytorch")->survey(source);
  ASSERT_TRUE(survey) << survey.status().to_string();
  EXPECT_EQ(survey->operators, (std::map<std::string, size_t>{{"aten::linear", 1}}));
  ASSERT_EQ(survey->inputs.size(), 1u);
  EXPECT_EQ(survey->inputs[0].name, "x");
  EXPECT_EQ(survey->inputs[0].dtype, DType::Float32);
  ASSERT_TRUE(survey->inputs[0].shape);
  EXPECT_EQ(ir::to_string(*survey->inputs[0].shape), "[1,3]");
  ASSERT_EQ(survey->outputs.size(), 1u);
  EXPECT_EQ(survey->outputs[0].name, "y");
}

}  // namespace
}  // namespace orknn
