// A run that goes on while the caller does something else: one thread per context, one job at a time. In the child of a fork,
// where the thread does not exist, jobs are done at once.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace orknn::runtime {

class BackgroundRun {
 public:
  BackgroundRun() : thread_([this] { work(); }) {}
  ~BackgroundRun();
  BackgroundRun(const BackgroundRun&) = delete;
  BackgroundRun& operator=(const BackgroundRun&) = delete;

  // Only when no job is pending. The job must not throw.
  void start(std::function<void()> job);
  // A job that a process began from which this one was forked: it is not finished here.
  bool is_lost() const { return !has_thread() && pending_; }
  // False when the job is still going on at the deadline.
  bool wait(std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt);

 private:
  void work();
  bool has_thread() const { return process_ == ::getpid(); }
  const pid_t process_ = ::getpid();
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> job_;
  std::atomic<bool> pending_ = false;
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace orknn::runtime
