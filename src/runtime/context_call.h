// What every function of the C API that takes a model's context does before its work.
#pragma once

#include <string>

#include "runtime/c_call.h"
#include "runtime/checker.h"
#include "runtime/context.h"
#include "runtime/run_report.h"

namespace orknn::runtime {

// What a call does about a run in the background: nearly all wait for its end.
enum class Pending { Finish, Leave };

// Calls with the context that meet are legal here and not on a board.
inline void report_meeting(const char* function, const Context& context) {
  const char* other = context.current_call;
  report_mistake(function, std::string("another thread is inside of ") + (other ? other : "a call") + " with the same context",
                 "give each thread a context of its own (rknn_dup_context)");
}

// Whether a callback of a custom operator may make the call with the context that it works for. The callback's thread must not
// wait for what it is itself a part of, so the body then runs without the lock and beside the call that is under way.
enum class FromCallback { Refuse, Allow };

inline int refuse_callback(const char* function, const char* outer) {
  return fail(
      RKNN_ERR_FAIL, function,
      std::string("a callback of a custom operator cannot call this with the context that it works for, which is inside of ") +
          outer + "; make the call after " + outer + ", or with another context");
}

// Runs `body` with the context locked. Keeps the text of a failure for orknn_context_error.
template <class Body>
int with_context(const char* function, rknn_context handle, Body body, Pending pending = Pending::Finish,
                 FromCallback from_callback = FromCallback::Refuse) {
  return c_call(function, [&] {
    const std::shared_ptr<Context> context = find_context(handle);
    if (!context) return invalid_context(function);
    if (const char* outer = outer_call(*context))
      return from_callback == FromCallback::Allow ? body(*context) : refuse_callback(function, outer);
    if (is_checking() && context->mutex.is_held()) report_meeting(function, *context);
    const CallLock lock(context->mutex);
    if (!lock || (context->background && context->background->is_lost()))
      return fail(RKNN_ERR_CTX_INVALID, function,
                  "another thread was using the context when this process was forked, call rknn_init in the child");
    if (context->destroyed) return invalid_context(function);
    context->current_call = function;
    const WorkForContext work(*context, function);
    if (pending == Pending::Finish) context->finish_pending_run();
    const int code = body(*context);
    context->current_call = nullptr;
    if (code != RKNN_SUCC) context->error = last_error();
    return code;
  });
}

// -13 for what the chip that was chosen for simulation lacks; without a choice everything is there.
inline int refuse_on_chip(const char* function, const platform::Platform& chip) {
  return fail(RKNN_ERR_TARGET_PLATFORM_UNMATCH, function, std::string(chip.name) + " does not offer this function");
}
inline bool lacks(const Context& context, bool platform::Features::*feature) {
  return context.is_chip_chosen && !(context.chip->features.*feature);
}

// What a call reports besides its results.
inline RunReport report_of(const Context& context) { return {report_level(), context.cores, context.sram_bytes}; }

inline int refuse_without_shapes(const char* function) {
  return fail(RKNN_ERR_FAIL, function, "the model has several sets of input shapes, call rknn_set_input_shapes first");
}

}  // namespace orknn::runtime
