// The weight section: every constant of a model once, each at a multiple of 64 bytes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "ir/packed.h"

namespace orknn::format {

// Offsets from here on name constants that are not in the file (Model::leaves_out_weights), one after the other like those that
// are.
inline constexpr uint64_t kLeftOut = uint64_t{1} << 62;

// Collects constants in order of appearance. Refers to their bytes, so the tensors must outlive it.
class WeightCollector {
 public:
  // `seen` gets the bytes of each constant whose content was looked at.
  explicit WeightCollector(std::function<void(uint64_t bytes)> seen = {}) : seen_(std::move(seen)) {}
  // Offset of the bytes in the section; equal bytes get the same one. Of a packed constant: of its integers, its scales are added
  // too.
  uint64_t add(const ir::TensorData& value);
  uint64_t section_bytes() const { return kept_.bytes; }
  struct Piece {
    std::span<const std::byte> bytes;
    uint64_t offset;
  };
  const std::vector<Piece>& pieces() const { return kept_.pieces; }

  // Keeps the bytes of a constant out of the section: they get an offset from kLeftOut on instead. Before it is added.
  void leave_out(const ir::TensorData& value);
  const std::vector<Piece>& left_out() const { return left_out_.pieces; }

 private:
  struct Group {
    uint64_t base = 0, bytes = 0;
    std::vector<Piece> pieces;
    std::unordered_multimap<uint64_t, size_t> by_checksum;  // positions in pieces
  };
  using Memory = std::pair<const std::byte*, size_t>;
  // Offset of bytes that were not added before: of equal ones of the group, or a new one.
  uint64_t place(std::span<const std::byte> bytes, Group& group);
  std::function<void(uint64_t bytes)> seen_;
  Group kept_, left_out_{.base = kLeftOut};
  std::set<Memory> leaving_;
  std::map<Memory, uint64_t> by_memory_;  // offset of each constant that was added
};

// The section of a loaded file; `keeper` keeps the bytes alive.
struct WeightSection {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;
  std::map<uint64_t, ir::TensorData> outside;  // constants that the file leaves out, by their offset
  // A tensor over the section's own bytes. Checks type, shape, alignment and range.
  Result<ir::TensorData> tensor(DType dtype, ir::Dims dims, uint64_t offset) const;
  // The values of a packed constant, checked the same way.
  struct PackedPlace {
    DType type = DType::Int8;
    ir::Dims block;
    uint64_t integers = 0, scales = 0;  // offsets
  };
  Result<ir::TensorData> packed_tensor(DType dtype, ir::Dims dims, const PackedPlace& place) const;

 private:
  struct Place {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> keeper;
  };
  Result<Place> find(uint64_t offset, uint64_t size) const;
};

}  // namespace orknn::format
