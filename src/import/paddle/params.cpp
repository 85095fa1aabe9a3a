#include "import/paddle/params.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/files.h"
#include "import/wire/reader.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
class ParameterCursor {
 public:
  explicit ParameterCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  size_t left() const { return bytes_.size() - at_; }
  Status problem(std::string message) const {
    return invalid_model(std::move(message) + " at offset " + std::to_string(at_) + " of the parameter file");
  }
  Result<std::span<const std::byte>> take(uint64_t count) {
    if (left() < count)
      return problem("the file is cut short").expected(std::to_string(count) + " more bytes").found(std::to_string(left()));
    const auto taken = bytes_.subspan(at_, static_cast<size_t>(count));
    at_ += taken.size();
    return taken;
  }
  template <class T>
  Result<T> read() {
    ORKNN_TRY_ASSIGN(const auto taken, take(sizeof(T)));
    T value;
    std::memcpy(&value, taken.data(), sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

Status expect_version(ParameterCursor& c) {
  ORKNN_TRY_ASSIGN(const uint32_t version, c.read<uint32_t>());
  if (version == 0) return {};
  return c.problem("this is not a PaddlePaddle tensor")
      .expected("version 0")
      .found(std::to_string(version))
      .hint("give the .pdiparams file that was saved with the model");
}

// Versions, levels of nested sequences, a description of the tensor, its elements.
Result<TensorData> read_tensor(ParameterCursor& c, const std::shared_ptr<const void>& keeper) {
  ORKNN_TRY(expect_version(c));
  ORKNN_TRY_ASSIGN(const uint64_t levels, c.read<uint64_t>());
  if (levels > 16) return c.problem("a tensor has too many levels").found(std::to_string(levels));
  for (uint64_t i = 0; i < levels; ++i) {
    ORKNN_TRY_ASSIGN(const uint64_t size, c.read<uint64_t>());
    ORKNN_TRY(c.take(size).status());
  }
  ORKNN_TRY(expect_version(c));
  ORKNN_TRY_ASSIGN(const int32_t length, c.read<int32_t>());
  if (length < 0) return c.problem("a description of negative length").found(std::to_string(length));
  ORKNN_TRY_ASSIGN(const auto description, c.take(static_cast<uint64_t>(length)));
  DType dtype = DType::Undefined;
  Dims dims;
  wire::Reader reader(description);
  for (wire::Field f; reader.next(f);) {
    if (int64_t number = 0; f.number == 1 && f.get(number)) dtype = dtype_of_number(number);
    if (f.number == 2) ORKNN_TRY(wire::append(f, dims));
  }
  ORKNN_TRY(reader.status());
  if (dtype == DType::Undefined) return c.problem("a tensor of unknown element type");
  const auto count = checked_element_count(dims);
  if (!count || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
    return c.problem("the tensor is too large").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const auto elements, c.take(static_cast<uint64_t>(*count) * dtype_bytes(dtype)));
  if (reinterpret_cast<uintptr_t>(elements.data()) % dtype_bytes(dtype) == 0 && dtype != DType::Bool)
    return TensorData::wrap(dtype, dims, elements.data(), keeper);
  TensorData copy = TensorData::allocate(dtype, dims);
  copy_and_release(elements, copy.mutable_data());
  if (dtype == DType::Bool) {  // any other byte than 0 and 1 is no value of that type
    unsigned char* flags = static_cast<unsigned char*>(copy.mutable_data());
    for (size_t i = 0; i < copy.bytes(); ++i) flags[i] = flags[i] != 0;
  }
  return copy;
}
}  // namespace

Result<ParameterValues> read_parameters(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                                        const Program& program) {
  std::vector<const Parameter*> sorted;
  for (const Parameter& p : program.parameters) sorted.push_back(&p);
  std::sort(sorted.begin(), sorted.end(), [](const Parameter* a, const Parameter* b) { return a->name < b->name; });
  ParameterValues values;
  ParameterCursor c(bytes);
  for (const Parameter* p : sorted) {
    if (values.contains(p->name)) continue;
    auto value = read_tensor(c, keeper);
    if (!value) return Status(value.status()).node(p->name, "parameter");
    const bool is_vector_of_one = p->dims.empty() && value->count() == 1;
    if (value->dims() != p->dims && !is_vector_of_one)
      return invalid_model("the parameter file is not that of the program")
          .node(p->name, "parameter")
          .expected(to_string(p->dims))
          .found(to_string(value->dims()));
    values.emplace(p->name, *std::move(value));
  }
  if (c.left() > 0)
    return c.problem("the file holds more than the parameters of the program")
        .expected(std::to_string(sorted.size()) + " tensors")
        .found(std::to_string(c.left()) + " more bytes");
  return values;
}

namespace {
// Nothing where a name leads out of the folder.
std::optional<std::string> file_of(const std::string& folder, const Parameter& p) {
  if (p.name.empty() || p.name == "." || p.name == ".." || p.name.find_first_of("/\\") != std::string::npos) return std::nullopt;
  return folder + p.name;
}
}  // namespace

bool has_parameter_files(const std::string& folder, const Program& program) {
  if (program.parameters.empty()) return false;
  const std::optional<std::string> first = file_of(folder, program.parameters[0]);
  return first && MappedFile::open(*first);
}

Result<ParameterValues> read_parameter_files(const std::string& folder, const Program& program) {
  ParameterValues values;
  for (const Parameter& p : program.parameters) {
    const std::optional<std::string> file = file_of(folder, p);
    if (!file) return invalid_model("the name of a parameter is not a valid file name").found("'" + p.name + "'");
    auto mapped = MappedFile::open(*file);
    if (!mapped) return Status(mapped.status()).node(p.name, "parameter");
    Program alone;
    alone.parameters = {p};
    ORKNN_TRY_ASSIGN(ParameterValues own, read_parameters((*mapped)->bytes(), *mapped, alone));
    values.merge(own);
  }
  return values;
}

}  // namespace orknn::importer::paddle
