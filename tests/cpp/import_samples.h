// Small valid ONNX models that between them use every part of the format the importer reads: seeds for mutation and fuzzing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orknn::tests {

struct SampleModel {
  std::string name;
  std::string bytes;
};
std::vector<SampleModel> sample_onnx_models();

// Imports, verifies and infers shapes; errors are fine, crashes are not. True when all three succeeded.
bool import_survives(std::string_view bytes);

}  // namespace orknn::tests
