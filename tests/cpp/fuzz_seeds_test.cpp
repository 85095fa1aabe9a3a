// The files the fuzz targets start from: our own small models, one folder per target. They are written to $ORKNN_FUZZ_SEEDS when
// that is set (tests/fuzz/README.md); the test makes sure that every target of a model format has some and that they are models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "import/importer.h"
#include "import_samples.h"
#include "layer_cases.h"
#include "mxnet_writer.h"
#include "temporary_folder.h"
#include "tensorflow_writer.h"
#include "tflite_samples.h"
#include "torch_writer.h"

namespace orknn {
namespace {

// Target, name and bytes of each.
struct Seed {
  std::string target, name, bytes;
};
std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Seed> seeds() {
  std::vector<Seed> list;
  for (const auto& s : tests::sample_onnx_models()) list.push_back({"onnx", s.name, s.bytes});
  for (const auto& s : tests::sample_tflite_models()) list.push_back({"tflite", s.name, s.bytes});
  for (const auto& s : tests::sample_torch_models()) list.push_back({"pytorch", s.name, s.bytes});
  for (const auto& s : tests::tf::samples()) list.push_back({"tensorflow", s.name, s.text});
  for (const auto& s : tests::mxnet::samples()) list.push_back({"mxnet", s.name, s.symbol + '\0' + s.params});
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ORKNN_SOURCE_DIR) + "/tests/data/keras"))
    if (entry.path().extension() == ".h5" || entry.path().extension() == ".keras")
      list.push_back({"keras", entry.path().filename().string(), content_of(entry.path())});
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ORKNN_SOURCE_DIR) + "/tests/data/paddle"))
    if (entry.path().extension() == ".json" || entry.path().extension() == ".pdmodel")
      list.push_back({"paddle", entry.path().filename().string(), content_of(entry.path())});
  for (const auto& s : tests::layer_cases("caffe_layers.txt")) list.push_back({"caffe", s.name, s.network});
  for (const auto& s : tests::layer_cases("darknet_layers.txt")) list.push_back({"darknet", s.name, s.network});
  return list;
}

TEST(FuzzSeeds, AreModelsForEveryTarget) {
  const tests::TemporaryFolder temporary;
  const char* wanted = std::getenv("ORKNN_FUZZ_SEEDS");
  const std::filesystem::path folder = wanted ? std::filesystem::path(wanted) : std::filesystem::path(temporary.file("seeds"));
  std::map<std::string, size_t> counts;
  for (const Seed& seed : seeds()) {
    const std::filesystem::path place = folder / ("fuzz_" + seed.target);
    std::filesystem::create_directories(place);
    std::string name = std::to_string(counts[seed.target]++) + "_" + seed.name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    std::ofstream(place / name, std::ios::binary) << seed.bytes;
    EXPECT_TRUE(importer::find_importer(seed.target)->sniff(std::as_bytes(std::span(seed.bytes.data(), seed.bytes.size()))))
        << seed.target << " " << seed.name;
  }
  for (const importer::Importer* i : importer::importers()) EXPECT_GT(counts[std::string(i->name)], 0u) << i->name;
  for (const auto& [target, count] : counts) {
    const auto files = std::filesystem::directory_iterator(folder / ("fuzz_" + target));
    EXPECT_GE(std::distance(begin(files), end(files)), static_cast<ptrdiff_t>(count)) << target;
  }
}

}  // namespace
}  // namespace orknn
