// The tables of operators, one per family. Adding an operator is one row, or a row and a small function.
#pragma once

#include "import/pytorch/call.h"

namespace orknn::importer::pytorch {

std::span<const Row> python_rows();  // numbers, strings, lists, dictionaries: computed while importing
std::span<const Row> container_rows();
std::span<const Row> pointwise_rows();
std::span<const Row> activation_rows();
std::span<const Row> compare_rows();
std::span<const Row> reduce_rows();
std::span<const Row> shape_rows();  // views and copies of other shape
std::span<const Row> join_rows();   // cat, stack, split, pad, roll, ...
std::span<const Row> index_rows();
std::span<const Row> create_rows();
std::span<const Row> convolution_rows();
std::span<const Row> pool_rows();
std::span<const Row> norm_rows();
std::span<const Row> matrix_rows();
std::span<const Row> attention_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> resample_rows();
std::span<const Row> quantize_rows();   // to and from quantized tensors
std::span<const Row> packed_rows();     // quantized layers with packed weights
std::span<const Row> quantized_rows();  // other quantized layers
std::span<const Row> vision_rows();     // torchvision::
std::span<const Row> signal_rows();
std::span<const Row> loss_rows();

std::vector<std::span<const Row>> all_rows();

}  // namespace orknn::importer::pytorch
