// Everything of one form, gathered into its table. Included once by each forms_*.cpp.
#pragma once

#include "sim/kernels/support/blocks_simd.h"
#include "sim/kernels/support/channels_simd.h"
#include "sim/kernels/support/gemm_simd.h"
#include "sim/kernels/support/plane_simd.h"
#include "sim/kernels/support/resample_simd.h"
#include "sim/kernels/support/rows_simd.h"

namespace orknn::sim::kernels::ORKNN_FORM {

extern const Forms kForms;
const Forms kForms = {
    .gemm = gemm,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .pack_conv = pack_conv,
    .apply_steps = apply_steps,
    .map = map,
    .map2 = map2,
    .softmax_rows = softmax_rows,
    .softmax_columns = softmax_columns,
    .normalize = normalize,
    .moments = moments,
    .shift_scale = shift_scale,
    .reduce_row = reduce_row,
    .reduce_columns = reduce_columns,
    .pad_rows = pad_rows,
    .depthwise_rows = depthwise_rows,
    .pool_row = pool_row,
    .resample_row = resample_row,
    .weigh_rows = weigh_rows,
    .to_float = to_float,
    .to_half = to_half,
    .to_pixels = to_pixels,
    .from_pixels = from_pixels,
    .depthwise_pixels = depthwise_pixels,
    .conv_pixels = conv_pixels,
    .tile_points = tile_points,
    .tile_results = tile_results,
    .pool_pixel = pool_pixel,
    .sum_pixels = sum_pixels,
};

}  // namespace orknn::sim::kernels::ORKNN_FORM
