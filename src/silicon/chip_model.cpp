#include "silicon/chip_model.h"

#include <optional>

#include "silicon/array.h"
#include "silicon/lint.h"
#include "silicon/pooling.h"

namespace orknn::silicon {
namespace {
Status refuse(const std::vector<std::string>& problems) {
  if (problems.empty()) return {};
  Status all = invalid_argument("the chip would not execute this: " + problems.front());
  for (size_t i = 1; i < problems.size(); ++i) all.also(invalid_argument(problems[i]));
  return all;
}

Status in_task(Status status, size_t index) { return status.node("task " + std::to_string(index), "command stream"); }

// Decodes and checks task after task; `visit` gets each.
template <class Visit>
Status for_each_task(std::span<const Stream> streams, Visit&& visit) {
  std::optional<DecodedTask> before;
  for (size_t i = 0; i < streams.size(); ++i) {
    Result<DecodedTask> task = decode_task(streams[i]);
    if (!task) return in_task(task.status(), i);
    if (Status s = refuse(lint_sequence(before ? &*before : nullptr, *task)); !s) return in_task(s, i);
    if (Status s = visit(*task); !s) return in_task(s, i);
    before = std::move(*task);
  }
  return {};
}
}  // namespace

Status run_task(const DecodedTask& task, const DeviceMemory& memory, ThreadPool& pool) {
  ORKNN_TRY(refuse(lint(task)));
  ORKNN_TRY(refuse(lint(task, memory)));
  if (task.enable == kEnablePooling) return run_pooling(task, memory, pool);
  if (task.enable == kEnableDpu) return run_flying(task, memory);
  return run_convolution(task, memory, pool);
}

Status run_streams(std::span<const Stream> streams, const DeviceMemory& memory, ThreadPool& pool) {
  return for_each_task(streams, [&](const DecodedTask& task) { return run_task(task, memory, pool); });
}

Result<DecodedTask> check_task(std::span<const uint64_t> words, const DecodedTask* before, const DeviceMemory& memory) {
  ORKNN_TRY_ASSIGN(DecodedTask task, decode_task(words));
  ORKNN_TRY(refuse(lint_sequence(before, task)));
  ORKNN_TRY(refuse(lint(task)));
  ORKNN_TRY(refuse(lint(task, memory)));
  return task;
}

Status check_streams(std::span<const Stream> streams) {
  return for_each_task(streams, [](const DecodedTask& task) { return refuse(lint(task)); });
}

}  // namespace orknn::silicon
