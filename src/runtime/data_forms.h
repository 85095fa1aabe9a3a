// How callers of the C API may lay out the data of inputs and outputs, and what that means for a session (spec: c-api 6.2 - 6.4).
#pragma once

#include "platform/platforms.h"
#include "runtime/convert.h"
#include "runtime/session.h"

namespace orknn::runtime {

// Numbers of a rknn_tensor_type and a rknn_tensor_format, which need not be members.
struct InputRequest {
  uint32_t type = 0, format = 0;
  bool pass_through = false;
};

// Data of rknn_inputs_set: dense, but pictures that are passed through may have rows that are w_stride pixels apart, which their
// number of `bytes` tells. The error says which of type and format cannot be taken.
Result<InputData> input_form(const PortInfo& port, const InputRequest& request, uint64_t bytes, const platform::Platform& chip);
// Data in memory that is bound: fewer types, and pictures whose rows are w_stride pixels apart where `bytes` has room for them.
// `picture_rows` is the caller's h_stride.
Result<InputData> bound_input_form(const PortInfo& port, const InputRequest& request, int64_t picture_rows, uint64_t bytes,
                                   const platform::Platform& chip);
Result<OutputForm> bound_output_form(const PortInfo& port, uint32_t type, uint32_t format, const platform::Platform& chip);

// Bytes of data of the form.
uint64_t form_bytes(const PortInfo& port, const InputData& form);

}  // namespace orknn::runtime
