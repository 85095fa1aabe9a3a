#include "base/file_name.h"

#include <algorithm>
#include <cctype>

namespace orknn {

std::string file_name_for(std::string_view name, size_t longest) {
  constexpr std::string_view kAllowed = "._-+=@,()[]";
  std::string safe(name.substr(0, longest));
  for (char& c : safe)
    if (!(std::isalnum(static_cast<unsigned char>(c)) || kAllowed.find(c) != kAllowed.npos)) c = '_';
  if (safe.empty() || safe[0] == '.') safe.insert(safe.begin(), '_');
  return safe;
}

}  // namespace orknn
