#include "runtime/background_run.h"

namespace orknn::runtime {

BackgroundRun::~BackgroundRun() {
  if (!has_thread()) {
    thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundRun::start(std::function<void()> job) {
  if (!has_thread()) return job();
  {
    const std::lock_guard lock(mutex_);
    job_ = std::move(job);
    pending_ = true;
  }
  changed_.notify_all();
}

bool BackgroundRun::wait(std::optional<std::chrono::steady_clock::time_point> deadline) {
  std::unique_lock lock(mutex_);
  const auto done = [&] { return !pending_.load(); };
  if (deadline) return changed_.wait_until(lock, *deadline, done);
  changed_.wait(lock, done);
  return true;
}

void BackgroundRun::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stopped_ || pending_; });
    if (!pending_) return;  // a job that was begun is finished first
    lock.unlock();
    job_();
    lock.lock();
    job_ = nullptr;
    pending_ = false;
    changed_.notify_all();
  }
}

}  // namespace orknn::runtime
