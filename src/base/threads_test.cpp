#include "base/threads.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "forked_child.h"

namespace orknn {
namespace {

// Whether the pool calls a body for every item, once.
bool works(ThreadPool& pool) {
  constexpr int64_t kItems = 1000;
  std::vector<std::atomic<int>> seen(kItems);
  pool.parallel_for(kItems, 3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
  });
  return std::all_of(seen.begin(), seen.end(), [](const std::atomic<int>& n) { return n == 1; });
}

using ThreadPoolFork = tests::ForkTest;
using tests::exit_code_of_child;

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

TEST(ThreadPool, AnExceptionComesBackFromWhicheverThread) {
  ThreadPool pool(3);
  const std::thread::id caller = std::this_thread::get_id();
  size_t on_worker = 0, on_caller = 0;
  for (int i = 0; i < 2000 && (on_worker < 20 || on_caller < 20); ++i) {
    const bool throw_on_caller = i % 2;
    std::atomic<int> begun{0};
    try {
      pool.parallel_for(300, 1, [&](int64_t, int64_t) {
        ++begun;
        // The others take their time, so that each thread gets something.
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        if ((std::this_thread::get_id() == caller) == throw_on_caller) throw std::bad_alloc();
        while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
      });
      EXPECT_EQ(begun, 300) << "no exception: that thread got nothing";
    } catch (const std::bad_alloc&) {
      ++(throw_on_caller ? on_caller : on_worker);
      EXPECT_LT(begun, 300) << "what was not begun is left out";
    }
    ASSERT_TRUE(works(pool)) << "the next call";
  }
  EXPECT_GE(on_worker, 20u);
  EXPECT_GE(on_caller, 20u);
}

TEST(ThreadPool, AnExceptionOfANestedOrShortCallComesBackToo) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(1, 1, [](int64_t, int64_t) { throw std::runtime_error("short"); }), std::runtime_error);
  EXPECT_THROW(pool.parallel_for(50, 1,
                                 [&](int64_t, int64_t) {
                                   pool.parallel_for(2, 1, [](int64_t, int64_t) { throw std::runtime_error("nested"); });
                                 }),
               std::runtime_error);
  EXPECT_TRUE(works(pool));
}

TEST(ThreadPool, WorksWithTheThreadsThatCanBeStarted) {
  pthread_attr_t usual, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_getattr_default_np(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, size_t{1} << 47), 0);  // more than there are addresses
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  {
    ThreadPool pool(4);
    EXPECT_EQ(::pthread_setattr_default_np(&usual), 0);
    EXPECT_EQ(pool.threads(), 1);
    EXPECT_TRUE(works(pool));
  }
  ThreadPool pool(4);
  EXPECT_EQ(pool.threads(), 4);
  ::pthread_attr_destroy(&usual);
  ::pthread_attr_destroy(&huge);
}

TEST_F(ThreadPoolFork, AChildThatMerelyExitsNeitherHangsNorCrashes) {
  ThreadPool::shared().parallel_for(100, 1, [](int64_t, int64_t) {});
  for (int i = 0; i < 8; ++i) {
    ThreadPool pool(4);
    ASSERT_TRUE(works(pool));
    ASSERT_EQ(exit_code_of_child([] { return 0; }), 0);
    ASSERT_EQ(exit_code_of_child([&] {
                pool.~ThreadPool();
                new (&pool) ThreadPool(1);
                return 0;
              }),
              0)
        << "a pool of the parent is destroyed in the child";
    ASSERT_TRUE(works(pool));
  }
}

TEST_F(ThreadPoolFork, ThreadsAreStartedAnewInAChild) {
  ThreadPool pool(4);
  ASSERT_TRUE(works(pool));
  ASSERT_EQ(exit_code_of_child([&] {
              if (!works(pool) || pool.threads() != 4) return 1;
              std::atomic<int> helped{0};  // bodies that ran on a thread of the child's own
              const std::thread::id caller = std::this_thread::get_id();
              for (int i = 0; i < 1000 && helped == 0; ++i)
                pool.parallel_for(100, 1, [&](int64_t, int64_t) {
                  if (std::this_thread::get_id() != caller) ++helped;
                  std::this_thread::yield();
                });
              if (helped == 0) return 2;
              return exit_code_of_child([&] { return works(pool) && works(ThreadPool::shared()) ? 0 : 1; }) == 0 ? 0 : 3;
            }),
            0);
  EXPECT_TRUE(works(pool)) << "in the parent";
}

// Another thread is inside a call while the process forks.
TEST_F(ThreadPoolFork, AForkInTheMiddleOfACallLeavesBothSidesWorking) {
  ThreadPool pool(4);
  std::jthread busy([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) pool.parallel_for(50, 1, [](int64_t, int64_t) { std::this_thread::yield(); });
  });
  for (int i = 0; i < 20; ++i) ASSERT_EQ(exit_code_of_child([&] { return works(pool) ? 0 : 1; }), 0);
}

}  // namespace
}  // namespace orknn
