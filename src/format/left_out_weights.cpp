#include "format/left_out_weights.h"

#include <sys/mman.h>

#include "base/checksum.h"
#include "ir/packed.h"

namespace orknn::format {
namespace {
using ir::TensorData;

struct LeftOut {
  uint64_t bytes = 0, checksum = 0;
  bool operator<(const LeftOut& other) const { return std::pair(bytes, checksum) < std::pair(other.bytes, other.checksum); }
};

Status damaged_list() { return invalid_model("the program in the file is damaged: the list of weights it leaves out"); }

// Constants of a model whose checksum is computed when something of their size is asked for.
class Donor {
 public:
  explicit Donor(std::shared_ptr<const Model> model) : model_(std::move(model)) {
    for (const Program& program : model_->programs)
      for (size_t i = 0; i < program.graph.tensor_count(); ++i)
        if (const TensorData* value = program.graph.constant(ir::TensorId{static_cast<int32_t>(i)}))
          unseen_.emplace(stored(*value).bytes(), &stored(*value));
  }

  Result<TensorData> find(const LeftOut& wanted) {
    const auto [begin, end] = unseen_.equal_range(wanted.bytes);
    for (auto it = begin; it != end; ++it) {
      const std::span bytes(static_cast<const std::byte*>(it->second->data()), it->second->bytes());
      known_.emplace(LeftOut{bytes.size(), checksum64(bytes)}, it->second);
    }
    unseen_.erase(begin, end);
    const auto found = known_.find(wanted);
    if (found == known_.end())
      return invalid_model("the model to share weights with lacks some of those that this model was converted without")
          .found("none of " + std::to_string(wanted.bytes) + " bytes that is equal")
          .hint(
              "convert both models from the same source with the same options, only the sizes of their inputs may differ; of "
              "quantized models, convert the one that has the weights with optimization_level=2, else its calibration changes "
              "them");
    return *found->second;
  }

 private:
  static const TensorData& stored(const TensorData& value) { return value.packed() ? value.packed()->integers : value; }
  std::shared_ptr<const Model> model_;
  std::multimap<uint64_t, const TensorData*> unseen_;  // by size
  std::map<LeftOut, const TensorData*> known_;
};
}  // namespace

OutsideWeights weights_of(std::shared_ptr<const Model> donor) {
  return [donor = std::make_shared<Donor>(std::move(donor))](uint64_t bytes, uint64_t checksum) {
    return donor->find({bytes, checksum});
  };
}

// Pages that are never written take no memory, whatever size a damaged file states.
OutsideWeights zero_weights() {
  return [](uint64_t bytes, uint64_t) -> Result<TensorData> {
    void* zeros = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED)
      return Status::error(Code::OutOfMemory,
                           "no memory for weights that the file leaves out (" + std::to_string(bytes) + " bytes)");
    std::shared_ptr<const void> keeper(zeros, [bytes](const void* p) { ::munmap(const_cast<void*>(p), bytes); });
    return TensorData::wrap(DType::UInt8, {static_cast<int64_t>(bytes)}, zeros, std::move(keeper));
  };
}

void encode_left_out(const WeightCollector& weights, ByteWriter& out) {
  out.count(weights.left_out().size());
  for (const WeightCollector::Piece& piece : weights.left_out()) {
    out.put(static_cast<uint64_t>(piece.bytes.size()));
    out.put(checksum64(piece.bytes));
  }
}

Result<std::map<uint64_t, TensorData>> find_left_out(std::span<const std::byte> section, const OutsideWeights& outside) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 40;  // of one constant; keeps offsets far from their end
  if (!outside)
    return invalid_model("the model was converted without the weights of its convolutions (remove_weight)")
        .hint("load it with RKNN_FLAG_SHARE_WEIGHT_MEM beside the model that has them");
  std::map<uint64_t, TensorData> found;
  ByteReader in(section);
  uint64_t offset = kLeftOut;
  for (uint32_t i = 0, n = in.count(2 * sizeof(uint64_t)); i < n; ++i) {
    const auto bytes = in.get<uint64_t>(), checksum = in.get<uint64_t>();
    if (bytes == 0 || bytes > kMaxBytes || offset - kLeftOut > kMaxBytes) return damaged_list();
    ORKNN_TRY_ASSIGN(TensorData value, outside(bytes, checksum));
    found.emplace(offset, std::move(value));
    offset += aligned(bytes);
  }
  if (in.failed()) return damaged_list();
  return found;
}

}  // namespace orknn::format
