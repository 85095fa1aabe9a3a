// Whether a model was built for sets of shapes that its caller chooses from.
#pragma once

#include "format/program.h"

namespace orknn::format {

// Programs of such a model have labels, also where it has one set alone.
inline bool has_shape_sets(const Model& model) {
  return model.programs.size() > 1 || (!model.programs.empty() && !model.programs[0].label.empty());
}

}  // namespace orknn::format
