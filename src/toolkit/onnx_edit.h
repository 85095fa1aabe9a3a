// rknn.utils.onnx_edit: an ONNX model with other shapes at its border, and the calibration list that goes with it.
#pragma once

#include <string>
#include <vector>

#include "import/onnx/edit.h"

namespace orknn::toolkit {

struct OnnxEdit {
  std::string model, export_path;
  importer::onnx::TensorFormulas inputs, outputs;
  std::string dataset = {};  // calibration list of the old model, or empty; edited_samples.h says what becomes of it
};

// Returns what was done, in lines for the log.
Result<std::vector<std::string>> edit_onnx(const OnnxEdit& edit);

}  // namespace orknn::toolkit
