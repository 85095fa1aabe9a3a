#include "import/tensorflow/tensors.h"

#include <algorithm>
#include <cstring>

#include "import/wire/stored.h"

namespace orknn::importer::tensorflow {
namespace {
using ir::Dims;
using ir::TensorData;

// A list that is too short repeats its last value; beyond this many bytes we take that for damage rather than allocate.
constexpr int64_t kMaxFilledBytes = int64_t{1} << 28;
// One value repeated more often than this is not written out.
constexpr int64_t kMaxWrittenOut = 4096;

enum TensorField : uint32_t {
  kType = 1,
  kShape = 2,
  kContent = 4,
  kFloats = 5,
  kDoubles = 6,
  kInts = 7,
  kInt64s = 10,
  kBools = 11,
  kHalves = 13,
  kUInt32s = 16,
  kUInt64s = 17
};

uint32_t list_of(DType dtype) {
  switch (dtype) {
    case DType::Float32: return kFloats;
    case DType::Float64: return kDoubles;
    case DType::Int64: return kInt64s;
    case DType::Bool: return kBools;
    case DType::Float16:
    case DType::BFloat16: return kHalves;
    case DType::UInt32: return kUInt32s;
    case DType::UInt64: return kUInt64s;
    default: return kInts;
  }
}

Result<TensorData> from_content(DType dtype, Dims dims, int64_t count, Bytes content, const std::shared_ptr<const void>& keeper) {
  const uint64_t wanted = static_cast<uint64_t>(count) * dtype_bytes(dtype);
  if (content.size() != wanted)
    return invalid_model("the data does not fit the shape")
        .expected(std::to_string(wanted) + " bytes for " + std::string(dtype_name(dtype)) + ir::to_string(dims))
        .found(std::to_string(content.size()));
  return wire::stored_tensor(dtype, std::move(dims), content, keeper);
}
}  // namespace

Result<TensorValue> read_tensor(Bytes message, const std::shared_ptr<const void>& keeper) {
  int64_t type = 0;
  Bytes content, shape_message;
  ORKNN_TRY(read_fields(message, wire::Slot{kType, type}, wire::Slot{kShape, shape_message}, wire::Slot{kContent, content}));
  ORKNN_TRY_ASSIGN(const auto shape, parse_shape(shape_message));
  if (!shape) return invalid_model("a constant has no shape");
  const DType dtype = to_dtype(type);
  if (dtype == DType::Undefined) return unsupported("constants of type " + std::string(type_name(type)) + " are not supported");
  TensorValue value;
  auto dims = to_dims(*shape);
  if (!dims) return invalid_model("a constant has an extent that is not known").found(ir::to_string(*shape));
  value.dims = *std::move(dims);
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(value.dims));
  if (!content.empty()) {
    ORKNN_TRY_ASSIGN(value.data, from_content(dtype, value.dims, count, content, keeper));
    return value;
  }

  // The first walk counts, the second stores: nothing is allocated on the word of the shape alone.
  const wire::StoredList list{message, list_of(dtype), dtype};
  ORKNN_TRY_ASSIGN(const uint64_t found, list.count());
  if (found > static_cast<uint64_t>(count))
    return invalid_model("the data does not fit the shape")
        .expected(std::to_string(count) + " values for " + std::string(dtype_name(dtype)) + ir::to_string(value.dims))
        .found(std::to_string(found));
  const bool is_fill = found <= 1 && count > kMaxWrittenOut;
  const size_t size = dtype_bytes(dtype);
  if (!is_fill && static_cast<uint64_t>(count) != found && count > kMaxFilledBytes / static_cast<int64_t>(size))
    return unsupported("a constant repeats its last value too often")
        .found(std::to_string(count) + " elements, " + std::to_string(found) + " of them stored");
  value.data = is_fill ? TensorData::zeros(dtype, {}) : TensorData::zeros(dtype, value.dims);
  if (found == 0) return value;
  auto* const begin = static_cast<std::byte*>(value.data.mutable_data());
  ORKNN_TRY(list.store(begin));
  std::byte* const end = begin + value.data.bytes();
  for (std::byte* out = begin + found * size; out < end; out += size) std::memcpy(out, out - size, size);
  return value;
}

}  // namespace orknn::importer::tensorflow
