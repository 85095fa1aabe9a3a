#include "optimize/permute.h"

#include <algorithm>

namespace orknn::optimize {
using namespace ir;

bool is_identity(const Perm& perm) { return std::ranges::is_sorted(perm); }

bool is_channels_last(const Perm& perm) {
  if (perm.size() < 4 || perm[0] != 0 || perm.back() != 1) return false;
  for (size_t i = 1; i + 1 < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i) + 1) return false;
  return true;
}

bool is_channels_first(const Perm& perm) {
  if (perm.size() < 4 || perm[0] != 0 || perm[1] != static_cast<int64_t>(perm.size()) - 1) return false;
  for (size_t i = 2; i < perm.size(); ++i)
    if (perm[i] != static_cast<int64_t>(i) - 1) return false;
  return true;
}

Perm compose(const Perm& first, const Perm& second) {
  Perm out;
  for (int64_t axis : second) out.push_back(first[static_cast<size_t>(axis)]);
  return out;
}

TensorData permuted(const TensorData& value, const Perm& perm) {
  const Dims from = strides_of(value.dims());
  Dims dims, strides;
  for (int64_t axis : perm) {
    dims.push_back(value.dims()[static_cast<size_t>(axis)]);
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  TensorData out = TensorData::allocate(value.dtype(), dims);
  const int64_t count = out.count();
  visit_element_bytes(value.dtype(), [&]<class T>(TypeTag<T>) {
    const T* source = value.as<T>();
    T* target = static_cast<T*>(out.mutable_data());
    Dims at(dims.size(), 0);
    int64_t offset = 0;
    for (int64_t i = 0; i < count; ++i) {
      target[i] = source[offset];
      for (size_t axis = dims.size(); axis-- > 0;) {
        offset += strides[axis];
        if (++at[axis] < dims[axis]) break;
        offset -= strides[axis] * dims[axis];
        at[axis] = 0;
      }
    }
  });
  return out;
}

TensorData permuted_operand(const TensorData& value, const Perm& perm) {
  Dims dims(perm.size() - value.dims().size(), 1);
  dims.insert(dims.end(), value.dims().begin(), value.dims().end());
  return permuted(value.reshaped(std::move(dims)), perm);
}

}  // namespace orknn::optimize
