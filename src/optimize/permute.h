// Permutations of axes: of constants, of whole nodes, and the names of the two that matter most.
#pragma once

#include <vector>

#include "ir/patch.h"

namespace orknn::optimize {

using Perm = std::vector<int64_t>;

bool is_identity(const Perm& perm);
// [0,2,..,n-1,1]: channels first to channels last, rank 4 and up.
bool is_channels_last(const Perm& perm);
// [0,n-1,1,..,n-2]: channels last to channels first, rank 4 and up.
bool is_channels_first(const Perm& perm);
// Transposing by `first`, then by `second`.
Perm compose(const Perm& first, const Perm& second);

// A constant transposed: axis i of the result is axis perm[i] of the value.
ir::TensorData permuted(const ir::TensorData& value, const Perm& perm);
// The same for a constant that broadcasts against tensors of rank perm.size(): missing axes count as 1.
ir::TensorData permuted_operand(const ir::TensorData& value, const Perm& perm);

}  // namespace orknn::optimize
