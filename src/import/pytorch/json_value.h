// JSON text as values: objects are dictionaries, arrays lists.
#pragma once

#include <string_view>

#include "import/pytorch/value.h"

namespace orknn::importer::pytorch {

Result<Value> read_json(std::string_view text, Heap& heap);

// The value of a key; None when the value is no dictionary or has no such key.
Value member(const Value& dict, std::string_view key);
// The text of a string or number; empty otherwise. Old files write integers as strings.
std::string text_member(const Value& dict, std::string_view key);
std::optional<int64_t> integer_of(const Value& value);

}  // namespace orknn::importer::pytorch
