#include "mutation.h"

#include <cstdlib>
#include <span>

#include "import/importer.h"
#include "ir/infer.h"
#include "ir/verify.h"
#include "ops/eval.h"

namespace orknn::tests {

std::string mutate(std::string bytes, std::mt19937& random) {
  const auto below = [&](size_t n) { return n == 0 ? 0 : static_cast<size_t>(random() % n); };
  const size_t steps = 1 + below(4);
  for (size_t step = 0; step < steps && !bytes.empty(); ++step) {
    const size_t at = below(bytes.size());
    switch (below(7)) {
      case 0: bytes.resize(at); break;                                              // cut off
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;    // one bit
      case 2: bytes[at] = static_cast<char>(random()); break;                       // one byte
      case 3: bytes.replace(at, 1, "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); break;  // a huge length or number
      case 4: bytes.erase(at, 1 + below(8)); break;
      case 5: bytes.insert(at, bytes.substr(below(bytes.size()), 1 + below(32))); break;  // a piece from elsewhere
      default: bytes[at] = static_cast<char>(0x7f - below(2) * 0x77); break;              // a plausible length, but wrong
    }
  }
  return bytes;
}

int mutation_count(int usual) {
  const char* wanted = std::getenv("ORKNN_MUTATIONS");
  return wanted ? std::atoi(wanted) : usual;
}

std::vector<std::byte> exact_copy(std::string_view bytes) {
  const auto view = std::as_bytes(std::span(bytes.data(), bytes.size()));
  return {view.begin(), view.end()};
}

bool import_survives(std::string_view bytes, const std::string& framework) {
  const std::vector<std::byte> copy = exact_copy(bytes);
  importer::Source source;
  source.bytes = copy;
  auto imported = importer::load_bytes(source, {}, ops::builtin_ops(), framework);
  if (!imported) return false;
  return verify(imported->graph, ops::builtin_ops(), ir::Stage::Imported).is_ok() &&
         infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
}

Tally noise_read(const std::string& framework) {
  Tally seen;
  std::mt19937 random(7);
  for (int i = 0; i < 500; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    seen.add(import_survives(bytes, framework));
  }
  return seen;
}

}  // namespace orknn::tests
