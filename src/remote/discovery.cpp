#include "remote/discovery.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/files.h"
#include "remote/device.h"

extern char** environ;

namespace orknn::remote {
namespace {
constexpr std::string_view kEnding = ".device";

// Only this user may write there: what lies in it decides where models are sent.
Result<std::string> folder(bool create) {
  std::string path;
  if (const char* chosen = std::getenv("ORKNN_DEVICE_DIR"); chosen && *chosen) {
    path = chosen;
  } else if (const char* runtime = std::getenv("XDG_RUNTIME_DIR"); runtime && *runtime) {
    path = std::string(runtime) + "/openrknn";
  } else {
    path = "/tmp/openrknn-" + std::to_string(::getuid());
  }
  if (create) ::mkdir(path.c_str(), 0700);
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return io_error("no folder of devices: '" + path + "'");
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != ::getuid() || (facts.st_mode & 0022))
    return io_error("the folder of devices '" + path + "' is not this user's alone").hint("remove it, or set ORKNN_DEVICE_DIR");
  return path;
}

bool is_alive(int pid) { return pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM); }

std::optional<Announcement> read_announcement(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  Announcement a;
  a.name = name;
  std::string line;
  int pid = 0;
  while (std::getline(file, line)) {
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "platform") a.platform = value;
    if (key == "mode") a.mode = value == "ntb" ? Mode::Ntb : Mode::Adb;
    if (key == "pid") std::from_chars(value.data(), value.data() + value.size(), pid);
    if (key == "address") {
      auto address = Address::parse(value);
      if (!address) return std::nullopt;
      a.address = *address;
    }
  }
  if (!is_alive(pid) || (a.address.host.empty() && !a.address.is_unix())) return std::nullopt;
  return a;
}

// What a program prints; nothing when it cannot be run, fails, or needs too long.
std::optional<std::string> output_of(std::vector<std::string> words) {
  constexpr std::chrono::seconds kPatience{5};
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const Descriptor read_end(ends[0]);
  Descriptor write_end(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, write_end.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int problem = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return std::nullopt;
  write_end = Descriptor();
  std::string text;
  const Deadline deadline = Clock::now() + kPatience;
  bool is_whole = false;
  while (Clock::now() < deadline) {
    pollfd waited{read_end.get(), POLLIN, 0};
    if (::poll(&waited, 1, 100) <= 0) continue;
    char buffer[4096];
    const ssize_t n = ::read(read_end.get(), buffer, sizeof buffer);
    if (n <= 0) {
      is_whole = n == 0;
      break;
    }
    text.append(buffer, static_cast<size_t>(n));
  }
  if (!is_whole) ::kill(child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!is_whole || !WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return text;
}

std::string board_port() { return "tcp:" + std::to_string(kDefaultPort); }

// The number that `text` begins with; 0 when it is no port.
uint16_t port_of(std::string_view text) {
  uint16_t port = 0;
  return std::from_chars(text.data(), text.data() + text.size(), port).ec == std::errc{} ? port : uint16_t{0};
}

// Ports that were forwarded before stay until the device goes: without looking for them, every connection would leave one more.
uint16_t forwarded_port(const std::string& serial) {
  const auto text = output_of({"adb", "forward", "--list"});
  std::istringstream lines(text.value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string device, here, there;
    if (words >> device >> here >> there && device == serial && there == board_port() && here.starts_with("tcp:"))
      return port_of(std::string_view(here).substr(4));
  }
  return 0;
}

// A port of this machine that leads to the board's server.
Result<Address> forward(const std::string& serial) {
  Address address{.host = "127.0.0.1", .port = forwarded_port(serial), .path = {}};
  if (address.port == 0) address.port = port_of(output_of({"adb", "-s", serial, "forward", "tcp:0", board_port()}).value_or(""));
  if (address.port == 0)
    return io_error("adb cannot forward a port to the device '" + serial + "'").hint("`adb devices` shows its state");
  return address;
}

// IP, IP:PORT, HOST:PORT or unix:PATH. Other words may be the name of a server that is not running.
bool looks_like_an_address(const std::string& id) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (id.starts_with("unix:") || id.starts_with('[') || id == "localhost") return true;
  const size_t colon = id.rfind(':');
  if (colon != std::string::npos && colon > 0 && colon + 1 < id.size())
    return std::all_of(id.begin() + static_cast<std::ptrdiff_t>(colon) + 1, id.end(), is_digit);
  return id.find('.') != std::string::npos &&
         std::all_of(id.begin(), id.end(), [&](unsigned char c) { return is_digit(c) || c == '.'; });
}

// adb accepts connections to a forwarded port whether or not somebody listens on the device: only a reply tells.
Answer ask_board(const Address& forwarded) {
  constexpr std::chrono::seconds kPatience{2};
  return ask_device(forwarded, kPatience);
}

std::string no_server_on(const std::string& serial, const Status& problem) {
  return "the adb device '" + serial + "' has no rknn_server: " + problem.message();
}

Result<Location> only_device(const FitOf& fit_of) {
  std::vector<std::pair<std::string, Address>> fitting;
  Fit best = Fit::Family;
  const auto consider = [&](Fit fit, const std::string& name, const Address& address) {
    if (fit < best) return;
    if (fit > best) fitting.clear();
    best = fit;
    fitting.emplace_back(name, address);
  };
  for (const Announcement& a : announced_servers()) consider(fit_of(a.platform), a.name, a.address);
  std::string why;
  for (const std::string& serial : adb_serials()) {
    const Result<Address> address = forward(serial);
    const Answer answer = address ? ask_board(*address) : Answer{.problem = address.status()};
    if (!answer.is_server)
      why += (why.empty() ? "" : "; ") + no_server_on(serial, answer.problem);
    else  // one that refuses to say counts: its error is the user's
      consider(answer.platform.empty() ? Fit::Family : fit_of(answer.platform), serial, *address);
  }
  if (fitting.empty()) return Location{.why = why};
  if (fitting.size() == 1) return Location{.address = fitting[0].second};
  std::string names;
  for (const auto& [name, address] : fitting) names += (names.empty() ? "" : ", ") + name;
  return invalid_argument("several devices are connected, device_id must name one").expected("one of " + names);
}
}  // namespace

bool is_device_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name[0] != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

Result<AnnouncedServer> AnnouncedServer::publish(const Announcement& a) {
  if (!is_device_name(a.name))
    return invalid_argument("invalid name '" + a.name + "' of a device").expected("letters, digits, '-', '_' and '.'");
  for (const Announcement& other : announced_servers())
    if (other.name == a.name)
      return invalid_argument("there is a device with the name '" + a.name + "' already").hint("choose another --name");
  ORKNN_TRY_ASSIGN(const std::string path, folder(true));
  const std::string file = path + "/" + a.name + std::string(kEnding);
  ORKNN_TRY(write_file_atomically(file, [&](FileWriter& out) {
    return out.write("platform=" + a.platform + "\nmode=" + (a.mode == Mode::Ntb ? "ntb" : "adb") +
                     "\naddress=" + a.address.to_string() + "\npid=" + std::to_string(::getpid()) + "\n");
  }));
  return AnnouncedServer(file);
}

AnnouncedServer::~AnnouncedServer() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

std::vector<Announcement> announced_servers() {
  std::vector<Announcement> found;
  const Result<std::string> path = folder(false);
  if (!path) return found;
  DIR* files = ::opendir(path->c_str());
  if (!files) return found;
  while (const dirent* entry = ::readdir(files)) {
    const std::string name = entry->d_name;
    if (!name.ends_with(kEnding) || name.size() == kEnding.size()) continue;
    if (auto a = read_announcement(*path + "/" + name, name.substr(0, name.size() - kEnding.size())))
      found.push_back(std::move(*a));
  }
  ::closedir(files);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

std::vector<std::string> adb_serials() {
  std::vector<std::string> serials;
  const auto text = output_of({"adb", "devices"});
  if (!text) return serials;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string serial, state;
    if (words >> serial >> state && state == "device") serials.push_back(serial);
  }
  return serials;
}

DeviceList list_devices() {
  DeviceList list{adb_serials(), {}};
  for (const Announcement& a : announced_servers()) (a.mode == Mode::Ntb ? list.ntb : list.adb).push_back(a.name);
  return list;
}

std::string device_block(const DeviceList& devices, bool as_python_list) {
  const std::string stars(25, '*');
  if (devices.adb.empty() && devices.ntb.empty()) return stars + "\nNone devices connected.\n" + stars + "\n";
  std::string text;
  const auto add = [&](const char* mode, const std::vector<std::string>& ids) {
    if (ids.empty()) return;
    text += stars + "\nall device(s) with " + mode + " mode:\n";
    if (as_python_list) text += "[";
    for (size_t i = 0; i < ids.size(); ++i) text += as_python_list ? (i ? ", '" : "'") + ids[i] + "'" : ids[i] + "\n";
    if (as_python_list) text += "]\n";
    text += stars + "\n";
  };
  add("adb", devices.adb);
  add("ntb", devices.ntb);
  return text;
}

std::string device_of_environment() {
  const char* name = std::getenv("ORKNN_DEVICE");
  return name ? name : "";
}

Result<Location> locate_device(const std::string& id, const FitOf& fit_of) {
  const std::string wanted = id.empty() ? device_of_environment() : id;
  if (wanted.empty()) return only_device(fit_of);
  for (const Announcement& a : announced_servers())
    if (a.name == wanted) return Location{.address = a.address};
  const std::vector<std::string> serials = adb_serials();
  if (std::find(serials.begin(), serials.end(), wanted) != serials.end()) {
    ORKNN_TRY_ASSIGN(Address address, forward(wanted));
    const Answer answer = ask_board(address);
    if (!answer.is_server) return Location{.why = no_server_on(wanted, answer.problem)};
    return Location{.address = std::move(address)};
  }
  if (!looks_like_an_address(wanted)) return Location{};
  ORKNN_TRY_ASSIGN(Address address, Address::parse(wanted));
  return Location{.address = std::move(address)};
}

Result<Location> find_device(const std::string& id, const FitOf& fit_of) {
  ORKNN_TRY_ASSIGN(Location found, locate_device(id, fit_of));
  if (found.address) {
    ORKNN_TRY_ASSIGN(const DeviceOptions options, device_options_of_environment());
    const auto socket = Socket::connect(*found.address, Clock::now() + options.connect_timeout);
    if (!socket && socket.status().code() != Code::Io) return socket.status();
    if (!socket) found = {.why = socket.status().message()};
  }
  const std::string named = id.empty() ? device_of_environment() : "";
  if (!found.address && !named.empty())
    return io_error("the device '" + named + "', which ORKNN_DEVICE names, is not in reach" +
                    (found.why.empty() ? "" : ": " + found.why))
        .hint("ORKNN_DEVICE is the name of a server, an adb serial or HOST:PORT; unset it to run here");
  return found;
}

}  // namespace orknn::remote
