#include "server/workspace.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "format/bytes.h"
#include "remote/messages.h"

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

Status check_inputs(const format::Program& program, std::span<const TensorView> inputs) {
  if (inputs.size() != program.inputs.size())
    return invalid_argument("wrong number of inputs")
        .expected(std::to_string(program.inputs.size()))
        .found(std::to_string(inputs.size()));
  for (size_t i = 0; i < inputs.size(); ++i)
    if (const auto bytes = bytes_of(program, program.inputs[i]); bytes && *bytes != inputs[i].bytes())
      return invalid_argument("input '" + program.graph.tensor(program.inputs[i].tensor).name + "' does not fit")
          .expected(std::to_string(*bytes) + " bytes")
          .found(std::to_string(inputs[i].bytes()));
  return {};
}

// Where the results go in the client's memory; nothing for those that cannot be computed there.
std::vector<std::byte*> places_at_client(const runtime::Session& session, const ClientMemory& client) {
  const format::Program& program = session.program();
  std::vector<uint64_t> sizes;
  for (const format::Port& port : program.outputs)
    if (const auto bytes = bytes_of(program, port)) sizes.push_back(*bytes);
  std::vector<std::byte*> places(program.outputs.size());
  if (sizes.size() < places.size()) return places;
  const std::vector<uint64_t> offsets = client.places(sizes);
  for (size_t i = 0; i < offsets.size(); ++i)
    if (session.only_converts_result(i)) places[i] = client.bytes.data() + offsets[i];
  return places;
}

bool can_stay(const TensorView& input, const ClientMemory& client) {
  const auto* begin = static_cast<const std::byte*>(input.data);
  const bool is_aligned = reinterpret_cast<uintptr_t>(begin) % format::kFileAlignment == 0;
  // Results might be written over inputs that are still to be read.
  const std::byte* results = client.bytes.data() + std::min<uint64_t>(client.results, client.bytes.size());
  const std::byte* end = client.bytes.data() + client.bytes.size();
  return is_aligned && (!std::less<>()(results, begin + input.bytes()) || !std::less<>()(begin, end));
}
}  // namespace

std::vector<uint64_t> ClientMemory::places(std::span<const uint64_t> sizes) const {
  if (results >= bytes.size()) return {};
  uint64_t end = 0;
  std::vector<uint64_t> offsets = remote::place_tensors(sizes, results, end);
  return end > bytes.size() ? std::vector<uint64_t>() : offsets;
}

Result<std::vector<TensorView>> Workspace::lend_to(runtime::Session& session, std::span<const TensorView> inputs,
                                                   bool holds_results, const ClientMemory& client) {
  const format::Program& program = session.program();
  ORKNN_TRY(check_inputs(program, inputs));
  size_t needed = 0;
  const auto take = [&](size_t bytes) {
    const size_t at = needed;
    needed += format::aligned(bytes);
    return at;
  };
  const size_t activations = take(program.arena_bytes);
  std::vector<std::optional<size_t>> copies(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    if (!session.only_converts_input(i) || !can_stay(inputs[i], client)) copies[i] = take(inputs[i].bytes());
  std::vector<std::byte*> results(program.outputs.size());
  if (holds_results) results = places_at_client(session, client);
  std::vector<std::optional<size_t>> own(results.size());
  for (size_t i = 0; holds_results && i < results.size(); ++i)
    if (const std::optional<size_t> bytes = bytes_of(program, program.outputs[i]); bytes && !results[i]) own[i] = take(*bytes);
  if (needed > size_ || size_ > std::max(needed, kKept)) {
    bytes_.reset();
    size_ = 0;
    bytes_.reset(static_cast<std::byte*>(allocate_aligned(needed)));
    if (!bytes_) return Status::error(Code::OutOfMemory, "no memory for a run (" + std::to_string(needed) + " bytes)");
    size_ = needed;
  }
  std::vector<TensorView> views(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!copies[i]) continue;
    std::byte* place = bytes_.get() + *copies[i];
    if (inputs[i].bytes()) std::memcpy(place, inputs[i].data, inputs[i].bytes());
    views[i].data = place;
  }
  session.use_internal_memory(bytes_.get() + activations);
  for (size_t i = 0; i < results.size(); ++i) session.place_result(i, own[i] ? bytes_.get() + *own[i] : results[i]);
  return views;
}

}  // namespace orknn::server
