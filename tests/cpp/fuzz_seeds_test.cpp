// The files the fuzz targets start from: our own small models, one folder per target. They are written to $ORKNN_FUZZ_SEEDS when
// that is set (tests/fuzz/README.md); the test makes sure that every target of a model format has some and that they are models.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "format/rknn_file.h"
#include "format_sample.h"
#include "import/importer.h"
#include "import_samples.h"
#include "layer_cases.h"
#include "mxnet_writer.h"
#include "remote/messages.h"
#include "remote/wire.h"
#include "temporary_folder.h"
#include "tensorflow_writer.h"
#include "test_paths.h"
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
  for (const auto& entry : std::filesystem::directory_iterator(std::string(tests::kSourceFolder) + "/tests/data/keras"))
    if (entry.path().extension() == ".h5" || entry.path().extension() == ".keras")
      list.push_back({"keras", entry.path().filename().string(), content_of(entry.path())});
  for (const auto& entry : std::filesystem::directory_iterator(std::string(tests::kSourceFolder) + "/tests/data/paddle"))
    if (entry.path().extension() == ".json" || entry.path().extension() == ".pdmodel")
      list.push_back({"paddle", entry.path().filename().string(), content_of(entry.path())});
  for (const auto& s : tests::layer_cases("caffe_layers.txt")) list.push_back({"caffe", s.name, s.network});
  for (const auto& s : tests::layer_cases("darknet_layers.txt")) list.push_back({"darknet", s.name, s.network});
  return list;
}

// What fuzz_server reads: messages without their frames. The model is that of the target.
std::string as_messages(const std::vector<std::pair<remote::Type, remote::Bytes>>& messages) {
  std::string text(1, 1);
  for (const auto& [type, payload] : messages) {
    for (const size_t byte : {static_cast<size_t>(type), payload.size() & 0xff, payload.size() >> 8})
      text += static_cast<char>(byte);
    text.append(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  return text;
}

std::vector<Seed> other_seeds() {
  using namespace remote;
  const ir::TensorData x = ir::TensorData::zeros(DType::Float32, {1, 2, 2, 2});
  const std::vector<ir::TensorView> inputs = {x.view()};
  const std::pair<Type, Bytes> offer = {Type::Offer, {}}, measure = {Type::Measure, Measure{3}.encode()};
  const auto run = [&](std::vector<uint64_t> offsets) {
    return std::pair(Type::Run, Run::encode({.core_mask = 1, .timeout_ms = 1000}, inputs, offsets));
  };
  const auto trace = std::pair(Type::Trace, Trace::encode({.run = {}, .first = 1}, inputs, {}));
  const auto amend = std::pair(Type::Amend, Amend::encode({1}, x.view()));
  const auto share = std::pair(Type::Share, Share{4096}.encode());
  const Bytes model = *format::write_rknn_to_memory(format::sample_model());
  return {{"server", "run", as_messages({offer, run({}), measure})},
          {"server", "layers", as_messages({offer, amend, trace, {Type::Amend, Amend::encode_none()}, trace})},
          {"server", "shared memory", as_messages({offer, share, run({64}), run({4000})})},
          {"server", "upload", as_messages({{Type::Offer, Bytes(1)}, {Type::Part, model}, measure})},
          {"rknn", "sample", {reinterpret_cast<const char*>(model.data()), model.size()}}};
}

class FuzzSeeds : public testing::Test {
 protected:
  void write(const Seed& seed) {
    const std::filesystem::path place = folder_ / ("fuzz_" + seed.target);
    std::filesystem::create_directories(place);
    std::string name = std::to_string(counts_[seed.target]++) + "_" + seed.name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
    std::ofstream(place / name, std::ios::binary) << seed.bytes;
  }
  const tests::TemporaryFolder temporary_;
  const char* const wanted_ = std::getenv("ORKNN_FUZZ_SEEDS");
  const std::filesystem::path folder_ = wanted_ ? wanted_ : temporary_.file("seeds");
  std::map<std::string, size_t> counts_;
};

TEST_F(FuzzSeeds, AreModelsForEveryTarget) {
  for (const Seed& seed : seeds()) {
    write(seed);
    EXPECT_TRUE(importer::find_importer(seed.target)->sniff(std::as_bytes(std::span(seed.bytes.data(), seed.bytes.size()))))
        << seed.target << " " << seed.name;
  }
  for (const importer::Importer* i : importer::importers()) EXPECT_GT(counts_[std::string(i->name)], 0u) << i->name;
  for (const auto& [target, count] : counts_) {
    const auto files = std::filesystem::directory_iterator(folder_ / ("fuzz_" + target));
    EXPECT_GE(std::distance(begin(files), end(files)), static_cast<ptrdiff_t>(count)) << target;
  }
}

TEST_F(FuzzSeeds, AreFilesAndMessagesForTheOthers) {
  for (const Seed& seed : other_seeds()) {
    EXPECT_LT(seed.bytes.size(), 65536u) << seed.name;
    write(seed);
  }
}

}  // namespace
}  // namespace orknn
