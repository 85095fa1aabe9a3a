#include "npy.h"

#include <cstring>

#include "base/files.h"

namespace orknn::tests {
namespace {
// The text after `'key':` in the header, a Python dict literal.
std::string_view entry(std::string_view header, std::string_view key) {
  const size_t at = header.find("'" + std::string(key) + "'");
  if (at == std::string_view::npos) return {};
  header.remove_prefix(header.find(':', at) + 1);
  while (!header.empty() && header.front() == ' ') header.remove_prefix(1);
  return header;
}

DType dtype_of_descr(std::string_view d) {
  if (d.size() < 3 || d[0] == '>') return DType::Undefined;
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"f4", DType::Float32}, {"f8", DType::Float64}, {"f2", DType::Float16}, {"i1", DType::Int8}, {"u1", DType::UInt8}, {"i2", DType::Int16},
      {"u2", DType::UInt16}, {"i4", DType::Int32}, {"u4", DType::UInt32}, {"i8", DType::Int64}, {"u8", DType::UInt64}, {"b1", DType::Bool}};
  for (const auto& [text, type] : kTypes)
    if (d.substr(1) == text) return type;
  return DType::Undefined;
}
}  // namespace

Result<ir::TensorData> read_npy(const std::string& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with("\x93NUMPY") || text.size() < 12) return invalid_model("not a .npy file").model(path);
  const bool wide = text[6] >= 2;
  size_t length = static_cast<uint8_t>(text[8]) | static_cast<size_t>(static_cast<uint8_t>(text[9])) << 8;
  if (wide) length |= static_cast<size_t>(static_cast<uint8_t>(text[10])) << 16 | static_cast<size_t>(static_cast<uint8_t>(text[11])) << 24;
  const size_t start = (wide ? 12 : 10) + length;
  if (start > text.size()) return invalid_model("the header is cut off").model(path);
  const std::string_view header = text.substr(0, start);
  std::string_view descr = entry(header, "descr");
  descr = descr.size() > 1 ? descr.substr(1, descr.find('\'', 1) - 1) : descr;
  const DType dtype = dtype_of_descr(descr);
  if (dtype == DType::Undefined || !entry(header, "fortran_order").starts_with("False"))
    return unsupported("only little-endian numbers in C order can be read").found(std::string(descr)).model(path);
  ir::Dims dims;
  for (std::string_view shape = entry(header, "shape"); !shape.empty() && shape.front() != ')'; shape.remove_prefix(1))
    if (shape.front() >= '0' && shape.front() <= '9') {
      int64_t value = 0;
      for (; shape.front() >= '0' && shape.front() <= '9'; shape.remove_prefix(1)) value = value * 10 + (shape.front() - '0');
      dims.push_back(value);
      if (shape.front() == ')') break;
    }
  ir::TensorData data = ir::TensorData::allocate(dtype, dims);
  if (text.size() - start < data.bytes()) return invalid_model("the data is cut off").model(path);
  std::memcpy(data.mutable_data(), text.data() + start, data.bytes());
  return data;
}

}  // namespace orknn::tests
