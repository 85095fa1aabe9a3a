// Files without the weights of their convolutions: what is left out, where it is found again, and damaged lists.
#include "format/left_out_weights.h"

#include <gtest/gtest.h>

#include <random>

#include "format_sample.h"
#include "ir/text.h"

namespace orknn::format {
namespace {

// The second task counts as a convolution: its constant of four axes is the weights.
std::shared_ptr<Model> model_of(bool leaves_out) {
  auto model = std::make_shared<Model>(sample_model(true));
  model->programs[0].tasks[1].engine = ir::Engine::Conv;
  model->leaves_out_weights = leaves_out;
  return model;
}

TEST(LeftOutWeights, ComeFromAModelThatHasThem) {
  const auto full = model_of(false);
  const auto bytes = *write_rknn_to_memory(*model_of(true));
  auto loaded = read_rknn(bytes, nullptr, ThreadPool::shared(), weights_of(full));
  ASSERT_TRUE(loaded) << loaded.status().to_string();
  EXPECT_TRUE(loaded->leaves_out_weights);
  EXPECT_EQ(ir::print(loaded->programs[0].graph), ir::print(full->programs[0].graph));
  const ir::Graph &from = full->programs[0].graph, &to = loaded->programs[0].graph;
  const auto data = [](const ir::Graph& g, const char* name) { return g.tensor(g.find_tensor(name)).constant.data(); };
  EXPECT_EQ(data(from, "other"), data(to, "other")) << "shared, not copied";
  EXPECT_NE(data(from, "w"), data(to, "w")) << "only convolutions leave theirs out";
  EXPECT_EQ(*write_rknn_to_memory(*loaded), bytes) << "writing what was read gives the same file";
}

TEST(LeftOutWeights, AreAskedForAndMissed) {
  const auto bytes = *write_rknn_to_memory(*model_of(true));
  const auto alone = read_rknn(bytes, nullptr);
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.status().code(), Code::InvalidModel);
  EXPECT_NE(alone.status().to_string().find("RKNN_FLAG_SHARE_WEIGHT_MEM"), std::string::npos) << alone.status().to_string();
  auto other = model_of(false);
  ir::Graph& g = other->programs[0].graph;
  g.tensor(g.find_tensor("other")).constant = ir::convert(g.tensor(g.find_tensor("w")).constant.view(), DType::Float16);
  const auto mismatch = read_rknn(bytes, nullptr, ThreadPool::shared(), weights_of(other));
  ASSERT_FALSE(mismatch);
  EXPECT_NE(mismatch.status().to_string().find("lacks"), std::string::npos) << mismatch.status().to_string();
  EXPECT_TRUE(read_rknn(bytes, nullptr, ThreadPool::shared(), zero_weights()));
}

TEST(LeftOutWeights, DamageDoesNoHarm) {
  const auto bytes = *write_rknn_to_memory(*model_of(true));
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::byte> damaged = bytes;
    forge(damaged, random);
    if (const auto model = read_rknn(damaged, nullptr, ThreadPool::shared(), zero_weights())) try_to_run(*model);
  }
  // Every list that says something impossible.
  for (const uint64_t size : {uint64_t{0}, uint64_t{1} << 41, UINT64_MAX}) {
    ByteWriter list;
    list.count(1);
    list.put(size);
    list.put(uint64_t{7});
    EXPECT_FALSE(find_left_out(list.bytes(), zero_weights())) << size;
  }
  // A size that no machine has takes no memory as long as no constant of the program has it.
  ByteWriter large;
  large.count(1);
  large.put(uint64_t{1} << 37);
  large.put(uint64_t{7});
  EXPECT_TRUE(find_left_out(large.bytes(), zero_weights()));
  ByteWriter cut;
  cut.count(1000);
  EXPECT_FALSE(find_left_out(cut.bytes(), zero_weights()));
}

}  // namespace
}  // namespace orknn::format
