#include "base/nearest_name.h"

#include <algorithm>

namespace orknn {
namespace {
constexpr size_t kMaxName = 64;

// Letters to insert, delete or replace until one word is the other; two neighbours that changed places count once.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) {
    for (size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table[a.size()][b.size()];
}
}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  name = name.substr(0, kMaxName);
  std::string_view nearest;
  size_t least = std::max<size_t>(1, name.size() / 3) + 1;
  for (std::string_view candidate : known) {
    if (candidate.size() > name.size() + least || name.size() > candidate.size() + least) continue;
    if (const size_t d = distance(name, candidate); d < least) {
      least = d;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> known) {
  const std::string_view nearest = nearest_name(name, known);
  return nearest.empty() ? std::string() : "did you mean '" + std::string(nearest) + "'?";
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  return did_you_mean(name, std::vector<std::string_view>(known.begin(), known.end()));
}

}  // namespace orknn
