// Locks and fork: threads do not survive a fork, the locks that they held do.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace orknn {

// How many forks happened between the process that loaded the library and this one.
uint32_t fork_count();

// Calls `function`, which returns an object that it makes at the first call, when the library is loaded. While one thread makes
// such an object others wait for it: in a child that is forked meanwhile, that thread is missing. Needed for objects that threads
// reach while they run networks, above all those with a BriefMutex: making one waits for a fork that is under way.
#define ORKNN_MAKE_AT_LOAD(function) [[maybe_unused]] static const auto* const function##_at_load = &function()

// A lock that is held for moments only: fork waits for it, and a child finds it free. Whoever holds one takes no second one.
class BriefMutex {
 public:
  BriefMutex();
  ~BriefMutex();
  BriefMutex(const BriefMutex&) = delete;
  BriefMutex& operator=(const BriefMutex&) = delete;
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

// An object that takes its time to be made, at its first use, and is never destroyed: a fork waits until it is complete. Made at
// load itself. What makes the object takes no BriefMutex.
template <class T>
class MadeOnce {
 public:
  template <class Make>
  const T& get(Make&& make) {
    if (const T* made = made_.load(std::memory_order_acquire)) return *made;
    const std::lock_guard lock(mutex_);
    if (!made_.load(std::memory_order_relaxed)) made_.store(new T(make()), std::memory_order_release);
    return *made_.load(std::memory_order_relaxed);
  }

 private:
  BriefMutex mutex_;
  std::atomic<const T*> made_{nullptr};
};

// A lock that is held for the length of a call. When the process forks meanwhile, the child has what it protects half changed and
// nobody who finishes the change: there the lock can never be taken.
class CallMutex {
 public:
  // Waits for the holder; false when that is a thread of the process that this one was forked from.
  [[nodiscard]] bool lock();
  void unlock();
  // At this moment; for reports.
  bool is_held() const { return holder_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<uint32_t> holder_{0};  // 0 = nobody, else 1 + fork_count() of the holder's process
};

class CallLock {
 public:
  explicit CallLock(CallMutex& mutex) : mutex_(mutex.lock() ? &mutex : nullptr) {}
  ~CallLock() {
    if (mutex_) mutex_->unlock();
  }
  CallLock(const CallLock&) = delete;
  CallLock& operator=(const CallLock&) = delete;
  explicit operator bool() const { return mutex_ != nullptr; }

 private:
  CallMutex* mutex_;
};

}  // namespace orknn
