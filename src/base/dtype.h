// Element types. The numbers are those of ONNX TensorProto, which .rknn files and Netron use too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/half.h"

namespace orknn {

enum class DType : uint8_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  BFloat16 = 16,
  UInt4 = 21,  // one byte per element in memory (values 0..15); packing two per byte is a matter of file formats
  Int4 = 22,   // one byte per element in memory, sign-extended
};

// Bytes of one element in memory; 0 for Undefined.
size_t dtype_bytes(DType t);
// "float32", "int8", "bool", ...
std::string_view dtype_name(DType t);
// Undefined when the name is unknown.
DType dtype_from_name(std::string_view name);

constexpr bool is_float(DType t) {
  return t == DType::Float32 || t == DType::Float64 || t == DType::Float16 || t == DType::BFloat16;
}
constexpr bool is_signed_int(DType t) {
  return t == DType::Int8 || t == DType::Int16 || t == DType::Int32 || t == DType::Int64 || t == DType::Int4;
}
constexpr bool is_unsigned_int(DType t) {
  return t == DType::UInt8 || t == DType::UInt16 || t == DType::UInt32 || t == DType::UInt64 || t == DType::UInt4;
}
constexpr bool is_integer(DType t) { return is_signed_int(t) || is_unsigned_int(t); }

// Least and greatest value of an integer type (Bool: 0 and 1).
int64_t dtype_min(DType t);
uint64_t dtype_max(DType t);

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>{}) with the C++ type that stores `t`: float, double, Half, BFloat16, [u]int8..64, bool.
// Int4 and UInt4 are visited as int8_t and uint8_t. f must return the same type for every T.
template <class F>
decltype(auto) visit_dtype(DType t, F&& f) {
  switch (t) {
    case DType::Float64: return f(TypeTag<double>{});
    case DType::Float16: return f(TypeTag<Half>{});
    case DType::BFloat16: return f(TypeTag<BFloat16>{});
    case DType::Int8:
    case DType::Int4: return f(TypeTag<int8_t>{});
    case DType::UInt8:
    case DType::UInt4: return f(TypeTag<uint8_t>{});
    case DType::Int16: return f(TypeTag<int16_t>{});
    case DType::UInt16: return f(TypeTag<uint16_t>{});
    case DType::Int32: return f(TypeTag<int32_t>{});
    case DType::UInt32: return f(TypeTag<uint32_t>{});
    case DType::Int64: return f(TypeTag<int64_t>{});
    case DType::UInt64: return f(TypeTag<uint64_t>{});
    case DType::Bool: return f(TypeTag<bool>{});
    case DType::Float32:
    case DType::Undefined: break;
  }
  return f(TypeTag<float>{});
}

// For kernels that only move elements: calls f with uint8_t, uint16_t, uint32_t or uint64_t by element size.
template <class F>
decltype(auto) visit_element_bytes(DType t, F&& f) {
  switch (dtype_bytes(t)) {
    case 1: return f(TypeTag<uint8_t>{});
    case 2: return f(TypeTag<uint16_t>{});
    case 8: return f(TypeTag<uint64_t>{});
    default: return f(TypeTag<uint32_t>{});
  }
}

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::Float32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::Float64;
  else if constexpr (std::is_same_v<T, Half>)
    return DType::Float16;
  else if constexpr (std::is_same_v<T, BFloat16>)
    return DType::BFloat16;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::Int8;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::UInt8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::Int16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::UInt16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::Int32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::UInt32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::Int64;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return DType::UInt64;
  else if constexpr (std::is_same_v<T, bool>)
    return DType::Bool;
  else
    return DType::Undefined;
}

}  // namespace orknn
