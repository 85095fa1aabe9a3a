#include "base/bus_errors.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/forks.h"

namespace orknn {
namespace {
#ifdef SYS_mmap2
constexpr long kMapPages = SYS_mmap2;
#else
constexpr long kMapPages = SYS_mmap;
#endif
}  // namespace

// The handler walks these without locks; they are used again, never freed.
struct BusErrorGuard::Range {
  std::atomic<uintptr_t> begin{0}, end{0};  // empty = free
  std::atomic<bool> damaged{false};
  Range* next = nullptr;

  bool holds(uintptr_t address) const {
    return address >= begin.load(std::memory_order_acquire) && address < end.load(std::memory_order_acquire);
  }
};

struct BusErrors {
  using Range = BusErrorGuard::Range;
  BriefMutex mutex;  // of changes
  std::atomic<Range*> ranges{nullptr};
  struct sigaction previous {};
  const uintptr_t page_bytes = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));

  static BusErrors& instance() {
    static BusErrors& all = *new BusErrors;  // signals may come until the very end
    return all;
  }

  Range* add(uintptr_t begin, uintptr_t end) {
    const std::lock_guard lock(mutex);
    install();
    Range* range = ranges.load(std::memory_order_relaxed);
    while (range && range->end.load(std::memory_order_relaxed) != 0) range = range->next;
    const bool is_new = !range;
    if (is_new) range = new Range;
    range->damaged.store(false, std::memory_order_relaxed);
    range->begin.store(begin, std::memory_order_release);
    range->end.store(end, std::memory_order_release);
    if (is_new) {
      range->next = ranges.load(std::memory_order_relaxed);
      ranges.store(range, std::memory_order_release);
    }
    return range;
  }
  void remove(Range& range) {
    const std::lock_guard lock(mutex);
    range.end.store(0, std::memory_order_release);
  }

  static bool is_ours(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) && action.sa_sigaction == &BusErrors::handle;
  }
  // Once; the handler goes when the library is unloaded, unless somebody else's has taken its place.
  void install() {
    static const struct Installed {
      Installed() {
        struct sigaction action {};
        action.sa_sigaction = &BusErrors::handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        ::sigemptyset(&action.sa_mask);
        ::sigaction(SIGBUS, &action, &instance().previous);
      }
      ~Installed() {
        struct sigaction now {};
        if (::sigaction(SIGBUS, nullptr, &now) == 0 && is_ours(now)) ::sigaction(SIGBUS, &instance().previous, nullptr);
      }
    } installed;
  }

  static void handle(int signal, siginfo_t* info, void* context) {
    const int saved_errno = errno;
    BusErrors& all = instance();
    if (info->si_code != BUS_ADRERR || !all.mend(reinterpret_cast<uintptr_t>(info->si_addr))) all.pass_on(signal, info, context);
    errno = saved_errno;
  }
  // Puts a page of zeros where a guarded file has none any more.
  bool mend(uintptr_t address) {
    for (Range* r = ranges.load(std::memory_order_acquire); r; r = r->next) {
      if (!r->holds(address)) continue;
      void* page = reinterpret_cast<void*>(address / page_bytes * page_bytes);
      r->damaged.store(true, std::memory_order_release);
      // The system call itself: the library's function is not among those that a signal handler may call, and the thread
      // sanitizer takes it for a write to what other threads read.
      return ::syscall(kMapPages, page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != -1;
    }
    return false;
  }
  void pass_on(int signal, siginfo_t* info, void* context) const {
    if (previous.sa_flags & SA_SIGINFO) return previous.sa_sigaction(signal, info, context);
    if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) return previous.sa_handler(signal);
    const bool was_sent = info->si_code <= 0;  // by a process; otherwise the access happens again after the return
    if (was_sent && previous.sa_handler == SIG_IGN) return;
    ::signal(SIGBUS, SIG_DFL);
    if (was_sent) ::raise(SIGBUS);
  }
};

namespace {
BusErrors& bus_errors() { return BusErrors::instance(); }
ORKNN_MAKE_AT_LOAD(bus_errors);
}  // namespace

BusErrorGuard::BusErrorGuard(const std::byte* data, size_t bytes)
    : range_(BusErrors::instance().add(reinterpret_cast<uintptr_t>(data), reinterpret_cast<uintptr_t>(data) + bytes)) {}

BusErrorGuard::~BusErrorGuard() { BusErrors::instance().remove(*range_); }

bool BusErrorGuard::is_damaged() const { return range_->damaged.load(std::memory_order_acquire); }

}  // namespace orknn
