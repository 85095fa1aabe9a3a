#include "ir/mapped_constants.h"

#include <algorithm>

#include "ir/packed.h"

namespace orknn::ir {

void collect_mapped_files(const Graph& graph, std::vector<std::shared_ptr<const MappedFile>>& files) {
  const auto add = [&](const TensorData& value) {
    if (!value.has_value() || value.bytes() == 0) return;
    auto file = MappedFile::holding(value.data());
    if (file && std::find(files.begin(), files.end(), file) == files.end()) files.push_back(std::move(file));
  };
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const Tensor& t = graph.tensor(TensorId{static_cast<int32_t>(i)});
    add(t.constant);
    if (t.is_constant() && t.constant.packed()) add(t.constant.packed()->integers);
  }
}

Status check_mapped_files(const std::vector<std::shared_ptr<const MappedFile>>& files) {
  Status problems;
  for (const auto& file : files) problems.also(file->check());
  return problems;
}

Status check_mapped_files(const Graph& graph) {
  std::vector<std::shared_ptr<const MappedFile>> files;
  collect_mapped_files(graph, files);
  return check_mapped_files(files);
}

}  // namespace orknn::ir
