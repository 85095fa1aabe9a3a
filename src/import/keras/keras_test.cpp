// Keras models of tests/data/keras: damaged files do no harm. tests/test_keras.py compares what they compute.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "import/keras/hdf5.h"
#include "import/keras/json_tree.h"
#include "import_samples.h"
#include "mutation.h"
#include "test_paths.h"

namespace orknn::importer::keras {
namespace {

std::string content(const std::string& name) {
  std::ifstream file(std::string(tests::kSourceFolder) + "/tests/data/keras/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(KerasHdf5, ReadsGroupsAttributesAndDatasets) {
  const std::string bytes = content("classifier.h5");
  const auto file = Hdf5::open(std::as_bytes(std::span(bytes.data(), bytes.size())));
  ASSERT_TRUE(file) << file.status().to_string();
  const auto dense = file->find(file->root(), "model_weights/dense");
  ASSERT_TRUE(dense && *dense);
  const auto names = file->texts(**dense, "weight_names");
  ASSERT_TRUE(names && *names && (*names)->size() == 2) << "kernel and bias";
  const auto kernel = file->find(**dense, (**names)[0]);
  ASSERT_TRUE(kernel && *kernel);
  const auto values = file->dataset(**kernel);
  ASSERT_TRUE(values) << values.status().to_string();
  EXPECT_EQ(values->dtype, DType::Float32);
  EXPECT_EQ(values->dims, (ir::Dims{64, 7}));
  EXPECT_EQ(values->data.size(), 64u * 7 * 4);
  EXPECT_FALSE(*file->find(file->root(), "model_weights/nothing"));
  EXPECT_FALSE(*file->texts(file->root(), "nothing"));
}

TEST(KerasJson, ReadsATree) {
  const auto value = parse_json(R"({"a": [1, null, 2.5], "b": {"c": "text"}, "d": true, "e": -7})");
  ASSERT_TRUE(value) << value.status().to_string();
  EXPECT_EQ((*value)["a"].integers(), (std::vector<int64_t>{1, -1, 2}));
  EXPECT_EQ((*value)["a"].items[2].number(0), 2.5);
  EXPECT_EQ((*value)["b"]["c"].string(), "text");
  EXPECT_TRUE((*value)["d"].flag(false));
  EXPECT_EQ((*value)["e"].integers(2), (std::vector<int64_t>{-7, -7}));
  EXPECT_TRUE((*value)["x"]["y"].is_null());
  EXPECT_FALSE(parse_json("{\"a\": 1"));
}

// Whole models are lowered each time: a tenth of the usual number.
TEST(KerasMutation, DamageDoesNoHarm) {
  std::mt19937 random(13);
  tests::Tally tally;
  const char* names[] = {"nested.h5", "nested.keras", "old_classifier.h5", "classifier.h5", "operations.h5", "old_functions.h5"};
  std::vector<std::string> good;
  for (const char* name : names) good.push_back(content(name));
  for (int i = 0; i < tests::mutation_count(4000) / 10; ++i) {
    const std::string bad = tests::mutate(good[static_cast<size_t>(i) % good.size()], random);
    tally.add(tests::import_survives(bad, "keras"));
  }
  EXPECT_GT(tally.refused, 0u);
}

}  // namespace
}  // namespace orknn::importer::keras
