#include "base/npy_header.h"

namespace orknn {
namespace {
struct NpyType {
  std::string_view name;
  DType dtype;
};
constexpr NpyType kNpyTypes[] = {{"f4", DType::Float32}, {"f8", DType::Float64}, {"f2", DType::Float16}, {"u1", DType::UInt8},
                                 {"i1", DType::Int8},    {"u2", DType::UInt16},  {"i2", DType::Int16},   {"u4", DType::UInt32},
                                 {"i4", DType::Int32},   {"u8", DType::UInt64},  {"i8", DType::Int64},   {"b1", DType::Bool}};
}  // namespace

std::string_view npy_type_name(DType dtype) {
  for (const NpyType& t : kNpyTypes)
    if (t.dtype == dtype) return t.name;
  return {};
}

DType npy_type_of_name(std::string_view name) {
  for (const NpyType& t : kNpyTypes)
    if (t.name == name) return t.dtype;
  return DType::Undefined;
}

std::string npy_header(DType dtype, std::span<const int64_t> dims) {
  std::string shape;
  for (int64_t d : dims) shape += std::to_string(d) + ",";
  if (dims.size() > 1) shape.pop_back();
  std::string text = "{'descr': '";
  text += dtype_bytes(dtype) == 1 ? '|' : '<';
  text += npy_type_name(dtype);
  text += "', 'fortran_order': False, 'shape': (" + shape + "), }";
  // Ten bytes come before the text; the elements begin at a multiple of 64.
  text.resize((10 + text.size() + 1 + 63) / 64 * 64 - 11, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace orknn
