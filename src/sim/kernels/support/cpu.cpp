#include "sim/kernels/support/cpu.h"

#include <atomic>
#include <cstdlib>
#include <string>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/assert.h"
#include "base/log.h"

namespace orknn::sim::kernels {
namespace {
constexpr Isa kAllIsas[] = {Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Avx512Vnni, Isa::Neon, Isa::NeonDot, Isa::NeonI8mm};

Isa choose() {
  const std::vector<Isa> available = available_isas();
  const char* wanted = std::getenv("ORKNN_ISA");
  if (!wanted) return available.back();
  std::string names;
  for (Isa isa : available) {
    if (isa_name(isa) == wanted) return isa;
    names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  log(LogLevel::Warn, "sim",
      "ORKNN_ISA=" + std::string(wanted) + " is nothing this machine has, " + std::string(isa_name(available.back())) +
          " is used; expected one of " + names);
  return available.back();
}

constexpr int kNotChosen = -1;
// Not a static object of a function: a fork would not wait for it (ORKNN_MAKE_AT_LOAD), and the environment is read at the first
// use.
std::atomic<int> current{kNotChosen};

thread_local bool t_reproducible = false;
}  // namespace

ReproducibleFloats::ReproducibleFloats(bool wanted) : before_(t_reproducible) { t_reproducible |= wanted; }
ReproducibleFloats::~ReproducibleFloats() { t_reproducible = before_; }
bool reproducible_floats() { return t_reproducible; }

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::Portable: break;
    case Isa::Avx2: return "avx2";
    case Isa::Avx512: return "avx512";
    case Isa::Avx512Vnni: return "avx512vnni";
    case Isa::Neon: return "neon";
    case Isa::NeonDot: return "dotprod";
    case Isa::NeonI8mm: return "i8mm";
  }
  return "portable";
}

bool isa_available(Isa isa) {
  if (isa == Isa::Portable) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;  // clang has no name for it
  const bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::Avx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (isa == Isa::Avx512) return avx512;
  return isa == Isa::Avx512Vnni && avx512 && __builtin_cpu_supports("avx512vnni");
#elif defined(__aarch64__)
  // The bits of the kernel's interface: HWCAP_ASIMDDP, HWCAP2_I8MM. Older C libraries have no names for them.
  constexpr unsigned long kDotProducts = 1ul << 20, kMatrices = 1ul << 13;
  if (isa == Isa::Neon) return true;
  if (isa == Isa::NeonDot) return (getauxval(AT_HWCAP) & kDotProducts) != 0;
  return isa == Isa::NeonI8mm && (getauxval(AT_HWCAP2) & kMatrices) != 0;
#else
  return false;
#endif
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kAllIsas)
    if (isa_available(isa)) isas.push_back(isa);
  return isas;
}

Isa current_isa() {
  int isa = current.load(std::memory_order_relaxed);
  if (isa == kNotChosen) {
    const auto chosen = static_cast<int>(choose());
    if (current.compare_exchange_strong(isa, chosen, std::memory_order_relaxed)) isa = chosen;
  }
  return static_cast<Isa>(isa);
}

void set_current_isa(Isa isa) {
  ORKNN_ASSERT(isa_available(isa), "only a form this machine can run is chosen");
  current.store(static_cast<int>(isa), std::memory_order_relaxed);
}

}  // namespace orknn::sim::kernels
