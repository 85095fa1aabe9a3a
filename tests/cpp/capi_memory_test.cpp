// Memory of the C API: descriptors, imports, foreign memory, every refusal.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "format/rknn_file.h"
#include "format_sample.h"
#include "openrknn.h"
#include "rknn_api.h"
#include "runtime/handles.h"

extern "C" int rknn_destory_mem(rknn_context, rknn_tensor_mem*);

namespace orknn {
namespace {

class CApiMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::byte> bytes = *format::write_rknn_to_memory(format::sample_model());
    ASSERT_EQ(rknn_init(&context, bytes.data(), static_cast<uint32_t>(bytes.size()), 0, nullptr), RKNN_SUCC);
  }
  void TearDown() override { rknn_destroy(context); }
  rknn_context context = 0;
};

TEST_F(CApiMemory, HasADescriptorThatCanBeMappedAndImported) {
  rknn_tensor_mem* mem = rknn_create_mem(context, 5000);
  ASSERT_NE(mem, nullptr) << orknn_last_error();
  EXPECT_GT(mem->fd, 2);
  EXPECT_EQ(mem->size, 5000u);
  EXPECT_EQ(mem->offset, 0);
  EXPECT_EQ(mem->flags, static_cast<uint32_t>(RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE));
  EXPECT_NE(mem->phys_addr, 0u);
  auto* bytes = static_cast<uint8_t*>(mem->virt_addr);
  EXPECT_EQ(bytes[0] | bytes[4999], 0) << "it begins as zeros";
  bytes[4096] = 77;
  void* mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, mem->fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(static_cast<uint8_t*>(mapped)[4096], 77);
  static_cast<uint8_t*>(mapped)[1] = 5;
  EXPECT_EQ(bytes[1], 5);
  munmap(mapped, 8192);

  rknn_tensor_mem* view = rknn_create_mem_from_fd(context, mem->fd, mem->virt_addr, 904, 4096);
  ASSERT_NE(view, nullptr) << orknn_last_error();
  EXPECT_EQ(view->virt_addr, mem->virt_addr);
  EXPECT_EQ(view->offset, 4096);
  EXPECT_EQ(view->size, 904u);
  EXPECT_EQ(view->fd, mem->fd);
  EXPECT_EQ(view->flags, static_cast<uint32_t>(RKNN_TENSOR_MEMORY_FLAGS_FROM_FD));
  EXPECT_EQ(rknn_destroy_mem(context, view), RKNN_SUCC);
  EXPECT_EQ(bytes[4096], 77) << "what was only described is not freed";

  rknn_tensor_mem* phys = rknn_create_mem_from_phys(context, mem->phys_addr + 4096, nullptr, 16);
  ASSERT_NE(phys, nullptr) << orknn_last_error();
  EXPECT_EQ(phys->virt_addr, bytes + 4096);
  EXPECT_EQ(phys->fd, -1);
  EXPECT_EQ(phys->flags, static_cast<uint32_t>(RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS));
  EXPECT_EQ(rknn_destroy_mem(context, phys), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_SUCC);
}

TEST_F(CApiMemory, DescriptorsAreClosed) {
  rknn_tensor_mem* mem = rknn_create_mem(context, 16);
  ASSERT_NE(mem, nullptr);
  const int fd = mem->fd;
  struct stat about {};
  EXPECT_EQ(fstat(fd, &about), 0);
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_SUCC);
  EXPECT_NE(fstat(fd, &about), 0);
  for (int i = 0; i < 5000; ++i) {
    mem = rknn_create_mem2(0, 16, RKNN_MEM_FLAG_ALLOC_NO_CONTEXT);
    ASSERT_NE(mem, nullptr) << orknn_last_error();
    ASSERT_EQ(rknn_destroy_mem(0, mem), RKNN_SUCC);
  }
}

TEST_F(CApiMemory, ASystemWithoutDmaHeapGetsAMemfd) {
  setenv("OPENRKNN_DMA_HEAP", "/dev/null", 1);  // a device that is no heap
  rknn_tensor_mem* mem = rknn_create_mem(context, 16);
  unsetenv("OPENRKNN_DMA_HEAP");
  ASSERT_NE(mem, nullptr);
  char name[256] = {};
  EXPECT_GT(readlink(("/proc/self/fd/" + std::to_string(mem->fd)).c_str(), name, sizeof name - 1), 0);
  EXPECT_NE(std::string(name).find("memfd:rknn_mem"), std::string::npos) << name;
  rknn_destroy_mem(context, mem);
}

TEST_F(CApiMemory, OutlivesItsContext) {
  rknn_tensor_mem* mem = rknn_create_mem(context, 64);
  ASSERT_NE(mem, nullptr);
  EXPECT_EQ(rknn_destroy(context), RKNN_SUCC);
  std::memset(mem->virt_addr, 1, 64);
  EXPECT_EQ(rknn_mem_sync(context, mem, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_SUCC);
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_SUCC);
}

TEST_F(CApiMemory, OfTheCallerIsNeverTouched) {
  void* foreign = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rknn_tensor_mem* mem = rknn_create_mem_from_phys(context, 0x1000, foreign, 4096);
  ASSERT_NE(mem, nullptr);
  munmap(foreign, 4096);
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_SUCC);
}

TEST_F(CApiMemory, AContextOfTheOtherKindWillDo) {
  struct Product : runtime::HandleObject {};
  const rknn_context product = runtime::publish(std::make_shared<Product>());
  rknn_tensor_mem* mem = rknn_create_mem(product, 64);
  EXPECT_NE(mem, nullptr) << orknn_last_error();
  EXPECT_EQ(rknn_destroy_mem(product, mem), RKNN_SUCC);
  EXPECT_EQ(rknn_run(product, nullptr), RKNN_ERR_CTX_INVALID) << "but it is no model";
  EXPECT_EQ(rknn_destroy(product), RKNN_ERR_CTX_INVALID);
  EXPECT_NE(runtime::take_handle<Product>(product), nullptr);
  EXPECT_EQ(runtime::find_object(product), nullptr);
}

TEST_F(CApiMemory, Refusals) {
  char byte = 0;
  EXPECT_EQ(rknn_create_mem(context, 0), nullptr);
  EXPECT_EQ(rknn_create_mem(0, 16), nullptr);
  EXPECT_EQ(rknn_create_mem(context + 1000, 16), nullptr);
  EXPECT_EQ(rknn_create_mem2(context, uint64_t{1} << 32, 0), nullptr);
  EXPECT_EQ(rknn_create_mem2(context, 16, RKNN_FLAG_MEMORY_CACHEABLE | RKNN_FLAG_MEMORY_NON_CACHEABLE), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(0, 1, &byte, 1, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context, -1, &byte, 1, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context, 1, nullptr, 1, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context, 1, &byte, 0, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_fd(context, 1, &byte, 1, -1), nullptr);
  EXPECT_EQ(rknn_create_mem_from_phys(0, 1, &byte, 1), nullptr);
  EXPECT_EQ(rknn_create_mem_from_phys(context, 0, nullptr, 1), nullptr);
  EXPECT_EQ(rknn_create_mem_from_phys(context, 1, &byte, 0), nullptr);
  EXPECT_EQ(rknn_create_mem_from_mb_blk(context, &byte, 0), nullptr);
  EXPECT_EQ(rknn_destroy_mem(context, nullptr), RKNN_ERR_PARAM_INVALID);
  rknn_tensor_mem mine{};
  EXPECT_EQ(rknn_destroy_mem(context, &mine), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(0, nullptr, RKNN_MEMORY_SYNC_TO_DEVICE), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(0, &mine, static_cast<rknn_mem_sync_mode>(0)), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(0, &mine, static_cast<rknn_mem_sync_mode>(4)), RKNN_ERR_PARAM_INVALID);
  EXPECT_EQ(rknn_mem_sync(0, &mine, RKNN_MEMORY_SYNC_BIDIRECTIONAL), RKNN_SUCC);
  rknn_tensor_mem* mem = rknn_create_mem(context, 16);
  EXPECT_EQ(rknn_destory_mem(0, mem), RKNN_SUCC) << "the name of old programs";
  EXPECT_EQ(rknn_destroy_mem(context, mem), RKNN_ERR_PARAM_INVALID) << "a second time";
}

}  // namespace
}  // namespace orknn
