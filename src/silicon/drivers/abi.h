// What the two kernel drivers take: request numbers and structures, byte for byte. All little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orknn::silicon::abi {

// A request number: direction, size of the argument, type, number.
inline constexpr unsigned long kWrite = 1, kReadWrite = 3;
constexpr unsigned long request(unsigned long direction, unsigned long type, unsigned long number, unsigned long bytes) {
  return direction << 30 | bytes << 16 | type << 8 | number;
}
constexpr unsigned long size_of_request(unsigned long request) { return request >> 16 & 0x3fff; }
inline constexpr unsigned long kDrm = 0x64, kDrmCommands = 0x40;
template <class T>
constexpr unsigned long drm_command(unsigned long direction, unsigned long number) {
  return request(direction, kDrm, kDrmCommands + number, sizeof(T));
}

// Of every DRM device. Pointers and lengths have the width of the machine.
struct DrmVersion {
  int32_t major = 0, minor = 0, patch = 0;
  size_t name_bytes = 0;
  char* name = nullptr;
  size_t date_bytes = 0;
  char* date = nullptr;
  size_t description_bytes = 0;
  char* description = nullptr;
};
inline constexpr unsigned long kDrmVersion = request(kReadWrite, kDrm, 0, sizeof(DrmVersion));

// --- rocket (mainline)
// ------------------------------------------------------------------------------------------------------------
namespace rocket {
struct CreateBo {
  uint32_t bytes = 0;
  uint32_t handle = 0;       // out
  uint64_t dma_address = 0;  // out
  uint64_t offset = 0;       // out, for mmap
};
struct Submit {
  uint64_t jobs = 0;
  uint32_t job_count = 0, job_bytes = 0;
  uint64_t reserved = 0;
};
struct PrepBo {
  uint32_t handle = 0, reserved = 0;
  int64_t timeout_ns = 0;  // absolute, monotonic clock
};
struct FiniBo {
  uint32_t handle = 0, reserved = 0;
};
struct Job {
  uint64_t tasks = 0, in_handles = 0, out_handles = 0;
  uint32_t task_count = 0, task_bytes = 0, in_count = 0, out_count = 0;
};
struct Task {
  uint32_t regcmd = 0;  // device address
  uint32_t words = 0;   // tail included
};
static_assert(sizeof(CreateBo) == 24 && offsetof(CreateBo, dma_address) == 8 && offsetof(CreateBo, offset) == 16);
static_assert(sizeof(Submit) == 24 && offsetof(Submit, job_count) == 8 && offsetof(Submit, reserved) == 16);
static_assert(sizeof(PrepBo) == 16 && offsetof(PrepBo, timeout_ns) == 8);
static_assert(sizeof(FiniBo) == 8);
static_assert(sizeof(Job) == 40 && offsetof(Job, task_count) == 24 && offsetof(Job, out_count) == 36);
static_assert(sizeof(Task) == 8);

inline constexpr unsigned long kCreateBo = drm_command<CreateBo>(kReadWrite, 0), kSubmit = drm_command<Submit>(kWrite, 1),
                               kPrepBo = drm_command<PrepBo>(kWrite, 2), kFiniBo = drm_command<FiniBo>(kWrite, 3);
static_assert(kCreateBo == 0xc0186440 && kSubmit == 0x40186441 && kPrepBo == 0x40106442 && kFiniBo == 0x40086443);
}  // namespace rocket

// --- rknpu (the vendor's)
// ---------------------------------------------------------------------------------------------------------
namespace rknpu {
struct Action {
  uint32_t flags = 0, value = 0;
};
inline constexpr uint32_t kHardwareVersion = 0, kDriverVersion = 1, kReset = 6;  // flags
struct CoreRange {
  uint32_t task_start = 0, task_number = 0;
};
struct Submit {
  uint32_t flags = 0, timeout_ms = 0, task_start = 0, task_number = 0;
  uint32_t task_counter = 0;  // out
  int32_t priority = 0;
  uint64_t task_obj_addr = 0;
  uint32_t iommu_domain_id = 0, reserved = 0;
  uint64_t task_base_addr = 0;
  int64_t hw_elapse_time = 0;  // out
  uint32_t core_mask = 0;
  int32_t fence_fd = -1;
  CoreRange cores[5] = {};
};
inline constexpr uint32_t kJobPc = 1, kJobPingPong = 4;
struct MemCreate {
  uint32_t handle = 0;  // out
  uint32_t flags = 0;
  uint64_t bytes = 0;
  uint64_t obj_addr = 0, dma_addr = 0, sram_bytes = 0;  // out
};
inline constexpr uint32_t kMemNonContiguous = 1, kMemCacheable = 2, kMemKernelMapping = 8;
struct MemMap {
  uint32_t handle = 0, reserved = 0;
  uint64_t offset = 0;  // out, for mmap
};
struct MemDestroy {
  uint32_t handle = 0, reserved = 0;
  uint64_t obj_addr = 0;
};
struct MemSync {
  uint32_t flags = 0, reserved = 0;
  uint64_t obj_addr = 0, offset = 0, bytes = 0;
};
inline constexpr uint32_t kSyncToDevice = 1, kSyncFromDevice = 2;
struct __attribute__((packed)) Task {
  uint32_t flags = 0, op_idx = 0, enable_mask = 0, int_mask = 0, int_clear = 0, int_status = 0;
  uint32_t regcfg_amount = 0;  // words without the four of the tail
  uint32_t regcfg_offset = 0;
  uint64_t regcmd_addr = 0;
};
inline constexpr uint32_t kDpuInterrupts = 0x300, kPpuInterrupts = 0xc00, kAllInterrupts = 0x1ffff;
static_assert(sizeof(Action) == 8);
static_assert(sizeof(Submit) == 104 && offsetof(Submit, task_obj_addr) == 24 && offsetof(Submit, iommu_domain_id) == 32 &&
              offsetof(Submit, task_base_addr) == 40 && offsetof(Submit, hw_elapse_time) == 48 &&
              offsetof(Submit, core_mask) == 56 && offsetof(Submit, fence_fd) == 60 && offsetof(Submit, cores) == 64);
static_assert(sizeof(MemCreate) == 40 && offsetof(MemCreate, bytes) == 8 && offsetof(MemCreate, dma_addr) == 24);
static_assert(sizeof(MemMap) == 16 && offsetof(MemMap, offset) == 8);
static_assert(sizeof(MemDestroy) == 16 && sizeof(MemSync) == 32 && offsetof(MemSync, obj_addr) == 8);
static_assert(sizeof(Task) == 40 && offsetof(Task, regcmd_addr) == 32);

inline constexpr unsigned long kAction = drm_command<Action>(kReadWrite, 0), kSubmit = drm_command<Submit>(kReadWrite, 1),
                               kMemCreate = drm_command<MemCreate>(kReadWrite, 2), kMemMap = drm_command<MemMap>(kReadWrite, 3),
                               kMemDestroy = drm_command<MemDestroy>(kReadWrite, 4),
                               kMemSync = drm_command<MemSync>(kReadWrite, 5);
static_assert(kAction == 0xc0086440 && kSubmit == 0xc0686441 && kMemCreate == 0xc0286442 && kMemMap == 0xc0106443 &&
              kMemDestroy == 0xc0106444 && kMemSync == 0xc0206445);
}  // namespace rknpu

}  // namespace orknn::silicon::abi
