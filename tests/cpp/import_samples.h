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

}  // namespace orknn::tests
