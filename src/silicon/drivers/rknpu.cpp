#include "silicon/drivers/rknpu.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "silicon/command.h"
#include "silicon/drivers/abi.h"

namespace orknn::silicon {
namespace {
using namespace abi::rknpu;

constexpr uint32_t kTimeoutMs = 6000;
constexpr uint32_t kAllCores = 7;

class RknpuUnit final : public Unit {
 public:
  explicit RknpuUnit(std::unique_ptr<DeviceFile> file) : file_(std::move(file)) {}
  ~RknpuUnit() override {
    for (const Buffer& b : buffers_) release(b);
    release(task_list_);
  }

  std::string name() const override { return "rknpu (" + file_->path() + ")"; }
  std::string driver() const override {
    return file_->driver_line() + stated(kHardwareVersion, "hardware version") + stated(kDriverVersion, "driver version");
  }
  bool is_board() const override { return true; }
  bool waits_for_pooling() const override { return true; }
  // Another process may come between two submissions.
  bool keeps_buffer_between_tasks() const override { return false; }

  Result<UnitBuffer> allocate(BufferUse use, uint64_t bytes) override {
    Buffer& b = buffers_[static_cast<size_t>(use)];
    ORKNN_TRY(create(b, bytes, kMemNonContiguous | kMemCacheable));
    return UnitBuffer{static_cast<uint32_t>(b.address), {b.memory, bytes}};
  }
  Status give(BufferUse use) override { return sync(buffer(use), kSyncToDevice); }
  Status take(BufferUse use) override { return sync(buffer(use), kSyncFromDevice); }

  Status run(std::span<const UnitTask> tasks, const UnitRun& run) override {
    ORKNN_TRY(write_task_list(tasks));
    const auto cores = static_cast<size_t>(std::max(std::popcount(run.core_mask & kAllCores), 1));
    for (size_t first = 0; first < tasks.size();) {
      const size_t count = std::min(cores, independent_tasks(tasks.subspan(first)));
      if (Status s = submit(first, count, run); !s) {
        reset();
        return s;
      }
      first += count;
    }
    return {};
  }

 private:
  struct Buffer {
    uint32_t handle = 0;
    uint64_t object = 0, address = 0, bytes = 0;
    std::byte* memory = nullptr;
  };
  const Buffer& buffer(BufferUse use) const { return buffers_[static_cast<size_t>(use)]; }

  Status create(Buffer& b, uint64_t bytes, uint32_t flags) {
    MemCreate create;
    create.bytes = bytes;
    create.flags = flags;
    if (const int code = file_->control(kMemCreate, create); code != 0) return kernel_error("MEM_CREATE", file_->path(), code);
    b.handle = create.handle;
    b.object = create.obj_addr;
    b.address = create.dma_addr;
    if (b.address > UINT32_MAX || bytes > (uint64_t{1} << 32) - b.address)
      return unsupported("the kernel gave a buffer above 4 GiB, where registers do not reach").found(std::to_string(b.address));
    MemMap map;
    map.handle = b.handle;
    if (const int code = file_->control(kMemMap, map); code != 0) return kernel_error("MEM_MAP", file_->path(), code);
    b.memory = file_->map(map.offset, bytes);
    if (!b.memory) return Status::error(Code::OutOfMemory, "a buffer of " + file_->path() + " cannot be mapped");
    b.bytes = bytes;
    return {};
  }
  void release(const Buffer& b) {
    if (b.memory) file_->kernel().unmap(b.memory, b.bytes);
    if (!b.handle) return;
    MemDestroy destroy;
    destroy.handle = b.handle;
    destroy.obj_addr = b.object;
    (void)file_->control(kMemDestroy, destroy);
  }
  Status sync(const Buffer& b, uint32_t direction) {
    MemSync sync;
    sync.flags = direction;
    sync.obj_addr = b.object;
    sync.bytes = b.bytes;
    const int code = file_->control(kMemSync, sync);
    return code == 0 ? Status() : kernel_error("MEM_SYNC", file_->path(), code);
  }

  Status write_task_list(std::span<const UnitTask> tasks) {
    const uint64_t bytes = tasks.size() * sizeof(Task);
    if (task_list_.bytes < bytes) {
      release(task_list_);
      task_list_ = {};
      ORKNN_TRY(create(task_list_, bytes, kMemNonContiguous | kMemCacheable | kMemKernelMapping));
    }
    for (size_t i = 0; i < tasks.size(); ++i) {
      Task t;
      t.op_idx = static_cast<uint32_t>(i);
      t.enable_mask = tasks[i].enable;
      t.int_mask = tasks[i].enable == kEnablePooling ? kPpuInterrupts : kDpuInterrupts;
      t.int_clear = kAllInterrupts;
      t.regcfg_amount = tasks[i].words - static_cast<uint32_t>(kTailWords);
      t.regcmd_addr = tasks[i].address;
      std::memcpy(task_list_.memory + i * sizeof t, &t, sizeof t);
    }
    return sync(task_list_, kSyncToDevice);
  }

  // How many tasks from the first on belong to the same layer: bands of one do not read each other's results.
  static size_t independent_tasks(std::span<const UnitTask> tasks) {
    size_t n = 1;
    while (n < tasks.size() && tasks[n].layer == tasks[0].layer) ++n;
    return n;
  }

  Status submit(size_t first, size_t count, const UnitRun& run) {
    Submit s;
    s.flags = kJobPc | kJobPingPong;
    s.timeout_ms = timeout_ms(run);
    s.task_start = static_cast<uint32_t>(first);
    s.task_number = static_cast<uint32_t>(count);
    s.task_obj_addr = task_list_.object;
    const uint32_t wanted = run.core_mask & kAllCores;
    s.core_mask = wanted;
    const CoreRange all{s.task_start, s.task_number};
    if (count == 1) {
      // One core: the first of the mask, or the one that the kernel picks and whose entry it reads.
      if (wanted) s.core_mask = wanted & ~(wanted - 1);
      for (size_t core = 0; core < 3; ++core)
        if (!wanted || s.core_mask >> core & 1) s.cores[core] = all;
    } else {
      spread(first, count, wanted, s);
    }
    const int code = file_->control(kSubmit, s);
    if (code == -ETIMEDOUT)
      return kernel_error("SUBMIT", file_->path(), code).hint("the NPU hung and was reset; the next run may work");
    if (code != 0) return kernel_error("SUBMIT", file_->path(), code);
    if (s.task_counter < count)
      return Status::error(Code::Fail, "the NPU ended a job before its tasks")
          .expected(std::to_string(count) + " tasks")
          .found(std::to_string(s.task_counter));
    return {};
  }
  // One task for each of several cores. Three cores have entries of their own.
  static void spread(size_t first, size_t count, uint32_t wanted, Submit& s) {
    s.core_mask = 0;
    size_t given = 0;
    for (uint32_t core = 0; core < 3 && given < count; ++core) {
      if (!(wanted >> core & 1)) continue;
      s.core_mask |= 1u << core;
      s.cores[count == 3 ? core + 2 : core] = {static_cast<uint32_t>(first + given), 1};
      ++given;
    }
  }
  static uint32_t timeout_ms(const UnitRun& run) {
    if (!run.deadline) return kTimeoutMs;
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(*run.deadline - std::chrono::steady_clock::now()).count();
    return static_cast<uint32_t>(std::clamp<int64_t>(left, 1, kTimeoutMs));
  }
  // A number that the driver states about itself; nothing where it does not.
  std::string stated(uint32_t what, const char* name) const {
    Action action;
    action.flags = what;
    return file_->control(kAction, action) == 0 ? std::string(", ") + name + " " + std::to_string(action.value) : std::string();
  }
  // After a hang the next job may fail too.
  void reset() {
    Action action;
    action.flags = kReset;
    (void)file_->control(kAction, action);
  }

  std::unique_ptr<DeviceFile> file_;
  std::array<Buffer, kBufferUses> buffers_;
  Buffer task_list_;
};
}  // namespace

std::unique_ptr<Unit> make_rknpu_unit(std::unique_ptr<DeviceFile> file) { return std::make_unique<RknpuUnit>(std::move(file)); }

}  // namespace orknn::silicon
