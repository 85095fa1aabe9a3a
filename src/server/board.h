// The board that a server offers: its chip, the models on it and their contexts. Models are kept by content, once for all
// clients, and longer than their clients as long as there is room.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/blake2b.h"
#include "base/files.h"
#include "platform/platforms.h"
#include "remote/messages.h"
#include "runtime/session.h"
#include "server/load.h"
#include "server/workspace.h"

namespace orknn::server {

struct Limits {
  uint64_t model_bytes = uint64_t{4} << 30;  // of all models together
  size_t models = 256;
  size_t clients = 64;
  uint64_t message_bytes = uint64_t{1} << 30;
  std::chrono::milliseconds message_timeout{30000};  // from the first byte of a message to its last, and for a reply to be taken
  std::chrono::milliseconds login_timeout{5000};     // until a client has said who it is
  std::chrono::milliseconds idle_timeout{24 * 3600 * 1000};
  uint64_t upload_bytes_per_second = 64 << 10;  // a model that comes more slowly after its first message_timeout is given up
};

struct RunRequest {
  uint32_t program = 0, core_mask = 0, priority = 0;
  std::optional<std::chrono::steady_clock::time_point> deadline = std::nullopt;
  std::function<bool()> stop = nullptr;  // true = the client is gone, its run ends before the next task
  ClientMemory memory = {};
};

// What a client wants of the layers of a run.
struct TraceRequest {
  uint32_t first = 0;                             // layer, counted from 0
  uint64_t max_bytes = 0;                         // of the layers that are kept, the first one aside
  std::map<uint32_t, ir::TensorData> amendments;  // by tensor: what it is to hold
};
struct TracedLayers {
  std::vector<std::pair<uint32_t, ir::TensorData>> layers;  // tensor and value, from `first` on
  uint32_t total = 0;                                       // layers of the run
};

class Board;

// One client's use of a model. Not for use from two threads at once.
class BoardContext {
 public:
  const runtime::Session& session() const { return *session_; }
  // `take_results` is called after a run that succeeded, while the memory with its results is still there.
  Status run(const RunRequest& request, std::span<const ir::TensorView> inputs, const std::function<void()>& take_results);
  // Its results stay until the next run.
  Result<TracedLayers> trace(const RunRequest& request, std::span<const ir::TensorView> inputs, const TraceRequest& trace);
  ir::TensorView output(size_t i) const { return session_->output_value(i); }
  size_t outputs() const { return session_->outputs().size(); }
  uint64_t last_microseconds() const { return last_microseconds_; }
  remote::Measured measure(uint32_t cores) const;

 private:
  friend class Board;
  Status run(const RunRequest& request, std::span<const ir::TensorView> inputs, sim::RunHooks hooks,
             const std::function<void()>& take_results);
  Status run_on_core(Workspace& workspace, const RunRequest& request, std::span<const ir::TensorView> inputs,
                     const sim::RunHooks& hooks, bool holds_results);
  BoardContext(Board& board, std::unique_ptr<runtime::Session> session) : board_(board), session_(std::move(session)) {}
  Board& board_;
  std::shared_ptr<void> model_;      // what the session was made from
  std::shared_ptr<const void> use_;  // says that the model is in use
  std::unique_ptr<runtime::Session> session_;
  uint64_t last_microseconds_ = 0;
};

struct ModelFacts {
  std::string name, platform;
  std::string engine = {};  // who runs it, in the words of ORKNN_ENGINE
  uint64_t bytes = 0;
  size_t users = 0;
};

class Board {
 public:
  // `folder`: of models that clients may fetch by name; empty = none.
  Board(const platform::Platform& chip, std::string name, Limits limits, std::string folder = {});
  ~Board();

  const platform::Platform& chip() const { return chip_; }
  const std::string& name() const { return name_; }
  const Limits& limits() const { return limits_; }

  // Room for a model of this size, which is on its way: none yet. Refused when the model does not fit even if all models without
  // users give way. Clients that bring the same one at the same time share the room, which is free again with the last copy.
  struct Reservation;
  using Room = std::shared_ptr<Reservation>;
  Result<Room> reserve(const Digest& digest, uint64_t bytes);
  // Takes as much of the room as has arrived; models without users give way.
  Status fill(const Room& room, uint64_t arrived);
  // A context of a model that is here; nullptr when it is not.
  Result<std::unique_ptr<BoardContext>> open(const Digest& digest);
  // The same with its bytes, which are kept in room that was reserved for them. They must be what the digest says.
  Result<std::unique_ptr<BoardContext>> add(const Digest& digest, std::vector<std::byte> bytes, Room room);
  // A file below the folder of models.
  Result<std::shared_ptr<const MappedFile>> read_file(const std::string& path) const;

  // Counts a client until the last copy of what is returned is gone; nullptr when there are as many as may be.
  std::shared_ptr<const void> admit_client();

  std::vector<ModelFacts> models() const;
  uint64_t runs() const { return runs_; }
  // Runs that ended early because their clients were gone.
  uint64_t stopped() const { return stopped_; }
  const Load& load() const { return load_; }

 private:
  friend class BoardContext;
  struct Model;
  using Models = std::map<Digest, std::shared_ptr<Model>>;
  Result<std::unique_ptr<BoardContext>> context_of(const std::shared_ptr<Model>& model);
  bool has_room(size_t models, uint64_t bytes) const;
  Status no_room(size_t models, uint64_t bytes) const;
  // The one of those without users that was used longest ago; the end when all are in use.
  Models::iterator oldest_unused();

  const platform::Platform& chip_;
  const std::string name_;
  const Limits limits_;
  const std::string folder_;
  mutable std::mutex mutex_;
  uint64_t reserved_bytes_ = 0;  // of all models that are here, and what has arrived of others
  size_t reserved_models_ = 0;
  std::map<std::pair<Digest, uint64_t>, std::weak_ptr<Reservation>> rooms_;  // by what they are for
  Models models_;      // after the counts, which models change when they end
  uint64_t uses_ = 0;  // counts openings: which model was used last
  std::atomic<size_t> clients_{0};
  std::atomic<uint64_t> runs_{0}, stopped_{0};
  Load load_;
  std::array<Workspace, 32> workspaces_;  // by core; those who hold the core use it
};

}  // namespace orknn::server
