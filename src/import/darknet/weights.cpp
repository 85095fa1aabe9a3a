#include "import/darknet/weights.h"

#include <cstring>

#include "base/files.h"
#include "import/wire/stored.h"

namespace orknn::importer::darknet {
namespace {
constexpr int32_t kForkRevision = 5;  // the AlexeyAB fork writes version 0.2.5, the original 0.2.0

int32_t int_at(std::span<const std::byte> bytes, size_t offset) {
  int32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

bool all_finite(const std::byte* data, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones in infinities and in what is no number
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, data + static_cast<size_t>(i) * sizeof bits, sizeof bits);
    found |= static_cast<uint32_t>((bits & kExponent) == kExponent);
  }
  return found == 0;
}
}  // namespace

Result<Weights> Weights::open(const std::string& path) {
  ORKNN_TRY_ASSIGN(const auto file, MappedFile::open(path));
  auto weights = read(file->bytes(), file);
  if (!weights) return Status(weights.status()).model(path);
  return weights;
}

Result<Weights> Weights::read(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper) {
  constexpr size_t kShortHeader = 16, kLongHeader = 20;
  if (bytes.size() < kShortHeader)
    return invalid_model("the weights file ends within its header")
        .expected("at least 16 bytes")
        .found(std::to_string(bytes.size()));
  const int32_t major = int_at(bytes, 0), minor = int_at(bytes, 4), revision = int_at(bytes, 8);
  if (major < 0 || minor < 0 || revision < 0)
    return invalid_model("the file does not begin with a version")
        .expected("Darknet weights")
        .found(std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(revision));
  Weights w;
  w.transposed_ = major > 1000 || minor > 1000;
  const bool long_counter = !w.transposed_ && major * 10 + minor >= 2;
  const size_t header = long_counter ? kLongHeader : kShortHeader;
  if (bytes.size() < header)
    return invalid_model("the weights file ends within its header").expected("20 bytes").found(std::to_string(bytes.size()));
  w.fork_ = revision >= kForkRevision;
  w.rest_ = bytes.subspan(header);
  w.keeper_ = std::move(keeper);
  w.has_file_ = true;
  return w;
}

Result<ir::TensorData> Weights::take(std::string_view name, ir::Dims dims, Fill fill, int64_t fan_in) {
  if (!has_file_) return invent(name, std::move(dims), fill, fan_in);
  ORKNN_TRY_ASSIGN(const int64_t count, ir::checked_element_count(dims));
  if (static_cast<uint64_t>(count) > rest()) {
    Status s = invalid_model("the weights file ends within '" + std::string(name) + "'")
                   .expected(std::to_string(count) + " values")
                   .found(std::to_string(rest()) + ", after " + std::to_string(taken_) + " before them");
    return s.hint("the weights belong to another network, or are cut (*.conv.NN); without weights pass none");
  }
  const std::span<const std::byte> values = rest_.first(static_cast<size_t>(count) * sizeof(float));
  rest_ = rest_.subspan(values.size());
  taken_ += count;
  if (first_not_finite_.empty() && !all_finite(values.data(), count)) first_not_finite_ = name;
  return wire::stored_tensor(DType::Float32, std::move(dims), values, keeper_);
}

Result<ir::TensorData> Weights::invent(std::string_view name, ir::Dims dims, Fill fill, int64_t fan_in) {
  ORKNN_TRY(invented_.add(name, dims));
  return filled(name, std::move(dims), fill, fan_in);
}

}  // namespace orknn::importer::darknet
