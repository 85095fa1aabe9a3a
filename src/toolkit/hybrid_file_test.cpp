// The text that users and scripts edit between the steps of hybrid quantization.
#include "toolkit/hybrid_file.h"

#include <gtest/gtest.h>

#include "toolkit/config_keys.h"
#include "toolkit/hybrid_data.h"

namespace orknn::toolkit {
namespace {

HybridFile example() {
  HybridFile file;
  TensorParameters act, weight;
  act.min = {0};
  act.max = {6};
  act.scale = {0.023529411764705882};
  act.zero_point = {-128};
  weight.qmethod = "channel";
  weight.part = "weight";
  weight.min = {-1, -2};
  weight.max = {1, 2};
  weight.scale = {0.0078125, 0.015625};
  weight.zero_point = {0, 0};
  file.parameters = {{"stem/act:0", act}, {"stem/w", weight}};
  return file;
}

TEST(HybridFile, WritesTheFormScriptsReplaceTextIn) {
  const std::string text = print(example(), false);
  EXPECT_TRUE(
      text.starts_with("custom_quantize_layers: {}\nquantize_parameters:\n    stem/act:0:\n        qtype: asymmetric_quantized\n "
                       "       qmethod: layer\n        dtype: int8\n"
                       "        min:\n        - 0.0\n        max:\n        - 6.0\n        scale:\n        - "
                       "0.023529411764705882\n        zero_point:\n        - -128\n"))
      << text;
}

TEST(HybridFile, ReadsWhatItWrites) {
  for (bool toolkit1 : {false, true}) {
    HybridFile file = example();
    file.layers = {{"head/logits:0", "float16"}, {"odd name", "int8"}};
    const auto back = parse_hybrid_file(print(file, toolkit1));
    ASSERT_TRUE(back) << back.status().to_string();
    ASSERT_EQ(back->layers.size(), 2u);
    EXPECT_EQ(back->layers[0].first, toolkit1 ? "head/logits" : "head/logits:0");
    EXPECT_EQ(back->layers[0].second, toolkit1 ? "float32" : "float16");
    const TensorParameters* act = back->find("stem/act:0");
    ASSERT_TRUE(act);
    EXPECT_EQ(act->max, std::vector<double>{6});
    EXPECT_EQ(act->zero_point, std::vector<int64_t>{-128});
    ASSERT_TRUE(back->find("stem/w"));
    EXPECT_EQ(back->find("stem/w")->scale, (std::vector<double>{0.0078125, 0.015625}));
  }
}

TEST(HybridFile, ReadsTheWaysUsersWriteLayers) {
  const struct {
    const char* text;
    std::string name, type;
  } cases[] = {
      {"custom_quantize_layers:\n  a/b:0: float16\n", "a/b:0", "float16"},
      {"custom_quantize_layers:\n    \"a b\": 'int8'\n", "a b", "int8"},
      {"custom_quantize_layers: {x: float16}\n", "x", "float16"},
      {"# comment\n\ncustom_quantize_layers:\r\n    x: float16\r\nquantize_parameters: {}\n", "x", "float16"},
      {"%YAML 1.2\n---\ncustomized_quantize_layers:\n    Conv_stem_57: float32\n", "Conv_stem_57", "float32"},
      {"customized_quantize_layers:\n    '@Conv_stem_57:out0': float32\n", "Conv_stem", "float32"},
  };
  for (const auto& c : cases) {
    const auto file = parse_hybrid_file(c.text);
    ASSERT_TRUE(file) << c.text << file.status().to_string();
    ASSERT_EQ(file->layers.size(), 1u) << c.text;
    EXPECT_EQ(file->layers[0].first, c.name);
    EXPECT_EQ(file->layers[0].second, c.type);
  }
}

TEST(HybridFile, ReadsTheActionsOfTheOldestToolkit) {
  const std::string entries =
      "'@stem/act_3:weight':\n    dtype: asymmetric_quantized\n'@stem/act_3:out0':\n    dtype: asymmetric_quantized\n    method: "
      "layer\n    max_value:\n    -   6.0\n    min_value:\n    -   -1.0\n    zero_point: [36]\n    scale: [0.027]\n    qtype: "
      "u8\n";
  const auto taken_out = parse_hybrid_file("%YAML 1.2\n---\n# one action\nhybrid_quantization_action: delete\n" + entries);
  ASSERT_TRUE(taken_out) << taken_out.status().to_string();
  ASSERT_EQ(taken_out->layers.size(), 1u);
  EXPECT_EQ(taken_out->layers[0], std::pair(std::string("stem/act"), std::string("float32")));
  EXPECT_TRUE(taken_out->parameters.empty());
  for (const char* action : {"add", "modify"}) {
    const auto changed = parse_hybrid_file(std::string("hybrid_quantization_action: ") + action + "\n" + entries);
    ASSERT_TRUE(changed) << changed.status().to_string();
    EXPECT_TRUE(changed->layers.empty());
    ASSERT_EQ(changed->parameters.size(), 2u);
    EXPECT_EQ(changed->parameters[1].second.max, std::vector<double>{6});
  }
}

TEST(HybridFile, NamesTheLineItCannotRead) {
  const struct {
    const char* text;
    const char* words;
  } cases[] = {
      {"custom_quantize_layers:\n    x\n", "line 2"},
      {"something: 1\n", "not a known section"},
      {"hybrid_quantization_action: drop\n", "unknown action"},
      {"hybrid_quantization_action: add\nhybrid_quantization_action: delete\n", "second action"},
      {"    x: float16\n", "outside of a section"},
      {"quantize_parameters:\n    x:\n        min:\n        - many\n", "line 4"},
      {"quantize_parameters:\n    x:\n        - 4\n", "belongs to no list"},
      {"quantize_parameters:\n    x:\n        zero_point: [1e300]\n", "out of range"},
  };
  for (const auto& c : cases) {
    const auto file = parse_hybrid_file(c.text);
    ASSERT_FALSE(file) << c.text;
    EXPECT_NE(file.status().to_string().find(c.words), std::string::npos) << file.status().to_string();
  }
}

// Options are set to something else than their default by what their kind of value allows, so that a new one is tried too.
data::YamlValue other_value(const ConfigKey& row) {
  using Kind = ConfigKey::Kind;
  switch (row.kind) {
    case Kind::Flag: return *data::parse_yaml("true");
    case Kind::Flags: return *data::parse_yaml("[true, false]");
    case Kind::Whole: return *data::parse_yaml("2");
    case Kind::Real:
    case Kind::RealOrNone: return *data::parse_yaml("0.1234567890123");
    case Kind::Targets: return *data::parse_yaml("{'a: b': cpu, c: npu}");
    case Kind::Names:
    case Kind::Formats: return *data::parse_yaml("[fold_scale, nv12]");
    default: return *data::parse_yaml("'rk3588 \"x\"'");
  }
}

TEST(HybridData, KeepsTheOptionsThatTheSecondStepNeeds) {
  const auto text_of = [](const data::YamlValue& v) {
    std::string text = v.text;
    for (const data::YamlValue& item : v.items) text += "[" + item.text + "]";
    for (const auto& [key, entry] : v.entries) text += "{" + key + "=" + entry.text + "}";
    return text;
  };
  HybridData data;
  data.config.toolkit1 = true;
  data.config.rknn_batch_size = 4;
  size_t kept = 0;
  for (const ConfigKey& row : config_keys()) {
    if (!row.get) continue;
    const std::string before = text_of(row.get(data.config));
    ASSERT_TRUE(row.set(data.config, other_value(row), row.key)) << row.key;
    EXPECT_NE(text_of(row.get(data.config)), before) << row.key;
    ++kept;
  }
  EXPECT_GE(kept, 19u);
  const auto read = parse_hybrid_data(print(data));
  ASSERT_TRUE(read) << read.status().to_string();
  EXPECT_TRUE(read->config.toolkit1);
  EXPECT_EQ(read->config.rknn_batch_size, 4);
  for (const ConfigKey& row : config_keys()) {
    if (!row.get) continue;
    EXPECT_EQ(text_of(row.get(read->config)), text_of(row.get(data.config))) << row.key;
  }
}

TEST(HybridData, DamagedOptionsCountAsMissing) {
  const auto read = parse_hybrid_data(
      R"({"openrknn_hybrid": 2, "config": {"optimization_level": "three", "float_dtype": [1], "op_target": [["a"]],
          "quant_img_RGB2BGR": [true, {"a": 1}], "target_platform": 7, "single_core_mode": true}})");
  ASSERT_TRUE(read) << read.status().to_string();
  const BuildConfig none;
  EXPECT_EQ(read->config.optimization_level, none.optimization_level);
  EXPECT_EQ(read->config.float_dtype, none.float_dtype);
  EXPECT_TRUE(read->config.op_target.empty());
  EXPECT_TRUE(read->config.quant_img_RGB2BGR.empty());
  EXPECT_TRUE(read->config.single_core_mode);  // numbers and truth values of JSON count as well
}
}  // namespace
}  // namespace orknn::toolkit
