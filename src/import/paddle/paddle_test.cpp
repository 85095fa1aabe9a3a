// Models of PaddlePaddle in tests/data/paddle: both formats, errors, ports, damage. tests/test_paddle.py compares what they
// compute.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "import/paddle/model.h"
#include "ir/infer.h"
#include "mutation.h"
#include "ops/eval.h"
#include "run_import.h"
#include "temporary_folder.h"
#include "test_paths.h"

namespace orknn::importer::paddle {
namespace {
using ir::Dims;

std::string paddle_path(const std::string& name) { return std::string(tests::kSourceFolder) + "/tests/data/paddle/" + name; }
std::string content_of(const std::string& name) {
  std::ifstream file(paddle_path(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}
std::span<const std::byte> as_bytes(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }
bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
std::string error_of(const Result<Imported>& result) { return result ? "no error" : result.status().to_string(); }

// A program of Paddle 3 with one input x [2,3] and these operations, whose last makes value 9, the output.
std::string pir(const std::string& operations, const std::string& dims = "[2,3]") {
  return R"({"base_code":{"magic":"pir","version":4},"program":{"regions":[{"#":"region_0","blocks":[{"#":"block_0","args":[],"ops":[)"
         R"({"#":"1.data","A":[{"AT":{"#":"0.a_str","D":"x"},"N":"name"}],"I":[],)"
         R"("O":[{"%":1,"TT":{"#":"0.t_dtensor","D":[{"#":"0.t_f32"},)" +
         dims + R"(,"NCHW",[],0]}}]},)" + operations +
         R"(,{"#":"1.fetch","A":[{"AT":{"#":"0.a_str","D":"result"},"N":"name"}],"I":[{"%":9}],"O":[]}]}]}]}})";
}
std::string operation(const std::string& type, const std::string& reads, int makes, const std::string& attributes = "") {
  return R"({"#":")" + type + R"(","A":[)" + attributes + R"(],"I":[)" + reads + R"(],"O":[{"%":)" + std::to_string(makes) +
         R"(,"TT":{"#":"0.t_dtensor","D":[{"#":"0.t_f32"},[2,3],"NCHW",[],0]}}]})";
}
Result<Imported> import_text(const std::string& text, const ImportOptions& options = {}) {
  return tests::import_content("model.json", text, options);
}

TEST(PaddlePrograms, BothFormatsStateTheSameModel) {
  for (const char* name : {"residual.json", "residual_old.pdmodel"}) {
    const std::string bytes = content_of(name);
    const auto program = parse_program(as_bytes(bytes));
    ASSERT_TRUE(program) << program.status().to_string();
    ASSERT_EQ(program->inputs.size(), 1u);
    EXPECT_EQ(program->inputs[0].name, "x");
    EXPECT_EQ(to_string(*program->inputs[0].shape), "[1,3,16,16]");
    EXPECT_EQ(program->outputs.size(), 1u);
    EXPECT_EQ(program->parameters.size(), 13u) << name;
    size_t convolutions = 0;
    for (const Operator& op : program->operators) convolutions += op.type == "conv2d";
    EXPECT_EQ(convolutions, 2u);
    EXPECT_FALSE(looks_like_program(as_bytes(bytes.substr(1))));
  }
}

TEST(PaddlePrograms, FilesAreKnownByTheirContent) {
  for (const char* name : {"residual.json", "residual_old.pdmodel"}) {
    const std::string bytes = content_of(name);
    const auto found = sniff("model.bin", as_bytes(bytes));
    ASSERT_TRUE(found) << found.status().to_string();
    EXPECT_EQ((*found)->name, "paddle");
  }
}

TEST(PaddleImport, ParametersBesideTheModelAreFound) {
  const auto imported = load_file(paddle_path("residual_old.pdmodel"), {}, ops::builtin_ops());
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_TRUE(imported->source.warnings.empty());
  EXPECT_EQ(imported->source.producer, "paddle 2.6.2");
}

TEST(PaddleImport, AProgramAloneGetsRandomWeights) {
  const auto imported = import_text(content_of("residual.json"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_TRUE(holds(imported->source.warnings[0], "random"));
}

TEST(PaddleImport, UnknownElementTypesAreRefused) {
  for (const auto& [name, what] : {std::pair{"linear_0.w_0", "parameter 'linear_0.w_0'"}, std::pair{"x", "input 'x'"}}) {
    std::string program = content_of("residual.json");
    const size_t type = program.find("t_f32", program.find('"' + std::string(name) + '"'));
    ASSERT_NE(type, std::string::npos);
    program.replace(type, 5, "t_c64");
    const std::string error = error_of(import_text(program));
    EXPECT_TRUE(holds(error, std::string(what) + " has an unknown element type")) << error;
  }
}

TEST(PaddleImport, ParametersOfAnotherModelAreRefused) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.file("m.json"), std::ios::binary) << content_of("residual.json");
  std::ofstream(folder.file("m.pdiparams"), std::ios::binary) << content_of("mobile.pdiparams");
  EXPECT_TRUE(
      holds(error_of(load_file(folder.file("m.json"), {}, ops::builtin_ops())), "the parameter file is not that of the program"));
  std::ofstream(folder.file("m.pdiparams"), std::ios::binary) << content_of("residual.pdiparams").substr(0, 300);
  EXPECT_TRUE(holds(error_of(load_file(folder.file("m.json"), {}, ops::builtin_ops())), "the file is cut short"));
  std::ofstream(folder.file("m.pdiparams"), std::ios::binary) << content_of("residual.pdiparams") + "more";
  EXPECT_TRUE(holds(error_of(load_file(folder.file("m.json"), {}, ops::builtin_ops())), "holds more than the parameters"));
}

TEST(PaddleImport, OutputsGoByTheNamesOfTheFile) {
  const auto imported = import_text(pir(operation("1.relu", R"({"%":1})", 9)));
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).name, "result");
}

TEST(PaddleImport, ModelsCanBeCut) {
  const std::string text = pir(operation("1.relu", R"({"%":1})", 2) + "," + operation("1.exp", R"({"%":2})", 9));
  const auto begin = import_text(text, {.inputs = {"relu.2"}, .input_size_list = {{2, 3}}});
  ASSERT_TRUE(begin) << begin.status().to_string();
  EXPECT_EQ(begin->graph.node_count(), 1u);
  const auto end = import_text(text, {.outputs = {"relu.2"}});
  ASSERT_TRUE(end) << end.status().to_string();
  EXPECT_EQ(end->graph.node(end->graph.order()[0]).op, "Relu");
  EXPECT_TRUE(holds(error_of(import_text(text, {.outputs = {"relu.3"}})), "the 'relu.3' in outputs=['relu.3'] is invalid!"));
}

TEST(PaddleImport, TheBatchIsOneUnlessStated) {
  const std::string text = pir(operation("1.relu", R"({"%":1})", 9), "[-1,3]");
  const auto open = import_text(text);
  ASSERT_TRUE(open) << open.status().to_string();
  EXPECT_EQ(to_string(*open->graph.tensor(open->graph.inputs()[0]).shape), "[1,3]");
  const auto stated = import_text(text, {.input_size_list = {{4, 3}}});
  ASSERT_TRUE(stated) << stated.status().to_string();
  EXPECT_EQ(to_string(*stated->graph.tensor(stated->graph.inputs()[0]).shape), "[4,3]");
}

TEST(PaddleImport, EveryUnknownOperatorIsReported) {
  const std::string error =
      error_of(import_text(pir(operation("1.wonder", R"({"%":1})", 2) + "," + operation("1.marvel", R"({"%":2})", 9))));
  EXPECT_TRUE(holds(error, "operator 'wonder' of PaddlePaddle is not supported")) << error;
  EXPECT_TRUE(holds(error, "operator 'marvel' of PaddlePaddle is not supported")) << error;
  const std::string missing = error_of(import_text(pir(operation("1.relu", R"({"%":7})", 9))));
  EXPECT_TRUE(holds(missing, "tensor 'value 7' is read but nothing produces it")) << missing;
}

TEST(PaddleImport, RegionsAreAMatrix) {
  const auto align = [](const std::string& dims) {
    return error_of(import_text(
        pir(operation("1.full", "", 3,
                      R"({"AT":{"#":"1.a_intarray","D":)" + dims + R"(},"N":"shape"},{"AT":{"#":"0.a_f64","D":1},"N":"value"})") +
                "," + operation("1.roi_align", R"({"%":1},{"%":3},{"%":0})", 9),
            "[1,2,4,4]")));
  };
  EXPECT_EQ(align("[3,4]"), "no error");
  for (const char* dims : {"[]", "[4]", "[1,3,4]"})
    EXPECT_TRUE(holds(align(dims), "has the wrong rank; expected 2 axes to find the pictures of regions, found")) << align(dims);
}

// A condition on x with these regions; `block` is one region.
std::string branch_with(const std::string& regions) {
  std::string branch = operation("1.if", R"({"%":1})", 9);
  branch.insert(branch.size() - 1, R"(,"regions":[)" + regions + "]");
  return branch;
}
std::string block(const std::string& operations) {
  return R"({"#":"region_1","blocks":[{"#":"block_1","args":[],"ops":[)" + operations + R"(]}]})";
}
std::string yield(const std::string& reads) { return R"({"#":"2.yield","A":[],"I":[)" + reads + R"(],"O":[]})"; }

TEST(PaddleImport, ConditionsBecomeOneNode) {
  const std::string then = block(operation("1.relu", R"({"%":1})", 5) + "," + yield(R"({"%":5})"));
  const std::string otherwise = block(operation("1.exp", R"({"%":1})", 6) + "," + yield(R"({"%":6})"));
  const auto imported = import_text(pir(branch_with(then + "," + otherwise), "[1,1]"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  const ir::Graph& g = imported->graph;
  EXPECT_EQ(g.node(g.producer(g.outputs()[0])).op, "If");
}

TEST(PaddleImport, DamagedBlocksAreRefused) {
  const std::string good = block(yield(R"({"%":1})"));
  for (const auto& [regions, text] : {std::pair<std::string, std::string>{"", "a condition chooses between two blocks"},
                                      {good, "a condition chooses between two blocks"},
                                      {good + "," + block(""), "makes another number of values"},
                                      {good + "," + block(yield(R"({"%":77})")), "value 77 is read before it is made"},
                                      {good + "," + block(operation("1.wonder", R"({"%":1})", 5) + "," + yield(R"({"%":5})")),
                                       "operator 'wonder' of PaddlePaddle is not supported"}}) {
    const std::string error = error_of(import_text(pir(branch_with(regions))));
    EXPECT_TRUE(holds(error, text)) << error;
  }
  std::string deep = yield(R"({"%":1})");
  for (int i = 0; i < 7; ++i) deep = branch_with(block(deep) + "," + good) + "," + yield(R"({"%":9})");
  const std::string error = error_of(import_text(pir(branch_with(block(deep) + "," + good))));
  EXPECT_TRUE(holds(error, "blocks within blocks are not supported; expected at most 6 levels")) << error;
}

// Old programs align the second operand with the axes of the first from `axis` on, and write variables again.
TEST(PaddleImport, AttributesOfOldProgramsBecomeOperands) {
  const std::string bytes = content_of("mobile_old.pdmodel");
  const auto program = parse_program(as_bytes(bytes));
  ASSERT_TRUE(program);
  const auto reshape =
      std::find_if(program->operators.begin(), program->operators.end(), [](const Operator& op) { return op.type == "reshape"; });
  ASSERT_NE(reshape, program->operators.end());
  ASSERT_EQ(reshape->inputs.size(), 2u);
  ASSERT_TRUE(reshape->inputs[1].stated) << "the shape";
  EXPECT_EQ(reshape->inputs[1].stated->integers, (std::vector<int64_t>{1, 8, 1, 1}));
}

// Every model is lowered each time: a tenth of the usual number.
TEST(PaddleMutation, DamageDoesNoHarm) {
  std::mt19937 random(17);
  tests::Tally tally;
  std::vector<std::string> good;
  for (const char* name : {"mobile.json", "suppression.json", "gru_old.pdmodel", "shapes_old.pdmodel", "qat_integers_old.pdmodel",
                           "branches.json", "branches_old.pdmodel", "repeated_old.pdmodel"})
    good.push_back(content_of(name));
  for (int i = 0; i < tests::mutation_count(4000) / 10; ++i)
    tally.add(tests::import_survives(tests::mutate(good[static_cast<size_t>(i) % good.size()], random), "paddle"));
  EXPECT_GT(tally.refused, 0u);
}

TEST(PaddleMutation, DamagedParametersDoNoHarm) {
  std::mt19937 random(19);
  const std::string bytes = content_of("gru_old.pdmodel"), params = content_of("gru_old.pdiparams");
  const auto program = parse_program(as_bytes(bytes));
  ASSERT_TRUE(program);
  tests::Tally tally;
  for (int i = 0; i < tests::mutation_count(4000); ++i) {
    const std::vector<std::byte> bad = tests::exact_copy(tests::mutate(params, random));
    const auto values = read_parameters(bad, nullptr, *program);
    tally.add(values && import_program(*program, &*values, {}, ops::builtin_ops()));
  }
  EXPECT_GT(tally.refused, 0u);
  EXPECT_GT(tally.read, 0u);
}

}  // namespace
}  // namespace orknn::importer::paddle
