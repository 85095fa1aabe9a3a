// Small valid TFLite models that between them use every part of the format the importer reads: seeds for mutation and fuzzing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orknn::tests {

struct TfliteSample {
  std::string name;
  std::string bytes;
};
std::vector<TfliteSample> sample_tflite_models();

}  // namespace orknn::tests
