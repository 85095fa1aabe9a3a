#include "tensorflow_writer.h"

#include <sstream>

namespace orknn::tests::tf {
namespace {
std::string dims_text(const Ints& dims) {
  std::string result;
  for (int64_t d : dims) result += "dim { size: " + std::to_string(d) + " } ";
  return result;
}

std::string constant(std::string_view name, const Ints& dims, std::string_view dtype, const std::string& values) {
  const std::string tensor =
      "tensor { dtype: DT_" + std::string(dtype) + " tensor_shape { " + dims_text(dims) + "} " + values + "}";
  return node(name, "Const", {}, {{"dtype", type(dtype)}, {"value", tensor}});
}

// Words of a line.
Names words_of(const std::string& line) {
  std::istringstream stream(line);
  Names words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}
}  // namespace

std::string integer(int64_t value) { return "i: " + std::to_string(value); }
std::string real(double value) { return "f: " + std::to_string(value); }
std::string flag(bool value) { return value ? "b: true" : "b: false"; }
std::string text(std::string_view value) { return "s: \"" + std::string(value) + "\""; }
std::string type(std::string_view name) { return "type: DT_" + std::string(name); }
std::string shape(const Ints& dims) { return "shape { " + dims_text(dims) + "}"; }
std::string function(std::string_view name) { return "func { name: \"" + std::string(name) + "\" }"; }

std::string integers(const Ints& values) {
  std::string result = "list { ";
  for (int64_t v : values) result += integer(v) + " ";
  return result + "}";
}

std::string texts(const Names& values) {
  std::string result = "list { ";
  for (const std::string& v : values) result += text(v) + " ";
  return result + "}";
}

std::string node(std::string_view name, std::string_view op, const Names& inputs, const Attributes& attributes) {
  std::string result = "node { name: \"" + std::string(name) + "\" op: \"" + std::string(op) + "\"";
  for (const std::string& i : inputs) result += " input: \"" + i + "\"";
  for (const auto& [key, value] : attributes) result += " attr { key: \"" + key + "\" value { " + value + " } }";
  return result + " }\n";
}

std::string input(std::string_view name, const Ints& dims, std::string_view dtype) {
  return node(name, "Placeholder", {}, {{"dtype", type(dtype)}, {"shape", shape(dims)}});
}

std::string floats(std::string_view name, const Ints& dims, const std::vector<double>& values) {
  std::string list;
  for (double v : values) list += "float_val: " + std::to_string(v) + " ";
  return constant(name, dims, "FLOAT", list);
}

std::string ints(std::string_view name, const Ints& dims, const Ints& values, std::string_view dtype) {
  std::string list;
  for (int64_t v : values) list += (dtype == "INT64" ? "int64_val: " : "int_val: ") + std::to_string(v) + " ";
  return constant(name, dims, dtype, list);
}

std::string truth(std::string_view name, bool value) {
  return constant(name, {}, "BOOL", value ? "bool_val: true " : "bool_val: false ");
}

std::string define(std::string_view name, const Names& arguments, const Names& results, const std::vector<std::string>& nodes) {
  std::string signature = "signature { name: \"" + std::string(name) + "\"", returns;
  for (const std::string& a : arguments) {
    const Names words = words_of(a);
    signature += " input_arg { name: \"" + words[0] + "\" type: DT_" + words[1] + " }";
  }
  for (const std::string& r : results) {
    const Names words = words_of(r);
    signature += " output_arg { name: \"" + words[0] + "\" type: DT_" + words[1] + " }";
    returns += " ret { key: \"" + words[0] + "\" value: \"" + words[2] + "\" }";
  }
  std::string body;
  for (const std::string& n : nodes) body += "node_def" + n.substr(4);  // "node { ... }"
  return "function { " + signature + " }\n" + body + returns + " }\n";
}

std::string graph(const std::vector<std::string>& nodes, const std::vector<std::string>& functions, int producer) {
  std::string result;
  for (const std::string& n : nodes) result += n;
  if (!functions.empty()) {
    result += "library { ";
    for (const std::string& f : functions) result += f;
    result += "}\n";
  }
  return result + "versions { producer: " + std::to_string(producer) + " }\n";
}

namespace {
std::string picture_net() {
  return graph(
      {input("x", {1, 5, 5, 2}),
       floats("w", {3, 3, 2, 4}, {0.1, -0.2, 0.3}),
       node("w/read", "Identity", {"w"}),
       node("conv", "Conv2D", {"x", "w/read"},
            {{"strides", integers({1, 2, 2, 1})}, {"padding", text("SAME")}, {"data_format", text("NHWC")}}),
       floats("one", {4}, {1}),
       floats("zero", {4}, {0}),
       node("bn", "FusedBatchNormV3", {"conv", "one", "zero", "zero", "one"},
            {{"is_training", flag(false)}, {"epsilon", real(0.001)}}),
       node("relu", "Relu6", {"bn"}),
       node("pool", "MaxPool", {"relu"},
            {{"ksize", integers({1, 2, 2, 1})}, {"strides", integers({1, 1, 1, 1})}, {"padding", text("VALID")}}),
       ints("size", {2}, {4, 4}),
       node("up", "ResizeBilinear", {"pool", "size"}, {{"half_pixel_centers", flag(true)}}),
       node("quant", "FakeQuantWithMinMaxArgs", {"up"}, {{"min", real(-1)}, {"max", real(3)}}),
       ints("block", {2}, {2, 2}),
       ints("pads", {2, 2}, {0, 0, 0, 0}),
       node("s2b", "SpaceToBatchND", {"quant", "block", "pads"}),
       floats("d", {2, 2, 4, 1}, {0.5}),
       node("depth", "DepthwiseConv2dNative", {"s2b", "d"}, {{"strides", integers({1, 1, 1, 1})}, {"padding", text("VALID")}}),
       node("b2s", "BatchToSpaceND", {"depth", "block", "pads"}),
       ints("axes", {2}, {1, 2}),
       node("mean", "Mean", {"b2s", "axes"}, {{"keep_dims", flag(false)}}),
       node("prob", "Softmax", {"mean"})});
}

std::string shape_arithmetic() {
  return graph(
      {input("x", {2, 3, 4}),
       node("shape", "Shape", {"x"}),
       ints("b", {1}, {0}),
       ints("e", {1}, {1}),
       ints("s", {1}, {1}),
       node("n", "StridedSlice", {"shape", "b", "e", "s"}, {{"shrink_axis_mask", integer(1)}}),
       ints("rest", {}, {-1}),
       node("to", "Pack", {"n", "rest"}, {{"N", integer(2)}}),
       node("flat", "Reshape", {"x", "to"}),
       ints("axis", {}, {1}),
       node("parts", "Split", {"axis", "flat"}, {{"num_split", integer(3)}}),
       node("joined", "ConcatV2", {"parts:2", "parts", "parts:1", "axis"}, {{"N", integer(3)}}),
       ints("begin", {3}, {0, 0, -1}),
       ints("end", {3}, {0, 0, -5}),
       ints("step", {3}, {1, 1, -2}),
       node("cut", "StridedSlice", {"x", "begin", "end", "step"}, {{"ellipsis_mask", integer(1)}, {"new_axis_mask", integer(2)}}),
       ints("k", {}, {2}),
       node("top", "TopKV2", {"joined", "k"}),
       ints("i", {2}, {1, 0}),
       node("g", "GatherV2", {"x", "i", "axis"}),
       node("sum", "AddN", {"g", "g"}),
       ints("pad", {3, 2}, {0, 0, 1, 1, 0, 2}),
       node("padded", "MirrorPad", {"sum", "pad"}, {{"mode", text("SYMMETRIC")}})});
}

std::string old_control_flow() {
  const auto enter = [](const char* name, const char* from, bool constant) {
    return node(name, "Enter", {from}, {{"frame_name", text("loop")}, {"is_constant", flag(constant)}});
  };
  return graph({input("x", {3, 2}),
                ints("zero", {}, {0}),
                ints("count", {}, {3}),
                ints("one", {}, {1}),
                floats("start", {2}, {0}),
                node("array", "TensorArrayV3", {"count"}, {{"dtype", type("FLOAT")}}),
                node("range", "Range", {"zero", "count", "one"}),
                node("scatter", "TensorArrayScatterV3", {"array", "range", "x", "array:1"}),
                enter("ei", "zero", false),
                enter("es", "start", false),
                enter("en", "count", true),
                enter("ea", "array", true),
                enter("ef", "scatter", true),
                node("mi", "Merge", {"ei", "ni"}),
                node("ms", "Merge", {"es", "ns"}),
                node("less", "Less", {"mi", "en"}),
                node("cond", "LoopCond", {"less"}),
                node("si", "Switch", {"mi", "cond"}),
                node("ss", "Switch", {"ms", "cond"}),
                node("xi", "Exit", {"si"}),
                node("xs", "Exit", {"ss"}),
                node("inc", "Add", {"si:1", "one_in"}),
                node("one_in", "Const", {"^si"},
                     {{"dtype", type("INT32")}, {"value", "tensor { dtype: DT_INT32 tensor_shape { } int_val: 1 }"}}),
                node("read", "TensorArrayReadV3", {"ea", "si:1", "ef"}, {{"dtype", type("FLOAT")}}),
                node("add", "Add", {"ss:1", "read"}),
                node("ni", "NextIteration", {"inc"}),
                node("ns", "NextIteration", {"add"}),
                truth("training", false),
                node("sw", "Switch", {"xs", "training"}),
                node("drop", "Mul", {"sw:1", "sw:1"}),
                node("keep", "Identity", {"sw"}),
                node("out", "Merge", {"keep", "drop"})});
}

std::string functions_and_lists() {
  const Names state{"i INT32", "n INT32", "list VARIANT", "w FLOAT"};
  return graph({input("x", {4, 2}), node("call", "StatefulPartitionedCall", {"x"}, {{"f", function("net")}}),
                node("y", "double", {"call:1"})},
               {define("more", state, {"r BOOL less:z:0"}, {node("less", "Less", {"i", "n"})}),
                define("turn", state, {"oi INT32 inc:z:0", "on INT32 n", "ol VARIANT set:output_handle:0", "ow FLOAT w"},
                       {ints("one", {}, {1}), ints("es", {1}, {2}), node("inc", "AddV2", {"i", "one:output:0"}),
                        node("get", "TensorListGetItem", {"list", "i", "es:output:0"}), node("mul", "Mul", {"get:item:0", "w"}),
                        node("set", "TensorListSetItem", {"list", "i", "mul:z:0"})}),
                define("net", {"x FLOAT"}, {"n INT32 loop:output:0", "y FLOAT stack:tensor:0"},
                       {ints("zero", {}, {0}), ints("n", {}, {4}), floats("w", {2}, {2, 3}), ints("es", {1}, {2}),
                        node("from", "TensorListFromTensor", {"x", "es:output:0"}),
                        node("loop", "While", {"zero:output:0", "n:output:0", "from:output_handle:0", "w:output:0"},
                             {{"cond", function("more")}, {"body", function("turn")}}),
                        node("stack", "TensorListStack", {"loop:output:2", "es:output:0"})}),
                define("double", {"x FLOAT"}, {"y FLOAT if:output:0"},
                       {truth("t", true), node("if", "StatelessIf", {"t:output:0", "x"},
                                               {{"then_branch", function("twice")}, {"else_branch", function("once")}})}),
                define("twice", {"x FLOAT"}, {"y FLOAT add:z:0"}, {node("add", "AddV2", {"x", "x"})}),
                define("once", {"x FLOAT"}, {"y FLOAT x"}, {})});
}

std::string recurrent() {
  return graph({input("x", {3, 1, 2}), ints("n", {}, {3}, "INT64"), floats("state", {1, 2}, {0}),
                floats("w", {4, 8}, {0.1, 0.2, -0.3}), floats("p", {2}, {0}), floats("b", {8}, {0.1}),
                node("lstm", "BlockLSTM", {"n", "x", "state", "state", "w", "p", "p", "p", "b"},
                     {{"cell_clip", real(0)}, {"forget_bias", real(1)}}),
                ints("axes", {1}, {0}), node("last", "Max", {"lstm:6", "axes"}), floats("m", {2, 3}, {1}),
                node("y", "MatMul", {"last", "m"}, {{"transpose_b", flag(false)}})});
}
}  // namespace

std::vector<Sample> samples() {
  return {{"picture_net", picture_net()},
          {"shape_arithmetic", shape_arithmetic()},
          {"old_control_flow", old_control_flow()},
          {"functions_and_lists", functions_and_lists()},
          {"recurrent", recurrent()}};
}

}  // namespace orknn::tests::tf
