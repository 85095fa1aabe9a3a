#include "server/server.h"

#include <algorithm>
#include <new>
#include <optional>
#include <system_error>

#include "base/log.h"

namespace orknn::server {
using remote::Clock;
using remote::Deadline;

struct Server::Client {
  Client(remote::Socket s, Board& board, const remote::SharedKey& key) : socket(std::move(s)), session(board, key) {}
  remote::Socket socket;
  Session session;
  const Deadline since = Clock::now();
  std::mutex facts_mutex;
  ClientFacts facts;
  std::atomic<bool> is_finished{false};
  std::thread thread;
};

Server::Server(Board& board, remote::SharedKey key) : board_(board), key_(std::move(key)) {}

Result<std::unique_ptr<Server>> Server::start(Board& board, const std::vector<remote::Address>& addresses,
                                              remote::SharedKey key) {
  std::unique_ptr<Server> server(new Server(board, std::move(key)));
  for (const remote::Address& address : addresses) {
    if (!address.is_local() && server->key_.empty())
      return invalid_argument("others can reach " + address.to_string() + ", so the server needs a key")
          .hint("make one with --make-key FILE and start with --key FILE, or listen at 127.0.0.1 or unix:PATH");
    ORKNN_TRY_ASSIGN(remote::ListeningSocket socket, remote::ListeningSocket::open(address));
    server->addresses_.push_back(socket.address());
    server->sockets_.push_back(std::move(socket));
  }
  for (remote::ListeningSocket& socket : server->sockets_)
    server->listeners_.emplace_back([s = server.get(), &socket] { s->listen(socket); });
  return server;
}

Server::~Server() {
  is_ending_ = true;
  for (std::thread& t : listeners_) t.join();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& client : clients_) client->socket.shut_down();
  }
  for (const auto& client : clients_)
    if (client->thread.joinable()) client->thread.join();
}

void Server::listen(remote::ListeningSocket& socket) {
  constexpr std::chrono::milliseconds kPeriod{200};
  while (!is_ending_) {
    std::optional<remote::Socket> client = socket.accept(kPeriod);
    remove_finished();
    if (!client) continue;
    try {
      admit(std::move(*client));
    } catch (const std::bad_alloc&) {  // as if there were too many clients
      ++refused_;
    }
  }
}

void Server::remove_finished() {
  std::list<std::unique_ptr<Client>> finished;
  {
    const std::lock_guard lock(mutex_);
    for (auto c = clients_.begin(); c != clients_.end();) {
      const auto next = std::next(c);
      if ((*c)->is_finished) finished.splice(finished.end(), clients_, c);
      c = next;
    }
  }
  for (const auto& client : finished) client->thread.join();
}

void Server::admit(remote::Socket socket) {
  constexpr size_t kStrangers = 16;  // connections whose clients are not known yet, or are told that there are too many
  const std::lock_guard lock(mutex_);
  if (clients_.size() >= board_.limits().clients + kStrangers) {
    ++refused_;
    log(LogLevel::Warn, "rknn_server", "a connection is refused: there are " + std::to_string(clients_.size()) + " already");
    return;
  }
  clients_.push_back(std::make_unique<Client>(std::move(socket), board_, key_));
  Client& client = *clients_.back();
  try {
    client.thread = std::thread([this, &client] {
      try {
        serve(client);
      } catch (const std::bad_alloc&) {  // this client's connection ends, the others go on
        client.socket.shut_down();
        client.session.close();
      }
      client.is_finished = true;
    });
    ++accepted_;
  } catch (const std::system_error&) {  // no more threads: as if there were too many clients
    clients_.pop_back();
    ++refused_;
  }
}

namespace {
// Whether the other end is closed; costs a system call only now and then.
class GoneCheck {
 public:
  explicit GoneCheck(const remote::Socket& socket) : socket_(socket) {}
  bool operator()() {
    constexpr std::chrono::milliseconds kPeriod{5};
    const Deadline now = Clock::now();
    if (now < next_) return is_gone_;
    next_ = now + kPeriod;
    return is_gone_ = is_gone_ || socket_.is_closed();
  }

 private:
  const remote::Socket& socket_;
  Deadline next_{};
  bool is_gone_ = false;
};

// Parts that are small and rare keep nobody's room for long: every byte that has arrived gives its share of time for the next.
std::chrono::milliseconds time_for_upload(const Limits& limits, uint64_t uploaded) {
  return limits.message_timeout + std::chrono::milliseconds(uploaded * 1000 / limits.upload_bytes_per_second);
}
}  // namespace

// Until the client goes, breaks a rule, or is silent for too long.
void Server::serve(Client& client) {
  const Limits& limits = board_.limits();
  std::vector<std::byte> buffer(256 << 10), out;
  client.session.use({[&](std::vector<std::byte>& waiting) {
                        const bool sent{client.socket.send(waiting, Clock::now() + limits.message_timeout)};
                        waiting.clear();
                        return sent;
                      },
                      [this, check = GoneCheck(client.socket)]() mutable { return is_ending_ || check(); }});
  const Deadline login = Clock::now() + limits.login_timeout;
  Deadline message{};              // of the message that is under way
  std::optional<Deadline> upload;  // when the model that is on its way was offered
  uint64_t messages = 0;
  bool goes_on = true;
  std::string why;
  while (goes_on && !is_ending_) {
    const bool inside = client.session.is_inside_message();
    if (!inside || messages != client.session.messages()) message = Clock::now() + limits.message_timeout;
    messages = client.session.messages();
    Deadline until = !client.session.is_logged_in() ? login : inside ? message : Clock::now() + limits.idle_timeout;
    const std::optional<uint64_t> uploaded = client.session.uploaded();
    if (!uploaded)
      upload.reset();
    else if (!upload)
      upload = Clock::now();
    if (uploaded) until = std::min(until, *upload + time_for_upload(limits, *uploaded));
    remote::Descriptor passed;
    const auto n = client.socket.receive(buffer, until, &passed);
    if (!n || *n == 0) {
      if (!n) why = ": " + n.status().to_string();
      break;
    }
    if (passed) client.session.attach(std::move(passed));
    out.clear();
    goes_on = client.session.receive({buffer.data(), *n}, out);
    if (!out.empty() && !client.socket.send(out, Clock::now() + limits.message_timeout)) break;
    if (out.capacity() > (size_t{16} << 20)) out = {};  // large results are rare
    const std::lock_guard lock(client.facts_mutex);
    client.facts.name = client.session.client();
    client.facts.model = client.session.model();
  }
  log(LogLevel::Info, "rknn_server", (client.session.client().empty() ? "a client" : client.session.client()) + " is gone" + why);
  client.socket.shut_down();
  client.session.close();
}

std::vector<ClientFacts> Server::clients() const {
  const std::lock_guard lock(mutex_);
  std::vector<ClientFacts> facts;
  for (const auto& client : clients_) {
    if (client->is_finished) continue;
    const std::lock_guard facts_lock(client->facts_mutex);
    facts.push_back(client->facts);
    facts.back().seconds = std::chrono::duration<double>(Clock::now() - client->since).count();
  }
  return facts;
}

}  // namespace orknn::server
