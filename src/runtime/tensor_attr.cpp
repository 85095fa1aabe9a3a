#include "runtime/tensor_attr.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace orknn::runtime {
namespace {
using namespace ir;

uint64_t round_up(uint64_t n, uint64_t multiple) { return multiple > 1 ? (n + multiple - 1) / multiple * multiple : n; }

uint32_t public_bytes(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_INT64: return 8;
    case RKNN_TENSOR_FLOAT32:
    case RKNN_TENSOR_INT32:
    case RKNN_TENSOR_UINT32: return 4;
    case RKNN_TENSOR_FLOAT16:
    case RKNN_TENSOR_INT16:
    case RKNN_TENSOR_UINT16: return 2;
    default: return 1;
  }
}

// Extents by axis, whatever the source's order.
struct Picture {
  uint64_t n, c, h, w;
};

Picture picture_of(const PortInfo& port) {
  const auto at = [&](size_t i) { return static_cast<uint64_t>(std::max<int64_t>(port.dims[i], 0)); };
  return port.layout == Layout::NHWC ? Picture{at(0), at(3), at(1), at(2)} : Picture{at(0), at(1), at(2), at(3)};
}

void set_dims(rknn_tensor_attr& attr, std::initializer_list<uint64_t> dims) {
  attr.n_dims = static_cast<uint32_t>(dims.size());
  size_t i = 0;
  for (uint64_t d : dims) attr.dims[i++] = saturate(d);
}
}  // namespace

rknn_tensor_type public_type(DType dtype) {
  switch (dtype) {
    case DType::UInt8:
    case DType::UInt4: return RKNN_TENSOR_UINT8;
    case DType::Int8:
    case DType::Int4: return RKNN_TENSOR_INT8;
    case DType::UInt16: return RKNN_TENSOR_UINT16;
    case DType::Int16: return RKNN_TENSOR_INT16;
    case DType::UInt32: return RKNN_TENSOR_UINT32;
    case DType::Int32: return RKNN_TENSOR_INT32;
    case DType::UInt64:
    case DType::Int64: return RKNN_TENSOR_INT64;
    case DType::Bool: return RKNN_TENSOR_BOOL;
    case DType::Float32:
    case DType::Float64:
    case DType::Float16:
    case DType::BFloat16:
    case DType::Undefined: break;
  }
  return RKNN_TENSOR_FLOAT16;
}

std::optional<DType> dtype_of_public(uint32_t type) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32: return DType::Float32;
    case RKNN_TENSOR_FLOAT16: return DType::Float16;
    case RKNN_TENSOR_INT8: return DType::Int8;
    case RKNN_TENSOR_UINT8: return DType::UInt8;
    case RKNN_TENSOR_INT16: return DType::Int16;
    case RKNN_TENSOR_UINT16: return DType::UInt16;
    case RKNN_TENSOR_INT32: return DType::Int32;
    case RKNN_TENSOR_UINT32: return DType::UInt32;
    case RKNN_TENSOR_INT64: return DType::Int64;
    case RKNN_TENSOR_BOOL: return DType::Bool;
    default: return std::nullopt;
  }
}

void fill_attr(const PortInfo& port, bool is_input, AttrView view, const platform::Platform* platform, rknn_tensor_attr& attr) {
  const platform::Platform& chip = platform ? *platform : platform::default_platform();
  const uint32_t index = attr.index;
  std::memset(&attr, 0, sizeof attr);
  attr.index = index;
  const size_t length = std::min<size_t>(port.name.size(), RKNN_MAX_NAME_LEN - 1);
  std::memcpy(attr.name, port.name.data(), length);
  attr.type = public_type(port.dtype);
  attr.qnt_type = RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC;
  attr.zp = port.quantized ? port.zero_point : 0;
  attr.scale = port.quantized ? port.scale : 1.0f;
  if (port.quantized && port.fixed_point) {
    attr.qnt_type = RKNN_TENSOR_QNT_DFP;
    attr.fl = static_cast<int8_t>(-std::clamp(std::ilogb(port.scale), -127, 128));
  }
  const uint64_t bytes = public_bytes(attr.type);
  if (port.layout == Layout::Undefined) {
    attr.fmt = RKNN_TENSOR_UNDEFINED;
    attr.n_dims = static_cast<uint32_t>(std::min<size_t>(port.dims.size(), RKNN_MAX_DIMS));
    for (size_t i = 0; i < attr.n_dims; ++i) attr.dims[i] = saturate(static_cast<uint64_t>(std::max<int64_t>(port.dims[i], 0)));
  } else {
    const Picture p = picture_of(port);
    const bool blocked = attr.type == RKNN_TENSOR_INT8 || attr.type == RKNN_TENSOR_FLOAT16;  // the types NC1HWC2 exists for
    const bool image = p.c == 1 || p.c == 3 || p.c == 4;
    const uint64_t lanes =
        static_cast<uint64_t>(std::max(1, chip.c2(attr.type == RKNN_TENSOR_INT8 ? DType::Int8 : DType::Float16)));
    if (view == AttrView::Native && !blocked) {
      attr.fmt = RKNN_TENSOR_NCHW;
      set_dims(attr, {p.n, p.c, p.h, p.w});
    } else if (view == AttrView::NativeNhwc || (is_input && (view == AttrView::General || image))) {
      attr.fmt = RKNN_TENSOR_NHWC;
      set_dims(attr, {p.n, p.h, p.w, p.c});
    } else if (view == AttrView::Native) {
      attr.fmt = RKNN_TENSOR_NC1HWC2;
      set_dims(attr, {p.n, round_up(p.c, lanes) / lanes, p.h, p.w, lanes});
    } else {
      attr.fmt = port.layout == Layout::NHWC ? RKNN_TENSOR_NHWC : RKNN_TENSOR_NCHW;
      if (attr.fmt == RKNN_TENSOR_NHWC)
        set_dims(attr, {p.n, p.h, p.w, p.c});
      else
        set_dims(attr, {p.n, p.c, p.h, p.w});
    }
    const uint64_t pixels = std::max<uint64_t>(1, static_cast<uint64_t>(chip.first_layer.width_align_int8) / bytes);
    if (is_input && attr.fmt == RKNN_TENSOR_NHWC && image) {
      // Rows are padded where the NPU reads the picture itself, so not of the types that it has in NCHW.
      attr.w_stride = saturate(blocked ? round_up(p.w, pixels) : p.w);
      attr.size_with_stride = saturate(p.n * p.h * attr.w_stride * p.c * bytes);
    } else if (!is_input && view == AttrView::General && blocked) {
      attr.size_with_stride = saturate(p.n * round_up(p.c, lanes) * p.h * round_up(p.w, pixels) * bytes);
    }
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < attr.n_dims; ++i) elements = std::min<uint64_t>(elements * attr.dims[i], UINT32_MAX);
  attr.n_elems = static_cast<uint32_t>(elements);
  attr.size = saturate(elements * bytes);
  attr.size_with_stride = std::max(attr.size_with_stride, attr.size);
}

}  // namespace orknn::runtime
