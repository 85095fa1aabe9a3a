// The ONNX importer on what it writes out node by node: sequences, functions, and bodies of control flow.
#include <gtest/gtest.h>

#include "import_onnx.h"

namespace orknn {
namespace {
using namespace tests;
using importer::Imported;
using importer::ImportOptions;
using ir::TensorData;

// --- sequences

// A model of several nodes that reads x and the whole numbers below.
Message sequence_model(const std::vector<Message>& nodes, const std::vector<std::string>& shape) {
  return model(graph({.nodes = nodes,
                      .initializers = {int64_tensor("zero", {}, {0}), int64_tensor("last", {}, {-1}),
                                       int64_tensor("two", {}, {2}), int64_tensor("parts", {2}, {1, 2})},
                      .inputs = {value_info("x", kFloat, shape)},
                      .outputs = {value_info_without_shape("out", kFloat)}}),
               17);
}

TEST(OnnxSequences, AreListsOfTensorsWhileImporting) {
  const TensorData x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<std::string> shape{"3", "2"};
  const Message at = node("SequenceAt", {"s", "last"}, {"out"}),
                join = node("ConcatFromSequence", {"s"}, {"out"}, {attribute_int("axis", 0)});
  EXPECT_EQ(run(sequence_model({node("SplitToSequence", {"x"}, {"s"}), at}, shape), {x})[0], (Values{5, 6}));
  EXPECT_EQ(run(sequence_model({node("SplitToSequence", {"x", "two"}, {"s"}), at}, shape), {x})[0], (Values{5, 6}));
  EXPECT_EQ(run(sequence_model({node("SplitToSequence", {"x", "parts"}, {"s"}), at}, shape), {x})[0], (Values{3, 4, 5, 6}));
  // Columns without their axis, stacked as rows.
  EXPECT_EQ(
      run(sequence_model({node("SplitToSequence", {"x"}, {"s"}, {attribute_int("axis", 1), attribute_int("keepdims", 0)}),
                          node("ConcatFromSequence", {"s"}, {"out"}, {attribute_int("axis", 0), attribute_int("new_axis", 1)})},
                         shape),
          {x})[0],
      (Values{1, 3, 5, 2, 4, 6}));
  EXPECT_EQ(
      run(sequence_model({node("SequenceEmpty", {}, {"e"}), node("SequenceInsert", {"e", "x"}, {"a"}), node("Neg", {"x"}, {"n"}),
                          node("SequenceInsert", {"a", "n", "zero"}, {"b"}), node("Identity", {"b"}, {"s"}), join},
                         shape),
          {x})[0],
      (Values{-1, -2, -3, -4, -5, -6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run(sequence_model({node("Neg", {"x"}, {"n"}), node("SequenceConstruct", {"n", "x"}, {"a"}),
                                node("SequenceErase", {"a", "zero"}, {"s"}), at},
                               shape),
                {x})[0],
            (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(
      run(sequence_model({node("SequenceConstruct", {"x", "x"}, {"s"}), node("SequenceLength", {"s"}, {"out"})}, shape), {x})[0],
      (Values{2}));
}

Message sequence_info(std::string_view name) { return value_info_of_sequence(name, kFloat); }

// A Loop over the list `s` that starts as `start`. The nodes write `next`, which is the list again, and may read the number `n`
// of the iteration, the condition `go` (handed on unless they write `go_on`) and `s`.
Message list_loop(const std::string& trips, const std::string& condition, const std::string& start, std::vector<Message> nodes,
                  const std::string& go_on = "go") {
  const Message body = graph({.nodes = std::move(nodes),
                              .initializers = {int64_tensor("one", {}, {1})},
                              .inputs = {value_info("n", kInt64, {}), value_info("go", kBool, {}), sequence_info("s")},
                              .outputs = {value_info(go_on, kBool, {}), sequence_info("next")}});
  return node("Loop", {trips, condition, start}, {"list"}, {attribute_graph("body", body)}, "loop");
}

TEST(OnnxSequences, LoopsOverThemAreWrittenOut) {
  const TensorData x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<std::string> shape{"3", "2"};
  const Message empty = node("SequenceEmpty", {}, {"e"}), rows = node("SplitToSequence", {"x"}, {"rows"}),
                join = node("ConcatFromSequence", {"list"}, {"out"}, {attribute_int("axis", 0)}),
                append_row = node("SequenceInsert", {"s", "row"}, {"next"});
  const auto run_nodes = [&](const std::vector<Message>& nodes) { return run(sequence_model(nodes, shape), {x})[0]; };
  // A list that grows.
  const std::vector<Message> gather{node("Gather", {"x", "n"}, {"row"}), append_row};
  EXPECT_EQ(run_nodes({empty, list_loop("two", "", "e", gather), join}), (Values{1, 2, 3, 4}));
  // As many iterations as a list is long; the list is read in the body, from its end.
  EXPECT_EQ(run_nodes({empty, rows, node("SequenceLength", {"rows"}, {"length"}),
                       list_loop("length", "", "e",
                                 {node("Sub", {"last", "n"}, {"at"}), node("SequenceAt", {"rows", "at"}, {"row"}), append_row}),
                       join}),
            (Values{5, 6, 3, 4, 1, 2}));
  // Ended by the condition that the body computes; no limit, or the one that stands for none.
  const std::vector<Message> until{node("Gather", {"x", "n"}, {"row"}), append_row, node("Less", {"n", "one"}, {"more"})};
  const Message yes = node("Cast", {"two"}, {"yes"}, {attribute_int("to", kBool)}),
                no = node("Cast", {"zero"}, {"no"}, {attribute_int("to", kBool)}),
                limit = node("Constant", {}, {"limit"}, {attribute_int("value_int", INT64_MAX)});
  EXPECT_EQ(run_nodes({empty, yes, list_loop("", "yes", "e", until, "more"), join}), (Values{1, 2, 3, 4}));
  EXPECT_EQ(run_nodes({empty, limit, list_loop("limit", "", "e", until, "more"), join}), (Values{1, 2, 3, 4}));
  // Not a single iteration.
  EXPECT_EQ(run_nodes({rows, list_loop("zero", "", "rows", gather), join}), (Values{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(run_nodes({rows, no, list_loop("two", "no", "rows", gather), join}), (Values{1, 2, 3, 4, 5, 6}));
  // A loop in a loop, which reads the iteration of both.
  const Message inner = graph({.nodes = {node("Add", {"n", "k"}, {"at"}), node("Gather", {"x", "at"}, {"row"}),
                                         node("SequenceInsert", {"t", "row"}, {"t_next"})},
                               .initializers = {},
                               .inputs = {value_info("k", kInt64, {}), value_info("go_k", kBool, {}), sequence_info("t")},
                               .outputs = {value_info("go_k", kBool, {}), sequence_info("t_next")}});
  EXPECT_EQ(
      run_nodes(
          {empty, list_loop("two", "", "e", {node("Loop", {"two", "", "s"}, {"next"}, {attribute_graph("body", inner)})}), join}),
      (Values{1, 2, 3, 4, 3, 4, 5, 6}));
}

TEST(OnnxSequences, LoopsCarryAndStackTensorsBesideThem) {
  const Message body =
      graph({.nodes = {node("SequenceAt", {"rows", "n"}, {"row"}), node("Add", {"sum", "row"}, {"sum_next"}),
                       node("Mul", {"row", "factor"}, {"scaled"})},
             .initializers = {float_tensor("factor", {1}, {10})},
             .inputs = {value_info("n", kInt64, {}), value_info("go", kBool, {}), value_info_without_shape("sum", kFloat)},
             .outputs = {value_info("go", kBool, {}), value_info_without_shape("sum_next", kFloat),
                         value_info_without_shape("scaled", kFloat)}});
  const Message m =
      model(graph({.nodes = {node("SplitToSequence", {"x"}, {"rows"}),
                             node("Loop", {"two", "", "start"}, {"sum_out", "stack"}, {attribute_graph("body", body)}, "loop")},
                   .initializers = {int64_tensor("two", {}, {2}), float_tensor("start", {1, 2}, {0, 0})},
                   .inputs = {value_info("x", kFloat, {"3", "2"})},
                   .outputs = {value_info_without_shape("sum_out", kFloat), value_info("stack", kFloat, {"2", "1", "2"})}}),
            17);
  const auto results = run(m, {floats({3, 2}, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(results[0], (Values{4, 6}));
  EXPECT_EQ(results[1], (Values{10, 20, 30, 40}));
  // What all iterations read is there once.
  const auto imported = import_model(m);
  ASSERT_TRUE(imported) << imported.status().to_string();
  EXPECT_TRUE(imported->graph.find_tensor("loop/factor"));
  EXPECT_FALSE(imported->graph.find_tensor("loop/1/factor"));
}

TEST(OnnxSequences, AreMappedPlaceByPlace) {
  const Message body = graph({.nodes = {node("Add", {"a", "b"}, {"sum"}), node("Mul", {"a", "c"}, {"product"}),
                                        node("Sub", {"product", "captured"}, {"rest"})},
                              .initializers = {},
                              .inputs = {value_info_without_shape("a", kFloat), value_info_without_shape("b", kFloat),
                                         value_info_without_shape("c", kFloat)},
                              .outputs = {value_info_without_shape("sum", kFloat), value_info_without_shape("rest", kFloat)}});
  const Message m =
      sequence_model({node("SplitToSequence", {"x"}, {"rows"}), node("Neg", {"x"}, {"captured_rows"}),
                      node("ReduceMax", {"x"}, {"captured"}), node("SequenceConstruct", {"x", "captured_rows", "x"}, {"others"}),
                      node("SequenceMap", {"rows", "others", "captured"}, {"sums", "rests"}, {attribute_graph("body", body)}),
                      node("SequenceAt", {"sums", "last"}, {"sum"}), node("SequenceAt", {"rests", "zero"}, {"rest"}),
                      node("Add", {"sum", "rest"}, {"out"})},
                     {"3", "2"});
  // The last row added to every row of x; six times the first row less six.
  EXPECT_EQ(run(m, {floats({3, 2}, {1, 2, 3, 4, 5, 6})})[0], (Values{6, 14, 8, 16, 10, 18}));
}

TEST(OnnxSequences, ComeOutOfTheBranchThatIsTaken) {
  const auto branch = [](const char* tensor, const char* list) {
    return graph({.nodes = {node("SequenceConstruct", {tensor}, {list})},
                  .initializers = {},
                  .inputs = {},
                  .outputs = {sequence_info(list)}});
  };
  const Message choice =
      node("If", {"has"}, {"list"},
           {attribute_graph("then_branch", branch("x", "a")), attribute_graph("else_branch", branch("y", "b"))});
  const Message negated = node("Neg", {"x"}, {"y"}), at = node("SequenceAt", {"list", "zero"}, {"out"});
  EXPECT_EQ(run(sequence_model({negated, node("OptionalHasElement", {"x"}, {"has"}), choice, at}, {"1"}), {floats({1}, {4})})[0],
            Values{4});
  EXPECT_EQ(run(sequence_model({negated, node("OptionalHasElement", {""}, {"has"}), choice, at}, {"1"}), {floats({1}, {4})})[0],
            Values{-4});
}

TEST(OnnxSequences, SayWhatCannotBeKnown) {
  const std::vector<std::string> shape{"3", "2"};
  const std::vector<Message> to_bool{attribute_int("to", kBool)}, append{node("SequenceInsert", {"s", "x"}, {"next"})};
  const Message empty = node("SequenceEmpty", {}, {"e"}), length = node("SequenceLength", {"list"}, {"out"});
  const Message first = graph({.nodes = {node("SequenceAt", {"s", "zero"}, {"first"})},
                               .initializers = {},
                               .inputs = {},
                               .outputs = {value_info_without_shape("first", kFloat)}});
  const struct {
    std::vector<Message> nodes;
    const char* text;
  } cases[] = {
      {{node("SequenceConstruct", {"x"}, {"out"})}, "output 'out' is a sequence of tensors"},
      {{node("SequenceConstruct", {"x"}, {"s"}), node("SequenceAt", {"s", "two"}, {"out"}, {}, "at")},
       "node 'at' (SequenceAt): the place is outside the sequence"},
      {{node("SequenceConstruct", {"x"}, {"s"}), node("Neg", {"s"}, {"out"}, {}, "neg")},
       "node 'neg' (Neg): it reads a sequence of tensors"},
      {{node("SequenceEmpty", {}, {"s"}), node("SequenceErase", {"s"}, {"t"}), node("SequenceAt", {"t", "zero"}, {"out"})},
       "the sequence is empty"},
      {{node("SequenceEmpty", {}, {"s"}), node("ConcatFromSequence", {"s"}, {"out"}, {attribute_int("axis", 0)})},
       "an empty sequence cannot be joined"},
      {{node("SequenceLength", {"x"}, {"out"})}, "this sequence is not known while importing"},
      {{empty,
        list_loop("two", "", "e", {node("SequenceInsert", {"s", "x"}, {"next"}), node("Cast", {"x"}, {"more"}, to_bool)}, "more"),
        length},
       "node 'loop' (Loop): the value of 'loop/0/more' must be known to end a loop that has sequences"},
      {{empty, node("Cast", {"x"}, {"m"}, {attribute_int("to", kInt64)}), list_loop("m", "", "e", append), length},
       "node 'loop' (Loop): the value of 'm' must be known to write out the iterations of a loop that has sequences"},
      {{empty, node("Constant", {}, {"m"}, {attribute_int("value_int", int64_t{1} << 40)}), list_loop("m", "", "e", append),
        length},
       "node 'loop' (Loop): a loop that passes sequences on has too many iterations to unroll; expected at most 4096 "
       "iterations, found "
       "1099511627776"},
      {{empty, list_loop("", "", "e", append), length}, "found a condition that stays true"},
      {{empty, list_loop("two", "", "e", {node("Foo", {"s"}, {"next"}, {}, "foo")}), length},
       "node 'loop/0/foo' (Foo): it reads"},
      {{node("Cast", {"x"}, {"c"}, to_bool), node("SequenceConstruct", {"x"}, {"s"}),
        node("If", {"c"}, {"out"}, {attribute_graph("then_branch", first), attribute_graph("else_branch", first)}, "if")},
       "node 'if' (If): the value of 'c' must be known to choose a branch that has sequences"},
      {{node("SequenceConstruct", {"x"}, {"s"}), node("SequenceConstruct", {"x", "x"}, {"t"}),
        node("SequenceMap", {"s", "t"}, {"u"}, {attribute_graph("body", first)}), node("SequenceLength", {"u"}, {"out"})},
       "the sequences differ in length; expected 1, found 2"},
  };
  for (const auto& c : cases)
    EXPECT_TRUE(contains(error_of(sequence_model(c.nodes, shape)), c.text)) << error_of(sequence_model(c.nodes, shape));
}

TEST(OnnxSequences, LoopsInLoopsDoNotMultiplyWithoutEnd) {
  std::vector<Message> nodes{node("Identity", {"s"}, {"next"})};
  for (int level = 0; level < 4; ++level) {
    const std::string name = "l" + std::to_string(level);
    const Message body =
        graph({.nodes = std::move(nodes),
               .initializers = {},
               .inputs = {value_info("n" + name, kInt64, {}), value_info("go" + name, kBool, {}), sequence_info("s")},
               .outputs = {value_info("go" + name, kBool, {}), sequence_info("next")}});
    nodes = {node("Loop", {"many", "", "s"}, {"next"}, {attribute_graph("body", body)}, name)};
  }
  nodes.insert(nodes.begin(),
               {node("SequenceConstruct", {"x"}, {"s"}), node("Constant", {}, {"many"}, {attribute_int("value_int", 4096)})});
  nodes.push_back(node("SequenceLength", {"next"}, {"out"}));
  EXPECT_TRUE(contains(error_of(sequence_model(nodes, {"1"})), "functions and loops have too many nodes"));
}

// --- functions

Message function(std::string_view name, const Names& inputs, const Names& outputs, const std::vector<Message>& nodes) {
  Message f;
  f.text(1, name).text(10, "local").message(9, op_set("", 13)).message(9, op_set("local", 1));
  for (const std::string& i : inputs) f.text(4, i);
  for (const std::string& o : outputs) f.text(5, o);
  for (const Message& n : nodes) f.message(7, n);
  return f;
}

Message function_model(const std::vector<Message>& nodes, const std::vector<Message>& functions) {
  return model(graph({.nodes = nodes,
                      .initializers = {},
                      .inputs = {value_info("x", kFloat, {"2"})},
                      .outputs = {value_info("out", kFloat, {"2"})}}),
               18, 8, functions, {op_set("local", 1)});
}

TEST(OnnxFunctions, InlinedWithAttributesAndOwnOpset) {
  const Message scaled =
      function("Scaled", {"a"}, {"b"},
               {node("Constant", {}, {"f"}, {attribute_reference("value_float", "factor", 1)}), node("Mul", {"a", "f"}, {"b"})});
  // ReduceMean of opset 13 has its axes in an attribute, though the model says 18.
  const Message centered =
      function("Centered", {"v"}, {"r"},
               {node("ReduceMean", {"v"}, {"m"}, {attribute_ints("axes", {0})}), node("Sub", {"v", "m"}, {"d"}),
                node("Scaled", {"d"}, {"r"}, {attribute_reference("factor", "by", 1)}, "", "local")});
  const Message m = function_model({node("Centered", {"x"}, {"a"}, {attribute_float("by", 10)}, "one", "local"),
                                    node("Centered", {"a"}, {"out"}, {attribute_float("by", 2)}, "two", "local")},
                                   {scaled, centered});
  EXPECT_EQ(run(m, {floats({2}, {1, 3})})[0], (Values{-20, 20}));
}

TEST(OnnxFunctions, OutputsThatAreInputsOrConstants) {
  const Message pass = function("Pass", {"a"}, {"a", "c"}, {node("Constant", {}, {"c"}, {attribute_float("value_float", 4)})});
  const Message m =
      function_model({node("Pass", {"x"}, {"same", "four"}, {}, "p", "local"), node("Add", {"same", "four"}, {"out"})}, {pass});
  EXPECT_EQ(run(m, {floats({2}, {1, 3})})[0], (Values{5, 7}));
  const Message of_sequence =
      function_model({node("SequenceConstruct", {"x"}, {"s"}), node("Pass", {"s"}, {"same"}, {}, "p", "local"),
                      node("ConcatFromSequence", {"same"}, {"out"}, {attribute_int("axis", 0)})},
                     {pass});
  EXPECT_EQ(run(of_sequence, {floats({2}, {1, 3})})[0], (Values{1, 3}));
}

TEST(OnnxFunctions, AbsentInputIsAbsent) {
  const Message limit = function("Limit", {"a", "low", "high"}, {"b"}, {node("Clip", {"a", "low", "high"}, {"b"})});
  const Message m = function_model(
      {node("Constant", {}, {"k"}, {attribute_float("value_float", 2)}), node("Limit", {"x", "", "k"}, {"out"}, {}, "", "local")},
      {limit});
  EXPECT_EQ(run(m, {floats({2}, {1, 3})})[0], (Values{1, 2}));
}

TEST(OnnxFunctions, RecursionIsRefused) {
  const Message loop = function("Again", {"a"}, {"b"}, {node("Again", {"a"}, {"b"}, {}, "", "local")});
  EXPECT_TRUE(contains(error_of(function_model({node("Again", {"x"}, {"out"}, {}, "", "local")}, {loop})), "too deeply"));
  std::vector<Message> doubling;  // each calls the one before twice
  for (int i = 0; i < 30; ++i) {
    const std::string inner = i == 0 ? "Relu" : "F" + std::to_string(i - 1);
    const char* domain = i == 0 ? "" : "local";
    doubling.push_back(function("F" + std::to_string(i), {"a"}, {"b"},
                                {node(inner, {"a"}, {"m"}, {}, "", domain), node(inner, {"m"}, {"b"}, {}, "", domain)}));
  }
  EXPECT_TRUE(contains(error_of(function_model({node("F29", {"x"}, {"out"}, {}, "", "local")}, doubling)), "too many nodes"));
}

// --- control flow

TEST(OnnxBodies, CapturesBecomeInputs) {
  const Message then_branch = graph({.nodes = {node("Add", {"r", "one"}, {"t"})},
                                     .initializers = {},
                                     .inputs = {},
                                     .outputs = {value_info_without_shape("t", kFloat)}});
  const Message else_branch = graph({.nodes = {node("Mul", {"x", "one"}, {"m"}), node("Sub", {"m", "r"}, {"e"})},
                                     .initializers = {},
                                     .inputs = {},
                                     .outputs = {value_info_without_shape("e", kFloat)}});
  const Message m =
      model(graph({.nodes = {node("Neg", {"x"}, {"r"}),
                             node("If", {"c"}, {"out"},
                                  {attribute_graph("then_branch", then_branch), attribute_graph("else_branch", else_branch)})},
                   .initializers = {float_tensor("one", {1}, {1})},
                   .inputs = {value_info("x", kFloat, {"1"}), value_info("c", kBool, {})},
                   .outputs = {value_info_without_shape("out", kFloat)}}),
            16);
  const auto imported = import_model(m);
  ASSERT_TRUE(imported) << imported.status().to_string();
  const ir::Graph& g = imported->graph;
  const ir::Node& branch = *g.producer_node(g.outputs()[0]);
  ASSERT_EQ(branch.inputs.size(), 3u);
  EXPECT_EQ(g.tensor(branch.inputs[1]).name, "r");
  EXPECT_EQ(g.tensor(branch.inputs[2]).name, "x");
  for (const char* name : {"then_branch", "else_branch"}) {
    const auto* body = branch.attributes.get<std::shared_ptr<const ir::Graph>>(name);
    ASSERT_NE(body, nullptr);
    EXPECT_EQ((*body)->inputs().size(), 2u) << name;
  }
  EXPECT_EQ(run(m, {floats({1}, {5}), TensorData::scalar(true)})[0], Values{-4});
  EXPECT_EQ(run(m, {floats({1}, {5}), TensorData::scalar(false)})[0], Values{10});
}

TEST(OnnxBodies, NestedCapturesPassThrough) {
  const Message inner = graph({.nodes = {node("Add", {"v", "far"}, {"i"})},
                               .initializers = {},
                               .inputs = {},
                               .outputs = {value_info_without_shape("i", kFloat)}});
  const Message other = graph({.nodes = {node("Identity", {"v"}, {"o"})},
                               .initializers = {},
                               .inputs = {},
                               .outputs = {value_info_without_shape("o", kFloat)}});
  const Message body = graph(
      {.nodes = {node("Identity", {"go"}, {"go_out"}),
                 node("If", {"go"}, {"v_out"}, {attribute_graph("then_branch", inner), attribute_graph("else_branch", other)})},
       .initializers = {},
       .inputs = {value_info("n", kInt64, {}), value_info("go", kBool, {}), value_info("v", kFloat, {"1"})},
       .outputs = {value_info("go_out", kBool, {}), value_info_without_shape("v_out", kFloat)}});
  const Message m = model(
      graph({.nodes = {node("Neg", {"x"}, {"far"}), node("Loop", {"trips", "", "x"}, {"out"}, {attribute_graph("body", body)})},
             .initializers = {int64_tensor("trips", {}, {3})},
             .inputs = {value_info("x", kFloat, {"1"})},
             .outputs = {value_info_without_shape("out", kFloat)}}),
      16);
  EXPECT_EQ(run(m, {floats({1}, {5})})[0], Values{-10});
}

}  // namespace
}  // namespace orknn
