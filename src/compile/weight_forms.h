// Shorter forms of weights that some chips know: sparse patterns, which halve or quarter work and size, and compression, which
// shortens what is read.
#pragma once

#include "compile/node_facts.h"
#include "format/program.h"

namespace orknn::compile {

struct WeightForms {
  bool sparse = false;      // config(sparse_infer=...)
  bool compressed = false;  // config(compress_weight=...)
  // For estimates: every convolution that can be sparse has this pattern, whatever its values are.
  format::Sparsity assumed = format::Sparsity::None;
};

// The pattern the zeros of [out, in, ...] weights follow; None when they follow none or extents are not multiples of four.
format::Sparsity sparsity_of(const ir::TensorData& weights);
// Share of the multiplications, and of the weights that are stored and read, that is left. Published gains of sparse networks fit
// both.
double work_left(format::Sparsity sparsity);
// Whether the chip has sparse kernels for the layer: 2-D, one group, channels in multiples of 32.
bool can_be_sparse(const platform::Platform& platform, const Window& window, DType type);

// Bytes of `elements` native elements when zeros are left out after a mask of one bit per element. The scheme of the family the
// chips descend from; the vendor does not publish its own.
uint64_t compressed_bytes(const ir::TensorData& weights, uint64_t elements, uint64_t element_bytes);

}  // namespace orknn::compile
