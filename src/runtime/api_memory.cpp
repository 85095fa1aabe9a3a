// Making, freeing and synchronizing memory. A context of either kind will do; most functions accept none at all.
#include <fcntl.h>

#include "runtime/c_call.h"
#include "runtime/checker.h"
#include "runtime/configuration.h"
#include "runtime/context.h"
#include "runtime/memory.h"

namespace orknn::runtime {
namespace {
// Runs `body`, which returns a struct or fails.
template <class Body>
rknn_tensor_mem* make(const char* function, Body body) {
  rknn_tensor_mem* made = nullptr;
  c_call(function, [&] {
    made = body();
    return made ? RKNN_SUCC : RKNN_ERR_FAIL;
  });
  return made;
}

rknn_tensor_mem* refuse(int code, const char* function, std::string_view text) {
  fail(code, function, text);
  return nullptr;
}

rknn_tensor_mem* refuse_context(const char* function) {
  invalid_context(function);
  return nullptr;
}

// The chip whose memory is asked for: the context's, else the chosen one.
const platform::Platform& chip_of(rknn_context context) {
  if (const std::shared_ptr<Context> found = find_context(context)) return *found->chip;
  const platform::Platform* chosen = configured_chip();
  return chosen ? *chosen : platform::default_platform();
}

rknn_tensor_mem* allocate(const char* function, rknn_context context, uint64_t size, uint64_t flags) {
  if (!(flags & RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) && !find_object(context)) return refuse_context(function);
  if (size == 0 || size > UINT32_MAX)
    return refuse(RKNN_ERR_PARAM_INVALID, function,
                  "size is " + std::to_string(size) + ", expected 1 to 4294967295 (rknn_tensor_mem counts with 32 bits)");
  if ((flags & RKNN_FLAG_MEMORY_CACHEABLE) && (flags & RKNN_FLAG_MEMORY_NON_CACHEABLE))
    return refuse(RKNN_ERR_PARAM_INVALID, function, "alloc_flags asks for cacheable and for non-cacheable memory");
  auto memory = std::make_shared<Memory>();
  memory->block = SharedBlock::allocate(size);
  if (!memory->block)
    return refuse(RKNN_ERR_MALLOC_FAIL, function, "no memory or no file descriptor for " + std::to_string(size) + " bytes");
  if (flags & RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM) memory->sram = SramShare(chip_of(context), size);
  memory->cacheable = !(flags & RKNN_FLAG_MEMORY_NON_CACHEABLE);
  memory->mem = {.virt_addr = memory->block->data(),
                 .phys_addr = memory->block->bus_address(),
                 .fd = memory->block->fd(),
                 .offset = 0,
                 .size = static_cast<uint32_t>(size),
                 .flags = RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE,
                 .priv_data = nullptr};
  return publish_memory(std::move(memory));
}

rknn_tensor_mem* from_fd(rknn_context context, int32_t fd, void* address, uint32_t size, int32_t offset) {
  constexpr const char* kName = "rknn_create_mem_from_fd";
  if (const platform::Platform* chip = configured_chip(); chip && !chip->features.memory_from_fd)
    return refuse(RKNN_ERR_TARGET_PLATFORM_UNMATCH, kName, std::string(chip->name) + " does not offer this function");
  if (!find_object(context)) return refuse_context(kName);
  if (fd < 0 || size == 0 || offset < 0 || !address)
    return refuse(RKNN_ERR_PARAM_INVALID, kName,
                  fd < 0       ? "fd is negative"
                  : size == 0  ? "size is 0"
                  : offset < 0 ? "offset is negative"
                               : "virt_addr is NULL");
  auto memory = std::make_shared<Memory>();
  memory->block = find_block(address);
  memory->importable = ::fcntl(fd, F_GETFD) >= 0;
  memory->mem = {.virt_addr = address,
                 .phys_addr = 0,
                 .fd = fd,
                 .offset = offset,
                 .size = size,
                 .flags = RKNN_TENSOR_MEMORY_FLAGS_FROM_FD,
                 .priv_data = nullptr};
  return publish_memory(std::move(memory));
}

rknn_tensor_mem* from_phys(rknn_context context, uint64_t address, void* virtual_address, uint32_t size) {
  constexpr const char* kName = "rknn_create_mem_from_phys";
  if (!find_object(context)) return refuse_context(kName);
  if ((address == 0 && !virtual_address) || size == 0)
    return refuse(RKNN_ERR_PARAM_INVALID, kName, size == 0 ? "size is 0" : "neither phys_addr nor virt_addr is given");
  auto memory = std::make_shared<Memory>();
  // The only physical memory of a simulated chip is what this runtime made.
  memory->block = virtual_address ? find_block(virtual_address) : find_block(address);
  if (!virtual_address && memory->block) virtual_address = memory->block->data() + (address - memory->block->bus_address());
  memory->mem = {.virt_addr = virtual_address,
                 .phys_addr = address,
                 .fd = -1,
                 .offset = 0,
                 .size = size,
                 .flags = RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS,
                 .priv_data = nullptr};
  return publish_memory(std::move(memory));
}

int destroy(const char* function, rknn_tensor_mem* mem) {
  if (!mem) return fail(RKNN_ERR_PARAM_INVALID, function, "mem is NULL");
  check_not_destroyed("rknn_destroy_mem", mem);
  const std::shared_ptr<Memory> memory = release_memory(mem);
  if (!memory) return fail(RKNN_ERR_PARAM_INVALID, function, "mem is not memory of this runtime, or was destroyed before");
  check_bounds(function, *memory);
  return RKNN_SUCC;
}

int sync(rknn_tensor_mem* mem, uint32_t mode) {
  constexpr const char* kName = "rknn_mem_sync";
  if (!mem) return fail(RKNN_ERR_PARAM_INVALID, kName, "mem is NULL");
  if (mode < RKNN_MEMORY_SYNC_TO_DEVICE || mode > RKNN_MEMORY_SYNC_BIDIRECTIONAL)
    return fail(RKNN_ERR_PARAM_INVALID, kName, "mode is " + std::to_string(mode) + ", expected 1, 2 or 3");
  check_not_destroyed(kName, mem);
  if (const std::shared_ptr<Memory> memory = find_memory(mem)) {
    note_sync(*memory, mode);
    if (memory->block) memory->block->sync(mode);
  }
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

rknn_tensor_mem* rknn_create_mem(rknn_context ctx, uint32_t size) {
  return make("rknn_create_mem", [&] { return allocate("rknn_create_mem", ctx, size, RKNN_FLAG_MEMORY_FLAGS_DEFAULT); });
}

rknn_tensor_mem* rknn_create_mem2(rknn_context ctx, uint64_t size, uint64_t alloc_flags) {
  return make("rknn_create_mem2", [&] { return allocate("rknn_create_mem2", ctx, size, alloc_flags); });
}

rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx, int32_t fd, void* virt_addr, uint32_t size, int32_t offset) {
  return make("rknn_create_mem_from_fd", [&] { return from_fd(ctx, fd, virt_addr, size, offset); });
}

rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr, void* virt_addr, uint32_t size) {
  return make("rknn_create_mem_from_phys", [&] { return from_phys(ctx, phys_addr, virt_addr, size); });
}

rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context, void*, int32_t) {
  return make("rknn_create_mem_from_mb_blk", [&] {
    return refuse(RKNN_ERR_FAIL, "rknn_create_mem_from_mb_blk",
                  "media blocks are not supported, as on every chip; pass the block's descriptor to rknn_create_mem_from_fd");
  });
}

int rknn_destroy_mem(rknn_context, rknn_tensor_mem* mem) {
  return c_call("rknn_destroy_mem", [&] { return destroy("rknn_destroy_mem", mem); });
}

// The name of rknn_destroy_mem before 1.3, for programs that were linked then.
extern "C" [[gnu::visibility("default")]] int rknn_destory_mem(rknn_context, rknn_tensor_mem* mem) {
  return c_call("rknn_destory_mem", [&] { return destroy("rknn_destory_mem", mem); });
}

int rknn_mem_sync(rknn_context, rknn_tensor_mem* mem, rknn_mem_sync_mode mode) {
  return c_call("rknn_mem_sync", [&] { return sync(mem, number(mode)); });
}
