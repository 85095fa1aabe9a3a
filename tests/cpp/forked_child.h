// What tests of fork share.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace orknn::tests {

inline bool is_forked_child = false;

class ForkTest : public testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "the thread sanitizer does not follow threads that a forked child starts";
#endif
  }
};

// Runs `body` in a forked child that then exits as programs do; its exit code, or -1 when a signal (that of a hang) ended it.
template <class Body>
int exit_code_of_child(Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    is_forked_child = true;
    ::alarm(20);
    std::exit(body());
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace orknn::tests

#ifdef __SANITIZE_ADDRESS__
// A forked child has none of its parent's threads, whose memory looks lost to it.
extern "C" inline __attribute__((used, visibility("default"))) int __lsan_is_turned_off() {
  return orknn::tests::is_forked_child;
}
#endif
