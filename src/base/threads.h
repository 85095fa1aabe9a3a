// A small thread pool. Work is split into fixed ranges, so results never depend on the number of threads as long as
// ranges do not share an accumulator. Idle workers sleep, after looking for more work for some tens of microseconds.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace orknn {

class ThreadPool {
 public:
  // `threads` counts the calling thread too; 0 = one per core this process may use. Where the system refuses to start as many,
  // the pool works with those it got.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls body(begin, end) over [0, count) in chunks of `grain` items (the last may be shorter), on all threads, and
  // returns when all are done. One chunk, or a call from inside a body, runs on the calling thread. When a body throws, chunks
  // that were not begun are left out and the first exception is thrown here, on whichever thread it happened.
  void parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t begin, int64_t end)>& body);
  // Any function object, which is only referred to: a call allocates nothing.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, Body&& body) {
    const std::function<void(int64_t, int64_t)> reference(std::ref(body));
    parallel_for(count, grain, reference);
  }

  // The pool shared by everything that was not given its own. ORKNN_THREADS overrides its size.
  static ThreadPool& shared();

 private:
  struct State;
  struct Shared {};
  explicit ThreadPool(Shared);  // starts its threads when it is used first
  State& state() const;
  // Ends the workers; calls go on, on the threads that make them.
  void stop();
  const int wanted_;  // 0 = as many as the environment says
  // nullptr = not used yet. Threads do not survive a fork: in the child the first use replaces the state. The old one, whose
  // locks are as the parent left them, is never touched again.
  mutable std::atomic<State*> state_;
};

}  // namespace orknn
