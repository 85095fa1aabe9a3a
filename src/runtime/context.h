// What a rknn_context refers to: a session, the memory bound to it, runs in the background and the buffers handed out.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "platform/platforms.h"
#include "runtime/background_run.h"
#include "runtime/handles.h"
#include "runtime/memory.h"
#include "runtime/session.h"
#include "runtime/sram.h"

namespace orknn::runtime {

// Memory the caller bound, kept alive as long as it is ours.
struct BoundMemory {
  std::vector<Payload> inputs, outputs;  // by port; no data = not bound
  Payload weights, internal;
};

// Results that outlive the run that follows them.
struct Frame {
  uint64_t number = 0;  // 0 = none
  std::vector<ir::TensorData> results;
};

struct Context : HandleObject {
  std::shared_ptr<ThreadPool> pool;  // what the session computes with, when it is not the shared one
  std::unique_ptr<Session> session;
  uint32_t flags = 0;
  const platform::Platform* chip = nullptr;  // that is simulated
  bool is_chip_chosen = false;               // by orknn_set_platform: what that chip lacks is refused
  bool has_shapes = true;                    // false: a model of several shape sets of which none was chosen yet
  uint32_t core_mask = 0;                    // chosen by rknn_set_core_mask
  int cores = 1;                             // that the mask names
  int batch_cores = 0;                       // chosen by rknn_set_batch_core_num; 0 = not
  uint64_t sram_bytes = 0;                   // of the chip, that this context may use
  SramShare sram;                            // of these, what others cannot use meanwhile
  uint64_t frame = 0;                        // number of the last run
  rknn_context handle = 0;
  rknn_tensor_mem model_memory{};            // the buffer the model lies in
  std::shared_ptr<const void> model_keeper;  // what keeps it
  std::shared_ptr<Context> donor;            // whose weights this one uses
  BoundMemory bound;
  Frame previous;  // of an asynchronous context: the results before the current ones
  std::unordered_map<void*, std::unique_ptr<std::byte[]>> buffers;  // made by rknn_outputs_get and not yet released
  std::string report;                                               // text of RKNN_QUERY_PERF_DETAIL
  std::string error;                                                // of the last call that failed
  int run_code = 0;  // of the last run; the background writes it, and the two below
  std::string run_error;
  bool is_run_error_new = false;
  std::atomic<bool> is_ending = false;              // rknn_destroy waits: what may never come is not waited for any more
  std::unique_ptr<BackgroundRun> background;        // last: it uses all of the above
  std::atomic<const char*> current_call = nullptr;  // for reports about calls that meet

  ~Context() override;
  bool is_dry() const { return flags & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY; }
  bool is_async() const { return flags & RKNN_FLAG_ASYNC_MASK; }
  bool takes_all_memory() const { return flags & RKNN_FLAG_MEM_ALLOC_OUTSIDE; }
  bool takes_internal_memory() const { return flags & (RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE); }
  int priority() const { return static_cast<int>(flags & (RKNN_FLAG_PRIOR_MEDIUM | RKNN_FLAG_PRIOR_LOW)); }
  // False when the run in the background is still going on at the deadline. A run that failed is then the context's last error.
  bool finish_pending_run(std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);
  void forget_bindings();
};

// While it lives, the calling thread works for the context inside of `function`, whether it holds the context's lock or not (a
// run in the background does not). What calls the context meanwhile in the same thread is a callback of a custom operator.
class WorkForContext {
 public:
  WorkForContext(const Context& context, const char* function);
  ~WorkForContext();
  WorkForContext(const WorkForContext&) = delete;
  WorkForContext& operator=(const WorkForContext&) = delete;

 private:
  friend const char* outer_call(const Context& context);
  const Context& context_;
  const char* const function_;
  const WorkForContext* const outer_;
};
// The function in which the calling thread works for the context already; nullptr = in none.
const char* outer_call(const Context& context);

// Nothing for 0, unknown and destroyed handles, and for those of matrix products.
inline std::shared_ptr<Context> find_context(rknn_context handle) { return find_handle<Context>(handle); }
rknn_context publish_context(std::shared_ptr<Context> context);
// Takes the handle out of the table, waits for a call or run that is under way, and frees everything. False when there is none.
// Not for callbacks of the context's own operators.
bool destroy_context(rknn_context handle);

// Gives the context of the simulated chip's SRAM what its activations need and nobody holds.
void take_sram(Context& context, uint64_t internal_bytes, bool shared);

}  // namespace orknn::runtime
