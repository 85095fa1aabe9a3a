// Wrong operands are refused by the shape rules, which run when a model is loaded, and not later by a kernel: each operand of
// every operator case gets another rank, another extent or another type in turn. What the shape rules accept, the reference
// kernels compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "compile/compile.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "op_case.h"
#include "ops/eval.h"
#include "sim/executor.h"

namespace orknn::tests {
namespace {
using namespace ir;

// The elements of `like`, over and over: a value that is legal in one place is legal in the others.
TensorData filled_like(const TensorData& like, DType dtype, const Dims& dims) {
  const TensorData source = convert(like.view(), dtype);
  TensorData value = TensorData::zeros(dtype, dims);
  const size_t bytes = dtype_bytes(dtype);
  if (source.count() == 0) return value;
  for (int64_t i = 0; i < value.count(); ++i)
    std::memcpy(static_cast<char*>(value.mutable_data()) + static_cast<size_t>(i) * bytes,
                static_cast<const char*>(source.data()) + static_cast<size_t>(i % source.count()) * bytes, bytes);
  return value;
}

std::vector<Dims> other_shapes(const Dims& dims) {
  std::vector<Dims> shapes;
  const auto changed = [&](auto&& change) { change(shapes.emplace_back(dims)); };
  changed([](Dims& d) { d.insert(d.begin(), 1); });
  changed([](Dims& d) { d.push_back(2); });
  if (dims.empty()) return shapes;
  changed([](Dims& d) { d.erase(d.begin()); });
  changed([](Dims& d) { d.pop_back(); });
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    changed([&](Dims& d) { ++d[axis]; });
    if (dims[axis] > 1) changed([&](Dims& d) { --d[axis]; });
    if (dims[axis] > 2) changed([&](Dims& d) { d[axis] = 1; });
  }
  return shapes;
}

struct Variant {
  Graph graph;
  std::vector<TensorData> inputs;
  std::string what;
};

// Replaces the value of one graph input or constant.
Variant with_operand(const Graph& graph, const std::vector<TensorData>& inputs, TensorId id, const TensorData& value) {
  Variant v{graph, inputs, {}};
  Tensor& tensor = v.graph.tensor(id);
  tensor.dtype = value.dtype();
  tensor.shape = to_shape(value.dims());
  if (tensor.is_constant()) tensor.constant = value;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (v.graph.inputs()[i] == id) v.inputs[i] = value;
  v.what = "'" + tensor.name + "' as " + std::string(dtype_name(value.dtype())) + to_string(value.dims());
  return v;
}

std::vector<Variant> variants_of(const Graph& graph, const std::vector<TensorData>& inputs) {
  std::vector<Variant> all;
  const auto add = [&](TensorId id, const TensorData& value) {
    for (const Dims& dims : other_shapes(value.dims()))
      all.push_back(with_operand(graph, inputs, id, filled_like(value, value.dtype(), dims)));
    for (const DType dtype : {DType::Float32, DType::Float64, DType::Int64, DType::Int32, DType::UInt8, DType::Bool})
      if (dtype != value.dtype()) all.push_back(with_operand(graph, inputs, id, filled_like(value, dtype, value.dims())));
  };
  for (size_t t = 0; t < graph.tensor_count(); ++t) {
    const TensorId id{static_cast<int32_t>(t)};
    if (graph.is_constant(id)) add(id, graph.tensor(id).constant);
  }
  for (size_t i = 0; i < inputs.size(); ++i) add(graph.inputs()[i], inputs[i]);
  return all;
}

// What only the values of an operand decide, and operators whose operands state shapes as values: their kernels have the last
// word.
bool depends_on_values(const Status& problem, const std::string& text) {
  constexpr std::string_view kOperators[] = {
      "Reshape", "Expand",        "Squeeze",        "Unsqueeze", "Col2Im", "AffineGrid",      "Split", "Tile", "Pad",
      "Slice",   "Resize",        "CenterCropPad",  "DFT",       "STFT",   "MelWeightMatrix", "If",    "Loop", "ScatterElements",
      "TopK",    "QLinearMatMul", "GatherElements", "ArgMin",    "ArgMax"};
  const bool is_classic = text.find("(ai.onnx.ml:") != text.npos;  // their attributes meet the number of features in the kernel
  if (problem.code() != Code::ShapeMismatch || is_classic) return true;
  return std::ranges::any_of(kOperators,
                             [&](std::string_view op) { return text.find("(" + std::string(op) + ")") != text.npos; });
}

TEST(OperandRules, kernels_compute_what_shape_rules_accept) {
  size_t refused = 0, computed = 0;
  for (const std::string& path : op_case_files()) {
    const auto cases = read_op_cases(path);
    ASSERT_TRUE(cases) << cases.status().to_string();
    for (const OpCase& c : *cases) {
      const auto graph = parse(c.graph);
      if (!c.error.empty() || !graph) continue;
      for (Variant& v : variants_of(*graph, c.inputs)) {
        if (!infer_shapes(v.graph, ops::builtin_ops())) {
          ++refused;
          continue;
        }
        const auto results = ops::eval_graph(v.graph, ops::builtin_ops(), v.inputs);
        computed += results.is_ok();
        if (results) continue;
        const std::string text = results.status().to_string();
        EXPECT_TRUE(depends_on_values(results.status(), text)) << c.file << "/" << c.name << " with " << v.what << ": " << text;
      }
    }
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(computed, 1000);
}

std::string inferred(const std::string& text) {
  auto graph = parse(text);
  return graph ? infer_shapes(*graph, ops::builtin_ops()).to_string() : graph.status().to_string();
}
std::string with_constant(const std::string& inputs, const std::string& constant, const std::string& call) {
  return "graph \"g\" (" + inputs + ") -> (%y) {\n  %c: " + constant + "\n  %y = " + call + "\n}\n";
}

// Values of constants that no input can make valid are refused with the model, and not by the first inference.
TEST(OperandRules, constants_out_of_range_are_refused_before_a_kernel_runs) {
  const std::string scatter = "%x: float32[3,4], %u: float32[1,4]", nd = "%x: float32[3,4], %u: float32[2]",
                    layer = "%x: float32[3,2,2], %w: float32[1,8,2], %r: float32[1,8,2], %b: float32[1,16]",
                    gru = "%x: float32[3,2,2], %w: float32[1,6,2], %r: float32[1,6,2], %b: float32[1,12]",
                    rnn = "%x: float32[3,2,2], %w: float32[1,2,2], %r: float32[1,2,2], %b: float32[1,4]";
  struct {
    std::string inputs, type, good, bad, call, problem;
  } const rows[] = {
      {"%x: float32[3,4]", "int64[2]", "-3, 2", "0, 3", "Gather(%x, %c)", "index out of range"},
      {"%x: float32[3,4]", "int32[1]", "-4", "-5", "Gather(%x, %c) {axis = 1}", "index out of range"},
      {"%x: float32[3,4]", "int64[1,2]", "-4, 3", "0, 4", "GatherElements(%x, %c) {axis = 1}", "index out of range"},
      {"%x: float32[3,4]", "int64[1,2]", "-3, 3", "3, 0", "GatherND(%x, %c)", "index out of range"},
      {"%x: float32[2,3,4]", "int64[2,1]", "2, -3", "2, -4", "GatherND(%x, %c) {batch_dims = 1}", "index out of range"},
      {scatter, "int64[1,4]", "2, -3, 0, 1", "3, 0, 0, 0", "ScatterElements(%x, %c, %u)", "index out of range"},
      {nd, "int64[2,2]", "0, 3, -3, -4", "0, 4, 0, 0", "ScatterND(%x, %c, %u)", "index out of range"},
      {layer, "int32[2]", "0, 3", "4, 1", "LSTM(%x, %w, %r, %b, %c)", "a sequence length is out of range"},
      {gru, "int32[2]", "0, 3", "-1, 1", "GRU(%x, %w, %r, %b, %c)", "a sequence length is out of range"},
      {rnn, "int32[2]", "0, 3", "4, 1", "RNN(%x, %w, %r, %b, %c)", "a sequence length is out of range"},
      {"%x: float32[2,1,4,4], %r: float32[1,4]", "int64[1]", "1", "2", "RoiAlign(%x, %r, %c)", "an image that does not exist"},
      {"%x: float32[2,1,4,4], %r: float32[1,4]", "int64[1]", "0", "-1", "RoiAlign(%x, %r, %c)", "an image that does not exist"},
      {"%x: float32[4]", "float32[]", "0", "-1", "QuantizeLinear(%x, %c)", "a quantization scale is not usable"},
      {"%x: float32[4]", "float32[]", "1e-30", "-0.5", "QuantizeLinear(%x, %c)", "a quantization scale is not usable"},
      {"%x: uint8[2,4]", "float32[4]", "1, 2, 0, 4", "1, 2, -3, 4", "DequantizeLinear(%x, %c)",
       "a quantization scale is not usable"},
      {"%x: int8[4]", "float32[]", "2", "nan", "DequantizeLinear(%x, %c)", "a quantization scale is not usable"},
      {"%x: int8[4]", "float32[]", "2", "inf", "DequantizeLinear(%x, %c)", "a quantization scale is not usable"},
      {"%x: float32[1,5,4], %s: float32[1,2,5], %n: int64[1]", "float32[1]", "1", "2", "NonMaxSuppression(%x, %s, %n, %c)",
       "the threshold of overlaps is out of range"},
      {"%x: float32[1,1,2,2]", "int64[1,1,2,2]", "0, 7, 13, 15", "0, 7, 13, 16",
       "MaxUnpool(%x, %c) {kernel_shape = [2,2], strides = [2,2]}", "index out of range"},
      {"%x: float32[1,1,2,2], %i: int64[1,1,2,2]", "int64[4]", "1, 1, 5, 4", "1, 1, 5, 3",
       "MaxUnpool(%x, %i, %c) {kernel_shape = [2,2], strides = [2,2]}", "output_shape has the wrong shape"},
      {"%x: float32[1,2,3,4], %a: float32[5,2], %b: float32[5,2]", "int64[1,3]", "0, 4, 2", "0, 5, 2",
       "RotaryEmbedding(%x, %a, %b, %c)", "a position is out of range"},
      {"%x: float32[2,4,3], %u: float32[2,2,3]", "int64[2]", "0, 2", "0, 3", "TensorScatter(%x, %u, %c) {axis = 1}",
       "write index out of range"},
      {"%x: float32[2,4,3], %u: float32[2,2,3]", "int64[2]", "0, 99", "0, -1",
       "TensorScatter(%x, %u, %c) {axis = 1, mode = \"circular\"}", "write index out of range"},
      {"%x: float32[2,3]", "int64[2]", "0, 3", "1, 4", "ReverseSequence(%x, %c) {batch_axis = 0, time_axis = 1}",
       "sequence length out of range"},
      {"%x: float32[2,1,4,4]", "float32[1,5]", "1, 0, 0, 3, 3", "2, 0, 0, 3, 3", "MaxRoiPool(%x, %c) {pooled_shape = [1,1]}",
       "an image that does not exist"},
      {"%x: float32[2,1,4,4]", "float32[1,5]", "1, 0, 0, 3, 3", "1, 0, 0, 3e9, 3", "MaxRoiPool(%x, %c) {pooled_shape = [1,1]}",
       "a region is out of range"},
      {"%x: float32[2,1,4,4], %i: int64[1]", "float32[1,4]", "0, 0, 3, 3", "0, 0, inf, 3", "RoiAlign(%x, %c, %i)",
       "a region is not finite"},
  };
  for (const auto& row : rows) {
    const std::string accepted = inferred(with_constant(row.inputs, row.type + " = const {" + row.good + "}", row.call));
    EXPECT_EQ(accepted, Status().to_string()) << row.call;
    const std::string refused = inferred(with_constant(row.inputs, row.type + " = const {" + row.bad + "}", row.call));
    EXPECT_NE(refused.find(row.problem), refused.npos) << row.call << " with " << row.bad << ": " << refused;
    EXPECT_NE(refused.find("found"), refused.npos) << refused;
  }
}

// What attributes, shapes and constants together make impossible for every input. `$` stands for the good or the bad part.
TEST(OperandRules, nodes_that_no_input_can_make_valid_are_refused_before_a_kernel_runs) {
  const std::string forest =
      " -> (%y) {\n"
      "  %y = \"ai.onnx.ml:TreeEnsembleRegressor\"(%x) {nodes_treeids = [0,0,0], nodes_nodeids = [0,1,2], target_treeids = [0,0],"
      " target_nodeids = [1,2], target_ids = [0,0], target_weights = floats[1,2], nodes_values = floats[0.5,0,0],"
      " nodes_modes = strings[\"BRANCH_LEQ\",\"LEAF\",\"LEAF\"], nodes_truenodeids = [1,0,0], ";
  const std::string loop = "(%x: float32[1], %n: int64[]) -> (%y, %all) {\n",
                    body = "{body = graph \"b\" (%i: int64[], %c: bool[], %s: float32[1]) -> ";
  const std::string stage = "shift = [20], low = -128, high = 127";
  struct {
    std::string text, good, bad, problem;
  } const rows[] = {
      {"(%x: float32[4]) -> (%y) {\n  %r: float32[] = const {$}\n  %t: bool[] = const {1}\n  %y = Dropout(%x, %r, %t)", "0.5",
       "1", "the ratio is out of range"},
      {"(%x: float32[4]) -> (%y) {\n  %r: float32[] = const {$}\n  %t: bool[] = const {1}\n  %y = Dropout(%x, %r, %t)", "0.5",
       "nan", "the ratio is out of range"},
      {loop + "  %y, %all = Loop($, _, %x) " + body + "(%c, %s, %s) {\n  }}", "%n", "_", "neither a trip count"},
      {loop + "  %m: int64[] = const {$}\n  %y, %all = Loop(%m, _, %x) " + body +
           "(%c, %s, %t) {\n    %e: int64[1] = const {4000000}\n    %t = Expand(%s, %e)\n  }}",
       "60", "70", "take too much memory"},
      {loop + "  %m: int64[] = const {$}\n  %y, %all = Loop(%m, _, %x) " + body +
           "(%c, %t, %t) {\n    %t = Concat(%s, %s) {axis = 0}\n  }}",
       "1", "2", "changes its shape"},
      {"(%x: float32[$]) -> (%all) {\n  %all = Scan(%x) {num_scan_inputs = 1, body = graph \"b\" (%a: float32[]) -> (%t) {\n"
       "    %e: int64[1] = const {4000000}\n    %t = Expand(%a, %e)\n  }}",
       "60", "70", "take too much memory"},
      {"(%x: float32[3,2]) -> (%y) {\n  %y = \"ai.onnx.ml:Normalizer\"(%x) {norm = \"$\"}", "L2", "L3", "unknown norm"},
      {"(%x: float32[3,2]) -> (%y) {\n  %y = \"ai.onnx.ml:Scaler\"(%x) {offset = floats[$], scale = floats[1]}", "1,2", "1,2,3",
       "one per feature"},
      {"(%x: float32[3,2]) -> (%y) {\n  %y = \"ai.onnx.ml:LinearRegressor\"(%x) {coefficients = floats[$]}", "1,2", "1,2,3",
       "do not fit the features"},
      {"(%x: float32[3,2]) -> (%y) {\n  %y = \"ai.onnx.ml:LinearRegressor\"(%x) {coefficients = floats[1,2], targets = $}", "1",
       "2", "do not fit the targets"},
      {"(%x: float32[3,2]) -> (%y, %z) {\n  %y, %z = \"ai.onnx.ml:LinearClassifier\"(%x) {coefficients = floats[1,2,3,4],"
       " classlabels_ints = [$]}",
       "5,6", "5", "one label per score"},
      {"(%x: float32[3,2])" + forest + "nodes_featureids = [$,0,0], nodes_falsenodeids = [2,0,0]}", "1", "2",
       "a feature that samples do not have; expected 0 to 1"},
      {"(%x: float32[3,?])" + forest + "nodes_featureids = [$,0,0], nodes_falsenodeids = [2,0,0]}", "9", "-1",
       "a feature that samples do not have; expected at least 0"},
      {"(%x: float32[3,2])" + forest + "nodes_featureids = [0,9,9], nodes_falsenodeids = [$,0,0]}", "1", "0",
       "a tree has a cycle"},
      {"(%n: float32[]) -> (%y) {\n  %s: int64[2] = const {$}\n  %y = ConstantOfShape(%s)", "3, 4", "65536, 65536",
       "(ConstantOfShape)"},
      {"(%x: float32[3,$]) -> (%y) {\n  %y = Multinomial(%x)", "2", "0", "there is no class"},
      {"(%x: float32[2,3]) -> (%y) {\n  %t: int64[2] = const {$}\n  %y = NegativeLogLikelihoodLoss(%x, %t) {ignore_index = 7}",
       "2, 7", "2, 3", "a class is out of range"},
      {"(%x: float32[2,3]) -> (%y) {\n  %t: int64[2] = const {$}\n  %y = SoftmaxCrossEntropyLoss(%x, %t)", "2, 0", "-1, 0",
       "a class is out of range"},
      {"(%a: uint8[2,4], %s: float32[$], %p: uint8[], %b: uint8[4,3], %t: float32[]) -> (%y) {\n"
       "  %y = QLinearMatMul(%a, %s, %p, %b, %t, %p, %t, %p)",
       "2", "3", "(QLinearMatMul)"},
      {"(%x: float32[$,2]) -> (%y) {\n  %y = ArgMax(%x) {axis = 0}", "1", "0", "no largest or smallest value"},
      {"(%x: float32[$,0]) -> (%y) {\n  %y = ArgMin(%x) {axis = 1}", "0", "1", "no largest or smallest value"},
      {"(%x: float32[$,2,3]) -> (%y) {\n  %s: int64[4] = const {2, 1, 4, 4}\n  %y = AffineGrid(%x, %s)", "2", "1",
       "differ in batch"},
      {"(%x: float32[1,1,4,4], %r: float32[$], %s: float32[4]) -> (%y) {\n"
       "  %y = Resize(%x, %r, %s) {coordinate_transformation_mode = \"tf_crop_and_resize\"}",
       "8", "0", "roi needs two entries per axis"},
      {"(%x: float32[3,4], %i: int64[1,$]) -> (%y) {\n  %y = GatherElements(%x, %i) {axis = 0}", "4", "5",
       "reach beyond the data"},
      {"(%x: float32[$]) -> (%y) {\n  %p: int64[2] = const {1, 1}\n  %y = Pad(%x, %p) {mode = \"edge\"}", "1", "0",
       "can only be padded with a constant"},
      {"(%x: float32[3]) -> (%y) {\n  %p: int64[2] = const {$}\n  %y = Pad(%x, %p) {mode = \"reflect\"}", "-2, 2", "-3, 3",
       "can only be padded with a constant"},
      {"(%x: float32[1,8,1], %w: float32[$]) -> (%y) {\n  %s: int64[] = const {2}\n  %l: int64[] = const {4}\n"
       "  %y = STFT(%x, %s, %w, %l)",
       "4", "5", "differ in length"},
      {"(%x: int8[1,2,3,3], %w: int8[2,2,1,1]) -> (%y) {\n  %y = \"int:Conv\"(%x, %w) {multiplier = [$], " + stage + "}", "1",
       "4294967296", "multiplier is out of range"},
      {"(%x: int8[1,2,3,3], %w: int8[2,2,1,1]) -> (%y) {\n  %y = \"int:ConvTranspose\"(%x, %w) {w_zero_point = [$],"
       " multiplier = [1], " +
           stage + "}",
       "1, 2", "1, 2, 3", "zero points belong"},
      {"(%x: int8[2,3], %w: int8[3,2]) -> (%y) {\n  %y = \"int:MatMul\"(%x, %w) {channel_multiplier = [$], multiplier = [1], " +
           stage + "}",
       "1, 2", "1, 2, 3", "channel_multiplier has the wrong number"},
      {"(%x: int8[2], %w: int8[2]) -> (%y) {\n  %y = \"int:Add\"(%x, %w) {b_shift = $, multiplier = [1], " + stage + "}", "62",
       "63", "b_shift is out of range"},
      {"(%x: int8[2], %w: int8[2], %t: int8[*]) -> (%y) {\n  %y = \"int:Add\"(%x, %w, %t) {multiplier = [1], shift = [$],"
       " low = 0, high = 127}",
       "62", "63", "shift is out of range"},
      {"(%x: int8[1,1,4,4]) -> (%y) {\n  %y = \"int:AveragePool\"(%x) {kernel_shape = [2,2], multiplier = [1], shift = [1],"
       " low = $, high = 127}",
       "-128", "-129", "the bounds of the result"},
      {"(%x: int8[*]) -> (%y) {\n  %y = \"int:AveragePool\"(%x) {kernel_shape = [2,2], x_zero_point = $, multiplier = [1],"
       " shift = [1], low = 0, high = 127}",
       "9", "99999", "x_zero_point is out of range"},
      {"(%x: int8[1,2]) -> (%y) {\n  %y = \"int:ReduceMean\"(%x) {x_zero_point = $, first_axis = 1, end_axis = 2,"
       " multiplier = [1], " +
           stage + "}",
       "9", "99999", "x_zero_point is out of range"},
      {"(%x: int8[1,2]) -> (%y) {\n  %y = \"int:PRelu\"(%x) {slope_multiplier = [$], multiplier = [1], " + stage + "}", "1, 2",
       "1, 2, 3", "slope_multiplier has the wrong number"},
      {"(%x: int8[1,2], %c: int32[2,2]) -> (%y) {\n  %r: int32[1,2] = const {0, $}\n"
       "  %y = \"int:Resize\"(%x, %r, %c) {multiplier = [1], " +
           stage + "}",
       "0", "1", "a place is outside the data"},
      {"(%x: int8[1,2], %t: int32[256]) -> (%y) {\n  %y = \"int:Softmax\"(%x, %t) {y_zero_point = 0, y_factor = $}", "1", "0",
       "y_factor is out of range"},
  };
  for (const auto& row : rows) {
    const size_t place = row.text.find('$');
    ASSERT_NE(place, std::string::npos) << row.text;
    const auto with = [&](const std::string& part) {
      return inferred("graph \"g\" " + std::string(row.text).replace(place, 1, part) + "\n}\n");
    };
    EXPECT_EQ(with(row.good), Status().to_string()) << row.text;
    const std::string refused = with(row.bad);
    EXPECT_NE(refused.find(row.problem), refused.npos) << row.text << " with " << row.bad << ": " << refused;
  }
}

// Graph inputs as constants of the values that a case feeds them.
void make_inputs_constant(Graph& graph, std::span<const TensorData> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    Tensor& tensor = graph.tensor(graph.inputs()[i]);
    tensor.dtype = values[i].dtype();
    tensor.shape = to_shape(values[i].dims());
    tensor.constant = values[i];
  }
}

// Cases that only a run refuses even so, and why.
constexpr std::pair<std::string_view, std::string_view> kOnlyRefusedByRuns[] = {
    {"expand/larger_than_memory", "how much memory there is only a run can tell"},
    {"if_op/types_differ", "where the condition is known, the other branch does not count"},
};

TEST(OperandRules, whatever_a_case_refuses_is_refused_at_load_where_its_inputs_are_constants) {
  size_t refused = 0;
  std::set<std::string_view> excused;
  for (const std::string& path : op_case_files()) {
    const auto cases = read_op_cases(path);
    ASSERT_TRUE(cases) << cases.status().to_string();
    for (const OpCase& c : *cases) {
      auto graph = parse(c.graph);
      if (c.error.empty() || !graph) continue;
      make_inputs_constant(*graph, c.inputs);
      const Status status = infer_shapes(*graph, ops::builtin_ops());
      const std::string name = c.file + "/" + c.name;
      const auto* excuse = std::ranges::find(kOnlyRefusedByRuns, name, &std::pair<std::string_view, std::string_view>::first);
      if (excuse != std::end(kOnlyRefusedByRuns)) {
        excused.insert(excuse->first);
        EXPECT_TRUE(status) << name << " is refused at load and needs no excuse: " << status.to_string();
        continue;
      }
      EXPECT_NE(status.to_string().find(c.error), std::string::npos)
          << name << " should say '" << c.error << "': " << status.to_string();
      refused += !status;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_EQ(excused.size(), std::size(kOnlyRefusedByRuns)) << "a case in the list is gone";
}

// A file from outside may hold an integer layer whose converter cannot be: it is refused when the file is loaded.
TEST(OperandRules, programs_with_impossible_converters_are_refused_by_the_executor) {
  auto graph = parse(
      "graph \"g\" (%x: int8[1,2,3,3]) -> (%y) {\n"
      "  %w: int8[2,2,1,1] = const {1, 2, 3, 4}\n"
      "  %y = \"int:Conv\"(%x, %w) {multiplier = [1], shift = [20], low = -128, high = 127}\n}\n");
  ASSERT_TRUE(graph) << graph.status().to_string();
  ASSERT_TRUE(infer_shapes(*graph, ops::builtin_ops()));
  auto program = compile::compile(*graph, {});
  ASSERT_TRUE(program) << program.status().to_string();
  EXPECT_TRUE(sim::Executor::create(*program, ops::builtin_ops()));
  program->graph.set_attribute(program->tasks[0].node, "shift", std::vector<int64_t>{0});
  const auto refused = sim::Executor::create(*program, ops::builtin_ops());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.status().to_string().find("shift is out of range"), std::string::npos) << refused.status().to_string();
}
}  // namespace
}  // namespace orknn::tests
