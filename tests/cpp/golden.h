// Golden files: lines of words, '#' begins a comment line; and the checksum they state.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "test_paths.h"

namespace orknn::tests {

inline std::vector<std::vector<std::string>> golden_lines(const std::string& name) {
  std::ifstream file(std::string(tests::kSourceFolder) + "/tests/data/" + name);
  std::vector<std::vector<std::string>> lines;
  for (std::string line, word; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    lines.emplace_back();
    while (words >> word) lines.back().push_back(word);
  }
  return lines;
}

// CRC-32 as zlib computes it, in hexadecimal.
inline std::string crc32(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0u;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  char text[9];
  std::snprintf(text, sizeof text, "%08x", ~crc);
  return text;
}

}  // namespace orknn::tests
