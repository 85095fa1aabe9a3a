// Inputs and outputs as rknn_tensor_attr, in the views that rknn_query offers (spec: c-api 5.3, 6.4).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "platform/platforms.h"
#include "runtime/public_api.h"
#include "runtime/session.h"

namespace orknn::runtime {

// Sizes of the C API have 32 bits; larger ones become the largest.
inline uint32_t saturate(uint64_t n) { return static_cast<uint32_t>(std::min<uint64_t>(n, UINT32_MAX)); }

enum class AttrView {
  General,     // what rknn_inputs_set and rknn_outputs_get use
  Native,      // as the NPU reads and writes it
  NativeNhwc,  // the same without channel blocks
};

// Fills everything but `index`. `platform` gives lanes and alignments; nullptr = those of the default platform.
void fill_attr(const PortInfo& port, bool is_input, AttrView view, const platform::Platform* platform, rknn_tensor_attr& attr);

// Public type of a program's elements: every float type is reported as FLOAT16, because programs tell quantized models
// from float ones by that.
rknn_tensor_type public_type(DType dtype);
// `type` is the number of a rknn_tensor_type; nothing for what the C API cannot feed (INT4, BFLOAT16, no type at all).
std::optional<DType> dtype_of_public(uint32_t type);

}  // namespace orknn::runtime
