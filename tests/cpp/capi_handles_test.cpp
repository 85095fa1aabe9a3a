// Refusals that all functions of the C API have in common: handles that are no model, files of another version, callbacks that
// throw, weights that have no room.
#include <cstring>
#include <stdexcept>

#include "refusals.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"
#include "toolkit/builder.h"

namespace orknn::tests {
namespace {

// All functions that take a model's context, with arguments that are right for the model of `like`.
std::vector<Refusal> calls_with(rknn_context handle, const TestContext& like, rknn_tensor_mem* memory) {
  static std::vector<uint8_t> pixels(60);
  static rknn_tensor_attr attr;
  static rknn_input input;
  static rknn_output output;
  static rknn_custom_op op;
  static rknn_context from, to;
  attr = like.attr(RKNN_QUERY_INPUT_ATTR);
  input = {};
  input.buf = pixels.data();
  input.size = static_cast<uint32_t>(pixels.size());
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  std::strcpy(op.op_type, "Neg");
  op.target = RKNN_TARGET_TYPE_CPU;
  op.compute = [](rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t, rknn_custom_op_tensor*, uint32_t) { return 0; };
  from = handle;
  constexpr int kCode = RKNN_ERR_CTX_INVALID;
  return {{"rknn_query", kCode, [=] { return rknn_query(handle, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr); }},
          {"rknn_inputs_set", kCode, [=] { return rknn_inputs_set(handle, 1, &input); }},
          {"rknn_run", kCode, [=] { return rknn_run(handle, nullptr); }},
          {"rknn_wait", kCode, [=] { return rknn_wait(handle, nullptr); }},
          {"rknn_outputs_get", kCode, [=] { return rknn_outputs_get(handle, 1, &output, nullptr); }},
          {"rknn_outputs_release", kCode, [=] { return rknn_outputs_release(handle, 1, &output); }},
          {"rknn_dup_context", kCode, [=] { return rknn_dup_context(&from, &to); }},
          {"rknn_set_core_mask", kCode, [=] { return rknn_set_core_mask(handle, RKNN_NPU_CORE_0); }},
          {"rknn_set_batch_core_num", kCode, [=] { return rknn_set_batch_core_num(handle, 1); }},
          {"rknn_set_weight_mem", kCode, [=] { return rknn_set_weight_mem(handle, memory); }},
          {"rknn_set_internal_mem", kCode, [=] { return rknn_set_internal_mem(handle, memory); }},
          {"rknn_set_io_mem", kCode, [=] { return rknn_set_io_mem(handle, memory, &attr); }},
          {"rknn_set_input_shape", kCode, [=] { return rknn_set_input_shape(handle, &attr); }},
          {"rknn_set_input_shapes", kCode, [=] { return rknn_set_input_shapes(handle, 1, &attr); }},
          {"rknn_register_custom_ops", kCode, [=] { return rknn_register_custom_ops(handle, &op, 1); }},
          {"rknn_destroy", kCode, [=] { return rknn_destroy(handle); }}};
}

TEST(CApiHandles, EveryFunctionWantsAContextOfItsKind) {
  const std::vector<std::byte> model = bytes_of(int8_model(3, 4, 5));
  TestContext good(model);
  good.set_input(std::vector<uint8_t>(60, 7), RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC);
  const std::vector<uint8_t> expected = good.output(true);
  const TestMemory memory(good, 1 << 12);
  rknn_context destroyed = 0;
  {
    const TestContext other(model);
    destroyed = other;
  }
  rknn_matmul_info info{};
  info.M = 1, info.K = 32, info.N = 32, info.type = RKNN_INT8_MM_INT8_TO_INT32;
  rknn_matmul_io_attr io{};
  rknn_matmul_ctx product = 0;
  ASSERT_EQ(rknn_matmul_create(&product, &info, &io), RKNN_SUCC) << orknn_last_error();
  for (const rknn_context handle : {rknn_context{0}, rknn_context{123456789}, destroyed, rknn_context{product}}) {
    SCOPED_TRACE("handle " + std::to_string(handle));
    expect_refusals(calls_with(handle, good, memory), [&] { EXPECT_EQ(good.output(true), expected); });
  }
  EXPECT_EQ(rknn_matmul_destroy(product), RKNN_SUCC) << "no refused call destroyed it";
}

TEST(CApiHandles, FilesOfAnotherVersion) {
  std::vector<std::byte> model = bytes_of(chain_model(3, 100));
  model[8] ^= std::byte{0x40};  // the container's version
  rknn_context made = 77;
  const auto init = [&](uint32_t flags) {
    return rknn_init(&made, model.data(), static_cast<uint32_t>(model.size()), flags, nullptr);
  };
  expect_refusals(
      {{"version", RKNN_ERR_MODEL_INVALID, [&] { return init(0); }},
       {"the model is looked at before the flags", RKNN_ERR_MODEL_INVALID, [&] { return init(RKNN_FLAG_SHARE_SRAM); }}},
      [&] { EXPECT_EQ(made, 77u); });
}

TEST(CApiHandles, WeightsNeedTheirRoom) {
  const std::vector<std::byte> model = bytes_of(capi_model(R"(graph "g" (%x: float32[64]) -> (%y) {
  %w: float32[64] = const splat 2
  %y: float32[64] = Mul(%x, %w)
})"));
  TestContext outside(model, RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  rknn_mem_size size{};
  ASSERT_EQ(rknn_query(outside, RKNN_QUERY_MEM_SIZE, &size, sizeof size), RKNN_SUCC);
  ASSERT_GE(size.total_weight_size, 256u);
  const TestMemory small(outside, size.total_weight_size - 1), enough(outside, size.total_weight_size);
  expect_refusals({{"too small", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_weight_mem(outside, small); }},
                   {"run without weights", RKNN_ERR_FAIL, [&] { return rknn_run(outside, nullptr); }}},
                  [&] {});
  EXPECT_EQ(rknn_set_weight_mem(outside, enough), RKNN_SUCC) << orknn_last_error();
}

int thrown(rknn_custom_op_context*, rknn_custom_op_tensor*, uint32_t, rknn_custom_op_tensor*, uint32_t) {
  throw std::runtime_error("of the client");
}

// An exception that a callback lets out is an error of the call, not the end of the program.
TEST(CApiHandles, CallbacksThatThrow) {
  TestContext good(bytes_of(chain_model(3, 100)));
  ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC) << orknn_last_error();
  const std::vector<uint8_t> expected = good.output(true);
  rknn_custom_op op{};
  std::strcpy(op.op_type, "Tanh");
  op.target = RKNN_TARGET_TYPE_CPU;
  op.init = op.compute = thrown;
  expect_refusals({{"init", RKNN_ERR_FAIL, [&] { return rknn_register_custom_ops(good, &op, 1); }}}, [&] {
    ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC) << "the built-in operator runs";
    EXPECT_EQ(good.output(true), expected);
  });
  op.init = nullptr;
  ASSERT_EQ(rknn_register_custom_ops(good, &op, 1), RKNN_SUCC) << orknn_last_error();
  expect_refusals({{"compute", RKNN_ERR_FAIL, [&] { return rknn_run(good, nullptr); }}}, [] {});
}

// Two inputs with two sets of shapes: each shape is known, but not together.
TEST(CApiHandles, ShapesOfDifferentSets) {
  const std::vector<std::byte> bytes = [] {
    format::Model small = capi_model(R"(graph "g" (%x: float32[1,2,4,4], %z: float32[1,2,4,4]) -> (%y) {
  %y: float32[1,2,4,4] = Add(%x, %z)
})");
    format::Model large = capi_model(R"(graph "g" (%x: float32[1,2,8,8], %z: float32[1,2,8,8]) -> (%y) {
  %y: float32[1,2,8,8] = Add(%x, %z)
})");
    small.programs.push_back(std::move(large.programs[0]));
    return bytes_of(small);
  }();
  TestContext context(bytes);
  rknn_tensor_attr attrs[2] = {context.attr(RKNN_QUERY_CURRENT_INPUT_ATTR, 0), context.attr(RKNN_QUERY_CURRENT_INPUT_ATTR, 1)};
  const auto with = [&](auto change) {
    rknn_tensor_attr changed[2] = {attrs[0], attrs[1]};
    change(changed);
    return rknn_set_input_shapes(context, 2, changed);
  };
  ASSERT_EQ(with([](auto*) {}), RKNN_SUCC) << orknn_last_error();
  expect_refusals({{"sets mixed", RKNN_ERR_FAIL, [&] { return with([](auto* a) { a[1].dims[1] = a[1].dims[2] = 8; }); }},
                   {"unknown name", RKNN_ERR_FAIL, [&] { return with([](auto* a) { std::strcpy(a[1].name, "nobody"); }); }},
                   {"one input twice", RKNN_ERR_FAIL, [&] { return with([](auto* a) { a[1] = a[0]; }); }},
                   {"blocks", RKNN_ERR_FAIL, [&] { return with([](auto* a) { a[0].fmt = RKNN_TENSOR_NC1HWC2; }); }},
                   {"one of two", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_input_shapes(context, 1, attrs); }},
                   {"unknown shape", RKNN_ERR_FAIL,
                    [&] {
                      rknn_tensor_attr one = attrs[0];
                      one.dims[1] = 5;
                      return rknn_set_input_shape(context, &one);
                    }}},
                  [&] {
                    rknn_tensor_attr now = context.attr(RKNN_QUERY_CURRENT_INPUT_ATTR, 1);
                    EXPECT_EQ(now.dims[1], attrs[1].dims[1]);
                    EXPECT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
                  });
}

}  // namespace
}  // namespace orknn::tests
