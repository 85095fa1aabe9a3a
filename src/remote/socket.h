// Stream sockets with deadlines. Every wait ends: at its deadline, when the other end is gone, or when the program is asked to
// stop.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace orknn::remote {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline constexpr uint16_t kDefaultPort = 8088;

// "127.0.0.1:8088", "board.local", "[::1]:9000", "unix:/run/openrknn/board.sock".
struct Address {
  std::string host;  // empty = every interface
  uint16_t port = kDefaultPort;
  std::string path;  // of a Unix socket; then nothing above counts
  static Result<Address> parse(const std::string& text);
  bool is_unix() const { return !path.empty(); }
  // Whether the other end can only be on this machine.
  bool is_local() const;
  std::string to_string() const;
};

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release();

 private:
  int fd_;
};

// Asked several times a second during waits: true = stop. Python looks for Ctrl-C there. One for the process.
void set_interrupt_check(std::function<bool()> check);

class Socket {
 public:
  // `peer`: what errors call the other end.
  explicit Socket(Descriptor fd, std::string peer = "the other end") : fd_(std::move(fd)), peer_(std::move(peer)) {}
  static Result<Socket> connect(const Address& address, Deadline deadline);

  // Everything, with `passed` (a descriptor, or -1) beside the first byte.
  Status send(std::span<const std::byte> bytes, Deadline deadline, int passed = -1);
  // At least one byte into `into`; 0 when the other end is gone. A descriptor that came along is put into `passed`, if the caller
  // wants one; without a caller who does, it is closed.
  Result<size_t> receive(std::span<std::byte> into, Deadline deadline, Descriptor* passed = nullptr);
  // Whether the other end has closed the connection, without waiting; bytes that it sent before may still be there.
  bool is_closed() const;
  // Ends both directions: whoever waits on it wakes up.
  void shut_down();
  int fd() const { return fd_.get(); }

 private:
  Status wait(short events, Deadline deadline) const;
  Descriptor fd_;
  std::string peer_;
};

// Accepts connections. A Unix socket that a dead process left behind is replaced.
class ListeningSocket {
 public:
  static Result<ListeningSocket> open(const Address& address);
  ~ListeningSocket();
  ListeningSocket(ListeningSocket&&) noexcept = default;
  // Nothing when there was no connection within `patience`.
  std::optional<Socket> accept(std::chrono::milliseconds patience);
  // With the port that the system chose where 0 was asked for.
  const Address& address() const { return address_; }

 private:
  ListeningSocket(Descriptor fd, Address address) : fd_(std::move(fd)), address_(std::move(address)) {}
  Descriptor fd_;
  Address address_;
};

// Memory that two processes see. It can neither shrink nor grow, so reading it never fails.
class SharedMemory {
 public:
  SharedMemory() = default;
  static Result<SharedMemory> create(uint64_t bytes);
  // Of a descriptor that somebody sent: refused unless it is such memory of exactly `bytes`.
  static Result<SharedMemory> attach(Descriptor fd, uint64_t bytes);
  SharedMemory(SharedMemory&& other) noexcept { *this = std::move(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  ~SharedMemory();
  std::span<std::byte> bytes() const { return {data_, size_}; }
  int fd() const { return fd_.get(); }

 private:
  Descriptor fd_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace orknn::remote
