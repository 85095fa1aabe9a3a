#include "server/board.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "format/rknn_file.h"
#include "runtime/cores.h"
#include "runtime/custom_op_plugins.h"
#include "runtime/perf_report.h"
#include "runtime/run_report.h"

namespace orknn::server {
using Clock = std::chrono::steady_clock;

struct Board::Model {
  std::mutex mutex;                             // of `prototype`
  std::unique_ptr<runtime::Session> prototype;  // never runs; contexts are made from it and share its weights
  std::string name, platform;
  std::string_view engine;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  Room room;
  uint64_t last_use = 0;
  std::weak_ptr<const void> use;  // alive while a client has a context
  std::shared_ptr<const void> take_use() {
    std::shared_ptr<const void> held = use.lock();
    if (!held) use = held = std::make_shared<const int>(0);
    return held;
  }
};

Board::Board(const platform::Platform& chip, std::string name, Limits limits, std::string folder)
    : chip_(chip), name_(std::move(name)), limits_(limits), folder_(std::move(folder)) {}
Board::~Board() = default;

bool Board::has_room(size_t models, uint64_t bytes) const {
  return models <= limits_.models - std::min(reserved_models_, limits_.models) &&
         bytes <= limits_.model_bytes - std::min(reserved_bytes_, limits_.model_bytes);
}

Status Board::no_room(size_t models, uint64_t bytes) const {
  const bool is_count = models > 0 && reserved_models_ >= limits_.models;
  return Status::error(Code::OutOfMemory, is_count ? "the server has no room for one more model"
                                                   : "the server has no room for a model of " + std::to_string(bytes) + " bytes")
      .expected("at most " + std::to_string(limits_.models) + " models of " + std::to_string(limits_.model_bytes) +
                " bytes together")
      .hint(std::string("release models that are no longer needed, or start the server with a larger ") +
            (is_count ? "--max-models" : "--max-model-mb"));
}

struct Board::Reservation {
  using Key = std::pair<Digest, uint64_t>;
  Board& board;
  const Key key;
  uint64_t taken = 0;  // bytes
  bool has_place = false;
  Reservation(Board& b, const Key& k) : board(b), key(k) {}
  ~Reservation() {
    const std::lock_guard lock(board.mutex_);
    board.reserved_bytes_ -= taken;
    board.reserved_models_ -= has_place;
    const auto own = board.rooms_.find(key);
    if (own != board.rooms_.end() && own->second.expired()) board.rooms_.erase(own);  // not one that was made meanwhile
  }
};

Board::Models::iterator Board::oldest_unused() {
  auto oldest = models_.end();
  for (auto m = models_.begin(); m != models_.end(); ++m)
    if (m->second->use.expired() && (oldest == models_.end() || m->second->last_use < oldest->second->last_use)) oldest = m;
  return oldest;
}

Result<Board::Room> Board::reserve(const Digest& digest, uint64_t bytes) {
  auto room = std::make_shared<Reservation>(*this, Reservation::Key(digest, bytes));
  const std::lock_guard lock(mutex_);
  std::weak_ptr<Reservation>& known = rooms_[room->key];
  if (Room shared = known.lock()) return shared;
  known = room;
  uint64_t unused_bytes = 0;
  size_t unused = 0;
  for (const auto& [other, model] : models_)
    if (model->use.expired()) unused_bytes += model->bytes->size(), ++unused;
  const uint64_t kept_bytes = reserved_bytes_ - std::min(unused_bytes, reserved_bytes_);
  const size_t kept = reserved_models_ - std::min(unused, reserved_models_);
  if (kept >= limits_.models || bytes > limits_.model_bytes - std::min(kept_bytes, limits_.model_bytes))
    return no_room(kept >= limits_.models, bytes);
  return room;
}

Status Board::fill(const Room& room, uint64_t arrived) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const uint64_t more = arrived - std::min(room->taken, arrived);
    const size_t places = room->has_place ? 0 : 1;
    if (has_room(places, more)) {
      reserved_bytes_ += more;
      reserved_models_ += places;
      room->taken += more;
      room->has_place = true;
      return {};
    }
    const auto oldest = oldest_unused();
    if (oldest == models_.end()) return no_room(places, room->key.second);
    std::shared_ptr<Model> gone = std::move(oldest->second);
    models_.erase(oldest);
    lock.unlock();
    gone.reset();  // gives its room back, for which it needs the lock
    lock.lock();
  }
}

Result<std::unique_ptr<BoardContext>> Board::context_of(const std::shared_ptr<Model>& model) {
  std::shared_ptr<const void> use;
  {
    const std::lock_guard lock(mutex_);
    model->last_use = ++uses_;
    use = model->take_use();
  }
  const std::lock_guard lock(model->mutex);
  ORKNN_TRY_ASSIGN(std::unique_ptr<runtime::Session> session, model->prototype->duplicate());
  std::unique_ptr<BoardContext> context(new BoardContext(*this, std::move(session)));
  context->model_ = model;
  context->use_ = std::move(use);
  return context;
}

Result<std::unique_ptr<BoardContext>> Board::open(const Digest& digest) {
  std::shared_ptr<Model> model;
  {
    const std::lock_guard lock(mutex_);
    const auto found = models_.find(digest);
    if (found == models_.end()) return std::unique_ptr<BoardContext>();
    model = found->second;
  }
  return context_of(model);
}

Result<std::unique_ptr<BoardContext>> Board::add(const Digest& digest, std::vector<std::byte> bytes, Room room) {
  if (blake2b(bytes) != digest) return invalid_argument("the model that arrived is not the one that was offered");
  auto model = std::make_shared<Model>();
  model->room = std::move(room);
  model->bytes = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  ORKNN_TRY_ASSIGN(model->prototype, runtime::Session::open(*model->bytes, model->bytes));
  model->name = model->prototype->model().name;
  model->platform = model->prototype->model().target_platform;
  model->engine = model->prototype->engine_name();
  const platform::Platform* made_for = platform::find(model->platform);
  if (!made_for || !platform::compatible(*made_for, chip_))
    return Status::error(Code::PlatformMismatch, "Invalid RKNN format! The model does not run on this board")
        .expected("a model for " + std::string(chip_.name))
        .found(model->platform);
  runtime::load_plugins(*model->prototype);
  runtime::report_loading(*model->prototype, {.level = runtime::environment_log_level(0)});
  std::shared_ptr<Model> kept;  // another client may have brought the same one meanwhile
  {
    const std::lock_guard lock(mutex_);
    kept = models_.try_emplace(digest, model).first->second;
  }
  return context_of(kept);
}

Result<std::shared_ptr<const MappedFile>> Board::read_file(const std::string& path) const {
  if (folder_.empty()) return invalid_argument("this server offers no model files").hint("start it with --models DIR");
  if (path.empty() || path.find('\0') != std::string::npos || path.find("..") != std::string::npos)
    return invalid_argument("invalid name of a model file on the device").expected("a path without '..'");
  ORKNN_TRY_ASSIGN(auto file, MappedFile::open(folder_ + "/" + path));
  if (file->bytes().size() > limits_.message_bytes)
    return invalid_argument("the model file is larger than one message").hint("start the server with a larger --max-message-mb");
  return file;
}

std::shared_ptr<const void> Board::admit_client() {
  const size_t count = ++clients_;
  std::shared_ptr<const void> place(this, [this](const void*) { --clients_; });
  return count <= limits_.clients ? place : nullptr;
}

std::vector<ModelFacts> Board::models() const {
  const std::lock_guard lock(mutex_);
  std::vector<ModelFacts> facts;
  for (const auto& [digest, m] : models_)
    facts.push_back(
        {m->name, m->platform, std::string(m->engine), m->bytes->size(), static_cast<size_t>(std::max(m->use.use_count(), 0L))});
  return facts;
}

Result<TracedLayers> BoardContext::trace(const RunRequest& request, std::span<const ir::TensorView> inputs,
                                         const TraceRequest& trace) {
  TracedLayers traced;
  uint64_t kept = 0;
  bool is_full = false;
  sim::RunHooks hooks;
  hooks.observe = [&](ir::TensorId tensor, const ir::TensorView& value) {
    const uint32_t index = traced.total++;
    if (index < trace.first || is_full) return;
    is_full = !traced.layers.empty() && value.bytes() > trace.max_bytes - std::min(kept, trace.max_bytes);
    if (is_full) return;
    kept += value.bytes();
    ir::TensorData copy = ir::TensorData::allocate(value.dtype, ir::Dims(value.dims.begin(), value.dims.end()));
    if (value.bytes()) std::memcpy(copy.mutable_data(), value.data, value.bytes());
    traced.layers.emplace_back(static_cast<uint32_t>(tensor.index), std::move(copy));
  };
  Status misfit;
  hooks.amend = [&](ir::TensorId tensor, const ir::MutableTensorView& value) {
    const auto found = trace.amendments.find(static_cast<uint32_t>(tensor.index));
    if (found == trace.amendments.end()) return;
    if (found->second.dtype() != value.dtype || found->second.bytes() != value.bytes())
      misfit = invalid_argument("a value for a layer has another form than the layer").node(std::to_string(tensor.index), "");
    else if (value.bytes())
      std::memcpy(value.data, found->second.data(), value.bytes());
  };
  if (trace.amendments.empty()) hooks.amend = nullptr;
  ORKNN_TRY(run(request, inputs, std::move(hooks), nullptr));
  ORKNN_TRY(misfit);
  return traced;
}

Status BoardContext::run(const RunRequest& request, std::span<const ir::TensorView> inputs,
                         const std::function<void()>& take_results) {
  return run(request, inputs, {}, take_results);
}

Status BoardContext::run(const RunRequest& request, std::span<const ir::TensorView> inputs, sim::RunHooks hooks,
                         const std::function<void()>& take_results) {
  const platform::Platform& chip = board_.chip();
  ORKNN_TRY(session_->choose_program(request.program));
  uint32_t mask = request.core_mask;
  if (mask != 0) {
    ORKNN_TRY(platform::cores_of_mask(chip, mask).status());
    mask &= (1u << std::max(chip.cores, 1)) - 1;
  }
  const int priority = static_cast<int>(std::min<uint32_t>(request.priority, 0xff));
  const auto count_stop = [&] { board_.stopped_ += request.stop && request.stop(); };
  const auto lease = runtime::CoreLease::take(chip, {mask, priority, request.deadline, request.stop});
  if (!lease) {
    count_stop();
    return Status::error(Code::Fail, "no core of the device became free in time");
  }
  hooks.pool = &lease->pool();
  hooks.deadline = request.deadline;
  hooks.stop = request.stop;
  const auto begin = Clock::now();
  ORKNN_ASSERT(lease->mask() != 0, "a client's run is no part of another run");
  const auto core = static_cast<size_t>(std::countr_zero(lease->mask()));
  board_.load_.begin(core, begin);
  Status status = run_on_core(board_.workspaces_[core], request, inputs, hooks, take_results != nullptr);
  const auto end = Clock::now();
  board_.load_.end(core, end);
  last_microseconds_ = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(end - begin).count());
  if (!status) count_stop();
  ++board_.runs_;
  if (status && take_results) take_results();
  return status;
}

Status BoardContext::run_on_core(Workspace& workspace, const RunRequest& request, std::span<const ir::TensorView> inputs,
                                 const sim::RunHooks& hooks, bool holds_results) {
  ORKNN_TRY_ASSIGN(const std::vector<ir::TensorView> taken, workspace.lend_to(*session_, inputs, holds_results, request.memory));
  return runtime::run_values_with_report(*session_, taken, {.level = runtime::environment_log_level(0)}, hooks);
}

remote::Measured BoardContext::measure(uint32_t cores) const {
  const format::Model& model = session_->model();
  const int used = static_cast<int>(std::clamp<uint32_t>(cores, 1, static_cast<uint32_t>(std::max(board_.chip().cores, 1))));
  const runtime::MemorySizes sizes = session_->memory();
  remote::Measured m;
  m.weight_bytes = sizes.weight_bytes;
  m.internal_bytes = sizes.internal_bytes;
  m.other_bytes = sizes.other_bytes();
  const std::optional<double> time = runtime::predicted_microseconds(model, used);
  m.has_time = time.has_value();
  m.microseconds = time.value_or(0);
  m.table = runtime::perf_table(model, used);
  m.why_no_time = runtime::why_no_time(model);
  return m;
}

}  // namespace orknn::server
