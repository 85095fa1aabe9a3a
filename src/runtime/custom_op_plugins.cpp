#include "runtime/custom_op_plugins.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/log.h"
#include "runtime/custom_op_callbacks.h"

namespace orknn::runtime {
namespace {
#if defined(__ANDROID__) && defined(__LP64__)
constexpr const char* kSystemFolder = "/vendor/lib64";
#elif defined(__ANDROID__)
constexpr const char* kSystemFolder = "/vendor/lib";
#else
constexpr const char* kSystemFolder = "/usr/lib/rknpu/op_plugins";
#endif

std::vector<std::string> folders() {
  std::vector<std::string> list;
  const char* given = secure_getenv("OPENRKNN_OP_PLUGINS");
  for (std::string_view rest = given ? given : ""; !rest.empty();) {
    const size_t end = std::min(rest.find(':'), rest.size());
    if (end > 0) list.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  list.emplace_back(kSystemFolder);
  return list;
}

// Plug-ins of a folder, sorted by name; nothing when it cannot be read.
std::optional<std::vector<std::string>> plugins_in(const std::string& folder) {
  std::error_code problem;
  std::filesystem::directory_iterator entries(folder, problem);
  if (problem) return std::nullopt;
  std::vector<std::string> paths;
  for (; entries != std::filesystem::directory_iterator(); entries.increment(problem)) {
    if (problem) break;
    const std::string name = entries->path().filename().string();
    if (name.starts_with("librkcst_") && name.ends_with(".so")) paths.push_back(entries->path().string());
  }
  std::ranges::sort(paths);
  return paths;
}

struct Plugin {
  const rknn_custom_op* op = nullptr;  // static storage of the library; nullptr = it is not usable
  std::string problem;
};

Plugin open_plugin(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return {nullptr, why ? why : "it cannot be loaded"};
  }
  const auto entry = reinterpret_cast<get_custom_op_func>(dlsym(handle, "get_rknn_custom_op"));
  const rknn_custom_op* op = nullptr;
  try {
    if (entry) op = entry();
  } catch (...) {
    return {nullptr, "get_rknn_custom_op threw an exception"};
  }
  if (op) return {op, {}};
  dlclose(handle);
  return {nullptr, entry ? "get_rknn_custom_op returned NULL" : "it has no function get_rknn_custom_op"};
}

// The plug-in of a file, opened once per process; one that could not be used is tried again.
Plugin plugin_of(const std::string& path) {
  static std::mutex mutex;
  static auto* const opened = new std::map<std::string, Plugin>;
  const std::lock_guard lock(mutex);
  const auto it = opened->find(path);
  if (it != opened->end()) return it->second;
  const Plugin plugin = open_plugin(path);
  if (plugin.op) opened->emplace(path, plugin);
  return plugin;
}

void use_plugin(const std::string& path, CustomOps& ops) {
  const auto warn = [&](const std::string& why) {
    log(LogLevel::Warn, "rknn_init", "The plug-in '" + path + "' is not used: " + why + "!");
  };
  const Plugin plugin = plugin_of(path);
  if (!plugin.op) return warn(plugin.problem);
  const std::string type(plugin.op->op_type, strnlen(plugin.op->op_type, sizeof plugin.op->op_type));
  if (std::ranges::count(ops.missing(), type) == 0) return;
  Registration made = register_callbacks(*plugin.op, ops.nodes());
  if (!made.op) return warn(made.problem);
  ops.serve(type, std::move(made.op));
  log(LogLevel::Info, "rknn_init", "The custom operator '" + type + "' comes from '" + path + "'");
}
}  // namespace

void load_plugins(Session& session) {
  CustomOps& ops = session.custom_ops();
  std::string searched;
  for (const std::string& folder : ops.missing().empty() ? std::vector<std::string>{} : folders()) {
    const auto paths = plugins_in(folder);
    std::string names;
    for (const std::string& path : paths.value_or(std::vector<std::string>{})) {
      use_plugin(path, ops);
      names += (names.empty() ? "" : ", ") + path.substr(path.find_last_of('/') + 1);
    }
    searched += (searched.empty() ? "librkcst_*.so in " : ", in ") + folder + " (" +
                (!paths          ? "no such folder"
                 : names.empty() ? "none"
                                 : names) +
                ")";
  }
  ops.set_searched(std::move(searched));
}

}  // namespace orknn::runtime
