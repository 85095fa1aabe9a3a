// Which importer a file goes to, and what users are told who give a file that is no model, a model of another format, or a file
// too many.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "import/importer.h"
#include "ops/eval.h"
#include "temporary_folder.h"

namespace orknn {
namespace {
using namespace std::string_literals;

std::string error_of(const std::string& path, std::string_view framework = {}, std::vector<std::string> others = {},
                     const importer::ImportOptions& options = {}) {
  const auto result = importer::load_file(path, options, ops::builtin_ops(), framework, std::move(others));
  return result ? "no error" : result.status().to_string();
}
std::string written(const tests::TemporaryFolder& folder, const std::string& name, const std::string& bytes) {
  std::ofstream(folder.file(name), std::ios::binary) << bytes;
  return folder.file(name);
}
bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

constexpr const char* kNetwork = "[net]\nheight=2\nwidth=2\nchannels=1\n[avgpool]\n";

TEST(ImportFiles, WhatIsNoModelIsToldByName) {
  const tests::TemporaryFolder folder;
  struct Case {
    const char* name;
    std::string bytes;
    const char* message;
  };
  const Case cases[] = {
      {"m.weights", std::string(20, '\0'),
       "the file holds the weights of a Darknet network. Hint: give the .cfg file as the model"},
      {"m-0000.params", "\x12\x01\0\0\0\0\0\0\0\0"s,
       "the file holds the parameters of an MXNet model. Hint: give the -symbol.json file"},
      {"m.onnx", "version https://git-lfs.github.com/spec/v1\n", "the file is a pointer of Git LFS"},
      {"m.tflite", "<!DOCTYPE html><html>", "the file is a web page"},
      {"m.pb", "", "the file is empty"},
      {"m.rknn", "RKNN\0\0\0\0"s, "the file is a finished .rknn. Hint: load it with load_rknn"},
      {"m.safetensors", "\x40\0\0\0\0\0\0\0{}"s, "the file holds weights without a network"},
      {"m.noise", "no model at all", "the file is of no known model format"},
  };
  for (const Case& c : cases) {
    const std::string path = written(folder, c.name, c.bytes);
    EXPECT_TRUE(contains(error_of(path), c.name + ": import: "s + c.message)) << error_of(path);
    const std::string chosen = error_of(path, "tensorflow");  // the same for those who name the format
    EXPECT_TRUE(contains(chosen, c.message) || c.name == "m.noise"s) << chosen;
  }
}

TEST(ImportFiles, FoldersAreToldByWhatTheyHold) {
  const tests::TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("saved"));
  EXPECT_TRUE(contains(error_of(folder.file("saved")), "saved: import: this is a folder; expected a model file"));
  EXPECT_TRUE(contains(error_of("/"), "/: import: this is a folder"));
  EXPECT_TRUE(contains(error_of(folder.file("saved/")), "saved: import: this is a folder"));
  written(folder, "saved/saved_model.pb", "x");
  const std::string inside = error_of(folder.file("saved"), "tensorflow");  // the model is the file in it
  EXPECT_FALSE(inside.empty() || contains(inside, "this is a folder")) << inside;
  EXPECT_TRUE(contains(error_of(folder.file("nothing")), "nothing"));
}

TEST(ImportFiles, ModelsOfAnotherFormatAreTold) {
  const tests::TemporaryFolder folder;
  const std::string path = written(folder, "net.cfg", kNetwork);
  EXPECT_TRUE(contains(error_of(path, "onnx"),
                       "net.cfg: import: the file is a model of darknet, not of onnx. Hint: load it with load_darknet"));
  EXPECT_EQ(error_of(path, "darknet"), "no error");
  EXPECT_EQ(error_of(path), "no error");
  EXPECT_TRUE(contains(error_of(path, "theano"), "there is no importer 'theano'; expected one of: caffe, "));
}

TEST(ImportFiles, WeightsFilesAreNeverIgnored) {
  const tests::TemporaryFolder folder;
  const std::string path =
      written(folder, "graph.pbtxt",
              "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } attr { key: \"shape\" "
              "value { shape { dim { size: 1 } } } } }\nnode { name: \"y\" op: \"Neg\" input: \"x\" }\n");
  EXPECT_EQ(error_of(path), "no error");
  EXPECT_TRUE(contains(error_of(path, {}, {"w.params"}),
                       "models of tensorflow are one file; expected no weights file, found 'w.params'"));
  EXPECT_TRUE(contains(error_of(written(folder, "net.cfg", kNetwork), {}, {"a", "b"}), "a model has one weights file; found 2"));
}

TEST(ImportFiles, ModelsThatCannotBeImportedAreSurveyed) {
  const tests::TemporaryFolder folder;
  const auto survey = importer::survey_file(written(folder, "net.cfg", std::string(kNetwork) + "[strange]\n[avgpool]\n"), "");
  ASSERT_TRUE(survey) << survey.status().to_string();
  EXPECT_EQ(survey->operators, (std::map<std::string, size_t>{{"avgpool", 2}, {"strange", 1}}));
  ASSERT_EQ(survey->inputs.size(), 1u);
  EXPECT_EQ(survey->inputs[0].name, "data");
  ASSERT_TRUE(survey->inputs[0].shape);
  EXPECT_EQ(survey->inputs[0].shape->size(), 4u);
  ASSERT_EQ(survey->outputs.size(), 1u);
  EXPECT_EQ(survey->outputs[0].name, "layer_2_avgpool");
  const auto caffe = importer::survey_file(
      written(folder, "net.prototxt", "input: \"a\"\nlayer { name: \"r\" type: \"Odd\" bottom: \"a\" top: \"b\" }"), "");
  ASSERT_TRUE(caffe) << caffe.status().to_string();
  ASSERT_EQ(caffe->outputs.size(), 1u);
  EXPECT_EQ(caffe->outputs[0].name, "b");
  EXPECT_EQ(caffe->operators, (std::map<std::string, size_t>{{"Odd", 1}}));
  EXPECT_FALSE(importer::survey_file(folder.file("nothing"), ""));
}

}  // namespace
}  // namespace orknn
