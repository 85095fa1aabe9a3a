// Files that users give for models and that are none: weights without a network, files of other programs, downloads gone wrong.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"

namespace orknn::importer {

// An error that says what the file is and what to give instead; ok when it is nothing we know of.
Status recognize_foreign_file(std::string_view path, std::span<const std::byte> bytes);
// The same for a folder.
Status recognize_folder(const std::string& path);

}  // namespace orknn::importer
