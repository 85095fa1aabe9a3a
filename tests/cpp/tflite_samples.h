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

// Imports, verifies and infers shapes; errors are fine, crashes are not. True when all three succeeded.
bool tflite_import_survives(std::string_view bytes);

}  // namespace orknn::tests
