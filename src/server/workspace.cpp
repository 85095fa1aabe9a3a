#include "server/workspace.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "format/bytes.h"

namespace orknn::server {
namespace {
using ir::TensorView;
constexpr size_t kKept = size_t{256} << 20;  // bytes that smaller runs do not give back

// Nothing where the extents are known only when it runs.
std::optional<size_t> bytes_of(const format::Program& program, const format::Port& port) {
  const ir::Tensor& tensor = program.graph.tensor(port.tensor);
  const std::optional<ir::Dims> dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
  if (!dims) return std::nullopt;
  return static_cast<size_t>(ir::element_count(*dims)) * dtype_bytes(tensor.dtype);
}
}  // namespace

Result<std::vector<TensorView>> Workspace::lend_to(runtime::Session& session, std::span<const TensorView> inputs,
                                                   bool holds_results) {
  const format::Program& program = session.program();
  if (inputs.size() != program.inputs.size())
    return invalid_argument("wrong number of inputs")
        .expected(std::to_string(program.inputs.size()))
        .found(std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const auto bytes = bytes_of(program, program.inputs[i]); bytes && *bytes != inputs[i].bytes())
      return invalid_argument("input '" + program.graph.tensor(program.inputs[i].tensor).name + "' does not fit")
          .expected(std::to_string(*bytes) + " bytes")
          .found(std::to_string(inputs[i].bytes()));
  size_t needed = 0;
  const auto take = [&](size_t bytes) {
    const size_t at = needed;
    needed += format::aligned(bytes);
    return at;
  };
  const size_t activations = take(program.arena_bytes);
  std::vector<size_t> places;
  for (const TensorView& input : inputs) places.push_back(take(input.bytes()));
  std::vector<std::optional<size_t>> results(session.outputs().size());
  for (size_t i = 0; holds_results && i < results.size(); ++i)
    if (const std::optional<size_t> bytes = bytes_of(program, program.outputs[i])) results[i] = take(*bytes);
  if (needed > size_ || size_ > std::max(needed, kKept)) {
    bytes_.reset();
    size_ = 0;
    bytes_.reset(static_cast<std::byte*>(allocate_aligned(needed)));
    if (!bytes_) return Status::error(Code::OutOfMemory, "no memory for a run (" + std::to_string(needed) + " bytes)");
    size_ = needed;
  }
  std::vector<TensorView> views;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::byte* place = bytes_.get() + places[i];
    if (inputs[i].bytes()) std::memcpy(place, inputs[i].data, inputs[i].bytes());
    views.push_back({inputs[i].dtype, inputs[i].dims, place});
  }
  session.use_internal_memory(bytes_.get() + activations);
  for (size_t i = 0; i < results.size(); ++i) session.place_result(i, results[i] ? bytes_.get() + *results[i] : nullptr);
  return views;
}

}  // namespace orknn::server
