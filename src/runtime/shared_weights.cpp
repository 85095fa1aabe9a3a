#include "runtime/shared_weights.h"

#include <cstring>
#include <unordered_map>

#include "base/files.h"

namespace orknn::runtime {
namespace {
using namespace ir;

// Smaller constants are shapes and parameters, which say nothing about whether two models are the same.
constexpr size_t kWeightBytes = 64;

std::string key_of(const TensorData& t) { return std::string(dtype_name(t.dtype())) + to_string(t.dims()); }

template <class Body>
void over_weights(const Graph& graph, const Body& body) {
  for (size_t i = 0; i < graph.tensor_count(); ++i) {
    const TensorId id{static_cast<int32_t>(i)};
    if (const TensorData* constant = graph.constant(id); constant && constant->bytes() >= kWeightBytes) body(id, *constant);
  }
}
}  // namespace

Status share_weights(const format::Model& donor, format::Model& model) {
  std::unordered_multimap<std::string, const TensorData*> known;
  for (const format::Program& p : donor.programs)
    over_weights(p.graph, [&](TensorId, const TensorData& t) { known.emplace(key_of(t), &t); });
  size_t weights = 0, shared = 0;
  for (format::Program& p : model.programs)
    over_weights(p.graph, [&](TensorId id, const TensorData& t) {
      ++weights;
      const auto [begin, end] = known.equal_range(key_of(t));
      for (auto it = begin; it != end; ++it)
        if (std::memcmp(it->second->data(), t.data(), t.bytes()) == 0) {
          ++shared;
          release_mapped_pages({static_cast<const std::byte*>(t.data()), t.bytes()});  // read for the comparison
          p.graph.tensor(id).constant = *it->second;
          return;
        }
    });
  if (weights > 0 && shared == 0)
    return invalid_model("its weights do not fit those of the context that is to share them: none of " + std::to_string(weights) +
                         " is there")
        .model(model.name);
  return {};
}

}  // namespace orknn::runtime
