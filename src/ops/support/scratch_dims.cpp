#include "ops/support/scratch_dims.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;

ScratchDims scratch_strides(std::span<const int64_t> dims) {
  ScratchDims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

ScratchDims scratch_ints(const TensorView& t) {
  ScratchDims values(static_cast<size_t>(t.count()));
  convert_elements(t, {DType::Int64, t.dims, values.data()});
  return values;
}

Result<ScratchDims> scratch_broadcast(std::span<const int64_t> a, std::span<const int64_t> b) {
  ScratchDims dims(std::max(a.size(), b.size()), 1);
  std::copy(a.begin(), a.end(), dims.end() - static_cast<std::ptrdiff_t>(a.size()));
  const size_t shift = dims.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    int64_t& extent = dims[shift + i];
    if (extent == 1)
      extent = b[i];
    else if (b[i] != 1 && b[i] != extent)
      return broadcast(a, b).status();
  }
  return dims;
}

}  // namespace orknn::ops
