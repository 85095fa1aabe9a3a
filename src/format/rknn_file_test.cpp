// .rknn files: what is written is read back exactly, and nothing that was changed on the way is accepted.
#include "format/rknn_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/files.h"
#include "format/container.h"
#include "format_sample.h"
#include "ir/packed.h"
#include "ir/text.h"
#include "mutation.h"
#include "ops/eval.h"
#include "sim/executor.h"
#include "temporary_folder.h"

namespace orknn::format {
namespace {
std::vector<std::byte> bytes_of(const Model& model) {
  auto bytes = write_rknn_to_memory(model);
  EXPECT_TRUE(bytes) << bytes.status().to_string();
  return std::move(*bytes);
}

Result<Model> read(const std::vector<std::byte>& bytes) { return read_rknn(bytes, nullptr); }

TEST(RknnFile, RoundTripIsExact) {
  const Model model = sample_model(true);
  const std::vector<std::byte> bytes = bytes_of(model);
  auto loaded = read(bytes);
  ASSERT_TRUE(loaded) << loaded.status().to_string();
  EXPECT_EQ(loaded->name, model.name);
  EXPECT_EQ(loaded->target_platform, "rk3588");
  EXPECT_EQ(loaded->custom_string, "hello");
  ASSERT_EQ(loaded->programs.size(), 1u);
  const Program &a = model.programs[0], &b = loaded->programs[0];
  EXPECT_EQ(ir::print(a.graph), ir::print(b.graph));
  EXPECT_EQ(b.tasks.size(), a.tasks.size());
  EXPECT_EQ(b.tasks[0].reason, a.tasks[0].reason);
  EXPECT_EQ(b.arena_bytes, a.arena_bytes);
  EXPECT_EQ(b.inputs[0].mean, a.inputs[0].mean);
  EXPECT_EQ(b.graph.tensor(b.inputs[0].tensor).quant, a.graph.tensor(a.inputs[0].tensor).quant);
  EXPECT_EQ(bytes_of(*loaded), bytes) << "writing what was read gives the same file";
}

// Sections are filled up to 64 bytes: no length of a text may leave a rest that reads as something else.
TEST(RknnFile, TextsOfEveryLengthComeBack) {
  Model model = sample_model();
  for (size_t length = 0; length <= 130; ++length) {
    model.custom_string.assign(length, 'c');
    model.other_platforms.assign(length % 3, "rk3588");
    const auto loaded = read(bytes_of(model));
    ASSERT_TRUE(loaded) << length << ": " << loaded.status().to_string();
    EXPECT_EQ(loaded->custom_string, model.custom_string);
    EXPECT_TRUE(loaded->sync_uids.empty());
    EXPECT_EQ(loaded->other_platforms, model.other_platforms);
  }
}

TEST(RknnFile, SameModelSameBytes) { EXPECT_EQ(bytes_of(sample_model()), bytes_of(sample_model())); }

TEST(RknnFile, EqualConstantsAreStoredOnceAndAligned) {
  Model model = sample_model();
  const Program& p = model.programs[0];
  place_weights(model);
  const auto buffer = [&](const char* name) { return p.buffers[static_cast<size_t>(p.graph.find_tensor(name).index)]; };
  EXPECT_EQ(buffer("w").offset, buffer("same_as_w").offset);
  EXPECT_NE(buffer("w").offset, buffer("other").offset);
  EXPECT_EQ(buffer("other").offset % 64, 0u);
  auto loaded = read(bytes_of(model));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->weight_bytes, model.weight_bytes);
  const ir::TensorData* w = loaded->programs[0].graph.constant(loaded->programs[0].graph.find_tensor("w"));
  const ir::TensorData* same = loaded->programs[0].graph.constant(loaded->programs[0].graph.find_tensor("same_as_w"));
  EXPECT_EQ(w->data(), same->data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(w->data()) % 64, 0u);
}

TEST(RknnFile, PackedConstantsAreStoredAsTheirIntegers) {
  Model model = sample_model();
  const auto value_of = [](const Model& m) { return *m.programs[0].graph.constant(m.programs[0].graph.find_tensor("factors")); };
  const uint64_t packed_bytes = [&] {
    place_weights(model);
    return model.weight_bytes;
  }();
  auto loaded = read(bytes_of(model));
  ASSERT_TRUE(loaded) << loaded.status().to_string();
  const ir::TensorData value = value_of(*loaded);
  EXPECT_TRUE(ir::identical(value.view(), value_of(model).view()));
  ASSERT_TRUE(value.packed());
  EXPECT_EQ(value.packed()->type, DType::Int4);
  EXPECT_EQ(value.packed()->block, (ir::Dims{1, 2, 1, 1}));
  EXPECT_EQ(value.packed()->integers.bytes(), 2u);
  EXPECT_EQ(loaded->weight_bytes, packed_bytes);
  const Program& p = loaded->programs[0];
  EXPECT_EQ(p.buffers[static_cast<size_t>(p.graph.find_tensor("factors").index)].bytes, 2u + 2 * sizeof(float));
}

TEST(RknnFile, ConstantsOfAMappedFileAreNotCopied) {
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("format_map.rknn");
  ASSERT_TRUE(write_rknn(sample_model(), path));
  auto file = MappedFile::open(path);
  ASSERT_TRUE(file);
  const auto all = (*file)->bytes();
  auto loaded = read_rknn(all, *file);
  ASSERT_TRUE(loaded);
  const Program& p = loaded->programs[0];
  const auto* data = static_cast<const std::byte*>(p.graph.constant(p.graph.find_tensor("w"))->data());
  EXPECT_TRUE(data >= all.data() && data < all.data() + all.size());
}

TEST(RknnFile, ReadsAModelInsideALargerFile) {
  const std::vector<std::byte> bytes = bytes_of(sample_model());
  const tests::TemporaryFolder folder;
  const std::string path = folder.file("format_inside.bin");
  {
    std::ofstream out(path, std::ios::binary);
    out << "head";
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    out << "tail";
  }
  EXPECT_TRUE(read_rknn(path, 4, bytes.size()));
  EXPECT_FALSE(read_rknn(path, 4, 0)) << "bytes after the end";
  EXPECT_EQ(read_rknn(path, 1 << 20, 0).status().code(), Code::InvalidArgument);
}

TEST(RknnFile, EveryFlippedBitIsRefused) {
  std::vector<std::byte> bytes = bytes_of(sample_model());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::byte flip = std::byte{1} << (i % 8);
    bytes[i] ^= flip;
    const auto loaded = read(bytes);
    ASSERT_FALSE(loaded) << "bit " << i % 8 << " of byte " << i;
    bytes[i] ^= flip;
  }
  EXPECT_TRUE(read(bytes));
}

TEST(RknnFile, EveryTruncationIsRefused) {
  const std::vector<std::byte> bytes = bytes_of(sample_model());
  for (size_t n = 0; n < bytes.size(); ++n) ASSERT_FALSE(read({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(n)})) << n;
}

TEST(RknnFile, SaysWhatIsWrong) {
  const std::vector<std::byte> good = bytes_of(sample_model());
  const auto message = [](std::vector<std::byte> bytes) { return read(bytes).status().to_string(); };
  const auto text = [](std::string_view s) {
    return std::vector<std::byte>(reinterpret_cast<const std::byte*>(s.data()),
                                  reinterpret_cast<const std::byte*>(s.data()) + s.size());
  };
  EXPECT_NE(message({}).find("empty"), std::string::npos);
  EXPECT_NE(message(text("PK\3\4 something that is no model at all")).find("not a .rknn"), std::string::npos);
  EXPECT_NE(message(text("CYPTRKNN........................")).find("encrypted"), std::string::npos);
  EXPECT_NE(message({good.begin(), good.begin() + 100}).find("cut off"), std::string::npos);
  EXPECT_NE(message({good.begin(), good.end() - 64}).find("cut off"), std::string::npos);
  std::vector<std::byte> bad = good;
  bad[bad.size() - 100] ^= std::byte{4};
  EXPECT_NE(message(bad).find("damaged"), std::string::npos);
  // A vendor file ends with its JSON and does not carry our mark.
  ByteWriter vendor;
  vendor.raw("RKNN");
  vendor.put(uint32_t{0});
  vendor.put(uint64_t{6});
  vendor.put(uint64_t{128});
  vendor.bytes().resize(64 + 128);
  vendor.put(uint64_t{2});
  vendor.raw("{}");
  EXPECT_NE(message(vendor.bytes()).find("vendor's toolkit"), std::string::npos);
}

TEST(RknnFile, MissingFileIsNotFound) { EXPECT_EQ(read_rknn("/nonexistent/x.rknn").status().code(), Code::NotFound); }

TEST(RknnFile, UnwritablePathLeavesNothing) {
  EXPECT_EQ(write_rknn(sample_model(), "/nonexistent/folder/x.rknn").code(), Code::Io);
}

// Damage that carries valid checksums, as an attacker would make it: no crash, no huge allocation; whatever still loads
// is refused by the executor or runs.
TEST(RknnFile, ForgedFilesNeverCrash) {
  const std::vector<std::byte> good[] = {bytes_of(sample_model()), bytes_of(sample_model(true))};
  std::mt19937 random(7);
  size_t loaded = 0, ran = 0;
  for (int round = 0, rounds = tests::mutation_count(10000); round < rounds; ++round) {
    std::vector<std::byte> bytes = good[round % 2];
    forge(bytes, random);
    auto model = read(bytes);
    if (!model) continue;
    ++loaded;
    ran += try_to_run(*model);
  }
  EXPECT_GT(loaded, 50u);
  EXPECT_GT(ran, 10u);
}
}  // namespace
}  // namespace orknn::format
