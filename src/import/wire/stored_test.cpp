// Numbers in their order, and tensors in place or copied.
#include "import/wire/stored.h"

#include <gtest/gtest.h>

#include <array>

namespace orknn::importer::wire {
namespace {

std::span<const std::byte> bytes_of(const auto& values) { return std::as_bytes(std::span(values)); }

TEST(Cursor, ReadsNumbersInTheirOrder) {
  const std::array<uint8_t, 7> file{1, 0, 0, 0, 2, 0, 9};
  Cursor c(bytes_of(file), "parameter file");
  EXPECT_EQ(*c.read<uint32_t>(), 1u);
  EXPECT_EQ(*c.read<uint16_t>(), 2u);
  const auto missing = c.read<uint16_t>();
  ASSERT_FALSE(missing);
  const std::string text = missing.status().to_string();
  EXPECT_NE(text.find("the file is cut short at offset 6 of the parameter file"), std::string::npos) << text;
  EXPECT_NE(text.find("2 more bytes"), std::string::npos) << text;
  EXPECT_FALSE(c.take(UINT64_MAX));
  EXPECT_EQ(c.left(), 1u);
  EXPECT_EQ(c.take(1)->front(), std::byte{9});
}

TEST(StoredTensor, IsReadInPlaceWhereItCanBe) {
  const auto values = std::make_shared<std::array<float, 4>>(std::array<float, 4>{1, -2, 3, 4});
  const auto bytes = bytes_of(*values);
  const ir::TensorData in_place = stored_tensor(DType::Float32, {2, 2}, bytes, values);
  EXPECT_EQ(in_place.data(), values->data());
  EXPECT_EQ(values.use_count(), 2);
  const ir::TensorData unkept = stored_tensor(DType::Float32, {4}, bytes, nullptr);
  EXPECT_NE(unkept.data(), values->data());
  EXPECT_EQ(ir::to_doubles(unkept.view()), (std::vector<double>{1, -2, 3, 4}));
  alignas(4) std::array<std::byte, 17> shifted{};
  std::memcpy(shifted.data() + 1, values->data(), 16);
  const ir::TensorData copy = stored_tensor(DType::Float32, {4}, std::span(shifted).subspan(1), values);
  EXPECT_EQ(ir::to_doubles(copy.view()), (std::vector<double>{1, -2, 3, 4}));
  EXPECT_EQ(stored_tensor(DType::Float32, {0, 3}, {}, values).count(), 0);
}

TEST(StoredTensor, EveryByteButZeroIsTrue) {
  const auto flags = std::make_shared<std::array<uint8_t, 3>>(std::array<uint8_t, 3>{0, 1, 1});
  EXPECT_EQ(stored_tensor(DType::Bool, {3}, bytes_of(*flags), flags).data(), flags->data());
  (*flags)[1] = 200;
  const ir::TensorData copy = stored_tensor(DType::Bool, {3}, bytes_of(*flags), flags);
  EXPECT_NE(copy.data(), flags->data());
  const auto stored = std::span(static_cast<const uint8_t*>(copy.data()), 3);
  EXPECT_TRUE(std::ranges::equal(stored, std::array<uint8_t, 3>{0, 1, 1}));
}
}  // namespace
}  // namespace orknn::importer::wire
