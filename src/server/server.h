// Accepts clients and lets each talk to a session of its own, in a thread of its own.
#pragma once

#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "remote/socket.h"
#include "server/board.h"
#include "server/session.h"

namespace orknn::server {

struct ClientFacts {
  std::string name, model;
  double seconds = 0;  // since it came
};

class Server {
 public:
  // No key, no service: an address that others can reach is refused without one.
  static Result<std::unique_ptr<Server>> start(Board& board, const std::vector<remote::Address>& addresses,
                                               remote::SharedKey key);
  // Ends all connections and waits for their threads.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::vector<remote::Address>& addresses() const { return addresses_; }
  std::vector<ClientFacts> clients() const;
  uint64_t accepted() const { return accepted_; }
  uint64_t refused() const { return refused_; }

 private:
  struct Client;
  Server(Board& board, remote::SharedKey key);
  void listen(remote::ListeningSocket& socket);
  void admit(remote::Socket socket);
  void serve(Client& client);
  void remove_finished();

  Board& board_;
  const remote::SharedKey key_;
  std::vector<remote::ListeningSocket> sockets_;
  std::vector<remote::Address> addresses_;
  std::vector<std::thread> listeners_;
  std::atomic<bool> is_ending_{false};
  std::atomic<uint64_t> accepted_{0}, refused_{0};
  mutable std::mutex mutex_;
  std::list<std::unique_ptr<Client>> clients_;
};

}  // namespace orknn::server
