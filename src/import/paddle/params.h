// Parameter files of PaddlePaddle (.pdiparams): tensors one after the other, in the order of their names, which the program has.
#pragma once

#include "import/paddle/program.h"

namespace orknn::importer::paddle {

using ParameterValues = std::unordered_map<std::string, ir::TensorData>;
// Values point into the bytes, which `keeper` holds, where they are aligned.
Result<ParameterValues> read_parameters(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                                        const Program& program);
// The same where every parameter has a file of its own, which is called as it is: what Paddle 1 writes by default.
bool has_parameter_files(const std::string& folder, const Program& program);
Result<ParameterValues> read_parameter_files(const std::string& folder, const Program& program);

}  // namespace orknn::importer::paddle
