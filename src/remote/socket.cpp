#include "remote/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace orknn::remote {
namespace {
using std::chrono::milliseconds;
constexpr milliseconds kInterruptPeriod{100};

std::mutex interrupt_mutex;
std::shared_ptr<const std::function<bool()>> interrupt_check;

bool is_interrupted() {
  std::shared_ptr<const std::function<bool()>> check;
  {
    const std::lock_guard lock(interrupt_mutex);
    check = interrupt_check;
  }
  return check && *check && (*check)();
}

Status system_error(const std::string& what, int code = errno) { return io_error(what + ": " + std::strerror(code)); }

constexpr const char* kUnreachableHint = "is rknn_server running there, and is the address right?";

Status unreachable(const Address& address, const std::string& why) {
  return io_error("cannot connect to " + address.to_string() + ": " + why).hint(kUnreachableHint);
}

void set_option(int fd, int level, int option, int value) { ::setsockopt(fd, level, option, &value, sizeof value); }

// A peer whose machine was switched off is noticed within about a minute.
void set_up(int fd, bool is_tcp) {
  if (!is_tcp) return;
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Result<sockaddr_un> unix_name(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof name.sun_path)
    return invalid_argument("the path of the Unix socket is too long: '" + path + "'")
        .expected("below " + std::to_string(sizeof name.sun_path) + " bytes");
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  return name;
}

// What a host name and port stand for.
class HostAddresses {
 public:
  HostAddresses(const Address& address, bool passive) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = passive ? AI_PASSIVE : 0;
    problem_ = ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(), std::to_string(address.port).c_str(), &wanted,
                             &list_);
  }
  ~HostAddresses() {
    if (list_) ::freeaddrinfo(list_);
  }
  HostAddresses(const HostAddresses&) = delete;
  HostAddresses& operator=(const HostAddresses&) = delete;
  const addrinfo* list() const { return list_; }
  std::string problem() const { return problem_ ? ::gai_strerror(problem_) : ""; }

 private:
  addrinfo* list_ = nullptr;
  int problem_ = 0;
};

// Milliseconds for poll() up to the deadline, in slices that let interrupts be seen.
int slice(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::clamp(left, milliseconds{0}, kInterruptPeriod).count());
}

Status wait_for(int fd, short events, Deadline deadline, const std::string& peer) {
  for (;;) {
    pollfd waited{fd, events, 0};
    const int ready = ::poll(&waited, 1, slice(deadline));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_error("waiting for " + peer);
    if (is_interrupted()) return Status::error(Code::Fail, "interrupted");
    if (Clock::now() >= deadline) return io_error(peer + " did not reply in time");
  }
}

Result<Socket> connect_to(const sockaddr* name, socklen_t bytes, const Address& address, Deadline deadline) {
  Descriptor fd(::socket(name->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return system_error("no socket");
  if (::connect(fd.get(), name, bytes) != 0) {
    // A Unix socket whose queue is full says so at once: others are being accepted.
    while (errno == EAGAIN && Clock::now() < deadline) {
      std::this_thread::sleep_for(milliseconds(10));
      if (is_interrupted()) return Status::error(Code::Fail, "interrupted");
      if (::connect(fd.get(), name, bytes) == 0) return Socket(std::move(fd), address.to_string());
    }
    if (errno != EINPROGRESS) return unreachable(address, std::strerror(errno));
    Status waited = wait_for(fd.get(), POLLOUT, deadline, address.to_string());
    if (waited.code() == Code::Io) waited.hint(kUnreachableHint);
    ORKNN_TRY(waited);
    int problem = 0;
    socklen_t size = sizeof problem;
    ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem) return unreachable(address, std::strerror(problem));
  }
  set_up(fd.get(), name->sa_family != AF_UNIX);
  return Socket(std::move(fd), address.to_string());
}

// Descriptors that came beside the bytes: the first is the caller's, others are closed.
void take_descriptors(msghdr& message, Descriptor* passed) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      Descriptor owned(fd);
      if (passed && !*passed) *passed = std::move(owned);
    }
  }
}

// Whether a server still listens at this path.
bool is_in_use(const sockaddr_un& name) {
  const Descriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0;
}
}  // namespace

void set_interrupt_check(std::function<bool()> check) {
  const std::lock_guard lock(interrupt_mutex);
  interrupt_check = std::make_shared<const std::function<bool()>>(std::move(check));
}

Result<Address> Address::parse(const std::string& text) {
  Address a;
  const auto wrong = [&] {
    return invalid_argument("invalid address '" + text + "'").expected("HOST, HOST:PORT, [IPv6]:PORT or unix:PATH");
  };
  if (text.starts_with("unix:")) {
    a.path = text.substr(5);
    if (a.path.empty()) return wrong();
    return a;
  }
  std::string port;
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string::npos) return wrong();
    a.host = text.substr(1, end - 1);
    if (end + 1 < text.size()) {
      if (text[end + 1] != ':') return wrong();
      port = text.substr(end + 2);
      if (port.empty()) return wrong();
    }
  } else {
    const size_t colon = text.rfind(':');
    if (colon != std::string::npos && text.find(':') != colon) return wrong();
    a.host = text.substr(0, colon);
    if (colon != std::string::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) return wrong();
    }
  }
  if (port.empty()) return a.host.empty() ? Result<Address>(wrong()) : a;
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), a.port);
  if (problem != std::errc{} || end != port.data() + port.size()) return wrong();
  return a;
}

bool Address::is_local() const {
  if (is_unix() || host == "localhost" || host == "::1") return true;
  in_addr address{};
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24) == 127;
}

std::string Address::to_string() const {
  if (is_unix()) return "unix:" + path;
  const bool is_v6 = host.find(':') != std::string::npos;
  return (is_v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
int Descriptor::release() { return std::exchange(fd_, -1); }

Result<Socket> Socket::connect(const Address& address, Deadline deadline) {
  if (address.is_unix()) {
    ORKNN_TRY_ASSIGN(const sockaddr_un name, unix_name(address.path));
    return connect_to(reinterpret_cast<const sockaddr*>(&name), sizeof name, address, deadline);
  }
  const HostAddresses hosts(address, false);
  Status problem = unreachable(address, hosts.problem().empty() ? "no such host" : hosts.problem());
  for (const addrinfo* h = hosts.list(); h; h = h->ai_next) {
    auto socket = connect_to(h->ai_addr, h->ai_addrlen, address, deadline);
    if (socket) return socket;
    problem = socket.status();
  }
  return problem;
}

Status Socket::wait(short events, Deadline deadline) const { return wait_for(fd_.get(), events, deadline, peer_); }

Status Socket::send(std::span<const std::byte> bytes, Deadline deadline, int passed) {
  while (!bytes.empty()) {
    iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    if (passed >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &passed, sizeof passed);
    }
    const ssize_t n = ::sendmsg(fd_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes = bytes.subspan(static_cast<size_t>(n));
      passed = -1;
    } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      ORKNN_TRY(wait(POLLOUT, deadline));
    } else if (n < 0 && errno != EINTR) {
      return system_error("the connection to " + peer_ + " broke");
    }
  }
  return {};
}

Result<size_t> Socket::receive(std::span<std::byte> into, Deadline deadline, Descriptor* passed) {
  for (;;) {
    iovec part{into.data(), into.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))]{};
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n >= 0) {
      take_descriptors(message, passed);
      return static_cast<size_t>(n);
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      ORKNN_TRY(wait(POLLIN, deadline));
    } else if (errno != EINTR) {
      return system_error("the connection to " + peer_ + " broke");
    }
  }
}

bool Socket::is_closed() const {
  pollfd asked{fd_.get(), POLLRDHUP, 0};
  return ::poll(&asked, 1, 0) > 0;  // an error of the socket counts as well
}

void Socket::shut_down() { ::shutdown(fd_.get(), SHUT_RDWR); }

Result<ListeningSocket> ListeningSocket::open(const Address& address) {
  constexpr int kWaiting = 128;
  const auto problem = [&](int code) { return system_error("cannot listen at " + address.to_string(), code); };
  if (address.is_unix()) {
    ORKNN_TRY_ASSIGN(const sockaddr_un name, unix_name(address.path));
    Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) return problem(errno);
    struct stat old {};
    if (::lstat(address.path.c_str(), &old) == 0 && S_ISSOCK(old.st_mode) && !is_in_use(name)) ::unlink(address.path.c_str());
    if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0) return problem(errno);
    ::chmod(address.path.c_str(), 0600);
    if (::listen(fd.get(), kWaiting) != 0) return problem(errno);
    return ListeningSocket(std::move(fd), address);
  }
  const HostAddresses hosts(address, true);
  if (!hosts.list()) return io_error("cannot listen at " + address.to_string() + ": " + hosts.problem());
  int code = 0;
  for (const addrinfo* h = hosts.list(); h; h = h->ai_next) {
    Descriptor fd(::socket(h->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    if (::bind(fd.get(), h->ai_addr, h->ai_addrlen) != 0 || ::listen(fd.get(), kWaiting) != 0) {
      code = errno;
      continue;
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size);
    Address actual = address;
    actual.port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                                    : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    return ListeningSocket(std::move(fd), actual);
  }
  return problem(code);
}

ListeningSocket::~ListeningSocket() {
  if (fd_ && address_.is_unix()) ::unlink(address_.path.c_str());
}

std::optional<Socket> ListeningSocket::accept(milliseconds patience) {
  pollfd waited{fd_.get(), POLLIN, 0};
  if (::poll(&waited, 1, static_cast<int>(patience.count())) <= 0) return std::nullopt;
  Descriptor fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return std::nullopt;
  set_up(fd.get(), !address_.is_unix());
  return Socket(std::move(fd));
}

Result<SharedMemory> SharedMemory::create(uint64_t bytes) {
  Descriptor fd(::memfd_create("openrknn tensors", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return system_error("no shared memory");
  return attach(std::move(fd), bytes);
}

Result<SharedMemory> SharedMemory::attach(Descriptor fd, uint64_t bytes) {
  constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW;
  struct stat facts {};
  const int seals = fd ? ::fcntl(fd.get(), F_GET_SEALS) : -1;
  if (seals < 0 || (seals & kFixedSize) != kFixedSize || ::fstat(fd.get(), &facts) != 0 || bytes == 0 ||
      static_cast<uint64_t>(facts.st_size) != bytes)
    return invalid_argument("the shared memory is not what was announced")
        .expected("a sealed memfd of " + std::to_string(bytes) + " bytes");
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return system_error("no shared memory");
  SharedMemory memory;
  memory.fd_ = std::move(fd);
  memory.data_ = static_cast<std::byte*>(data);
  memory.size_ = static_cast<size_t>(bytes);
  return memory;
}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  if (this != &other) {
    if (data_) ::munmap(data_, size_);
    fd_ = std::move(other.fd_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}
SharedMemory::~SharedMemory() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace orknn::remote
