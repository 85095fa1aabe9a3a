// What the lowerings of integer layers (lower.cpp) and of float16 layers (lower_half.cpp) share. Not for others.
#pragma once

#include <optional>
#include <string>

#include "ops/support/window.h"
#include "silicon/lower.h"

namespace orknn::silicon {

// What a node's lowering works on; `refuse` gives the reason to the caller.
struct Lowering {
  const format::Program& program;
  const ir::Node& node;
  ir::NodeReader attributes;
  LoweredNode result;

  const ir::Graph& graph() const { return program.graph; }
  DType dtype(size_t input) const { return graph().tensor(node.input(input)).dtype; }
  std::optional<ir::Dims> dims(ir::TensorId t) const {
    const auto& shape = graph().tensor(t).shape;
    return shape ? ir::to_dims(*shape) : std::nullopt;
  }
  const ir::TensorData* constant(size_t input) const {
    return node.has_input(input) ? graph().constant(node.input(input)) : nullptr;
  }
  bool refuse(std::string why) {
    result.reason = std::move(why);
    return false;
  }
};
using Lower = bool (*)(Lowering&);

Window2d window_of(const ops::Window& w);

// The geometry of a layer between the cubes that the result already names.
template <class Layer>
void set_pictures(const LoweredNode& result, Layer& layer) {
  layer.height = result.input.cube.height;
  layer.width = result.input.cube.width;
  layer.channels = result.input.cube.channels;
  layer.out_height = result.output.cube.height;
  layer.out_width = result.output.cube.width;
}
// Input 0 and the output are single pictures.
bool set_cubes(Lowering& l, Precision precision);
// The layer that adds up windows: a depthwise convolution that keeps its channels.
ConvLayer mean_layer(const Lowering& l, const Window2d& window);
// Rows of a left matrix, products with a constant one of [depth, columns]: pixels of pictures one column wide.
bool set_rows(Lowering& l, int64_t depth, int64_t columns, Precision precision);
// Tries the recipe, so that its limits become the reason, and what the lint refuses too: the model runs with that layer on the
// CPU.
bool accept(Lowering& l, const ConvLayer& layer);
bool lower_pool(Lowering& l, PoolTask::Method method, Precision precision, int64_t zero_point);

// The constant operand 1 of a convolution, [kernels][channels / groups][taps], as weights of `layer`.
LayerWeights conv_weights(const Lowering& l, const ConvLayer& layer, int64_t groups);
// The constant operand 1 of a product, [depth][columns], or [columns][depth] where it is `turned`.
LayerWeights matrix_weights(const Lowering& l, const ConvLayer& layer, bool turned);
// Each kernel reads one channel, with the weight `bits`.
LayerWeights diagonal_weights(const ConvLayer& layer, int64_t bits);
// Every weight is `bits`.
LayerWeights equal_weights(const ConvLayer& layer, int64_t bits);
// A depthwise layer and its weights become direct convolutions of blocks of channels: only those have results of 32 bits.
void put_in_blocks(ConvLayer& layer, LayerWeights& weights);
// Values of the weights, nullptr where there is no tensor of them.
inline const void* values_of(const Lowering& l, const LayerWeights& w) {
  return w.tensor ? l.graph().constant(w.tensor)->data() : nullptr;
}
// A convolution of two axes: window, kernels, depthwise or not, from its attributes and the extents of its weights.
struct ConvForm {
  ConvLayer layer;
  int64_t groups = 1;
};
std::optional<ConvForm> conv_form(Lowering& l, const ir::Dims& weights);

// Layers whose data is float16, by operator; nullptr where none has a recipe. They look at the node's tail themselves.
Lower half_lowering(std::string_view op);

}  // namespace orknn::silicon
