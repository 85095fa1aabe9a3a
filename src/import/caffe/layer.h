// One layer of a Caffe network while it is lowered: its parameters, what it reads, its blobs, and our nodes for it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "import/caffe/parse.h"
#include "import/lower/emitter.h"
#include "import/lower/network.h"

namespace orknn::importer::caffe {

// What numbers are when no weights are given.
enum class Filling { Random, Zeros, Ones };

// A blob as the layer expects it.
struct BlobSpec {
  std::string_view role;  // "weight", "bias"
  ir::Dims dims;
  Filling filling = Filling::Random;
  int64_t fan_in = 1;               // inputs that add up to one output, for random values
  const Message* filler = nullptr;  // how the network fills it before training
};

// What the layers of one network share.
struct Build {
  explicit Build(const ir::OpSet& ops) : network(ops) {}
  Network network;
  Weights weights;
  bool has_weights = false;
  std::unordered_map<std::string, ir::TensorId> shared;  // blobs that go by a name of their own
  int64_t invented = 0;                                  // values made up so far
  bool has_random = false;                               // weights among them

  // Counts values that are about to be made up; refuses more than a network can need.
  Status allow(std::span<const int64_t> dims);
};

class Layer : public Emitter {
 public:
  Layer(Build& build, const LayerDescription& description, std::vector<ir::TensorId> bottoms)
      : Emitter(build.network.graph, build.network.ops, description.name, {description.name}),
        build_(build),
        description_(description),
        bottoms_(std::move(bottoms)),
        tops_(description.tops.size()) {}

  const LayerDescription& description() const { return description_; }
  const Message& parameters(std::string_view name) const { return description_.parameters(name); }
  void warn(std::string text) { build_.network.warnings.push_back("layer '" + layer() + "': " + std::move(text)); }

  // --- what it reads and writes
  size_t bottom_count() const { return bottoms_.size(); }
  size_t top_count() const { return tops_.size(); }
  ir::TensorId bottom(size_t i = 0) const { return bottoms_[i]; }
  Status need_bottoms(size_t least, size_t most) const;
  Status set_top(ir::TensorId id, size_t i = 0);
  ir::TensorId top(size_t i) const { return tops_[i]; }
  // The extent of one axis of a tensor, which has to be known.
  Result<int64_t> extent(ir::TensorId x, int64_t axis, std::string_view reason) const;
  // An axis parameter, negative ones counted from the end.
  Result<int64_t> axis_of(const Message& parameters, std::string_view name, int64_t fallback, int64_t rank) const;

  // --- its blobs
  size_t blob_count() const;           // 0 without weights
  const Blob* stored(size_t i) const;  // nullptr when the weights have none
  Result<ir::TensorId> blob(size_t i, const BlobSpec& spec);
  // A constant of one value throughout.
  Result<ir::TensorId> uniform(std::string_view role, ir::Dims dims, double value);

  // --- short forms; nothing is added for a factor of 1 or a term of 0
  ir::TensorId scaled(ir::TensorId x, double factor);
  ir::TensorId shifted(ir::TensorId x, double term);
  ir::TensorId power(ir::TensorId x, double exponent);
  ir::TensorId slice(ir::TensorId x, int64_t axis, int64_t begin, int64_t end);
  // A per-channel vector [C] as [C,1,...,1] for tensors of `rank` axes, channels at `axis`.
  ir::TensorId along_axis(ir::TensorId vector, ir::Dims dims, int64_t axis, int64_t rank);

 private:
  Result<ir::TensorData> filled(const BlobSpec& spec);
  Build& build_;
  const LayerDescription& description_;
  std::vector<ir::TensorId> bottoms_, tops_;
};

using Row = LoweringRow<Layer>;
std::span<const Row> activation_rows();
std::span<const Row> convolution_rows();
std::span<const Row> pool_rows();
std::span<const Row> normalization_rows();
std::span<const Row> arithmetic_rows();
std::span<const Row> shape_rows();
std::span<const Row> resize_rows();
std::span<const Row> recurrent_rows();
std::span<const Row> detection_rows();
std::span<const Row> flow_rows();

// Kernel, stride, pad and dilation per spatial axis, from a list, one number, or the _h and _w fields.
struct Window {
  std::vector<int64_t> kernel, stride, pad, dilation;
  std::vector<int64_t> pads() const;  // begin of every axis, then end of every axis
};
Result<Window> window_of(const Message& parameters, size_t spatial_axes);

// Number of anchors of a Proposal layer: the network's input shapes follow from it.
Result<int64_t> anchor_count(const LayerDescription& proposal);

}  // namespace orknn::importer::caffe
