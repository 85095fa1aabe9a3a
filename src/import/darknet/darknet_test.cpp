// Darknet networks built in memory: every section against values from its definition, headers of weights, the batch, cropping,
// wording of errors, damage.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>

#include "import/darknet/weights.h"
#include "ir/infer.h"
#include "layer_cases.h"
#include "ops/eval.h"
#include "temporary_folder.h"

namespace orknn {
namespace {
using ir::TensorData;
using tests::import_text;

std::string ints(std::vector<int32_t> values) {
  std::string bytes(values.size() * sizeof(int32_t), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
std::string floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
const std::string kForkHeader = ints({0, 2, 5, 0, 0});

std::string written(const tests::TemporaryFolder& folder, const std::string& bytes) {
  const std::string path = folder.file("net.weights");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

std::string error_of(const std::string& network, const std::string& weights = {}, const importer::ImportOptions& options = {}) {
  auto imported = import_text(network, "darknet", options, weights);
  return imported ? "no error" : imported.status().to_string();
}

TEST(ImportDarknet, Layers) {
  const auto cases = tests::layer_cases("darknet_layers.txt");
  ASSERT_GT(cases.size(), 50u);
  for (const auto& c : cases) {
    const tests::TemporaryFolder folder;
    auto imported =
        import_text(c.network, "darknet", {}, c.weights.empty() ? "" : written(folder, kForkHeader + floats(c.weights)));
    ASSERT_TRUE(imported) << c.name << ": " << imported.status().to_string();
    for (const std::string& text : imported->source.warnings)
      EXPECT_TRUE(text.find("values more") == std::string::npos && text.find("is not known") == std::string::npos)
          << c.name << ": " << text;
    auto results = tests::run_graph(std::move(imported->graph), c.inputs);
    ASSERT_TRUE(results) << c.name << ": " << results.status().to_string();
    EXPECT_EQ(tests::difference(*results, c.outputs), "") << c.name;
  }
}

const std::string kConvolution = "[net]\nheight=1\nwidth=1\nchannels=1\n[convolutional]\nfilters=1\nactivation=linear\n";

// The value a 1x1 convolution of one channel gives for 10.
float convolved(const std::string& weights) {
  const tests::TemporaryFolder folder;
  auto imported = import_text(kConvolution, "darknet", {}, written(folder, weights));
  EXPECT_TRUE(imported) << (imported ? "" : imported.status().to_string());
  if (!imported) return 0;
  auto results = tests::run_graph(std::move(imported->graph), {TensorData::from<float>({1, 1, 1, 1}, std::vector<float>{10})});
  EXPECT_TRUE(results);
  return results ? (*results)[0].values<float>()[0] : 0;
}

TEST(ImportDarknet, HeadersOfWeights) {
  EXPECT_EQ(convolved(ints({0, 2, 0, 7, 0}) + floats({1, 2})), 21);  // images seen in 64 bits
  EXPECT_EQ(convolved(ints({0, 2, 5, 7, 0}) + floats({1, 2})), 21);
  EXPECT_EQ(convolved(ints({0, 1, 0, 7}) + floats({1, 2})), 21);     // in 32
  EXPECT_EQ(convolved(ints({1001, 0, 0, 7}) + floats({1, 2})), 21);  // transposed matrices, 32 bits
}

TEST(ImportDarknet, OldFilesAreTransposed) {
  const std::string net = "[net]\ninputs=2\n[connected]\noutput=2\nactivation=linear\n";
  for (const auto& [header, expected] : {std::pair(ints({0, 2, 0, 0, 0}), 5.0f), std::pair(ints({0, 1001, 0, 0}), 7.0f)}) {
    const tests::TemporaryFolder folder;
    auto imported = import_text(net, "darknet", {}, written(folder, header + floats({0, 0, 1, 2, 3, 4})));
    ASSERT_TRUE(imported) << imported.status().to_string();
    auto results = tests::run_graph(std::move(imported->graph), {TensorData::from<float>({1, 2}, std::vector<float>{1, 2})});
    ASSERT_TRUE(results);
    EXPECT_EQ((*results)[0].values<float>()[0], expected);
  }
}

TEST(ImportDarknet, PartialAndOtherWeights) {
  const tests::TemporaryFolder folder;
  const std::string error = error_of(kConvolution, written(folder, kForkHeader + floats({1})));
  EXPECT_NE(
      error.find(
          "node 'layer_0_convolutional, line 5' (convolutional): the weights file ends within 'layer_0_convolutional/weight'"),
      std::string::npos)
      << error;
  EXPECT_NE(error_of(kConvolution, written(folder, "short")).find("ends within its header"), std::string::npos);
  EXPECT_NE(error_of(kConvolution, folder.file("nowhere")).find("nowhere"), std::string::npos);
  auto imported = import_text(kConvolution, "darknet", {}, written(folder, kForkHeader + floats({1, 2, 3})));
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_NE(imported->source.warnings[0].find("1 values more"), std::string::npos);
}

TEST(ImportDarknet, DamagedWeightsAreWarnedOf) {
  const tests::TemporaryFolder folder;
  auto imported = import_text(kConvolution, "darknet", {}, written(folder, kForkHeader + floats({1, NAN}) + "abc"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_EQ(imported->source.warnings.size(), 2u);
  EXPECT_NE(imported->source.warnings[0].find("the weights of 'layer_0_convolutional/weight' hold values that are not finite"),
            std::string::npos)
      << imported->source.warnings[0];
  EXPECT_NE(imported->source.warnings[1].find("ends with 3 bytes that are not a whole value"), std::string::npos)
      << imported->source.warnings[1];
}

TEST(ImportDarknet, UnknownOptionsAreWarnedOf) {
  const tests::TemporaryFolder folder;
  auto imported = import_text(
      "[net]\nheight=1\nwidht=4\nwidth=1\nchannels=1\n[convolutional]\nfilters=1\nfiltres=8\nqqqqqq=1\nactivation=linear\n",
      "darknet", {}, written(folder, kForkHeader + floats({1, 2})));
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->source.warnings,
            (std::vector<std::string>{
                "layer 'net': option 'widht' is not known and has no effect; did you mean 'width'?",
                "layer 'layer_0_convolutional': option 'filtres' is not known and has no effect; did you mean 'filters'?",
                "layer 'layer_0_convolutional': option 'qqqqqq' is not known and has no effect"}));
}

TEST(ImportDarknet, WithoutWeights) {
  auto imported = import_text(kConvolution, "darknet");
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_NE(imported->source.warnings[0].find("random"), std::string::npos);
  EXPECT_NE(
      error_of("[net]\nheight=1000\nwidth=1000\nchannels=1000\n[connected]\noutput=1000000\n").find("too many to be made up"),
      std::string::npos);
}

int64_t batch_of(const std::string& options) {
  auto imported = import_text("[net]\nheight=2\nwidth=2\nchannels=1\n" + options + "[avgpool]\n", "darknet");
  return imported ? (*imported->graph.tensor(imported->graph.inputs()[0]).shape)[0].value() : -1;
}

TEST(ImportDarknet, TheBatchOfTheTrainingDoesNotCount) {
  EXPECT_EQ(batch_of("batch=2\n"), 2);
  EXPECT_EQ(batch_of("batch=64\nsubdivisions=16\n"), 1);
  EXPECT_EQ(batch_of("batch=8\nlearning_rate=0.001\n"), 1);
}

TEST(ImportDarknet, NamesAndCropping) {
  const std::string net =
      "[net]\nheight=2\nwidth=2\nchannels=1\n[activation]\nactivation=relu\n[activation]\nactivation=tanh\n[dropout]\n";
  importer::ImportOptions options;
  options.inputs = {"layer_0_activation"};
  options.outputs = {"layer_2_dropout"};
  auto imported = import_text(net, "darknet", options);
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->graph.tensor(imported->graph.inputs()[0]).name, "layer_0_activation");
  EXPECT_EQ(imported->graph.tensor(imported->graph.outputs()[0]).name, "layer_2_dropout");
  options = {};
  options.input_size_list = {{3, 1, 4, 4}};
  imported = import_text(net, "darknet", options);
  ASSERT_TRUE(imported);
  EXPECT_EQ(ir::to_string(*imported->graph.tensor(imported->graph.inputs()[0]).shape), "[3,1,4,4]");
  options = {};
  options.outputs = {"nowhere"};
  EXPECT_NE(error_of(net, "", options).find("the 'nowhere' in outputs=['nowhere'] is invalid!"), std::string::npos);
}

TEST(ImportDarknet, Errors) {
  const std::string net = "[net]\nheight=4\nwidth=4\nchannels=3\n";
  EXPECT_NE(error_of("[convolutional]\nfilters=1\n").find("line 1: the first section must describe the network"),
            std::string::npos);
  EXPECT_NE(error_of("filters=1\n[net]\n").find("line 1: an option before the first section"), std::string::npos);
  EXPECT_NE(error_of(net).find("no layers"), std::string::npos);
  EXPECT_NE(error_of("[net]\nbatch=1\n[avgpool]\n").find("does not state the size of the input"), std::string::npos);
  EXPECT_NE(error_of(net + "[strange]\n").find("section [strange] is not known"), std::string::npos);
  EXPECT_NE(error_of(net + "[route]\nlayers=-2\n").find("layer -2 is not before this one"), std::string::npos);
  const std::string first = error_of(net + "[route]\nlayers=3\n");
  EXPECT_NE(first.find("layer 3 is not before this one: there is no layer before it"), std::string::npos) << first;
  EXPECT_EQ(first.find("expected"), std::string::npos) << first;
  EXPECT_NE(error_of("# a comment\n[net]\nheight=4\nwidth=4\nchannels=3000000\n[avgpool]\n")
                .find("node 'net, line 2' (net): option 'channels' is out of range"),
            std::string::npos);
  EXPECT_NE(error_of(net + "[route]\n").find("option 'layers' is missing"), std::string::npos);
  EXPECT_NE(error_of(net + "[convolutional]\nfilters=many\n").find("option 'filters' must be a number; found 'many'"),
            std::string::npos);
  EXPECT_NE(error_of(net + "[route]\nlayers=1099511627776\n")
                .find("option 'layers' is out of range; expected -1000000000 to 1000000000, found 1099511627776"),
            std::string::npos);
  EXPECT_NE(error_of(net + "[convolutional]\nfilters=1e999\n").find("option 'filters' is out of range"), std::string::npos);
  EXPECT_NE(error_of(net + "[convolutional]\nfilters=0\n").find("option 'filters' is out of range"), std::string::npos);
  EXPECT_NE(error_of(net + "[convolutional]\nfilters=2\ngroups=2\n").find("cannot be divided into groups"), std::string::npos);
  EXPECT_NE(error_of(net + "[convolutional]\nsize=9\n").find("Conv"), std::string::npos);
  EXPECT_NE(error_of(net + "[reorg]\nstride=2\n").find("cannot be reorganized"), std::string::npos);
}

TEST(ImportDarknet, UnknownSectionsAreToldTogether) {
  const std::string error = error_of("[net]\nheight=4\nwidth=4\nchannels=3\n[strange]\n[avgpool]\n[odd]\n");
  EXPECT_NE(error.find("node 'layer_0_strange, line 5' (strange)"), std::string::npos) << error;
  EXPECT_NE(error.find("node 'layer_2_odd, line 7' (odd): section [odd] is not known"), std::string::npos) << error;
  EXPECT_EQ(error.find("avgpool"), std::string::npos) << error;
}

TEST(ImportDarknet, LinesThatAreNoOptionsAreWarnedOf) {
  const auto imported = import_text("[net]\nheight=4\nwidth=4\nchannels=3\n[avgpool]\nsize 3\n", "darknet");
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_EQ(imported->source.warnings.size(), 2u);  // and the missing weights
  EXPECT_EQ(imported->source.warnings[1], "line 6 is not an option and is left out: 'size3'");
}

TEST(ImportDarknet, TheLastOfTwoValuesCounts) {
  const auto imported = import_text(
      "[net]\nheight=8\nwidth=8\nchannels=3\n[convolutional]\nfilters=2\nstride=2\nsize=3\nstride=1\npad=1\n", "darknet");
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_EQ(imported->source.warnings.size(), 2u);  // and the missing weights
  EXPECT_EQ(imported->source.warnings[1],
            "line 9: option 'stride' is given again in [convolutional]; its last value '1' counts here, the first one in Darknet "
            "itself");
  EXPECT_EQ(ir::to_dims(*imported->graph.tensor(imported->graph.outputs()[0]).shape), (ir::Dims{1, 2, 8, 8}));
}

TEST(ImportDarknet, PaddingThatPadOverridesIsWarnedOf) {
  const auto warnings = [](const std::string& options) {
    const auto imported =
        import_text("[net]\nheight=8\nwidth=8\nchannels=3\n[convolutional]\nfilters=2\nsize=3\n" + options, "darknet");
    return imported ? imported->source.warnings : std::vector<std::string>();
  };
  EXPECT_EQ(warnings("pad=1\npadding=1\n").size(), 1u);  // the missing weights
  EXPECT_EQ(warnings("padding=3\n").size(), 1u);
  const auto found = warnings("pad=1\npadding=3\n");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE((found[0] + found[1]).find("option 'padding' (3) has no effect beside 'pad': the border is size / 2 (1)"),
            std::string::npos)
      << found[0] << found[1];
}

TEST(ImportDarknet, DetectionLayersAreChecked) {
  const auto network = [](const std::string& options) { return "[net]\nheight=2\nwidth=2\nchannels=14\n[yolo]\n" + options; };
  const auto warnings = [](const std::string& text) {
    const auto imported = import_text(text, "darknet");
    return imported ? imported->source.warnings.size() : 99;
  };
  EXPECT_EQ(warnings(network("num=3\nmask=1,2\nclasses=2\n")), 1u);  // the missing weights
  EXPECT_EQ(warnings(network("num=3\nmask=1\nclasses=2\n")), 2u);
  EXPECT_EQ(warnings(network("num=3\nmask=1,3\nclasses=2\n")), 2u);   // no such anchor: the output is the same
  EXPECT_EQ(warnings(network("num=3\nmask=0,-1\nclasses=2\n")), 2u);  // the same
  EXPECT_EQ(warnings(network("num=3\nmask=1,2\nclasses=2\nanchors=1.5,2, 3,4, 5,6\n")), 1u);
  EXPECT_EQ(warnings(network("num=3\nmask=1,2\nclasses=2\nanchors=1.5,2, 3,4\n")), 2u);
  EXPECT_NE(error_of(network("num=3\nmask=1,2\nclasses=-2\n")).find("option 'classes' is out of range"), std::string::npos);
}

TEST(ImportDarknet, DamageDoesNoHarm) {
  const auto cases = tests::layer_cases("darknet_layers.txt");
  const int count = tests::mutation_count(2000);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    auto imported =
        import_text(tests::mutated(cases[static_cast<size_t>(i) % cases.size()].network, static_cast<unsigned>(i)), "darknet");
    if (imported) accepted += infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  }
  EXPECT_LT(accepted, count);
  const std::string weights = kForkHeader + floats({1, 2, 3, 4});
  for (int i = 0; i < count; ++i) {
    const auto bytes = tests::exact_copy(tests::mutated(weights, static_cast<unsigned>(i)));
    if (auto read = importer::darknet::Weights::read(bytes, nullptr)) (void)read->take("w", {4}, importer::Fill::Random).is_ok();
  }
}

}  // namespace
}  // namespace orknn
