// Networks in text with their inputs and outputs (tests/data/*_layers.txt): "case NAME", the network, "weights v v ...", "in
// 1x2x3 v v ...", "out 1x2x3 v v ...".
#pragma once

#include <string>
#include <vector>

#include "import/importer.h"
#include "ir/tensor_data.h"
#include "mutation.h"

namespace orknn::tests {

struct LayerCase {
  std::string name, network;
  std::vector<float> weights;
  std::vector<ir::TensorData> inputs, outputs;
};
std::vector<LayerCase> layer_cases(const std::string& file);

// The network from text in memory; `weights` is the path of the second file or empty.
Result<importer::Imported> import_text(const std::string& network, const std::string& framework,
                                       const importer::ImportOptions& options = {}, const std::string& weights = {});
// What the graph computes with the reference kernels.
Result<std::vector<ir::TensorData>> run_graph(ir::Graph graph, const std::vector<ir::TensorData>& inputs);
// Empty when shapes and values agree, else a sentence.
std::string difference(const std::vector<ir::TensorData>& got, const std::vector<ir::TensorData>& want);

// Damage of text and bytes that is the same on every run; numbers in the text are its favourite place.
std::string mutated(std::string bytes, unsigned seed);

}  // namespace orknn::tests
