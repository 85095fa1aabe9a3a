#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/log.h"

namespace orknn {
namespace {
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}
thread_local bool inside_pool = false;
constexpr std::chrono::microseconds kSpin{40};

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  bool may_spin = false;  // every thread has a core to itself, as far as we know
  std::mutex run_mutex;   // one parallel_for at a time; others run their work on their own thread
  std::mutex mutex;       // guards all below; the atomics are also read without it
  std::condition_variable wake, done;
  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0, grain = 1;
  bool open = false;  // workers may still join the job
  int sleeping = 0;
  bool caller_sleeps = false;
  std::atomic<int> active{0};  // workers inside the job
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> next{0};

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      (*body)(begin, std::min(begin + grain, count));
    }
  }
  // Looks for a while whether `ready` comes true: much shorter than a task, longer than the gap between two tasks.
  template <class Ready>
  bool spin(Ready&& ready) const {
    if (!may_spin) return ready();
    const auto end = std::chrono::steady_clock::now() + kSpin;
    do {
      for (int i = 0; i < 16; ++i) {
        if (ready()) return true;
        relax();
      }
    } while (std::chrono::steady_clock::now() < end);
    return false;
  }
  void worker_loop() {
    inside_pool = true;
    uint64_t seen = 0;
    const auto ready = [&] { return stop.load(std::memory_order_relaxed) || generation.load(std::memory_order_relaxed) != seen; };
    for (;;) {
      spin(ready);
      std::unique_lock lock(mutex);
      if (!ready()) {
        ++sleeping;
        wake.wait(lock, ready);
        --sleeping;
      }
      if (stop.load(std::memory_order_relaxed)) return;
      seen = generation.load(std::memory_order_relaxed);
      if (!open) continue;  // the others were faster
      active.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      work();
      lock.lock();
      if (active.fetch_sub(1, std::memory_order_release) == 1 && caller_sleeps) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  const int cores = usable_cores();
  if (threads <= 0) threads = cores;
  state_->may_spin = threads <= cores;
  for (int i = 1; i < threads; ++i) state_->workers.emplace_back([s = state_.get()] { s->worker_loop(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->wake.notify_all();
  for (std::thread& t : state_->workers) t.join();
}

int ThreadPool::threads() const { return static_cast<int>(state_->workers.size()) + 1; }

void ThreadPool::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  State& s = *state_;
  std::unique_lock run_lock(s.run_mutex, std::defer_lock);
  if (s.workers.empty() || inside_pool || count <= grain || !run_lock.try_lock()) {
    for (int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(begin + grain, count));
    return;
  }
  bool wake = false;
  {
    const std::lock_guard lock(s.mutex);
    s.body = &body;
    s.count = count;
    s.grain = grain;
    s.next.store(0, std::memory_order_relaxed);
    s.open = true;
    s.generation.fetch_add(1, std::memory_order_release);
    wake = s.sleeping > 0;
  }
  if (wake) s.wake.notify_all();
  inside_pool = true;
  s.work();
  inside_pool = false;
  // Nothing is left to take: whoever has not come yet need not come, those inside are awaited.
  const auto finished = [&] { return s.active.load(std::memory_order_acquire) == 0; };
  {
    const std::lock_guard lock(s.mutex);
    s.open = false;
    if (finished()) return;
  }
  if (s.spin(finished)) return;
  std::unique_lock lock(s.mutex);
  s.caller_sleeps = true;
  s.done.wait(lock, finished);
  s.caller_sleeps = false;
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool([] {
    const char* text = std::getenv("ORKNN_THREADS");
    if (!text) return 0;
    constexpr int kMost = 1024;
    int threads = 0;
    const std::from_chars_result end = std::from_chars(text, text + std::strlen(text), threads);
    if (end.ec == std::errc() && *end.ptr == 0 && threads > 0 && threads <= kMost) return threads;
    log(LogLevel::Warn, "threads",
        "ORKNN_THREADS=" + std::string(text) + " is not a number of threads from 1 to " + std::to_string(kMost) +
            ", one per core is used!");
    return 0;
  }());
  return pool;
}

}  // namespace orknn
