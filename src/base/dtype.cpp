#include "base/dtype.h"

#include <limits>

namespace orknn {
namespace {
struct Row {
  DType type;
  std::string_view name;
  size_t bytes;
  int64_t min;
  uint64_t max;
};
template <class T>
constexpr Row int_row(DType t, std::string_view name) {
  return {t, name, sizeof(T), static_cast<int64_t>(std::numeric_limits<T>::min()),
          static_cast<uint64_t>(std::numeric_limits<T>::max())};
}
constexpr Row kRows[] = {
    {DType::Undefined, "undefined", 0, 0, 0}, {DType::Float32, "float32", 4, 0, 0},
    {DType::Float64, "float64", 8, 0, 0},     {DType::Float16, "float16", 2, 0, 0},
    {DType::BFloat16, "bfloat16", 2, 0, 0},   {DType::Bool, "bool", 1, 0, 1},
    {DType::Int4, "int4", 1, -8, 7},          {DType::UInt4, "uint4", 1, 0, 15},
    int_row<int8_t>(DType::Int8, "int8"),     int_row<uint8_t>(DType::UInt8, "uint8"),
    int_row<int16_t>(DType::Int16, "int16"),  int_row<uint16_t>(DType::UInt16, "uint16"),
    int_row<int32_t>(DType::Int32, "int32"),  int_row<uint32_t>(DType::UInt32, "uint32"),
    int_row<int64_t>(DType::Int64, "int64"),  int_row<uint64_t>(DType::UInt64, "uint64"),
};
const Row& row(DType t) {
  for (const Row& r : kRows)
    if (r.type == t) return r;
  return kRows[0];
}
}  // namespace

size_t dtype_bytes(DType t) { return row(t).bytes; }
std::string_view dtype_name(DType t) { return row(t).name; }
int64_t dtype_min(DType t) { return row(t).min; }
uint64_t dtype_max(DType t) { return row(t).max; }
DType dtype_from_name(std::string_view name) {
  for (const Row& r : kRows)
    if (r.name == name) return r.type;
  return DType::Undefined;
}

}  // namespace orknn
