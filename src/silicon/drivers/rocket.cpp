#include "silicon/drivers/rocket.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "silicon/drivers/abi.h"

namespace orknn::silicon {
namespace {
using namespace abi::rocket;

// The kernel resets a core whose task takes longer than this, and ends the job.
constexpr int64_t kWatchdogNs = 500'000'000;
constexpr int64_t kMarginNs = 2'000'000'000;

class RocketUnit final : public Unit {
 public:
  explicit RocketUnit(std::unique_ptr<DeviceFile> file) : file_(std::move(file)) {}
  ~RocketUnit() override {
    // Closing the file frees the buffers.
    for (const Buffer& b : buffers_)
      if (b.memory) file_->kernel().unmap(b.memory, b.bytes);
  }

  std::string name() const override { return "rocket (" + file_->path() + ")"; }
  std::string driver() const override { return file_->driver_line(); }
  bool is_board() const override { return true; }
  bool waits_for_pooling() const override { return false; }
  bool keeps_buffer_between_tasks() const override { return true; }

  Result<UnitBuffer> allocate(BufferUse use, uint64_t bytes) override {
    if (bytes > UINT32_MAX) return Status::error(Code::OutOfMemory, "a buffer is larger than 4 GiB");
    CreateBo create;
    create.bytes = static_cast<uint32_t>(bytes);
    if (const int code = file_->control(kCreateBo, create); code != 0) return kernel_error("CREATE_BO", file_->path(), code);
    Buffer& b = buffers_[static_cast<size_t>(use)];
    b.handle = create.handle;
    if (create.dma_address > UINT32_MAX || bytes > (uint64_t{1} << 32) - create.dma_address)
      return unsupported("the kernel gave a buffer above 4 GiB, where registers do not reach")
          .found(std::to_string(create.dma_address));
    b.memory = file_->map(create.offset, bytes);
    if (!b.memory) return Status::error(Code::OutOfMemory, "a buffer of " + file_->path() + " cannot be mapped");
    b.bytes = bytes;
    // A new buffer may still belong to the device as far as its caches are concerned.
    ORKNN_TRY(wait_for(b, kMarginNs));
    return UnitBuffer{static_cast<uint32_t>(create.dma_address), {b.memory, bytes}};
  }

  Status give(BufferUse use) override {
    FiniBo fini;
    fini.handle = buffer(use).handle;
    const int code = file_->control(kFiniBo, fini);
    return code == 0 ? Status() : kernel_error("FINI_BO", file_->path(), code);
  }
  Status take(BufferUse use) override { return wait_for(buffer(use), kMarginNs); }

  Status run(std::span<const UnitTask> tasks, const UnitRun& run) override {
    std::vector<Task> list;
    for (const UnitTask& t : tasks) list.push_back({t.address, t.words});
    // A handle in both lists, or twice in one, makes a job end without running: what is written is in the second only.
    const std::array in{buffer(BufferUse::Commands).handle, buffer(BufferUse::Operands).handle};
    const std::array out{buffer(BufferUse::Features).handle};
    Job job;
    job.tasks = reinterpret_cast<uint64_t>(list.data());
    job.task_count = static_cast<uint32_t>(list.size());
    job.task_bytes = sizeof(Task);
    job.in_handles = reinterpret_cast<uint64_t>(in.data());
    job.in_count = in.size();
    job.out_handles = reinterpret_cast<uint64_t>(out.data());
    job.out_count = out.size();
    Submit submit;
    submit.jobs = reinterpret_cast<uint64_t>(&job);
    submit.job_count = 1;
    submit.job_bytes = sizeof(Job);
    if (const int code = file_->control(kSubmit, submit); code != 0) return kernel_error("SUBMIT", file_->path(), code);
    int64_t limit = kMarginNs + kWatchdogNs * static_cast<int64_t>(tasks.size());
    if (run.deadline)
      limit = std::clamp<int64_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(*run.deadline - std::chrono::steady_clock::now()).count(), 0,
          limit);
    return wait_for(buffer(BufferUse::Features), limit);
  }

 private:
  struct Buffer {
    uint32_t handle = 0;
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
  };
  const Buffer& buffer(BufferUse use) const { return buffers_[static_cast<size_t>(use)]; }

  // Until no job uses the buffer; it belongs to the CPU then.
  Status wait_for(const Buffer& b, int64_t limit_ns) {
    PrepBo prep;
    prep.handle = b.handle;
    prep.timeout_ns = file_->kernel().monotonic_ns() + limit_ns;
    const int code = file_->control(kPrepBo, prep);
    if (code == 0) return {};
    Status s = kernel_error("PREP_BO", file_->path(), code);
    if (code == -ETIMEDOUT || code == -EBUSY) s.hint("the NPU hangs; the kernel resets a core after half a second");
    return s;
  }

  std::unique_ptr<DeviceFile> file_;
  std::array<Buffer, kBufferUses> buffers_;
};
}  // namespace

std::unique_ptr<Unit> make_rocket_unit(std::unique_ptr<DeviceFile> file) { return std::make_unique<RocketUnit>(std::move(file)); }

}  // namespace orknn::silicon
