// Custom operators through the C API: life cycle, what callbacks see, every refusal.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/log.h"
#include "compile/compile.h"
#include "format/rknn_file.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "openrknn.h"
#include "ops/custom_ops.h"
#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "runtime/checker.h"
#include "runtime/custom_op_callbacks.h"
#include "runtime/custom_op_opencl.h"
#include "runtime/session.h"

namespace orknn {
namespace {

// cstTwice gives a tensor like its first input, ArgMax is the standard one kept as a custom node.
std::shared_ptr<const ops::CustomOps> declared() {
  ops::CustomOp twice{"cstTwice"};
  twice.infer = [](const ir::Node&, std::span<const ops::CustomTensor> inputs) -> Result<std::vector<ops::CustomTensor>> {
    return std::vector<ops::CustomTensor>{inputs[0]};
  };
  return *ops::CustomOps::with(*ops::CustomOps::with(nullptr, twice), {"ArgMax"});
}

format::Model model_of(const std::vector<std::string>& texts, DType float_dtype = DType::Float32) {
  const auto custom = declared();
  format::Model model;
  model.name = "custom";
  model.target_platform = "rk3588";
  model.float_dtype = std::string(dtype_name(float_dtype));
  for (const std::string& text : texts) {
    auto graph = ir::parse(text);
    EXPECT_TRUE(graph) << graph.status().to_string();
    Status inferred = ir::infer_shapes(*graph, custom->op_set());
    EXPECT_TRUE(inferred) << inferred.to_string();
    compile::CompileOptions options;
    options.ops = &custom->op_set();
    options.float_dtype = float_dtype;
    auto program = compile::compile(std::move(*graph), options);
    EXPECT_TRUE(program) << program.status().to_string();
    if (texts.size() > 1) program->label = std::to_string(model.programs.size());
    model.programs.push_back(std::move(*program));
  }
  format::place_weights(model);
  return model;
}

// Two nodes of the same type, one after the other; the second has a constant of integers.
std::string two_nodes(const std::string& shape = "[1,2,1,3]") {
  return R"(graph "g" (%x: float32)" + shape + R"() -> (%y) {
  %k: int32[2] = const {7, 8}
  %a = "custom:cstTwice"(%x) {alpha=0.5, sizes=[3, 4], flag=1, scales=floats[0.25, 2.5], mode="fast"} "first"
  %y = "custom:cstTwice"(%a, %k) "second"
})";
}
const std::string kArgMax = R"(graph "g" (%x: float32[1,3,1,2]) -> (%y) {
  %y = "custom:ArgMax"(%x) {axis=1} "arg"
})";

using Tensors = rknn_custom_op_tensor*;

// What the callbacks below have seen and how they should behave.
struct Record {
  int inits = 0, prepares = 0, computes = 0, destroys = 0;
  int init_result = 0, prepare_result = 0, compute_result = 0;
  int failing_init = -1;  // number of the call that returns init_result; -1 = all
  bool throws = false;
  std::vector<rknn_custom_op_tensor> last_inputs, last_outputs;
  std::vector<void*> private_data;
} record;

int init(rknn_custom_op_context* op, Tensors in, uint32_t n_in, Tensors out, uint32_t n_out) {
  EXPECT_EQ(op->target, RKNN_TARGET_TYPE_CPU);
  EXPECT_EQ(op->priv_data, nullptr);
  const int number = record.inits++;
  record.last_inputs.assign(in, in + n_in);
  record.last_outputs.assign(out, out + n_out);
  op->priv_data = new int(number);
  const int result = record.failing_init < 0 || record.failing_init == number ? record.init_result : 0;
  if (result < 0) delete static_cast<int*>(op->priv_data);
  return result;
}
int prepare(rknn_custom_op_context*, Tensors, uint32_t, Tensors, uint32_t) {
  EXPECT_EQ(record.prepares++, record.computes);
  return record.prepare_result;
}
int compute(rknn_custom_op_context* op, Tensors in, uint32_t n_in, Tensors out, uint32_t n_out) {
  ++record.computes;
  record.last_inputs.assign(in, in + n_in);
  record.last_outputs.assign(out, out + n_out);
  record.private_data.push_back(op->priv_data);
  if (record.throws) throw std::runtime_error("a callback of C++");
  const auto* x = static_cast<const float*>(in[0].mem.virt_addr);
  auto* y = static_cast<float*>(out[0].mem.virt_addr);
  for (uint32_t i = 0; i < out[0].attr.n_elems; ++i) y[i] = 2 * x[i];
  return record.compute_result;
}
int destroy(rknn_custom_op_context* op) {
  ++record.destroys;
  delete static_cast<int*>(op->priv_data);
  return 0;
}

rknn_custom_op twice() {
  rknn_custom_op op{};
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  std::strcpy(op.op_type, "cstTwice");
  op.init = init;
  op.prepare = prepare;
  op.compute = compute;
  op.destroy = destroy;
  return op;
}

class CustomOp : public testing::Test {
 protected:
  void SetUp() override { record = {}; }
  void TearDown() override {
    if (context) rknn_destroy(context);
  }
  void open(const format::Model& model) {
    std::vector<std::byte> bytes = *format::write_rknn_to_memory(model);
    ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC)
        << orknn_last_error();
  }
  void feed(std::vector<float> values) {
    rknn_input input{};
    input.buf = values.data();
    input.size = static_cast<uint32_t>(values.size() * 4);
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = RKNN_TENSOR_NCHW;
    ASSERT_EQ(rknn_inputs_set(context, 1, &input), RKNN_SUCC) << orknn_last_error();
  }
  std::vector<float> result() {
    rknn_output out{};
    out.want_float = 1;
    EXPECT_EQ(rknn_outputs_get(context, 1, &out, nullptr), RKNN_SUCC) << orknn_last_error();
    const auto* p = static_cast<const float*>(out.buf);
    std::vector<float> values(p, p + out.size / 4);
    rknn_outputs_release(context, 1, &out);
    return values;
  }
  int registered(rknn_custom_op op) { return rknn_register_custom_ops(context, &op, 1); }
  rknn_context context = 0;
};

TEST_F(CustomOp, LifeCycle) {
  open(model_of({two_nodes()}));
  ASSERT_EQ(registered(twice()), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(record.inits, 2);
  EXPECT_EQ(record.computes, 0);
  feed({1, 2, 3, 4, 5, 6});
  for (int run = 1; run <= 3; ++run) {
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(record.prepares, 2 * run);
    EXPECT_EQ(record.computes, 2 * run);
    EXPECT_EQ(result(), (std::vector<float>{4, 8, 12, 16, 20, 24}));
  }
  EXPECT_NE(record.private_data[0], record.private_data[1]);
  EXPECT_EQ(record.private_data[0], record.private_data[4]);
  EXPECT_EQ(record.destroys, 0);
  ASSERT_EQ(rknn_destroy(context), RKNN_SUCC);
  context = 0;
  EXPECT_EQ(record.destroys, 2);
}

TEST_F(CustomOp, TensorsAreFloat32InSourceOrder) {
  open(model_of({two_nodes()}, DType::Float16));
  ASSERT_EQ(registered(twice()), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(record.last_inputs.size(), 2u);  // of the second node
  EXPECT_EQ(record.last_inputs[1].attr.type, RKNN_TENSOR_INT32);
  ASSERT_NE(record.last_inputs[1].mem.virt_addr, nullptr);
  EXPECT_EQ(static_cast<const int32_t*>(record.last_inputs[1].mem.virt_addr)[1], 8);
  feed({1, 2, 3, 4, 5, 6});
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  for (const rknn_custom_op_tensor& t : {record.last_inputs[0], record.last_outputs[0]}) {
    EXPECT_EQ(t.attr.type, RKNN_TENSOR_FLOAT32);
    EXPECT_EQ(t.attr.fmt, RKNN_TENSOR_NCHW);
    EXPECT_EQ(t.attr.qnt_type, RKNN_TENSOR_QNT_NONE);
    EXPECT_EQ(std::vector<uint32_t>(t.attr.dims, t.attr.dims + 5), (std::vector<uint32_t>{1, 2, 1, 3, 0}));
    EXPECT_EQ(t.attr.n_dims, 4u);
    EXPECT_EQ(t.attr.n_elems, 6u);
    EXPECT_EQ(t.attr.size, 24u);
    EXPECT_EQ(t.mem.size, 24u);
    EXPECT_EQ(t.mem.offset, 0);
  }
  EXPECT_STREQ(record.last_inputs[0].attr.name, "a");
  EXPECT_STREQ(record.last_outputs[0].attr.name, "y");
  EXPECT_EQ(record.last_inputs[1].attr.fmt, RKNN_TENSOR_UNDEFINED);
  EXPECT_EQ(result(), (std::vector<float>{4, 8, 12, 16, 20, 24}));
}

// --- attributes

std::vector<rknn_custom_op_attr> asked(rknn_custom_op_context* op, const std::vector<const char*>& names) {
  std::vector<rknn_custom_op_attr> list(names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    std::memset(&list[i], 0xee, sizeof list[i]);
    rknn_custom_op_get_op_attr(op, names[i], &list[i]);
  }
  return list;
}

int check_attributes(rknn_custom_op_context* op, Tensors, uint32_t n_in, Tensors, uint32_t) {
  if (n_in != 1) return 0;  // the second node has none
  const auto found = asked(op, {"alpha", "sizes", "flag", "scales", "mode", "name", "unknown"});
  EXPECT_EQ(found[0].dtype, RKNN_TENSOR_FLOAT32);
  EXPECT_EQ(found[0].n_elems, 1u);
  EXPECT_EQ(*static_cast<float*>(found[0].data), 0.5f);
  EXPECT_STREQ(found[0].name, "alpha");
  EXPECT_EQ(found[1].dtype, RKNN_TENSOR_INT64);
  EXPECT_EQ(found[1].n_elems, 2u);
  EXPECT_EQ(static_cast<int64_t*>(found[1].data)[1], 4);
  EXPECT_EQ(found[2].dtype, RKNN_TENSOR_INT64);
  EXPECT_EQ(*static_cast<int64_t*>(found[2].data), 1);
  EXPECT_EQ(found[3].n_elems, 2u);
  EXPECT_EQ(static_cast<float*>(found[3].data)[1], 2.5f);
  EXPECT_EQ(found[4].dtype, RKNN_TENSOR_UINT8);
  EXPECT_STREQ(static_cast<char*>(found[4].data), "fast");
  EXPECT_EQ(found[5].n_elems, 5u);
  EXPECT_STREQ(static_cast<char*>(found[5].data), "first");
  EXPECT_EQ(found[6].n_elems, 0u);
  EXPECT_EQ(found[6].data, nullptr);
  EXPECT_STREQ(found[6].name, "unknown");
  return 0;
}

TEST_F(CustomOp, Attributes) {
  open(model_of({two_nodes()}));
  rknn_custom_op op = twice();
  op.init = check_attributes;
  op.destroy = nullptr;
  ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
}

TEST_F(CustomOp, AttributesOfNothing) {
  rknn_custom_op_context empty{};
  rknn_custom_op_attr attr;
  const auto is_empty = [&](const char* name, rknn_custom_op_context* op) {
    std::memset(&attr, 0xee, sizeof attr);
    rknn_custom_op_get_op_attr(op, name, &attr);
    return attr.n_elems == 0 && attr.data == nullptr;
  };
  EXPECT_TRUE(is_empty("alpha", nullptr));
  EXPECT_TRUE(is_empty("alpha", &empty));
  EXPECT_TRUE(is_empty(nullptr, &empty));
  rknn_custom_op_get_op_attr(&empty, "alpha", nullptr);
}

int axis_of_arg_max(rknn_custom_op_context* op, Tensors, uint32_t, Tensors out, uint32_t) {
  const auto found = asked(op, {"axis", "keepdims"});
  EXPECT_EQ(*static_cast<int64_t*>(found[0].data), 1);
  EXPECT_EQ(found[1].n_elems, 1u);  // absent in the node: the value of the standard
  EXPECT_EQ(*static_cast<int64_t*>(found[1].data), 1);
  EXPECT_EQ(out[0].attr.type, RKNN_TENSOR_INT64);
  for (uint32_t i = 0; i < out[0].attr.n_elems; ++i) static_cast<int64_t*>(out[0].mem.virt_addr)[i] = 40 + i;
  return 0;
}

TEST_F(CustomOp, StandardOperatorIsReplaced) {
  open(model_of({kArgMax}));
  feed({1, 9, 3, 4, 2, 6});
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(result(), (std::vector<float>{1, 0}));  // not registered: the built-in one
  rknn_custom_op op{};
  op.target = RKNN_TARGET_TYPE_CPU;
  std::strcpy(op.op_type, "ArgMax");
  op.compute = axis_of_arg_max;
  ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(result(), (std::vector<float>{40, 41}));
}

// Models whose nodes are the standard operator's, as they are converted without any declaration.
const std::string kSigmoids = R"(graph "g" (%x: float32[1,2,1,3]) -> (%y) {
  %a = Sigmoid(%x) "first"
  %b = Neg(%a)
  %y = Sigmoid(%b) "second"
})";

TEST_F(CustomOp, BuiltInOperatorsAreReplacedWithoutDeclaration) {
  rknn_custom_op op = twice();
  std::strcpy(op.op_type, "Sigmoid");
  for (const DType type : {DType::Float32, DType::Float16}) {
    record = {};
    open(model_of({kSigmoids}, type));
    feed({1, 2, 3, 4, 5, 6});
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    const std::vector<float> standard = result();
    ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(record.inits, 2);
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(result(), (std::vector<float>{-4, -8, -12, -16, -20, -24}));
    EXPECT_EQ(record.last_inputs[0].attr.type, RKNN_TENSOR_FLOAT32);
    rknn_context copy = 0;
    ASSERT_EQ(rknn_dup_context(&context, &copy), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(record.inits, 4);
    std::swap(copy, context);
    feed({1, 1, 1, 1, 1, 1});
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(result(), std::vector<float>(6, -4.f));
    rknn_destroy(context);
    context = copy;
    record.init_result = RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE;
    ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(result(), standard) << "init gave the nodes back";
    rknn_destroy(context);
    context = 0;
    EXPECT_EQ(record.destroys, 4);
  }
}

TEST_F(CustomOp, ReplacedOperatorsSeeQuantizedTensorsAsFloats) {
  format::Model model = model_of({R"(graph "g" (%x: int8[1,4]) -> (%y) {
  %a: int8[1,4] = Identity(%x)
  %y: int8[1,4] = Concat(%a) {axis=1}
})"});
  ir::Graph& g = model.programs[0].graph;
  g.tensor(g.inputs()[0]).quant = ir::QuantParams{{0.5f}, {3}, -1, {}, {}};
  g.tensor(g.outputs()[0]).quant = ir::QuantParams{{0.25f}, {-5}, -1, {}, {}};
  rknn_custom_op op = twice();
  const ir::Node& last = g.node(g.producer(g.outputs()[0]));
  if (!g.tensor(last.inputs[0]).quant) g.tensor(last.inputs[0]).quant = ir::QuantParams{{0.5f}, {3}, -1, {}, {}};
  std::strcpy(op.op_type, last.op.c_str());
  open(model);
  ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
  feed({1, -2, 3.5f, 1000});
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(result(), (std::vector<float>{2, -4, 7, (127 + 5) * 0.25f}));
}

TEST_F(CustomOp, InitMayAskForTheBuiltInOperator) {
  open(model_of({kArgMax}));
  feed({1, 9, 3, 4, 2, 6});
  rknn_custom_op op = twice();
  record.init_result = RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE;
  std::strcpy(op.op_type, "ArgMax");
  ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(result(), (std::vector<float>{1, 0}));
  EXPECT_EQ(record.computes, 0);
  rknn_destroy(context);
  context = 0;
  EXPECT_EQ(record.destroys, 0);

  open(model_of({two_nodes()}));
  EXPECT_EQ(registered(twice()), RKNN_ERR_FAIL);
  EXPECT_NE(std::string(orknn_last_error()).find("built-in"), std::string::npos) << orknn_last_error();
}

// --- refusals

TEST_F(CustomOp, RecordsAreChecked) {
  open(model_of({two_nodes()}));
  rknn_custom_op op = twice();
  EXPECT_EQ(rknn_register_custom_ops(0, &op, 1), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_register_custom_ops(context + 1000, &op, 1), RKNN_ERR_CTX_INVALID);
  EXPECT_EQ(rknn_register_custom_ops(context, nullptr, 1), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_register_custom_ops(context, &op, 0), RKNN_ERR_PARAM_INVALID);
  const auto changed = [&](auto change) {
    rknn_custom_op bad = twice();
    change(bad);
    return registered(bad);
  };
  const auto on_gpu = [](rknn_custom_op& o) {
    o.target = RKNN_TARGET_TYPE_GPU;
    std::strcpy(o.cl_kernel_name, "k");
    static char source[] = "__kernel void k() {}";
    o.cl_kernel_source = source;
    o.cl_source_size = sizeof source - 1;
  };
  EXPECT_EQ(changed([](auto& o) { o.op_type[0] = 0; }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(changed([](auto& o) { o.compute = nullptr; }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(changed([](auto& o) { o.compute_native = compute; }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(changed([](auto& o) { o.target = static_cast<rknn_target_type>(0); }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(changed([](auto& o) { o.target = RKNN_TARGET_TYPE_MAX; }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(changed([&](auto& o) { on_gpu(o), o.cl_kernel_name[0] = 0; }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(changed([&](auto& o) { on_gpu(o), o.cl_kernel_source = nullptr; }), RKNN_ERR_PARAM_INVALID);
  static char path[] = "/nowhere/kernel.cl";
  EXPECT_EQ(changed([&](auto& o) { on_gpu(o), o.cl_kernel_source = path, o.cl_source_size = 0; }), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(record.inits, 0);

  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  const std::string text = orknn_last_error();
  for (const char* word : {"'cstTwice'", "not registered", "librkcst_*.so", "/usr/lib/rknpu/op_plugins", "'first'"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST_F(CustomOp, OneBadRecordRefusesAll) {
  open(model_of({two_nodes()}));
  rknn_custom_op ops[2] = {twice(), twice()};
  ops[1].compute = nullptr;
  EXPECT_EQ(rknn_register_custom_ops(context, ops, 2), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(record.inits, 2);
  EXPECT_EQ(record.destroys, 2);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
}

TEST_F(CustomOp, FailingInitIsUndone) {
  open(model_of({two_nodes()}));
  record.init_result = -7;
  record.failing_init = 1;
  EXPECT_EQ(registered(twice()), RKNN_ERR_FAIL);
  const std::string text = orknn_last_error();
  EXPECT_NE(text.find("init returned -7"), std::string::npos) << text;
  EXPECT_NE(text.find("'second'"), std::string::npos) << text;
  EXPECT_EQ(record.destroys, 1);  // of the first node
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
  record = {};
  EXPECT_EQ(registered(twice()), RKNN_SUCC);
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
}

TEST_F(CustomOp, FailingRunLeavesTheContextUsable) {
  open(model_of({two_nodes()}));
  ASSERT_EQ(registered(twice()), RKNN_SUCC);
  const auto fails_with = [&](const std::string& word) {
    EXPECT_EQ(rknn_run(context, nullptr), RKNN_ERR_FAIL);
    const std::string text = orknn_last_error();
    EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_NE(text.find("cstTwice"), std::string::npos) << text;
    record = {};
  };
  record.compute_result = -3;
  fails_with("compute of the custom operator 'cstTwice' returned -3");
  record.prepare_result = -4;
  fails_with("prepare of the custom operator 'cstTwice' returned -4");
  record.throws = true;
  fails_with("compute");
  EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
}

TEST_F(CustomOp, LastRegistrationCounts) {
  open(model_of({two_nodes()}));
  ASSERT_EQ(registered(twice()), RKNN_SUCC);
  ASSERT_EQ(registered(twice()), RKNN_SUCC);
  EXPECT_EQ(record.inits, 4);
  EXPECT_EQ(record.destroys, 2);
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC);
  EXPECT_EQ(record.computes, 2);
}

TEST_F(CustomOp, TypeThatTheModelLacksIsAccepted) {
  open(model_of({two_nodes()}));
  rknn_custom_op op = twice();
  std::strcpy(op.op_type, "cstOther");
  EXPECT_EQ(registered(op), RKNN_SUCC);
  EXPECT_EQ(record.inits, 0);
}

// --- sessions and shapes

TEST_F(CustomOp, ShapesOfEveryProgramReachTheSameNode) {
  format::Model model = model_of({two_nodes("[1,2,2,3]"), two_nodes("[1,2,1,3]")});
  auto session = runtime::Session::open(std::make_shared<const format::Model>(std::move(model)));
  ASSERT_TRUE(session) << session.status().to_string();
  runtime::Registration made = runtime::register_callbacks(twice(), (*session)->custom_ops().nodes());
  ASSERT_TRUE(made.op) << made.problem;
  (*session)->custom_ops().serve("cstTwice", std::move(made.op));
  EXPECT_EQ(record.inits, 2);
  for (size_t program : {0u, 1u, 0u}) {
    ASSERT_TRUE((*session)->choose_program(program));
    const Status ran = (*session)->run();
    ASSERT_TRUE(ran) << ran.to_string();
    EXPECT_EQ(record.last_outputs[0].attr.dims[2], program == 0 ? 2u : 1u);
  }
  EXPECT_EQ(record.inits, 2);
  EXPECT_EQ(record.private_data[0], record.private_data[2]);
  session->reset();
  EXPECT_EQ(record.destroys, 2);
}

TEST_F(CustomOp, DuplicatesHaveTheirOwnState) {
  auto session = runtime::Session::open(std::make_shared<const format::Model>(model_of({two_nodes()})));
  ASSERT_TRUE(session) << session.status().to_string();
  runtime::Registration made = runtime::register_callbacks(twice(), (*session)->custom_ops().nodes());
  (*session)->custom_ops().serve("cstTwice", std::move(made.op));
  auto second = (*session)->duplicate();
  ASSERT_TRUE(second) << second.status().to_string();
  EXPECT_EQ(record.inits, 4);
  ASSERT_TRUE((*session)->run());
  ASSERT_TRUE((*second)->run());
  EXPECT_NE(record.private_data[0], record.private_data[2]);
  session->reset();
  EXPECT_EQ(record.destroys, 2);
  ASSERT_TRUE((*second)->run());
  record.init_result = -1;
  const auto third = (*second)->duplicate();
  ASSERT_FALSE(third);
  EXPECT_NE(third.status().to_string().find("init returned -1"), std::string::npos) << third.status().to_string();
  record.init_result = 0;
  second->reset();
  EXPECT_EQ(record.destroys, 4);
}

int compute_through_descriptors(rknn_custom_op_context*, Tensors in, uint32_t n_in, Tensors out, uint32_t) {
  const auto map = [](const rknn_tensor_mem& mem) {
    EXPECT_GT(mem.fd, 2);
    const size_t bytes = static_cast<size_t>(mem.offset) + mem.size;
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, mem.fd, 0);
    EXPECT_NE(at, MAP_FAILED);
    return std::pair(static_cast<std::byte*>(at), bytes);
  };
  const auto [from, from_bytes] = map(in[0].mem);
  const auto [to, to_bytes] = map(out[0].mem);
  const auto* x = reinterpret_cast<const float*>(from + in[0].mem.offset);
  auto* y = reinterpret_cast<float*>(to + out[0].mem.offset);
  for (uint32_t i = 0; i < out[0].attr.n_elems; ++i) y[i] = 2 * x[i];
  munmap(from, from_bytes);
  munmap(to, to_bytes);
  if (n_in > 1) {
    const auto [constant, constant_bytes] = map(in[1].mem);
    EXPECT_EQ(std::memcmp(constant + in[1].mem.offset, std::array<int32_t, 2>{7, 8}.data(), 8), 0);
    munmap(constant, constant_bytes);
  }
  return 0;
}

TEST_F(CustomOp, TensorsCanBeImportedByTheirDescriptors) {
  for (const DType type : {DType::Float32, DType::Float16}) {
    record = {};
    open(model_of({two_nodes()}, type));
    rknn_custom_op op = twice();
    op.prepare = nullptr;
    op.compute = compute_through_descriptors;
    ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
    EXPECT_GT(record.last_inputs[1].mem.fd, 2) << "constants have their data in init";
    feed({1, 2, 3, 4, 5, 6});
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(result(), (std::vector<float>{4, 8, 12, 16, 20, 24}));
    rknn_destroy(std::exchange(context, 0));
  }
}

// --- calls that a callback makes with the context that it works for

rknn_context own_context = 0;
struct OwnCalls {
  int query = 1, performance = 1, run = 1, wait = 1, mask = 1, duplicate = 1, destroy = 1, share = 1;
  std::string error;  // orknn_context_error after the run
  bool has_memory = false;
} own_calls;

int call_own_context() {
  rknn_sdk_version version{};
  rknn_perf_detail detail{};
  own_calls = {};
  own_calls.query = rknn_query(own_context, RKNN_QUERY_SDK_VERSION, &version, sizeof version);
  own_calls.performance = rknn_query(own_context, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail);
  rknn_tensor_mem* memory = rknn_create_mem(own_context, 64);
  own_calls.has_memory = memory && rknn_destroy_mem(own_context, memory) == RKNN_SUCC;
  own_calls.run = rknn_run(own_context, nullptr);
  own_calls.error = orknn_context_error(own_context);
  own_calls.wait = rknn_wait(own_context, nullptr);
  own_calls.mask = rknn_set_core_mask(own_context, RKNN_NPU_CORE_0);
  rknn_context other = 0;
  own_calls.duplicate = rknn_dup_context(&own_context, &other);
  own_calls.destroy = rknn_destroy(own_context);
  rknn_init_extend donor{};
  donor.ctx = own_context;
  std::byte no_model[64] = {};
  own_calls.share = rknn_init(&other, no_model, sizeof no_model, RKNN_FLAG_SHARE_WEIGHT_MEM, &donor);
  return RKNN_SUCC;
}
int init_with_calls(rknn_custom_op_context*, Tensors, uint32_t, Tensors, uint32_t) { return call_own_context(); }
int compute_with_calls(rknn_custom_op_context* op, Tensors in, uint32_t n_in, Tensors out, uint32_t n_out) {
  call_own_context();
  return compute(op, in, n_in, out, n_out);
}
void expect_answers(const std::string& outer) {
  EXPECT_EQ(own_calls.query, RKNN_SUCC);
  EXPECT_EQ(own_calls.performance, RKNN_SUCC);
  EXPECT_TRUE(own_calls.has_memory);
  EXPECT_EQ(own_calls.run, RKNN_ERR_FAIL);
  EXPECT_EQ(own_calls.error.find("rknn_run: a callback of a custom operator cannot call this"), 0u) << own_calls.error;
  EXPECT_NE(own_calls.error.find("inside of " + outer), std::string::npos) << own_calls.error;
  EXPECT_EQ(own_calls.wait, RKNN_ERR_FAIL);
  EXPECT_EQ(own_calls.mask, RKNN_ERR_FAIL);
  EXPECT_EQ(own_calls.duplicate, RKNN_ERR_FAIL);
  EXPECT_EQ(own_calls.destroy, RKNN_ERR_FAIL);
  EXPECT_EQ(own_calls.share, RKNN_ERR_MODEL_INVALID) << "the context is fine, the bytes are no model";
}

TEST_F(CustomOp, CallbacksMayQueryTheirContextAndNothingElse) {
  open(model_of({two_nodes()}));
  own_context = context;
  rknn_custom_op op = twice();
  op.init = init_with_calls;
  op.compute = compute_with_calls;
  op.destroy = nullptr;
  runtime::set_checking(true);
  const uint64_t before = runtime::reported_mistakes();
  ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
  expect_answers("rknn_register_custom_ops");
  feed({1, 2, 3, 4, 5, 6});
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  expect_answers("rknn_run");
  EXPECT_EQ(result(), (std::vector<float>{4, 8, 12, 16, 20, 24}));
  rknn_run_extend background{};
  background.non_block = 1;
  ASSERT_EQ(rknn_run(context, &background), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_wait(context, nullptr), RKNN_SUCC) << orknn_last_error();  // holds the context meanwhile
  expect_answers("rknn_run");
  EXPECT_EQ(runtime::reported_mistakes(), before) << "the same thread is no other thread";
  runtime::set_checking(false);
  EXPECT_STREQ(orknn_context_error(context), "") << "the calls themselves succeeded";
}

TEST_F(CustomOp, CustomNodeInsideABodyIsRefused) {
  const auto custom = declared();
  auto graph = ir::parse(R"(graph "g" (%c: bool[], %x: float32[2]) -> (%y) {
  %y = If(%c, %x) {then_branch=graph "t" (%p: float32[2]) -> (%q) {
  %q: float32[2] = "custom:cstTwice"(%p) "inner"
}, else_branch=graph "e" (%p: float32[2]) -> (%q) {
  %q: float32[2] = Relu(%p)
}} "choice"
})");
  ASSERT_TRUE(graph) << graph.status().to_string();
  ASSERT_TRUE(ir::infer_shapes(*graph, custom->op_set()));
  compile::CompileOptions options;
  options.ops = &custom->op_set();
  const auto program = compile::compile(std::move(*graph), options);
  ASSERT_FALSE(program);
  const std::string text = program.status().to_string();
  EXPECT_NE(text.find("node 'inner' (cstTwice)"), std::string::npos) << text;
}

// --- GPU

int gpu_compute(rknn_custom_op_context* op, Tensors in, uint32_t, Tensors out, uint32_t) {
  EXPECT_EQ(op->target, RKNN_TARGET_TYPE_GPU);
  EXPECT_NE(op->gpu_ctx.cl_context, nullptr);
  EXPECT_NE(op->gpu_ctx.cl_command_queue, nullptr);
  EXPECT_NE(op->gpu_ctx.cl_kernel, nullptr);
  EXPECT_GE(in[0].mem.fd, 0);
  EXPECT_GE(out[0].mem.fd, 0);
  EXPECT_EQ(out[0].attr.type, RKNN_TENSOR_FLOAT32);  // an integer result, too
  for (uint32_t i = 0; i < out[0].attr.n_elems; ++i) static_cast<float*>(out[0].mem.virt_addr)[i] = 10.0f + static_cast<float>(i);
  return 0;
}

class GpuOp : public CustomOp {
 protected:
  void SetUp() override {
    CustomOp::SetUp();
    if (std::string why; !runtime::OpenClProgram::is_available(why)) GTEST_SKIP() << why;
    op.target = RKNN_TARGET_TYPE_GPU;
    std::strcpy(op.op_type, "ArgMax");
    std::strcpy(op.cl_kernel_name, "first");
    op.cl_kernel_source = source.data();
    op.cl_source_size = source.size();
    op.compute = gpu_compute;
  }
  std::string source = "__kernel void first(__global float* y) { y[get_global_id(0)] = SCALE; }";
  rknn_custom_op op{};
};

TEST_F(GpuOp, TensorsAreFloatsWithDescriptors) {
  open(model_of({kArgMax}));
  std::strcpy(op.cl_build_options, "-DSCALE=1.0f");
  ASSERT_EQ(registered(op), RKNN_SUCC) << orknn_last_error();
  source.assign(source.size(), ' ');  // the runtime has its copy
  ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(result(), (std::vector<float>{10, 11}));
}

TEST_F(GpuOp, BadProgramsAreRefused) {
  open(model_of({kArgMax}));
  EXPECT_EQ(registered(op), RKNN_ERR_FAIL);  // SCALE is not defined
  EXPECT_NE(std::string(orknn_last_error()).find("does not compile"), std::string::npos) << orknn_last_error();
  std::strcpy(op.cl_build_options, "-DSCALE=1.0f");
  std::strcpy(op.cl_kernel_name, "second");
  EXPECT_EQ(registered(op), RKNN_ERR_FAIL);
  EXPECT_NE(std::string(orknn_last_error()).find("'second'"), std::string::npos) << orknn_last_error();
}

}  // namespace
}  // namespace orknn
