#include "import/onnx/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/repeated_memory.h"
#include "import/lower/near_normal.h"
#include "import/wire/stored.h"

namespace orknn::importer::onnx {
namespace {
using ir::Dims;
using ir::TensorData;

// A sparse tensor states its dense shape freely; beyond this many bytes we take it for damage rather than allocate.
constexpr int64_t kMaxSparseBytes = int64_t{1} << 28;

// A file without its weights may state any shape; more than this in all is taken for damage.
constexpr uint64_t kMaxStandInBytes = uint64_t{64} << 30;
// The same for weights that are described by a distribution: these take real memory.
constexpr uint64_t kMaxDrawnBytes = uint64_t{2} << 30;
constexpr std::string_view kDrawn = "fill:normal";

bool is_four_bit(DType t) { return t == DType::Int4 || t == DType::UInt4; }

// Bytes of `count` elements in a file.
uint64_t stored_bytes(DType dtype, int64_t count) {
  const auto n = static_cast<uint64_t>(count);
  return is_four_bit(dtype) ? (n + 1) / 2 : n * dtype_bytes(dtype);
}

std::string_view foreign_type_name(int64_t data_type) {
  switch (data_type) {
    case 0: return "undefined";
    case 8: return "string";
    case 14: return "complex64";
    case 15: return "complex128";
    case 17: return "float8e4m3fn";
    case 18: return "float8e4m3fnuz";
    case 19: return "float8e5m2";
    case 20: return "float8e5m2fnuz";
    case 23: return "float4e2m1";
    case 24: return "float8e8m0";
    case 25: return "uint2";
    case 26: return "int2";
    default: return "unknown";
  }
}

Status wrong_size(int64_t count, DType dtype, const Dims& dims, uint64_t found, std::string_view unit) {
  return invalid_model("the data does not fit the shape")
      .expected(std::to_string(count) + " elements for " + std::string(dtype_name(dtype)) + ir::to_string(dims))
      .found(std::to_string(found) + " " + std::string(unit));
}

// Two values per byte, low half first.
void unpack_four_bit(const uint8_t* packed, uint8_t* out, int64_t count, bool is_signed) {
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t value = (packed[i / 2] >> (i % 2 ? 4 : 0)) & 15;
    out[i] = is_signed && value >= 8 ? static_cast<uint8_t>(value | 0xf0) : value;
  }
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::string_view entry(const TensorProto& tensor, std::string_view key) {
  const auto it =
      std::find_if(tensor.external_data.begin(), tensor.external_data.end(), [&](const StringEntry& e) { return e.key == key; });
  return it == tensor.external_data.end() ? std::string_view{} : it->value;
}

// External data must be in the model's own folder.
bool stays_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos ||
      path.find('\\') != std::string_view::npos)
    return false;
  while (!path.empty()) {
    const size_t slash = std::min(path.find('/'), path.size());
    if (path.substr(0, slash) == "..") return false;
    path.remove_prefix(std::min(slash + 1, path.size()));
  }
  return true;
}
}  // namespace

Result<DType> to_dtype(int64_t data_type) {
  static constexpr int64_t kOurs[] = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16, 21, 22};
  if (std::ranges::binary_search(kOurs, data_type)) return static_cast<DType>(data_type);  // DType uses the numbers of ONNX
  return unsupported("element type " + std::string(foreign_type_name(data_type)) + " (" + std::to_string(data_type) +
                     ") is not supported");
}

// The file that a location names. A link out of the folders would let a model read files that its sender cannot.
Result<std::shared_ptr<const MappedFile>> TensorReader::open(const std::string& location) const {
  namespace fs = std::filesystem;
  if (!stays_inside(location))
    return invalid_model("external data must be a file in the model's own folder").found("'" + location + "'");
  if (folders_.model.empty())
    return invalid_model("external data cannot be found for a model that was not loaded from a file").found("'" + location + "'");
  const std::string path = folders_.model + "/" + location;
  std::error_code problem;
  if (const fs::path real = fs::canonical(path, problem); !problem) {
    const auto holds = [&](const std::string& folder) {
      const fs::path root = fs::canonical(folder, problem);
      return !problem && std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first == root.end();
    };
    if (!holds(folders_.model) && (folders_.real.empty() || !holds(folders_.real)))
      return invalid_model("external data is a link to a file outside the model's folder")
          .found("'" + location + "'")
          .hint("copy the file it points to into the model's folder");
  }
  auto opened = MappedFile::open(path);
  if (!opened) return Status(opened.status()).hint("keep the files of a model together in one folder");
  return opened;
}

Result<TensorReader::Payload> TensorReader::external(const TensorProto& tensor, uint64_t wanted_bytes) {
  std::string_view location;
  uint64_t offset = 0, length = wanted_bytes;
  for (const StringEntry& e : tensor.external_data) {
    if (e.key == "location") location = e.value;
    if (e.key == "offset" && !parse_number(e.value, offset))
      return invalid_model("external data has no valid offset").found("'" + std::string(e.value) + "'");
    if (e.key == "length" && !parse_number(e.value, length))
      return invalid_model("external data has no valid length").found("'" + std::string(e.value) + "'");
  }
  auto& file = files_[std::string(location)];
  if (!file) {
    ORKNN_TRY_ASSIGN(file, open(std::string(location)));
  }
  const uint64_t size = file->bytes().size();
  if (offset > size || length > size - offset)
    return invalid_model("external data '" + std::string(location) + "' is too short")
        .expected(std::to_string(length) + " bytes at " + std::to_string(offset))
        .found("a file of " + std::to_string(size) + " bytes");
  return Payload{file->bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(length)), file};
}

Result<TensorData> TensorReader::from_bytes(DType dtype, Dims dims, int64_t count, const Payload& payload) {
  const uint64_t wanted = stored_bytes(dtype, count);
  if (payload.bytes.size() != wanted) return wrong_size(count, dtype, dims, payload.bytes.size(), "bytes");
  if (!is_four_bit(dtype)) return wire::stored_tensor(dtype, std::move(dims), payload.bytes, payload.keeper);
  TensorData t = TensorData::allocate(dtype, std::move(dims));
  const void* packed = payload.bytes.data();
  unpack_four_bit(static_cast<const uint8_t*>(packed), static_cast<uint8_t*>(t.mutable_data()), count, dtype == DType::Int4);
  return t;
}

Result<TensorData> TensorReader::from_fields(const TensorProto& tensor, DType dtype, Dims dims, int64_t count) {
  uint32_t number = kInt32Data;
  switch (dtype) {
    case DType::Float32: number = kFloatData; break;
    case DType::Float64: number = kDoubleData; break;
    case DType::Int64: number = kInt64Data; break;
    case DType::UInt32:
    case DType::UInt64: number = kUInt64Data; break;
    default: break;
  }
  // The first walk counts, the second stores: nothing is allocated on the word of the shape alone.
  const bool packs_two = is_four_bit(dtype);
  const wire::StoredList list{tensor.message, number, dtype};
  ORKNN_TRY_ASSIGN(const uint64_t found, list.count());
  const uint64_t wanted = packs_two ? (static_cast<uint64_t>(count) + 1) / 2 : static_cast<uint64_t>(count);
  if (found != wanted) return wrong_size(count, dtype, dims, found, "values");
  TensorData t = TensorData::allocate(dtype, std::move(dims));
  auto* out = static_cast<std::byte*>(t.mutable_data());
  if (packs_two) {
    std::vector<uint8_t> packed;
    packed.reserve(found);
    ORKNN_TRY(list.for_each([&](uint64_t v) { packed.push_back(static_cast<uint8_t>(v)); }));
    unpack_four_bit(packed.data(), reinterpret_cast<uint8_t*>(out), count, dtype == DType::Int4);
    return t;
  }
  ORKNN_TRY(list.store(out));
  return t;
}

Result<TensorData> TensorReader::stand_in(DType dtype, Dims dims, uint64_t bytes) {
  stand_in_bytes_ += bytes;
  if (stand_in_bytes_ > kMaxStandInBytes || stand_in_bytes_ < bytes)
    return invalid_model("the weights that are missing would be larger than any model").found(ir::to_string(dims));
  const auto block = repeated_floats(static_cast<size_t>(bytes), stand_in_count_++);
  if (!block) return Status::error(Code::OutOfMemory, "no address space for stand-in weights");
  return TensorData::wrap(dtype, std::move(dims), block.get(), block);
}

Result<TensorData> TensorReader::drawn(const TensorProto& tensor, DType dtype, uint64_t bytes) {
  uint64_t seed = 0;
  double scale = 1, mean = 0;
  const std::string_view texts[] = {entry(tensor, "seed"), entry(tensor, "scale"), entry(tensor, "mean")};
  if (!parse_number(texts[0], seed) || !parse_number(texts[1], scale) || !(texts[2].empty() || parse_number(texts[2], mean)) ||
      !std::isfinite(scale) || !std::isfinite(mean))
    return invalid_model("weights are described without a valid seed, scale or mean")
        .found(fmt::format("'{}', '{}', '{}'", texts[0], texts[1], texts[2]));
  stand_in_bytes_ += bytes;
  if (stand_in_bytes_ > kMaxDrawnBytes || stand_in_bytes_ < bytes)
    return unsupported("the weights that are described and not stored are too large")
        .expected(std::to_string(kMaxDrawnBytes) + " bytes at most")
        .hint("store them in the model");
  ++stand_in_count_;
  TensorData values = near_normal(seed, mean, scale, tensor.dims);
  return dtype == DType::Float32 ? std::move(values) : ir::convert(values.view(), dtype);
}

Result<TensorData> TensorReader::read(const TensorProto& tensor) {
  ORKNN_TRY_ASSIGN(const DType dtype, to_dtype(tensor.data_type));
  if (tensor.has_segment) return unsupported("tensors stored in segments are not supported");
  for (int64_t d : tensor.dims)
    if (d < 0) return invalid_model("the shape has a negative extent").found(ir::to_string(tensor.dims));
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(tensor.dims));
  if (tensor.is_external) {
    const uint64_t wanted = stored_bytes(dtype, count);
    if (!stand_ins_ && is_float(dtype) && entry(tensor, "location") == kDrawn) return drawn(tensor, dtype, wanted);
    const auto payload = external(tensor, wanted);
    if (!payload && stand_ins_ && is_float(dtype)) return stand_in(dtype, tensor.dims, wanted);
    if (!payload) return payload.status();
    return from_bytes(dtype, tensor.dims, count, *payload);
  }
  if (tensor.has_raw_data) return from_bytes(dtype, tensor.dims, count, {tensor.raw_data, keeper_});
  return from_fields(tensor, dtype, tensor.dims, count);
}

Result<TensorData> TensorReader::read(const SparseTensorProto& tensor) {
  ORKNN_TRY_ASSIGN(const TensorData values, read(tensor.values));
  ORKNN_TRY_ASSIGN(const TensorData indices, read(tensor.indices));
  for (int64_t d : tensor.dims)
    if (d < 0) return invalid_model("the shape has a negative extent").found(ir::to_string(tensor.dims));
  ORKNN_TRY_ASSIGN(const int64_t count,
                   ir::checked_element_count(tensor.dims, kMaxSparseBytes / static_cast<int64_t>(dtype_bytes(values.dtype()))));
  const auto rank = static_cast<int64_t>(tensor.dims.size());
  const int64_t stored = values.count();
  const bool linear = indices.dims() == Dims{stored};
  if (values.dims().size() != 1 || indices.dtype() != DType::Int64 || (!linear && indices.dims() != Dims{stored, rank}))
    return invalid_model("sparse tensor indices do not fit its values")
        .expected("int64" + ir::to_string(Dims{stored}) + " or int64" + ir::to_string(Dims{stored, rank}))
        .found(std::string(dtype_name(indices.dtype())) + ir::to_string(indices.dims()));
  TensorData dense = TensorData::zeros(values.dtype(), tensor.dims);
  const Dims strides = ir::strides_of(tensor.dims);
  const size_t size = dtype_bytes(values.dtype());
  auto* out = static_cast<std::byte*>(dense.mutable_data());
  const auto* in = static_cast<const std::byte*>(values.data());
  for (int64_t i = 0; i < stored; ++i) {
    int64_t at = linear ? indices.as<int64_t>()[i] : 0;
    bool inside = at >= 0 && at < count;
    for (int64_t axis = 0; !linear && axis < rank; ++axis) {
      const int64_t index = indices.as<int64_t>()[i * rank + axis];
      inside &= index >= 0 && index < tensor.dims[static_cast<size_t>(axis)];
      if (inside) at += index * strides[static_cast<size_t>(axis)];
    }
    if (!inside)
      return invalid_model("a sparse tensor has an index outside of its shape")
          .expected("inside of " + ir::to_string(tensor.dims));
    std::memcpy(out + static_cast<size_t>(at) * size, in + static_cast<size_t>(i) * size, size);
  }
  return dense;
}

}  // namespace orknn::importer::onnx
