// What lowerings of other families need of reductions.
#pragma once

#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

// The axes of a reduction and whether they stay.
struct Along {
  std::vector<int64_t> axes;
  bool keep = false;
};
// The p-norm; the largest or smallest absolute value for an infinite p, the number of values that are not 0 for 0.
ir::TensorId norm(Call& c, ir::TensorId x, double p, const Along& a);

}  // namespace orknn::importer::pytorch
