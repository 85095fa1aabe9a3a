// Calibration arrays for a model whose inputs got other shapes (import/onnx/edit.h).
#pragma once

#include <string>
#include <vector>

#include "import/onnx/edit.h"

namespace orknn::toolkit {

// Writes the arrays of inputs with a formula anew, and a list dataset_for_<stem>.txt of all files, beside `export_path`. Returns
// the list's path. Pictures become arrays of bytes.
Result<std::string> write_edited_samples(const std::string& dataset, const std::vector<importer::onnx::EditedInput>& inputs,
                                         const std::string& export_path);

}  // namespace orknn::toolkit
