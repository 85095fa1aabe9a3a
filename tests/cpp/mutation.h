// Damage to the bytes of a file, the same for the same seed: cuts, flipped bits, huge numbers, pieces moved about.
#pragma once

#include <cstdlib>
#include <random>
#include <string>

namespace orknn::tests {

inline std::string mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  const size_t steps = 1 + below(4);
  for (size_t step = 0; step < steps && !bytes.empty(); ++step) {
    const size_t at = below(bytes.size());
    switch (below(7)) {
      case 0: bytes.resize(at); break;                                                      // cut off
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;            // one bit
      case 2: bytes[at] = static_cast<char>(random()); break;                               // one byte
      case 3: bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); break;            // a huge length or number
      case 4: bytes.erase(at, 1 + below(8)); break;
      case 5: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(32))); break;    // a piece from elsewhere
      default: bytes[at] = static_cast<char>(0x7f - below(2) * 0x77); break;                // a plausible length, but wrong
    }
  }
  return bytes;
}

// How many mutations a test tries; ORKNN_MUTATIONS overrides it.
inline int mutation_count(int usual) {
  const char* wanted = std::getenv("ORKNN_MUTATIONS");
  return wanted ? std::atoi(wanted) : usual;
}

}  // namespace orknn::tests
