// How far a long piece of work is, for whoever shows it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>

namespace orknn::toolkit {

// Called with the name of the work and how far it is; `done` == `total` ends it.
using Progress = std::function<void(std::string_view work, int64_t done, int64_t total)>;

// Progress of work on weights in MiB, in equal parts for `passes` passes over them. Keeps a reference to `progress`.
class ByteBar {
 public:
  ByteBar(const Progress& progress, std::string_view work, uint64_t bytes, int passes)
      : progress_(progress), work_(work), total_(static_cast<int64_t>((bytes >> 20) + 1)), passes_(passes), bytes_(bytes) {
    show(0);
  }
  void add(uint64_t bytes) {
    done_ += bytes;
    const double part = bytes_ ? std::min(1.0, static_cast<double>(done_) / static_cast<double>(bytes_)) : 1.0;
    const auto now = static_cast<int64_t>((pass_ + part) / passes_ * static_cast<double>(total_));
    if (now > shown_ && now < total_) show(shown_ = now);
  }
  // The next pass is over `bytes` of them.
  void next_pass(uint64_t bytes) {
    ++pass_;
    bytes_ = bytes;
    done_ = 0;
    add(0);
  }
  void finish() { show(total_); }

 private:
  void show(int64_t done) const {
    if (progress_) progress_(work_, done, total_);
  }

  const Progress& progress_;
  std::string_view work_;
  int64_t total_, shown_ = 0;
  int passes_, pass_ = 0;
  uint64_t bytes_, done_ = 0;
};

}  // namespace orknn::toolkit
