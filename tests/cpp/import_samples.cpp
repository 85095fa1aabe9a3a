#include "import_samples.h"

#include "onnx_writer.h"

namespace orknn::tests {
namespace {
constexpr int kFloat = 1, kInt64 = 7, kBool = 9, kHalf = 10, kInt4 = 22;

std::string plain() {
  return model(graph({.nodes = {node("Conv", {"x", "w", "b"}, {"c"},
                                     {attribute_ints("pads", {1, 1, 1, 1}), attribute_ints("kernel_shape", {3, 3})}, "conv"),
                                node("Relu", {"c"}, {"r"}), node("Reshape", {"r", "shape"}, {"y"})},
                      .initializers = {float_tensor("w", {2, 1, 3, 3}, std::vector<float>(18, 0.5f)),
                                       float_tensor("b", {2}, {1, 2}), int64_tensor("shape", {2}, {0, -1})},
                      .inputs = {value_info("x", kFloat, {"N", "1", "4", "4"})},
                      .outputs = {value_info("y", kFloat, {"N", "32"})}}),
               13)
      .bytes();
}

// Opset 6 with the attribute forms of its time, initializers among the inputs.
std::string old() {
  return model(graph({.nodes = {node("Add", {"x", "b"}, {"a"}, {attribute_int("broadcast", 1), attribute_int("axis", 1)}),
                                node("Clip", {"a"}, {"k"}, {attribute_float("min", 0), attribute_float("max", 6)}),
                                node("Pad", {"k"}, {"p"},
                                     {attribute_ints("pads", {0, 0, 1, 1, 0, 0, 1, 1}), attribute_string("mode", "constant")}),
                                node("Slice", {"p"}, {"s"},
                                     {attribute_ints("starts", {1}), attribute_ints("ends", {3}), attribute_ints("axes", {2})}),
                                node("Unsqueeze", {"s"}, {"u"}, {attribute_ints("axes", {0})}),
                                node("Squeeze", {"u"}, {"q"}, {attribute_ints("axes", {0})}),
                                node("ReduceMean", {"q"}, {"m"}, {attribute_ints("axes", {2, 3}), attribute_int("keepdims", 0)}),
                                node("Softmax", {"m"}, {"y"})},
                      .initializers = {float_tensor("b", {2}, {1, 2})},
                      .inputs = {value_info("x", kFloat, {"1", "2", "4", "4"}), value_info("b", kFloat, {"2"})},
                      .outputs = {value_info("y", kFloat, {"1", "2"})}}),
               6, 3)
      .bytes();
}

std::string control() {
  const Message then_branch = graph({.nodes = {node("Add", {"x", "one"}, {"t"})},
                                     .initializers = {},
                                     .inputs = {},
                                     .outputs = {value_info("t", kFloat, {"2"})}});
  const Message else_branch = graph(
      {.nodes = {node("Mul", {"x", "s"}, {"e"})}, .initializers = {}, .inputs = {}, .outputs = {value_info("e", kFloat, {"2"})}});
  const Message body = graph(
      {.nodes = {node("Identity", {"cond_in"}, {"cond_out"}), node("Add", {"v", "i"}, {"v_out"}),
                 node("Identity", {"v_out"}, {"scan"})},
       .initializers = {},
       .inputs = {value_info("it", kInt64, {}), value_info("cond_in", kBool, {}), value_info("v", kFloat, {"2"})},
       .outputs = {value_info("cond_out", kBool, {}), value_info("v_out", kFloat, {"2"}), value_info("scan", kFloat, {"2"})}});
  return model(graph({.nodes = {node("Relu", {"x"}, {"s"}),
                                node("If", {"c"}, {"i"},
                                     {attribute_graph("then_branch", then_branch), attribute_graph("else_branch", else_branch)}),
                                node("Loop", {"trips", "", "x"}, {"last", "all"}, {attribute_graph("body", body)})},
                      .initializers = {float_tensor("one", {}, {1}), int64_tensor("trips", {}, {3})},
                      .inputs = {value_info("x", kFloat, {"2"}), value_info("c", kBool, {})},
                      .outputs = {value_info("last", kFloat, {"2"}), value_info("all", kFloat, {"3", "2"})}}),
               16)
      .bytes();
}

std::string sequences() {
  const Message negated = graph({.nodes = {node("Neg", {"row"}, {"minus"})},
                                 .initializers = {},
                                 .inputs = {value_info("row", kFloat, {"1", "2"})},
                                 .outputs = {value_info("minus", kFloat, {"1", "2"})}});
  const Message body = graph(
      {.nodes = {node("SequenceAt", {"rows", "it"}, {"at"}), node("SequenceInsert", {"s", "at"}, {"next"})},
       .initializers = {},
       .inputs = {value_info("it", kInt64, {}), value_info("go", kBool, {}), value_info_of_sequence("s", kFloat)},
       .outputs = {value_info("go", kBool, {}), value_info_of_sequence("next", kFloat), value_info("at", kFloat, {"1", "2"})}});
  return model(graph({.nodes = {node("SplitToSequence", {"x"}, {"rows"}),
                                node("SequenceMap", {"rows"}, {"start"}, {attribute_graph("body", negated)}),
                                node("SequenceLength", {"rows"}, {"trips"}),
                                node("Loop", {"trips", "", "start"}, {"list", "stack"}, {attribute_graph("body", body)}),
                                node("ConcatFromSequence", {"list"}, {"y"}, {attribute_int("axis", 0)})},
                      .initializers = {},
                      .inputs = {value_info("x", kFloat, {"3", "2"})},
                      .outputs = {value_info("y", kFloat, {"6", "2"}), value_info("stack", kFloat, {"3", "1", "2"})}}),
               17)
      .bytes();
}

std::string functions() {
  Message scale;
  scale.text(1, "Scaled").text(4, "a").text(5, "b").text(6, "factor").message(9, op_set("", 13)).text(10, "local");
  scale.message(7, node("Constant", {}, {"f"}, {attribute_reference("value_float", "factor", 1)}))
      .message(7, node("Mul", {"a", "f"}, {"b"}));
  Message twice;
  twice.text(1, "Twice").text(4, "a").text(5, "b").message(9, op_set("", 13)).message(9, op_set("local", 1)).text(10, "local");
  twice.message(7, node("Scaled", {"a"}, {"m"}, {attribute_float("factor", 2)}, "", "local"))
      .message(7, node("Scaled", {"m"}, {"b"}, {attribute_float("factor", 3)}, "", "local"));
  return model(graph({.nodes = {node("Twice", {"x"}, {"y"}, {}, "call", "local")},
                      .initializers = {},
                      .inputs = {value_info("x", kFloat, {"2"})},
                      .outputs = {value_info("y", kFloat, {"2"})}}),
               13, 8, {scale, twice}, {op_set("local", 1)})
      .bytes();
}

std::string tensors() {
  Message half;
  half.numbers(1, Ints{2}).number(2, kHalf).numbers(5, Ints{0x3c00, 0x4000}, true).text(8, "h");
  Message sparse;
  sparse.message(1, float_tensor("sp", {2}, {5, 6})).message(2, int64_tensor("", {2}, {0, 3})).numbers(3, Ints{2, 2});
  return model(graph({.nodes = {node("Cast", {"h"}, {"hf"}, {attribute_int("to", 1)}), node("Add", {"x", "hf"}, {"a"}),
                                node("Add", {"a", "sp"}, {"s"}), node("Cast", {"q"}, {"qf"}, {attribute_int("to", 1)}),
                                node("Add", {"s", "qf"}, {"z"}),
                                node("Constant", {}, {"k"}, {attribute_tensor("value", float_tensor("", {1}, {2}))}),
                                node("Mul", {"z", "k"}, {"y"})},
                      .initializers = {half, raw_tensor("q", kInt4, {2}, std::string("\x2f", 1))},
                      .inputs = {value_info("x", kFloat, {"2", "2"})},
                      .outputs = {value_info("y", kFloat, {"2", "2"})},
                      .sparse_initializers = {sparse}}),
               21, 10)
      .bytes();
}
}  // namespace

std::vector<SampleModel> sample_onnx_models() {
  return {{"plain", plain()},         {"old", old()},        {"control", control()}, {"sequences", sequences()},
          {"functions", functions()}, {"tensors", tensors()}};
}

}  // namespace orknn::tests
