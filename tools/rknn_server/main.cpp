// rknn_server: offers a simulated board to clients (docs/devices.md).
#include <signal.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/files.h"
#include "base/log.h"
#include "base/stderr_lines.h"
#include "platform/platforms.h"
#include "remote/cipher.h"
#include "remote/discovery.h"
#include "server/server.h"
#include "server/status_page.h"

using namespace orknn;

namespace {

// People look for this text in the program's file, so it must be there in one piece.
constexpr const char kVersionText[] = "rknn_server version: " ORKNN_VERSION;

struct Options {
  std::string platform, name, key_file, new_key, http, models, mode = "adb";
  std::vector<std::string> addresses;
  size_t max_clients = 64, max_models = 256, max_model_mb = 4096, max_message_mb = 1024;
  bool announce = true;
};

int fail(const Status& status) {
  std::fprintf(stderr, "E rknn_server: %s\n", status.to_string().c_str());
  return 1;
}

// RKNN_SERVER_LOGLEVEL: 0 errors only (the default), 1 warnings, 2 who comes and goes, 5 everything.
void set_up_log() {
  const char* text = std::getenv("RKNN_SERVER_LOGLEVEL");
  const int level = text ? std::clamp(std::atoi(text), 0, static_cast<int>(LogLevel::Trace)) : 0;
  set_log_level(static_cast<LogLevel>(level));
  set_log_sink([](LogLevel l, std::string_view tag, std::string_view line) {
    // The runtime's lines are those of a C program: only the server's own have its name.
    constexpr std::string_view kOwn = "rknn_server";
    const std::string text = tag == kOwn ? log_line(l, kOwn, {}, line) : log_line(l, "RKNN", tag, line);
    // A client's thread may write while others wait for their results: no reader of the log may hold them up.
    write_stderr_lines(text, std::chrono::milliseconds(100));
  });
}

Status make_key(const std::string& path) {
  const remote::Random random = remote::make_random();
  std::string text;
  for (const std::byte b : random) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(b));
    text += digits;
  }
  const mode_t before = ::umask(0077);  // no other user may read it, not even for a moment
  Status status = write_file_atomically(path, [&](FileWriter& out) { return out.write(text + "\n"); });
  ::umask(before);
  return status;
}

// Until the process is asked to end.
void wait_for_the_end(const sigset_t& signals) {
  int caught = 0;
  ::sigwait(&signals, &caught);
}

Status run(const Options& o, const sigset_t& signals) {
  ORKNN_TRY_ASSIGN(const platform::Platform* chip, platform::get(o.platform));
  if (!chip->features.board_connection) return unsupported(std::string(chip->name) + " takes no connections");
  remote::SharedKey key;
  if (!o.key_file.empty()) {
    ORKNN_TRY_ASSIGN(key, remote::SharedKey::from_file(o.key_file));
  }
  std::vector<remote::Address> addresses;
  for (const std::string& text : o.addresses) {
    ORKNN_TRY_ASSIGN(remote::Address address, remote::Address::parse(text));
    addresses.push_back(std::move(address));
  }
  server::Limits limits;
  limits.clients = o.max_clients;
  limits.models = o.max_models;
  limits.model_bytes = uint64_t{o.max_model_mb} << 20;
  limits.message_bytes = uint64_t{o.max_message_mb} << 20;
  const std::string name = o.name.empty() ? std::string(chip->name) : o.name;
  server::Board board(*chip, name, limits, o.models);
  ORKNN_TRY_ASSIGN(const std::unique_ptr<server::Server> server, server::Server::start(board, addresses, key));
  std::unique_ptr<server::StatusPage> page;
  if (!o.http.empty()) {
    ORKNN_TRY_ASSIGN(const remote::Address address, remote::Address::parse(o.http));
    ORKNN_TRY_ASSIGN(page, server::StatusPage::start(address, board, *server));
  }
  std::optional<remote::AnnouncedServer> announced;
  if (o.announce) {
    const remote::Mode mode = o.mode == "ntb" ? remote::Mode::Ntb : remote::Mode::Adb;
    ORKNN_TRY_ASSIGN(remote::AnnouncedServer a,
                     remote::AnnouncedServer::publish({name, std::string(chip->name), mode, server->addresses().front()}));
    announced.emplace(std::move(a));
  }
  std::printf("%s\n%s '%s' at", kVersionText, std::string(chip->name).c_str(), name.c_str());
  for (const remote::Address& a : server->addresses()) std::printf(" %s", a.to_string().c_str());
  if (page) std::printf(", status page at http://%s/", page->address().to_string().c_str());
  std::printf("\n");
  std::fflush(stdout);
  wait_for_the_end(signals);
  return {};
}
}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("Offers a simulated board to RKNN programs (docs/devices.md).", "rknn_server");
  app.set_version_flag("--version", kVersionText);
  app.add_option("--platform", o.platform, "chip of the board, for example " + std::string(platform::default_platform().name));
  app.add_option("--listen", o.addresses, "HOST:PORT or unix:PATH; several are possible")->default_str("127.0.0.1:8088");
  app.add_option("--name", o.name, "what clients call the board (default: the chip)");
  app.add_option("--mode", o.mode, "list that shows the board")->check(CLI::IsMember({"adb", "ntb"}))->capture_default_str();
  app.add_option("--key", o.key_file, "file with the key that clients must know");
  app.add_option("--make-key", o.new_key, "write a new key to this file and end");
  app.add_option("--http", o.http, "address of the status page");
  app.add_option("--models", o.models, "folder of models that clients may fetch by name");
  app.add_option("--max-clients", o.max_clients)->capture_default_str();
  app.add_option("--max-models", o.max_models)->capture_default_str();
  app.add_option("--max-model-mb", o.max_model_mb, "of all models together")->capture_default_str();
  app.add_option("--max-message-mb", o.max_message_mb, "of one message: all inputs, all results")->capture_default_str();
  app.add_flag("!--no-announce", o.announce, "programs of this machine do not find the board by name");
  CLI11_PARSE(app, argc, argv);
  if (!o.new_key.empty()) {
    const Status status = make_key(o.new_key);
    return status ? 0 : fail(status);
  }
  if (o.platform.empty()) return fail(invalid_argument("--platform is missing").hint("rknn_server --help"));
  if (o.addresses.empty()) o.addresses = {"127.0.0.1:" + std::to_string(remote::kDefaultPort)};
  // Blocked before any thread begins, so that sigwait gets them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int s : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, s);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  set_up_log();
  const Status status = run(o, signals);
  return status ? 0 : fail(status);
}
