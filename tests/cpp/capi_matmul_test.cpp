// The matmul API: attributes and limits of the chips, every refusal, what calls keep and forget. Results of all types and layouts
// are the business of tests/capi/matmul.c, which is run here.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>

#include "base/half.h"
#include "base/log.h"
#include "failing_allocation.h"
#include "format/rknn_file.h"
#include "format_sample.h"
#include "openrknn.h"
#include "rknn_matmul_api.h"
#include "sim/kernels/support/cpu.h"
#include "temporary_folder.h"
#include "test_paths.h"

extern "C" int rknn_matmul_create_dyn_shape(rknn_matmul_ctx*, rknn_matmul_info*, int, rknn_matmul_shape[], rknn_matmul_io_attr[]);

namespace orknn {
namespace {

rknn_matmul_info info_of(int type, int m = 4, int k = 64, int n = 64) {
  rknn_matmul_info info{};
  info.M = m;
  info.K = k;
  info.N = n;
  std::memcpy(&info.type, &type, sizeof type);
  return info;
}

std::vector<uint32_t> dims_of(const rknn_matmul_tensor_attr& attr) { return {attr.dims, attr.dims + attr.n_dims}; }

class CApiMatmul : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(orknn_set_platform(nullptr), RKNN_SUCC);
    set_log_sink([this](LogLevel level, std::string_view, std::string_view line) {
      if (level == LogLevel::Error) errors.emplace_back(line);
    });
  }
  void TearDown() override {
    for (rknn_tensor_mem* mem : memory) rknn_destroy_mem(0, mem);
    if (ctx) rknn_matmul_destroy(ctx);
    orknn_set_platform(nullptr);
    set_log_sink({});
  }

  // One E line that says what is wrong, and the code.
  template <class Call>
  void refused(int code, const std::string& text, Call call) {
    errors.clear();
    EXPECT_EQ(call(), code) << text;
    EXPECT_EQ(errors.size(), 1u) << text;
    EXPECT_NE(std::string(orknn_last_error()).find(text), std::string::npos) << orknn_last_error() << "\n  lacks: " << text;
  }
  void create_refused(int code, const std::string& text, rknn_matmul_info info) {
    rknn_matmul_ctx made = 77;
    rknn_matmul_io_attr attr;
    std::memset(&attr, 0xee, sizeof attr);
    const rknn_matmul_io_attr before = attr;
    refused(code, text, [&] { return rknn_matmul_create(&made, &info, &attr); });
    EXPECT_EQ(made, 77u);
    EXPECT_EQ(std::memcmp(&attr, &before, sizeof attr), 0);
  }

  // A context with its matrices: A is 1, 2, 3, ... and B -3, -2, ... modulo small numbers, halves 1/8 of that.
  void create(rknn_matmul_info wanted) {
    info = wanted;
    ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC) << orknn_last_error();
    a = make(io.A.size);
    b = make(io.B.size);
    c = make(io.C.size);
    fill();
  }
  rknn_tensor_mem* make(uint32_t size) {
    memory.push_back(rknn_create_mem(ctx, size));
    EXPECT_NE(memory.back(), nullptr);
    return memory.back();
  }
  void fill() {
    fill(a, io.A, 7, 1);
    fill(b, io.B, 11, -3);
  }
  static void fill(rknn_tensor_mem* mem, const rknn_matmul_tensor_attr& attr, uint32_t modulus, int start) {
    const bool half = attr.type == RKNN_TENSOR_FLOAT16;
    for (uint32_t i = 0; i < attr.size / (half ? 2 : 1); ++i) {
      const int value = static_cast<int>(i % modulus) + start;
      if (half)
        static_cast<Half*>(mem->virt_addr)[i] = Half(static_cast<float>(value) / 8);
      else
        bytes(mem)[i] = static_cast<int8_t>(value);
    }
  }
  void bind() {
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, a, &io.A), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, b, &io.B), RKNN_SUCC) << orknn_last_error();
    ASSERT_EQ(rknn_matmul_set_io_mem(ctx, c, &io.C), RKNN_SUCC) << orknn_last_error();
  }
  static int8_t* bytes(rknn_tensor_mem* mem) { return static_cast<int8_t*>(mem->virt_addr); }
  std::vector<int8_t> run() {
    std::memset(c->virt_addr, 0xee, c->size);
    EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC) << orknn_last_error();
    return {bytes(c), bytes(c) + c->size};
  }
  static rknn_quant_params params_of(const char* name, std::vector<float>& scales, std::vector<int32_t>& zeros) {
    rknn_quant_params p{};
    std::strcpy(p.name, name);
    p.scale = scales.data();
    p.scale_len = static_cast<int32_t>(scales.size());
    p.zp = zeros.data();
    p.zp_len = static_cast<int32_t>(zeros.size());
    return p;
  }

  std::vector<std::string> errors;
  std::vector<rknn_tensor_mem*> memory;
  rknn_matmul_ctx ctx = 0;
  rknn_matmul_info info{};
  rknn_matmul_io_attr io{};
  rknn_tensor_mem *a = nullptr, *b = nullptr, *c = nullptr;
};

TEST_F(CApiMatmul, ResultsOfAllTypesAndLayoutsAreThoseOfPlainLoops) {
  for (const char* chip : {"", "rk3562", "rk3566", "rk3568", "rk3576", "rk3588", "rv1126b"}) {
    FILE* pipe = popen((std::string(tests::kBuildFolder) + "/capi_matmul " + chip + " 2>&1").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text;
    char part[512];
    while (std::fgets(part, sizeof part, pipe)) text += part;
    EXPECT_EQ(pclose(pipe), 0) << chip << ": " << text;
    EXPECT_NE(text.find("products equal the reference"), std::string::npos) << chip << ": " << text;
  }
}

TEST_F(CApiMatmul, AttributesAreThoseOfTheChip) {
  struct Case {
    const char* chip;
    int type;
    std::vector<uint32_t> a, b, c;
  };
  const Case cases[] = {
      {"rk3562", 2, {4, 4, 16}, {4, 2, 16, 32}, {16, 4, 4}},  {"rk3562", 1, {8, 4, 8}, {8, 2, 8, 32}, {16, 4, 4}},
      {"rk3566", 2, {8, 4, 8}, {4, 2, 16, 32}, {16, 4, 4}},   {"rk3568", 1, {16, 4, 4}, {8, 4, 8, 16}, {16, 4, 4}},
      {"rk3576", 2, {4, 4, 16}, {2, 2, 32, 32}, {16, 4, 4}},  {"rk3576", 1, {8, 4, 8}, {4, 2, 16, 32}, {16, 4, 4}},
      {"rk3576", 4, {8, 4, 8}, {4, 2, 16, 32}, {8, 4, 8}},    {"rk3576", 7, {8, 4, 8}, {4, 2, 16, 32}, {16, 4, 4}},
      {"rk3576", 11, {4, 4, 16}, {2, 2, 32, 32}, {16, 4, 4}}, {"rk3588", 10, {2, 4, 32}, {1, 2, 64, 32}, {8, 4, 8}},
      {"rk3588", 3, {4, 4, 16}, {2, 2, 32, 32}, {4, 4, 16}},  {"rk3588", 9, {4, 4, 16}, {2, 2, 32, 32}, {16, 4, 4}}};
  for (const Case& t : cases) {
    ASSERT_EQ(orknn_set_platform(t.chip), RKNN_SUCC);
    rknn_matmul_info native = info_of(t.type);
    native.B_layout = RKNN_MM_LAYOUT_NATIVE;
    native.AC_layout = RKNN_MM_LAYOUT_NATIVE;
    ASSERT_EQ(rknn_matmul_create(&ctx, &native, &io), RKNN_SUCC) << orknn_last_error();
    EXPECT_EQ(dims_of(io.A), t.a) << t.chip << " " << t.type;
    EXPECT_EQ(dims_of(io.B), t.b) << t.chip << " " << t.type;
    EXPECT_EQ(dims_of(io.C), t.c) << t.chip << " " << t.type;
    EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  }
  ASSERT_EQ(orknn_set_platform("rk3588"), RKNN_SUCC);
  rknn_matmul_info by_columns = info_of(10);
  by_columns.B_layout = RKNN_MM_LAYOUT_TP_NORM;
  ASSERT_EQ(rknn_matmul_create(&ctx, &by_columns, &io), RKNN_SUCC);
  EXPECT_STREQ(io.A.name, "A");
  EXPECT_STREQ(io.B.name, "B");
  EXPECT_STREQ(io.C.name, "C");
  EXPECT_EQ(dims_of(io.A), (std::vector<uint32_t>{4, 64}));
  EXPECT_EQ(dims_of(io.B), (std::vector<uint32_t>{64, 64}));
  EXPECT_EQ(io.A.size, 128u);
  EXPECT_EQ(io.C.size, 512u);
  EXPECT_EQ(io.A.type, RKNN_TENSOR_INT4);
  EXPECT_EQ(io.C.type, RKNN_TENSOR_INT16);
}

TEST_F(CApiMatmul, LongDepthsAreStoredInSegments) {
  ASSERT_EQ(orknn_set_platform("rk3576"), RKNN_SUCC);
  rknn_matmul_info wanted = info_of(2, 1, 10240, 2048);
  wanted.B_layout = RKNN_MM_LAYOUT_NATIVE;
  ASSERT_EQ(rknn_matmul_create(&ctx, &wanted, &io), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(dims_of(io.B), (std::vector<uint32_t>{64, 320, 32, 32}));
  EXPECT_EQ(io.B.size, 10240u * 2048u);
  std::vector<int8_t> plain(10240 * 2048), native(plain.size());
  plain[4096 * 2048] = 1;         // first row of the second segment
  plain[9000 * 2048 + 2047] = 2;  // last column of the third
  ASSERT_EQ(rknn_B_normal_layout_to_native_layout(plain.data(), native.data(), 10240, 2048, &wanted), RKNN_SUCC);
  EXPECT_EQ(native[4096 * 2048], 1);
  EXPECT_EQ(native[8192 * 2048 + ((63 * 64 + 808 / 32) * 32 + 31) * 32 + 808 % 32], 2);
  EXPECT_EQ(std::accumulate(native.begin(), native.end(), 0), 3);
}

TEST_F(CApiMatmul, CreateRefuses) {
  rknn_matmul_info good = info_of(2);
  refused(RKNN_ERR_PARAM_INVALID, "ctx is NULL", [&] { return rknn_matmul_create(nullptr, &good, &io); });
  refused(RKNN_ERR_PARAM_INVALID, "info is NULL", [&] { return rknn_matmul_create(&ctx, nullptr, &io); });
  refused(RKNN_ERR_PARAM_INVALID, "io_attr is NULL", [&] { return rknn_matmul_create(&ctx, &good, nullptr); });
  create_refused(RKNN_ERR_PARAM_INVALID, "must be positive", info_of(2, 0));
  create_refused(RKNN_ERR_PARAM_INVALID, "must be positive", info_of(2, 4, -64));
  create_refused(RKNN_ERR_PARAM_INVALID, "must be positive", info_of(99, 4, 64, 0));  // before the type
  for (int type : {0, 13, 14, 16, -1}) create_refused(RKNN_ERR_PARAM_INVALID, "unsupported dtype", info_of(type));
  const auto with = [&](auto change) {
    rknn_matmul_info changed = info_of(2);
    change(changed);
    return changed;
  };
  create_refused(RKNN_ERR_PARAM_INVALID, "unknown B_layout", with([](auto& i) { i.B_layout = 3; }));
  create_refused(RKNN_ERR_PARAM_INVALID, "unknown B_layout", with([](auto& i) { i.B_layout = -1; }));
  create_refused(RKNN_ERR_PARAM_INVALID, "unknown AC_layout", with([](auto& i) { i.AC_layout = 2; }));
  create_refused(RKNN_ERR_PARAM_INVALID, "unknown B_quant_type", with([](auto& i) { i.B_quant_type = 6; }));
  create_refused(RKNN_ERR_PARAM_INVALID, "unknown AC_quant_type", with([](auto& i) { i.AC_quant_type = 2; }));
  create_refused(RKNN_ERR_PARAM_INVALID, "iommu_domain_id", with([](auto& i) { i.iommu_domain_id = -1; }));
  create_refused(RKNN_ERR_PARAM_INVALID, "K is not aligned", info_of(2, 4, 48));
  create_refused(RKNN_ERR_PARAM_INVALID, "N is not aligned", info_of(2, 4, 64, 48));
  create_refused(RKNN_ERR_PARAM_INVALID, "N is not aligned", info_of(10, 4, 64, 32));
  create_refused(RKNN_ERR_PARAM_INVALID, "A is too large", info_of(2, 1 << 30, 1 << 30, 32));
  create_refused(RKNN_ERR_PARAM_INVALID, "C is too large", info_of(2, 1 << 25, 32, 64));
  rknn_matmul_info by_channel = info_of(9);
  by_channel.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  create_refused(RKNN_ERR_PARAM_INVALID, "per channel", by_channel);
  by_channel = info_of(1);
  by_channel.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_ASYM;
  create_refused(RKNN_ERR_PARAM_INVALID, "per channel", by_channel);
  rknn_matmul_info by_group = info_of(2);
  by_group.B_quant_type = RKNN_QUANT_TYPE_PER_GROUP_SYM;
  by_group.group_size = 32;
  create_refused(RKNN_ERR_PARAM_INVALID, "per group", by_group);
  by_group = info_of(9);
  by_group.B_quant_type = RKNN_QUANT_TYPE_PER_GROUP_SYM;
  for (int16_t size : {0, -32, 48, 128}) {
    by_group.group_size = size;
    create_refused(RKNN_ERR_PARAM_INVALID, "group_size does not divide K", by_group);
  }
}

TEST_F(CApiMatmul, LimitsAreThoseOfTheChip) {
  struct Case {
    const char* chip;
    rknn_matmul_info info;
    int code;
    const char* text;
  };
  rknn_matmul_info by_columns = info_of(2);
  by_columns.B_layout = RKNN_MM_LAYOUT_TP_NORM;
  const Case cases[] = {{"rk3562", info_of(2, 1, 10240, 16), 0, ""},
                        {"rk3562", info_of(2, 1, 10272, 16), -5, "K is too large for rk3562"},
                        {"rk3562", info_of(2, 1, 32, 4112), -5, "N is too large"},
                        {"rk3562", info_of(2, 1, 32, 8), -5, "N is not aligned"},
                        {"rk3562", info_of(1, 1, 16, 8), -5, "K is not aligned"},
                        {"rk3562", by_columns, 0, ""},
                        {"rk3566", info_of(1, 1, 16, 8), 0, ""},
                        {"rk3566", info_of(1, 1, 8, 8), -5, "K is not aligned"},
                        {"rk3566", info_of(3), -5, "not available on rk3566; expected 1, 2"},
                        {"rk3568", by_columns, -5, "RKNN_MM_LAYOUT_TP_NORM is not available on rk3568"},
                        {"rk3576", info_of(1, 1, 32, 16), 0, ""},
                        {"rk3576", info_of(7, 1, 32, 16), 0, ""},
                        {"rk3576", info_of(11, 1, 32, 16), -5, "N is not aligned"},
                        {"rk3576", info_of(2, 1, 20480, 4096), 0, ""},
                        {"rk3576", info_of(2, 1, 32, 4128), -5, "N is too large"},
                        {"rk3576", info_of(3), -5, "unsupported dtype"},
                        {"rk3588", info_of(10, 1, 32, 8192), 0, ""},
                        {"rk3588", info_of(10, 1, 32, 8256), -5, "N is too large"},
                        {"rk3588", info_of(7), -5, "unsupported dtype"},
                        {"rv1126b", info_of(2), -5, "unsupported dtype"},
                        {"rv1126b", info_of(5), 0, ""},
                        {"rk2118", info_of(1), -13, "no matmul API"},
                        {"rv1106", info_of(1), -13, "no matmul API"},
                        {"rk1808", info_of(1), -13, "no matmul API"}};
  for (const Case& t : cases) {
    ASSERT_EQ(orknn_set_platform(t.chip), RKNN_SUCC);
    if (t.code != 0) {
      create_refused(t.code, t.text, t.info);
      continue;
    }
    rknn_matmul_info wanted = t.info;
    ASSERT_EQ(rknn_matmul_create(&ctx, &wanted, &io), RKNN_SUCC) << t.chip << ": " << orknn_last_error();
    EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
    ctx = 0;
  }
  rknn_matmul_info any = info_of(2);
  int8_t data[64 * 64] = {};
  ASSERT_EQ(orknn_set_platform("rv1106"), RKNN_SUCC);
  refused(RKNN_ERR_TARGET_PLATFORM_UNMATCH, "no matmul API",
          [&] { return rknn_B_normal_layout_to_native_layout(data, data, 64, 64, &any); });
  ASSERT_EQ(orknn_set_platform(nullptr), RKNN_SUCC);
  rknn_matmul_info wide = info_of(2, 1, 32, 8192);  // no chip in particular: no limit
  ASSERT_EQ(rknn_matmul_create(&ctx, &wide, &io), RKNN_SUCC) << orknn_last_error();
}

TEST_F(CApiMatmul, AContextKeepsTheChipItWasMadeFor) {
  ASSERT_EQ(orknn_set_platform("rk3576"), RKNN_SUCC);
  create(info_of(2));
  ASSERT_EQ(orknn_set_platform("rk3562"), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_set_core_mask(ctx, RKNN_NPU_CORE_1), RKNN_SUCC) << orknn_last_error();
  bind();
  run();
}

TEST_F(CApiMatmul, CreateDynamicRefuses) {
  rknn_matmul_info wanted = info_of(2, -1, -1, -1);  // M, K and N do not count
  rknn_matmul_shape shapes[] = {{1, 64, 64}, {4, 64, 64}};
  rknn_matmul_io_attr attrs[2];
  const auto call = [&](int count) { return rknn_matmul_create_dynamic_shape(&ctx, &wanted, count, shapes, attrs); };
  refused(RKNN_ERR_PARAM_INVALID, "ctx is NULL",
          [&] { return rknn_matmul_create_dynamic_shape(nullptr, &wanted, 2, shapes, attrs); });
  refused(RKNN_ERR_PARAM_INVALID, "info is NULL",
          [&] { return rknn_matmul_create_dynamic_shape(&ctx, nullptr, 2, shapes, attrs); });
  refused(RKNN_ERR_PARAM_INVALID, "dynamic_shapes is NULL",
          [&] { return rknn_matmul_create_dynamic_shape(&ctx, &wanted, 2, nullptr, attrs); });
  refused(RKNN_ERR_PARAM_INVALID, "io_attrs is NULL",
          [&] { return rknn_matmul_create_dynamic_shape(&ctx, &wanted, 2, shapes, nullptr); });
  refused(RKNN_ERR_PARAM_INVALID, "shape_num is 0", [&] { return call(0); });
  refused(RKNN_ERR_PARAM_INVALID, "shape_num is -3", [&] { return call(-3); });
  shapes[1].M = 0;
  refused(RKNN_ERR_PARAM_INVALID, "must be positive", [&] { return call(2); });
  shapes[1] = {4, 32, 64};
  refused(RKNN_ERR_PARAM_INVALID, "K and N differ", [&] { return call(2); });
  shapes[1] = {4, 64, 32};
  refused(RKNN_ERR_PARAM_INVALID, "K and N differ", [&] { return call(2); });
  shapes[1] = {4, 65, 32};
  wanted.B_layout = RKNN_MM_LAYOUT_TP_NORM;
  refused(RKNN_ERR_PARAM_INVALID, "K is not aligned", [&] { return call(2); });
  shapes[1] = {4, 96, 32};
  EXPECT_EQ(rknn_matmul_create_dyn_shape(&ctx, &wanted, 2, shapes, attrs), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(dims_of(attrs[1].B), (std::vector<uint32_t>{32, 96}));
  EXPECT_EQ(attrs[0].C.size, 256u);
  EXPECT_EQ(attrs[1].C.size, 512u);
}

TEST_F(CApiMatmul, SetIoMemRefusesAndKeepsWhatIsBound) {
  create(info_of(2));
  bind();
  const std::vector<int8_t> before = run();
  const auto set = [&](rknn_tensor_mem* mem, const rknn_matmul_tensor_attr& attr) {
    rknn_matmul_tensor_attr copy = attr;
    return rknn_matmul_set_io_mem(ctx, mem, &copy);
  };
  refused(RKNN_ERR_PARAM_INVALID, "mem is NULL", [&] { return rknn_matmul_set_io_mem(ctx, nullptr, &io.A); });
  refused(RKNN_ERR_PARAM_INVALID, "attr is NULL", [&] { return rknn_matmul_set_io_mem(ctx, a, nullptr); });
  for (const char* name : {"", "D", "AB", "a"}) {
    rknn_matmul_tensor_attr attr = io.A;
    std::strcpy(attr.name, name);
    refused(RKNN_ERR_PARAM_INVALID, "expected A, B or C", [&] { return set(a, attr); });
  }
  rknn_matmul_tensor_attr endless = io.A;
  std::memset(endless.name, 'A', sizeof endless.name);
  refused(RKNN_ERR_PARAM_INVALID, "expected A, B or C", [&] { return set(a, endless); });
  rknn_tensor_mem* small = make(io.A.size - 1);
  std::memset(small->virt_addr, 1, small->size);
  refused(RKNN_ERR_PARAM_INVALID, "memory of A is too small: expected 256 bytes, found 255", [&] { return set(small, io.A); });
  small->size = io.A.size;  // a lie: the block is as small as before
  small->offset = 4096;
  refused(RKNN_ERR_PARAM_INVALID, "too small", [&] { return set(small, io.A); });
  rknn_tensor_mem nowhere{};
  nowhere.size = io.A.size;
  refused(RKNN_ERR_PARAM_INVALID, "virt_addr is NULL", [&] { return set(&nowhere, io.A); });
  for (auto change : {+[](rknn_matmul_tensor_attr& t) { t.dims[0] = 5; }, +[](rknn_matmul_tensor_attr& t) { t.n_dims = 3; },
                      +[](rknn_matmul_tensor_attr& t) { t.n_dims = 1000; }, +[](rknn_matmul_tensor_attr& t) { t.size = 1; },
                      +[](rknn_matmul_tensor_attr& t) { t.type = RKNN_TENSOR_FLOAT16; }}) {
    rknn_matmul_tensor_attr attr = io.A;
    change(attr);
    refused(RKNN_ERR_PARAM_INVALID, "not one that this context gave out", [&] { return set(a, attr); });
  }
  rknn_tensor_mem* closed = rknn_create_mem_from_fd(ctx, 1 << 20, a->virt_addr, io.A.size, 0);
  ASSERT_NE(closed, nullptr);
  memory.push_back(closed);
  refused(RKNN_ERR_MALLOC_FAIL, "file descriptor", [&] { return set(closed, io.A); });
  EXPECT_EQ(run(), before);
}

TEST_F(CApiMatmul, RunRefusesUntilAllIsBound) {
  create(info_of(2));
  refused(RKNN_ERR_FAIL, "matrix A is not bound", [&] { return rknn_matmul_run(ctx); });
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, a, &io.A), RKNN_SUCC);
  refused(RKNN_ERR_FAIL, "matrix B is not bound", [&] { return rknn_matmul_run(ctx); });
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, b, &io.B), RKNN_SUCC);
  refused(RKNN_ERR_FAIL, "matrix C is not bound", [&] { return rknn_matmul_run(ctx); });
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, c, &io.C), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC);
}

TEST_F(CApiMatmul, RunsAreInTheTrace) {
  create(info_of(RKNN_INT8_MM_INT8_TO_INT32));
  bind();
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("matmul_trace.json");
  ASSERT_EQ(orknn_trace_start(path.c_str()), RKNN_SUCC);
  run();
  ASSERT_EQ(orknn_trace_stop(), RKNN_SUCC);
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_NE(text.find("\"matmul 4x64x64\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"rknn_matmul_run\""), std::string::npos) << text;
}

TEST_F(CApiMatmul, DynamicShapesForgetWhatChanges) {
  rknn_matmul_info wanted = info_of(2);
  rknn_matmul_shape shapes[] = {{1, 64, 64}, {4, 64, 64}}, other{2, 64, 64};
  rknn_matmul_io_attr attrs[2];
  ASSERT_EQ(rknn_matmul_create_dynamic_shape(&ctx, &wanted, 2, shapes, attrs), RKNN_SUCC) << orknn_last_error();
  a = make(attrs[1].A.size);
  b = make(attrs[1].B.size);
  c = make(attrs[1].C.size);
  refused(RKNN_ERR_FAIL, "no shape is selected", [&] { return rknn_matmul_set_io_mem(ctx, a, &attrs[0].A); });
  refused(RKNN_ERR_FAIL, "not bound", [&] { return rknn_matmul_run(ctx); });
  refused(RKNN_ERR_PARAM_INVALID, "shape is NULL", [&] { return rknn_matmul_set_dynamic_shape(ctx, nullptr); });
  refused(RKNN_ERR_PARAM_INVALID, "not made with this shape", [&] { return rknn_matmul_set_dynamic_shape(ctx, &other); });
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(ctx, &shapes[0]), RKNN_SUCC);
  refused(RKNN_ERR_PARAM_INVALID, "belongs to another shape", [&] { return rknn_matmul_set_io_mem(ctx, a, &attrs[1].A); });
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, b, &attrs[0].B), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, a, &attrs[0].A), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, c, &attrs[0].C), RKNN_SUCC);
  refused(RKNN_ERR_PARAM_INVALID, "not made with this shape", [&] { return rknn_matmul_set_dynamic_shape(ctx, &other); });
  EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(ctx, &shapes[0]), RKNN_SUCC);  // the same once more changes nothing
  EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_matmul_set_dynamic_shape(ctx, &shapes[1]), RKNN_SUCC);
  refused(RKNN_ERR_FAIL, "matrix A is not bound", [&] { return rknn_matmul_run(ctx); });
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, a, &attrs[1].A), RKNN_SUCC);
  refused(RKNN_ERR_FAIL, "matrix C is not bound", [&] { return rknn_matmul_run(ctx); });  // B is kept
  ASSERT_EQ(rknn_matmul_set_io_mem(ctx, c, &attrs[1].C), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_create(&ctx, &wanted, &io), RKNN_SUCC);
  refused(RKNN_ERR_PARAM_INVALID, "made for one shape", [&] { return rknn_matmul_set_dynamic_shape(ctx, &shapes[1]); });
}

TEST_F(CApiMatmul, CoreMasks) {
  create(info_of(2));
  for (int mask : {RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_0, RKNN_NPU_CORE_1, RKNN_NPU_CORE_2})
    EXPECT_EQ(rknn_matmul_set_core_mask(ctx, static_cast<rknn_core_mask>(mask)), RKNN_SUCC) << orknn_last_error();
  for (rknn_core_mask mask : {RKNN_NPU_CORE_0_1, RKNN_NPU_CORE_0_1_2, RKNN_NPU_CORE_ALL})
    refused(RKNN_ERR_FAIL, "a product runs on one", [&] { return rknn_matmul_set_core_mask(ctx, mask); });
  refused(RKNN_ERR_PARAM_INVALID, "invalid core_mask",
          [&] { return rknn_matmul_set_core_mask(ctx, static_cast<rknn_core_mask>(5)); });
  bind();
  run();
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  ASSERT_EQ(orknn_set_platform("rk3576"), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_set_core_mask(ctx, RKNN_NPU_CORE_1), RKNN_SUCC);
  refused(RKNN_ERR_PARAM_INVALID, "invalid core_mask", [&] { return rknn_matmul_set_core_mask(ctx, RKNN_NPU_CORE_2); });
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  ASSERT_EQ(orknn_set_platform("rk3562"), RKNN_SUCC);
  ASSERT_EQ(rknn_matmul_create(&ctx, &info, &io), RKNN_SUCC);
  refused(RKNN_ERR_FAIL, "which has one", [&] { return rknn_matmul_set_core_mask(ctx, RKNN_NPU_CORE_AUTO); });
}

TEST_F(CApiMatmul, QuantParamsRefuseAndKeepWhatWasSet) {
  rknn_matmul_info wanted = info_of(3);
  wanted.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_ASYM;
  create(wanted);
  bind();
  std::vector<float> scales(64, 0.25f), one{0.5f};
  std::vector<int32_t> zeros(64, 2), none, zero{0};
  rknn_quant_params good = params_of("B", scales, zeros), left = params_of("A", one, zero);
  ASSERT_EQ(rknn_matmul_set_quant_params(ctx, &good), RKNN_SUCC) << orknn_last_error();
  ASSERT_EQ(rknn_matmul_set_quant_params(ctx, &left), RKNN_SUCC) << orknn_last_error();
  const std::vector<int8_t> before = run();
  const auto set = [&](auto change) {
    rknn_quant_params p = good;
    change(p);
    return rknn_matmul_set_quant_params(ctx, &p);
  };
  refused(RKNN_ERR_PARAM_INVALID, "params is NULL", [&] { return rknn_matmul_set_quant_params(ctx, nullptr); });
  refused(RKNN_ERR_PARAM_INVALID, "expected A, B or C", [&] { return set([](auto& p) { p.name[0] = 'X'; }); });
  refused(RKNN_ERR_PARAM_INVALID, "scale is NULL", [&] { return set([](auto& p) { p.scale = nullptr; }); });
  refused(RKNN_ERR_PARAM_INVALID, "scale_len of B; expected 64", [&] { return set([](auto& p) { p.scale_len = 1; }); });
  refused(RKNN_ERR_PARAM_INVALID, "scale_len", [&] { return set([](auto& p) { p.scale_len = -64; }); });
  refused(RKNN_ERR_PARAM_INVALID, "zp_len of B; expected 0 or 64", [&] { return set([](auto& p) { p.zp_len = 63; }); });
  refused(RKNN_ERR_PARAM_INVALID, "zp is NULL", [&] { return set([](auto& p) { p.zp = nullptr; }); });
  for (float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    scales[63] = bad;
    refused(RKNN_ERR_PARAM_INVALID, "scale of B; expected a positive number", [&] { return set([](auto&) {}); });
  }
  scales[63] = 0.25f;
  zeros[63] = 128;
  refused(RKNN_ERR_PARAM_INVALID, "outside int8", [&] { return set([](auto&) {}); });
  zeros[63] = 2;
  std::vector<int32_t> five{5};
  rknn_quant_params asymmetric = params_of("A", one, five);
  refused(RKNN_ERR_PARAM_INVALID, "quantized symmetrically", [&] { return rknn_matmul_set_quant_params(ctx, &asymmetric); });
  EXPECT_EQ(run(), before);
  std::fill(scales.begin(), scales.end(), 99.0f);  // the arrays were copied
  EXPECT_EQ(run(), before);
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  rknn_matmul_info floats = info_of(1);
  ASSERT_EQ(rknn_matmul_create(&ctx, &floats, &io), RKNN_SUCC);
  refused(RKNN_ERR_PARAM_INVALID, "no integer operand", [&] { return rknn_matmul_set_quant_params(ctx, &left); });
}

TEST_F(CApiMatmul, TheCommonScaleOfChannels) {
  rknn_matmul_info wanted = info_of(2);
  wanted.B_quant_type = RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  create(wanted);
  float scale = 0;
  rknn_quant_params unused{};
  EXPECT_EQ(rknn_matmul_get_quant_params(ctx, &unused, &scale), RKNN_SUCC) << orknn_last_error();
  EXPECT_EQ(scale, 1.0f);
  std::vector<float> scales(64, 0.25f);
  std::vector<int32_t> none;
  rknn_quant_params params = params_of("B", scales, none);
  ASSERT_EQ(rknn_matmul_set_quant_params(ctx, &params), RKNN_SUCC) << orknn_last_error();
  bind();
  const std::vector<int8_t> equal = run();
  EXPECT_EQ(rknn_matmul_get_quant_params(ctx, &unused, &scale), RKNN_SUCC);
  EXPECT_EQ(scale, 0.25f);
  scales[1] = 0.5f;
  ASSERT_EQ(rknn_matmul_set_quant_params(ctx, &params), RKNN_SUCC);
  EXPECT_EQ(rknn_matmul_get_quant_params(ctx, &unused, &scale), RKNN_SUCC);
  EXPECT_EQ(scale, 0.5f);
  const std::vector<int8_t> unequal = run();
  int32_t plain[64], scaled[64];
  std::memcpy(plain, equal.data(), sizeof plain);
  std::memcpy(scaled, unequal.data(), sizeof scaled);
  EXPECT_EQ(scaled[1], plain[1]);
  EXPECT_NEAR(scaled[2], plain[2] * 0.5, 0.5);
  scale = 7;
  refused(RKNN_ERR_PARAM_INVALID, "params is NULL", [&] { return rknn_matmul_get_quant_params(ctx, nullptr, &scale); });
  refused(RKNN_ERR_PARAM_INVALID, "scale is NULL", [&] { return rknn_matmul_get_quant_params(ctx, &unused, nullptr); });
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  rknn_matmul_info by_layer = info_of(2);
  ASSERT_EQ(rknn_matmul_create(&ctx, &by_layer, &io), RKNN_SUCC);
  refused(RKNN_ERR_PARAM_INVALID, "common scale", [&] { return rknn_matmul_get_quant_params(ctx, &unused, &scale); });
  EXPECT_EQ(scale, 7);
}

TEST_F(CApiMatmul, ConversionRefuses) {
  rknn_matmul_info wanted = info_of(2), unknown = info_of(13);
  int8_t from[64 * 64] = {}, to[64 * 64];
  std::memset(to, 5, sizeof to);
  const auto convert = [&](void* x, void* y, int k, int n, rknn_matmul_info* i) {
    return [=] { return rknn_B_normal_layout_to_native_layout(x, y, k, n, i); };
  };
  refused(RKNN_ERR_PARAM_INVALID, "B_input is NULL", convert(nullptr, to, 64, 64, &wanted));
  refused(RKNN_ERR_PARAM_INVALID, "B_output is NULL", convert(from, nullptr, 64, 64, &wanted));
  refused(RKNN_ERR_PARAM_INVALID, "info is NULL", convert(from, to, 64, 64, nullptr));
  refused(RKNN_ERR_PARAM_INVALID, "must be positive", convert(from, to, 0, 64, &wanted));
  refused(RKNN_ERR_PARAM_INVALID, "must be positive", convert(from, to, 64, -1, &wanted));
  refused(RKNN_ERR_PARAM_INVALID, "unsupported dtype", convert(from, to, 64, 64, &unknown));
  EXPECT_EQ(to[0], 5);
  // Shapes between the blocks are padded with zeros.
  std::memset(from, 1, sizeof from);
  EXPECT_EQ(rknn_B_normal_layout_to_native_layout(from, to, 33, 17, &wanted), RKNN_SUCC);
  EXPECT_EQ(std::accumulate(to, to + 32 * 64, 0), 33 * 17);
  EXPECT_EQ(to[31], 1);
  EXPECT_EQ(to[17 * 32], 0);
  EXPECT_EQ(to[32 * 32], 1);
  EXPECT_EQ(to[32 * 32 + 1], 0);
}

TEST_F(CApiMatmul, HandlesOfTheWrongKindAreRefused) {
  create(info_of(2));
  const auto all = [&](rknn_matmul_ctx handle) {
    rknn_matmul_shape shape{1, 1, 1};
    rknn_quant_params params{};
    float scale = 0;
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_set_io_mem(handle, a, &io.A); });
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_set_core_mask(handle, RKNN_NPU_CORE_0); });
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_set_quant_params(handle, nullptr); });
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_get_quant_params(handle, &params, &scale); });
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_set_dynamic_shape(handle, &shape); });
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_run(handle); });
    refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_matmul_destroy(handle); });
  };
  all(0);
  all(123456789);
  std::vector<std::byte> bytes = *format::write_rknn_to_memory(format::sample_model());
  rknn_context model = 0;
  ASSERT_EQ(rknn_init(&model, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC);
  all(model);
  refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_run(ctx, nullptr); });
  refused(RKNN_ERR_CTX_INVALID, "context is not valid", [&] { return rknn_destroy(ctx); });
  EXPECT_EQ(rknn_run(model, nullptr), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy(model), RKNN_SUCC);
  bind();
  run();
  EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
  all(ctx);
  ctx = 0;
}

TEST_F(CApiMatmul, NativeOperandsAreReadByTheRunAndLiveAsLongAsTheyAreBound) {
  rknn_matmul_info wanted = info_of(2);
  wanted.B_layout = RKNN_MM_LAYOUT_NATIVE;
  wanted.AC_layout = RKNN_MM_LAYOUT_NATIVE;
  create(wanted);
  bind();
  const std::vector<int8_t> before = run();
  EXPECT_EQ(run(), before);
  bytes(b)[3] = static_cast<int8_t>(bytes(b)[3] + 1);
  const std::vector<int8_t> other_b = run();
  EXPECT_NE(other_b, before);
  bytes(a)[3] = static_cast<int8_t>(bytes(a)[3] + 1);
  EXPECT_NE(run(), other_b);
  fill();
  EXPECT_EQ(run(), before);
  // The examples destroy memory first; nothing may be read or written after that.
  for (rknn_tensor_mem* mem : memory) EXPECT_EQ(rknn_destroy_mem(ctx, mem), RKNN_SUCC);
  memory.clear();
  EXPECT_EQ(rknn_matmul_run(ctx), RKNN_SUCC) << orknn_last_error();
}

TEST_F(CApiMatmul, QuantizationAfterBindingCounts) {
  rknn_matmul_info wanted = info_of(5);
  create(wanted);
  bind();
  const std::vector<int8_t> before = run();
  std::vector<float> scale{2.0f};
  std::vector<int32_t> zero;
  rknn_quant_params params = params_of("B", scale, zero);
  ASSERT_EQ(rknn_matmul_set_quant_params(ctx, &params), RKNN_SUCC) << orknn_last_error();
  const std::vector<int8_t> after = run();
  float first = 0, second = 0;
  std::memcpy(&first, before.data(), 4);
  std::memcpy(&second, after.data(), 4);
  EXPECT_NE(first, 0);
  EXPECT_EQ(second, 2 * first);
}

TEST_F(CApiMatmul, ResultsDoNotDependOnThreadsOrInstructions) {
  for (int type : {1, 2, 3, 4, 5, 9, 10, 12, 15}) {
    std::vector<int8_t> first;
    for (sim::kernels::Isa isa : sim::kernels::available_isas())
      for (int threads : {1, 2, 3}) {
        const sim::kernels::Isa usual = sim::kernels::current_isa();
        sim::kernels::set_current_isa(isa);
        ASSERT_EQ(orknn_set_thread_count(threads), RKNN_SUCC);
        create(info_of(type, 150, 96, 320));
        bind();
        const std::vector<int8_t> result = run();
        if (first.empty()) first = result;
        EXPECT_EQ(result, first) << "type " << type << ", " << sim::kernels::isa_name(isa) << ", " << threads << " threads";
        EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
        sim::kernels::set_current_isa(usual);
      }
  }
  orknn_set_thread_count(0);
}

TEST_F(CApiMatmul, MemoryThatRunsOutIsAnErrorAndTheNextCallWorks) {
  for (int type : {1, 2, 5, 9}) {
    rknn_matmul_info wanted = info_of(type);
    wanted.AC_layout = RKNN_MM_LAYOUT_NATIVE;
    create(wanted);
    bind();
    const std::vector<int8_t> before = run();
    const auto steps = [&] {
      for (auto [mem, attr] : {std::pair{a, &io.A}, std::pair{b, &io.B}, std::pair{c, &io.C}})
        if (const int code = rknn_matmul_set_io_mem(ctx, mem, attr)) return code;
      return rknn_matmul_run(ctx);
    };
    set_log_sink([](LogLevel, std::string_view, std::string_view) {});
    int64_t count = 0;
    {
      const tests::FailingAllocation counting(tests::FailingAllocation::kNone);
      ASSERT_EQ(steps(), RKNN_SUCC);
      count = counting.counted();
    }
    for (int64_t i = 0; i < count; ++i) {
      int code = 0;
      {
        const tests::FailingAllocation failing(i);
        code = steps();
      }
      EXPECT_TRUE(code == RKNN_ERR_MALLOC_FAIL || code == RKNN_SUCC) << "type " << type << ", allocation " << i << ": " << code;
      EXPECT_EQ(run(), before) << "type " << type << ", allocation " << i;
    }
    EXPECT_EQ(rknn_matmul_destroy(ctx), RKNN_SUCC);
    ctx = 0;
  }
}

}  // namespace
}  // namespace orknn
