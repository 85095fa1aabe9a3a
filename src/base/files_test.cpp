// Files are written whole or not at all.
#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "base/scratch_file.h"

namespace orknn {
namespace {
namespace fs = std::filesystem;

class Folder : public testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() / ("orknn_files_" + std::to_string(::getpid()));
    fs::create_directories(path_);
  }
  void TearDown() override { fs::remove_all(path_); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(path_)) all.insert(entry.path().filename().string());
    return all;
  }
  fs::path path_;
};
using WriteFile = Folder;
using MapFile = Folder;

TEST_F(WriteFile, MakesAndReplaces) {
  for (const char* text : {"first", "second, longer"}) {
    ASSERT_TRUE(write_file_atomically(file("a"), [&](FileWriter& out) { return out.write(text); }));
    EXPECT_EQ(content("a"), text);
    EXPECT_EQ(names(), std::set<std::string>{"a"});
  }
  struct stat info {};
  ASSERT_EQ(::stat(file("a").c_str(), &info), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0666 & ~mask);
}

TEST_F(WriteFile, TakesTheLongestName) {
  const std::string name(255, 'n');
  for (const char* text : {"first", "second"}) {
    const Status s = write_file_atomically(file(name), [&](FileWriter& out) { return out.write(text); });
    ASSERT_TRUE(s) << s.to_string();
    EXPECT_EQ(content(name), text);
  }
}

TEST_F(WriteFile, AFailureLeavesTheOldFile) {
  ASSERT_TRUE(write_file_atomically(file("a"), [](FileWriter& out) { return out.write("old"); }));
  EXPECT_FALSE(write_file_atomically(file("a"), [](FileWriter& out) {
    ORKNN_TRY(out.write(std::string(1 << 20, 'x')));
    return io_error("no more");
  }));
  EXPECT_EQ(content("a"), "old");
  EXPECT_EQ(names(), std::set<std::string>{"a"});
}

TEST_F(WriteFile, NothingIsThereUntilItIsWhole) {
  const int fd = ::open(path_.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "the file system has no nameless files";
  ::close(fd);
  std::set<std::string> meanwhile;
  ASSERT_TRUE(write_file_atomically(file("a"), [&](FileWriter& out) {
    ORKNN_TRY(out.write(std::string(1 << 20, 'x')));
    meanwhile = names();
    return Status();
  }));
  EXPECT_TRUE(meanwhile.empty()) << *meanwhile.begin();
}

TEST_F(WriteFile, GoesThroughLinksAndRefusesWhatIsNoFile) {
  ASSERT_TRUE(write_file_atomically(file("a"), [](FileWriter& out) { return out.write("old"); }));
  fs::create_symlink("a", path_ / "link");
  const fs::perms mode = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  fs::permissions(file("a"), mode);
  ASSERT_TRUE(write_file_atomically(file("link"), [](FileWriter& out) { return out.write("new"); }));
  EXPECT_EQ(fs::status(file("a")).permissions(), mode) << "a file that is replaced keeps its mode";
  fs::create_symlink("later", file("ahead"));
  ASSERT_TRUE(write_file_atomically(file("ahead"), [](FileWriter& out) { return out.write("new"); }));
  EXPECT_TRUE(fs::is_symlink(file("ahead")) && fs::is_regular_file(file("later"))) << "a link to nothing yet is written through";
  EXPECT_EQ(content("a"), "new");
  EXPECT_TRUE(fs::is_symlink(path_ / "link"));
  EXPECT_FALSE(write_file_atomically(path_.string(), [](FileWriter& out) { return out.write("x"); }));
  EXPECT_FALSE(write_file_atomically(file("none/a"), [](FileWriter& out) { return out.write("x"); }));
}

// Both kinds of temporary file, in every case of the destination. Another thread makes files all the while: were the umask
// changed, even for a moment, some of them would be open to everybody.
TEST_F(WriteFile, TheModeIsFoundWithoutTouchingTheUmask) {
  constexpr mode_t kMask = 027, kWanted = 0640;
  const mode_t before = ::umask(kMask);
  std::atomic<int> made{0}, wrong{0};
  std::jthread other([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      const int fd = ::open(file("other").c_str(), O_CREAT | O_EXCL | O_WRONLY, 0666);
      struct stat info {};
      if (fd < 0 || ::fstat(fd, &info) != 0 || (info.st_mode & 0777) != kWanted) ++wrong;
      ::close(fd);
      ::unlink(file("other").c_str());
      ++made;
    }
  });
  const auto mode_of = [&](const char* name) {
    struct stat info {};
    return ::stat(file(name).c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  };
  for (int i = 0; i < 100; ++i) {
    for (const auto create : {&ScratchFile::create, &ScratchFile::create_named}) {
      fs::remove(file("a"));
      for (bool replaces : {false, true}) {
        auto scratch = create(path_.string());
        ASSERT_TRUE(scratch) << scratch.status().to_string();
        ASSERT_EQ(::write(scratch->descriptor(), "text", 4), 4);
        const Status s = scratch->become(file("a"));
        ASSERT_TRUE(s) << s.to_string();
        ASSERT_EQ(mode_of("a"), kWanted) << replaces;
      }
      ASSERT_TRUE(create(path_.string())) << "and vanishes again";
    }
  }
  while (made < 100) std::this_thread::yield();
  other.request_stop();
  other.join();
  ::umask(before);
  EXPECT_EQ(wrong, 0) << "of " << made;
  EXPECT_EQ(names(), std::set<std::string>{"a"});
  EXPECT_EQ(content("a"), "text");
}

TEST_F(MapFile, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  const auto opened = MappedFile::open(file("pipe"));
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.status().to_string().find("not a regular file"), std::string::npos);
}

TEST_F(MapFile, ACopiedFileOutlivesWhatHappensToIt) {
  ASSERT_TRUE(write_file_atomically(file("a"), [](FileWriter& out) { return out.write(std::string(100'000, 'x')); }));
  const auto opened = MappedFile::open(file("a"));
  ASSERT_TRUE(opened) << opened.status().to_string();
  fs::resize_file(file("a"), 10);
  EXPECT_TRUE((*opened)->check());
  const auto bytes = (*opened)->bytes();
  EXPECT_EQ(bytes.size(), 100'000u);
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{'x'}; }));
  EXPECT_EQ(MappedFile::holding(bytes.data()), nullptr);
}

TEST_F(MapFile, AMappedFileThatWasShortenedIsToldBeforeItIsRead) {
  std::ofstream(file("large")) << "begin";
  fs::resize_file(file("large"), MappedFile::kCopiedBytes + 1);  // sparse
  const auto opened = MappedFile::open(file("large"));
  ASSERT_TRUE(opened) << opened.status().to_string();
  EXPECT_EQ(MappedFile::holding((*opened)->bytes().data() + 4711), *opened);
  EXPECT_TRUE((*opened)->check());
  fs::resize_file(file("large"), 10);
  const Status s = (*opened)->check();
  EXPECT_FALSE(s);
  EXPECT_NE(s.to_string().find("shortened"), std::string::npos) << s.to_string();
  // Another file by the same name is no harm: the mapped one keeps its bytes.
  fs::remove(file("large"));
  std::ofstream(file("large")) << "other";
  EXPECT_TRUE((*opened)->check());
}

// Everything beyond the new end is lost, also what was read before; the process lives on and the file reports it.
TEST_F(MapFile, AMappedFileThatIsShortenedWhileItIsReadGivesZerosAndReportsIt) {
  fs::remove(file("large"));
  std::ofstream(file("large")) << "begin";
  fs::resize_file(file("large"), MappedFile::kCopiedBytes + 1);
  const auto opened = MappedFile::open(file("large"));
  const auto other = MappedFile::open(file("large"));
  ASSERT_TRUE(opened && other);
  const std::span<const std::byte> bytes = (*opened)->bytes();
  EXPECT_EQ(bytes[0], std::byte{'b'});
  EXPECT_EQ(bytes.back(), std::byte{0});
  fs::resize_file(file("large"), 0);
  std::vector<std::jthread> readers;  // all find the same pages missing
  std::atomic<int> nonzero{0};
  for (int i = 0; i < 3; ++i)
    readers.emplace_back([&] {
      for (size_t at = 0; at < bytes.size(); at += 1 << 20) nonzero += bytes[at] != std::byte{0};
    });
  readers.clear();
  EXPECT_EQ(nonzero, 0);
  fs::resize_file(file("large"), MappedFile::kCopiedBytes + 1);
  EXPECT_NE((*opened)->check().to_string().find("was shortened while it was read"), std::string::npos)
      << "although it has its old length again";
  EXPECT_TRUE((*other)->check()) << "nobody read this one meanwhile";
}

// What a process does that has a handler of its own and loses a page of a file of ours, then one of a file that it mapped itself.
// Needs a process without our handler: death tests of this style begin anew.
void lose_pages(const std::string& path, void (*install_handler)()) {
  install_handler();
  std::ofstream(path) << "begin";
  fs::resize_file(path, MappedFile::kCopiedBytes + 1);
  const auto ours = MappedFile::open(path);
  const int fd = ::open(path.c_str(), O_RDONLY);
  const auto* theirs = static_cast<const volatile char*>(::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0));
  fs::resize_file(path, 0);
  const bool survived = ours && (*ours)->bytes()[4711] == std::byte{0} && !(*ours)->check();
  fs::remove_all(fs::path(path).parent_path());
  std::fputs(survived ? "ours is mended" : "ours is wrong", stderr);
  ::_exit(theirs[0] ? 1 : 2);
}
constexpr int kTheirHandler = 7;  // its exit code

using BusErrorDeathTest = Folder;
TEST_F(BusErrorDeathTest, OfOthersHasTheEffectThatItHadWithoutUs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto none = [] { ::signal(SIGBUS, SIG_DFL); };
  const auto ignored = [] { ::signal(SIGBUS, SIG_IGN); };
  const auto simple = [] { ::signal(SIGBUS, [](int) { ::_exit(kTheirHandler); }); };
  const auto full = [] {
    struct sigaction action {};
    action.sa_sigaction = [](int, siginfo_t* info, void*) { ::_exit(info->si_code == BUS_ADRERR ? kTheirHandler : 1); };
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
  };
  EXPECT_EXIT(lose_pages(file("a"), none), testing::KilledBySignal(SIGBUS), "ours is mended");
  EXPECT_EXIT(lose_pages(file("a"), ignored), testing::KilledBySignal(SIGBUS), "ours is mended");
  EXPECT_EXIT(lose_pages(file("a"), simple), testing::ExitedWithCode(kTheirHandler), "ours is mended");
  EXPECT_EXIT(lose_pages(file("a"), full), testing::ExitedWithCode(kTheirHandler), "ours is mended");
}

TEST_F(MapFile, CopiesTogetherStayWithinTheirLimit) {
  std::ofstream(file("half")) << "begin";
  fs::resize_file(file("half"), MappedFile::kCopiedBytes / 2);
  std::vector<std::shared_ptr<const MappedFile>> kept;
  for (int i = 0; i < 4; ++i) {
    auto opened = MappedFile::open(file("half"));
    ASSERT_TRUE(opened) << opened.status().to_string();
    kept.push_back(*opened);
  }
  EXPECT_EQ(MappedFile::holding(kept[3]->bytes().data()), kept[3]) << "mapped";
  kept.clear();
  const auto again = MappedFile::open(file("half"));
  ASSERT_TRUE(again);
  EXPECT_EQ(MappedFile::holding((*again)->bytes().data()), nullptr) << "copied";
}
}  // namespace
}  // namespace orknn
