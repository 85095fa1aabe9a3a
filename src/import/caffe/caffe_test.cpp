// Caffe networks built in memory: every layer against values from its definition, the generations of layers, phases, in-place
// layers, shared blobs, cropping, wording of errors, damage.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "ir/infer.h"
#include "layer_cases.h"
#include "ops/eval.h"
#include "temporary_folder.h"

namespace orknn {
namespace {
using ir::TensorData;
using tests::import_text;

TensorData tensor(ir::Dims dims, std::vector<float> values) { return TensorData::from<float>(std::move(dims), values); }

std::vector<std::string> output_names(const ir::Graph& graph) {
  std::vector<std::string> names;
  for (ir::TensorId id : graph.outputs()) names.push_back(graph.tensor(id).name);
  return names;
}

// Imports and runs; the values of the first output.
std::vector<float> first_output(const std::string& network, const std::vector<TensorData>& inputs) {
  auto imported = import_text(network, "caffe");
  EXPECT_TRUE(imported) << (imported ? "" : imported.status().to_string());
  if (!imported) return {};
  auto results = tests::run_graph(std::move(imported->graph), inputs);
  EXPECT_TRUE(results) << (results ? "" : results.status().to_string());
  if (!results) return {};
  const auto values = (*results)[0].values<float>();
  return {values.begin(), values.end()};
}

std::string error_of(const std::string& network, const importer::ImportOptions& options = {}, const std::string& weights = {}) {
  auto imported = import_text(network, "caffe", options, weights);
  return imported ? "no error" : imported.status().to_string();
}

constexpr const char* kInput = "input: \"a\" input_shape { dim: 1 dim: 2 dim: 2 dim: 2 }\n";
const TensorData kPicture = tensor({1, 2, 2, 2}, {1, -2, 3, -4, 5, -6, 7, -8});

TEST(ImportCaffe, Layers) {
  const auto cases = tests::layer_cases("caffe_layers.txt");
  ASSERT_GT(cases.size(), 100u);
  for (const auto& c : cases) {
    auto imported = import_text(c.network, "caffe");
    ASSERT_TRUE(imported) << c.name << ": " << imported.status().to_string();
    for (const std::string& text : imported->source.warnings)
      EXPECT_EQ(text.find("is not known"), std::string::npos) << c.name << ": " << text;
    auto results = tests::run_graph(std::move(imported->graph), c.inputs);
    ASSERT_TRUE(results) << c.name << ": " << results.status().to_string();
    EXPECT_EQ(tests::difference(*results, c.outputs), "") << c.name;
  }
}

TEST(ImportCaffe, InputForms) {
  const std::string layer = "layer { name: \"r\" type: \"ReLU\" bottom: \"a\" top: \"r\" }";
  for (const std::string& form :
       {std::string("input: \"a\" input_dim: 1 input_dim: 2 input_dim: 2 input_dim: 2 "),
        std::string("input: 'a'\ninput_shape: { dim: [1, 2, 2, 2] }\n"),
        std::string(
            "layer { name: \"data\" type: \"Input\" top: \"a\" input_param { shape { dim: 1 dim: 2 dim: 2 dim: 2 } } }\n"),
        std::string("layer { name: \"data\" type: \"MemoryData\" top: \"a\" top: \"label\" memory_data_param { batch_size: 50 "
                    "channels: 2 height: 2 width: 2 } }\n")})
    EXPECT_EQ(first_output(form + layer, {kPicture}), (std::vector<float>{1, 0, 3, 0, 5, 0, 7, 0})) << form;
  EXPECT_NE(error_of("input: \"a\" input_dim: 1 input_dim: 2\n" + layer).find("four per input"), std::string::npos);
  EXPECT_NE(error_of("input: \"a\"\n" + layer).find("the shape of input 'a' is not stated"), std::string::npos);
  const std::string huge = "shape { dim: 1 dim: 999999999 dim: 999999999 dim: 999999999 }";
  EXPECT_NE(error_of("layer { name: \"data\" type: \"Input\" top: \"a\" input_param { " + huge + " } }\n" + layer)
                .find("node 'data' (Input): shape [1,999999999,999999999,999999999] has too many elements"),
            std::string::npos);
  EXPECT_NE(error_of("input: \"a\" input_" + huge + "\n" + layer).find("node 'a' (input): shape [1,"), std::string::npos);
}

TEST(ImportCaffe, HeightAndWidthStandBeforeTheCommonField) {
  const auto pool = [](const std::string& window) {
    return kInput +
           ("layer { name: \"p\" type: \"Pooling\" bottom: \"a\" top: \"p\" pooling_param { pool: MAX " + window + " } }");
  };
  EXPECT_EQ(first_output(pool("kernel_size: 2 kernel_h: 1"), {kPicture}), (std::vector<float>{1, 3, 5, 7})) << "1x2 windows";
  EXPECT_EQ(first_output(pool("kernel_size: 1 stride: 2 stride_h: 1"), {kPicture}), (std::vector<float>{1, 3, 5, 7}))
      << "rows one by one, columns two by two";
}

TEST(ImportCaffe, OldGenerations) {
  const std::string body = "num_output: 1 kernel_size: 1 }";
  const std::string blobs =
      " blobs { num: 1 channels: 2 height: 1 width: 1 data: 1 data: 0.5 } blobs { num: 1 channels: 1 height: 1 width: 1 data: 1 "
      "}";
  const std::vector<float> expected{4.5f, -4, 7.5f, -7};
  EXPECT_EQ(first_output(kInput + ("layers { name: \"c\" type: CONVOLUTION bottom: \"a\" top: \"c\" convolution_param { " + body +
                                   blobs + " }"),
                         {kPicture}),
            expected);
  EXPECT_EQ(first_output(kInput + ("layers { layer { name: \"c\" type: \"conv\" num_output: 1 kernelsize: 1 biasterm: true" +
                                   blobs + " } bottom: \"a\" top: \"c\" }"),
                         {kPicture}),
            expected);
  // A padding layer of the oldest kind.
  EXPECT_EQ(first_output(
                kInput + std::string(
                             "layers { layer { name: \"p\" type: \"padding\" pad: 1 } bottom: \"a\" top: \"p\" }\n"
                             "layers { layer { name: \"q\" type: \"pool\" pool: AVE kernelsize: 4 } bottom: \"p\" top: \"q\" }"),
                {kPicture}),
            (std::vector<float>{-0.125f, -0.125f}));
}

TEST(ImportCaffe, PhasesAndTrainingLayers) {
  const std::string net =
      std::string(kInput) +
      "layer { name: \"t\" type: \"Power\" bottom: \"a\" top: \"p\" include { phase: TRAIN } power_param { scale: 9 } }\n"
      "layer { name: \"p\" type: \"Power\" bottom: \"a\" top: \"p\" include { phase: TEST } power_param { scale: 2 } }\n"
      "layer { name: \"s\" type: \"Power\" bottom: \"p\" top: \"s\" exclude { phase: TEST } power_param { scale: 9 } }\n"
      "layer { name: \"w\" type: \"Power\" bottom: \"p\" top: \"w\" include { stage: \"other\" } }\n"
      "layer { name: \"drop\" type: \"Dropout\" bottom: \"p\" top: \"p\" }\n"
      "layer { name: \"extra\" type: \"Power\" bottom: \"p\" top: \"unused\" }\n"
      "layer { name: \"quiet\" type: \"Silence\" bottom: \"unused\" }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"p\" bottom: \"label\" top: \"loss\" }\n"
      "layer { name: \"accuracy\" type: \"Accuracy\" bottom: \"p\" bottom: \"label\" top: \"accuracy\" }\n";
  auto imported = import_text(net, "caffe");
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(output_names(imported->graph), std::vector<std::string>{"p"});
  EXPECT_EQ(first_output(net, {kPicture}), (std::vector<float>{2, -4, 6, -8, 10, -12, 14, -16}));
}

TEST(ImportCaffe, InPlaceLayersKeepTheNameOfTheLastValue) {
  const std::string net = std::string(kInput) +
                          "layer { name: \"first\" type: \"Power\" bottom: \"a\" top: \"b\" power_param { scale: 2 } }\n"
                          "layer { name: \"side\" type: \"Power\" bottom: \"b\" top: \"side\" }\n"
                          "layer { name: \"relu\" type: \"ReLU\" bottom: \"b\" top: \"b\" }\n"
                          "layer { name: \"shift\" type: \"Power\" bottom: \"b\" top: \"b\" power_param { shift: 1 } }\n";
  auto imported = import_text(net, "caffe");
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(output_names(imported->graph), (std::vector<std::string>{"side", "b"}));
  auto results = tests::run_graph(std::move(imported->graph), {kPicture});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].values<float>()[1], -4);
  EXPECT_EQ((*results)[1].values<float>()[1], 1);
}

TEST(ImportCaffe, SharedBlobs) {
  const std::string net = std::string(kInput) +
                          "layer { name: \"one\" type: \"PReLU\" bottom: \"a\" top: \"b\" param { name: \"slope\" } blobs { "
                          "shape { dim: 2 } data: [0.5, 0.25] } }\n"
                          "layer { name: \"two\" type: \"PReLU\" bottom: \"b\" top: \"c\" param { name: \"slope\" } }\n";
  EXPECT_EQ(first_output(net, {kPicture}), (std::vector<float>{1, -0.5f, 3, -1, 5, -0.375f, 7, -0.5f}));
}

TEST(ImportCaffe, WithoutWeights) {
  const std::string net =
      std::string(kInput) +
      "layer { name: \"c\" type: \"Convolution\" bottom: \"a\" top: \"c\" convolution_param { num_output: 3 kernel_size: 1 } }";
  auto imported = import_text(net, "caffe");
  ASSERT_TRUE(imported);
  ASSERT_EQ(imported->source.warnings.size(), 1u);
  EXPECT_NE(imported->source.warnings[0].find("random"), std::string::npos);
  EXPECT_EQ(first_output(net, {kPicture}), first_output(net, {kPicture}));
}

TEST(ImportCaffe, UnknownFieldsAreWarnedOf) {
  auto known = import_text(std::string(kInput) +
                               "layer { name: \"p\" type: \"PriorBox\" bottom: \"a\" bottom: \"a\" top: \"p\" prior_box_param { "
                               "min_size: 1 step: 8 } }",
                           "caffe");
  ASSERT_TRUE(known) << known.status().to_string();
  EXPECT_EQ(known->source.warnings, std::vector<std::string>{});
  auto imported = import_text(
      std::string(kInput) +
          "layer { name: \"p\" type: \"Pooling\" bottom: \"a\" top: \"p\" pooling_param { kernel_size: 2\nkernal_size: 1 } }",
      "caffe");
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_EQ(imported->source.warnings,
            (std::vector<std::string>{
                "layer 'p': field 'kernal_size' is not known and has no effect; did you mean 'kernel_size'? (line 3)"}));
}

// A length-delimited field of the wire format.
std::string field(unsigned number, const std::string& contents) {
  std::string bytes;
  const auto varint = [&](size_t v) {
    for (; v >= 0x80; v >>= 7) bytes += static_cast<char>(v | 0x80);
    bytes += static_cast<char>(v);
  };
  varint(number << 3 | 2);
  varint(contents.size());
  return bytes + contents;
}

std::string floats(std::vector<float> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

TEST(ImportCaffe, BinaryWeightsAndDescription) {
  const tests::TemporaryFolder folder;
  const std::string blob = field(7, field(1, "\x02")) + field(5, floats({2, 3}));
  std::ofstream(folder.file("w.caffemodel"), std::ios::binary) << field(100, field(1, "s") + field(2, "Scale") + field(7, blob));
  const std::string net = std::string(kInput) + "layer { name: \"s\" type: \"Scale\" bottom: \"a\" top: \"y\" }";
  auto imported = import_text(net, "caffe", {}, folder.file("w.caffemodel"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  auto results = tests::run_graph(std::move(imported->graph), {kPicture});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].values<float>()[7], -24);

  // The same network in bytes, recognized by its contents.
  const std::string shape = field(8, field(1, std::string("\x01\x02\x02\x02", 4)));
  const std::string bytes =
      field(3, "a") + shape + field(100, field(1, "s") + field(2, "Scale") + field(3, "a") + field(4, "y") + field(7, blob));
  auto whole = import_text(bytes, "");
  ASSERT_TRUE(whole) << whole.status().to_string();
  EXPECT_EQ(whole->source.framework, "caffe");
  results = tests::run_graph(std::move(whole->graph), {kPicture});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].values<float>()[7], -24);

  // A layer the file knows nothing about, and one of another size.
  EXPECT_NE(import_text(std::string(kInput) + "layer { name: \"z\" type: \"Scale\" bottom: \"a\" top: \"y\" }", "caffe", {},
                        folder.file("w.caffemodel"))
                .status()
                .to_string()
                .find("node 'z' (Scale): the weights hold nothing for 'scale'"),
            std::string::npos);
  EXPECT_NE(
      import_text("input: \"a\" input_shape { dim: 1 dim: 3 }\nlayer { name: \"s\" type: \"Scale\" bottom: \"a\" top: \"y\" }",
                  "caffe", {}, folder.file("w.caffemodel"))
          .status()
          .to_string()
          .find("another size"),
      std::string::npos);
}

TEST(ImportCaffe, CroppingAndOutputs) {
  const std::string net = std::string(kInput) +
                          "layer { name: \"x\" type: \"Power\" bottom: \"a\" top: \"x\" power_param { scale: 2 } }\n"
                          "layer { name: \"y\" type: \"Power\" bottom: \"x\" top: \"y\" power_param { shift: 1 } }\n"
                          "layer { name: \"z\" type: \"Strange\" bottom: \"y\" top: \"z\" }\n";
  importer::ImportOptions options;
  options.inputs = {"x"};
  options.input_size_list = {{1, 4}};
  options.outputs = {"y"};
  auto imported = import_text(net, "caffe", options);
  ASSERT_TRUE(imported) << imported.status().to_string();
  ASSERT_EQ(imported->graph.inputs().size(), 1u);
  EXPECT_EQ(imported->graph.tensor(imported->graph.inputs()[0]).name, "x");
  options = {};
  options.outputs = {"nowhere"};
  EXPECT_NE(error_of(net, options).find("the 'nowhere' in outputs=['nowhere'] is invalid!"), std::string::npos);

  // Prior boxes follow from shapes; they are no output beside others.
  auto priors = import_text(
      std::string(kInput) +
          "layer { name: \"x\" type: \"Power\" bottom: \"a\" top: \"x\" }\n"
          "layer { name: \"b\" type: \"PriorBox\" bottom: \"a\" bottom: \"a\" top: \"b\" prior_box_param { min_size: 1 } }\n",
      "caffe");
  ASSERT_TRUE(priors) << priors.status().to_string();
  EXPECT_EQ(output_names(priors->graph), std::vector<std::string>{"x"});
}

TEST(ImportCaffe, Errors) {
  EXPECT_NE(error_of(std::string(kInput) +
                     "layer { name: \"one\" type: \"Strange\" bottom: \"a\" top: \"x\" }\nlayer { name: \"two\" type: \"Odd\" "
                     "bottom: \"a\" top: \"y\" }\nlayer { name: \"three\" type: \"ReLU\" bottom: \"y\" top: \"z\" }")
                .find("node 'one' (Strange): layers of type 'Strange' are not supported"),
            std::string::npos);
  const std::string both = error_of(std::string(kInput) +
                                    "layer { name: \"one\" type: \"Strange\" bottom: \"a\" top: \"x\" }\nlayer { name: \"two\" "
                                    "type: \"Odd\" bottom: \"a\" top: \"y\" }");
  EXPECT_NE(both.find("'Odd'"), std::string::npos) << both;
  EXPECT_NE(error_of(std::string(kInput) + "layer { name: \"r\" type: \"ReLU\" bottom: \"missing\" top: \"x\" }")
                .find("tensor 'missing' is read but nothing produces it"),
            std::string::npos);
  EXPECT_NE(error_of(std::string(kInput) +
                     "layer { name: \"c\" type: \"Convolution\" bottom: \"a\" top: \"x\" convolution_param { num_output: 2 } }")
                .find("'kernel_size' is out of range"),
            std::string::npos);
  EXPECT_NE(
      error_of(std::string(kInput) + "layer { name: \"c\" type: \"Concat\" bottom: \"a\" top: \"x\" concat_param { axis: 9 } }")
          .find("axis"),
      std::string::npos);
  EXPECT_NE(error_of(std::string(kInput) +
                     "layer { name: \"c\" type: \"Python\" bottom: \"a\" top: \"x\" python_param { layer: \"Mine\" } }")
                .find("written in Python"),
            std::string::npos);
  EXPECT_NE(error_of("name: \"empty\"").find("holds no layers"), std::string::npos);
  EXPECT_NE(error_of("layer { name: ").find("network: import"), std::string::npos);
  EXPECT_NE(error_of("input: \"a\" input_shape { dim: -4 dim: 2 }\nlayer { name: \"r\" type: \"ReLU\" bottom: \"a\" top: \"x\" }")
                .find("out of range"),
            std::string::npos);
}

TEST(ImportCaffe, UnknownTypesAfterAFailureAreReportedToo) {
  const std::string chain =
      "layer { name: \"one\" type: \"Strange\" bottom: \"a\" top: \"x\" }\nlayer { name: \"two\" type: \"ReLU\" bottom: \"x\" "
      "top: \"y\" }\nlayer { name: \"three\" type: \"Odd\" bottom: \"y\" top: \"z\" }";
  const auto imported = import_text(kInput + chain, "caffe");
  ASSERT_FALSE(imported);
  EXPECT_EQ(imported.status().count(), 2u) << imported.status().to_string();
  EXPECT_NE(imported.status().to_string().find("node 'three' (Odd): layers of type 'Odd' are not supported"), std::string::npos);
}

TEST(ImportCaffe, CyclesAreNamed) {
  EXPECT_NE(error_of(std::string(kInput) + "layer { name: \"s\" type: \"Eltwise\" bottom: \"a\" bottom: \"y\" top: \"x\" "
                                           "}\nlayer { name: \"r\" type: \"ReLU\" bottom: \"x\" top: \"y\" }\n"
                                           "layer { name: \"e\" type: \"ReLU\" bottom: \"y\" top: \"z\" }")
                .find("the graph has a cycle: tensor '"),
            std::string::npos);
}

TEST(ImportCaffe, EveryInputIsNamedOnce) {
  const std::string two =
      "input: \"a\" input_shape { dim: 1 dim: 2 } input: \"b\" input_shape { dim: 1 dim: 2 }\nlayer { name: \"s\" type: "
      "\"Eltwise\" bottom: \"a\" bottom: \"b\" top: \"s\" }";
  EXPECT_EQ(error_of(two, {.inputs = {"b", "a"}}), "no error");
  EXPECT_NE(error_of(two, {.inputs = {"b", "b"}}).find("'b' is listed twice in inputs"), std::string::npos);
  EXPECT_NE(error_of(two, {.inputs = {"b"}})
                .find("the model depends on input 'a' too; expected its name among the inputs, found ['b']"),
            std::string::npos);
}

TEST(ImportCaffe, WeightsOfTheDescriptionCountWhereTheFileHasNone) {
  const tests::TemporaryFolder folder;
  const auto layer = [](const std::string& name, const std::string& bottom, const std::string& value) {
    return "layer { name: \"" + name + "\" type: \"Bias\" bottom: \"" + bottom + "\" top: \"" + name +
           "\" blobs { shape { dim: 2 } data: " + value + " data: " + value + " } }\n";
  };
  std::ofstream(folder.file("w.prototxt")) << "name: \"w\"\n" << layer("one", "a", "10");
  auto imported =
      import_text(kInput + layer("one", "a", "1") + layer("two", "one", "100"), "caffe", {}, folder.file("w.prototxt"));
  ASSERT_TRUE(imported) << imported.status().to_string();
  auto results = tests::run_graph(std::move(imported->graph), {tensor({1, 2, 2, 2}, std::vector<float>(8, 0))});
  ASSERT_TRUE(results) << results.status().to_string();
  EXPECT_EQ((*results)[0].values<float>()[0], 110);
}

TEST(ImportCaffe, SwappedFilesAreTold) {
  const tests::TemporaryFolder folder;
  std::ofstream(folder.file("net.prototxt")) << kInput << "layer { name: \"r\" type: \"ReLU\" bottom: \"a\" top: \"r\" }";
  // name, then a layer (field 100) with name and type: the least of a .caffemodel.
  const std::string binary = std::string("\x0a\x01n\xa2\x06\x09\x0a\x01r\x12\x04ReLU", 15);
  EXPECT_NE(error_of(binary, {}, folder.file("net.prototxt")).find("Hint: are the two files swapped? The .prototxt comes first"),
            std::string::npos)
      << error_of(binary, {}, folder.file("net.prototxt"));
}

TEST(ImportCaffe, OtherFormatsAreNotTaken) {
  for (const std::string& text : {std::string("[net]\nheight=1"), std::string("node { name: \"x\" op: \"Const\" }"),
                                  std::string("{\"nodes\": []}"), std::string("TFL3"), std::string()}) {
    auto imported = import_text(text, "");
    EXPECT_FALSE(imported && imported->source.framework == "caffe") << text;
    EXPECT_FALSE(importer::find_importer("caffe")->sniff(std::as_bytes(std::span(text.data(), text.size())))) << text;
  }
}

TEST(ImportCaffe, DamageDoesNoHarm) {
  const auto cases = tests::layer_cases("caffe_layers.txt");
  const int count = tests::mutation_count(2000);
  int accepted = 0;
  for (int i = 0; i < count; ++i) {
    auto imported =
        import_text(tests::mutated(cases[static_cast<size_t>(i) % cases.size()].network, static_cast<unsigned>(i)), "caffe");
    if (imported) accepted += infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  }
  EXPECT_LT(accepted, count);
  const std::string blob = field(7, field(1, "\x02")) + field(5, floats({2, 3}));
  const std::string bytes = field(3, "a") + field(8, field(1, std::string("\x01\x02\x02\x02", 4))) +
                            field(100, field(1, "s") + field(2, "Scale") + field(3, "a") + field(4, "y") + field(7, blob));
  for (int i = 0; i < count; ++i) (void)import_text(tests::mutated(bytes, static_cast<unsigned>(i)), "caffe").is_ok();
}

}  // namespace
}  // namespace orknn
