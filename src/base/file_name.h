// Names of layers and tensors as names of files.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace orknn {

// At most `longest` characters of `name`, with '_' for everything that a file name should not hold (slashes, blanks, control
// characters, bytes above 127). Never empty, never hidden. Different names may become equal.
std::string file_name_for(std::string_view name, size_t longest = 180);

}  // namespace orknn
