#include "toolkit/convert_file.h"

#include <gtest/gtest.h>

#include "toolkit/config_keys.h"

namespace orknn::toolkit {
namespace {

Result<std::vector<ConvertFile>> parse(std::string_view text) { return parse_convert_file(text, "folder"); }
std::string problem_of(std::string_view text) { return parse(text).status().to_string(); }

constexpr std::string_view kToolkit2 = R"(models:
    name: ssd            # name of the result
    platform: tensorflow
    model_file_path: ./ssd.pb
    subgraphs:
      input_size_list:
        - 1, 300, 300, 3
      inputs:
        - Preprocessor/sub
      outputs:
        - concat
        - concat_1
    quantize: True
    dataset: ./dataset.txt
    configs:
      mean_values: [127.5, 127.5, 127.5]
      std_values: [[1, 2, 3]]
      quant_img_RGB2BGR: true
      quantized_algorithm: mmse
      optimization_level: 2
)";

TEST(ConvertFile, ReadsAModelOfToolkit2) {
  const auto files = parse(kToolkit2);
  ASSERT_TRUE(files) << files.status().to_string();
  ASSERT_EQ(files->size(), 1u);
  const ConvertFile& file = files->front();
  EXPECT_EQ(file.name, "ssd");
  EXPECT_EQ(file.source.framework, "tensorflow");
  EXPECT_EQ(file.source.path, "folder/ssd.pb");
  EXPECT_EQ(file.source.options.inputs, std::vector<std::string>{"Preprocessor/sub"});
  EXPECT_EQ(file.source.options.outputs, (std::vector<std::string>{"concat", "concat_1"}));
  EXPECT_EQ(file.source.options.input_size_list, (std::vector<ir::Dims>{{1, 300, 300, 3}}));
  EXPECT_TRUE(file.do_quantization);
  EXPECT_EQ(file.dataset, "folder/dataset.txt");
  const auto config = config_of(file);
  ASSERT_TRUE(config) << config.status().to_string();
  EXPECT_EQ(config->mean_values, (ChannelValues{{127.5, 127.5, 127.5}}));
  EXPECT_EQ(config->std_values, (ChannelValues{{1, 2, 3}}));
  EXPECT_EQ(config->quant_img_RGB2BGR, std::vector<bool>{true});
  EXPECT_EQ(config->quantized_algorithm, "mmse");
  EXPECT_EQ(config->optimization_level, 2);
}

TEST(ConvertFile, ReadsTheModelsOfToolkit1) {
  const auto files = parse(R"(project-name: two
models:
  first:
    platform: tflite
    model_file_path: a.tflite
    subgraphs: {input_size_list: ["224,224,3"]}
    quantize: false
    source: text
    dataset: ./dataset.txt
    configs:
      channel_mean_value: 128 128 128 64#0 1
      reorder_channel: 2 1 0#0 1 2
      batch_size: 1
    dequant_mean: 0
  second:
    platform: caffe
    prototxt_file_path: b.prototxt
    caffemodel_file_path: b.caffemodel
)");
  ASSERT_TRUE(files) << files.status().to_string();
  ASSERT_EQ(files->size(), 2u);
  EXPECT_EQ((*files)[0].name, "first");
  EXPECT_FALSE((*files)[0].do_quantization);
  EXPECT_EQ((*files)[0].source.options.input_size_list, (std::vector<ir::Dims>{{224, 224, 3}}));
  const auto config = config_of((*files)[0]);
  ASSERT_TRUE(config) << config.status().to_string();
  EXPECT_EQ(config->mean_values, (ChannelValues{{128, 128, 128}, {0}}));
  EXPECT_EQ(config->std_values, (ChannelValues{{64, 64, 64}, {1}}));
  EXPECT_EQ(config->reorder_channel, (std::vector<bool>{true, false}));
  EXPECT_EQ(config->batch_size, 1);
  EXPECT_EQ((*files)[1].source.path, "folder/b.prototxt");
  EXPECT_EQ((*files)[1].source.other_files, std::vector<std::string>{"folder/b.caffemodel"});
}

TEST(ConvertFile, ReadsEveryOption) {
  BuildConfig config;
  const auto set = [&](const std::string& key, std::string_view value) {
    const auto parsed = data::parse_yaml(value);
    return parsed ? set_option(config, key, *parsed).to_string() : parsed.status().to_string();
  };
  EXPECT_EQ(set("target_platform", "[rk3566, rk3568]"), Status().to_string());
  EXPECT_EQ(config.target_platform, "rk3566");
  EXPECT_EQ(config.other_platforms, std::vector<std::string>{"rk3568"});
  EXPECT_EQ(set("dynamic_input", "[[[1, 3, 8, 8], [1, 4]], [[1, 3, 4, 4], [1, 2]]]"), Status().to_string());
  EXPECT_EQ(config.dynamic_input, (ShapeSets{{{1, 3, 8, 8}, {1, 4}}, {{1, 3, 4, 4}, {1, 2}}}));
  EXPECT_EQ(set("dynamic_input", "['1,20; 1,40', '1,10;1,20']"), Status().to_string());  // as on the command line
  EXPECT_EQ(config.dynamic_input, (ShapeSets{{{1, 20}, {1, 40}}, {{1, 10}, {1, 20}}}));
  EXPECT_EQ(set("op_target", "{conv1: cpu}"), Status().to_string());
  EXPECT_EQ(config.op_target.at("conv1"), "cpu");
  EXPECT_EQ(set("auto_hybrid_cos_thresh", "0.995"), Status().to_string());
  EXPECT_EQ(config.auto_hybrid_cos_thresh, 0.995);
  EXPECT_EQ(set("disable_rules", "[a, b]"), Status().to_string());
  EXPECT_EQ(config.disable_rules, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set("single_core_mode", "yes"), Status().to_string());
  EXPECT_TRUE(config.single_core_mode);
  EXPECT_EQ(set("custom_string", "'  x'"), Status().to_string());
  EXPECT_EQ(config.custom_string, "  x");
  EXPECT_NE(set("optimization_level", "three").find("expected numbers"), std::string::npos);
  EXPECT_NE(set("single_core_mode", "maybe").find("expected true or false"), std::string::npos);
  EXPECT_NE(set("mean_value", "[1]").find("did you mean 'mean_values'?"), std::string::npos);
}

// A file that uses a key of Toolkit1 means its default chip and its forms of results, as a script does.
TEST(ConvertFile, KeysOfOtherReleases) {
  const auto set = [](const std::string& key, std::string_view value) {
    BuildConfig config;
    const Status status = set_option(config, key, *data::parse_yaml(value));
    EXPECT_TRUE(status) << status.to_string();
    return config;
  };
  EXPECT_EQ(set("img_quant_RGB2BGR", "true").quant_img_RGB2BGR, std::vector<bool>{true});
  EXPECT_EQ(set("reorder_channel", "true").quant_img_RGB2BGR, std::vector<bool>{true});
  EXPECT_FALSE(set("reorder_channel", "true").toolkit1);
  EXPECT_FALSE(set("stream_op", "1").toolkit1);
  EXPECT_TRUE(set("reorder_channel", "2 1 0").toolkit1);
  EXPECT_TRUE(set("channel_mean_value", "0 0 0 1").toolkit1);
  EXPECT_TRUE(set("epochs", "2").toolkit1);
  EXPECT_TRUE(set("mmse_epoch", "2").toolkit1);
}

TEST(ConvertFile, SaysWhatIsMissing) {
  EXPECT_NE(problem_of("a: 1\n").find("'models' is missing"), std::string::npos);
  EXPECT_NE(problem_of("models: {name: x}\n").find("'platform' is missing"), std::string::npos);
  EXPECT_NE(problem_of("models: {name: x, platform: onx, model_file_path: a}\n").find("did you mean 'onnx'?"), std::string::npos);
  EXPECT_NE(problem_of("models: {name: x, platform: onnx}\n").find("'model_file_path' is missing"), std::string::npos);
  EXPECT_NE(problem_of("models: {name: ../x, platform: onnx, model_file_path: a}\n").find("file name"), std::string::npos);
  EXPECT_NE(problem_of("models: {name: x, platform: onnx, model_file_path: a, quantize: true}\n").find("needs a 'dataset'"),
            std::string::npos);
  EXPECT_NE(problem_of("models:\n  name: x\n  platform: onnx\n  model_file_path: a\n  quantize: 2\n").find("line 5"),
            std::string::npos);
}

}  // namespace
}  // namespace orknn::toolkit
