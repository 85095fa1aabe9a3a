#include "base/checksum.h"

#include <bit>
#include <cstring>

namespace orknn {
namespace {
// Odd constants with well mixed bits.
constexpr uint64_t kA = 0x9e3779b97f4a7c15u, kB = 0xbf58476d1ce4e5b9u, kC = 0x94d049bb133111ebu;

uint64_t word(const std::byte* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
uint64_t mix(uint64_t lane, uint64_t v) { return std::rotl(lane ^ (v * kA), 29) * kB; }
uint64_t finish(uint64_t h) {
  h = (h ^ (h >> 31)) * kB;
  h = (h ^ (h >> 27)) * kC;
  return h ^ (h >> 33);
}
}  // namespace

uint64_t checksum64(std::span<const std::byte> bytes) {
  // Four independent lanes keep the multiplier busy; they are joined at the end.
  uint64_t lanes[4] = {kA, kB, kC, kA ^ kC};
  const std::byte* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 32; left -= 32, p += 32)
    for (int i = 0; i < 4; ++i) lanes[i] = mix(lanes[i], word(p + 8 * i));
  uint64_t h = bytes.size() * kC;
  for (uint64_t lane : lanes) h = finish(h ^ lane) + kA;
  for (; left >= 8; left -= 8, p += 8) h = mix(h, word(p));
  if (left) {
    std::byte tail[8] = {};
    std::memcpy(tail, p, left);
    h = mix(h, word(tail));
  }
  return finish(h);
}

}  // namespace orknn
