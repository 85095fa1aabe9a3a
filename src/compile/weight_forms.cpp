#include "compile/weight_forms.h"

#include <algorithm>

#include "compile/saturate.h"

namespace orknn::compile {
namespace {
using format::Sparsity;

constexpr int64_t kBlock = 4;

bool is_zero(const std::byte* value, size_t bytes) {
  return std::all_of(value, value + bytes, [](std::byte b) { return b == std::byte{0}; });
}

// The sign of a floating zero does not matter.
bool is_zero(const ir::TensorData& data, int64_t index) {
  const size_t bytes = dtype_bytes(data.dtype());
  const auto* at = static_cast<const std::byte*>(data.data()) + static_cast<size_t>(index) * bytes;
  if (!is_float(data.dtype())) return is_zero(at, bytes);
  return is_zero(at, bytes - 1) && (at[bytes - 1] & std::byte{0x7f}) == std::byte{0};
}
}  // namespace

Sparsity sparsity_of(const ir::TensorData& weights) {
  const ir::Dims& dims = weights.dims();
  if (dims.size() < 2 || dims[0] % kBlock || dims[1] % kBlock || weights.count() == 0 || dtype_bytes(weights.dtype()) == 0)
    return Sparsity::None;
  const int64_t outputs = dims[0], inputs = dims[1], taps = weights.count() / outputs / inputs;
  bool by_inputs = true, by_outputs = true, by_both = true;
  for (int64_t o = 0; o < outputs && (by_inputs || by_outputs); o += kBlock)
    for (int64_t i = 0; i < inputs && (by_inputs || by_outputs); i += kBlock)
      for (int64_t t = 0; t < taps; ++t) {
        int along_inputs[kBlock] = {}, along_outputs[kBlock] = {}, all = 0;
        for (int64_t a = 0; a < kBlock; ++a)
          for (int64_t b = 0; b < kBlock; ++b) {
            if (is_zero(weights, ((o + a) * inputs + i + b) * taps + t)) continue;
            ++along_inputs[a];
            ++along_outputs[b];
            ++all;
          }
        const auto at_most_two = [](const int(&counts)[kBlock]) {
          return std::all_of(std::begin(counts), std::end(counts), [](int c) { return c <= 2; });
        };
        by_inputs = by_inputs && at_most_two(along_inputs);
        by_outputs = by_outputs && at_most_two(along_outputs);
        by_both = by_both && all <= 4;
      }
  if (by_inputs && by_outputs && by_both) return Sparsity::Both;
  return by_inputs ? Sparsity::Inputs : by_outputs ? Sparsity::Outputs : Sparsity::None;
}

double work_left(Sparsity sparsity) { return sparsity == Sparsity::None ? 1 : sparsity == Sparsity::Both ? 0.25 : 0.5; }

bool can_be_sparse(const platform::Platform& platform, const Window& w, DType type) {
  constexpr int64_t kChannels = 32;
  const bool computes = dtype_bytes(type) == 1 || type == DType::Float16 || type == DType::Float32;
  return platform.features.sparse_weights && computes && !w.transposed && w.group == 1 && w.in_channels % kChannels == 0 &&
         w.out_channels % kChannels == 0;
}

uint64_t compressed_bytes(const ir::TensorData& weights, uint64_t elements, uint64_t element_bytes) {
  uint64_t values = 0;
  for (int64_t i = 0; i < weights.count(); ++i) values += !is_zero(weights, i);
  return add(mul({values, element_bytes}), ceil_div(elements, 8));
}

}  // namespace orknn::compile
