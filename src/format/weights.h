// The weight section: every constant of a model once, each at a multiple of 64 bytes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/packed.h"

namespace orknn::format {

// Collects constants in order of appearance. Refers to their bytes, so the tensors must outlive it.
class WeightCollector {
 public:
  // `seen` gets the bytes of each constant whose content was looked at.
  explicit WeightCollector(std::function<void(uint64_t bytes)> seen = {}) : seen_(std::move(seen)) {}
  // Offset of the bytes in the section; equal bytes get the same one. Of a packed constant: of its integers, its scales are added
  // too.
  uint64_t add(const ir::TensorData& value);
  uint64_t section_bytes() const { return bytes_; }
  struct Piece {
    std::span<const std::byte> bytes;
    uint64_t offset;
  };
  const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  // Offset of bytes that were not added before: of equal ones, or a new one.
  uint64_t place(std::span<const std::byte> bytes);
  std::function<void(uint64_t bytes)> seen_;
  std::vector<Piece> pieces_;
  std::unordered_multimap<uint64_t, size_t> by_checksum_;              // positions in pieces_
  std::map<std::pair<const std::byte*, size_t>, uint64_t> by_memory_;  // offset of each constant that was added
  uint64_t bytes_ = 0;
};

// The section of a loaded file; `keeper` keeps the bytes alive.
struct WeightSection {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;
  // A tensor over the section's own bytes. Checks type, shape, alignment and range.
  Result<ir::TensorData> tensor(DType dtype, ir::Dims dims, uint64_t offset) const;
  // The values of a packed constant, checked the same way.
  struct PackedPlace {
    DType type = DType::Int8;
    ir::Dims block;
    uint64_t integers = 0, scales = 0;  // offsets
  };
  Result<ir::TensorData> packed_tensor(DType dtype, ir::Dims dims, const PackedPlace& place) const;
};

}  // namespace orknn::format
