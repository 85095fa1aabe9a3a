// One call of a Keras layer while it is lowered: its configuration, the arguments of the call, and its weights.
#pragma once

#include <set>

#include "import/keras/model.h"
#include "import/lower/channels_last.h"
#include "import/lower/row.h"

namespace orknn::importer::keras {

// What the layers of one import share.
struct Build {
  Build(const Model& all, const ir::OpSet& ops) : model(all), network(ops) {}
  const Model& model;
  Network network;
  // Of a tensor [batch, time, ...]: which of its steps count. Layers that know of masks hand them on.
  std::unordered_map<int32_t, ir::TensorId> masks;
};

class Layer : public Emitter {
 public:
  using Outputs = std::vector<ir::TensorId>;
  Layer(Build& shared, const Call& stated, std::vector<ir::TensorId> inputs);
  // A layer or function inside of `outer`, with a configuration of its own and no other arguments. Weights are those of `outer`.
  Layer(Layer& outer, std::string kind, const Json& own_config, std::vector<ir::TensorId> inputs);

  Build& build;
  const Call& call;
  const Json& config;
  const std::string& kind() const { return kind_; }
  int generation() const { return build.model.generation(); }
  void warn(const std::string& text);

  // --- what it reads
  size_t operand_count() const { return inputs_.size(); }
  Result<ir::TensorId> operand(size_t i);
  // What the call states in this place or by name, or else the configuration.
  const Json& argument(size_t place, std::string_view name);
  // The tensors that it holds.
  std::vector<ir::TensorId> tensors(size_t place, std::string_view name);
  // Arguments of the call that were not read.
  Status check_all_read() const;
  // None: all steps count.
  ir::TensorId mask_of(ir::TensorId x) const;

  // --- weights, in the order in which the layer made them. `below` is the part of the layer that has it; in files that keep the
  // weights of a layer in one list those of that part begin at `first`.
  bool has_weight(size_t index, std::string_view below = {}, size_t first = 0) const;
  Result<ir::TensorId> weight(size_t index, std::string_view below = {}, size_t first = 0);
  bool has_weights_below(const std::string& part) const;

  // --- configuration
  bool flag(std::string_view key, bool otherwise) const { return config[key].flag(otherwise); }
  int64_t integer(std::string_view key, int64_t otherwise) const { return config[key].integer(otherwise); }
  double number(std::string_view key, double otherwise) const { return config[key].number(otherwise); }
  std::string text(std::string_view key, std::string_view otherwise = {}) const { return config[key].string(otherwise); }
  PictureFormat format(size_t spatial) const { return {text("data_format", "channels_last") != "channels_first", spatial}; }
  // The axes of x that the layer works on, -1 where it states none.
  Result<std::vector<int64_t>> axes(ir::TensorId x) const;

 private:
  const ir::TensorData* find_weight(size_t index, std::string_view below, size_t first) const;

  const Json& arguments_;
  std::string kind_;
  std::vector<ir::TensorId> inputs_;
  std::vector<bool> is_read_;
  std::set<std::string, std::less<>> read_names_;
  size_t read_places_ = 1;  // the first argument is what the layer is called with
};

using Row = OperatorRow<Layer>;

// Layers, by family.
std::span<const Row> activation_rows(), convolution_rows(), pooling_rows(), normalization_rows(), matrix_rows(), shape_rows(),
    image_rows(), elementwise_rows(), recurrent_rows(), attention_rows();
// Functions of keras.ops and of TensorFlow, and activations by their names.
std::span<const Row> function_rows(), array_function_rows(), activation_function_rows();

// nullptr for a layer or function that is not known.
const Row* find_row(const Json& layer);
// Runs the row of a layer; problems name it.
Result<std::vector<ir::TensorId>> lower(Layer& layer);
// Lowers the calls of a model, which read tensors of the network; binds what they make.
Status lower_call(Build& build, const Call& call);

// By name, or by the description of a layer or function. No activation is x itself.
Result<ir::TensorId> activated(Layer& l, ir::TensorId x, const Json& activation);
// MaxPool or AveragePool in windows as the layer states them.
Result<ir::TensorId> pooled_pictures(Layer& l, const char* op, const PictureFormat& format, ir::TensorId x, const Json& size,
                                     const Json& strides, const Json& padding);
// The layer's own activation.
Result<ir::TensorId> with_activation(Layer& l, ir::TensorId x);

}  // namespace orknn::importer::keras
