// Single layers in another number format than the rest: int16 beside int8.
#pragma once

#include "quantize/plan.h"
#include "quantize/quantize.h"

namespace orknn::quantize {

// Layers named in options.formats get results of that format; where a layer reads a tensor of another one, a conversion is put in
// between (an Identity whose operand and result have parameters of their own). Layers that copy values keep the format of what
// they copy, and a Concat brings its operands to its own.
Status convert_formats(passes::Rewriter& rewriter, Plan& plan, const QuantizeOptions& options);

// The format of the layer that makes `result`.
const NumberFormat& format_of(const QuantizeOptions& options, std::string_view result);

}  // namespace orknn::quantize
