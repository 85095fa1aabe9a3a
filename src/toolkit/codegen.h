// codegen: a C++ project that runs a built model through the C API, ready for CMake.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "format/program.h"

namespace orknn::toolkit {

struct CodegenRequest {
  std::string output_path;          // folder of the project
  std::vector<std::string> inputs;  // a picture or .npy per model input, or none: then the program has nothing to compare with
  bool overwrite = false;
  std::vector<bool> swap_red_blue;  // pictures are fed as BGR: one flag for all inputs, or one each
};

// True when the project was written; false when the folder exists and `overwrite` is not set. Files that a project does not have
// are left alone.
Result<bool> generate_project(const std::shared_ptr<const format::Model>& model, const CodegenRequest& request);

}  // namespace orknn::toolkit
