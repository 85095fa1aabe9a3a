#include "tflite_samples.h"

#include "tflite_writer.h"

namespace orknn::tests {
namespace {
using namespace tflite;

// Codes of operators.
enum : int32_t {
  ADD = 0,
  AVERAGE_POOL_2D = 1,
  CONV_2D = 3,
  FULLY_CONNECTED = 9,
  MUL = 18,
  RESHAPE = 22,
  SVDF = 27,
  CUSTOM = 32,
  PAD = 34,
  BATCH_TO_SPACE_ND = 37,
  SPACE_TO_BATCH_ND = 38,
  TRANSPOSE = 39,
  MEAN = 40,
  UNIDIRECTIONAL_SEQUENCE_LSTM = 44,
  STRIDED_SLICE = 45,
  SPLIT = 49,
  CAST = 53,
  LESS = 58,
  SHAPE = 77,
  PACK = 83,
  DEQUANTIZE = 6,
  IF = 118,
  WHILE = 119,
  CALL_ONCE = 129,
  VAR_HANDLE = 142,
  READ_VARIABLE = 143,
  ASSIGN_VARIABLE = 144
};

std::string zeros(size_t n) { return std::string(n, '\0'); }

FlatTable conv_options(int8_t padding, int32_t stride, int8_t activation) {
  return FlatTable()
      .number<int8_t>(0, padding)
      .number<int32_t>(1, stride)
      .number<int32_t>(2, stride)
      .number<int8_t>(3, activation);
}

// int8, per channel: convolution, pooling, padding, reshaping.
std::string quantized() {
  Subgraph g;
  g.tensors = {{"x", Int8, {1, 6, 6, 2}, "", {0.05f}, {3}},
               {"w", Int8, {4, 3, 3, 2}, std::string(72, '\5'), {0.01f, 0.02f, 0.03f, 0.04f}, {0, 0, 0, 0}},
               {"b", Int32, {4}, zeros(16), {0.0005f, 0.001f, 0.0015f, 0.002f}, {0, 0, 0, 0}},
               {"c", Int8, {1, 6, 6, 4}, "", {0.1f}, {-5}},
               ints("pads", {4, 2}, {0, 0, 1, 1, 1, 1, 0, 0}),
               {"p", Int8, {1, 8, 8, 4}, "", {0.1f}, {-5}},
               {"a", Int8, {1, 4, 4, 4}, "", {0.1f}, {-5}},
               ints("shape", {2}, {1, -1}),
               {"y", Int8, {1, 64}, "", {0.1f}, {-5}}};
  g.inputs = {0};
  g.outputs = {8};
  g.operators = {
      {CONV_2D, {0, 1, 2}, {3}, conv_options(0, 1, 1)},
      {PAD, {3, 4}, {5}},
      {AVERAGE_POOL_2D,
       {5},
       {6},
       FlatTable().number<int8_t>(0, 1).number<int32_t>(1, 2).number<int32_t>(2, 2).number<int32_t>(3, 2).number<int32_t>(4, 2)},
      {RESHAPE, {6, 7}, {8}}};
  return model({g}, {{"result", 8}});
}

// Packed, half and sparse weights.
std::string weights() {
  Subgraph g;
  const FlatTable dense = FlatTable().number<int32_t>(1, 2);
  const FlatTable sparse = FlatTable()
                               .number<int8_t>(0, 1)
                               .number<uint8_t>(2, 1)
                               .table(3, FlatTable().numbers<int32_t>(0, {0, 1, 2}))
                               .number<uint8_t>(4, 3)
                               .table(5, FlatTable().numbers<uint8_t>(0, {1, 3}));
  g.tensors = {{"x", Float32, {1, 4}, ""},
               {"packed", Int4, {3, 4}, std::string("\x21\x43\x65\x17\x2f\x3e", 6), {0.5f}, {0}},
               {"y1", Float32, {1, 3}, ""},
               {"halves", Float16, {4, 3}, zeros(24)},
               {"whole", Float32, {4, 3}, ""},
               {"y2", Float32, {1, 4}, ""},
               {"sparse",
                Float32,
                {2, 4},
                bytes_of<float>({2, 3}),
                {},
                {},
                0,
                false,
                FlatTable().numbers<int32_t>(0, {0, 1}).tables(2, {dense, sparse})},
               {"y3", Float32, {1, 2}, ""}};
  g.inputs = {0};
  g.outputs = {7};
  g.operators = {{FULLY_CONNECTED, {0, 1, -1}, {2}, FlatTable().number<int8_t>(0, 1)},
                 {DEQUANTIZE, {3}, {4}},
                 {FULLY_CONNECTED, {2, 4}, {5}, FlatTable().number<int8_t>(0, 0)},
                 {FULLY_CONNECTED, {5, 6}, {7}, FlatTable().number<int8_t>(0, 0)}};
  return model({g});
}

// Shapes computed in the graph, slices, dilated convolution.
std::string shapes() {
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 4, 4, 2}, ""},
               ints("block", {2}, {2, 2}),
               ints("pads", {2, 2}, {2, 2, 2, 2}),
               {"s", Float32, {4, 4, 4, 2}, ""},
               floats("w", {2, 3, 3, 2}, std::vector<float>(36, 0.5f)),
               {"c", Float32, {4, 2, 2, 2}, ""},
               ints("crops", {2, 2}, {0, 0, 0, 0}),
               {"d", Float32, {1, 4, 4, 2}, ""},
               {"n", Int32, {4}, ""},
               ints("zero", {1}, {0}),
               ints("one", {1}, {1}),
               {"batch", Int32, {}, ""},
               ints("rest", {}, {-1}),
               {"flat", Int32, {2}, ""},
               {"f", Float32, {1, 32}, ""},
               ints("axis", {}, {1}),
               {"left", Float32, {1, 16}, ""},
               {"right", Float32, {1, 16}, ""},
               {"y", Float32, {1, 16}, ""}};
  g.inputs = {0};
  g.outputs = {18};
  g.operators = {{SPACE_TO_BATCH_ND, {0, 1, 2}, {3}},
                 {CONV_2D, {3, 4, -1}, {5}, conv_options(1, 1, 0)},
                 {BATCH_TO_SPACE_ND, {5, 1, 6}, {7}},
                 {SHAPE, {7}, {8}},
                 {STRIDED_SLICE, {8, 9, 10, 10}, {11}, FlatTable().number<int32_t>(4, 1)},
                 {PACK, {11, 12}, {13}, FlatTable().number<int32_t>(0, 2)},
                 {RESHAPE, {7, 13}, {14}},
                 {SPLIT, {15, 14}, {16, 17}, FlatTable().number<int32_t>(0, 2)},
                 {MUL, {16, 17}, {18}, FlatTable().number<int8_t>(0, 3)}};
  return model({g});
}

std::string recurrent() {
  Subgraph g;
  g.tensors = {{"x", Float32, {1, 3, 2}, ""},
               floats("w", {2, 2}, {0.1f, 0.2f, 0.3f, 0.4f}),
               floats("b", {2}, {0.5f, -0.5f}),
               {"h", Float32, {1, 2}, "", {}, {}, 0, true},
               {"c", Float32, {1, 2}, "", {}, {}, 0, true},
               {"s", Float32, {1, 3, 2}, ""},
               ints("axes", {1}, {1}),
               {"m", Float32, {1, 2}, ""},
               floats("t", {2, 3}, {1, 2, 3, 4, 5, 6}),
               {"memory", Float32, {1, 6}, "", {}, {}, 0, true},
               {"y", Float32, {1, 2}, ""}};
  g.inputs = {0};
  g.outputs = {10};
  g.operators = {{UNIDIRECTIONAL_SEQUENCE_LSTM,
                  {0, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, 2, 2, 2, 2, -1, -1, 3, 4},
                  {5},
                  FlatTable().number<int8_t>(0, 4).number<float>(1, 2.0f)},
                 {MEAN, {5, 6}, {7}, FlatTable().number<uint8_t>(0, 0)},
                 {SVDF, {7, 1, 8, 2, 9}, {10}, FlatTable().number<int32_t>(0, 1).number<int8_t>(1, 1)}};
  return model({g});
}

// A loop of three turns, a choice that depends on the input, variables.
std::string control() {
  Subgraph g, condition, body, yes, no, start;
  g.tensors = {{"x", Float32, {2}, ""},      {"flag", Bool, {}, ""},       ints("zero", {}, {0}),
               {"turns", Int32, {}, ""},     {"looped", Float32, {2}, ""}, {"chosen", Float32, {2}, ""},
               {"handle", Resource, {}, ""}, {"kept", Float32, {2}, ""},   {"y", Float32, {2}, ""}};
  g.inputs = {0, 1};
  g.outputs = {8};
  const FlatTable named = FlatTable().text(0, "").text(1, "v");
  g.operators = {{CALL_ONCE, {}, {}, FlatTable().number<int32_t>(0, 5)},
                 {WHILE, {2, 0}, {3, 4}, FlatTable().number<int32_t>(0, 1).number<int32_t>(1, 2)},
                 {IF, {1, 4}, {5}, FlatTable().number<int32_t>(0, 3).number<int32_t>(1, 4)},
                 {VAR_HANDLE, {}, {6}, named},
                 {READ_VARIABLE, {6}, {7}},
                 {ADD, {5, 7}, {8}, FlatTable().number<int8_t>(0, 0)},
                 {ASSIGN_VARIABLE, {6, 8}, {}}};
  condition.tensors = {{"i", Int32, {}, ""}, {"v", Float32, {2}, ""}, ints("three", {}, {3}), {"go", Bool, {}, ""}};
  condition.inputs = {0, 1};
  condition.outputs = {3};
  condition.operators = {{LESS, {0, 2}, {3}}};
  body.tensors = {
      {"i", Int32, {}, ""}, {"v", Float32, {2}, ""}, ints("one", {}, {1}), {"next", Int32, {}, ""}, {"w", Float32, {2}, ""}};
  body.inputs = {0, 1};
  body.outputs = {3, 4};
  body.operators = {{ADD, {0, 2}, {3}, FlatTable().number<int8_t>(0, 0)}, {ADD, {1, 1}, {4}, FlatTable().number<int8_t>(0, 0)}};
  yes.tensors = {{"a", Float32, {2}, ""}, {"b", Float32, {2}, ""}};
  yes.inputs = {0};
  yes.outputs = {1};
  yes.operators = {{MUL, {0, 0}, {1}, FlatTable().number<int8_t>(0, 0)}};
  no.tensors = {{"a", Float32, {2}, ""}};
  no.inputs = no.outputs = {0};
  start.tensors = {{"handle", Resource, {}, ""}, floats("first", {2}, {10, 20})};
  start.operators = {{VAR_HANDLE, {}, {0}, named}, {ASSIGN_VARIABLE, {0, 1}, {}}};
  return model({g, condition, body, yes, no, start});
}

// A FlexBuffers map of integers of one byte, by hand: keys, their places, values, types.
std::string flex_map(const std::vector<std::pair<std::string, int8_t>>& entries) {
  std::string out;
  std::vector<size_t> places;
  for (const auto& [key, value] : entries) {
    places.push_back(out.size());
    out += key + '\0';
  }
  const auto distance = [&](size_t to) { return static_cast<char>(out.size() - to); };
  out.push_back(static_cast<char>(entries.size()));
  const size_t keys = out.size();
  for (size_t p : places) out.push_back(distance(p));
  out.push_back(distance(keys));
  out.push_back(1);  // bytes per key
  out.push_back(static_cast<char>(entries.size()));
  const size_t values = out.size();
  for (const auto& [key, value] : entries) out.push_back(static_cast<char>(value));
  for (size_t i = 0; i < entries.size(); ++i) out.push_back(1 << 2);  // integer
  out.push_back(distance(values));
  out.push_back(9 << 2);  // map
  out.push_back(1);
  return out;
}

std::string detection() {
  Subgraph g;
  g.tensors = {{"boxes", Float32, {1, 5, 4}, ""},
               {"scores", Float32, {1, 5, 3}, ""},
               floats("anchors", {5, 4}, std::vector<float>(20, 0.5f)),
               {"y", Float32, {1, 2, 4}, ""},
               {"classes", Float32, {1, 2}, ""},
               {"best", Float32, {1, 2}, ""},
               {"count", Float32, {1}, ""}};
  g.inputs = {0, 1};
  g.outputs = {3, 4, 5, 6};
  g.operators = {{CUSTOM,
                  {0, 1, 2},
                  {3, 4, 5, 6},
                  {},
                  "TFLite_Detection_PostProcess",
                  flex_map({{"h_scale", 5},
                            {"max_classes_per_detection", 1},
                            {"max_detections", 2},
                            {"nms_iou_threshold", 1},
                            {"nms_score_threshold", 0},
                            {"num_classes", 2},
                            {"w_scale", 5},
                            {"x_scale", 10},
                            {"y_scale", 10}})}};
  return model({g});
}
}  // namespace

std::vector<TfliteSample> sample_tflite_models() {
  return {{"quantized", quantized()}, {"weights", weights()}, {"shapes", shapes()},
          {"recurrent", recurrent()}, {"control", control()}, {"detection", detection()}};
}

}  // namespace orknn::tests
