// Damage to the bytes of a file, the same for the same seed, and what the tests with damaged files share.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace orknn::tests {

// Cuts, flipped bits, huge numbers, pieces moved about.
std::string mutate(std::string bytes, std::mt19937& random);

// How many mutations a test tries; ORKNN_MUTATIONS overrides it.
int mutation_count(int usual);

// The bytes in a block of exactly their size: a sanitizer sees any read beyond them, which the spare room of a string would hide.
std::vector<std::byte> exact_copy(std::string_view bytes);

// Imports, verifies and infers shapes; errors are fine, crashes are not. True when all three succeeded.
bool import_survives(std::string_view bytes, const std::string& framework);

// What became of damaged files, for tests that can ask for nothing but that none of them crashes.
struct Tally {
  size_t read = 0, refused = 0;
  void add(bool was_read) { ++(was_read ? read : refused); }
  size_t tried() const { return read + refused; }
};

// What becomes of files of random bytes.
Tally noise_read(const std::string& framework);

}  // namespace orknn::tests
