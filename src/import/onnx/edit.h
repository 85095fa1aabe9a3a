// An ONNX model whose inputs and outputs get other shapes. Nodes that restore the old shape are inserted after an input, nodes
// that make the new one before an output; everything else of the file stays as it is.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/shape.h"

namespace orknn::importer::onnx {

using TensorFormulas = std::vector<std::pair<std::string, std::string>>;  // tensor and formula (axis_formula.h)

// An input of the model before the edit.
struct EditedInput {
  std::string name;
  ir::Dims dims;                       // negative = open
  std::optional<std::string> formula;  // of an input that changes
};

struct Edited {
  std::vector<std::string> log;     // what was done, in lines
  std::vector<EditedInput> inputs;  // of the model, without weights that old files state as inputs
};

// Reads `model`, writes `export_path`, which may be the same; weights in files of their own go with it to another folder. Reports
// every formula that is wrong.
Result<Edited> edit_model(const std::string& model, const std::string& export_path, const TensorFormulas& inputs,
                          const TensorFormulas& outputs);

}  // namespace orknn::importer::onnx
