// Runs, in the foreground and in the background, and the cores they use.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/context_call.h"
#include "runtime/cores.h"
#include "runtime/min_timeout.h"
#include "runtime/trace.h"

namespace orknn::runtime {
namespace {
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

Deadline deadline_of(int32_t timeout_ms) {
  const int64_t wait = effective_timeout_ms(timeout_ms);
  if (wait <= 0) return std::nullopt;
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(wait);
}

bool has_passed(const Deadline& deadline) { return deadline && std::chrono::steady_clock::now() >= *deadline; }

// What one run needs to know, in whichever thread it goes on.
struct RunOrder {
  Deadline deadline;
  int fence_in = -1;   // waited for before the run; the caller's
  int fence_out = -1;  // signalled and closed after the run; ours
};

enum class FenceWait { Signalled, TimeLimit, ContextEnds };

// A fence may never be signalled: `is_ending` is looked at several times a second.
FenceWait await_fence(int fd, const Deadline& deadline, const std::atomic<bool>& is_ending) {
  constexpr int64_t kPeriodMs = 50;
  for (;;) {
    int64_t timeout = kPeriodMs;
    if (deadline)
      timeout = std::clamp<int64_t>(
          std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now()).count(), 0, kPeriodMs);
    pollfd waited{fd, POLLIN, 0};
    if (::poll(&waited, 1, static_cast<int>(timeout)) > 0) return FenceWait::Signalled;
    if (has_passed(deadline)) return FenceWait::TimeLimit;
    if (is_ending) return FenceWait::ContextEnds;
  }
}

void signal_fence(int fd) {
  if (fd < 0) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof one);
  ::close(fd);
}

// Cores of a run: those of the mask, or as many as a batch may use.
uint32_t wanted_cores(const Context& c) {
  const auto all = (1u << std::max(c.chip->cores, 1)) - 1;
  if (c.core_mask) return c.core_mask & all;
  return c.batch_cores > 1 ? (1u << std::min(c.batch_cores, c.chip->cores)) - 1 : 0;
}

void check_memory(const Context& c) {
  constexpr const char* kName = "rknn_run";
  for (size_t i = 0; i < c.bound.inputs.size(); ++i)
    if (const std::shared_ptr<Memory>& m = c.bound.inputs[i].keeper) {
      if (was_released(&m->mem)) check_not_destroyed(kName, &m->mem);
      check_bounds(kName, *m);
      if (c.flags & RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE) check_input_sync(kName, *m, c.session->inputs()[i].name);
    }
  for (size_t i = 0; i < c.bound.outputs.size(); ++i)
    if (const std::shared_ptr<Memory>& m = c.bound.outputs[i].keeper) {
      if (was_released(&m->mem)) check_not_destroyed(kName, &m->mem);
      if (c.flags & RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE) check_output_sync(kName, *m, c.session->outputs()[i].name);
    }
}

void sync_bound(const std::vector<Payload>& memories, uint32_t mode) {
  for (const Payload& p : memories)
    if (p.keeper && p.keeper->block) p.keeper->block->sync(mode);
}

// Records every layer on the rows of the cores.
void trace_layers(const Context& c, uint32_t cores, sim::RunHooks& hooks) {
  hooks.timing = [&c, cores](size_t index, std::chrono::nanoseconds duration) {
    const format::Program& p = c.session->program();
    const auto end = std::chrono::steady_clock::now();
    trace_work(p.graph.node(p.tasks[index].node).name, cores, c.handle, end - duration, end);
  };
}

int compute(Context& c, const RunOrder& order) {
  constexpr const char* kName = "rknn_run";
  if (order.fence_in >= 0) {
    const FenceWait end = await_fence(order.fence_in, order.deadline, c.is_ending);
    if (end == FenceWait::TimeLimit) return fail(RKNN_ERR_TIMEOUT, kName, "the fence was not signalled in time");
    if (end == FenceWait::ContextEnds)
      return fail(RKNN_ERR_FAIL, kName, "the context was destroyed while the run waited for its fence");
  }
  const bool is_elsewhere = c.session->device() != nullptr;  // where the cores are handed out
  const std::optional<CoreLease> lease =
      is_elsewhere ? std::nullopt : CoreLease::take(*c.chip, {wanted_cores(c), c.priority(), order.deadline});
  if (!is_elsewhere && !lease) return fail(RKNN_ERR_TIMEOUT, kName, "no core became free in time");
  const uint32_t cores = lease ? lease->mask() : wanted_cores(c);
  if (!(c.flags & RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE)) sync_bound(c.bound.inputs, RKNN_MEMORY_SYNC_TO_DEVICE);
  sim::RunHooks hooks;
  hooks.pool = c.pool ? c.pool.get() : lease ? &lease->pool() : nullptr;
  hooks.deadline = order.deadline;
  const bool traced = is_tracing();
  if (traced) trace_layers(c, cores, hooks);
  const auto begin = std::chrono::steady_clock::now();
  const Status s = run_with_report(*c.session, report_of(c), hooks);
  if (traced) trace_work("run " + std::to_string(c.frame), cores, c.handle, begin, std::chrono::steady_clock::now());
  if (!s) {
    if (has_passed(order.deadline)) return fail(RKNN_ERR_TIMEOUT, kName, s.to_string());
    return fail(s.code() == Code::OutOfMemory ? RKNN_ERR_MALLOC_FAIL : RKNN_ERR_FAIL, kName, s.to_string());
  }
  if (!(c.flags & RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE)) sync_bound(c.bound.outputs, RKNN_MEMORY_SYNC_FROM_DEVICE);
  return RKNN_SUCC;
}

// A missing piece of memory that the caller has to supply.
std::string missing_memory(const Context& c) {
  if (c.takes_all_memory() && !c.bound.weights.data) return "weight memory is missing, call rknn_set_weight_mem first";
  if (c.takes_internal_memory() && !c.bound.internal.data && c.session->memory().internal_bytes > 0)
    return "internal memory is missing, call rknn_set_internal_mem first";
  if (!c.takes_all_memory()) return {};
  for (const auto* ports : {&c.bound.inputs, &c.bound.outputs})
    for (size_t i = 0; i < ports->size(); ++i)
      if (!(*ports)[i].data) {
        const bool is_input = ports == &c.bound.inputs;
        return std::string(is_input ? "input" : "output") + " '" +
               (is_input ? c.session->inputs() : c.session->outputs())[i].name + "' has no memory, call rknn_set_io_mem first";
      }
  return {};
}

bool has_bound_output(const Context& c) {
  return std::any_of(c.bound.outputs.begin(), c.bound.outputs.end(), [](const Payload& p) { return p.data != nullptr; });
}

// Keeps the results of the last run while the next one computes.
void keep_results(Context& c) {
  if (!c.session->has_run()) return;
  c.previous.results.clear();
  for (size_t i = 0; i < c.session->outputs().size(); ++i) {
    const ir::TensorView v = c.session->output_value(i);
    c.previous.results.push_back(ir::convert(v, v.dtype));
  }
  c.previous.number = c.frame;
}

void set_text(std::string& to, const std::string& text) noexcept {
  try {
    to = text;
  } catch (const std::bad_alloc&) {  // where there is no memory for the text, there is none
    to.clear();
  }
}

void run_in_background(Context& c, const RunOrder& order) {
  if (!c.background) c.background = std::make_unique<BackgroundRun>();
  c.background->start([&c, order]() noexcept {
    const WorkForContext work(c, "rknn_run");
    c.run_code = c_call("rknn_run", [&] { return compute(c, order); });
    set_text(c.run_error, last_error());
    c.is_run_error_new = c.run_code != RKNN_SUCC;
    signal_fence(order.fence_out);
  });
}

// A descriptor that becomes readable when the run is done: one end for the caller, one for us.
bool make_fence(RunOrder& order, rknn_run_extend& extend) {
  const int ours = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int theirs = ours < 0 ? -1 : ::fcntl(ours, F_DUPFD_CLOEXEC, 3);
  if (theirs < 0) {
    if (ours >= 0) ::close(ours);
    return false;
  }
  order.fence_out = ours;
  extend.fence_fd = theirs;
  return true;
}

int run(Context& c, rknn_run_extend* extend) {
  constexpr const char* kName = "rknn_run";
  if (c.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information does not run");
  if (!c.has_shapes) return refuse_without_shapes(kName);
  if (const std::string missing = missing_memory(c); !missing.empty()) return fail(RKNN_ERR_FAIL, kName, missing);
  RunOrder order;
  if (extend) {
    order.deadline = deadline_of(extend->timeout_ms);
    if (c.flags & RKNN_FLAG_FENCE_IN_OUTSIDE) {
      if (extend->fence_fd < 0 || ::fcntl(extend->fence_fd, F_GETFD) < 0)
        return fail(RKNN_ERR_PARAM_INVALID, kName, "RKNN_FLAG_FENCE_IN_OUTSIDE needs extend->fence_fd, an open descriptor");
      order.fence_in = extend->fence_fd;
    }
    if ((c.flags & RKNN_FLAG_FENCE_OUT_OUTSIDE) && !make_fence(order, *extend))
      return fail(RKNN_ERR_FAIL, kName, "no descriptor for the fence");
  } else if (c.flags & RKNN_FLAG_FENCE_IN_OUTSIDE) {
    return fail(RKNN_ERR_PARAM_INVALID, kName, "RKNN_FLAG_FENCE_IN_OUTSIDE needs extend->fence_fd, an open descriptor");
  }
  if (is_checking()) check_memory(c);
  const bool async = c.is_async() && !has_bound_output(c);
  if (async) keep_results(c);
  ++c.frame;
  if (extend) extend->frame_id = c.frame;
  if (async || (extend && extend->non_block)) {
    run_in_background(c, order);
    return RKNN_SUCC;
  }
  c.run_code = compute(c, order);
  if (c.run_code != RKNN_SUCC) set_text(c.run_error, last_error());
  signal_fence(order.fence_out);
  return c.run_code;
}

int wait(Context& c, rknn_run_extend* extend) {
  const Deadline deadline = extend ? deadline_of(extend->timeout_ms) : std::nullopt;
  if (!c.finish_pending_run(deadline))
    return fail(RKNN_ERR_TIMEOUT, "rknn_wait", "the run is still going on after " + std::to_string(extend->timeout_ms) + " ms");
  if (extend) extend->frame_id = c.frame;
  if (c.background && c.run_code != RKNN_SUCC) set_last_error(c.run_error);
  return c.background ? c.run_code : RKNN_SUCC;
}

int set_core_mask(Context& c, uint32_t mask) {
  constexpr const char* kName = "rknn_set_core_mask";
  if (c.chip->cores < 2)
    return fail(RKNN_ERR_TARGET_PLATFORM_UNMATCH, kName,
                "cores cannot be chosen on " + std::string(c.chip->name) + ", which has one");
  const Result<int> cores = platform::cores_of_mask(*c.chip, mask);
  if (!cores) return fail(RKNN_ERR_PARAM_INVALID, kName, cores.status().to_string());
  c.core_mask = mask;
  c.cores = *cores;
  c.session->choose_device_cores(mask, static_cast<uint32_t>(c.priority()));
  return RKNN_SUCC;
}

int set_batch_core_num(Context& c, int cores) {
  constexpr const char* kName = "rknn_set_batch_core_num";
  if (c.chip->cores < 2)
    return fail(RKNN_ERR_TARGET_PLATFORM_UNMATCH, kName,
                "cores cannot be chosen on " + std::string(c.chip->name) + ", which has one");
  if (cores < 1 || cores > c.chip->cores)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                "core_num is " + std::to_string(cores) + ", expected 1 to " + std::to_string(c.chip->cores));
  const std::vector<PortInfo>& inputs = c.session->inputs();
  const bool has_batch =
      std::any_of(inputs.begin(), inputs.end(), [](const PortInfo& p) { return !p.dims.empty() && p.dims[0] > 1; });
  if (has_batch) c.batch_cores = cores;
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_run(rknn_context context, rknn_run_extend* extend) {
  return with_context("rknn_run", context, [&](Context& c) { return run(c, extend); });
}

int rknn_wait(rknn_context context, rknn_run_extend* extend) {
  return with_context(
      "rknn_wait", context, [&](Context& c) { return wait(c, extend); }, Pending::Leave);
}

int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask) {
  return with_context("rknn_set_core_mask", context, [&](Context& c) { return set_core_mask(c, number(core_mask)); });
}

int rknn_set_batch_core_num(rknn_context context, int core_num) {
  return with_context("rknn_set_batch_core_num", context, [&](Context& c) { return set_batch_core_num(c, core_num); });
}
