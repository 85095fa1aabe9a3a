// Every refusal of the basic C API: the code, one E line, and a context that works as before.
#include <filesystem>
#include <fstream>

#include "capi_models.h"
#include "refusals.h"
#include "rknn_matmul_api.h"
#include "temporary_folder.h"
#include "test_paths.h"
#include "toolkit/builder.h"

namespace orknn::tests {
namespace {

TEST(CApiErrors, Init) {
  const std::vector<std::byte> model = bytes_of(chain_model(3, 100));
  TestContext good(model);
  rknn_context made = 77;
  rknn_init_extend extend{};
  const auto init = [&](uint32_t flags, rknn_init_extend* e, size_t bytes = 0) {
    return rknn_init(&made, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(bytes ? bytes : model.size()), flags, e);
  };
  const TemporaryFolder folder;
  const std::string path = folder.file("capi_errors.rknn"), broken = folder.file("capi_errors.bin");
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(model.data()), static_cast<std::streamsize>(model.size()));
  std::ofstream(broken) << "this is no model";
  const auto with_extend = [&](const std::string& file, int32_t offset, uint32_t bytes) {
    rknn_init_extend e{};
    e.real_model_offset = offset;
    e.real_model_size = bytes;
    return rknn_init(&made, const_cast<char*>(file.c_str()), 0, 0, &e);
  };
  expect_refusals(
      {{"context NULL", RKNN_ERR_PARAM_INVALID,
        [&] { return rknn_init(nullptr, const_cast<std::byte*>(model.data()), 8, 0, nullptr); }},
       {"model NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_init(&made, nullptr, 8, 0, nullptr); }},
       {"no such file", RKNN_ERR_FAIL, [&] { return rknn_init(&made, const_cast<char*>("/nowhere/m.rknn"), 0, 0, nullptr); }},
       {"no model", RKNN_ERR_MODEL_INVALID, [&] { return rknn_init(&made, const_cast<char*>(broken.c_str()), 0, 0, nullptr); }},
       {"cut off", RKNN_ERR_MODEL_INVALID, [&] { return init(0, nullptr, model.size() - 1); }},
       {"negative offset", RKNN_ERR_PARAM_INVALID, [&] { return with_extend(path, -1, 0); }},
       {"offset outside", RKNN_ERR_PARAM_INVALID, [&] { return with_extend(path, 1 << 30, 0); }},
       {"size outside", RKNN_ERR_PARAM_INVALID, [&] { return with_extend(path, 0, static_cast<uint32_t>(model.size()) + 1); }},
       {"share without extend", RKNN_ERR_PARAM_INVALID, [&] { return init(RKNN_FLAG_SHARE_WEIGHT_MEM, nullptr); }},
       {"share with nobody", RKNN_ERR_CTX_INVALID, [&] { return init(RKNN_FLAG_SHARE_WEIGHT_MEM, &extend); }},
       {"zero copy without extend", RKNN_ERR_PARAM_INVALID, [&] { return init(RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, nullptr); }},
       {"zero copy without fd", RKNN_ERR_PARAM_INVALID,
        [&] {
          rknn_init_extend e{};
          e.model_buffer_fd = -1;
          return init(RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, &e);
        }},
       {"share SRAM", RKNN_ERR_PARAM_INVALID, [&] { return init(RKNN_FLAG_SHARE_SRAM, nullptr); }},
       {"destroy 0", RKNN_ERR_CTX_INVALID, [&] { return rknn_destroy(0); }},
       {"destroy unknown", RKNN_ERR_CTX_INVALID, [&] { return rknn_destroy(good + 1000); }}},
      [&] { EXPECT_EQ(made, 77u) << "no handle is written"; });
}

TEST(CApiErrors, Calls) {
  TestContext good(bytes_of(chain_model(3, 100))), dry(bytes_of(chain_model(3, 100)), RKNN_FLAG_COLLECT_MODEL_INFO_ONLY),
      fresh(bytes_of(chain_model(3, 100))), one_core(bytes_of(chain_model(3, 100, "rk3566")));
  std::vector<float> data(100, 0.5f);
  good.set_input(data, RKNN_TENSOR_FLOAT32, RKNN_TENSOR_NCHW);
  ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC);
  const std::vector<uint8_t> expected = good.output(true);
  rknn_tensor_attr attr{};
  rknn_perf_detail detail{};
  rknn_tensor_mem memory{};
  const auto range = std::make_unique<rknn_input_range>();
  const auto query = [&](rknn_context c, int command, void* info, uint32_t size) {
    return rknn_query(c, static_cast<rknn_query_cmd>(command), info, size);
  };
  const auto input = [&](auto change) {
    rknn_input i{};
    i.buf = data.data();
    i.size = 400;
    change(i);
    return rknn_inputs_set(good, 1, &i);
  };
  const auto output = [&](rknn_context c, uint32_t count, auto change) {
    rknn_output o[2] = {};
    change(o[0]);
    return rknn_outputs_get(c, count, o, nullptr);
  };
  const auto nothing = [](auto&) {};
  rknn_input plain{};
  plain.buf = data.data();
  plain.size = 400;
  rknn_context from = dry, to = 0;
  rknn_tensor_attr shape{};
  shape.n_dims = 1;
  expect_refusals(
      {{"query 0", RKNN_ERR_CTX_INVALID, [&] { return query(0, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr); }},
       {"query NULL", RKNN_ERR_PARAM_INVALID, [&] { return query(good, RKNN_QUERY_INPUT_ATTR, nullptr, sizeof attr); }},
       {"query command", RKNN_ERR_PARAM_INVALID, [&] { return query(good, 18, &attr, sizeof attr); }},
       {"query size", RKNN_ERR_PARAM_INVALID, [&] { return query(good, RKNN_QUERY_INPUT_ATTR, &attr, 375); }},
       {"query index", RKNN_ERR_PARAM_INVALID,
        [&] {
          attr.index = 1;
          return query(good, RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr);
        }},
       {"range of a static model", RKNN_ERR_MODEL_INVALID,
        [&] { return query(good, RKNN_QUERY_INPUT_DYNAMIC_RANGE, range.get(), sizeof *range); }},
       {"current of a static model", RKNN_ERR_MODEL_INVALID,
        [&] {
          attr.index = 0;
          return query(good, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr, sizeof attr);
        }},
       {"the index is looked at first", RKNN_ERR_PARAM_INVALID,
        [&] {
          attr.index = 1;
          return query(good, RKNN_QUERY_CURRENT_INPUT_ATTR, &attr, sizeof attr);
        }},
       {"dry detail", RKNN_ERR_FAIL, [&] { return query(dry, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail); }},
       {"dry memory", RKNN_ERR_FAIL, [&] { return query(dry, RKNN_QUERY_DEVICE_MEM_INFO, &memory, sizeof memory); }},
       {"inputs NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_inputs_set(good, 1, nullptr); }},
       {"inputs 0", RKNN_ERR_PARAM_INVALID, [&] { return rknn_inputs_set(good, 0, &plain); }},
       {"inputs 2", RKNN_ERR_PARAM_INVALID, [&] { return rknn_inputs_set(good, 2, &plain); }},
       {"input index", RKNN_ERR_INPUT_INVALID, [&] { return input([](rknn_input& i) { i.index = 1; }); }},
       {"input buf", RKNN_ERR_INPUT_INVALID, [&] { return input([](rknn_input& i) { i.buf = nullptr; }); }},
       {"input type", RKNN_ERR_INPUT_INVALID, [&] { return input([](rknn_input& i) { i.type = RKNN_TENSOR_INT4; }); }},
       {"input size", RKNN_ERR_PARAM_INVALID, [&] { return input([](rknn_input& i) { i.size = 399; }); }},
       {"dry input", RKNN_ERR_FAIL, [&] { return rknn_inputs_set(dry, 1, &plain); }},
       {"dry run", RKNN_ERR_FAIL, [&] { return rknn_run(dry, nullptr); }},
       {"run 0", RKNN_ERR_CTX_INVALID, [&] { return rknn_run(0, nullptr); }},
       {"wait 0", RKNN_ERR_CTX_INVALID, [&] { return rknn_wait(0, nullptr); }},
       {"outputs 0", RKNN_ERR_PARAM_INVALID, [&] { return output(good, 0, nothing); }},
       {"outputs 2", RKNN_ERR_PARAM_INVALID, [&] { return output(good, 2, nothing); }},
       {"outputs NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_outputs_get(good, 1, nullptr, nullptr); }},
       {"outputs before a run", RKNN_ERR_FAIL, [&] { return output(fresh, 1, nothing); }},
       {"output buf", RKNN_ERR_OUTPUT_INVALID, [&] { return output(good, 1, [](rknn_output& o) { o.is_prealloc = 1; }); }},
       {"output size", RKNN_ERR_PARAM_INVALID,
        [&] {
          return output(good, 1, [&](rknn_output& o) {
            o.is_prealloc = o.want_float = 1;
            o.buf = data.data();
            o.size = 399;
          });
        }},
       {"release NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_outputs_release(good, 1, nullptr); }},
       {"release 0", RKNN_ERR_CTX_INVALID, [&] { return rknn_outputs_release(0, 0, nullptr); }},
       {"duplicate dry", RKNN_ERR_FAIL, [&] { return rknn_dup_context(&from, &to); }},
       {"mask of one core", RKNN_ERR_TARGET_PLATFORM_UNMATCH, [&] { return rknn_set_core_mask(one_core, RKNN_NPU_CORE_0); }},
       {"no mask", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_core_mask(good, static_cast<rknn_core_mask>(5)); }},
       {"batch cores of one core", RKNN_ERR_TARGET_PLATFORM_UNMATCH, [&] { return rknn_set_batch_core_num(one_core, 1); }},
       {"batch cores 0", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_batch_core_num(good, 0); }},
       {"batch cores 4", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_batch_core_num(good, 4); }},
       {"shapes NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_input_shapes(good, 1, nullptr); }},
       {"shapes 2", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_input_shapes(good, 2, &shape); }},
       {"shapes of a static model", RKNN_ERR_MODEL_INVALID, [&] { return rknn_set_input_shapes(good, 1, &shape); }},
       {"shape NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_input_shape(good, nullptr); }},
       {"mem 0 bytes", 0, [&] { return rknn_create_mem(good, 0) != nullptr; }},
       {"mem 4 GB", 0, [&] { return rknn_create_mem2(good, uint64_t{1} << 32, 0) != nullptr; }},
       {"mem without context", 0, [&] { return rknn_create_mem(0, 16) != nullptr; }},
       {"mem flags", 0, [&] { return rknn_create_mem2(good, 16, 3) != nullptr; }},
       {"mem fd", 0, [&] { return rknn_create_mem_from_fd(good, -1, data.data(), 1, 0) != nullptr; }},
       {"mem phys", 0, [&] { return rknn_create_mem_from_phys(good, 0, nullptr, 1) != nullptr; }},
       {"mem block", 0, [&] { return rknn_create_mem_from_mb_blk(good, data.data(), 0) != nullptr; }},
       {"destroy NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_destroy_mem(good, nullptr); }},
       {"destroy foreign", RKNN_ERR_PARAM_INVALID, [&] { return rknn_destroy_mem(good, &memory); }},
       {"sync NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_mem_sync(good, nullptr, RKNN_MEMORY_SYNC_TO_DEVICE); }},
       {"sync mode", RKNN_ERR_PARAM_INVALID, [&] { return rknn_mem_sync(good, &memory, static_cast<rknn_mem_sync_mode>(4)); }},
       {"bind NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_io_mem(good, nullptr, &attr); }},
       {"bind nothing", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_io_mem(good, &memory, &attr); }},
       {"weights without flag", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_weight_mem(good, &memory); }},
       {"internal without flag", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_internal_mem(good, &memory); }}},
      [&] { EXPECT_EQ(good.output(true), expected); });
}

// Refusals of memory: zero-copy binding, blocks of the caller's, foreign and released structs.
TEST(CApiErrors, Memory) {
  const std::vector<std::byte> model = bytes_of(int8_model(3, 4, 5));
  TestContext good(model), outside(model, RKNN_FLAG_MEM_ALLOC_OUTSIDE);
  rknn_tensor_attr in = good.attr(RKNN_QUERY_INPUT_ATTR), out = good.attr(RKNN_QUERY_OUTPUT_ATTR);
  out.type = RKNN_TENSOR_FLOAT32;
  const TestMemory memory(good, 1 << 12), small(good, 8);
  ASSERT_EQ(rknn_set_io_mem(good, memory, &in), RKNN_SUCC) << orknn_last_error();
  const TestMemory results(good, out.n_elems * 4);
  ASSERT_EQ(rknn_set_io_mem(good, results, &out), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC);
  const std::vector<uint8_t> expected = results.bytes(out.n_elems * 4);
  std::vector<std::byte> own(1 << 12);
  const auto bind = [&](rknn_tensor_mem* to, auto change) {
    rknn_tensor_attr changed = in;
    change(changed);
    return rknn_set_io_mem(good, to, &changed);
  };
  rknn_tensor_mem nowhere = *memory;
  rknn_tensor_mem* closed = rknn_create_mem_from_fd(good, 100000, own.data(), 1 << 12, 0);
  ASSERT_NE(closed, nullptr);
  nowhere.virt_addr = nullptr;
  rknn_tensor_mem* twice = rknn_create_mem(good, 64);
  ASSERT_EQ(rknn_destroy_mem(good, twice), RKNN_SUCC);
  rknn_input given{};
  given.buf = own.data();
  given.size = 60;
  given.type = RKNN_TENSOR_UINT8;
  const auto null = [](const rknn_tensor_mem* made) { return made != nullptr; };
  expect_refusals(
      {{"attr NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_io_mem(good, memory, nullptr); }},
       {"mem without address", RKNN_ERR_PARAM_INVALID, [&] { return bind(&nowhere, [](auto&) {}); }},
       {"unknown name and index", RKNN_ERR_PARAM_INVALID,
        [&] {
          return bind(memory, [](auto& a) {
            a.name[0] = '?';
            a.index = 9;
          });
        }},
       {"type", RKNN_ERR_PARAM_INVALID, [&] { return bind(memory, [](auto& a) { a.type = RKNN_TENSOR_INT64; }); }},
       {"layout", RKNN_ERR_PARAM_INVALID,
        [&] { return bind(memory, [](auto& a) { a.fmt = static_cast<rknn_tensor_format>(9); }); }},
       {"too small", RKNN_ERR_PARAM_INVALID, [&] { return bind(small, [](auto&) {}); }},
       {"closed fd", RKNN_ERR_MALLOC_FAIL, [&] { return bind(closed, [](auto&) {}); }},
       {"bind to nobody", RKNN_ERR_CTX_INVALID, [&] { return rknn_set_io_mem(0, memory, &in); }},
       {"weights without flag", RKNN_ERR_FAIL, [&] { return rknn_set_weight_mem(good, memory); }},
       {"internal without flag", RKNN_ERR_FAIL, [&] { return rknn_set_internal_mem(good, memory); }},
       {"weights NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_weight_mem(outside, nullptr); }},
       {"internal NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_internal_mem(outside, nullptr); }},
       {"internal too small", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_internal_mem(outside, small); }},
       {"inputs of a context without memory", RKNN_ERR_FAIL, [&] { return rknn_inputs_set(outside, 1, &given); }},
       {"run of a context without memory", RKNN_ERR_FAIL, [&] { return rknn_run(outside, nullptr); }},
       {"fd of nobody", 0, [&] { return null(rknn_create_mem_from_fd(0, memory->fd, own.data(), 64, 0)); }},
       {"fd of 0 bytes", 0, [&] { return null(rknn_create_mem_from_fd(good, memory->fd, own.data(), 0, 0)); }},
       {"fd before its begin", 0, [&] { return null(rknn_create_mem_from_fd(good, memory->fd, own.data(), 64, -1)); }},
       {"fd without address", 0, [&] { return null(rknn_create_mem_from_fd(good, memory->fd, nullptr, 64, 0)); }},
       {"phys of nobody", 0, [&] { return null(rknn_create_mem_from_phys(0, 1, own.data(), 64)); }},
       {"phys of 0 bytes", 0, [&] { return null(rknn_create_mem_from_phys(good, 1, own.data(), 0)); }},
       {"both kinds of cache", 0,
        [&] { return null(rknn_create_mem2(good, 64, RKNN_FLAG_MEMORY_CACHEABLE | RKNN_FLAG_MEMORY_NON_CACHEABLE)); }},
       {"destroy twice", RKNN_ERR_PARAM_INVALID, [&] { return rknn_destroy_mem(good, twice); }}},
      [&] {
        ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC);
        EXPECT_EQ(results.bytes(out.n_elems * 4), expected) << "what was bound stays bound";
      });
  EXPECT_EQ(rknn_destroy_mem(good, closed), RKNN_SUCC);
  // A context that is gone, or none, is no reason to keep memory.
  const std::vector<std::byte> again = model;
  rknn_tensor_mem* left = nullptr;
  rknn_context gone = 0;
  {
    TestContext other(again);
    gone = other;
    left = rknn_create_mem(other, 64);
  }
  EXPECT_EQ(rknn_mem_sync(0, memory, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(gone, left), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_destroy(gone), RKNN_ERR_CTX_INVALID) << "the second time";
}

// Refusals that depend on the chip, the model, another context, or the contents of a call.
TEST(CApiErrors, ContextsAndForms) {
  const std::vector<std::byte> model = bytes_of(int8_model(3, 4, 5)), other = bytes_of(chain_model(3, 100, "rk3566"));
  TestContext good(model), two_cores(bytes_of(int8_model(3, 4, 5, "rk3576")));
  std::vector<uint8_t> pixels(60, 7);
  good.set_input(pixels, RKNN_TENSOR_UINT8, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_run(good, nullptr), RKNN_SUCC);
  const std::vector<uint8_t> expected = good.output(true);
  rknn_matmul_info info{};
  info.M = 1, info.K = 32, info.N = 32, info.type = RKNN_INT8_MM_INT8_TO_INT32;
  rknn_matmul_io_attr io{};
  rknn_matmul_ctx product = 0;
  ASSERT_EQ(rknn_matmul_create(&product, &info, &io), RKNN_SUCC) << orknn_last_error();
  rknn_context from = good, none = good + 1000, to = 0;
  rknn_input given{};
  given.buf = pixels.data();
  given.size = 60;
  given.type = RKNN_TENSOR_UINT8;
  given.fmt = static_cast<rknn_tensor_format>(9);
  rknn_tensor_attr shape = good.attr(RKNN_QUERY_INPUT_ATTR);
  rknn_perf_detail detail{};
  expect_refusals(
      {{"model of another chip", RKNN_ERR_TARGET_PLATFORM_UNMATCH,
        [&] {
          orknn_set_platform("rk3588");
          rknn_context made = 0;
          return rknn_init(&made, const_cast<std::byte*>(other.data()), static_cast<uint32_t>(other.size()), 0, nullptr);
        }},
       {"duplicate NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_dup_context(nullptr, &to); }},
       {"duplicate to NULL", RKNN_ERR_PARAM_INVALID, [&] { return rknn_dup_context(&from, nullptr); }},
       {"duplicate nobody", RKNN_ERR_CTX_INVALID, [&] { return rknn_dup_context(&none, &to); }},
       {"run of a product", RKNN_ERR_CTX_INVALID, [&] { return rknn_run(product, nullptr); }},
       {"query of a product", RKNN_ERR_CTX_INVALID,
        [&] { return rknn_query(product, RKNN_QUERY_PERF_DETAIL, &detail, sizeof detail); }},
       {"product of a model", RKNN_ERR_CTX_INVALID, [&] { return rknn_matmul_run(good); }},
       {"destroy a model as a product", RKNN_ERR_CTX_INVALID, [&] { return rknn_matmul_destroy(good); }},
       {"layout", RKNN_ERR_INPUT_INVALID, [&] { return rknn_inputs_set(good, 1, &given); }},
       {"a core that the chip lacks", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_core_mask(two_cores, RKNN_NPU_CORE_2); }},
       {"cores that the chip lacks", RKNN_ERR_PARAM_INVALID, [&] { return rknn_set_core_mask(two_cores, RKNN_NPU_CORE_0_1_2); }},
       {"shape of a static model", RKNN_ERR_MODEL_INVALID, [&] { return rknn_set_input_shape(good, &shape); }}},
      [&] {
        orknn_set_platform(nullptr);
        EXPECT_EQ(good.output(true), expected);
      });
  EXPECT_EQ(rknn_matmul_destroy(product), RKNN_SUCC);
  // What is accepted: a batch of one on several cores, results that nobody gave out, a wait for nothing.
  rknn_output foreign{};
  foreign.buf = pixels.data();
  rknn_output empty{};
  EXPECT_EQ(rknn_set_batch_core_num(good, 3), RKNN_SUCC);
  EXPECT_EQ(rknn_outputs_release(good, 1, &foreign), RKNN_SUCC);
  EXPECT_EQ(rknn_outputs_release(good, 1, &empty), RKNN_SUCC);
  EXPECT_EQ(rknn_wait(good, nullptr), RKNN_SUCC);
  // The last of two inputs for one index counts; inputs that were never set are zeros.
  TestContext fresh(model), zeros(model);
  rknn_run_extend run{};
  EXPECT_EQ(rknn_run(fresh, &run), RKNN_SUCC);
  zeros.set_input(std::vector<int8_t>(60, 0), RKNN_TENSOR_INT8, RKNN_TENSOR_NHWC);
  ASSERT_EQ(rknn_run(zeros, nullptr), RKNN_SUCC);
}

// A model of two shape sets: nothing goes before one is chosen.
TEST(CApiErrors, NoShapesChosen) {
  toolkit::BuildConfig config;
  config.target_platform = "rk3588";
  config.dynamic_input = {{{1, 3, 32, 48}}, {{1, 3, 64, 64}}};
  auto builder = toolkit::Builder::create(config);
  ASSERT_TRUE(builder);
  ASSERT_TRUE(builder->load_model({std::string(tests::kSourceFolder) + "/examples/models/shapes.onnx"}));
  ASSERT_TRUE(builder->build());
  const std::vector<std::byte> model = *format::write_rknn_to_memory(*builder->built()->model);
  TestContext context(model);
  rknn_tensor_attr attr = context.attr(RKNN_QUERY_CURRENT_INPUT_ATTR), wrong = attr;
  wrong.dims[1] = 33;
  rknn_tensor_attr bound = attr;
  bound.type = RKNN_TENSOR_UINT8;
  TestMemory memory(context, 1 << 16);
  std::vector<float> data(64 * 64 * 3);
  rknn_input input{};
  input.buf = data.data();
  input.size = static_cast<uint32_t>(data.size() * 4);
  rknn_context from = context, to = 0;
  rknn_input elsewhere = input, shorter = input;
  elsewhere.index = 1;
  --shorter.size;
  expect_refusals({{"index", RKNN_ERR_INPUT_INVALID, [&] { return rknn_inputs_set(context, 1, &elsewhere); }},
                   {"size of shapes nobody chose", RKNN_ERR_FAIL, [&] { return rknn_inputs_set(context, 1, &shorter); }},
                   {"set", RKNN_ERR_FAIL, [&] { return rknn_inputs_set(context, 1, &input); }},
                   {"bind", RKNN_ERR_FAIL, [&] { return rknn_set_io_mem(context, memory, &bound); }},
                   {"run", RKNN_ERR_FAIL, [&] { return rknn_run(context, nullptr); }},
                   {"duplicate", RKNN_ERR_FAIL, [&] { return rknn_dup_context(&from, &to); }},
                   {"share weights", RKNN_ERR_MODEL_INVALID,
                    [&] {
                      rknn_init_extend extend{};
                      extend.ctx = context;
                      return rknn_init(&to, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(model.size()),
                                       RKNN_FLAG_SHARE_WEIGHT_MEM, &extend);
                    }},
                   {"no such shape", RKNN_ERR_FAIL, [&] { return rknn_set_input_shapes(context, 1, &wrong); }}},
                  [] {});
  // Zero copy under two shapes, in memory that is large enough for the larger one.
  for (const uint32_t side : {64u, 32u}) {
    attr.dims[1] = side;
    attr.dims[2] = side == 64 ? 64 : 48;
    ASSERT_EQ(rknn_set_input_shapes(context, 1, &attr), RKNN_SUCC) << orknn_last_error();
    rknn_tensor_attr in = context.attr(RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR), out = context.attr(RKNN_QUERY_CURRENT_OUTPUT_ATTR);
    in.type = RKNN_TENSOR_UINT8;
    out.type = RKNN_TENSOR_FLOAT32;
    TestMemory results(context, out.n_elems * 4);
    ASSERT_EQ(rknn_set_io_mem(context, memory, &in), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_set_io_mem(context, results, &out), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_run(context, nullptr), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(results.bytes(out.n_elems * 4), context.output(true));
  }
}

}  // namespace
}  // namespace orknn::tests
