#include "import/paddle/params.h"

#include <algorithm>
#include <optional>

#include "base/files.h"
#include "import/wire/reader.h"
#include "import/wire/stored.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
Status expect_version(wire::Cursor& c) {
  ORKNN_TRY_ASSIGN(const uint32_t version, c.read<uint32_t>());
  if (version == 0) return {};
  return c.problem("this is not a PaddlePaddle tensor")
      .expected("version 0")
      .found(std::to_string(version))
      .hint("give the .pdiparams file that was saved with the model");
}

// Versions, levels of nested sequences, a description of the tensor, its elements.
Result<TensorData> read_tensor(wire::Cursor& c, const std::shared_ptr<const void>& keeper) {
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
  ORKNN_TRY(read_tensor_type(description, dtype, dims));
  if (dtype == DType::Undefined) return c.problem("a tensor of unknown element type");
  const auto count = checked_element_count(dims);
  if (!count || std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }))
    return c.problem("the tensor is too large").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const auto elements, c.take(static_cast<uint64_t>(*count) * dtype_bytes(dtype)));
  return wire::stored_tensor(dtype, std::move(dims), elements, keeper);
}
}  // namespace

Result<ParameterValues> read_parameters(std::span<const std::byte> bytes, std::shared_ptr<const void> keeper,
                                        const Program& program) {
  std::vector<const Parameter*> sorted;
  for (const Parameter& p : program.parameters) sorted.push_back(&p);
  std::sort(sorted.begin(), sorted.end(), [](const Parameter* a, const Parameter* b) { return a->name < b->name; });
  ParameterValues values;
  wire::Cursor c(bytes, "parameter file");
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
