#include "data/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/files.h"
#include "base/npy_header.h"

namespace orknn::data {
namespace {

Status bad_npy(std::string what) { return invalid_argument("not a usable .npy file: " + std::move(what)); }

// The text after 'key': in the header's Python dictionary.
Result<std::string_view> field(std::string_view header, std::string_view key) {
  const size_t at = header.find(fmt::format("'{}':", key));
  if (at == header.npos) return bad_npy(fmt::format("the header has no '{}'", key));
  std::string_view rest = header.substr(at + key.size() + 3);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

Result<ir::Dims> parse_shape(std::string_view text) {
  if (text.empty() || text.front() != '(') return bad_npy("the shape is not a tuple");
  text.remove_prefix(1);
  ir::Dims dims;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" ,"), text.size()));
    if (text.empty()) return bad_npy("the shape is cut off");
    if (text.front() == ')') return dims;
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || value < 0 || dims.size() >= 64) return bad_npy("the shape is not a list of sizes");
    dims.push_back(value);
    text.remove_prefix(static_cast<size_t>(end - text.data()));
  }
}

// `from` in column-major order becomes row-major.
ir::TensorData reordered(const ir::TensorData& from) {
  ir::TensorData to = ir::TensorData::allocate(from.dtype(), from.dims());
  const size_t element = dtype_bytes(from.dtype()), rank = from.dims().size();
  const auto* source = static_cast<const std::byte*>(from.data());
  auto* target = static_cast<std::byte*>(to.mutable_data());
  ir::Dims stride(rank, 1), index(rank, 0);
  for (size_t i = 1; i < rank; ++i) stride[i] = stride[i - 1] * from.dims()[i - 1];
  for (int64_t k = 0; k < from.count(); ++k) {
    int64_t offset = 0;
    for (size_t i = 0; i < rank; ++i) offset += index[i] * stride[i];
    std::memcpy(target + static_cast<size_t>(k) * element, source + static_cast<size_t>(offset) * element, element);
    for (size_t i = rank; i-- > 0 && ++index[i] == from.dims()[i];) index[i] = 0;
  }
  return to;
}

void swap_bytes(ir::TensorData& value) {
  const size_t element = dtype_bytes(value.dtype());
  auto* bytes = static_cast<std::byte*>(value.mutable_data());
  for (size_t i = 0; i < value.bytes(); i += element) std::reverse(bytes + i, bytes + i + element);
}
struct NpyHeader {
  DType dtype = DType::Undefined;
  bool big_endian = false, fortran_order = false;
  ir::Dims dims;
  size_t bytes = 0;  // in front of the data
};

Result<NpyHeader> parse_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (bytes.size() < 10 || !is_npy(bytes)) return bad_npy("it does not begin with \\x93NUMPY");
  const auto byte = [&](size_t i) { return static_cast<size_t>(bytes[i]); };
  const bool long_header = byte(6) >= 2;
  if (byte(6) < 1 || byte(6) > 3 || (long_header && bytes.size() < 12)) return bad_npy("unknown version");
  const size_t start = long_header ? 12 : 10;
  const size_t length = byte(8) | byte(9) << 8 | (long_header ? byte(10) << 16 | byte(11) << 24 : 0);
  if (length > bytes.size() - start) return bad_npy("the header is cut off");
  const std::string_view header = text.substr(start, length);

  ORKNN_TRY_ASSIGN(const std::string_view type_field, field(header, "descr"));
  ORKNN_TRY_ASSIGN(const std::string_view order_field, field(header, "fortran_order"));
  ORKNN_TRY_ASSIGN(const std::string_view shape_field, field(header, "shape"));
  NpyHeader result;
  ORKNN_TRY_ASSIGN(result.dims, parse_shape(shape_field));
  if (type_field.size() > 4 && std::string_view("<>|=").find(type_field[1]) != std::string_view::npos &&
      type_field[4] == type_field[0])
    result.dtype = npy_type_of_name(type_field.substr(2, 2));
  if (result.dtype == DType::Undefined)
    return bad_npy(fmt::format("element type {} is not supported", type_field.substr(0, type_field.find(','))));
  result.big_endian = type_field[1] == '>';
  result.fortran_order = order_field.substr(0, 4) == "True";
  result.bytes = start + length;
  return result;
}
}  // namespace

bool is_npy(std::span<const std::byte> bytes) {
  return bytes.size() >= kNpyMagic.size() && std::memcmp(bytes.data(), kNpyMagic.data(), kNpyMagic.size()) == 0;
}

Result<ir::TensorData> parse_npy(std::span<const std::byte> bytes) {
  ORKNN_TRY_ASSIGN(NpyHeader header, parse_header(bytes));
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(header.dims));
  const size_t wanted = static_cast<size_t>(count) * dtype_bytes(header.dtype), found = bytes.size() - header.bytes;
  if (found < wanted) return bad_npy(fmt::format("{} bytes of data are missing", wanted - found));
  ir::TensorData value = ir::TensorData::allocate(header.dtype, std::move(header.dims));
  if (wanted) std::memcpy(value.mutable_data(), bytes.data() + header.bytes, wanted);
  if (header.big_endian) swap_bytes(value);
  if (header.dtype == DType::Bool)  // any other byte would be no bool
    for (uint8_t& b : std::span(static_cast<uint8_t*>(value.mutable_data()), wanted)) b = b != 0;
  return header.fortran_order ? reordered(value) : value;
}

DType npy_type(std::span<const std::byte> bytes) {
  const auto header = parse_header(bytes);
  return header ? header->dtype : DType::Undefined;
}

Result<ir::TensorData> read_npy(const std::string& path) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  auto value = parse_npy(file->bytes());
  ORKNN_TRY(file->check());
  if (!value) return Status(value.status()).model(path);
  return value;
}

Result<bool> is_npy_file(const std::string& path) {
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  return is_npy(file->bytes());
}

Status write_npy(const std::string& path, const ir::TensorData& given) {
  ir::TensorData value = given;
  if (value.dtype() == DType::BFloat16) value = ir::convert(value.view(), DType::Float32);
  if (value.dtype() == DType::Int4) value = ir::convert(value.view(), DType::Int8);
  if (value.dtype() == DType::UInt4) value = ir::convert(value.view(), DType::UInt8);
  return write_file_atomically(path, [&](FileWriter& out) -> Status {
    ORKNN_TRY(out.write(npy_header(value.dtype(), value.dims())));
    return out.write(std::span(static_cast<const std::byte*>(value.data()), value.bytes()));
  });
}

}  // namespace orknn::data
