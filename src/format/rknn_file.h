// Reading and writing .rknn files (docs/rknn_format.md). A file is checked as a whole before anything of it is used.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/threads.h"
#include "format/program.h"

namespace orknn::format {

// Called with the bytes of weights that were worked through since the last call.
using BytesDone = std::function<void(uint64_t bytes)>;

// The same model always gives the same bytes. The file appears when it is complete, or not at all. The weights are worked through
// kWritePasses times.
Status write_rknn(const Model& model, const std::string& path, const BytesDone& done = {});
Status write_rknn(const Model& model, FileWriter& out, const BytesDone& done = {});
inline constexpr uint64_t kWritePasses = 3;  // equal ones are found, summed up, written
// Size of the file that write_rknn() would write. Nothing is encoded, and weights that were placed (place_weights) are not looked
// at unless the file codes them or leaves some out.
uint64_t rknn_file_bytes(const Model& model);
Result<std::vector<std::byte>> write_rknn_to_memory(const Model& model);

// Finds weights that a file leaves out (Model::leaves_out_weights): data of exactly `bytes` bytes whose checksum64 is `checksum`.
using OutsideWeights = std::function<Result<ir::TensorData>(uint64_t bytes, uint64_t checksum)>;
// Those of a model that has them; its bytes are shared, not copied.
OutsideWeights weights_of(std::shared_ptr<const Model> donor);
// Zeros in their place: for looking at a model without running it.
OutsideWeights zero_weights();

// Maps the file; constants point into the mapping, which they keep alive. The error says whether the file is no .rknn
// at all, one of the vendor's, encrypted, cut off, damaged, or needs weights that `outside` does not have.
Result<Model> read_rknn(const std::string& path, ThreadPool& pool = ThreadPool::shared());
// A model inside a larger file. `bytes` 0 = to the end of the file.
Result<Model> read_rknn(const std::string& path, uint64_t offset, uint64_t bytes, ThreadPool& pool = ThreadPool::shared(),
                        const OutsideWeights& outside = {});
// From memory that `keeper` keeps alive. Without keeper, or at an address that is not a multiple of 64, it is copied first.
Result<Model> read_rknn(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                        ThreadPool& pool = ThreadPool::shared(), const OutsideWeights& outside = {});

// Sets Model::weight_bytes and the offsets of constants as write_rknn stores them.
void place_weights(Model& model, const BytesDone& done = {});

}  // namespace orknn::format
