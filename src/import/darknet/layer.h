// One section of a Darknet network while it is lowered: its options, the layers before it, its numbers, and our nodes for it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/darknet/parse.h"
#include "import/darknet/weights.h"
#include "import/lower/emitter.h"
#include "import/lower/network.h"

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
  Layer(Build& build, const Section& section, std::string name, ir::TensorId previous)
      : Emitter(build.network.graph, build.network.ops, name, {name}), build_(build), section_(section), previous_(previous) {}

  Build& build() { return build_; }
  const Section& section() const { return section_; }
  size_t index() const { return build_.results.size(); }

  // --- options
  bool has(const std::string& key) const { return section_.has(key); }
  Result<int64_t> get_int(const std::string& key, int64_t fallback, int64_t low, int64_t high) const;
  bool get_flag(const std::string& key) const;  // any number but 0
  Result<double> get_float(const std::string& key, double fallback) const;
  std::string get_string(const std::string& key, std::string_view fallback) const;
  Result<std::vector<int64_t>> get_ints(const std::string& key) const;  // a list, at least one

  // --- what it reads
  ir::TensorId previous() const { return previous_; }
  // A layer by number: negative counts back from this one, others from the first.
  Result<ir::TensorId> layer_at(int64_t reference) const;
  Result<ir::TensorId> layer_of(const std::string& key) const;  // the number is the value of an option
  // The tensor as pictures [N,C,H,W] and as rows [N,C*H*W]; connected layers give rows, pictures of one pixel to others.
  Result<ir::TensorId> as_image(ir::TensorId x);
  Result<ir::TensorId> as_rows(ir::TensorId x);

  // --- its numbers
  Result<ir::TensorId> take(std::string_view role, ir::Dims dims, Filling filling, int64_t fan_in = 1);

  // --- its result
  // Applies the activation the section names.
  Status finish(ir::TensorId y, std::string_view default_activation = "linear");
  Status hand_on(ir::TensorId y) {
    result_ = y;
    return {};
  }
  ir::TensorId result() const { return result_; }
  void warn(std::string text);

 private:
  Build& build_;
  const Section& section_;
  ir::TensorId previous_, result_;
};

using Row = LoweringRow<Layer>;
std::span<const Row> convolution_rows();
std::span<const Row> shape_rows();
std::span<const Row> pool_rows();
std::span<const Row> recurrent_rows();

// Names Darknet does not know are taken for relu, as it does, with a warning.
Result<ir::TensorId> activate(Layer& layer, ir::TensorId x, std::string_view name);

// The steps of a convolution, for layers that hold several: the numbers in the order of the file, then the nodes.
Result<Parameters> take_convolution(Layer& layer, const Convolution& convolution, int64_t channels, const std::string& prefix);
Result<ir::TensorId> convolve(Layer& layer, ir::TensorId x, const Convolution& convolution, const Parameters& parameters);
// The same for a connected layer.
Result<Parameters> take_connected(Layer& layer, int64_t inputs, int64_t outputs, bool batch_normalize, const std::string& prefix);
Result<ir::TensorId> connect(Layer& layer, ir::TensorId rows, const Parameters& parameters, std::string_view activation);
// A fixed depthwise blur does the striding of layers with antialiasing: kind 1 is the binomial 3x3, 2 the mean of 2x2.
Result<ir::TensorId> blur(Layer& layer, ir::TensorId x, int64_t channels, int64_t kind, int64_t stride_x, int64_t stride_y);
// Options of a convolution that all sections with convolutions spell alike.
Result<Convolution> convolution_options(const Layer& layer, int64_t default_size, std::string_view default_activation);

}  // namespace orknn::importer::darknet
