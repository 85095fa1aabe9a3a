// The MXNet importer on models written in memory: symbol and parameter files of every age, inputs and parameters, operators whose
// meaning is easily missed, errors, and damage.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "import/mxnet/layer.h"
#include "import/mxnet/params.h"
#include "import/mxnet/symbol.h"
#include "ir/infer.h"
#include "mutation.h"
#include "mxnet_writer.h"
#include "ops/eval.h"
#include "run_import.h"
#include "temporary_folder.h"

namespace orknn {
namespace {
using namespace tests::mxnet;
using importer::Imported;
using importer::ImportOptions;
using ir::Dims;
using ir::TensorData;
using Values = std::vector<double>;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }
TensorData floats(Dims dims, const std::vector<float>& values) { return TensorData::from<float>(std::move(dims), values); }
TensorData counting(Dims dims) {
  std::vector<float> values(static_cast<size_t>(ir::element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return floats(std::move(dims), values);
}
ImportOptions sized(std::vector<Dims> sizes) {
  ImportOptions options;
  options.input_size_list = std::move(sizes);
  return options;
}
std::string error_of(const Result<Imported>& result) { return result ? "no error" : result.status().to_string(); }

// Imports, infers, runs; nothing after a failure.
std::vector<TensorData> run(const std::string& text, const std::optional<std::string>& weights,
                            const std::vector<TensorData>& inputs, ImportOptions options = {}) {
  if (options.input_size_list.empty())
    for (const TensorData& t : inputs) options.input_size_list.push_back(t.dims());
  std::vector<TensorData> results = tests::run_import(import(text, weights, options), inputs);
  if (results.empty()) results.resize(4);
  return results;
}
Values values(const TensorData& t) { return t.has_value() ? ir::to_doubles(t.view()) : Values{}; }
void expect_near(const TensorData& found, const Values& expected, double tolerance = 1e-5) {
  const Values got = values(found);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << "at " << i;
}

using Attributes = std::vector<std::pair<std::string, std::string>>;
// One operator on inputs a, b, c, ...
std::string one(const std::string& op, size_t inputs, Attributes attributes = {}, std::vector<std::pair<int, int>> heads = {},
                const SymbolForm& form = {}) {
  std::vector<NodeText> nodes;
  NodeText node{op, "n", {}, std::move(attributes)};
  for (size_t i = 0; i < inputs; ++i) {
    nodes.push_back(variable(std::string(1, static_cast<char>('a' + i))));
    node.inputs.emplace_back(static_cast<int>(i), 0);
  }
  for (auto& [n, o] : heads) n = static_cast<int>(inputs);
  nodes.push_back(node);
  return symbol(nodes, heads, form);
}
TensorData apply(const std::string& op, const std::vector<TensorData>& inputs, Attributes attributes = {},
                 const SymbolForm& form = {}) {
  return run(one(op, inputs.size(), std::move(attributes), {}, form), {}, inputs)[0];
}

// --- files

TEST(MxnetFiles, AttributesOfEveryAge) {
  for (const char* key : {"attrs", "attr", "param"})
    for (bool versions : {true, false}) {
      const std::string text = one("_mul_scalar", 1, {{"scalar", "3"}}, {}, {key, versions, 0});
      expect_near(run(text, {}, {floats({2}, {1, 2})})[0], {3, 6});
    }
}

TEST(MxnetFiles, ParametersOfEveryVersion) {
  for (int version = 0; version < 4; ++version) {
    const std::string text = symbol({variable("x"), variable("w"), {"broadcast_mul", "y", {{0, 0}, {1, 0}}}});
    expect_near(run(text, params({{version % 2 ? "arg:w" : "w", {2}, {10, 20}}, {"arg:unused", {1}, {7}}}, version),
                    {floats({2, 2}, {1, 2, 3, 4})})[0],
                {10, 40, 30, 80});
  }
}

TEST(MxnetFiles, ElementTypes) {
  const std::string text = symbol(
      {variable("x"), variable("w"), {"Cast", "k", {{1, 0}}, {{"dtype", "float32"}}}, {"elemwise_add", "y", {{0, 0}, {2, 0}}}});
  const auto add = [&](int32_t dtype, std::string_view bytes) {
    return values(run(text, raw_params("arg:w", {2}, dtype, bytes), {floats({2}, {1, 1})})[0]);
  };
  EXPECT_EQ(add(5, std::string_view("\xff\x02", 2)), (Values{0, 3}));
  EXPECT_EQ(add(2, std::string_view("\x00\x3c\x00\xc0", 4)), (Values{2, -1}));
  EXPECT_EQ(add(12, std::string_view("\x80\x3f\x00\xc0", 4)), (Values{2, -1}));
  EXPECT_EQ(add(6, std::string_view("\x03\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 16)), (Values{4, 0}));
}

TEST(MxnetFiles, Refusals) {
  const std::string text = symbol({variable("x"), variable("w"), {"elemwise_add", "y", {{0, 0}, {1, 0}}}});
  const auto error = [&](const std::string& weights) { return error_of(import(text, weights, sized({{2}}))); };
  EXPECT_TRUE(contains(error("no parameters"), "this is not an MXNet parameter file"));
  const std::string good = params({{"arg:w", {2}, {1, 2}}});
  EXPECT_TRUE(contains(error(good.substr(0, good.size() - 3)), "cut short"));
  EXPECT_TRUE(contains(error(good.substr(0, 50)), "array 0")) << error(good.substr(0, 50));
  EXPECT_TRUE(contains(error(raw_params("arg:w", {2}, 99, "")), "unknown element type"));
  EXPECT_TRUE(contains(error(raw_params("arg:w", {-2}, 0, "")), "negative extent"));
  EXPECT_TRUE(contains(error(raw_params("arg:w", {int64_t{1} << 40, int64_t{1} << 40}, 0, "")), "too large"));
  EXPECT_TRUE(contains(error(raw_params("arg:w", {2, 3}, 0, std::string(12 + 8, '\0'), 1)), "'w' of the params file is sparse"));
  EXPECT_TRUE(contains(error(raw_params("arg:w", {2}, 0, "", 9)), "unknown storage type"));
}

TEST(MxnetFiles, UnusedSparseArraysDoNoHarm) {
  const std::string text = one("negative", 1);
  expect_near(run(text, raw_params("arg:other", {2, 3}, 0, std::string(12 + 8, '\0'), 1), {floats({1}, {4})})[0], {-4});
}

TEST(MxnetFiles, DamagedText) {
  const auto error = [](const std::string& text) { return error_of(import(text)); };
  EXPECT_TRUE(contains(error("[1, 2]"), "not a JSON object"));
  EXPECT_TRUE(contains(error("{\"nodes\": [{\"op\": \"null\"}]"), "a node without \"name\" ends"));
  EXPECT_TRUE(contains(error("{\"nodes\": [{\"op\": 3}]}"), "at offset"));
  EXPECT_TRUE(contains(error("{\"nodes\": [], \"heads\": []}"), "no nodes"));
  EXPECT_TRUE(contains(error("{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"heads\": []}"), "no outputs"));
  EXPECT_TRUE(contains(error(symbol({variable("x"), {"abs", "y", {{7, 0}}}})), "does not exist"));
  EXPECT_TRUE(contains(error(symbol({variable("x")}, {{5, 0}})), "does not exist"));
  EXPECT_TRUE(contains(error(symbol({variable("x"), {"abs", "y", {{0, 0}}}}) + "x"), "after the end"));
  EXPECT_TRUE(contains(error("{\"a\": " + std::string(100000, '[')), "nested too deeply"));
  EXPECT_TRUE(contains(error(symbol({{"abs", "a", {{1, 0}}}, {"abs", "b", {{0, 0}}}})), "cycle"));
  EXPECT_TRUE(contains(error(symbol({variable("x"), {"abs", "y", {{0, 70000}}}})),
                       "an entry with an illegal output number ends at offset"));
  EXPECT_TRUE(contains(error("{\"nodes\": [{\"name\": \"x\"}]}"), "a node without \"op\" ends at offset"));
}

TEST(MxnetFiles, StringsWithEscapes) {
  auto result = import(
      "{\"nodes\": [{\"op\": \"null\", \"name\": \"d\\u00e4t\\u0061\\ud83d\\ude00\\\"\", \"inputs\": []}, {\"op\": \"abs\", "
      "\"name\": \"y\", \"inputs\": [[0, 0, 0]]}], \"heads\": [[1, 0, 0]]}",
      {}, sized({{1}}));
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->graph.tensor(result->graph.inputs()[0]).name, "d\xc3\xa4ta\xf0\x9f\x98\x80\"");
}

TEST(MxnetFiles, ThroughTheImporter) {
  tests::TemporaryFolder folder;
  const Sample sample = samples()[0];
  std::ofstream(folder.file("m-symbol.json")) << sample.symbol;
  std::ofstream(folder.file("m-0000.params"), std::ios::binary) << sample.params;
  auto result = importer::load_file(folder.file("m-symbol.json"), sized(sample.sizes), ops::builtin_ops(), "",
                                    {folder.file("m-0000.params")});
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->source.framework, "mxnet");
  EXPECT_EQ(result->source.producer, "mxnet 1.9.1");
  EXPECT_TRUE(result->source.warnings.empty());
  EXPECT_TRUE(contains(error_of(importer::load_file(folder.file("m-0000.params"), {}, ops::builtin_ops(), "mxnet")),
                       "m-0000.params: import: the file holds the parameters of an MXNet model"));
  EXPECT_TRUE(contains(
      error_of(importer::load_file(folder.file("m-symbol.json"), {}, ops::builtin_ops(), "", {folder.file("none")})), "none"));
}

// --- inputs, parameters, outputs

TEST(MxnetModel, PortsAndNames) {
  const Sample sample = samples()[0];
  auto result = import(sample.symbol, sample.params, sized(sample.sizes));
  ASSERT_TRUE(result) << error_of(result);
  const ir::Graph& g = result->graph;
  ASSERT_EQ(g.inputs().size(), 1u);  // the label is gone
  EXPECT_EQ(g.tensor(g.inputs()[0]).name, "data");
  EXPECT_EQ(g.tensor(g.outputs()[0]).name, "softmax_output");
  EXPECT_TRUE(g.find_tensor("c_output"));
}

TEST(MxnetModel, PictureSizesMayLackTheBatch) {
  const Sample sample = samples()[0];
  auto result = import(sample.symbol, sample.params, sized({{1, 5, 5}}));
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(ir::to_string(*result->graph.tensor(result->graph.inputs()[0]).shape), "[1,1,5,5]");
}

TEST(MxnetModel, StatedShapeAndType) {
  const std::string text = symbol({variable("x", {{"__shape__", "(0, 3)"}, {"__dtype__", "4"}}), {"_copy", "y", {{0, 0}}}});
  auto result = import(text);
  ASSERT_TRUE(result) << error_of(result);
  const ir::Tensor& x = result->graph.tensor(result->graph.inputs()[0]);
  EXPECT_EQ(x.dtype, DType::Int32);
  EXPECT_EQ(ir::to_string(*x.shape), "[?,3]");
}

TEST(MxnetModel, WithoutParametersTheyAreRandom) {
  const Sample sample = samples()[0];
  auto first = import(sample.symbol, {}, sized(sample.sizes)), second = import(sample.symbol, {}, sized(sample.sizes));
  ASSERT_TRUE(first) << error_of(first);
  ASSERT_TRUE(second);
  ASSERT_EQ(first->source.warnings.size(), 1u);
  EXPECT_TRUE(contains(first->source.warnings[0], "random"));
  EXPECT_EQ(first->graph.inputs().size(), 1u);
  const TensorData* a = first->graph.constant(first->graph.find_tensor("c_weight"));
  const TensorData* b = second->graph.constant(second->graph.find_tensor("c_weight"));
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->dims(), (Dims{2, 1, 3, 3}));
  EXPECT_TRUE(identical(a->view(), b->view()));
  EXPECT_TRUE(contains(error_of(import(sample.symbol)), "give the input shapes with input_size_list"));
}

TEST(MxnetModel, RandomParametersHaveTheLayoutOfTheLayer) {
  const std::string text = symbol({variable("x"),
                                   variable("w"),
                                   {"Convolution",
                                    "c",
                                    {{0, 0}, {1, 0}},
                                    {{"kernel", "(2, 3)"}, {"num_filter", "5"}, {"no_bias", "True"}, {"layout", "NHWC"}}}});
  auto imported = import(text, {}, sized({{1, 6, 7, 4}}));
  ASSERT_TRUE(imported) << error_of(imported);
  EXPECT_EQ(ir::to_string(*imported->graph.tensor(imported->graph.outputs()[0]).shape), "[1,5,5,5]");
}

TEST(MxnetModel, UnknownAttributesAreWarnedOf) {
  auto imported = import(symbol({variable("x"),
                                 {"Pooling",
                                  "p",
                                  {{0, 0}},
                                  {{"kernel", "(2, 2)"}, {"pool_typ", "avg"}, {"__note__", "mine"}, {"weight_lr_mult", "2"}}}}),
                         {}, sized({{1, 1, 2, 2}}));
  ASSERT_TRUE(imported) << error_of(imported);
  EXPECT_EQ(
      imported->source.warnings,
      (std::vector<std::string>{"layer 'p': attribute 'pool_typ' is not known and has no effect; did you mean 'pool_type'?"}));
}

TEST(MxnetModel, MissingParametersAreNamed) {
  const Sample sample = samples()[0];
  const std::string error = error_of(import(sample.symbol, params({}), sized(sample.sizes)));
  EXPECT_TRUE(contains(error, "the params file has no value for 'c_weight', 'b_gamma'")) << error;
  EXPECT_TRUE(contains(error, "and 2 more")) << error;
}

TEST(MxnetModel, SizedVariablesAreInputsWhateverTheirUse) {
  const std::string text = symbol(
      {variable("x"), variable("w"), {"FullyConnected", "f", {{0, 0}, {1, 0}}, {{"num_hidden", "1"}, {"no_bias", "True"}}}});
  expect_near(run(text, params({}), {floats({1, 2}, {2, 3}), floats({1, 2}, {10, 1})})[0], {23});
}

TEST(MxnetModel, StatesStartAtZeroUnlessSized) {
  const Sample sample = samples()[2];
  auto result = import(sample.symbol, sample.params, sized({sample.sizes[0]}));
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->graph.inputs().size(), 1u);
  ASSERT_EQ(result->source.warnings.size(), 1u);
  EXPECT_TRUE(contains(result->source.warnings[0], "'l_state', 'l_state_cell'"));
  EXPECT_EQ(import(sample.symbol, sample.params, sized(sample.sizes))->graph.inputs().size(), 3u);
}

TEST(MxnetModel, CuttingByName) {
  const Sample sample = samples()[0];
  ImportOptions options = sized(sample.sizes);
  options.outputs = {"r", "p_output"};
  auto result = import(sample.symbol, sample.params, options);
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->graph.tensor(result->graph.outputs()[0]).name, "r_output");
  options.outputs = {"nothing"};
  EXPECT_TRUE(contains(error_of(import(sample.symbol, sample.params, options)), "'nothing' in outputs"));
  ImportOptions inner = sized({{1, 2, 5, 5}});
  inner.inputs = {"b_output"};
  auto tail = import(sample.symbol, sample.params, inner);
  ASSERT_TRUE(tail) << error_of(tail);
  EXPECT_EQ(tail->graph.tensor(tail->graph.inputs()[0]).name, "b_output");
}

TEST(MxnetModel, AllProblemsAtOnce) {
  const std::string text = symbol({variable("x"),
                                   {"Custom", "mine", {{0, 0}}, {{"op_type", "focal"}}},
                                   {"NoSuchThing", "what", {{0, 0}}},
                                   {"Pooling", "pool", {{0, 0}}, {{"kernel", "(2, oops)"}}},
                                   {"Pooling", "huge", {{0, 0}}, {{"kernel", "(2, 9223372036854775807)"}}},
                                   {"softmax", "axis", {{0, 0}}, {{"axis", "9223372036854775807"}}},
                                   {"abs", "after", {{1, 0}}}},
                                  {{1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}});
  const std::string error = error_of(import(text, {}, sized({{1, 1, 4, 4}})));
  EXPECT_TRUE(contains(error, "node 'mine' (Custom)")) << error;
  EXPECT_TRUE(contains(error, "'focal'")) << error;
  EXPECT_TRUE(contains(error, "node 'what' (NoSuchThing): this operator is not supported")) << error;
  EXPECT_TRUE(contains(error, "attribute 'kernel' does not parse; expected a tuple of integers, found '(2, oops)'")) << error;
  EXPECT_TRUE(
      contains(error, "attribute 'kernel' is out of range; expected integers of 32 bits, found '(2, 9223372036854775807)'"))
      << error;
  EXPECT_TRUE(contains(error, "attribute 'axis' is out of range; expected an integer of 32 bits, found '9223372036854775807'"))
      << error;
  EXPECT_FALSE(contains(error, "'after'")) << error;
}

TEST(MxnetModel, ImpossibleOutputsAreRefused) {
  EXPECT_TRUE(contains(error_of(import(symbol({variable("x"), {"abs", "y", {{0, 2}}}}), {}, sized({{2}}))),
                       "node 'y' (abs): an input refers to output 2 of variable 'x'"));
  EXPECT_TRUE(contains(error_of(import(symbol({variable("x"), {"abs", "y", {{0, 0}}}}, {{0, 1}}), {}, sized({{2}}))),
                       "an output of the model refers to output 1 of variable 'x'"));
  EXPECT_TRUE(contains(error_of(import(symbol({variable("x"), {"abs", "y", {{0, 0}}}}, {{1, 3}}), {}, sized({{2}}))),
                       "output 3 of this operator is not supported"));
}

TEST(MxnetModel, SizesThatContradictTheWeightsAreRefusedAtOnce) {
  const std::string text = symbol({variable("x"),
                                   variable("fc_weight"),
                                   {"FullyConnected", "fc", {{0, 0}, {1, 0}}, {{"num_hidden", "2"}, {"no_bias", "True"}}}});
  const std::string weights = params({{"arg:fc_weight", {2, 3}, {1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(error_of(import(text, weights, sized({{1, 3}}))), "no error");
  EXPECT_TRUE(contains(error_of(import(text, weights, sized({{1, 4}}))), "fc"))
      << error_of(import(text, weights, sized({{1, 4}})));
}

TEST(MxnetModel, ScalesOfAnotherLengthAreRefused) {
  const std::string text =
      symbol({variable("x"), variable("gamma"), variable("beta"), {"LayerNorm", "n", {{0, 0}, {1, 0}, {2, 0}}, {{"axis", "1"}}}});
  const auto layer = [&](const std::vector<float>& gamma) {
    const std::string weights =
        params({{"arg:gamma", {static_cast<int64_t>(gamma.size())}, gamma}, {"arg:beta", {3}, {0, 0, 0}}});
    Result<Imported> made = import(text, weights, sized({{2, 3, 4}}));
    if (!made) return made.status().to_string();
    const Status inferred = ir::infer_shapes(made->graph, ops::builtin_ops());
    return inferred ? std::string("no error") : inferred.to_string();
  };
  EXPECT_EQ(layer({1, 2, 3}), "no error");
  EXPECT_TRUE(contains(layer({1, 2, 3, 4, 5}), "node 'n/LayerNormalization'")) << layer({1, 2, 3, 4, 5});
}

TEST(MxnetModel, OutputsThatOnlyTrainAreLeftOut) {
  const std::string text = symbol({variable("anchors"),
                                   variable("label"),
                                   variable("scores"),
                                   {"_contrib_MultiBoxTarget", "target", {{0, 0}, {1, 0}, {2, 0}}},
                                   {"MakeLoss", "loss", {{3, 2}}},
                                   {"SoftmaxOutput", "cls", {{2, 0}, {3, 2}}, {{"multi_output", "True"}}}},
                                  {{4, 0}, {5, 0}});
  auto result = import(text, params({}), sized({{1, 3, 4}}));
  ASSERT_TRUE(result) << error_of(result);
  EXPECT_EQ(result->graph.outputs().size(), 1u);
  EXPECT_EQ(result->graph.tensor(result->graph.inputs()[0]).name, "scores");
  ASSERT_EQ(result->source.warnings.size(), 1u);
  EXPECT_TRUE(contains(result->source.warnings[0], "loss_output"));
}

// --- operators

TEST(MxnetOps, EveryElementWiseNameIsKnown) {
  const auto check = [](std::string_view op) {
    Result<Imported> result = invalid_model("not tried");
    for (size_t inputs = 1; inputs <= 3 && !result; ++inputs)  // as many as it takes
      result = import(one(std::string(op), inputs, {{"scalar", "2"}, {"dtype", "float32"}, {"a_min", "0"}, {"a_max", "1"}}), {},
                      sized(std::vector<Dims>(inputs, Dims{2, 2})));
    ASSERT_TRUE(result) << op << ": " << error_of(result);
    EXPECT_TRUE(infer_shapes(result->graph, ops::builtin_ops())) << op;
  };
  for (const importer::mxnet::Row& row : importer::mxnet::elementwise_rows()) row.for_each_name(check);
}

TEST(MxnetOps, ScalarsOnEitherSide) {
  const TensorData x = floats({2}, {4, -2});
  const auto with = [&](const char* op, const char* scalar) { return values(apply(op, {x}, {{"scalar", scalar}})); };
  EXPECT_EQ(with("_rminus_scalar", "1"), (Values{-3, 3}));
  EXPECT_EQ(with("_RDivScalar", "8"), (Values{2, -4}));
  EXPECT_EQ(with("_mod_scalar", "3"), (Values{1, 1}));  // the sign of the divisor
  EXPECT_EQ(with("_rpower_scalar", "2"), (Values{16, 0.25}));
  EXPECT_EQ(with("_NotEqualScalar", "4"), (Values{0, 1}));
}

TEST(MxnetOps, Rounding) {
  const TensorData x = floats({6}, {-2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f});
  EXPECT_EQ(values(apply("round", {x})), (Values{-3, -2, -1, 1, 2, 3}));
  EXPECT_EQ(values(apply("rint", {x})), (Values{-3, -2, -1, 0, 1, 2}));
  EXPECT_EQ(values(apply("fix", {x})), (Values{-2, -1, 0, 0, 1, 2}));
}

TEST(MxnetOps, RoundingIsExact) {
  const float below_half = std::nextafter(0.5f, 0.0f), large = 8388609;  // adding 0.5 to either would change the result
  const TensorData x = floats({4}, {below_half, -below_half, large, -large});
  const Values expected{0, 0, large, -large};
  for (const char* op : {"round", "rint", "_contrib_round_ste"}) EXPECT_EQ(values(apply(op, {x})), expected) << op;
}

TEST(MxnetOps, TinyValuesKeepTheirDigits) {
  const std::vector<float> tiny{1e-10f, -1e-10f, 3e-5f, -2e-4f, 0.0f};
  const Values logarithms = values(apply("log1p", {floats({5}, tiny)})), powers = values(apply("expm1", {floats({5}, tiny)}));
  ASSERT_EQ(logarithms.size(), tiny.size());
  ASSERT_EQ(powers.size(), tiny.size());
  for (size_t i = 0; i < tiny.size(); ++i) {
    const auto value = static_cast<double>(tiny[i]);
    EXPECT_NEAR(logarithms[i], std::log1p(value), std::fabs(value) * 1e-6) << value;
    EXPECT_NEAR(powers[i], std::expm1(value), std::fabs(value) * 1e-6) << value;
  }
}

TEST(MxnetOps, ModuloIsExact) {
  const float tenth = 0.1f;
  const TensorData a = floats({6}, {1e7f, -1e7f, 5, -5, 0.75f, -6}), b = floats({6}, {tenth, tenth, 0, 0, INFINITY, 3});
  const auto exact = [](double dividend, double divisor) {
    const double rest = std::fmod(dividend, divisor);
    return rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest;
  };
  const Values expected{exact(1e7, tenth), exact(-1e7, tenth), 0, 0, 0.75, 0};
  expect_near(apply("broadcast_mod", {a, b}), expected, 1e-8);
  expect_near(apply("_mod_scalar", {floats({1}, {1e7f})}, {{"scalar", "-3"}}), {exact(1e7, -3)}, 0);
  expect_near(apply("_mod_scalar", {floats({1}, {4})}, {{"scalar", "0"}}), {0}, 0);
}

TEST(MxnetOps, OneHotOfIndicesOutside) {
  EXPECT_EQ(values(apply("one_hot", {floats({3}, {-1, 1, 2})}, {{"depth", "2"}})), (Values{0, 0, 0, 1, 0, 0}));
}

TEST(MxnetOps, OnesOfBothNames) {
  for (const char* op : {"_ones", "_npi_ones"})
    expect_near(run(symbol({variable("x"), {op, "o", {}, {{"shape", "(2,)"}}}, {"broadcast_add", "y", {{0, 0}, {1, 0}}}}), {},
                    {floats({2}, {1, 2})})[0],
                {2, 3});
}

TEST(MxnetOps, ReshapeCodes) {
  const auto shape = [](const char* codes, const char* reverse = "False") {
    return apply("Reshape", {counting({2, 6, 4})}, {{"shape", codes}, {"reverse", reverse}}).dims();
  };
  EXPECT_EQ(shape("(0, -1)"), (Dims{2, 24}));
  EXPECT_EQ(shape("(-3, 0)"), (Dims{12, 4}));
  EXPECT_EQ(shape("(0, -4, 3, -1, -2)"), (Dims{2, 3, 2, 4}));
  EXPECT_EQ(shape("[-2, 1, 1]"), (Dims{2, 6, 4, 1, 1}));
  EXPECT_EQ(shape("(-1, 0)", "True"), (Dims{12, 4}));
  const auto error = [](const char* codes) {
    return error_of(import(one("Reshape", 1, {{"shape", codes}}), {}, sized({{2, 6, 4}})));
  };
  EXPECT_TRUE(contains(error("(5, -1)"), "does not fit the data"));
  EXPECT_TRUE(contains(error("(-1, -1)"), "more than one -1"));
  EXPECT_TRUE(contains(error("(0, 0, 0, 0)"), "more codes"));
  EXPECT_TRUE(contains(error("(-4, 0, -1, -2)"), "two factors"));
  EXPECT_TRUE(contains(error("(-4, 2)"), "two numbers after"));
}

TEST(MxnetOps, TuplesAsPythonWroteThem) {
  EXPECT_EQ(apply("Reshape", {counting({2, 6})}, {{"shape", "(3L, 4L)"}}).dims(), (Dims{3, 4}));
  EXPECT_EQ(apply("transpose", {counting({2, 3})}, {{"axes", "[1,0]"}}).dims(), (Dims{3, 2}));
  EXPECT_EQ(apply("transpose", {counting({2, 3})}, {{"axes", "None"}}).dims(), (Dims{3, 2}));
}

TEST(MxnetOps, PercentilesInterpolate) {
  const TensorData x = floats({2, 4}, {4, 1, 3, 2, 10, 40, 30, 20});
  expect_near(apply("_npi_percentile", {x}, {{"axis", "(1,)"}, {"q_scalar", "25"}}), {1.75, 17.5});
  expect_near(apply("_npi_percentile", {x}, {{"axis", "None"}, {"q_scalar", "50"}, {"interpolation", "lower"}}), {4});
  const TensorData several = apply("_npi_percentile", {x, floats({2}, {0, 100})}, {{"axis", "(1,)"}});
  EXPECT_EQ(several.dims(), (Dims{2, 2}));
  expect_near(several, {1, 10, 4, 40});
  EXPECT_EQ(apply("_npi_percentile", {x}, {{"axis", "(1,)"}, {"q_scalar", "25"}, {"keepdims", "True"}}).dims(), (Dims{2, 1}));
}

TEST(MxnetOps, BatchNormTakesGammaAsOneUnlessToldOtherwise) {
  for (const bool fixed : {true, false}) {
    const std::string text = symbol({variable("x"),
                                     variable("n_gamma"),
                                     variable("n_beta"),
                                     variable("n_moving_mean"),
                                     variable("n_moving_var"),
                                     {"BatchNorm",
                                      "n",
                                      {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}},
                                      fixed ? Attributes{{"eps", "0"}} : Attributes{{"eps", "0"}, {"fix_gamma", "False"}}}});
    const std::string weights = params(
        {{"arg:n_gamma", {1}, {3}}, {"arg:n_beta", {1}, {1}}, {"aux:n_moving_mean", {1}, {2}}, {"aux:n_moving_var", {1}, {4}}});
    expect_near(run(text, weights, {floats({1, 1, 1, 2}, {4, 0})})[0], fixed ? Values{2, 0} : Values{4, -2});
  }
}

TEST(MxnetOps, PoolingConventions) {
  const TensorData x = counting({1, 1, 1, 6});
  const auto pool = [&](const char* convention, const char* type) {
    return apply("Pooling", {x},
                 {{"kernel", "(1, 3)"}, {"stride", "(1, 2)"}, {"pool_type", type}, {"pooling_convention", convention}});
  };
  EXPECT_EQ(values(pool("valid", "max")), (Values{2, 4}));
  EXPECT_EQ(values(pool("full", "max")), (Values{2, 4, 5}));
  expect_near(pool("full", "avg"), {1, 3, 4.5});  // the last window counts what lies inside
  expect_near(pool("full", "sum"), {3, 9, 9});
  const TensorData line = counting({1, 1, 5});
  EXPECT_EQ(values(apply("Pooling", {line}, {{"kernel", "(2,)"}, {"stride", "(2,)"}, {"pooling_convention", "same"}})),
            (Values{1, 3, 4}));
  const TensorData padded =
      apply("Pooling", {line},
            {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"pad", "(1,)"}, {"pool_type", "avg"}, {"count_include_pad", "False"}});
  expect_near(padded, {0.5, 2, 3.5});
}

TEST(MxnetOps, DeconvolutionReachesItsTarget) {
  const std::string text = symbol({variable("x"),
                                   variable("w"),
                                   {"Deconvolution",
                                    "d",
                                    {{0, 0}, {1, 0}},
                                    {{"kernel", "(3,)"}, {"stride", "(2,)"}, {"num_filter", "1"}, {"target_shape", "(6,)"}}}});
  const TensorData y = run(text, params({{"arg:w", {1, 1, 3}, {1, 1, 1}}}), {floats({1, 1, 3}, {1, 2, 3})})[0];
  EXPECT_EQ(y.dims(), (Dims{1, 1, 6}));
  expect_near(y, {1, 3, 2, 5, 3, 3});
  const std::string far =
      symbol({variable("x"),
              variable("w"),
              {"Deconvolution", "d", {{0, 0}, {1, 0}}, {{"kernel", "(3,)"}, {"num_filter", "1"}, {"target_shape", "(60,)"}}}});
  EXPECT_TRUE(
      contains(error_of(import(far, params({{"arg:w", {1, 1, 3}, {1, 1, 1}}}), sized({{1, 1, 3}}))), "cannot be reached"));
}

TEST(MxnetOps, ReductionsOfEverythingAreVectorsOfOne) {
  EXPECT_EQ(apply("sum", {counting({2, 3})}).dims(), (Dims{1}));
  EXPECT_EQ(apply("argmax", {counting({2, 3})}).dims(), (Dims{1}));
  EXPECT_EQ(values(apply("sum", {counting({2, 3})}, {{"axis", "1"}, {"exclude", "True"}})), (Values{3, 5, 7}));
  EXPECT_EQ(apply("argmax", {counting({2, 3})}, {{"axis", "1"}}).dtype(), DType::Float32);
}

TEST(MxnetOps, IndicesAreClipped) {
  const TensorData table = counting({3, 2});
  EXPECT_EQ(values(apply("take", {table, floats({3}, {-4, 1, 9})})), (Values{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(values(apply("take", {table, floats({2}, {-1, 4})}, {{"mode", "wrap"}})), (Values{4, 5, 2, 3}));
}

TEST(MxnetOps, AnchorsDependOnTheVersion) {
  const auto width = [](int version, const char* ratios) {
    const Values box = values(apply("_contrib_MultiBoxPrior", {counting({1, 1, 1, 2})}, {{"sizes", "(0.4,)"}, {"ratios", ratios}},
                                    {"attrs", true, version}));
    return box[2] - box[0];
  };
  EXPECT_NEAR(width(1100, "(4,)"), 0.4, 1e-6);
  EXPECT_NEAR(width(10300, "(4,)"), 0.2, 1e-6);
  EXPECT_NEAR(width(10901, "(4,)"), 0.4, 1e-6);
}

TEST(MxnetOps, DetectionsAreSortedAndSuppressed) {
  // Three anchors at the same place, one apart; no offsets.
  const TensorData anchors = floats({1, 4, 4}, {0, 0, 0.2f, 0.2f, 0, 0, 0.2f, 0.2f, 0, 0, 0.2f, 0.2f, 0.5f, 0.5f, 0.9f, 0.9f});
  const TensorData scores = floats({1, 3, 4}, {0.1f, 0.1f, 0.1f, 0.99f, 0.6f, 0.8f, 0.1f, 0.005f, 0.3f, 0.1f, 0.7f, 0.005f});
  const TensorData rows = apply("_contrib_MultiBoxDetection", {scores, floats({1, 16}, std::vector<float>(16, 0)), anchors});
  const Values v = values(rows);
  ASSERT_EQ(v.size(), 24u);
  EXPECT_EQ(v[0], 0);  // best of class 0
  EXPECT_NEAR(v[1], 0.8, 1e-6);
  EXPECT_EQ(v[6], 1);    // another class stays
  EXPECT_EQ(v[12], -1);  // suppressed, its score is stated
  EXPECT_NEAR(v[13], 0.6, 1e-6);
  for (size_t i = 18; i < 24; ++i) EXPECT_EQ(v[i], -1);  // below the threshold
}

TEST(MxnetOps, RecurrentLayersOfAllModes) {
  // With zero weights and biases a state halves (LSTM cell, GRU) or vanishes.
  for (const char* mode : {"rnn_relu", "rnn_tanh", "lstm", "gru"}) {
    const bool is_lstm = std::string_view(mode) == "lstm";
    const int gates = is_lstm ? 4 : std::string_view(mode) == "gru" ? 3 : 1;
    std::vector<NodeText> nodes{variable("x"), variable("p"), variable("h")};
    NodeText node{
        "RNN",
        "n",
        {{0, 0}, {1, 0}, {2, 0}},
        {{"mode", mode}, {"state_size", "2"}, {"num_layers", "2"}, {"bidirectional", "True"}, {"state_outputs", "True"}}};
    if (is_lstm) {
      nodes.push_back(variable("c"));
      node.inputs.emplace_back(3, 0);
    }
    nodes.push_back(node);
    const int at = static_cast<int>(nodes.size()) - 1;
    std::vector<std::pair<int, int>> heads{{at, 0}, {at, 1}};
    if (is_lstm) heads.emplace_back(at, 2);
    const int64_t count = gates * 2 * (2 * (3 + 2) + 2 * (4 + 2) + 2 * 2 * 2);
    std::vector<TensorData> inputs{counting({3, 1, 3}), floats({4, 1, 2}, std::vector<float>(8, 8))};
    if (is_lstm) inputs.push_back(floats({4, 1, 2}, std::vector<float>(8, 8)));
    const auto results =
        run(symbol(nodes, heads), params({{"arg:p", {count}, std::vector<float>(static_cast<size_t>(count), 0)}}), inputs);
    EXPECT_EQ(results[0].dims(), (Dims{3, 1, 4})) << mode;
    EXPECT_EQ(results[1].dims(), (Dims{4, 1, 2})) << mode;
    if (is_lstm)
      expect_near(results[2], Values(8, 1.0));
    else if (gates == 3)
      expect_near(results[1], Values(8, 1.0));
    else
      expect_near(results[1], Values(8, 0.0));
  }
  const std::string text = symbol({variable("x"),
                                   variable("p"),
                                   variable("h"),
                                   {"RNN", "n", {{0, 0}, {1, 0}, {2, 0}}, {{"mode", "gru"}, {"state_size", "2"}}}});
  EXPECT_TRUE(contains(error_of(import(text, params({{"arg:p", {7}, std::vector<float>(7)}}), sized({{3, 1, 3}, {1, 1, 2}}))),
                       "expected 42 elements, found [7]"));
}

TEST(MxnetOps, LoopsAreUnrolled) {
  const Sample sample = samples()[4];
  const auto results = run(sample.symbol, sample.params, {counting({3, 2}), floats({2}, {10, 20})});
  EXPECT_EQ(values(results[0]), (Values{10, 21, 12, 24, 16, 29}));
  EXPECT_EQ(values(results[1]), (Values{16, 29}));
}

TEST(MxnetOps, FusedSubgraphsAreOpened) {
  const std::string body = symbol({variable("x"), {"relu", "r", {{0, 0}}}, {"_plus_scalar", "p", {{1, 0}}, {{"scalar", "1"}}}});
  const std::string text = symbol({variable("data"), {"_sg_mkldnn_conv", "f", {{0, 0}}, {}, ", \"subgraphs\": [" + body + "]"}});
  expect_near(run(text, {}, {floats({2}, {-3, 3})})[0], {1, 4});
}

TEST(MxnetOps, QuantizedLayersComputeWhatTheyStandFor) {
  // y = dequantize(fully_connected(quantize(x), int8 weights)), ranges of +-12.7: a step is 0.1.
  std::string weights;
  {
    const std::string w = raw_params("w", {1, 2}, 5, std::string_view("\x0a\x14", 2));  // 1.0, 2.0
    const std::string ranges = params({{"lo", {1}, {-12.7f}}, {"hi", {1}, {12.7f}}});
    // Both lists in one file: three arrays, three names.
    const auto u64 = [](uint64_t v) { return std::string(reinterpret_cast<const char*>(&v), 8); };
    const auto body = [](const std::string& list, size_t names) { return list.substr(24, list.size() - 24 - 8 - names); };
    weights =
        u64(0x112) + u64(0) + u64(3) + body(w, 9) + body(ranges, 20) + u64(3) + u64(1) + "w" + u64(2) + "lo" + u64(2) + "hi";
  }
  const std::string text =
      symbol({variable("x"),
              {"_contrib_quantize_v2", "q", {{0, 0}}, {{"min_calib_range", "-12.7"}, {"max_calib_range", "12.7"}}},
              variable("w"),
              variable("lo"),
              variable("hi"),
              {"_contrib_quantized_fully_connected",
               "f",
               {{1, 0}, {2, 0}, {1, 1}, {1, 2}, {3, 0}, {4, 0}},
               {{"num_hidden", "1"}, {"no_bias", "True"}}},
              {"_contrib_dequantize", "d", {{5, 0}, {5, 1}, {5, 2}}}});
  expect_near(run(text, weights, {floats({1, 2}, {0.52f, 0.98f})})[0], {0.5 + 2 * 1.0}, 1e-4);
}

// --- hostile files

bool survives(const std::string& text, const std::string& weights, const std::vector<Dims>& sizes) {
  auto imported = import(text, weights, sized(sizes));
  return imported && infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
}

TEST(MxnetMutation, SamplesAreValid) {
  for (const Sample& s : samples()) {
    const auto imported = import(s.symbol, s.params, sized(s.sizes));
    ASSERT_TRUE(imported) << s.name << error_of(imported);
    for (const std::string& text : imported->source.warnings) EXPECT_FALSE(contains(text, "is not known")) << s.name << text;
  }
  for (const Sample& s : samples())
    EXPECT_TRUE(survives(s.symbol, s.params, s.sizes)) << s.name << error_of(import(s.symbol, s.params, sized(s.sizes)));
}

TEST(MxnetMutation, AnyPrefixIsRefused) {
  for (const Sample& s : samples()) {
    for (size_t length = 0; length + 2 < s.symbol.size(); ++length)
      EXPECT_FALSE(survives(s.symbol.substr(0, length), s.params, s.sizes));
    for (size_t length = 0; length < s.params.size(); ++length)
      EXPECT_FALSE(survives(s.symbol, s.params.substr(0, length), s.sizes));
  }
}

TEST(MxnetMutation, DamageDoesNoHarm) {
  const int count = tests::mutation_count(3000);
  const auto list = samples();
  std::mt19937 random(20250611);
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    const Sample& s = list[static_cast<size_t>(i) % list.size()];
    std::string text = s.symbol, weights = s.params;
    if (i % 3 == 0)
      weights = tests::mutate(weights, random);
    else if (i % 3 == 1)
      text = tests::mutate(text, random);
    else {  // a number in the text becomes another one
      static constexpr const char* kNumbers[] = {"0",     "-1",   "1",  "2147483647", "-2147483648", "99999999999999999999",
                                                 "65536", "1e30", "-4", "None",       "()",          "nan"};
      for (int k = 0; k < 3; ++k) {
        const size_t at = text.find_first_of("0123456789", random() % text.size());
        if (at != std::string::npos)
          text.replace(at, text.find_first_not_of("0123456789", at) - at, kNumbers[random() % std::size(kNumbers)]);
      }
    }
    accepted += survives(text, weights, s.sizes);
  }
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(accepted, count);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 1 << 20) << "kilobytes";
}

}  // namespace
}  // namespace orknn
