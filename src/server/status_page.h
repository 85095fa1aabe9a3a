// What a browser sees of a server: who uses it, which models it holds, how busy it is. Read only, one request per connection.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "server/server.h"

namespace orknn::server {

// The page, and the same facts for programs.
std::string status_html(const Board& board, const Server& server, double uptime_seconds);
std::string status_json(const Board& board, const Server& server, double uptime_seconds);
// The whole reply to a request: /, /status.json, else 404.
std::string http_reply(std::string_view request, const Board& board, const Server& server, double uptime_seconds);

class StatusPage {
 public:
  // Only for this machine: the page has no key. A connection has `patience` to send its request.
  static Result<std::unique_ptr<StatusPage>> start(const remote::Address& address, const Board& board, const Server& server,
                                                   std::chrono::milliseconds patience = std::chrono::seconds(1));
  ~StatusPage();
  const remote::Address& address() const { return socket_.address(); }

 private:
  StatusPage(remote::ListeningSocket socket, const Board& board, const Server& server, std::chrono::milliseconds patience)
      : socket_(std::move(socket)), board_(board), server_(server), patience_(patience) {}
  void serve();
  remote::ListeningSocket socket_;
  const Board& board_;
  const Server& server_;
  const std::chrono::milliseconds patience_;
  const remote::Deadline since_ = remote::Clock::now();
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace orknn::server
