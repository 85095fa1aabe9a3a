#include "runtime/memory.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include(<linux/dma-heap.h>)
#include <linux/dma-buf.h>
#include <linux/dma-heap.h>
#define ORKNN_DMA_HEAP 1
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <unordered_map>

#include "base/forks.h"
#include "base/memory.h"
#include "runtime/checker.h"

namespace orknn::runtime {
namespace {
constexpr std::byte kPattern{0xa5};
constexpr size_t kGuardBytes = 64;

size_t round_to_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

// Programs take 0 for a failed allocation, and 0 to 2 belong to standard streams.
int above_standard_streams(int fd) {
  if (fd < 0 || fd > 2) return fd;
  const int higher = ::fcntl(fd, F_DUPFD_CLOEXEC, 3);
  ::close(fd);
  return higher;
}

int open_memfd(size_t bytes) {
  const int fd = above_standard_streams(::memfd_create("rknn_mem", MFD_CLOEXEC));
  if (fd < 0) return -1;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0) return fd;
  ::close(fd);
  return -1;
}

// A dma-buf of the system's heap, or -1. OPENRKNN_DMA_HEAP names another heap device; empty = none.
int open_dma_buf([[maybe_unused]] size_t bytes) {
#ifdef ORKNN_DMA_HEAP
  const char* wanted = std::getenv("OPENRKNN_DMA_HEAP");
  const int heap = ::open(wanted ? wanted : "/dev/dma_heap/system", O_RDONLY | O_CLOEXEC);
  if (heap < 0) return -1;
  dma_heap_allocation_data request{};
  request.len = bytes;
  request.fd_flags = O_RDWR | O_CLOEXEC;
  const int code = ::ioctl(heap, DMA_HEAP_IOCTL_ALLOC, &request);
  ::close(heap);
  return code == 0 ? above_standard_streams(static_cast<int>(request.fd)) : -1;
#else
  return -1;
#endif
}

std::byte* map_shared(int fd, size_t bytes) {
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return address == MAP_FAILED ? nullptr : static_cast<std::byte*>(address);
}

// Addresses of the simulated bus are never used twice.
uint64_t take_bus_addresses(size_t bytes) {
  static std::atomic<uint64_t> next{uint64_t{1} << 30};
  return next.fetch_add(bytes, std::memory_order_relaxed);
}

struct Table {
  BriefMutex mutex;
  std::unordered_map<const rknn_tensor_mem*, std::shared_ptr<Memory>> memories;
  std::deque<std::shared_ptr<Memory>> released;  // only while mistakes are looked for
};

// Never destroyed: programs free memory from their own static destructors.
Table& table() {
  static Table* const instance = new Table;
  return *instance;
}
ORKNN_MAKE_AT_LOAD(table);

template <class Holds>
std::shared_ptr<SharedBlock> block_that(Holds holds) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  for (const auto& [mem, memory] : t.memories)
    if (memory->block && holds(*memory->block)) return memory->block;
  return nullptr;
}
}  // namespace

std::shared_ptr<SharedBlock> SharedBlock::allocate(size_t bytes) {
  const size_t mapped = round_to_pages(std::max<size_t>(bytes, 1) + (is_checking() ? kGuardBytes : 0));
  if (mapped > machine_memory()) return nullptr;
  std::shared_ptr<SharedBlock> block(new SharedBlock());
  block->fd_ = open_dma_buf(mapped);
  block->is_dma_buf_ = block->fd_ >= 0;
  if (!block->is_dma_buf_) block->fd_ = open_memfd(mapped);
  if (block->fd_ < 0) return nullptr;
  block->data_ = map_shared(block->fd_, mapped);
  if (!block->data_) return nullptr;
  block->bytes_ = bytes;
  block->mapped_ = mapped;
  std::fill(block->data_ + bytes, block->data_ + mapped, kPattern);
  block->bus_address_ = take_bus_addresses(mapped);
  return block;
}

bool SharedBlock::is_overrun() const {
  return std::any_of(data_ + bytes_, data_ + mapped_, [](std::byte b) { return b != kPattern; });
}

SharedBlock::~SharedBlock() {
  if (data_) ::munmap(data_, mapped_);
  if (fd_ >= 0) ::close(fd_);
}

void SharedBlock::sync([[maybe_unused]] uint32_t modes) const {
#ifdef ORKNN_DMA_HEAP
  if (!is_dma_buf_) return;
  // The end of an access by the CPU writes its caches back, the begin of one drops them.
  if (modes & RKNN_MEMORY_SYNC_TO_DEVICE) {
    dma_buf_sync end{DMA_BUF_SYNC_END | DMA_BUF_SYNC_RW};
    ::ioctl(fd_, DMA_BUF_IOCTL_SYNC, &end);
  }
  if (modes & RKNN_MEMORY_SYNC_FROM_DEVICE) {
    dma_buf_sync begin{DMA_BUF_SYNC_START | DMA_BUF_SYNC_RW};
    ::ioctl(fd_, DMA_BUF_IOCTL_SYNC, &begin);
  }
#endif
}

rknn_tensor_mem* publish_memory(std::shared_ptr<Memory> memory) {
  rknn_tensor_mem* mem = &memory->mem;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.memories.emplace(mem, std::move(memory));
  return mem;
}

std::shared_ptr<Memory> find_memory(const rknn_tensor_mem* mem) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto it = t.memories.find(mem);
  return it == t.memories.end() ? nullptr : it->second;
}

std::shared_ptr<SharedBlock> find_block(const void* address) {
  const auto* at = static_cast<const std::byte*>(address);
  return block_that([&](const SharedBlock& b) { return at >= b.data() && at < b.data() + b.bytes(); });
}

std::shared_ptr<SharedBlock> find_block(uint64_t bus_address) {
  return block_that(
      [&](const SharedBlock& b) { return bus_address >= b.bus_address() && bus_address - b.bus_address() < b.bytes(); });
}

std::shared_ptr<Memory> release_memory(const rknn_tensor_mem* mem) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto it = t.memories.find(mem);
  if (it == t.memories.end()) return nullptr;
  std::shared_ptr<Memory> memory = std::move(it->second);
  t.memories.erase(it);
  if (is_checking()) {
    constexpr size_t kKept = 256;
    t.released.push_back(memory);
    if (t.released.size() > kKept) t.released.pop_front();
  }
  return memory;
}

bool was_released(const rknn_tensor_mem* mem) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  return std::any_of(t.released.begin(), t.released.end(), [&](const auto& m) { return &m->mem == mem; });
}

Payload payload_of(const rknn_tensor_mem& mem) {
  Payload p;
  p.keeper = find_memory(&mem);
  if (!mem.virt_addr || mem.offset < 0) return p;
  p.data = static_cast<std::byte*>(mem.virt_addr) + mem.offset;
  p.bytes = mem.size;
  if (!p.keeper) return p;
  p.importable = p.keeper->importable;
  if (const SharedBlock* block = p.keeper->block.get(); block && mem.virt_addr == block->data())
    p.bytes = std::min(p.bytes, block->bytes() - std::min(block->bytes(), static_cast<size_t>(mem.offset)));
  return p;
}

}  // namespace orknn::runtime
