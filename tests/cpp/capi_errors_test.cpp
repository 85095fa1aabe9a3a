// Every refusal of the basic C API: the code, one E line, and a context that works as before.
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/log.h"
#include "capi_models.h"
#include "toolkit/builder.h"

namespace orknn::tests {
namespace {

struct Refusal {
  const char* what;
  int code;
  std::function<int()> call;
};

// How many E lines there were.
class ErrorLines {
 public:
  ErrorLines() {
    orknn_set_platform(nullptr);  // the first call sets the library's own sink
    set_log_sink([this](LogLevel level, std::string_view, std::string_view) { count_ += level == LogLevel::Error; });
  }
  ~ErrorLines() { set_log_sink({}); }
  int take() { return std::exchange(count_, 0); }

 private:
  int count_ = 0;
};

void expect_refusals(const std::vector<Refusal>& refusals, const std::function<void()>& still_works) {
  ErrorLines lines;
  for (const Refusal& r : refusals) {
    EXPECT_EQ(r.call(), r.code) << r.what << ": " << orknn_last_error();
    EXPECT_EQ(lines.take(), 1) << r.what;
    EXPECT_STRNE(orknn_last_error(), "") << r.what;
    still_works();
    EXPECT_EQ(lines.take(), 0) << "after: " << r.what;
  }
}

TEST(CApiErrors, Init) {
  const std::vector<std::byte> model = bytes_of(chain_model(3, 100));
  TestContext good(model);
  rknn_context made = 77;
  rknn_init_extend extend{};
  const auto init = [&](uint32_t flags, rknn_init_extend* e, size_t bytes = 0) {
    return rknn_init(&made, const_cast<std::byte*>(model.data()), static_cast<uint32_t>(bytes ? bytes : model.size()), flags, e);
  };
  const std::string path = testing::TempDir() + "capi_errors.rknn", broken = testing::TempDir() + "capi_errors.bin";
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
  std::filesystem::remove(path);
  std::filesystem::remove(broken);
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

// A model of two shape sets: nothing goes before one is chosen.
TEST(CApiErrors, NoShapesChosen) {
  toolkit::BuildConfig config;
  config.target_platform = "rk3588";
  config.dynamic_input = {{{1, 3, 32, 48}}, {{1, 3, 64, 64}}};
  auto builder = toolkit::Builder::create(config);
  ASSERT_TRUE(builder);
  ASSERT_TRUE(builder->load_model({std::string(ORKNN_SOURCE_DIR) + "/examples/models/shapes.onnx"}));
  ASSERT_TRUE(builder->build());
  TestContext context(*format::write_rknn_to_memory(*builder->built()->model));
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
