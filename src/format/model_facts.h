// What the lists of a model say about it as a whole.
#pragma once

#include <string>
#include <vector>

#include "format/program.h"

namespace orknn::format {

// Whether it was built for sets of shapes that its caller chooses from. Programs of such a model have labels, also where it has
// one set alone.
inline bool has_shape_sets(const Model& model) {
  return model.programs.size() > 1 || (!model.programs.empty() && !model.programs[0].label.empty());
}

// The chips that config() named, the one that the model is compiled for first.
inline std::vector<std::string> platforms_of(const Model& model) {
  std::vector<std::string> names{model.target_platform};
  names.insert(names.end(), model.other_platforms.begin(), model.other_platforms.end());
  return names;
}

}  // namespace orknn::format
