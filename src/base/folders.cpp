#include "base/folders.h"

#include <filesystem>

#include "base/utf8.h"

namespace orknn {

Status make_folder(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  return problem ? io_error("the folder '" + to_utf8(path) + "' cannot be made: " + problem.message()) : Status();
}

}  // namespace orknn
