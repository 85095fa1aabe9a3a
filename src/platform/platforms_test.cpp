// Rows are complete and consistent, look-up follows the vendor's spellings, and no other source file names a chip.
#include "platform/platforms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "test_paths.h"

namespace orknn::platform {
namespace {

TEST(Platforms, FindsNamesAndAliasesInAnyCase) {
  ASSERT_NE(find("rk3588"), nullptr);
  EXPECT_EQ(find("RK3588S"), find("rk3588"));
  EXPECT_EQ(find("rk1126"), find("rv1126"));
  EXPECT_NE(find("rv1126"), find("rv1126b"));
  EXPECT_EQ(find("rk3399proD"), find("RK3399PRO"));
  EXPECT_EQ(find("rk9999"), nullptr);
  EXPECT_EQ(find(""), nullptr);
  const auto bad = get("rk9999");
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.status().to_string().find("Invalid target_platform 'rk9999'; expected one of"), std::string::npos);
  EXPECT_NE(get("3588").status().to_string().find("did you mean 'rk3588'?"), std::string::npos);
  EXPECT_EQ(get("88").status().to_string().find("did you mean"), std::string::npos);
  EXPECT_NE(bad.status().to_string().find("rk3588"), std::string::npos);
}

TEST(Platforms, EveryRowIsComplete) {
  std::set<std::string_view> names;
  for (const Platform& p : all()) {
    SCOPED_TRACE(p.name);
    EXPECT_TRUE(names.insert(p.name).second);
    for (std::string_view alias : p.aliases) EXPECT_TRUE(names.insert(alias).second);
    EXPECT_FALSE(p.compatibility.empty());
    EXPECT_TRUE(p.operator_group >= 'A' && p.operator_group <= 'G');
    EXPECT_GT(p.cores, 0);
    const auto unknown = p.unknown();
    EXPECT_EQ(p.speed.source == SpeedModel::Source::Unknown, p.npu_hz == 0)
        << "a speed needs a clock, and without one nothing is predicted";
    EXPECT_EQ(unknown.empty(),
              p.npu_hz > 0 && p.ddr_hz > 0 && (p.half_macs > 0 || !p.conv_half) && (p.int16_macs > 0 || !p.conv_int16()));
    EXPECT_EQ(p.features.matmul_api, !p.mat_mul.types.empty());
    if (p.speed.source == SpeedModel::Source::Unknown) continue;
    EXPECT_GT(p.macs_per_cycle(p.conv_int8 ? DType::Int8 : DType::Float16), 0);
    const SpeedModel& v = p.speed;
    for (double constant : {v.conv,       v.pointwise,         v.depthwise,      v.half,
                            v.stem,       v.feature_gbs,       v.weight_gbs,     v.move_gbs,
                            v.layer_us,   v.table_per_cycle,   v.pool_per_cycle, v.global_pool_per_cycle,
                            v.softmax_ns, v.attention_ns,      v.norm_ns,        v.transpose_ns,
                            v.reshape_ns, v.cpu_layer_us,      v.cpu_ns,         v.cpu_transpose_ns,
                            v.cpu_mac_ns, v.space_to_batch_ns, v.overlap})
      EXPECT_GT(constant, 0);
    EXPECT_TRUE(p.conv_int8 == !p.quantized_dtypes.empty());
    EXPECT_EQ(p.features.core_mask, p.cores > 1);
  }
}

// Bytes of DDR traffic per NPU cycle, from the columns of the vendor's layer tables.
TEST(Platforms, DdrBytesPerCycleAreThePublishedOnes) {
  EXPECT_DOUBLE_EQ(find("rk3588")->ddr_bytes_per_cycle(), 23.654);
  EXPECT_DOUBLE_EQ(find("rk3576")->ddr_bytes_per_cycle(), 11.827);
  EXPECT_DOUBLE_EQ(find("rk3562")->ddr_bytes_per_cycle(), 8.736);
  EXPECT_DOUBLE_EQ(find("rk3568")->ddr_bytes_per_cycle(), 8.736);
  EXPECT_DOUBLE_EQ(find("rk3566")->ddr_bytes_per_cycle(), 5.914);
}

// Constants of a relative, corrected for the clock and the bus of the chip.
TEST(Platforms, ScaledSpeeds) {
  for (const auto& [name, relative] :
       {std::pair{"rv1103", "rk3562"}, {"rv1106", "rk3562"}, {"rv1126b", "rk3576"}, {"rk1806", "rk1808"}}) {
    SCOPED_TRACE(name);
    const SpeedModel &v = find(name)->speed, &from = find(relative)->speed;
    EXPECT_EQ(v.source, SpeedModel::Source::Scaled);
    const double slower = static_cast<double>(find(relative)->npu_hz) / static_cast<double>(find(name)->npu_hz),
                 bus = from.move_gbs / v.move_gbs;
    for (double SpeedModel::*time :
         {&SpeedModel::layer_us, &SpeedModel::softmax_ns, &SpeedModel::attention_ns, &SpeedModel::norm_ns})
      EXPECT_NEAR(v.*time, from.*time * slower, 1e-9);
    for (double SpeedModel::*time : {&SpeedModel::transpose_ns, &SpeedModel::reshape_ns})
      EXPECT_NEAR(v.*time, from.*time * std::max(slower, bus), 1e-9);
    EXPECT_EQ(v.conv, from.conv) << "a share of the array has no clock";
  }
}

// What is not published is not made up.
TEST(Platforms, UnknownArrays) {
  for (const char* name : {"rv1109", "rv1126"}) {
    EXPECT_EQ(find(name)->macs_per_cycle(DType::Float16), 0) << name;
    EXPECT_EQ(find(name)->macs_per_cycle(DType::Int16), 0) << name;
    EXPECT_EQ(find(name)->unknown(), (std::vector<std::string_view>{"float16 MACs per cycle", "16-bit MACs per cycle"})) << name;
  }
  EXPECT_EQ(find("rk1808")->macs_per_cycle(DType::Float16), 64);
  EXPECT_EQ(find("rk1808")->macs_per_cycle(DType::Int16), 192);
}

// The tables of the matmul API; native blocks follow from the array.
TEST(Platforms, MatMulLimits) {
  const MatMulLimits &old = find("rk3566")->mat_mul, &medium = find("rk3562")->mat_mul, &newer = find("rk3576")->mat_mul,
                     &wide = find("rk3588")->mat_mul;
  EXPECT_EQ(old.max_inner, 10240);
  EXPECT_EQ(medium.max_inner, 10240);
  EXPECT_EQ(newer.max_inner + wide.max_inner, 0) << "no limit";
  for (const MatMulLimits* m : {&old, &medium, &newer, &wide}) EXPECT_EQ(m->max_columns, 4096);
  EXPECT_EQ(old.columns_multiple_int8, 16);
  EXPECT_EQ(medium.columns_multiple_half, 8);
  EXPECT_EQ(newer.columns_multiple_int8, 32);
  EXPECT_EQ(wide.columns_multiple_half, 16);
  EXPECT_EQ(wide.columns_multiple_int4, 64);
  EXPECT_EQ(wide.max_columns_int4, 8192);
  EXPECT_EQ(newer.inner_segment, 4096);
  EXPECT_EQ(wide.inner_segment, 8192);
  EXPECT_EQ(wide.types, (std::vector<int>{1, 2, 3, 4, 9, 10}));
  EXPECT_FALSE(old.transposed_normal);
  const struct {
    const char* chip;
    int n_int8, k_int8, n_half, k_half;
  } kBlocks[] = {{"rk3562", 16, 32, 8, 32}, {"rk3566", 16, 32, 8, 16}, {"rk3576", 32, 32, 16, 32}, {"rk3588", 32, 32, 16, 32}};
  for (const auto& b : kBlocks) {
    const Platform& p = *find(b.chip);
    EXPECT_EQ(p.align_int8.conv_out, b.n_int8) << b.chip;
    EXPECT_EQ(p.align_int8.conv_in, b.k_int8) << b.chip;
    EXPECT_EQ(p.align_half.conv_out, b.n_half) << b.chip;
    EXPECT_EQ(p.align_half.conv_in, b.k_half) << b.chip;
  }
}

TEST(Platforms, ModelsAreSharedInsideAGroupOnly) {
  EXPECT_TRUE(compatible(*find("rk3566"), *find("rk3568")));
  EXPECT_TRUE(compatible(*find("rk1808"), *find("rk3399pro")));
  EXPECT_TRUE(compatible(*find("rv1103"), *find("rv1106")));
  EXPECT_FALSE(compatible(*find("rv1106"), *find("rv1106b")));
  EXPECT_FALSE(compatible(*find("rk3588"), *find("rk3576")));
  EXPECT_FALSE(compatible(*find("rv1126"), *find("rv1126b")));
}

// A chip is one row: nothing but platforms.cpp may spell a chip's name in code. Comments, tests and documents may.
TEST(Platforms, NoOtherFileNamesAChip) {
  namespace fs = std::filesystem;
  const std::regex chip("\\br[kv][0-9]{4}[a-z]*\\b", std::regex::icase);
  std::vector<std::string> found;
  for (const char* folder : {"src", "tools", "python/src"}) {
    const fs::path root = fs::path(tests::kSourceFolder) / folder;
    if (!fs::exists(root)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      const std::string name = entry.path().filename().string(), extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".h") continue;
      if (name == "platforms.cpp" || name.find("_test.cpp") != std::string::npos) continue;
      std::ifstream in(entry.path());
      std::string line;
      for (int number = 1; std::getline(in, line); ++number)
        if (std::regex_search(line.substr(0, line.find("//")), chip))
          found.push_back(entry.path().string() + ":" + std::to_string(number) + ": " + line);
    }
  }
  EXPECT_TRUE(found.empty()) << [&] {
    std::string all_lines;
    for (const auto& f : found) all_lines += f + "\n";
    return all_lines;
  }();
}

// Which masks each chip knows.
TEST(Platforms, CoreMasks) {
  const Platform &three = *find("rk3588"), &two = *find("rk3576"), &one = *find("rk3566");
  const struct {
    uint32_t mask;
    int three, two;
  } kMasks[] = {{0, 1, 1}, {1, 1, 1},      {2, 1, 1}, {4, 1, 0}, {3, 2, 2},
                {7, 3, 0}, {0xffff, 3, 2}, {5, 0, 0}, {8, 0, 0}, {0x10000, 0, 0}};
  for (const auto& m : kMasks) {
    EXPECT_EQ(cores_of_mask(three, m.mask) ? *cores_of_mask(three, m.mask) : 0, m.three) << m.mask;
    EXPECT_EQ(cores_of_mask(two, m.mask) ? *cores_of_mask(two, m.mask) : 0, m.two) << m.mask;
    EXPECT_EQ(cores_of_mask(one, m.mask).is_ok(), m.mask == 0) << m.mask;
  }
  EXPECT_NE(cores_of_mask(two, 7).status().to_string().find("max core mask = 3"), std::string::npos);
}

}  // namespace
}  // namespace orknn::platform
