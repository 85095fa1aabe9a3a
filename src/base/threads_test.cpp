#include "base/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace orknn {
namespace {

TEST(ThreadPool, EveryItemOnce) {
  for (int threads : {1, 2, 3, 9}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 1000})
      for (int64_t grain : {0, 1, 3, 2000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (const std::atomic<int>& s : seen) EXPECT_EQ(s, 1);
      }
  }
}

TEST(ThreadPool, ManyShortJobsInARow) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 20000; ++i) pool.parallel_for(3, 1, [&](int64_t begin, int64_t) { sum += begin; });
  EXPECT_EQ(sum, 20000 * 3);
}

TEST(ThreadPool, NestedAndConcurrentCallsRunOnTheCaller) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  const auto outer = [&] {
    for (int i = 0; i < 200; ++i)
      pool.parallel_for(4, 1, [&](int64_t, int64_t) { pool.parallel_for(5, 1, [&](int64_t, int64_t) { ++sum; }); });
  };
  std::thread other(outer);
  outer();
  other.join();
  EXPECT_EQ(sum, 2 * 200 * 4 * 5);
}

}  // namespace
}  // namespace orknn
