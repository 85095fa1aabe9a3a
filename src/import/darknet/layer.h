// One section of a Darknet network while it is lowered: its options, the layers before it, its numbers, and our nodes for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/darknet/parse.h"
#include "import/darknet/weights.h"
#include "import/lower/network.h"
#include "import/lower/row.h"
#include "import/lower/window.h"

namespace orknn::importer::darknet {

// A convolution as sections describe it; recurrent sections hold several.
struct Convolution {
  int64_t filters = 1, size = 1, stride_x = 1, stride_y = 1, padding = 0, dilation = 1, groups = 1;
  bool batch_normalize = false, load_scales = true, flipped = false, binary_weights = false, binary_input = false;
  std::string activation = "linear";
};

// Constants of a convolution or of a connected layer; scale, mean and variance only with batch normalization.
struct Parameters {
  ir::TensorId weight, bias, scale, mean, variance;
  ir::Dims weight_dims;
};

// Pictures [N,C,H,W].
struct Pictures {
  ir::TensorId x;
  ir::Dims dims;
};

// What the layers of one network share.
struct Build {
  explicit Build(const ir::OpSet& ops) : network(ops) {}
  Network network;
  Weights weights;
  std::vector<ir::TensorId> results;                    // of each layer so far; a layer without effect hands on what it reads
  std::vector<std::optional<Parameters>> convolutions;  // of each layer so far, for those that share them
  std::vector<ir::TensorId> heads;                      // what the detection layers read, in their order
  bool has_state = false;
};

class Layer : public Emitter {
 public:
  using Outputs = std::vector<ir::TensorId>;  // always one
  Layer(Build& build, const Section& section, std::string name, ir::TensorId previous)
      : Emitter(build.network.graph, build.network.ops, name, {name}), build_(build), section_(section), previous_(previous) {}

  Build& build() { return build_; }
  const Section& section() const { return section_; }
  size_t index() const { return build_.results.size(); }
  void warn(std::string text) { build_.network.warnings.push_back("layer '" + layer() + "': " + std::move(text)); }

  // --- options. One that is no number or out of range reads as the fallback or the nearest value; the first such problem is
  // kept, and fails the layer after its lowering has run.
  bool has(const std::string& key) const { return section_.has(key); }
  int64_t integer(const std::string& key, int64_t fallback, int64_t low, int64_t high);
  double number(const std::string& key, double fallback);
  bool flag(const std::string& key) const;  // any number but 0
  std::string text(const std::string& key, std::string_view fallback) const;
  Result<std::vector<int64_t>> integers(const std::string& key) const;  // a list, at least one
  const Status& problem() const { return problem_; }

  // --- what it reads: the layer before, or others by their numbers
  size_t operand_count() const { return 1; }
  Result<ir::TensorId> operand(size_t) const { return previous_; }
  // The number of a layer before this one: negative references count back from this one, others from the first.
  Result<size_t> layer_number(int64_t reference) const;
  Result<ir::TensorId> layer_at(int64_t reference) const;
  // The tensor as pictures and as rows [N,C*H*W]; connected layers give rows, pictures of one pixel to others.
  Result<Pictures> pictures(ir::TensorId x);
  Result<Pictures> rows(ir::TensorId x);

  // --- its numbers
  Result<ir::TensorId> take(std::string_view role, ir::Dims dims, Fill fill, int64_t fan_in = 1);
  // The same without touching the file.
  Result<ir::TensorId> invent(std::string_view role, ir::Dims dims, Fill fill, int64_t fan_in = 1);

  // --- its result: `y` with the activation the section names
  ir::TensorId activated(ir::TensorId y, std::string_view default_activation = "linear");

 private:
  std::optional<double> number_of(const std::string& key);
  void fail(Status problem);
  Build& build_;
  const Section& section_;
  ir::TensorId previous_;
  Status problem_;
};

// Largest window, stride or padding of a section.
inline constexpr int64_t kMaxSize = int64_t{1} << 12;

using Row = OperatorRow<Layer>;
std::span<const Row> elementwise_rows(), convolution_rows(), pooling_rows(), normalization_rows(), shape_rows(), recurrent_rows(),
    detection_rows();

// Names Darknet does not know are taken for relu, as it does, with a warning.
ir::TensorId activate(Layer& layer, ir::TensorId x, std::string_view name);

// A square window with the same padding on all sides, or with more at the end.
Window square_window(int64_t size, int64_t stride_y, int64_t stride_x, int64_t padding, int64_t padding_at_end);

// Scale, mean and variance, which follow each other in every kind of layer.
Status take_statistics(Layer& layer, Parameters& parameters, int64_t channels, bool load, const std::string& prefix);
ir::TensorId batch_normalized(Layer& layer, ir::TensorId x, const Parameters& parameters);
// The steps of a convolution, for layers that hold several: the numbers in the order of the file, then the nodes.
Result<Parameters> take_convolution(Layer& layer, const Convolution& convolution, int64_t channels, const std::string& prefix);
ir::TensorId convolve(Layer& layer, ir::TensorId x, const Convolution& convolution, const Parameters& parameters);
// The same for a connected layer.
Result<Parameters> take_connected(Layer& layer, int64_t inputs, int64_t outputs, bool batch_normalize, const std::string& prefix);
ir::TensorId connect(Layer& layer, ir::TensorId rows, const Parameters& parameters, std::string_view activation);
// A fixed depthwise blur does the striding of layers with antialiasing: kind 1 is the binomial 3x3, 2 the mean of 2x2.
Result<ir::TensorId> blur(Layer& layer, ir::TensorId x, int64_t channels, int64_t kind, int64_t stride_x, int64_t stride_y);
// Options of a convolution that all sections with convolutions spell alike.
Convolution convolution_options(Layer& layer, int64_t default_size, std::string_view default_activation);

}  // namespace orknn::importer::darknet
