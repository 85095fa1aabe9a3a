#include "sim/kernels/support/aligned_array.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/forks.h"

namespace orknn::sim::kernels {
namespace {
struct Packing {
  std::weak_ptr<void> memory;
  size_t bytes = 0;
};

// Never destroyed: a thread that outlives main may prepare a model.
struct Packings {
  BriefMutex mutex;
  std::unordered_multimap<const void*, Packing> by_source;
  size_t swept = 0;  // entries after those of released memory were last dropped

  // Holds the lock.
  void add(const void* source, const std::shared_ptr<void>& memory, size_t bytes) {
    if (by_source.size() >= 2 * swept + 64) {
      std::erase_if(by_source, [](const auto& entry) { return entry.second.memory.expired(); });
      swept = by_source.size();
    }
    by_source.emplace(source, Packing{memory, bytes});
  }
};

Packings& packings() {
  static auto* all = new Packings;
  return *all;
}
ORKNN_MAKE_AT_LOAD(packings);
}  // namespace

std::shared_ptr<void> shared_packing(const void* source, std::shared_ptr<void> fresh, size_t bytes) {
  Packings& all = packings();
  std::vector<std::shared_ptr<void>> others;  // outlives the lock: the last one to go may free much
  {
    const std::lock_guard lock(all.mutex);
    const auto [begin, end] = all.by_source.equal_range(source);
    for (auto it = begin; it != end; ++it)
      if (it->second.bytes == bytes)
        if (std::shared_ptr<void> other = it->second.memory.lock()) others.push_back(std::move(other));
  }
  // An address alone says little: a constant of another model may have been there before, or other kernels pack this one
  // otherwise.
  const auto same = std::ranges::find_if(
      others, [&](const std::shared_ptr<void>& other) { return std::memcmp(other.get(), fresh.get(), bytes) == 0; });
  if (same != others.end()) return *same;
  const std::lock_guard lock(all.mutex);
  all.add(source, fresh, bytes);
  return fresh;
}

}  // namespace orknn::sim::kernels
