#include "silicon/memory.h"

#include <algorithm>

namespace orknn::silicon {
namespace {
std::string range_text(uint64_t address, uint64_t bytes) {
  return std::to_string(bytes) + " bytes at " + std::to_string(address);
}
}  // namespace

Status DeviceMemory::map(std::string name, uint32_t address, std::span<std::byte> bytes, Access access) {
  const uint64_t end = uint64_t{address} + bytes.size();
  if (end > uint64_t{1} << 32) return invalid_argument("buffer '" + name + "' ends above 4 GiB");
  const auto after = buffers_.lower_bound(address);
  const bool meets_next = after != buffers_.end() && after->first < end;
  const bool meets_last = after != buffers_.begin() && std::prev(after)->first + std::prev(after)->second.bytes.size() > address;
  if (meets_next || meets_last)
    return invalid_argument("buffer '" + name + "' overlaps another one").found(range_text(address, bytes.size()));
  buffers_.emplace(address, Buffer{std::move(name), bytes, access});
  return {};
}

Result<DeviceMemory::Found> DeviceMemory::find(uint64_t address, uint64_t bytes, const char* what) const {
  const auto after = buffers_.upper_bound(address);
  if (after == buffers_.begin())
    return invalid_argument(std::string(what) + " is outside of every buffer").found(range_text(address, bytes));
  const auto& [start, buffer] = *std::prev(after);
  if (address - start > buffer.bytes.size() || bytes > buffer.bytes.size() - (address - start))
    return invalid_argument(std::string(what) + " is outside of every buffer")
        .expected("at most " + range_text(start, buffer.bytes.size()) + " ('" + buffer.name + "')")
        .found(range_text(address, bytes));
  return Found{&buffer, buffer.bytes.data() + (address - start)};
}

Result<const std::byte*> DeviceMemory::at(uint64_t address, uint64_t bytes, const char* what) const {
  ORKNN_TRY_ASSIGN(const Found found, find(address, bytes, what));
  return found.first;
}

Result<std::byte*> DeviceMemory::writable_at(uint64_t address, uint64_t bytes, const char* what) const {
  ORKNN_TRY_ASSIGN(const Found found, find(address, bytes, what));
  if (found.buffer->access == Access::ReadOnly)
    return invalid_argument(std::string(what) + " is in buffer '" + found.buffer->name + "', which the unit only reads")
        .found(range_text(address, bytes));
  return found.first;
}

Result<uint32_t> AddressSpace::allocate(uint64_t bytes) {
  const uint64_t address = next_, pages = std::max(whole_pages(bytes), kPage);
  if (bytes > uint64_t{1} << 32 || address + pages > uint64_t{1} << 32)
    return unsupported("the buffers need more than the 4 GiB that the unit addresses");
  next_ = address + pages;
  return static_cast<uint32_t>(address);
}

}  // namespace orknn::silicon
