// Which devices are in reach: servers that announce themselves on this machine, and boards at adb.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "remote/socket.h"

namespace orknn::remote {

enum class Mode { Adb, Ntb };  // in which list users see a device

struct Announcement {
  std::string name, platform;
  Mode mode = Mode::Adb;
  Address address;
};

// A file that says where a server is, until the object is destroyed. Files are in the folder ORKNN_DEVICE_DIR, else in one that
// belongs to the user alone.
class AnnouncedServer {
 public:
  static Result<AnnouncedServer> publish(const Announcement& announcement);
  AnnouncedServer(AnnouncedServer&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  AnnouncedServer& operator=(AnnouncedServer&&) = delete;
  ~AnnouncedServer();

 private:
  explicit AnnouncedServer(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Letters, digits, '-', '_' and '.', and no '.' in front.
bool is_device_name(const std::string& name);

// Servers whose process lives, by name.
std::vector<Announcement> announced_servers();
// Serials that the `adb` of this machine lists as ready; none without adb.
std::vector<std::string> adb_serials();

struct DeviceList {
  std::vector<std::string> adb, ntb;
};
DeviceList list_devices();
// The block that users know; `as_python_list`: ids as Toolkit1 prints them.
std::string device_block(const DeviceList& devices, bool as_python_list);

struct Location {
  std::optional<Address> address = {};  // nothing = there is no such device
  std::string why = {};                 // then: what was tried, where there is something to say
};
// How well a device's chip suits a model.
enum class Fit : uint8_t { None, Family, Exact };
using FitOf = std::function<Fit(const std::string& platform)>;

// The device that ORKNN_DEVICE names; empty = it names none.
std::string device_of_environment();
// Where the device `id` is: an announced name, an adb serial (its port is forwarded), or an address. Without an id: ORKNN_DEVICE,
// else the only device whose chip fits best: the model's own chip before others of its family. Boards at adb are asked for their
// chip: those without a server are no devices. An error when there are several.
Result<Location> locate_device(const std::string& id, const FitOf& fit_of);
// The same, and somebody accepts connections there. What ORKNN_DEVICE names must be in reach: Code::Io when it is not.
Result<Location> find_device(const std::string& id, const FitOf& fit_of);

}  // namespace orknn::remote
