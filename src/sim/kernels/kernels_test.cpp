// Every fast kernel in every form this machine can run, against the reference kernels: odd sizes, float32 and float16,
// fused tails, the same bytes from any number of threads, and where floats are to be reproducible, from every form.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "agreement.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "poisoned_context.h"
#include "sim/kernel.h"
#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using ir::Dims;
using ir::Node;
using ir::TensorData;
using ir::TensorId;

struct Argument {
  Dims dims;
  bool constant = false;
  std::vector<double> values = {};  // instead of random ones
  DType dtype = DType::Undefined;   // instead of the case's type
  bool absent = false;
};
Argument weight(Dims dims) { return {std::move(dims), true}; }
Argument ints(std::vector<double> values) { return {{static_cast<int64_t>(values.size())}, true, values, DType::Int64}; }
Argument none() { return {{}, false, {}, DType::Undefined, true}; }

struct Case {
  std::string name;
  std::string op;
  std::vector<Argument> inputs;
  ir::Attributes attributes = {};
  std::vector<ir::TailStep> tail = {};
  std::string kernel;   // expected name; empty = any
  std::string blocked;  // the same of the kernel for maps in blocks; empty = any or none
  double low = -2, high = 2;
  double tolerance = 1e-5;  // of the largest magnitude, float32
  int32_t outputs = 1;
};

TensorData make(const Argument& a, DType dtype, const Case& c, std::mt19937& random) {
  if (a.absent) return {};
  std::vector<double> values = a.values;
  const int64_t count = ir::element_count(a.dims);
  std::uniform_real_distribution<double> distribution(c.low, c.high);
  if (values.empty())
    for (int64_t i = 0; i < count; ++i) values.push_back(distribution(random));
  const TensorData wide = TensorData::from<double>(a.dims, values);
  return ir::convert(wide.view(), a.dtype == DType::Undefined ? dtype : a.dtype);
}

void compare(const TensorData& expected, const TensorData& found, double tolerance, const std::string& what) {
  const std::vector<double> e = ir::to_doubles(expected.view()), f = ir::to_doubles(found.view());
  double magnitude = 0;
  for (double v : e)
    if (std::isfinite(v)) magnitude = std::max(magnitude, std::abs(v));
  const bool half = expected.dtype() == DType::Float16;
  for (size_t i = 0; i < e.size(); ++i) {
    const double allowed = tolerance * magnitude + (half ? std::abs(e[i]) / 1024 + 1e-7 : 0);
    ASSERT_TRUE(tests::agrees(f[i], e[i], allowed))
        << what << ": element " << i << " of " << e.size() << " expected " << e[i] << " found " << f[i];
  }
}

// The operands in the forms that the query names. What blocks hold after the last channel is not a number.
std::vector<TensorData> in_forms(const KernelQuery& query, const std::vector<TensorData>& inputs, ThreadPool& pool) {
  std::vector<TensorData> result = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (query.inputs[i].form == Form::Rows) continue;
    const Dims& dims = inputs[i].dims();
    result[i] = TensorData::allocate(DType::Float32, {blocked_bytes(dims)});
    auto* blocks = static_cast<float*>(result[i].mutable_data());
    kernels::to_blocks(inputs[i].view(), blocks, pool);
    const int64_t count = blocks_of(dims[1]), area = dims[2] * dims[3];
    for (int64_t image = 0; image < dims[0]; ++image)
      for (int64_t channel = dims[1]; channel < count * kBlock; ++channel)
        for (int64_t pixel = 0; pixel < area; ++pixel)
          blocks[((image * count + channel / kBlock) * area + pixel) * kBlock + channel % kBlock] =
              std::numeric_limits<float>::quiet_NaN();
  }
  return result;
}

// A kernel in every form: results near the expected ones, the same for any number of threads and, where floats are to be
// reproducible, those of `reproduced` (which are made if there are none).
void agree(const Kernel& kernel, const KernelQuery& query, const std::vector<TensorData>& inputs,
           const std::vector<TensorData>& expected, double tolerance, const std::string& name,
           std::vector<TensorData>& reproduced) {
  const auto compute = [&](int threads, const std::string& what) {
    ThreadPool pool(threads);
    std::unique_ptr<const KernelState> state;
    if (kernel.prepare) {
      auto prepared = kernel.prepare(query, pool);
      EXPECT_TRUE(prepared) << what;
      state = std::move(*prepared);
    }
    const std::vector<TensorData> operands = in_forms(query, inputs, pool);
    std::vector<ir::TensorView> views;
    for (size_t i = 0; i < inputs.size(); ++i) views.push_back({inputs[i].dtype(), inputs[i].dims(), operands[i].data()});
    std::vector<TensorData> memory, results;
    std::vector<ir::MutableTensorView> out;
    for (size_t i = 0; i < expected.size(); ++i) {
      const TensorData& reference = expected[i];
      const int64_t bytes = query.outputs[i].form == Form::Blocked ? blocked_bytes(reference.dtype(), reference.dims())
                                                                   : static_cast<int64_t>(reference.bytes());
      memory.push_back(TensorData::allocate(DType::UInt8, {bytes}));
      if (bytes) std::memset(memory.back().mutable_data(), 0x7e, memory.back().bytes());
    }
    for (size_t i = 0; i < expected.size(); ++i)
      out.push_back({expected[i].dtype(), expected[i].dims(), memory[i].mutable_data()});
    tests::PoisonedContext context(query.node, query.def, views, out, pool);
    const Status status = kernel.run(context, state.get());
    EXPECT_TRUE(status) << what << status.to_string();
    for (size_t i = 0; i < expected.size(); ++i) {
      results.push_back(TensorData::allocate(expected[i].dtype(), expected[i].dims()));
      TensorData& rows = results.back();
      if (query.outputs[i].form == Form::Blocked)
        kernels::from_blocks(memory[i].data(), {rows.dtype(), rows.dims(), rows.mutable_data()}, pool);
      else if (rows.bytes())
        std::memcpy(rows.mutable_data(), memory[i].data(), rows.bytes());
    }
    return results;
  };
  const kernels::Isa before = kernels::current_isa();
  for (kernels::Isa isa : kernels::available_isas()) {
    kernels::set_current_isa(isa);
    const std::string form =
        name + " " + std::string(dtype_name(expected[0].dtype())) + " " + std::string(kernels::isa_name(isa));
    std::vector<TensorData> first;
    for (int threads : {1, 2, 3}) {
      const std::string what = form + " " + std::to_string(threads) + " threads";
      std::vector<TensorData> results = compute(threads, what);
      for (size_t i = 0; i < results.size(); ++i) {
        if (threads == 1)
          compare(expected[i], results[i], tolerance, what);
        else
          EXPECT_TRUE(ir::identical(first[i].view(), results[i].view())) << what;
      }
      if (threads == 1) first = std::move(results);
    }
    const kernels::ReproducibleFloats floats(true);
    std::vector<TensorData> again = compute(2, form + " reproducible");
    for (size_t i = 0; i < reproduced.size(); ++i)
      EXPECT_TRUE(ir::identical(reproduced[i].view(), again[i].view())) << form << " is not reproducible";
    if (reproduced.empty()) reproduced = std::move(again);
  }
  kernels::set_current_isa(before);
}

void check(const Case& c, DType dtype) {
  std::mt19937 random(7);
  Node node;
  node.op = c.op;
  node.name = c.name;
  node.attributes = c.attributes;
  node.tail = c.tail;
  std::vector<TensorData> inputs;
  std::vector<OperandFacts> facts;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    inputs.push_back(make(c.inputs[i], dtype, c, random));
    node.inputs.push_back(c.inputs[i].absent ? TensorId{} : TensorId{static_cast<int32_t>(i)});
  }
  for (size_t i = 0; i < c.inputs.size(); ++i)
    facts.push_back({inputs[i].dtype(), inputs[i].dims(), c.inputs[i].constant ? &inputs[i] : nullptr});
  for (int32_t i = 0; i < c.outputs; ++i) node.outputs.push_back(TensorId{100 + i});
  const auto expected = ops::eval_node(node, ops::builtin_ops(), inputs);
  ASSERT_TRUE(expected) << c.name << ": " << expected.status().to_string();
  const ir::OpDef& def = *ops::builtin_ops().find(node.op);
  std::vector<OperandFacts> outputs;
  for (const TensorData& reference : *expected) outputs.push_back({reference.dtype(), reference.dims(), nullptr});
  const KernelQuery query{node, def, facts, outputs};
  const Kernel* kernel = find_kernel(query);
  ASSERT_NE(kernel, nullptr) << c.name << ": no kernel accepts it";
  if (!c.kernel.empty()) {
    EXPECT_EQ(kernel->name, c.kernel) << c.name;
  }
  std::vector<TensorData> reproduced;
  ASSERT_NO_FATAL_FAILURE(agree(*kernel, query, inputs, *expected, c.tolerance, c.name, reproduced));
  // Maps in blocks; pictures may also be in rows.
  const auto is_map = [](const OperandFacts& o) { return o.exists() && !o.constant && can_be_blocked(o.dtype, o.dims); };
  if (!std::ranges::all_of(outputs, is_map)) return;
  for (OperandFacts& o : outputs) o.form = Form::Blocked;
  for (const bool first_in_rows : {true, false}) {
    for (size_t i = first_in_rows ? 1 : 0; i < facts.size(); ++i)
      if (is_map(facts[i])) facts[i].form = Form::Blocked;
    const Kernel* blocked = find_kernel(query);
    if (!first_in_rows && !c.blocked.empty()) {
      ASSERT_NE(blocked, nullptr) << c.name << ": no kernel of blocks accepts it";
      EXPECT_EQ(blocked->name, c.blocked) << c.name;
    }
    if (!blocked) continue;
    // Where floats are to be reproducible they are those of rows.
    ASSERT_NO_FATAL_FAILURE(
        agree(*blocked, query, inputs, *expected, c.tolerance, c.name + " " + std::string(blocked->name), reproduced));
  }
}

using Tail = std::vector<ir::TailStep>;
ir::Attribute list(std::vector<int64_t> v) { return v; }

Case convolution(std::string name, Dims x, Dims w, ir::Attributes attributes, bool bias = true,
                 std::string kernel = "conv_gemm") {
  Case c{.name = std::move(name),
         .op = "Conv",
         .inputs = {{x}, weight(w)},
         .attributes = std::move(attributes),
         .kernel = std::move(kernel)};
  if (bias) c.inputs.push_back(weight({w[0]}));
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](Case c) { all.push_back(std::move(c)); };
  // convolution
  add(convolution("pointwise", {1, 5, 7, 7}, {9, 5, 1, 1}, {}));
  add(convolution("pointwise_wide", {2, 17, 13, 11}, {33, 17, 1, 1}, {}, false));
  add(convolution("pointwise_long", {1, 3, 1, 500}, {8, 3, 1, 1}, {}));
  add(convolution("pointwise_stride", {1, 6, 9, 9}, {12, 6, 1, 1}, {{"strides", list({2, 2})}}));
  add(convolution("three", {1, 4, 14, 14}, {16, 4, 3, 3}, {{"pads", list({1, 1, 1, 1})}}));
  add(convolution("three_small", {2, 3, 3, 2}, {5, 3, 3, 3}, {{"pads", list({1, 1, 1, 1})}}));
  add(convolution("three_wide", {1, 3, 6, 75}, {7, 3, 3, 3}, {{"pads", list({1, 1, 1, 1})}}));
  add(convolution("three_stride", {1, 3, 33, 35}, {16, 3, 3, 3}, {{"pads", list({1, 1, 1, 1})}, {"strides", list({2, 2})}}));
  add(convolution("three_stride_even", {1, 2, 40, 80}, {8, 2, 3, 3}, {{"pads", list({0, 0, 1, 1})}, {"strides", list({2, 2})}}));
  add(convolution("seven_stride", {1, 3, 41, 43}, {9, 3, 7, 7}, {{"pads", list({3, 3, 3, 3})}, {"strides", list({2, 2})}}));
  add(convolution("patch", {1, 3, 32, 32}, {10, 3, 8, 8}, {{"strides", list({8, 8})}}));
  add(convolution("stride_three", {1, 2, 20, 22}, {4, 2, 3, 5}, {{"pads", list({1, 2, 0, 1})}, {"strides", list({3, 3})}}));
  add(convolution("dilated", {1, 4, 17, 19}, {6, 4, 3, 3}, {{"pads", list({2, 2, 2, 2})}, {"dilations", list({2, 2})}}));
  add(convolution("far_padding", {1, 2, 5, 5}, {3, 2, 3, 3}, {{"pads", list({6, 5, 4, 7})}}));
  add(convolution("same_upper", {1, 2, 7, 8}, {3, 2, 4, 4},
                  {{"auto_pad", std::string("SAME_UPPER")}, {"strides", list({2, 2})}}));
  add(convolution("same_lower", {1, 2, 7, 8}, {3, 2, 4, 4},
                  {{"auto_pad", std::string("SAME_LOWER")}, {"strides", list({2, 2})}}));
  add(convolution("grouped", {2, 12, 9, 9}, {20, 3, 3, 3}, {{"pads", list({1, 1, 1, 1})}, {"group", int64_t{4}}}));
  add(convolution("deep", {1, 400, 5, 7}, {11, 400, 3, 3}, {{"pads", list({1, 1, 1, 1})}}));
  add(convolution("many_rows", {1, 40, 7, 7}, {200, 40, 3, 3}, {{"pads", list({1, 1, 1, 1})}}));
  add(convolution("many_columns", {1, 8, 60, 61}, {8, 8, 3, 3}, {{"pads", list({1, 1, 1, 1})}}));
  add(convolution("one_axis", {2, 4, 50}, {6, 4, 5}, {{"pads", list({2, 2})}}));
  add(convolution("three_axes", {1, 2, 5, 6, 7}, {4, 2, 3, 3, 3},
                  {{"pads", list({1, 1, 1, 1, 1, 1})}, {"strides", list({1, 2, 1})}}));
  add(convolution("empty_batch", {0, 2, 5, 6}, {4, 2, 3, 3}, {}));
  // computed weights and biases
  const auto computed = [&](std::string name, Dims x, Dims w, ir::Attributes attributes, bool weights, bool bias) {
    Case c = convolution("computed_" + name, std::move(x), std::move(w), std::move(attributes));
    c.inputs[1].constant = !weights;
    c.inputs[2].constant = !bias;
    add(c);
  };
  computed("weights", {2, 5, 9, 11}, {13, 5, 3, 3}, {{"pads", list({1, 1, 1, 1})}}, true, false);
  computed("bias", {2, 5, 9, 11}, {13, 5, 3, 3}, {{"pads", list({1, 1, 1, 1})}}, false, true);
  computed("both", {1, 6, 9, 11}, {10, 3, 3, 3}, {{"strides", list({2, 2})}, {"group", int64_t{2}}}, true, true);
  computed("each_channel", {1, 6, 9, 11}, {6, 1, 3, 3}, {{"group", int64_t{6}}}, true, true);
  computed("deep", {1, 400, 5, 7}, {11, 400, 3, 3}, {{"pads", list({1, 1, 1, 1})}}, true, true);
  // tails on a convolution
  const auto with_tail = [&](std::string name, Tail tail, std::vector<Argument> operands) {
    Case c = convolution(std::move(name), {2, 6, 10, 9}, {13, 6, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
    c.tail = std::move(tail);
    for (Argument& a : operands) c.inputs.push_back(std::move(a));
    add(c);
    c.name += "_depthwise";
    c.kernel = "conv_depthwise_channels";
    c.inputs[0].dims = {2, 13, 10, 9};
    c.inputs[1] = weight({13, 1, 3, 3});
    c.attributes.set("group", int64_t{13});
    add(c);
  };
  with_tail("tail_relu", {{.op = "Relu"}}, {});
  with_tail("tail_clip", {{.op = "Clip", .attributes = {{"min", 0.0}, {"max", 6.0}}}}, {});
  with_tail("tail_swish", {{.op = "Swish"}}, {});
  with_tail("tail_add_relu", {{.op = "Add", .operand = 3}, {.op = "Relu"}}, {{{2, 13, 10, 9}}});
  with_tail("tail_add_broadcast",
            {{.op = "Add", .operand = 3}, {.op = "Mul", .operand = 4}, {.op = "Sub", .operand = 5, .operand_first = true}},
            {{{13, 1, 1}}, {{1}}, {{1, 1, 10, 9}}});
  with_tail("tail_prelu", {{.op = "PRelu", .operand = 3}}, {{{13, 1, 1}}});
  with_tail("tail_batch", {{.op = "Mul", .operand = 3}, {.op = "HardSwish"}}, {{{2, 13, 1, 1}}});
  // depthwise
  const auto depthwise = [&](std::string name, Dims x, Dims w, ir::Attributes attributes) {
    attributes.set("group", x[1]);
    const char* kernel = x[1] < 8 || w[0] != x[1] ? "conv_depthwise" : "conv_depthwise_channels";
    add(convolution("depthwise_" + name, x, w, std::move(attributes), true, kernel));
  };
  depthwise("channels_three", {2, 16, 14, 15}, {16, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  depthwise("channels_three_stride", {1, 40, 21, 19}, {40, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}, {"strides", list({2, 2})}});
  depthwise("channels_even_stride", {1, 33, 20, 22}, {33, 1, 3, 3}, {{"pads", list({0, 0, 1, 1})}, {"strides", list({2, 2})}});
  depthwise("channels_five", {1, 19, 7, 7}, {19, 1, 5, 5}, {{"pads", list({2, 2, 2, 2})}});
  depthwise("channels_unpadded", {1, 8, 9, 11}, {8, 1, 2, 3}, {});
  depthwise("channels_dilated", {1, 24, 13, 12}, {24, 1, 3, 3}, {{"pads", list({2, 3, 2, 3})}, {"dilations", list({2, 3})}});
  depthwise("channels_bands", {1, 17, 90, 70}, {17, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  depthwise("channels_tiny", {1, 16, 2, 3}, {16, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  depthwise("channels_one_axis", {1, 20, 50}, {20, 1, 5}, {{"pads", list({4, 0})}});
  depthwise("three", {1, 5, 20, 37}, {5, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  depthwise("three_stride", {2, 3, 21, 40}, {3, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}, {"strides", list({2, 2})}});
  depthwise("five", {1, 3, 14, 14}, {3, 1, 5, 5}, {{"pads", list({2, 2, 2, 2})}});
  depthwise("five_stride", {1, 3, 30, 31}, {3, 1, 5, 5}, {{"pads", list({2, 2, 2, 2})}, {"strides", list({2, 2})}});
  depthwise("seven_wide", {1, 2, 9, 100}, {2, 1, 7, 7}, {{"pads", list({3, 3, 3, 3})}});
  depthwise("tiny", {1, 4, 2, 3}, {4, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  depthwise("stride_three", {1, 4, 19, 18}, {4, 1, 3, 2}, {{"strides", list({3, 3})}});
  depthwise("dilated", {1, 3, 19, 18}, {3, 1, 3, 3}, {{"pads", list({2, 3, 2, 3})}, {"dilations", list({2, 3})}});
  depthwise("multiplier", {1, 3, 9, 10}, {6, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  depthwise("one_axis", {1, 3, 50}, {3, 1, 5}, {{"pads", list({4, 0})}});
  depthwise("bands", {1, 2, 200, 300}, {2, 1, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
  // transposed
  const auto transposed = [&](std::string name, Dims x, Dims w, ir::Attributes attributes, Tail tail = {}) {
    const int64_t groups = attributes.int_or("group", 1);
    add({.name = "transposed_" + name,
         .op = "ConvTranspose",
         .inputs = {{x}, weight(w), weight({w[1] * groups})},
         .attributes = std::move(attributes),
         .tail = std::move(tail),
         .kernel = "conv_transpose"});
  };
  transposed("two", {1, 6, 7, 5}, {6, 9, 2, 2}, {{"strides", list({2, 2})}}, {{.op = "Relu"}});
  transposed("three", {2, 4, 6, 5}, {4, 3, 3, 3},
             {{"strides", list({2, 2})}, {"pads", list({1, 1, 1, 1})}, {"output_padding", list({1, 1})}});
  transposed("four", {1, 4, 6, 5}, {4, 3, 4, 4}, {{"strides", list({2, 2})}, {"pads", list({1, 1, 1, 1})}}, {{.op = "Sigmoid"}});
  transposed("plain", {1, 4, 6, 5}, {4, 3, 3, 3}, {{"pads", list({1, 0, 1, 0})}});
  transposed("gaps", {1, 2, 4, 4}, {2, 3, 2, 2}, {{"strides", list({3, 3})}});
  transposed("dilated", {1, 2, 5, 6}, {2, 3, 3, 3}, {{"strides", list({2, 3})}, {"dilations", list({2, 2})}});
  transposed("grouped", {1, 6, 5, 6}, {6, 2, 3, 3}, {{"strides", list({2, 2})}, {"group", int64_t{3}}});
  transposed("one_axis", {1, 3, 20}, {3, 4, 4}, {{"strides", list({2})}, {"pads", list({1, 1})}});
  // matrix products
  const auto matmul = [&](std::string name, Argument a, Argument b) {
    add({.name = "matmul_" + name, .op = "MatMul", .inputs = {std::move(a), std::move(b)}, .kernel = "matmul"});
  };
  matmul("weights", {{1, 13, 50}}, weight({50, 70}));
  matmul("one_row", {{1, 100}}, weight({100, 333}));
  matmul("batched", {{3, 2, 19, 21}}, {{3, 2, 21, 23}});
  matmul("broadcast", {{3, 1, 9, 21}}, {{2, 21, 10}});
  matmul("broadcast_left", {{9, 21}}, {{4, 21, 10}});
  matmul("one_matrix", {{3, 2, 9, 21}}, {{21, 10}});
  matmul("deep", {{5, 4000}}, {{4000, 60}});
  matmul("tall", {{600, 33}}, weight({33, 17}));
  const auto gemm = [&](std::string name, Argument a, Argument b, std::vector<Argument> c, ir::Attributes attributes,
                        Tail tail = {}) {
    Case one{.name = "gemm_" + name,
             .op = "Gemm",
             .inputs = {std::move(a), std::move(b)},
             .attributes = std::move(attributes),
             .tail = std::move(tail),
             .kernel = "matmul"};
    for (Argument& x : c) one.inputs.push_back(std::move(x));
    add(one);
  };
  gemm("plain", {{7, 40}}, weight({40, 51}), {weight({51})}, {}, {{.op = "Relu"}});
  gemm("transposed", {{1, 40}}, weight({100, 40}), {weight({100})}, {{"transB", int64_t{1}}});
  gemm("scaled", {{40, 9}}, {{33, 40}}, {weight({9, 1})},
       {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5}, {"beta", 2.0}});
  gemm("dynamic_c", {{6, 5}}, {{5, 20}}, {{{6, 20}}}, {});
  gemm("tail", {{6, 5}}, weight({5, 20}), {weight({20})}, {}, {{.op = "Gelu"}, {.op = "Add", .operand = 3}});
  all.back().inputs.push_back({{6, 20}});
  // pools
  const auto pool = [&](std::string op, std::string name, Dims x, ir::Attributes attributes) {
    add({.name = op + "_" + name, .op = op, .inputs = {{std::move(x)}}, .attributes = std::move(attributes), .kernel = "pool"});
  };
  for (const char* op : {"MaxPool", "AveragePool"}) {
    pool(op, "two", {2, 3, 12, 14}, {{"kernel_shape", list({2, 2})}, {"strides", list({2, 2})}});
    pool(op, "three", {1, 5, 23, 35}, {{"kernel_shape", list({3, 3})}, {"strides", list({2, 2})}, {"pads", list({1, 1, 1, 1})}});
    pool(op, "five", {1, 5, 20, 20}, {{"kernel_shape", list({5, 5})}, {"pads", list({2, 2, 2, 2})}});
    pool(op, "ceil", {1, 2, 10, 11}, {{"kernel_shape", list({3, 3})}, {"strides", list({2, 2})}, {"ceil_mode", int64_t{1}}});
    pool(op, "dilated", {1, 2, 20, 21}, {{"kernel_shape", list({3, 2})}, {"dilations", list({2, 3})}, {"strides", list({3, 1})}});
    pool(op, "one_axis", {1, 2, 41}, {{"kernel_shape", list({4})}, {"strides", list({3})}, {"pads", list({1, 2})}});
    pool(op, "three_axes", {2, 3, 8, 12, 21}, {{"kernel_shape", list({2, 2, 2})}, {"strides", list({2, 2, 2})}});
    pool(op, "three_axes_padded", {1, 3, 7, 9, 35},
         {{"kernel_shape", list({3, 3, 3})}, {"pads", list({1, 1, 1, 1, 1, 1})}, {"strides", list({1, 2, 1})}});
    pool(op, "three_axes_ceil", {1, 2, 7, 6, 9},
         {{"kernel_shape", list({3, 2, 4})},
          {"pads", list({2, 0, 1, 0, 1, 2})},
          {"strides", list({2, 1, 3})},
          {"dilations", list({2, 1, 1})},
          {"ceil_mode", int64_t{1}}});
    pool(op, "three_axes_tail", {2, 3, 5, 6, 7}, {{"kernel_shape", list({2, 3, 3})}});
    all.back().tail = {{.op = "Add", .operand = 1}, {.op = "Relu"}};
    all.back().inputs.push_back({{2, 3, 4, 4, 5}});
  }
  pool("AveragePool", "with_padding", {1, 5, 23, 35},
       {{"kernel_shape", list({3, 3})}, {"pads", list({1, 1, 1, 1})}, {"count_include_pad", int64_t{1}}});
  pool("AveragePool", "with_padding_three_axes", {1, 2, 6, 7, 8},
       {{"kernel_shape", list({3, 3, 3})}, {"pads", list({1, 0, 1, 1, 1, 0})}, {"count_include_pad", int64_t{1}}});
  pool("AveragePool", "with_padding_ceil", {1, 2, 10, 11},
       {{"kernel_shape", list({3, 3})},
        {"strides", list({2, 2})},
        {"pads", list({1, 1, 0, 0})},
        {"ceil_mode", int64_t{1}},
        {"count_include_pad", int64_t{1}}});
  add({.name = "global_average", .op = "GlobalAveragePool", .inputs = {{{2, 5, 7, 9}}}, .kernel = "reduce"});
  add({.name = "global_max", .op = "GlobalMaxPool", .inputs = {{{2, 5, 7, 9}}}, .kernel = "reduce"});
  // element-wise
  for (const std::string_view name : kernels::kVectorOperators) {
    const std::string op(name);
    if (op == "Identity") continue;  // alone it is a copy
    if (op == "Sqrt" || op == "Log" || op == "Reciprocal") {
      add({.name = "unary_" + op, .op = op, .inputs = {{{333}}}, .kernel = "elementwise", .low = 0.01, .high = 9});
      continue;
    }
    for (double range : {0.3, 3.0, 9.0})
      add({.name = "unary_" + op + std::to_string(range),
           .op = op,
           .inputs = {{{3, 5, 17}}},
           .kernel = "elementwise",
           .low = -range,
           .high = range});
  }
  add({.name = "unary_gelu_tanh",
       .op = "Gelu",
       .inputs = {{{333}}},
       .attributes = {{"approximate", std::string("tanh")}},
       .kernel = "elementwise",
       .low = -5,
       .high = 5});
  add({.name = "unary_long", .op = "Sigmoid", .inputs = {{{70000}}}, .kernel = "elementwise"});
  // Functions without a vector form are called element by element, alone and in tails.
  add({.name = "unary_called", .op = "Atan", .inputs = {{{333}}}, .kernel = "elementwise"});
  add({.name = "unary_called_tail",
       .op = "Add",
       .inputs = {{{5, 7}}, {{7}}},
       .tail = Tail{{.op = "Sinh"}},
       .kernel = "elementwise"});
  {
    Case c = convolution("tail_called", {1, 4, 14, 14}, {16, 4, 3, 3}, {{"pads", list({1, 1, 1, 1})}});
    c.tail = Tail{{.op = "Atan"}};
    add(std::move(c));
  }
  add({.name = "clip", .op = "Clip", .inputs = {{{333}}, {{}, true, {-0.5}}, {{}, true, {1}}}, .kernel = "elementwise"});
  add({.name = "clip_low", .op = "Clip", .inputs = {{{333}}, none(), {{}, true, {1}}}, .kernel = "elementwise"});
  for (double exponent : {3.0, -0.5})
    add({.name = "power_" + std::to_string(exponent),
         .op = "Pow",
         .inputs = {{{333}}, {{}, true, {exponent}}},
         .kernel = "elementwise",
         .low = 0.1,
         .high = 9});
  for (const char* op : {"Sin", "Cos"})
    for (double range : {100.0, 8000.0, 1e6})
      add({.name = std::string("far_") + op + std::to_string(range),
           .op = op,
           .inputs = {{{1000}}},
           .kernel = "elementwise",
           .low = -range,
           .high = range});
  add({.name = "square", .op = "Pow", .inputs = {{{333}}, {{}, true, {2}}}, .kernel = "elementwise"});
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* op : {"Relu", "LeakyRelu", "Sigmoid", "HardSwish", "HardSigmoid", "Tanh", "Elu", "Softplus", "Exp", "Log",
                         "Sqrt", "Erf", "Abs", "Sin", "Cos", "Sign"})
    add({.name = std::string("special_") + op,
         .op = op,
         .inputs = {{{9}, false, {nan, inf, -inf, 0.0, -0.0, 100, -100, 1e-6, -1e-6}}},
         .kernel = "elementwise"});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"}) {
    const std::string name = std::string("binary_") + op;
    add({.name = name + "_same", .op = op, .inputs = {{{2, 3, 50, 7}}, {{2, 3, 50, 7}}}, .kernel = "elementwise", .low = 0.5});
    add({.name = name + "_channel", .op = op, .inputs = {{{2, 3, 5, 7}}, {{3, 1, 1}}}, .kernel = "elementwise", .low = 0.5});
    add({.name = name + "_left", .op = op, .inputs = {{{7}}, {{2, 3, 5, 7}}}, .kernel = "elementwise", .low = 0.5});
    add({.name = name + "_scalar", .op = op, .inputs = {{{2, 3, 5, 7}}, {{}, true, {1.5}}}, .kernel = "elementwise", .low = 0.5});
    add({.name = name + "_outer", .op = op, .inputs = {{{4, 1, 5, 1}}, {{3, 1, 7}}}, .kernel = "elementwise", .low = 0.5});
    add({.name = name + "_tail",
         .op = op,
         .inputs = {{{2, 3, 50, 7}}, {{3, 1, 1}}, {{50, 1}}},
         .tail = {{.op = "Relu"}, {.op = "Mul", .operand = 2}},
         .kernel = "elementwise",
         .low = 0.5});
  }
  add({.name = "binary_nan",
       .op = "Max",
       .inputs = {{{4}, false, {nan, 1, nan, 2}}, {{4}, false, {1, nan, nan, 3}}},
       .kernel = "elementwise"});
  add({.name = "prelu", .op = "PRelu", .inputs = {{{2, 3, 5, 7}}, {{3, 1, 1}}}, .kernel = "elementwise"});
  add({.name = "empty", .op = "Add", .inputs = {{{0, 3}}, {{3}}}, .kernel = "elementwise"});
  // softmax
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    add({.name = std::string(op) + "_rows", .op = op, .inputs = {{{5, 3, 197}}}, .kernel = "softmax", .low = -8, .high = 8});
    add({.name = std::string(op) + "_short", .op = op, .inputs = {{{5, 300, 3}}}, .kernel = "softmax", .low = -8, .high = 8});
    add({.name = std::string(op) + "_columns",
         .op = op,
         .inputs = {{{2, 16, 4, 33}}},
         .attributes = {{"axis", int64_t{1}}},
         .kernel = "softmax",
         .low = -8,
         .high = 8});
    add({.name = std::string(op) + "_flatten",
         .op = op,
         .inputs = {{{2, 4, 33}}},
         .attributes = {{"axis", int64_t{1}}, {"flatten", int64_t{1}}},
         .kernel = "softmax"});
  }
  add({.name = "softmax_masked",
       .op = "Softmax",
       .inputs = {{{2, 4}, false, {1, -inf, 2, -inf, -inf, -inf, -inf, -inf}}},
       .kernel = "softmax"});
  // normalizations
  add({.name = "layer_norm",
       .op = "LayerNormalization",
       .inputs = {{{2, 50, 96}}, weight({96}), weight({96})},
       .kernel = "normalize_rows"});
  add({.name = "layer_norm_axes",
       .op = "LayerNormalization",
       .inputs = {{{3, 5, 7}}, weight({5, 7})},
       .attributes = {{"axis", int64_t{1}}},
       .kernel = "normalize_rows"});
  add({.name = "rms_norm", .op = "RMSNormalization", .inputs = {{{2, 11, 45}}, weight({45})}, .kernel = "normalize_rows"});
  add({.name = "instance_norm",
       .op = "InstanceNormalization",
       .inputs = {{{2, 3, 11, 45}}, weight({3}), weight({3})},
       .kernel = "normalize_channels"});
  add({.name = "group_norm",
       .op = "GroupNormalization",
       .inputs = {{{2, 6, 11, 5}}, weight({6}), weight({6})},
       .attributes = {{"num_groups", int64_t{2}}},
       .kernel = "normalize_channels"});
  add({.name = "batch_norm",
       .op = "BatchNormalization",
       .inputs = {{{2, 6, 11, 5}}, weight({6}), weight({6}), weight({6}), weight({6})},
       .kernel = "batch_norm",
       .low = 0.1});
  for (const Dims& x : {Dims{2, 6, 11, 5}, Dims{1, 3, 50, 47}, Dims{4, 6}})
    add({.name = "batch_norm_tail_" + std::to_string(ir::element_count(x)),
         .op = "BatchNormalization",
         .inputs = {{x}, weight({x[1]}), weight({x[1]}), weight({x[1]}), weight({x[1]}), {x}},
         .tail = {{.op = "Relu"}, {.op = "Mul", .operand = 5}, {.op = "Sigmoid"}},
         .kernel = "batch_norm",
         .low = 0.1});
  // reductions
  for (const char* op : {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare"}) {
    add({.name = std::string(op) + "_last", .op = op, .inputs = {{{3, 7, 129}}, ints({-1})}, .kernel = "reduce"});
    add({.name = std::string(op) + "_image",
         .op = op,
         .inputs = {{{2, 5, 7, 9}}, ints({2, 3})},
         .attributes = {{"keepdims", int64_t{0}}},
         .kernel = "reduce"});
    add({.name = std::string(op) + "_middle", .op = op, .inputs = {{{2, 31, 7, 9}}, ints({1})}, .kernel = "reduce"});
    add({.name = std::string(op) + "_all", .op = op, .inputs = {{{2, 31, 7}}}, .kernel = "reduce"});
  }
  // resize
  const auto resize = [&](std::string name, Dims x, std::vector<double> scales, std::vector<double> sizes,
                          ir::Attributes attributes) {
    Case c{.name = "resize_" + name,
           .op = "Resize",
           .inputs = {{std::move(x)}, none()},
           .attributes = std::move(attributes),
           .kernel = "resize"};
    if (sizes.empty())
      c.inputs.push_back({{static_cast<int64_t>(scales.size())}, true, scales, DType::Float32});
    else
      c.inputs.push_back(none()), c.inputs.push_back(ints(sizes));
    if (c.attributes.string_or("mode", "").empty()) c.attributes.set("mode", std::string("linear"));
    add(c);
  };
  resize("twice", {1, 3, 20, 21}, {1, 1, 2, 2}, {}, {});
  resize("corners", {2, 3, 7, 9}, {}, {2, 3, 20, 37}, {{"coordinate_transformation_mode", std::string("align_corners")}});
  resize("asymmetric", {1, 2, 9, 40}, {1, 1, 3, 2.5}, {}, {{"coordinate_transformation_mode", std::string("asymmetric")}});
  resize("smaller", {1, 2, 40, 70}, {1, 1, 0.3, 0.4}, {},
         {{"coordinate_transformation_mode", std::string("pytorch_half_pixel")}});
  resize("antialias", {1, 2, 40, 70}, {1, 1, 0.3, 0.4}, {}, {{"antialias", int64_t{1}}});
  resize("cubic", {1, 2, 11, 13}, {1, 1, 2, 3}, {}, {{"mode", std::string("cubic")}});
  resize("cubic_inside", {1, 2, 11, 13}, {1, 1, 2, 0.7}, {}, {{"mode", std::string("cubic")}, {"exclude_outside", int64_t{1}}});
  resize("only_rows", {1, 2, 11, 33}, {1, 1, 2, 1}, {}, {});
  resize("only_columns", {3, 11, 33}, {}, {3, 11, 50}, {});
  resize("one_axis", {33}, {2}, {}, {});
  resize("bands", {1, 2, 300, 200}, {1, 1, 2, 2}, {}, {});
  // recurrent
  const auto recurrent = [&](std::string name, std::string op, int64_t gates, Dims x, int64_t hidden, ir::Attributes attributes,
                             bool states = false) {
    const bool batch_first = attributes.int_or("layout", 0) != 0;
    const int64_t directions = attributes.string_or("direction", "forward") == "bidirectional" ? 2 : 1, rows = gates * hidden,
                  batch = x[batch_first ? 0 : 1];
    Case c{.name = op + "_" + name,
           .op = op,
           .inputs = {{x}, weight({directions, rows, x[2]}), weight({directions, rows, hidden}), weight({directions, 2 * rows})},
           .attributes = std::move(attributes),
           .kernel = "recurrent",
           .low = -0.25,
           .high = 0.25,
           .outputs = op == "LSTM" ? 3 : 2};
    c.attributes.set("hidden_size", hidden);
    if (states) {
      const Dims state = batch_first ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
      c.inputs.push_back(none());
      c.inputs.push_back({state});
      if (op == "LSTM") c.inputs.push_back({state});
    }
    add(c);
  };
  for (const auto& [op, gates] : {std::pair{"LSTM", 4}, {"GRU", 3}, {"RNN", 1}}) {
    recurrent("forward", op, gates, {9, 1, 20}, 33, {});
    recurrent("batch", op, gates, {7, 11, 5}, 16, {}, true);
    recurrent("reverse", op, gates, {5, 2, 9}, 7, {{"direction", std::string("reverse")}});
    recurrent("both", op, gates, {6, 3, 9}, 20, {{"direction", std::string("bidirectional")}}, true);
    recurrent("batch_first", op, gates, {3, 6, 9}, 20, {{"direction", std::string("bidirectional")}, {"layout", int64_t{1}}},
              true);
  }
  recurrent("reset_after", "GRU", 3, {6, 3, 9}, 20,
            {{"linear_before_reset", int64_t{1}}, {"direction", std::string("bidirectional")}}, true);
  recurrent("blocks", "RNN", 1, {40, 256, 3}, 110, {{"direction", std::string("reverse")}});
  all.back().low = -0.05, all.back().high = 0.05;  // larger weights make such a network magnify rounding errors
  recurrent("named", "LSTM", 4, {4, 1, 6}, 5, {{"activations", std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"}}});
  // einsum
  const auto einsum = [&](std::string equation, Dims a, Dims b) {
    add({.name = "einsum " + equation,
         .op = "Einsum",
         .inputs = {{std::move(a)}, {std::move(b)}},
         .attributes = {{"equation", equation}},
         .kernel = "einsum"});
  };
  einsum("bhid,bhjd->bhij", {2, 3, 19, 8}, {2, 3, 21, 8});
  einsum("bhij,bhjd->bhid", {2, 3, 19, 21}, {2, 3, 21, 8});
  einsum("bhij,bhjd->bihd", {2, 3, 19, 21}, {2, 3, 21, 8});  // the result between batches
  einsum("bihd,bjhd->bhij", {2, 19, 3, 8}, {2, 21, 3, 8});
  einsum("bij,bjk->bki", {2, 9, 50}, {2, 50, 11});  // the result transposed
  einsum("ij,kj->ik", {9, 50}, {11, 50});
  einsum("ji,jk->ik", {50, 9}, {50, 11});                // the left one transposed
  einsum("bchw,bkhw->bck", {2, 5, 7, 6}, {2, 9, 7, 6});  // two summed
  einsum("nctkv,kvw->nctw", {2, 3, 4, 2, 5}, {2, 5, 6});
  einsum("abc,cdb->da", {7, 4, 6}, {6, 5, 4});
  einsum("i,j->ij", {9}, {50});
  einsum("bij,bj->bi", {2, 9, 50}, {2, 50});
  einsum("...ij,...jk->...ik", {2, 1, 9, 20}, {3, 20, 11});
  einsum("iac,jbc->abij", {5, 4, 8}, {6, 3, 8});  // nothing lies right
  // attention
  const auto attend = [&](std::string name, std::vector<Argument> inputs, ir::Attributes attributes) {
    add({.name = "attention_" + name,
         .op = "Attention",
         .inputs = std::move(inputs),
         .attributes = std::move(attributes),
         .kernel = "attention"});
  };
  attend("heads", {{{2, 3, 19, 8}}, {{2, 3, 53, 8}}, {{2, 3, 53, 5}}}, {});
  attend("joined", {{{2, 19, 24}}, {{2, 21, 24}}, {{2, 21, 24}}}, {{"q_num_heads", int64_t{3}}, {"kv_num_heads", int64_t{3}}});
  attend("grouped_causal", {{{1, 4, 30, 8}}, {{1, 2, 30, 8}}, {{1, 2, 30, 8}}}, {{"is_causal", int64_t{1}}, {"scale", 0.25}});
  attend("mask", {{{2, 3, 9, 8}}, {{2, 3, 7, 8}}, {{2, 3, 7, 5}}, {{2, 1, 9, 7}}}, {});
  attend("bool_mask",
         {{{1, 2, 3, 8}}, {{1, 2, 4, 8}}, {{1, 2, 4, 5}}, {{3, 4}, false, {1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1}, DType::Bool}},
         {});
  attend("blocks", {{{1, 1, 200, 4}}, {{1, 1, 700, 4}}, {{1, 1, 700, 4}}}, {});
  return all;
}

TEST(ForEachJob, EveryJobOnceOnAWorkerOfItsOwn) {
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const int64_t jobs : {0, 1, 2, 15, 16, 17, 100, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(jobs)), busy(static_cast<size_t>(threads));
      kernels::for_each_job(pool, jobs, [&](int64_t job, int64_t worker) {
        EXPECT_EQ(busy[static_cast<size_t>(worker)]++, 0);
        ++seen[static_cast<size_t>(job)];
        --busy[static_cast<size_t>(worker)];
      });
      for (const std::atomic<int>& n : seen) EXPECT_EQ(n, 1) << jobs << " jobs, " << threads << " threads";
    }
  }
}

TEST(Kernels, AgreeWithReference) {
  for (const Case& c : cases())
    for (DType dtype : {DType::Float32, DType::Float16}) {
      check(c, dtype);
      if (HasFatalFailure()) return;
    }
}

// Maps in blocks: channels that fill their blocks and others, all remainders of tiles, tails with operands of every kind.
std::vector<Case> map_cases() {
  std::vector<Case> all;
  const auto conv = [&](std::string name, Dims x, Dims w, ir::Attributes attributes, std::string blocked = "blocked_float_conv") {
    const bool depthwise = w[1] == 1 && x[1] > 1;
    if (depthwise) attributes.set("group", x[1]);
    Case c = convolution(std::move(name), std::move(x), std::move(w), std::move(attributes), true,
                         depthwise ? "conv_depthwise_channels" : "conv_gemm");
    c.blocked = std::move(blocked);
    all.push_back(c);
  };
  const auto pads = [](int64_t n) { return list({n, n, n, n}); };
  conv("pointwise", {2, 20, 9, 11}, {40, 20, 1, 1}, {});
  conv("pointwise_large", {1, 33, 40, 41}, {16, 33, 1, 1}, {});
  conv("pointwise_stride", {1, 32, 15, 14}, {24, 32, 1, 1}, {{"strides", list({2, 2})}});
  conv("one_pixel", {1, 48, 1, 1}, {5, 48, 1, 1}, {});
  conv("picture", {1, 3, 33, 31}, {24, 3, 3, 3}, {{"strides", list({2, 2})}, {"pads", pads(1)}});
  conv("stride", {2, 17, 15, 18}, {35, 17, 3, 3}, {{"strides", list({2, 2})}, {"pads", pads(1)}});
  conv("stride_three", {1, 16, 16, 20}, {16, 16, 3, 2}, {{"strides", list({3, 3})}, {"pads", list({0, 1, 2, 1})}});
  conv("five", {1, 16, 9, 10}, {18, 16, 5, 5}, {{"pads", pads(2)}});
  conv("dilated", {1, 16, 12, 13}, {16, 16, 3, 3}, {{"pads", pads(2)}, {"dilations", list({2, 2})}});
  conv("bands", {1, 16, 90, 110}, {16, 16, 3, 3}, {{"pads", pads(2)}, {"dilations", list({2, 2})}});
  conv("taps_apart", {1, 96, 19, 20}, {16, 96, 3, 3}, {{"pads", pads(12)}, {"dilations", list({12, 12})}});
  conv("taps_outside", {1, 96, 19, 20}, {16, 96, 3, 3},
       {{"pads", pads(24)}, {"dilations", list({24, 24})}, {"strides", list({2, 1})}});
  // By tiles.
  for (int64_t size = 8; size < 14; ++size)
    conv("tiles" + std::to_string(size), {1, 32, size, 21 - size}, {32, 32, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
  conv("tiles_partial", {2, 23, 16, 15}, {41, 23, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
  conv("tiles_unpadded", {1, 32, 18, 17}, {16, 32, 3, 3}, {}, "blocked_float_3x3");
  conv("tiles_far_padding", {1, 32, 11, 12}, {16, 32, 3, 3}, {{"pads", list({3, 6, 5, 2})}}, "blocked_float_3x3");
  conv("tiles_many", {1, 16, 70, 66}, {16, 16, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
  conv("tiles_deep", {1, 256, 14, 14}, {32, 256, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
  conv("tiles_infinite", {1, 32, 16, 15}, {32, 32, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
  all.back().inputs[0].values.assign(static_cast<size_t>(32 * 16 * 15), 0.25);
  all.back().inputs[0].values[1234] = std::numeric_limits<double>::infinity();
  all.back().inputs[0].values[4321] = std::numeric_limits<double>::quiet_NaN();
  conv("tiles_huge", {1, 32, 16, 15}, {32, 32, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
  all.back().inputs[0].values.assign(static_cast<size_t>(32 * 16 * 15), 1e36);
  // Channel by channel.
  conv("depthwise", {2, 40, 14, 15}, {40, 1, 3, 3}, {{"pads", pads(1)}}, "blocked_float_depthwise");
  conv("depthwise_stride", {1, 24, 21, 19}, {24, 1, 5, 5}, {{"pads", pads(2)}, {"strides", list({2, 2})}},
       "blocked_float_depthwise");
  conv("depthwise_dilated", {1, 16, 13, 12}, {16, 1, 3, 3}, {{"pads", list({2, 3, 2, 3})}, {"dilations", list({2, 3})}},
       "blocked_float_depthwise");
  conv("depthwise_edges", {1, 16, 13, 40}, {16, 1, 3, 3}, {{"pads", list({2, 3, 2, 3})}, {"dilations", list({2, 3})}},
       "blocked_float_depthwise");
  conv("depthwise_rows_outside", {1, 16, 5, 24}, {16, 1, 3, 5}, {{"pads", list({4, 2, 4, 1})}, {"strides", list({1, 2})}},
       "blocked_float_depthwise");
  conv("depthwise_wide", {1, 16, 9, 20}, {16, 1, 7, 13}, {{"pads", list({3, 6, 3, 6})}}, "blocked_float_depthwise");
  conv("depthwise_tiny", {1, 16, 2, 3}, {16, 1, 3, 3}, {{"pads", list({3, 1, 1, 2})}}, "blocked_float_depthwise");
  conv("depthwise_outside", {1, 16, 5, 6}, {16, 1, 3, 3}, {{"pads", list({4, 4, 4, 3})}}, "blocked_float_depthwise");
  conv("depthwise_unpadded", {1, 16, 60, 70}, {16, 1, 3, 3}, {}, "blocked_float_depthwise");
  // Tails.
  const std::vector<std::pair<Tail, std::vector<Argument>>> tails = {
      {{{.op = "Relu"}}, {}},
      {{{.op = "Clip", .attributes = {{"min", 0.0}, {"max", 6.0}}}, {.op = "Swish"}}, {}},
      {{{.op = "Add", .operand = 3}, {.op = "Relu"}}, {{{2, 24, 10, 9}}}},
      {{{.op = "Add", .operand = 3}, {.op = "Mul", .operand = 4}, {.op = "Sub", .operand = 5, .operand_first = true}},
       {weight({24, 1, 1}), weight({1}), {{1, 24, 10, 9}}}},
      {{{.op = "Mul", .operand = 3}, {.op = "HardSwish"}, {.op = "Add", .operand = 4}}, {{{2, 24, 1, 1}}, {{1, 1, 1, 1}}}},
  };
  for (const auto& [tail, operands] : tails) {
    conv("tail", {2, 24, 10, 9}, {24, 24, 1, 1}, {});
    conv("tail", {2, 24, 10, 9}, {24, 24, 3, 3}, {{"pads", pads(1)}}, "blocked_float_3x3");
    conv("tail", {2, 24, 10, 9}, {24, 1, 3, 3}, {{"pads", pads(1)}}, "blocked_float_depthwise");
    for (size_t i = all.size() - 3; i < all.size(); ++i) {
      all[i].tail = tail;
      for (const Argument& a : operands) all[i].inputs.push_back(a);
    }
  }
  // Other layers.
  const auto other = [&](std::string op, std::vector<Argument> inputs, ir::Attributes attributes, std::string blocked) {
    all.push_back({.name = "map_" + op, .op = op, .inputs = std::move(inputs), .attributes = std::move(attributes)});
    all.back().blocked = std::move(blocked);
  };
  const Argument map{{2, 40, 13, 10}};
  other("Sigmoid", {map}, {}, "blocked_float_elements");
  other("Add", {map, map}, {}, "blocked_float_elements");
  other("Sub", {{{2, 40, 1, 1}}, map}, {}, "blocked_float_elements");
  other("Mul", {map, {{1, 40, 1, 1}}}, {}, "blocked_float_elements");
  other("Div", {map, weight({1})}, {}, "blocked_float_elements");
  all.back().tail = {{.op = "Add", .operand = 2}, {.op = "Tanh"}};
  all.back().inputs.push_back(map);
  other("GlobalAveragePool", {map}, {}, "blocked_float_mean");
  other("ReduceMean", {map, ints({-1, 2})}, {}, "blocked_float_mean");
  other("GlobalAveragePool", {{{1, 16, 70, 60}}}, {}, "blocked_float_mean");
  for (const char* op : {"MaxPool", "AveragePool"}) {
    other(op, {map}, {{"kernel_shape", list({3, 3})}, {"strides", list({2, 2})}, {"pads", pads(1)}}, "blocked_float_pool");
    other(op, {map}, {{"kernel_shape", list({5, 5})}, {"pads", pads(2)}}, "blocked_float_pool");
    other(op, {map}, {{"kernel_shape", list({2, 3})}, {"strides", list({2, 2})}, {"ceil_mode", int64_t{1}}},
          "blocked_float_pool");
    other(op, {map}, {{"kernel_shape", list({3, 2})}, {"dilations", list({2, 3})}}, "blocked_float_pool");
  }
  other("AveragePool", {map},
        {{"kernel_shape", list({3, 3})},
         {"pads", list({1, 0, 1, 1})},
         {"strides", list({2, 2})},
         {"count_include_pad", int64_t{1}}},
        "blocked_float_pool");
  other("Concat", {{{2, 16, 5, 6}}, {{2, 32, 5, 6}}, {{2, 7, 5, 6}}}, {{"axis", int64_t{1}}}, "blocked_concat");
  other("Resize", {{{2, 20, 5, 6}}, none(), {{4}, true, {1, 1, 2, 2}, DType::Float32}}, {{"mode", std::string("nearest")}},
        "blocked_nearest");
  return all;
}

TEST(Kernels, MapsInBlocksAgreeWithReference) {
  for (const Case& c : map_cases()) {
    check(c, DType::Float32);
    if (HasFatalFailure()) return;
  }
}

// Sums midway between two floats and below the normal ones are what a product and a sum rounded apart get wrong.
TEST(Kernels, ReproducibleProductsAreRoundedOnce) {
  constexpr size_t kRows = 64;
  std::vector<float> a, b, c;
  std::mt19937 random(11);
  for (size_t i = 0; i < kRows; ++i) {
    const float x = 1 + std::ldexp(static_cast<float>(random() % (1 << 20)), -23);
    a.push_back(i % 3 == 0 ? std::ldexp(x, -70) : x);
    b.push_back(i % 3 == 0 ? std::ldexp(1.5f, -72) : i % 3 == 1 ? 1 + std::ldexp(1.f, -12) : x);
    c.push_back(i % 3 == 0 ? std::ldexp(1.f, -140) : i % 3 == 1 ? std::ldexp(1.f, 12) : -x * x);
  }
  // One row of a 1 x 2 by 2 x 1 product: 1 * c + a * b.
  const kernels::Isa before = kernels::current_isa();
  for (kernels::Isa isa : kernels::available_isas()) {
    kernels::set_current_isa(isa);
    const kernels::ReproducibleFloats floats(true);
    for (size_t i = 0; i < kRows; ++i) {
      const float left[2] = {1, a[i]}, right[2] = {c[i], b[i]};
      Node node;
      node.op = "MatMul";
      node.inputs = {TensorId{0}, TensorId{1}};
      node.outputs = {TensorId{2}};
      const TensorData x = TensorData::from<float>({1, 2}, std::vector<float>(left, left + 2)),
                       y = TensorData::from<float>({2, 1}, std::vector<float>(right, right + 2));
      const ir::OpDef& def = *ops::builtin_ops().find(node.op);
      const std::vector<OperandFacts> facts{{x.dtype(), x.dims(), nullptr}, {y.dtype(), y.dims(), nullptr}},
          outputs{{DType::Float32, {1, 1}, nullptr}};
      const KernelQuery query{node, def, facts, outputs};
      const Kernel* kernel = find_kernel(query);
      ASSERT_NE(kernel, nullptr);
      ThreadPool pool(1);
      auto state = kernel->prepare(query, pool);
      ASSERT_TRUE(state);
      TensorData result = TensorData::allocate(DType::Float32, {1, 1});
      const std::vector<ir::TensorView> views{x.view(), y.view()};
      const std::vector<ir::MutableTensorView> out{{result.dtype(), result.dims(), result.mutable_data()}};
      tests::PoisonedContext context(node, def, views, out, pool);
      ASSERT_TRUE(kernel->run(context, state->get()));
      EXPECT_EQ(result.as<float>()[0], std::fma(a[i], b[i], c[i])) << kernels::isa_name(isa) << " " << i;
    }
  }
  kernels::set_current_isa(before);
}

}  // namespace
}  // namespace orknn::sim
