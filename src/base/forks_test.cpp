#include "base/forks.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "forked_child.h"

namespace orknn {
namespace {
using Forks = tests::ForkTest;
using tests::exit_code_of_child;

TEST_F(Forks, TheCountGrowsInTheChildAlone) {
  const uint32_t before = fork_count();
  EXPECT_EQ(exit_code_of_child([&] { return fork_count() == before + 1 ? 0 : 1; }), 0);
  EXPECT_EQ(fork_count(), before);
}

TEST_F(Forks, AChildFindsABriefMutexFree) {
  BriefMutex mutex;
  std::jthread busy([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) const std::lock_guard lock(mutex);
  });
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(exit_code_of_child([&] {
                const std::lock_guard lock(mutex);
                return 0;
              }),
              0);
}

TEST_F(Forks, ALockOfALostCallIsRefused) {
  CallMutex mutex;
  {
    const CallLock held(mutex);
    ASSERT_TRUE(held);
    EXPECT_EQ(exit_code_of_child([&] { return CallLock(mutex) ? 1 : 0; }), 0) << "held by the parent";
  }
  const auto take_twice = [&] {
    const bool first = static_cast<bool>(CallLock(mutex)), again = static_cast<bool>(CallLock(mutex));
    return first && again ? 0 : 1;
  };
  EXPECT_EQ(exit_code_of_child(take_twice), 0) << "free";
  EXPECT_TRUE(CallLock(mutex)) << "in the parent";
}

TEST_F(Forks, CallsWaitForEachOther) {
  CallMutex mutex;
  int inside = 0, most = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        for (int i = 0; i < 1000; ++i) {
          const CallLock lock(mutex);
          ASSERT_TRUE(lock);
          most = std::max(most, ++inside);
          if (i % 16 == 0) std::this_thread::yield();
          --inside;
        }
      });
  }
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace orknn
