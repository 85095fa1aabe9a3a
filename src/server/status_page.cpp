#include "server/status_page.h"

#include <algorithm>
#include <cstdio>
#include <list>

#include "base/utf8.h"
#include "base/version.h"

namespace orknn::server {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string escaped(const std::string& text, bool json) {
  std::string out;
  for (const char c : printable(text)) {
    if (json && (c == '"' || c == '\\'))
      out += std::string("\\") + c;
    else if (json && static_cast<unsigned char>(c) < 0x20)
      out += ' ';
    else if (!json && c == '<')
      out += "&lt;";
    else if (!json && c == '>')
      out += "&gt;";
    else if (!json && c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

std::string html(const std::string& text) { return escaped(text, false); }
std::string json(const std::string& text) { return "\"" + escaped(text, true) + "\""; }

// For people: what an engine is.
std::string place_of(std::string_view engine) {
  if (engine == "npu") return "the board's NPU";
  return engine == "registers" ? "the chip model (registers)" : "the simulator";
}

double load_percent(const Board& board) { return board.load().percent(remote::Clock::now()); }
}  // namespace

std::string status_html(const Board& board, const Server& server, double uptime) {
  std::string page =
      "<!doctype html><meta charset=utf-8><meta http-equiv=refresh content=5><title>rknn_server</title><style>body{font:15px "
      "system-ui;margin:2em;max-width:60em}table{border-collapse:collapse}td,th{padding:.2em 1em .2em 0;text-align:left}</style>";
  page += "<h1>" + html(board.name()) + "</h1><p>" + std::string(board.chip().name) + ". rknn_server " + std::string(version()) +
          ". Up " + number(uptime) + " s, " + std::to_string(board.runs()) + " runs, load " + number(load_percent(board)) +
          " %.</p><h2>Clients</h2><table><tr><th>client<th>model<th>seconds";
  for (const ClientFacts& c : server.clients())
    page += "<tr><td>" + html(c.name) + "<td>" + html(c.model) + "<td>" + number(c.seconds);
  page += "</table><h2>Models</h2><table><tr><th>model<th>made for<th>runs on<th>bytes<th>users";
  for (const ModelFacts& m : board.models())
    page += "<tr><td>" + html(m.name) + "<td>" + html(m.platform) + "<td>" + place_of(m.engine) + "<td>" +
            std::to_string(m.bytes) + "<td>" + std::to_string(m.users);
  return page + "</table>\n";
}

std::string status_json(const Board& board, const Server& server, double uptime) {
  std::string text = "{\"board\":" + json(board.name()) + ",\"platform\":" + json(std::string(board.chip().name)) +
                     ",\"version\":" + json(std::string(version())) + ",\"uptime_s\":" + number(uptime) +
                     ",\"runs\":" + std::to_string(board.runs()) + ",\"stopped\":" + std::to_string(board.stopped()) +
                     ",\"load_percent\":" + number(load_percent(board)) + ",\"accepted\":" + std::to_string(server.accepted()) +
                     ",\"refused\":" + std::to_string(server.refused()) + ",\"clients\":[";
  std::string comma;
  for (const ClientFacts& c : server.clients()) {
    text += comma + "{\"name\":" + json(c.name) + ",\"model\":" + json(c.model) + ",\"seconds\":" + number(c.seconds) + "}";
    comma = ",";
  }
  text += "],\"models\":[";
  comma.clear();
  for (const ModelFacts& m : board.models()) {
    text += comma + "{\"name\":" + json(m.name) + ",\"platform\":" + json(m.platform) + ",\"engine\":" + json(m.engine) +
            ",\"bytes\":" + std::to_string(m.bytes) + ",\"users\":" + std::to_string(m.users) + "}";
    comma = ",";
  }
  return text + "]}\n";
}

std::string http_reply(std::string_view request, const Board& board, const Server& server, double uptime) {
  const auto reply = [](const char* status, const char* type, const std::string& body) {
    return std::string("HTTP/1.1 ") + status + "\r\nContent-Type: " + type +
           "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" + body;
  };
  if (request.starts_with("GET / ")) return reply("200 OK", "text/html; charset=utf-8", status_html(board, server, uptime));
  if (request.starts_with("GET /status.json ")) return reply("200 OK", "application/json", status_json(board, server, uptime));
  if (!request.starts_with("GET ")) return reply("405 Method Not Allowed", "text/plain", "only GET\n");
  return reply("404 Not Found", "text/plain", "there are / and /status.json\n");
}

Result<std::unique_ptr<StatusPage>> StatusPage::start(const remote::Address& address, const Board& board, const Server& server,
                                                      std::chrono::milliseconds patience) {
  if (!address.is_local())
    return invalid_argument("others can reach " + address.to_string() + ", and the status page has no key")
        .hint("use 127.0.0.1, and a tunnel from elsewhere");
  ORKNN_TRY_ASSIGN(remote::ListeningSocket socket, remote::ListeningSocket::open(address));
  std::unique_ptr<StatusPage> page(new StatusPage(std::move(socket), board, server, patience));
  page->thread_ = std::thread([p = page.get()] { p->serve(); });
  return page;
}

StatusPage::~StatusPage() {
  is_ending_ = true;
  if (thread_.joinable()) thread_.join();
}

void StatusPage::serve() {
  // Browsers open connections in advance and leave them idle: each has a time limit of its own, so none delays another.
  struct Visitor {
    remote::Socket socket;
    remote::Deadline until;
    std::string request;
  };
  constexpr std::chrono::milliseconds kPeriod{200}, kBusyPeriod{10};
  constexpr size_t kMaxRequest = 8192, kMaxVisitors = 64;
  std::list<Visitor> visitors;
  const auto is_served = [&](Visitor& visitor) {
    std::byte buffer[2048];
    const auto n = visitor.socket.receive(buffer, remote::Clock::now());
    if (n) visitor.request.append(reinterpret_cast<const char*>(buffer), *n);
    const bool is_whole = visitor.request.find("\r\n\r\n") != std::string::npos || visitor.request.size() >= kMaxRequest;
    const bool is_over = n ? *n == 0 : remote::Clock::now() >= visitor.until;
    if (!is_whole && !is_over) return false;
    const double uptime = std::chrono::duration<double>(remote::Clock::now() - since_).count();
    const std::string reply = http_reply(visitor.request, board_, server_, uptime);
    // A client that does not take the reply is gone: there is no one to report to.
    (void)visitor.socket.send(std::as_bytes(std::span(reply)), visitor.until);
    return true;
  };
  while (!is_ending_) {
    if (std::optional<remote::Socket> socket = socket_.accept(visitors.empty() ? kPeriod : kBusyPeriod)) {
      if (visitors.size() == kMaxVisitors) visitors.pop_front();
      visitors.push_back({std::move(*socket), remote::Clock::now() + patience_, {}});
    }
    visitors.remove_if(is_served);
  }
}

}  // namespace orknn::server
