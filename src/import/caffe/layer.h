// One layer of a Caffe network while it is lowered: its parameters, what it reads, its blobs, and our nodes for it.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "import/caffe/parse.h"
#include "import/lower/network.h"
#include "import/lower/row.h"
#include "import/lower/window.h"

namespace orknn::importer::caffe {

// A blob as the layer expects it.
struct BlobSpec {
  std::string_view role;  // "weight", "bias"
  ir::Dims dims;
  Fill fill = Fill::Random;         // what it is when no weights are given
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
  InventedValues invented;
  bool has_random = false;  // weights among the invented values
};

class Layer : public Emitter {
 public:
  using Outputs = std::vector<ir::TensorId>;  // one per top
  Layer(Build& build, const LayerDescription& description, std::vector<ir::TensorId> bottoms)
      : Emitter(build.network.graph, build.network.ops, description.name, {description.name}),
        build_(build),
        description_(description),
        bottoms_(std::move(bottoms)) {}

  const LayerDescription& description() const { return description_; }
  Parameters parameters(std::string_view name) { return {description_.parameters(name), problem_}; }
  // What was wrong with the parameters read so far.
  const Status& problem() const { return problem_; }
  void warn(std::string text) { build_.network.warnings.push_back("layer '" + layer() + "': " + std::move(text)); }

  // --- what it reads and writes
  size_t operand_count() const { return bottoms_.size(); }
  Result<ir::TensorId> operand(size_t i) const;
  size_t top_count() const { return description_.tops.size(); }
  // Extents of the axes from `begin` up to `end`, which have to be known.
  Result<ir::Dims> extents(ir::TensorId x, int64_t begin, int64_t end, std::string_view reason) const;
  Result<int64_t> extent(ir::TensorId x, int64_t axis, std::string_view reason) const;
  // An axis of `x` that a parameter names, negative ones counted from the end.
  Result<int64_t> axis_of(ir::TensorId x, const Parameters& parameters, std::string_view name, int64_t fallback) const;

  // --- its blobs
  size_t blob_count() const;           // 0 without weights
  const Blob* stored(size_t i) const;  // nullptr when the weights have none
  Result<ir::TensorId> blob(size_t i, const BlobSpec& spec);
  // The first blob with one value per channel of `x`, or a single one when it is shared or the file has no more, lined up with
  // `x`. The extents of `spec` follow from that.
  Result<ir::TensorId> channel_blob(ir::TensorId x, bool is_shared, BlobSpec spec);
  // A constant of one value throughout.
  Result<ir::TensorId> uniform(std::string_view role, ir::Dims dims, double value);

  // --- short forms; nothing is added for a factor of 1 or a term of 0
  ir::TensorId scaled(ir::TensorId x, double factor) { return factor == 1 ? x : mul(x, factor); }
  ir::TensorId shifted(ir::TensorId x, double term) { return term == 0 ? x : add(x, term); }
  ir::TensorId power(ir::TensorId x, double exponent) { return exponent == 1 ? x : with_scalar("Pow", x, exponent); }
  // Some axes of a tensor of `rank` axes, from `axis` on, with ones for the axes that follow.
  ir::TensorId along_axis(ir::TensorId vector, ir::Dims dims, int64_t axis, int64_t rank);

 private:
  Result<ir::TensorData> initial_value(const BlobSpec& spec);
  Build& build_;
  const LayerDescription& description_;
  std::vector<ir::TensorId> bottoms_;
  Status problem_;
};

using Row = OperatorRow<Layer>;
inline constexpr RowLimits kOne{.inputs = {1, 1}}, kOneOrTwo{.inputs = {1, 2}}, kTwo{.inputs = {2, 2}}, kThree{.inputs = {3, 3}},
    kAtLeastOne{.inputs = {.least = 1}};
std::span<const Row> elementwise_rows(), convolution_rows(), pooling_rows(), normalization_rows(), reduction_rows(), shape_rows(),
    resize_rows(), recurrent_rows(), detection_rows(), flow_rows();

// Axes from `begin` up to `end`.
std::vector<int64_t> axes_between(int64_t begin, int64_t end);
// Float32 values that are all the same.
ir::TensorData uniform_data(ir::Dims dims, double value);
// Kernel, stride, pad and dilation per spatial axis of `x`, from a list, one number, or the _h and _w fields.
Result<Window> window_of(Layer& layer, ir::TensorId x, const Parameters& parameters);
// Number of anchors of a Proposal layer: the network's input shapes follow from it.
Result<int64_t> anchor_count(const LayerDescription& proposal);

}  // namespace orknn::importer::caffe
