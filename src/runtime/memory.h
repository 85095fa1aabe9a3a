// Memory of the C API: blocks with a file descriptor that other units can import, and the rknn_tensor_mem structs that describe
// them or memory of the caller's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "runtime/public_api.h"
#include "runtime/sram.h"

namespace orknn::runtime {

// Zeroed bytes that the runtime allocated: a dma-buf where the system has a dma-heap, else a memfd.
class SharedBlock {
 public:
  // nullptr when memory or descriptors are short.
  static std::shared_ptr<SharedBlock> allocate(size_t bytes);
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_; }
  // Where the simulated chip sees the block; unique while the block lives.
  uint64_t bus_address() const { return bus_address_; }
  // Cache maintenance of a dma-buf; the others are coherent. `modes` is a rknn_mem_sync_mode.
  void sync(uint32_t modes) const;
  // A pattern follows the bytes, up to the end of the page; somebody changed it.
  bool is_overrun() const;

 private:
  SharedBlock() = default;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0, mapped_ = 0;
  int fd_ = -1;
  bool is_dma_buf_ = false;
  uint64_t bus_address_ = 0;
};

// What a live rknn_tensor_mem of ours stands for.
struct Memory {
  rknn_tensor_mem mem{};               // what the caller sees and may write to
  std::shared_ptr<SharedBlock> block;  // that holds the bytes; nothing = they are the caller's, who frees them
  bool importable = true;              // false: its descriptor was no open file when the struct was made
  bool cacheable = true;
  SramShare sram;  // that it lies in
  // For checker.h: what the bytes were when they were last synchronized for the device, and whether results were not yet.
  std::optional<uint64_t> flushed = std::nullopt;
  bool has_unread_results = false;
};

// The struct stays valid until release_memory().
rknn_tensor_mem* publish_memory(std::shared_ptr<Memory> memory);
// Nothing for structs that are not live ones of ours.
std::shared_ptr<Memory> find_memory(const rknn_tensor_mem* mem);
// The block that holds the bytes at a CPU address or at an address of the simulated bus; nothing when none does.
std::shared_ptr<SharedBlock> find_block(const void* address);
std::shared_ptr<SharedBlock> find_block(uint64_t bus_address);
// Nothing when it was not live. Whoever still holds the Memory keeps its bytes.
std::shared_ptr<Memory> release_memory(const rknn_tensor_mem* mem);
// While mistakes are looked for, the last released structs are kept, so that their addresses do not come up again.
bool was_released(const rknn_tensor_mem* mem);

// The bytes that a struct describes: `size` bytes that begin `offset` bytes after `virt_addr`, cut at the end of a block of ours.
struct Payload {
  std::byte* data = nullptr;
  size_t bytes = 0;
  std::shared_ptr<Memory> keeper;  // nothing for structs that are not ours
  bool importable = true;
};
Payload payload_of(const rknn_tensor_mem& mem);

}  // namespace orknn::runtime
