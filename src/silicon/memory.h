// What the unit sees: buffers at 32-bit device addresses. Everything else is a fault.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/status.h"

namespace orknn::silicon {

class DeviceMemory {
 public:
  enum class Access : uint8_t { ReadWrite, ReadOnly };
  // The bytes are not copied and must outlive this object. Buffers must not overlap.
  Status map(std::string name, uint32_t address, std::span<std::byte> bytes, Access access = Access::ReadWrite);
  // The bytes at an address, all inside of one buffer; `what` names the access in the error.
  Result<const std::byte*> at(uint64_t address, uint64_t bytes, const char* what) const;
  // The same where the unit writes.
  Result<std::byte*> writable_at(uint64_t address, uint64_t bytes, const char* what) const;

 private:
  struct Buffer {
    std::string name;
    std::span<std::byte> bytes;
    Access access = Access::ReadWrite;
  };
  // The buffer that holds the range and the range's first byte.
  struct Found {
    const Buffer* buffer = nullptr;
    std::byte* first = nullptr;
  };
  Result<Found> find(uint64_t address, uint64_t bytes, const char* what) const;
  std::map<uint64_t, Buffer> buffers_;  // by address
};

// Hands out device addresses, a page each.
class AddressSpace {
 public:
  static constexpr uint64_t kPage = 4096, kFirst = 0x10000;
  static constexpr uint64_t whole_pages(uint64_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
  // An error above 4 GiB, where registers do not reach.
  Result<uint32_t> allocate(uint64_t bytes);

 private:
  uint64_t next_ = kFirst;
};

}  // namespace orknn::silicon
