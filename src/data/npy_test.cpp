// NumPy files: both directions, every spelling of the header we accept, and damage.
#include "data/npy.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>

#include "mutation.h"
#include "temporary_folder.h"

namespace orknn::data {
namespace {

using tests::TemporaryFolder;

TEST(Npy, RoundTrip) {
  TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  for (const ir::Dims& dims : {ir::Dims{}, ir::Dims{3}, ir::Dims{2, 0}, ir::Dims{2, 3, 4}}) {
    std::vector<float> values(static_cast<size_t>(ir::element_count(dims)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 1.5f;
    const ir::TensorData value = ir::TensorData::from<float>(dims, values);
    ASSERT_TRUE(write_npy(path, value));
    const auto back = read_npy(path);
    ASSERT_TRUE(back) << back.status().to_string();
    EXPECT_TRUE(ir::identical(back->view(), value.view())) << ir::to_string(dims);
  }
}

TEST(Npy, OrdersAndDamage) {
  TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  const auto write = [&](std::string header, const std::string& data) {
    header.resize(117, ' ');
    header += '\n';
    std::ofstream(path, std::ios::binary) << std::string("\x93NUMPY\x01\x00", 8) << static_cast<char>(118) << '\0' << header
                                          << data;
  };
  write("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", std::string("\1\2\3\4\5\6", 6));
  const auto value = read_npy(path);
  ASSERT_TRUE(value) << value.status().to_string();
  EXPECT_EQ(ir::to_ints(value->view()), (std::vector<int64_t>{1, 3, 5, 2, 4, 6}));
  write("{'descr': '>i2', 'fortran_order': False, 'shape': (2,), }", std::string("\1\2\xff\xfe", 4));
  EXPECT_EQ(ir::to_ints(read_npy(path)->view()), (std::vector<int64_t>{258, -2}));
  for (const char* header :
       {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, }", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", "{'descr': '<f4', 'shape': (1,), }", "",
        "{'descr': '"}) {
    write(header, "1234");
    EXPECT_FALSE(read_npy(path)) << header;
  }
  EXPECT_FALSE(read_npy(folder.file("missing.npy")));
}

TEST(NpyMutation, DamageDoesNoHarm) {
  TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  ASSERT_TRUE(write_npy(path, ir::TensorData::from<float>({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6})));
  std::ifstream file(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(file), {}};
  std::mt19937 random(20250302);
  int accepted = 0;
  const int count = tests::mutation_count(4000);
  for (int i = 0; i < count; ++i) accepted += parse_npy(tests::exact_copy(tests::mutate(good, random))).is_ok();
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, count);
}

}  // namespace
}  // namespace orknn::data
