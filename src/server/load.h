// How busy the cores of a board were in the last seconds.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace orknn::server {

// For any number of threads. Times that are passed in only go forward.
class Load {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{10};

  explicit Load(Time start = std::chrono::steady_clock::now()) : start_(start) {}
  // Around a run; those who hold a core use its number, so no two runs have the same one at a time.
  void begin(size_t core, Time now);
  void end(size_t core, Time now);
  // Share of the last seconds in which a run was under way; with several cores it may exceed 100 %.
  double percent(Time now) const;

 private:
  struct Second {
    int64_t number = -1;  // of the clock
    std::chrono::steady_clock::duration busy{};
  };
  Time window_begin(Time now) const;
  void add(Time from, Time to);

  mutable std::mutex mutex_;
  const Time start_;
  std::array<std::optional<Time>, 32> began_;
  std::array<Second, kWindow.count() + 1> seconds_;
};

}  // namespace orknn::server
