#include "base/forks.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

namespace orknn {
namespace {

struct Forks {
  std::atomic<uint32_t> count{0};
  std::mutex mutex;  // of the list
  std::vector<BriefMutex*> brief;

  Forks() {
    ::pthread_atfork([] { instance().lock_all(); }, [] { instance().unlock_all(); },
                     [] {
                       instance().count.fetch_add(1, std::memory_order_relaxed);
                       instance().unlock_all();
                     });
  }
  static Forks& instance() {
    static Forks& all = *new Forks;  // outlives every static object with a lock
    return all;
  }
  void lock_all() {
    mutex.lock();
    for (BriefMutex* m : brief) m->lock();
  }
  void unlock_all() {
    for (BriefMutex* m : brief) m->unlock();
    mutex.unlock();
  }
};
}  // namespace

uint32_t fork_count() { return Forks::instance().count.load(std::memory_order_relaxed); }

BriefMutex::BriefMutex() {
  Forks& all = Forks::instance();
  const std::lock_guard lock(all.mutex);
  all.brief.push_back(this);
}

BriefMutex::~BriefMutex() {
  Forks& all = Forks::instance();
  const std::lock_guard lock(all.mutex);
  std::erase(all.brief, this);
}

bool CallMutex::lock() {
  const uint32_t own = fork_count() + 1;
  for (;;) {
    uint32_t holder = 0;
    if (holder_.compare_exchange_strong(holder, own, std::memory_order_acquire)) return true;
    if (holder != own) return false;
    holder_.wait(holder, std::memory_order_relaxed);
  }
}

void CallMutex::unlock() {
  holder_.store(0, std::memory_order_release);
  holder_.notify_one();
}

}  // namespace orknn
