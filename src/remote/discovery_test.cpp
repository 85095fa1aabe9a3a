#include "remote/discovery.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "temporary_folder.h"

namespace orknn::remote {
namespace {

// What the words that name no running server mean.
TEST(Discovery, WordsThatAreAddresses) {
  const tests::TemporaryFolder folder;
  ::setenv("ORKNN_DEVICE_DIR", folder.file("none").c_str(), 1);
  const auto meant = [](const std::string& id) -> std::string {
    const auto found = locate_device(id, [](const std::string&) { return Fit::Exact; });
    if (!found) return "error";
    return found->address ? found->address->to_string() : "nobody";
  };
  EXPECT_EQ(meant("192.168.1.5"), "192.168.1.5:8088");
  EXPECT_EQ(meant("192.168.1.5:8090"), "192.168.1.5:8090");
  EXPECT_EQ(meant("board.lan:8090"), "board.lan:8090");
  EXPECT_EQ(meant("board-7:8090"), "board-7:8090");
  EXPECT_EQ(meant("localhost"), "localhost:8088");
  EXPECT_EQ(meant("[::1]:9000"), "[::1]:9000");
  EXPECT_EQ(meant("unix:/run/b.sock"), "unix:/run/b.sock");
  EXPECT_EQ(meant("board-7"), "nobody");
  EXPECT_EQ(meant("board.lan"), "nobody");
  EXPECT_EQ(meant("515e9b401c060c0b"), "nobody");
  EXPECT_EQ(meant("board-7:x"), "nobody");
  EXPECT_EQ(meant("192.168.1.5:99999"), "error");
  ::unsetenv("ORKNN_DEVICE_DIR");
}

}  // namespace
}  // namespace orknn::remote
