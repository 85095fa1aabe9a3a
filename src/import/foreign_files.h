// Files that users give for models and that are none: weights without a network, files of other programs, downloads gone wrong.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orknn::importer {

// An error that says what the file is and what to give instead; ok when it is nothing we know of.
Status recognize_foreign_file(std::string_view path, std::span<const std::byte> bytes);
// The model file that a path names: itself, or what is in a folder that frameworks write as a model. Other folders are refused.
Result<std::string> model_file_of(const std::string& path);

}  // namespace orknn::importer
