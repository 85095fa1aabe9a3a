// The worked example of docs/add_a_framework.md: it is compiled here, runs, and the page shows it as it is.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "import/importer.h"
#include "run_import.h"
#include "test_paths.h"

namespace orknn::importer {
const Importer& toy_importer();  // in a folder of src/import the build would find it

namespace {
std::string contents(const std::string& path) {
  std::ifstream file(std::string(tests::kSourceFolder) + "/" + path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The bytes live as long as the returned function's argument does.
Result<Imported> load(const std::string& model, const ImportOptions& options = {}) {
  Source source;
  source.path = "model.toy";
  source.bytes = std::as_bytes(std::span(model));
  return toy_importer().load(source, options, ops::builtin_ops());
}

TEST(ToyFormat, ThePageShowsTheSource) {
  const std::string page = contents("docs/add_a_framework.md"), source = contents("tests/cpp/toy_format/toy.cpp");
  ASSERT_FALSE(source.empty());
  EXPECT_NE(page.find("```cpp\n" + source + "```\n"), std::string::npos)
      << "docs/add_a_framework.md must quote tests/cpp/toy_format/toy.cpp word for word";
}

TEST(ToyFormat, RunsAModel) {
  const std::string model =
      "# two inputs\n"
      "a = input(1x1x1x3)\n"
      "b = input(1x1x1x3)\n"
      "sum = add(a, b)\n"
      "twice = scale(sum, 2)\n"
      "y = relu(twice)\n";
  ASSERT_TRUE(toy_importer().sniff(std::as_bytes(std::span(model))));
  const std::vector<ir::TensorData> inputs{ir::TensorData::from<float>({1, 1, 1, 3}, std::vector<float>{1, -4, 3}),
                                           ir::TensorData::from<float>({1, 1, 1, 3}, std::vector<float>{1, 2, 0.5})};
  EXPECT_EQ(tests::run_import_values(load(model), inputs)[0], (std::vector<double>{4, 0, 7}));
  ImportOptions options;
  options.outputs = {"sum"};
  EXPECT_EQ(tests::run_import_values(load(model, options), inputs)[0], (std::vector<double>{2, -2, 3.5}));

  const auto shapes = load("data = input(1x3x8x6)\nconv1 = conv(data, 3x3, 16)\n");
  ASSERT_TRUE(shapes) << shapes.status().to_string();
  EXPECT_EQ(ir::to_string(*shapes->graph.tensor(shapes->graph.outputs()[0]).shape), "[1,16,8,6]");
}

TEST(ToyFormat, ReportsAllProblemsAtOnce) {
  const auto failed = load("data = input(1x1x2x2)\nu = unheard_of(data)\nc = conv(data, 3)\nr = relu(data, data)\n");
  ASSERT_FALSE(failed);
  const std::string text = failed.status().to_string();
  for (const char* part : {"node 'u' (unheard_of): operator 'unheard_of' is not known", "node 'c' (conv): illegal numbers",
                           "node 'r' (relu): the number of inputs is wrong"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  EXPECT_FALSE(load("nonsense"));
  EXPECT_FALSE(load(""));
}

TEST(ToyFormat, IsNoPartOfTheProduct) { EXPECT_EQ(find_importer("toy"), nullptr); }
}  // namespace
}  // namespace orknn::importer
