#include "base/threads.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

namespace orknn {
namespace {
int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1u, std::thread::hardware_concurrency());
}
thread_local bool inside_pool = false;
}  // namespace

struct ThreadPool::State {
  std::vector<std::thread> workers;
  std::mutex run_mutex;  // one parallel_for at a time; others run their work on their own thread
  std::mutex mutex;
  std::condition_variable wake, done;
  // The current job; valid while `generation` is odd-stepped and `active` > 0.
  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0, grain = 1;
  std::atomic<int64_t> next{0};
  uint64_t generation = 0;
  int active = 0;
  bool stop = false;

  void work() {
    for (;;) {
      const int64_t begin = next.fetch_add(grain, std::memory_order_relaxed);
      if (begin >= count) return;
      (*body)(begin, std::min(begin + grain, count));
    }
  }
  void worker_loop() {
    inside_pool = true;
    uint64_t seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      lock.unlock();
      work();
      lock.lock();
      if (--active == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads <= 0) threads = usable_cores();
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
  {
    const std::lock_guard lock(s.mutex);
    s.body = &body;
    s.count = count;
    s.grain = grain;
    s.next.store(0, std::memory_order_relaxed);
    s.active = static_cast<int>(s.workers.size());
    ++s.generation;
  }
  s.wake.notify_all();
  inside_pool = true;
  s.work();
  inside_pool = false;
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.active == 0; });
}

ThreadPool& ThreadPool::shared() {
  static ThreadPool pool([] {
    const char* text = std::getenv("ORKNN_THREADS");
    return text ? std::clamp(std::atoi(text), 0, 1024) : 0;
  }());
  return pool;
}

}  // namespace orknn
