// What a rknn_context refers to: a session and the buffers handed out.
#pragma once

#include <memory>
#include <unordered_map>

#include "runtime/handles.h"
#include "runtime/session.h"

namespace orknn::runtime {

struct Context : HandleObject {
  std::shared_ptr<ThreadPool> pool;  // what the session computes with, when it is not the shared one
  std::unique_ptr<Session> session;
  uint32_t flags = 0;
  bool has_shapes = true;  // false: a model of several shape sets of which none was chosen yet
  int cores = 1;           // chosen by rknn_set_core_mask
  uint64_t frame = 0;      // number of the last run
  std::unordered_map<void*, std::unique_ptr<std::byte[]>> buffers;  // made by rknn_outputs_get and not yet released
  std::string report;                                               // text of RKNN_QUERY_PERF_DETAIL

  bool is_dry() const { return flags & RKNN_FLAG_COLLECT_MODEL_INFO_ONLY; }
};

// Nothing for 0, unknown and destroyed handles, and for those of matrix products.
inline std::shared_ptr<Context> find_context(rknn_context handle) { return find_handle<Context>(handle); }
// Takes the handle out of the table, waits for a call that is under way, and frees everything. False when there is none.
bool destroy_context(rknn_context handle);

}  // namespace orknn::runtime
