#include "runtime/cores.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/forks.h"

namespace orknn::runtime {
namespace {
// A run in the queue; lives on the stack of its thread.
struct Waiter {
  uint32_t mask;
  int priority;
  Waiter* next = nullptr;
  std::condition_variable may_go{};
};

thread_local int leases_of_thread = 0;
}  // namespace

// The NPU of one chip.
struct Board {
  explicit Board(int core_count) : cores(core_count) {}
  const int cores;
  std::mutex mutex;
  uint32_t busy = 0;
  Waiter* first = nullptr;                                     // in the order in which they are served
  std::unordered_map<int, std::unique_ptr<ThreadPool>> pools;  // by number of cores and the first of them

  uint32_t all() const { return (1u << cores) - 1; }
  bool fits(uint32_t mask, uint32_t taken) const { return mask ? !(mask & taken) : (taken & all()) != all(); }

  void enqueue(Waiter& w) {
    Waiter** at = &first;
    while (*at && (*at)->priority <= w.priority) at = &(*at)->next;
    w.next = *at;
    *at = &w;
  }
  void dequeue(const Waiter& w) {
    Waiter** at = &first;
    while (*at != &w) at = &(*at)->next;
    *at = w.next;
  }
  // Whether the cores are free for this one: those that are served earlier and wait for certain cores keep them.
  bool may_go(const Waiter& w) const {
    uint32_t taken = busy;
    for (const Waiter* earlier = first; earlier != &w; earlier = earlier->next)
      taken |= earlier->mask ? earlier->mask : lowest_free(taken);
    return fits(w.mask, taken);
  }
  // Those that may go now; the others sleep on.
  void wake() {
    uint32_t taken = busy;
    for (Waiter* w = first; w; w = w->next) {
      if (fits(w->mask, taken)) w->may_go.notify_one();
      taken |= w->mask ? w->mask : lowest_free(taken);
    }
  }
  // False: the deadline passed, or no caller waits any more.
  bool wait(std::unique_lock<std::mutex>& lock, const CoreRequest& request, Waiter& waiter) {
    const auto ready = [&] { return may_go(waiter); };
    std::condition_variable& changed = waiter.may_go;
    if (!request.stop) {
      if (request.deadline) return changed.wait_until(lock, *request.deadline, ready);
      changed.wait(lock, ready);
      return true;
    }
    constexpr std::chrono::milliseconds kPeriod{50};
    for (;;) {
      const auto slice = std::chrono::steady_clock::now() + kPeriod;
      if (changed.wait_until(lock, request.deadline ? std::min(slice, *request.deadline) : slice, ready)) return true;
      if (request.stop() || (request.deadline && std::chrono::steady_clock::now() >= *request.deadline)) return false;
    }
  }
  uint32_t lowest_free(uint32_t taken) const { return ~taken & (taken + 1) & all(); }

  ThreadPool& pool_of(uint32_t mask) {
    ThreadPool& whole = ThreadPool::shared();
    if (busy == mask) return whole;
    const int count = std::popcount(mask), threads = std::max(1, whole.threads() * count / cores);
    if (threads >= whole.threads()) return whole;
    std::unique_ptr<ThreadPool>& pool = pools[static_cast<int>(mask)];
    if (!pool) pool = std::make_unique<ThreadPool>(threads);
    return *pool;
  }
};

namespace {
struct Boards {
  std::mutex mutex;
  std::unordered_map<const platform::Platform*, std::unique_ptr<Board>> boards;
};

// Never destroyed: a thread that outlives main may be inside a run. The child of a fork gets boards of its own, because the runs
// that held cores did not come along.
Boards*& current_boards() {
  static Boards* boards = [] {
    ::pthread_atfork(nullptr, nullptr, [] { current_boards() = new Boards; });
    return new Boards;
  }();
  return boards;
}
ORKNN_MAKE_AT_LOAD(current_boards);

Board& board_of(const platform::Platform& chip) {
  Boards& b = *current_boards();
  const std::lock_guard lock(b.mutex);
  std::unique_ptr<Board>& board = b.boards[&chip];
  if (!board) board = std::make_unique<Board>(std::clamp(chip.cores, 1, 16));
  return *board;
}
}  // namespace

std::optional<CoreLease> CoreLease::take(const platform::Platform& chip, const CoreRequest& request) {
  CoreLease lease;
  if (leases_of_thread > 0) {
    lease.pool_ = &ThreadPool::shared();
    return lease;
  }
  Board& board = board_of(chip);
  Waiter waiter{request.mask & board.all(), request.priority};
  std::unique_lock lock(board.mutex);
  board.enqueue(waiter);
  const bool got = board.wait(lock, request, waiter);
  board.dequeue(waiter);
  if (!got) {
    board.wake();
    return std::nullopt;
  }
  lease.mask_ = waiter.mask ? waiter.mask : board.lowest_free(board.busy);
  board.busy |= lease.mask_;
  lease.board_ = &board;
  ++leases_of_thread;
  board.wake();
  lease.pool_ = &board.pool_of(lease.mask_);  // may throw: by then everything is as the lease's end expects it
  return lease;
}

CoreLease::CoreLease(CoreLease&& other) noexcept
    : board_(std::exchange(other.board_, nullptr)), mask_(other.mask_), pool_(other.pool_) {}

CoreLease::~CoreLease() {
  if (!board_) return;
  --leases_of_thread;
  const std::lock_guard lock(board_->mutex);
  board_->busy &= ~mask_;
  board_->wake();
}

int waiting_runs(const platform::Platform& chip) {
  Board& board = board_of(chip);
  const std::lock_guard lock(board.mutex);
  int count = 0;
  for (const Waiter* w = board.first; w; w = w->next) ++count;
  return count;
}

}  // namespace orknn::runtime
