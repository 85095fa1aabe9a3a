#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/forks.h"
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
constexpr uint64_t kOneFromBehind = uint64_t{1} << 32;
constexpr int64_t kMostChunks = INT32_MAX;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// The size of the shared pool.
int threads_of_environment() {
  const char* text = std::getenv("ORKNN_THREADS");
  if (!text) return usable_cores();
  constexpr int kMost = 1024;
  int threads = 0;
  const std::from_chars_result end = std::from_chars(text, text + std::strlen(text), threads);
  if (end.ec == std::errc() && *end.ptr == 0 && threads > 0 && threads <= kMost) return threads;
  log(LogLevel::Warn, "threads",
      "ORKNN_THREADS=" + std::string(text) + " is not a number of threads from 1 to " + std::to_string(kMost) +
          ", one per core is used!");
  return usable_cores();
}
}  // namespace

struct ThreadPool::State {
  const uint32_t born = fork_count();
  std::vector<std::thread> workers;
  bool may_spin = false;  // every thread has a core to itself, as far as we know
  std::mutex run_mutex;   // one parallel_for at a time; others run their work on their own thread
  std::mutex mutex;       // guards all below; the atomics are also read without it
  std::condition_variable wake, done;
  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0, grain = 1, chunks = 0;
  std::exception_ptr failure;  // the first of the job
  bool open = false;           // workers may still join the job
  int sleeping = 0;
  bool caller_sleeps = false;
  std::atomic<int> active{0};  // workers inside the job
  std::atomic<uint64_t> generation{0};
  std::atomic<bool> stopped{false};
  // Chunks taken: by the caller from the first one on (lower half), by workers from the last one back (upper half). A core then
  // mostly works on the data that it worked on in the job before, which it has in its caches.
  std::atomic<uint64_t> taken{0};

  ~State() { stop(); }

  bool is_of_this_process() const { return born == fork_count(); }

  // As many threads as the system lets us have.
  void start(int threads) {
    may_spin = threads <= usable_cores();
    try {
      while (static_cast<int>(workers.size()) + 1 < threads) workers.emplace_back([this] { worker_loop(); });
    } catch (const std::exception& e) {
      log(LogLevel::Warn, "threads",
          std::to_string(workers.size() + 1) + " of " + std::to_string(threads) +
              " threads are used, more cannot be started: " + e.what());
    }
  }
  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopped = true;
    }
    wake.notify_all();
    for (std::thread& t : workers)
      if (t.joinable()) t.join();
  }

  // Takes chunks while there are any. An exception ends the job: what no thread has begun is skipped.
  template <class MayGoOn>
  void work(bool from_the_front, MayGoOn&& may_go_on) noexcept {
    try {
      while (may_go_on()) {
        const uint64_t before = taken.fetch_add(from_the_front ? 1 : kOneFromBehind, std::memory_order_relaxed);
        const auto front = static_cast<int64_t>(before % kOneFromBehind), behind = static_cast<int64_t>(before / kOneFromBehind);
        if (front + behind >= chunks) return;
        const int64_t begin = (from_the_front ? front : chunks - 1 - behind) * grain;
        (*body)(begin, std::min(begin + grain, count));
      }
    } catch (...) {
      taken.store(static_cast<uint64_t>(chunks), std::memory_order_relaxed);
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
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
    const auto ready = [&] {
      return stopped.load(std::memory_order_relaxed) || generation.load(std::memory_order_relaxed) != seen;
    };
    for (;;) {
      spin(ready);
      std::unique_lock lock(mutex);
      if (!ready()) {
        ++sleeping;
        wake.wait(lock, ready);
        --sleeping;
      }
      if (stopped.load(std::memory_order_relaxed)) return;
      seen = generation.load(std::memory_order_relaxed);
      if (!open) continue;  // the others were faster
      active.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      work(false, [this] { return !stopped.load(std::memory_order_relaxed); });
      lock.lock();
      if (active.fetch_sub(1, std::memory_order_release) == 1 && caller_sleeps) done.notify_one();
    }
  }
  void begin_job(int64_t items, int64_t chunk, const std::function<void(int64_t, int64_t)>& f) {
    std::unique_lock lock(mutex);
    body = &f;
    count = items;
    grain = chunk;
    chunks = (items + chunk - 1) / chunk;
    taken.store(0, std::memory_order_relaxed);
    open = true;
    generation.fetch_add(1, std::memory_order_release);
    const bool anyone_sleeps = sleeping > 0;
    lock.unlock();
    if (anyone_sleeps) wake.notify_all();
  }
  // Called when no chunk is left: workers that have not joined the job need not, those inside are awaited.
  void await_workers() {
    const auto finished = [&] { return active.load(std::memory_order_acquire) == 0; };
    {
      const std::lock_guard lock(mutex);
      open = false;
    }
    if (spin(finished)) return;
    std::unique_lock lock(mutex);
    caller_sleeps = true;
    done.wait(lock, finished);
    caller_sleeps = false;
  }
};

ThreadPool::ThreadPool(int threads) : wanted_(threads > 0 ? threads : usable_cores()) {
  auto fresh = std::make_unique<State>();
  fresh->start(wanted_);
  state_ = fresh.release();
}

ThreadPool::ThreadPool(Shared) : wanted_(0), state_(nullptr) {}

ThreadPool::~ThreadPool() {
  State* s = state_.load();
  if (s && s->is_of_this_process()) delete s;
}

ThreadPool::State& ThreadPool::state() const {
  State* s = state_.load(std::memory_order_acquire);
  if (s && s->is_of_this_process()) return *s;
  auto fresh = std::make_unique<State>();
  fresh->start(wanted_ > 0 ? wanted_ : threads_of_environment());
  // Of several threads that come here at once, one wins.
  return state_.compare_exchange_strong(s, fresh.get(), std::memory_order_acq_rel) ? *fresh.release() : *s;
}

void ThreadPool::stop() {
  State* s = state_.load();
  if (s && s->is_of_this_process()) s->stop();
}

int ThreadPool::threads() const { return static_cast<int>(state().workers.size()) + 1; }

void ThreadPool::parallel_for(int64_t count, int64_t grain, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  State& s = state();
  std::unique_lock run_lock(s.run_mutex, std::defer_lock);
  if (s.workers.empty() || inside_pool || count <= grain || count / grain >= kMostChunks || !run_lock.try_lock()) {
    for (int64_t begin = 0; begin < count; begin += grain) body(begin, std::min(begin + grain, count));
    return;
  }
  s.begin_job(count, grain, body);
  inside_pool = true;
  s.work(true, [] { return true; });
  inside_pool = false;
  s.await_workers();
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

ThreadPool& ThreadPool::shared() {
  // Not destroyed when the program ends: a thread that outlives main may be inside a call. Only its workers are ended, so that
  // the library can be unloaded.
  static ThreadPool& pool = *new ThreadPool(Shared{});
  static const struct AtExit {
    ~AtExit() { pool.stop(); }
  } at_exit;
  return pool;
}

namespace {
ThreadPool& shared_pool() { return ThreadPool::shared(); }
ORKNN_MAKE_AT_LOAD(shared_pool);
}  // namespace

}  // namespace orknn
