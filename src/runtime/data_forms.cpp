#include "runtime/data_forms.h"

#include <algorithm>
#include <initializer_list>

#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {
using namespace ir;

rknn_tensor_attr native_attr(const PortInfo& port, bool is_input, const platform::Platform& chip) {
  rknn_tensor_attr attr{};
  fill_attr(port, is_input, AttrView::Native, &chip, attr);
  return attr;
}

int64_t lanes_of(const rknn_tensor_attr& native) {
  return native.fmt == RKNN_TENSOR_NC1HWC2 ? static_cast<int64_t>(native.dims[4]) : 0;
}

Status bad_type(uint32_t type) { return invalid_argument("type " + std::to_string(type) + " cannot be converted"); }
Status bad_format(uint32_t format, std::string_view expected) {
  return invalid_argument("fmt " + std::to_string(format) + " is " + std::string(expected));
}

// The caller's bytes are what the hardware reads.
InputData native_form(const rknn_tensor_attr& native) {
  return {.dtype = *dtype_of_public(native.type),
          .layout = native.fmt == RKNN_TENSOR_NHWC ? Layout::NHWC : Layout::NCHW,
          .pass_through = true,
          .lanes = lanes_of(native)};
}

// What is already in the model's own number format was normalized by the caller.
bool is_prepared(const PortInfo& port, DType given) {
  return (given == DType::Int8 && port.quantized && port.dtype == DType::Int8) ||
         (given == DType::Float16 && is_float(port.dtype));
}

bool is_one_of(uint32_t type, std::initializer_list<rknn_tensor_type> types) {
  return std::any_of(types.begin(), types.end(), [&](rknn_tensor_type t) { return static_cast<uint32_t>(t) == type; });
}

bool can_bind_input(rknn_tensor_type reported, uint32_t given) {
  switch (reported) {
    case RKNN_TENSOR_INT8: return is_one_of(given, {RKNN_TENSOR_INT8, RKNN_TENSOR_UINT8, RKNN_TENSOR_FLOAT32});
    case RKNN_TENSOR_UINT8: return is_one_of(given, {RKNN_TENSOR_UINT8, RKNN_TENSOR_FLOAT32});
    case RKNN_TENSOR_FLOAT16: return is_one_of(given, {RKNN_TENSOR_FLOAT16, RKNN_TENSOR_UINT8, RKNN_TENSOR_FLOAT32});
    default: return given == static_cast<uint32_t>(reported);
  }
}

bool can_bind_output(rknn_tensor_type reported, uint32_t given) {
  switch (reported) {
    case RKNN_TENSOR_INT8: return is_one_of(given, {RKNN_TENSOR_INT8, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT32});
    case RKNN_TENSOR_UINT8: return is_one_of(given, {RKNN_TENSOR_UINT8, RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT32});
    case RKNN_TENSOR_FLOAT16: return is_one_of(given, {RKNN_TENSOR_FLOAT16, RKNN_TENSOR_FLOAT32});
    default: return given == static_cast<uint32_t>(reported);
  }
}
}  // namespace

Result<InputData> input_form(const PortInfo& port, const InputRequest& request, uint64_t bytes, const platform::Platform& chip) {
  if (request.pass_through) {
    const rknn_tensor_attr native = native_attr(port, true, chip);
    InputData form = native_form(native);
    if (native.w_stride && bytes >= native.size_with_stride) form.row_pixels = native.w_stride;
    return form;
  }
  const std::optional<DType> given = dtype_of_public(request.type);
  if (!given) return bad_type(request.type);
  const bool is_picture = port.layout != Layout::Undefined;
  if (is_picture && (request.format >= RKNN_TENSOR_FORMAT_MAX || request.format == RKNN_TENSOR_NC1HWC2))
    return bad_format(request.format, "neither NHWC nor NCHW");
  return InputData{.dtype = *given,
                   .layout = request.format == RKNN_TENSOR_NCHW ? Layout::NCHW : Layout::NHWC,
                   .pass_through = is_prepared(port, *given)};
}

Result<InputData> bound_input_form(const PortInfo& port, const InputRequest& request, int64_t picture_rows, uint64_t bytes,
                                   const platform::Platform& chip) {
  const rknn_tensor_attr native = native_attr(port, true, chip);
  InputData form;
  if (request.pass_through) {
    form = native_form(native);
  } else {
    if (!can_bind_input(native.type, request.type)) return bad_type(request.type);
    const bool is_picture = port.layout != Layout::Undefined;
    if (is_picture && request.format >= RKNN_TENSOR_UNDEFINED) return bad_format(request.format, "no layout of a 4-D input");
    if (is_picture && request.format == RKNN_TENSOR_NC1HWC2 && lanes_of(native) == 0)
      return bad_format(request.format, "NC1HWC2, which this input does not have");
    const DType given = *dtype_of_public(request.type);
    // Blocks stand for dense NHWC data unless they are passed through.
    form = {.dtype = given,
            .layout = request.format == RKNN_TENSOR_NCHW ? Layout::NCHW : Layout::NHWC,
            .pass_through = is_prepared(port, given)};
  }
  if (port.layout == Layout::Undefined || form.layout != Layout::NHWC || form.lanes > 0) return form;
  const int64_t height = port.dims[port.layout == Layout::NHWC ? 1 : 2];
  if (picture_rows != 0 && picture_rows < height)
    return invalid_argument("h_stride " + std::to_string(picture_rows) + " is less than the height " + std::to_string(height));
  form.picture_rows = picture_rows;
  if (native.fmt != RKNN_TENSOR_NHWC) return form;
  // Rows are padded where the NPU reads the picture itself: bytes always, other types as long as they are its own and there is
  // room.
  const uint64_t pitched =
      uint64_t{native.size_with_stride} / dtype_bytes(*dtype_of_public(native.type)) * dtype_bytes(form.dtype);
  const bool own_type = form.dtype == *dtype_of_public(native.type);
  if (dtype_bytes(form.dtype) == 1 || request.pass_through || (own_type && bytes >= pitched)) form.row_pixels = native.w_stride;
  return form;
}

Result<OutputForm> bound_output_form(const PortInfo& port, uint32_t type, uint32_t format, const platform::Platform& chip) {
  const rknn_tensor_attr native = native_attr(port, false, chip);
  if (!can_bind_output(native.type, type)) return bad_type(type);
  OutputForm form{.dtype = *dtype_of_public(type)};
  if (port.layout == Layout::Undefined) return form;
  switch (format) {
    case RKNN_TENSOR_NCHW: form.layout = Layout::NCHW; return form;
    case RKNN_TENSOR_NHWC: form.layout = Layout::NHWC; return form;
    case RKNN_TENSOR_NC1HWC2:
      if (const int64_t lanes = lanes_of(native)) {
        form.lanes = lanes;
        return form;
      }
      return bad_format(format, "NC1HWC2, which exists for int8 and float16 only");
    default: return bad_format(format, "no layout of a 4-D output");
  }
}

uint64_t form_bytes(const PortInfo& port, const InputData& form) {
  uint64_t elements = static_cast<uint64_t>(element_count(port.dims));
  if (form.lanes > 0) {
    const auto channels = static_cast<uint64_t>(port.dims[port.layout == Layout::NHWC ? 3 : 1]),
               lanes = static_cast<uint64_t>(form.lanes);
    elements = channels ? elements / channels * ((channels + lanes - 1) / lanes * lanes) : 0;
  }
  if (form.row_pixels > 0) {
    const auto width = static_cast<uint64_t>(port.dims[port.layout == Layout::NHWC ? 2 : 3]);
    elements = width ? elements / width * static_cast<uint64_t>(form.row_pixels) : 0;
  }
  return elements * dtype_bytes(form.dtype);
}

}  // namespace orknn::runtime
