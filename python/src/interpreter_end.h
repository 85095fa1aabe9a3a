// The interpreter's lock around native calls, also while the interpreter goes down: Python ends a daemon thread that asks for the
// lock after that, and unwinding its C++ frames would end the process. Such a thread waits for the end of the process instead.
#pragma once

#include <nanobind/nanobind.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

namespace orknn::python {

struct InterpreterEnd {
  std::atomic<bool> begun{false};
  std::atomic<std::thread::id> by;  // the thread that goes on
  std::atomic<int> inside{0};       // threads that are about to take the lock, or run Python code for a native call
  std::atomic<int> calls{0};        // native ones under way
};
inline InterpreterEnd interpreter_end;
inline thread_local bool without_lock = false;  // this thread gave the lock away for a native call

// Stands for what a native call wants of Python. Once the end has begun, it returns on one thread only.
class Inside {
 public:
  Inside() {
    if (depth_++ > 0) return;
    ++interpreter_end.inside;
    if (!interpreter_end.begun || interpreter_end.by.load() == std::this_thread::get_id()) return;
    --interpreter_end.inside;
    const bool has_lock = !without_lock && PyGILState_GetThisThreadState();  // native threads have no state
    if (has_lock) PyEval_SaveThread();
    for (;;) pause();
  }
  ~Inside() {
    if (--depth_ == 0) --interpreter_end.inside;
  }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  // For a forked child, where there are no others.
  static void forget_other_threads() {
    interpreter_end.inside = depth_ > 0 ? 1 : 0;
    interpreter_end.calls = without_lock ? 1 : 0;
  }

 private:
  static inline thread_local int depth_ = 0;  // a Python callback may call native code again
};

// Gives the lock away for the length of a native call.
class Unlocked {
 public:
  Unlocked() : before_(std::exchange(without_lock, true)) {
    ++interpreter_end.calls;
    state_ = PyEval_SaveThread();
  }
  ~Unlocked() {
    const Inside inside;
    PyEval_RestoreThread(state_);
    --interpreter_end.calls;
    without_lock = before_;
  }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  const bool before_;
  PyThreadState* state_;
};

// A Python function that native threads call, and that the last of them to use it lets go.
template <class... Arguments>
std::function<void(Arguments...)> callback(std::function<void(Arguments...)> function) {
  using Function = std::function<void(Arguments...)>;
  if (!function) return {};
  const std::shared_ptr<const Function> shared(new Function(std::move(function)), [](const Function* f) {
    const Inside inside;
    delete f;
  });
  return [shared](Arguments... arguments) {
    const Inside inside;
    (*shared)(std::forward<Arguments>(arguments)...);
  };
}

// To be called once, when the interpreter begins to go down: from then on other threads stay out, and those inside have left.
inline void begin_interpreter_end() {
  interpreter_end.by = std::this_thread::get_id();
  interpreter_end.begun = true;
  // Runs ahead of the destructors of static objects: a native call that is still under way uses those, then they stay. Registered
  // as late as Python lets us: objects that such a call makes after that are destroyed ahead of it.
  const auto keep_static_objects = [] {
    on_exit(
        [](int code, void*) {
          if (interpreter_end.calls == 0) return;
          std::fflush(nullptr);
          _exit(code);
        },
        nullptr);
  };
  if (Py_AtExit(keep_static_objects) != 0) keep_static_objects();
  const nanobind::gil_scoped_release unlocked;
  while (interpreter_end.inside > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace orknn::python
