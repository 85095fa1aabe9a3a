// Which permutations the NPU can do: products of extents against the sizes of its address counters.
#include <algorithm>

#include "compile/npu_ops.h"

namespace orknn::compile {
namespace {

struct Sizes {
  int64_t n, c, h, w, L, p, q;
};

struct Rule {
  std::array<int, 4> permutation;
  bool (*allowed)(const Sizes&);
};

// Operator list 3.4, groups B to G.
const Rule kRules[] = {
    {{0, 1, 3, 2}, [](const Sizes& s) { return s.h % s.L == 0 && s.h * s.w < s.L * s.p && s.h * s.w < 2 * s.q; }},
    {{0, 2, 3, 1}, [](const Sizes& s) { return s.c < 8192 && s.h * s.w % 8 == 0 && s.w * s.c < s.L * s.p; }},
    {{0, 2, 1, 3},
     [](const Sizes& s) { return s.h % s.L == 0 && s.h * s.w < s.L * s.p && s.h * s.w < 2 * s.q && s.c * s.w < s.p; }},
    {{0, 3, 1, 2}, [](const Sizes& s) { return s.h * s.w < s.p && s.w < 8192 && s.h * s.c < s.p; }},
    {{0, 3, 2, 1},
     [](const Sizes& s) { return s.h % s.L == 0 && s.h * s.w < s.L * s.p && s.h * s.w < 2 * s.q && s.c < s.L * s.p; }},
    {{1, 0, 2, 3}, [](const Sizes& s) { return s.h * s.w < s.L * s.p && s.n < 8192 && s.h * s.w < s.p; }},
    {{1, 0, 3, 2}, [](const Sizes& s) { return s.h % s.L == 0 && s.c * s.h * s.w < s.L * s.p && s.h * s.w < 2 * s.q; }},
    {{1, 2, 0, 3}, [](const Sizes& s) { return s.n * s.w < s.L * s.p && s.c * s.h * s.w < s.p && s.w % s.L == 0; }},
    {{1, 2, 3, 0},
     [](const Sizes& s) { return s.h * s.w < s.p && s.n < s.L * s.p && s.c * s.h * s.w < s.L * s.p && s.n * s.w < s.L * s.p; }},
    {{1, 3, 0, 2}, [](const Sizes& s) { return s.c * s.w < 8192 && s.n * s.h < s.p && s.w % s.L == 0; }},
    {{1, 3, 2, 0}, [](const Sizes& s) { return s.c * s.h * s.w < s.p && s.n * s.h < s.p && s.w < 8192 && s.w % s.L == 0; }},
    {{2, 1, 0, 3}, [](const Sizes& s) { return s.c < 8192 && s.c * s.h * s.w < s.p && s.n * s.w < s.p; }},
    {{2, 1, 3, 0},
     [](const Sizes& s) { return s.c * s.h * s.w < s.p && s.n * s.w < s.L * s.p && s.c < 8192 && s.n * s.w % 4 == 0; }},
    {{2, 0, 3, 1}, [](const Sizes& s) { return s.c < 8192 && s.c * s.h * s.w < s.p; }},
    {{2, 0, 1, 3}, [](const Sizes& s) { return s.n * s.c * s.h * s.w < s.p && s.h * s.w % s.L == 0; }},
    {{2, 3, 1, 0},
     [](const Sizes& s) { return s.c * s.h * s.w < s.p && s.n * s.c < s.p && s.h * s.w < 8192 && s.h * s.w % s.L == 0; }},
    {{2, 3, 0, 1}, [](const Sizes& s) { return s.h * s.w < 8192 && s.n * s.c < s.p; }},
    {{3, 0, 2, 1},
     [](const Sizes& s) {
       return s.h * s.w < s.p && s.n * s.c < 8192 && s.c * s.h < s.p && s.n * s.w < 8192 && s.n * s.w % s.L == 0;
     }},
    {{3, 0, 1, 2},
     [](const Sizes& s) {
       return s.h * s.w < s.p && s.n * s.c < 8192 && s.c * s.h < s.p && s.n * s.w < 8192 && s.n * s.h * s.w % s.L == 0;
     }},
    {{3, 2, 0, 1}, [](const Sizes& s) { return s.h * s.w < s.p && s.n * s.c < 8192 && s.n * s.c * s.w < s.p; }},
    {{3, 2, 1, 0},
     [](const Sizes& s) {
       return s.c * s.h * s.w < s.p && s.h * s.w < 8192 && 2 * s.h * s.w < s.q && s.n * s.c < s.L * s.p && s.h % s.L == 0;
     }},
    {{3, 1, 0, 2}, [](const Sizes& s) { return s.h * s.w < s.p && s.c * s.w < 8192 && s.n * s.h < s.p; }},
    {{3, 1, 2, 0},
     [](const Sizes& s) { return s.h * s.w < s.p && s.n * s.c < 8192 && s.n * s.h < s.p && s.n * s.c * s.w < s.p; }},
};

// Group A knows four permutations, for vectors only.
bool allowed_on_a(const Extents& e, const std::array<int, 4>& permutation) {
  using P = std::array<int, 4>;
  if (e.c >= 8192 || e.n >= 8192 || e.h * e.w >= 8192) return false;
  const bool column = e.h == 1 && e.w == 1 && e.n % 4 == 0, row = e.n == 1 && e.h == 1;
  if (permutation == P{2, 1, 0, 3} || permutation == P{2, 1, 3, 0}) return column || (row && e.h % 4 == 0);
  if (permutation == P{3, 1, 0, 2} || permutation == P{3, 1, 2, 0}) return column || (row && e.w % 4 == 0);
  return false;
}
}  // namespace

Objection transpose_limit(const platform::Platform& platform, const Extents& in, const std::array<int, 4>& permutation,
                          DType type) {
  if (permutation == std::array<int, 4>{0, 1, 2, 3}) return {};
  std::string name;
  for (int axis : permutation) name += std::to_string(axis);
  const std::string refused = "permutation " + name + " of [" + std::to_string(in.n) + "," + std::to_string(in.c) + "," +
                              std::to_string(in.h) + "," + std::to_string(in.w) + "] is outside of the NPU's transpose limits";
  for (int64_t e : {in.n, in.c, in.h, in.w})
    if (e > (int64_t{1} << 28)) return refused;
  // Products below stay within 64 bits once no two extents multiply to more than this.
  if (in.n * in.c > (int64_t{1} << 30) || in.h * in.w > (int64_t{1} << 30)) return refused;
  const char group = platform.operator_group;
  if (group == 'A') return allowed_on_a(in, permutation) ? Objection{} : refused;
  const bool small = group == 'B' || group == 'D';
  const Sizes sizes{in.n, in.c, in.h, in.w, dtype_bytes(type) == 1 ? 16 : 8, small ? 8192 : 268435456, small ? 2048 : 65536};
  for (const Rule& rule : kRules)
    if (rule.permutation == permutation) return rule.allowed(sizes) ? Objection{} : refused;
  return refused;
}

}  // namespace orknn::compile
