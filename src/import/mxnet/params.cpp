#include "import/mxnet/params.h"

#include <cstring>

#include "import/wire/stored.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kVersion1 = 0xF993FAC8, kVersion2 = 0xF993FAC9, kVersion3 = 0xF993FACA;
constexpr uint32_t kMaxRank = 32;

template <class Extent>
Result<Dims> read_extents(wire::Cursor& c, uint32_t rank) {
  if (rank > kMaxRank)
    return c.problem("an array of too many axes").expected("at most " + std::to_string(kMaxRank)).found(std::to_string(rank));
  Dims dims;
  for (uint32_t i = 0; i < rank; ++i) {
    ORKNN_TRY_ASSIGN(const Extent extent, c.read<Extent>());
    dims.push_back(static_cast<int64_t>(extent));
    if (dims.back() < 0) return c.problem("a negative extent").found(std::to_string(dims.back()));
  }
  return dims;
}

Result<DType> read_dtype(wire::Cursor& c) {
  ORKNN_TRY_ASSIGN(const int32_t number, c.read<int32_t>());
  const DType dtype = dtype_of_number(number);
  if (dtype == DType::Undefined) return c.problem("an unknown element type").found(std::to_string(number));
  return dtype;
}

Result<std::span<const std::byte>> read_elements(wire::Cursor& c, DType dtype, const Dims& dims) {
  const auto count = checked_element_count(dims);
  if (!count) return c.problem("an array that is too large").found(to_string(dims));
  return c.take(static_cast<uint64_t>(*count) * dtype_bytes(dtype));
}

Status skip_device(wire::Cursor& c) {
  ORKNN_TRY_ASSIGN(const uint64_t device, c.read<uint64_t>());  // type and id
  static_cast<void>(device);
  return {};
}

// Version 2 and 3: dense or sparse.
Result<StoredArray> read_new_array(wire::Cursor& c, uint32_t version) {
  StoredArray array;
  ORKNN_TRY_ASSIGN(const int32_t storage, c.read<int32_t>());
  if (storage < 0 || storage > 2)
    return c.problem("an unknown storage type").expected("0 dense, 1 row_sparse or 2 csr").found(std::to_string(storage));
  array.is_sparse = storage != 0;
  const size_t extra_arrays = static_cast<size_t>(storage);  // row_sparse has indices, csr has indices and row starts
  const auto read_shape = [&](bool& is_known) -> Result<Dims> {
    ORKNN_TRY_ASSIGN(const uint32_t rank, c.read<uint32_t>());
    is_known = version == kVersion3 ? rank != UINT32_MAX : rank != 0;
    return read_extents<int64_t>(c, is_known ? rank : 0);
  };
  bool is_known = true;
  Dims stored_dims;
  if (array.is_sparse) {
    ORKNN_TRY_ASSIGN(stored_dims, read_shape(is_known));
  }
  ORKNN_TRY_ASSIGN(array.dims, read_shape(is_known));
  if (!is_known) return array;
  ORKNN_TRY(skip_device(c));
  ORKNN_TRY_ASSIGN(array.dtype, read_dtype(c));
  std::vector<std::pair<DType, Dims>> extras;
  for (size_t i = 0; i < extra_arrays; ++i) {
    ORKNN_TRY_ASSIGN(const DType dtype, read_dtype(c));
    bool extra_known = true;
    ORKNN_TRY_ASSIGN(Dims dims, read_shape(extra_known));
    extras.emplace_back(dtype, std::move(dims));
  }
  ORKNN_TRY_ASSIGN(array.data, read_elements(c, array.dtype, array.is_sparse ? stored_dims : array.dims));
  for (const auto& [dtype, dims] : extras) ORKNN_TRY(read_elements(c, dtype, dims).status());
  return array;
}

Result<StoredArray> read_array(wire::Cursor& c) {
  ORKNN_TRY_ASSIGN(const uint32_t first, c.read<uint32_t>());
  if (first == kVersion2 || first == kVersion3) return read_new_array(c, first);
  StoredArray array;
  if (first == kVersion1) {
    ORKNN_TRY_ASSIGN(const uint32_t rank, c.read<uint32_t>());
    ORKNN_TRY_ASSIGN(array.dims, read_extents<int64_t>(c, rank));
  } else {  // version 0 begins with its rank
    ORKNN_TRY_ASSIGN(array.dims, read_extents<uint32_t>(c, first));
  }
  if (array.dims.empty()) return array;
  ORKNN_TRY(skip_device(c));
  ORKNN_TRY_ASSIGN(array.dtype, read_dtype(c));
  ORKNN_TRY_ASSIGN(array.data, read_elements(c, array.dtype, array.dims));
  return array;
}
}  // namespace

DType dtype_of_number(int64_t number) {
  switch (number) {
    case 0: return DType::Float32;
    case 1: return DType::Float64;
    case 2: return DType::Float16;
    case 3: return DType::UInt8;
    case 4: return DType::Int32;
    case 5: return DType::Int8;
    case 6: return DType::Int64;
    case 7: return DType::Bool;
    case 8: return DType::Int16;
    case 9: return DType::UInt16;
    case 10: return DType::UInt32;
    case 11: return DType::UInt64;
    case 12: return DType::BFloat16;
    default: return DType::Undefined;
  }
}

bool looks_like_params(std::span<const std::byte> bytes) {
  uint64_t magic = 0;
  if (bytes.size() < sizeof(magic)) return false;
  std::memcpy(&magic, bytes.data(), sizeof(magic));
  return magic == kListMagic;
}

Result<Params> Params::parse(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
  Params params;
  params.keeper_ = std::move(keeper);
  if (!looks_like_params(bytes))
    return invalid_model("this is not an MXNet parameter file")
        .expected("a file that begins with 0x112")
        .hint("give the .params file that was saved with the symbol");
  wire::Cursor c(bytes, "params file");
  ORKNN_TRY(c.take(2 * sizeof(uint64_t)).status());  // magic and reserved
  ORKNN_TRY_ASSIGN(const uint64_t count, c.read<uint64_t>());
  for (uint64_t i = 0; i < count; ++i) {
    auto array = read_array(c);
    if (!array) return Status(array.status()).node("array " + std::to_string(i), "params");
    params.arrays_.push_back(*std::move(array));
  }
  ORKNN_TRY_ASSIGN(const uint64_t names, c.read<uint64_t>());
  if (names != count)
    return c.problem("the file does not name every array")
        .expected(std::to_string(count) + " names")
        .found(std::to_string(names));
  for (uint64_t i = 0; i < names; ++i) {
    ORKNN_TRY_ASSIGN(const uint64_t length, c.read<uint64_t>());
    ORKNN_TRY_ASSIGN(const auto text, c.take(length));
    std::string_view name(reinterpret_cast<const char*>(text.data()), text.size());
    if (name.starts_with("arg:") || name.starts_with("aux:")) name.remove_prefix(4);
    params.by_name_.emplace(name, static_cast<size_t>(i));
  }
  return params;
}

Result<TensorData> Params::value(std::string_view name) const {
  const auto it = by_name_.find(std::string(name));
  if (it == by_name_.end()) return invalid_model("the params file has no array '" + std::string(name) + "'");
  const StoredArray& a = arrays_[it->second];
  if (a.is_sparse)
    return unsupported("array '" + std::string(name) + "' of the params file is sparse")
        .expected("a dense array")
        .hint("save it after tostype('default')");
  if (a.dtype == DType::Undefined) return invalid_model("array '" + std::string(name) + "' of the params file has no value");
  return wire::stored_tensor(a.dtype, a.dims, a.data, keeper_);
}

}  // namespace orknn::importer::mxnet
