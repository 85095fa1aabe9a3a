#include "layer_cases.h"

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "agreement.h"
#include "ir/infer.h"
#include "ops/eval.h"
#include "test_paths.h"

namespace orknn::tests {
namespace {
ir::TensorData tensor_from(std::istringstream& words) {
  std::string shape;
  words >> shape;
  ir::Dims dims;
  std::istringstream extents(shape == "scalar" ? "" : shape);
  for (std::string extent; std::getline(extents, extent, 'x');) dims.push_back(std::stoll(extent));
  std::vector<float> values;
  for (std::string value; words >> value;) values.push_back(std::stof(value));
  return ir::TensorData::from<float>(std::move(dims), values);
}
}  // namespace

std::vector<LayerCase> layer_cases(const std::string& file) {
  std::ifstream stream(std::string(tests::kSourceFolder) + "/tests/data/" + file);
  std::vector<LayerCase> cases;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (line.starts_with("#") && cases.empty()) continue;
    if (first == "case") {
      words >> cases.emplace_back().name;
    } else if (first == "in" && !cases.empty()) {
      cases.back().inputs.push_back(tensor_from(words));
    } else if (first == "out" && !cases.empty()) {
      cases.back().outputs.push_back(tensor_from(words));
    } else if (first == "weights" && !cases.empty()) {
      for (std::string value; words >> value;) cases.back().weights.push_back(std::stof(value));
    } else if (!cases.empty()) {
      cases.back().network += line + "\n";
    }
  }
  return cases;
}

Result<importer::Imported> import_text(const std::string& network, const std::string& framework,
                                       const importer::ImportOptions& options, const std::string& weights) {
  const auto keeper = std::make_shared<const std::string>(network);
  importer::Source source;
  source.path = "network";
  source.bytes = std::as_bytes(std::span(keeper->data(), keeper->size()));
  source.keeper = keeper;
  if (!weights.empty()) source.other_files = {weights};
  return importer::load_bytes(source, options, ops::builtin_ops(), framework);
}

Result<std::vector<ir::TensorData>> run_graph(ir::Graph graph, const std::vector<ir::TensorData>& inputs) {
  ORKNN_TRY(ir::infer_shapes(graph, ops::builtin_ops()));
  return ops::eval_graph(graph, ops::builtin_ops(), inputs);
}

std::string difference(const std::vector<ir::TensorData>& got, const std::vector<ir::TensorData>& want) {
  if (got.size() != want.size()) return std::to_string(got.size()) + " outputs, expected " + std::to_string(want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i].dims() != want[i].dims())
      return "output " + std::to_string(i) + ": shape " + ir::to_string(got[i].dims()) + ", expected " +
             ir::to_string(want[i].dims());
    const std::vector<double> a = ir::to_doubles(got[i].view()), b = ir::to_doubles(want[i].view());
    for (size_t k = 0; k < a.size(); ++k)
      if (!agrees(a[k], b[k], 1e-4 + 1e-4 * std::abs(b[k])))
        return "output " + std::to_string(i) + ", value " + std::to_string(k) + ": " + std::to_string(a[k]) + ", expected " +
               std::to_string(b[k]);
  }
  return "";
}

std::string mutated(std::string bytes, unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  static constexpr const char* kNumbers[] = {"0",    "-1", "7", "65536", "2147483647", "99999999999", "-9223372036854775808",
                                             "1e30", "nan"};
  for (size_t step = 1 + below(4); step > 0 && !bytes.empty(); --step) {
    const size_t at = below(bytes.size());
    switch (below(8)) {
      case 0: bytes.resize(at); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes[at] = static_cast<char>(random()); break;
      case 3: bytes.erase(at, 1 + below(12)); break;
      case 4: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(64))); break;
      default: {  // another number in the place of one
        const size_t begin = bytes.find_first_of("0123456789", at);
        if (begin == std::string::npos) break;
        const size_t end = std::min(bytes.find_first_not_of("0123456789.", begin), bytes.size());
        bytes.replace(begin, end - begin, kNumbers[below(std::size(kNumbers))]);
      }
    }
  }
  return bytes;
}

}  // namespace orknn::tests
