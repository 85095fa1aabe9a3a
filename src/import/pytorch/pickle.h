// Reads the pickles of TorchScript archives. Nothing is executed: a closed list of opcodes and of names is known, everything else
// is refused with its offset.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "import/pytorch/value.h"

namespace orknn::importer::pytorch {

// How a pickle reaches what lies beside it in the archive.
struct PickleHost {
  // The storage a persistent id names, e.g. ("FloatStorage", "0", 12).
  std::function<Result<const Storage*>(std::string_view type, std::string_view key, int64_t count)> storage;
  // Tensors by number, as archives before version 1.3 write them; may be empty.
  std::function<Result<Value>(int64_t)> tensor;
};

Result<Value> read_pickle(std::span<const std::byte> bytes, Heap& heap, const PickleHost& host);

}  // namespace orknn::importer::pytorch
