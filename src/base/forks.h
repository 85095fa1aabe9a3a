// Locks and fork: threads do not survive a fork, the locks that they held do.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace orknn {

// How many forks lie between this process and the one that loaded the library.
uint32_t fork_count();

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
