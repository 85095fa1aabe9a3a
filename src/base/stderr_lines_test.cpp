#include "base/stderr_lines.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace orknn {
namespace {
using namespace std::chrono_literals;

// stderr goes into a small pipe until the end.
class FullPipe {
 public:
  FullPipe() {
    EXPECT_EQ(::pipe(ends_), 0);
    ::fcntl(ends_[1], F_SETPIPE_SZ, 4096);
    before_ = ::dup(STDERR_FILENO);
    ::dup2(ends_[1], STDERR_FILENO);
  }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;
  ~FullPipe() {
    ::dup2(before_, STDERR_FILENO);
    for (const int fd : {before_, ends_[0], ends_[1]}) ::close(fd);
  }
  std::string read() {
    char bytes[8192];
    const ssize_t count = ::read(ends_[0], bytes, sizeof bytes);
    return {bytes, count > 0 ? static_cast<size_t>(count) : 0};
  }

 private:
  int ends_[2] = {-1, -1}, before_ = -1;
};

TEST(StderrLines, NobodyWaitsForAReaderForGood) {
  FullPipe pipe;
  const std::string line = std::string(4095, 'x') + "\n";
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) write_stderr_lines(line, 100ms);  // one fits
  const auto taken = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(taken, 100ms);
  EXPECT_LT(taken, 5s) << "one wait, not one per line";
  EXPECT_EQ(pipe.read(), line);
  write_stderr_lines("again\n", 100ms);
  EXPECT_EQ(pipe.read(), "W 9 log lines were left out: they were not read in time.\nagain\n");
}

TEST(StderrLines, ALineThatIsLongerThanThePipeDoesNotWaitEither) {
  FullPipe pipe;
  write_stderr_lines(std::string(10000, 'y') + "\n", 100ms);
  EXPECT_EQ(pipe.read(), std::string(4096, 'y'));
  write_stderr_lines("again\n", 100ms);
  EXPECT_EQ(pipe.read(), "\nW 1 log lines were left out: they were not read in time.\nagain\n");
}

TEST(StderrLines, LogLineNamesLevelProgramAndFunction) {
  const std::string warning = log_line(LogLevel::Warn, "RKNN", "rknn_init", "text"),
                    detail = log_line(LogLevel::Detail, "x", {}, "y");
  EXPECT_TRUE(warning.starts_with("W RKNN: [") && warning.ends_with("] rknn_init: text\n")) << warning;
  EXPECT_TRUE(detail.starts_with("D x: [") && detail.ends_with("] y\n")) << detail;
}

}  // namespace
}  // namespace orknn
