// For tests: a kernel in this process that has one of the two drivers. It executes jobs with the chip model and keeps a copy of
// every buffer for the device, so that a call for the caches that is missing shows in the results.
#pragma once

#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "silicon/chip_model.h"
#include "silicon/drivers/abi.h"
#include "silicon/drivers/kernel.h"

namespace orknn::silicon {

class StandInKernel final : public Kernel {
 public:
  enum class Driver { Rocket, Rknpu, Other };
  StandInKernel(Driver driver, const std::string& chip)
      : device_tree(std::string("maker,board") + '\0' + "rockchip," + chip + '\0'), driver_(driver) {
    if (driver == Driver::Rocket)
      calls_ = {{abi::rocket::kCreateBo, bind(&StandInKernel::create_bo)},
                {abi::rocket::kPrepBo, bind(&StandInKernel::prep_bo)},
                {abi::rocket::kFiniBo, bind(&StandInKernel::fini_bo)},
                {abi::rocket::kSubmit, bind(&StandInKernel::submit_job)}};
    if (driver == Driver::Rknpu)
      calls_ = {
          {abi::rknpu::kAction, bind(&StandInKernel::action)},    {abi::rknpu::kMemCreate, bind(&StandInKernel::mem_create)},
          {abi::rknpu::kMemMap, bind(&StandInKernel::mem_map)},   {abi::rknpu::kMemDestroy, bind(&StandInKernel::mem_destroy)},
          {abi::rknpu::kMemSync, bind(&StandInKernel::mem_sync)}, {abi::rknpu::kSubmit, bind(&StandInKernel::submit_tasks)}};
    calls_[abi::kDrmVersion] = bind(&StandInKernel::version);
  }

  // What goes wrong from now on.
  struct Faults {
    int open_error = 0, create_error = 0;
    bool maps_nothing = false, high_addresses = false, wait_times_out = false;
    int hangs_at_task = -1;  // counted from now on
  } faults;
  // What happened.
  std::vector<std::string> complaints;  // a real kernel or unit would fail or misbehave here
  size_t jobs = 0, tasks_run = 0, resets = 0, open_files = 0;
  std::set<uint32_t> core_masks;
  std::string device_tree;
  size_t live_buffers() const { return buffers_.size(); }

  std::vector<std::string> list(const std::string& folder) override {
    if (driver_ == Driver::Rocket && folder == "/dev/accel") return {"accel0"};
    if (driver_ != Driver::Rocket && folder == "/dev/dri") return {"by-path", "card0", "renderD128"};
    return {};
  }
  std::string read(const std::string& path) override { return path == "/proc/device-tree/compatible" ? device_tree : ""; }
  int open(const std::string&) override {
    if (faults.open_error) return -faults.open_error;
    ++open_files;
    return 3;
  }
  void close(int) override {
    --open_files;
    if (driver_ == Driver::Rocket) buffers_.clear();
  }
  int control(int, unsigned long request, void* argument) override {
    const auto call = calls_.find(request);
    if (call == calls_.end()) return -ENOTTY;
    return call->second(argument);
  }
  int64_t monotonic_ns() override { return 1'000'000'000; }
  std::byte* map(int, uint64_t offset, uint64_t bytes) override {
    Buffer* b = find(static_cast<uint32_t>(offset >> 32));
    if (faults.maps_nothing || !b || b->cpu.size() < bytes) return nullptr;
    return b->cpu.data();
  }
  void unmap(std::byte*, uint64_t) override {}

 private:
  struct Buffer {
    uint32_t address = 0, flags = 0;
    bool given = false;  // to the device
    std::vector<std::byte> cpu, device;
  };
  using Call = std::function<int(void*)>;
  template <class T>
  Call bind(int (StandInKernel::*call)(T&)) {
    return [this, call](void* argument) { return (this->*call)(*static_cast<T*>(argument)); };
  }

  int complain(std::string what, int code = -EINVAL) {
    complaints.push_back(std::move(what));
    return code;
  }
  Buffer* find(uint32_t handle) {
    const auto at = buffers_.find(handle);
    return at == buffers_.end() ? nullptr : &at->second;
  }
  int version(abi::DrmVersion& v) {
    const std::string name = driver_ == Driver::Rocket ? "rocket" : driver_ == Driver::Rknpu ? "rknpu" : "panthor";
    const auto state = [](const std::string& text, char* to, size_t& bytes) {
      if (to) std::memcpy(to, text.data(), std::min(text.size(), bytes));
      bytes = text.size();
    };
    state(name, v.name, v.name_bytes);
    state("20250101", v.date, v.date_bytes);
    state("a driver of this process", v.description, v.description_bytes);
    v.minor = 9;
    v.patch = 8;
    return 0;
  }
  int create(uint64_t bytes, uint32_t& handle, uint64_t& address) {
    if (faults.create_error) return -faults.create_error;
    if (bytes == 0) return complain("a buffer without bytes");
    handle = next_handle_++;
    address = next_address_ + (faults.high_addresses ? uint64_t{1} << 32 : 0);
    const uint64_t pages = (bytes + 4095) / 4096 * 4096;
    next_address_ += pages + 4096;
    Buffer& b = buffers_[handle];
    b.address = static_cast<uint32_t>(address);
    b.cpu.assign(pages, std::byte{0x77});
    b.device.assign(pages, std::byte{0x55});  // what the CPU wrote is not there before it is told so
    return 0;
  }

  // The stream at an address of the device, executed. An empty text when it went well.
  std::string execute(uint32_t address, uint64_t words, const DecodedTask* before, const DeviceMemory& memory,
                      std::optional<DecodedTask>& task) {
    if (address % 64 != 0) return "a stream at an address that is not a multiple of 64";
    const auto bytes = memory.at(address, words * 8, "a stream");
    if (!bytes) return bytes.status().to_string();
    std::vector<uint64_t> stream(words);
    std::memcpy(stream.data(), *bytes, words * 8);
    auto checked = check_task(stream, before, memory);
    if (!checked) return checked.status().to_string();
    const Status ran = run_task(*checked, memory, ThreadPool::shared());
    task = std::move(*checked);
    return ran ? "" : ran.to_string();
  }
  bool hangs() { return faults.hangs_at_task >= 0 && faults.hangs_at_task-- == 0; }

  // --- rocket
  // ---------------------------------------------------------------------------------------------------------------------

  int create_bo(abi::rocket::CreateBo& c) {
    const int code = create(c.bytes, c.handle, c.dma_address);
    c.offset = uint64_t{c.handle} << 32;
    return code;
  }
  int prep_bo(abi::rocket::PrepBo& p) {
    Buffer* b = find(p.handle);
    if (!b) return -ENOENT;
    if (p.reserved != 0) return complain("PREP_BO: reserved is not zero");
    if (p.timeout_ns <= monotonic_ns()) return complain("PREP_BO: the time is over before the wait", -ETIMEDOUT);
    if (faults.wait_times_out) return -ETIMEDOUT;
    if (b->given) b->cpu = b->device;
    b->given = false;
    return 0;
  }
  int fini_bo(abi::rocket::FiniBo& f) {
    Buffer* b = find(f.handle);
    if (!b) return -ENOENT;
    if (f.reserved != 0) return complain("FINI_BO: reserved is not zero");
    b->device = b->cpu;
    b->given = true;
    return 0;
  }
  int submit_job(abi::rocket::Submit& s) {
    using abi::rocket::Job;
    if (s.reserved != 0 || s.job_bytes != sizeof(Job) || s.job_count == 0) return complain("SUBMIT: sizes");
    for (uint32_t i = 0; i < s.job_count; ++i)
      if (const int code = run_job(reinterpret_cast<const Job*>(s.jobs)[i]); code != 0) return code;
    return 0;
  }
  int run_job(const abi::rocket::Job& job) {
    ++jobs;
    if (job.task_bytes != sizeof(abi::rocket::Task) || job.task_count == 0) return complain("SUBMIT: tasks");
    DeviceMemory memory;
    std::set<uint32_t> seen;
    const auto add = [&](uint64_t handles, uint32_t count, DeviceMemory::Access access) {
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t handle = reinterpret_cast<const uint32_t*>(handles)[i];
        Buffer* b = find(handle);
        if (!b) return -ENOENT;
        // The job ends without running and nobody is told.
        if (!seen.insert(handle).second) return complain("a buffer is listed twice", 1);
        if (!b->given) complain("a job uses a buffer that belongs to the CPU");
        if (!memory.map("buffer", b->address, b->device, access)) return complain("buffers overlap");
      }
      return 0;
    };
    int code = add(job.in_handles, job.in_count, DeviceMemory::Access::ReadOnly);
    if (code == 0) code = add(job.out_handles, job.out_count, DeviceMemory::Access::ReadWrite);
    if (code != 0) return code > 0 ? 0 : code;
    std::optional<DecodedTask> before;
    for (uint32_t i = 0; i < job.task_count; ++i) {
      const auto& t = reinterpret_cast<const abi::rocket::Task*>(job.tasks)[i];
      if (hangs()) return 0;  // the watchdog ends the job; nobody is told
      std::optional<DecodedTask> task;
      const std::string problem = execute(t.regcmd, t.words, before ? &*before : nullptr, memory, task);
      if (!problem.empty()) complain("task " + std::to_string(i) + ": " + problem);
      if (!task) return 0;
      if (task->enable == kEnablePooling) {
        complain("a pooling task never ends");
        return 0;
      }
      before = std::move(task);
      ++tasks_run;
    }
    return 0;
  }

  // --- rknpu
  // ----------------------------------------------------------------------------------------------------------------------

  int action(abi::rknpu::Action& a) {
    if (a.flags == abi::rknpu::kHardwareVersion || a.flags == abi::rknpu::kDriverVersion) {
      a.value = a.flags == abi::rknpu::kHardwareVersion ? 0x4649 : 908;
      return 0;
    }
    if (a.flags != abi::rknpu::kReset) return -EINVAL;
    ++resets;
    hung_ = false;
    return 0;
  }
  int mem_create(abi::rknpu::MemCreate& m) {
    const int code = create(m.bytes, m.handle, m.dma_addr);
    if (code != 0) return code;
    m.obj_addr = kObjects + m.handle;
    buffers_[m.handle].flags = m.flags;
    return 0;
  }
  int mem_map(abi::rknpu::MemMap& m) {
    m.offset = uint64_t{m.handle} << 32;
    return find(m.handle) && m.reserved == 0 ? 0 : -EINVAL;
  }
  int mem_destroy(abi::rknpu::MemDestroy& m) {
    if (m.obj_addr != kObjects + m.handle || buffers_.erase(m.handle) == 0) return complain("MEM_DESTROY of no buffer");
    return 0;
  }
  int mem_sync(abi::rknpu::MemSync& m) {
    Buffer* b = find(static_cast<uint32_t>(m.obj_addr - kObjects));
    if (!b || m.reserved != 0 || m.offset > b->cpu.size() || m.bytes > b->cpu.size() - m.offset)
      return complain("MEM_SYNC outside of a buffer");
    const auto offset = static_cast<ptrdiff_t>(m.offset), bytes = static_cast<ptrdiff_t>(m.bytes);
    if (m.flags == abi::rknpu::kSyncToDevice)
      std::copy_n(b->cpu.begin() + offset, bytes, b->device.begin() + offset);
    else if (m.flags == abi::rknpu::kSyncFromDevice)
      std::copy_n(b->device.begin() + offset, bytes, b->cpu.begin() + offset);
    else
      return complain("MEM_SYNC without a direction");
    return 0;
  }
  int submit_tasks(abi::rknpu::Submit& s) {
    ++jobs;
    core_masks.insert(s.core_mask);
    Buffer* list = find(static_cast<uint32_t>(s.task_obj_addr - kObjects));
    if (!list || !(list->flags & abi::rknpu::kMemKernelMapping)) return complain("SUBMIT without a list of tasks");
    if (!(s.flags & abi::rknpu::kJobPc) || s.task_number == 0 || s.timeout_ms == 0 || s.fence_fd != -1 || s.core_mask > 7)
      return complain("SUBMIT: fields");
    if (hung_) return -EIO;
    const int cores = std::popcount(s.core_mask);
    uint32_t given = 0;
    for (uint32_t core = 0; core < 3; ++core) {
      // Without a mask the kernel picks a core: here the second.
      if (s.core_mask ? !(s.core_mask >> core & 1) : core != 1) continue;
      const abi::rknpu::CoreRange& range = s.cores[cores == 3 ? core + 2 : core];
      if (range.task_number > 1) complain("integer tasks share a kick");
      given += range.task_number;
      for (uint32_t i = range.task_start; i < range.task_start + range.task_number; ++i) {
        if (hangs()) {
          hung_ = true;
          return -ETIMEDOUT;
        }
        if (const int code = run_listed(*list, i); code != 0) return code;
        ++s.task_counter;
      }
    }
    if (given != s.task_number) complain("the cores' tasks are not those of the job");
    return 0;
  }
  int run_listed(const Buffer& list, uint32_t index) {
    abi::rknpu::Task t;
    if ((index + uint64_t{1}) * sizeof t > list.device.size()) return complain("a task outside of the list");
    std::memcpy(&t, list.device.data() + index * sizeof t, sizeof t);
    DeviceMemory memory;
    for (auto& [handle, b] : buffers_)
      if (!memory.map("buffer", b.address, b.device)) return complain("buffers overlap");
    std::optional<DecodedTask> task;
    const std::string problem =
        execute(static_cast<uint32_t>(t.regcmd_addr), t.regcfg_amount + kTailWords, nullptr, memory, task);
    if (!problem.empty()) return complain("task " + std::to_string(index) + ": " + problem, -EIO);
    const uint32_t interrupts = task->enable == kEnablePooling ? abi::rknpu::kPpuInterrupts : abi::rknpu::kDpuInterrupts;
    if (t.enable_mask != task->enable || t.int_mask != interrupts || t.int_clear != abi::rknpu::kAllInterrupts)
      return complain("a task's masks", -ETIMEDOUT);
    ++tasks_run;
    return 0;
  }

  static constexpr uint64_t kObjects = 0xffff'8000'0000'0000;
  Driver driver_;
  std::map<unsigned long, Call> calls_;
  std::map<uint32_t, Buffer> buffers_;
  uint32_t next_handle_ = 1;
  uint64_t next_address_ = 0x7000'0000;
  bool hung_ = false;
};

}  // namespace orknn::silicon
