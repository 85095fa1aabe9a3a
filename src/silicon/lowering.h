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
// Tries the recipe, so that its limits become the reason.
bool accept(Lowering& l, const ConvLayer& layer);
bool lower_pool(Lowering& l, PoolTask::Method method, Precision precision, int64_t zero_point);

// Weights [kernels][channels / groups][taps] as the unit has them: depthwise [taps][channels], else [kernels][taps][channels]
// with `zero` where a kernel of another group would stand: the unit has no groups.
template <class T>
std::vector<T> rearranged(const T* from, const ConvLayer& layer, int64_t groups, T zero) {
  const int64_t taps = layer.window.height * layer.window.width, kernels = layer.kernels;
  if (layer.depthwise) {
    std::vector<T> to(static_cast<size_t>(kernels * taps));
    for (int64_t c = 0; c < kernels; ++c)
      for (int64_t t = 0; t < taps; ++t) to[static_cast<size_t>(t * kernels + c)] = from[c * taps + t];
    return to;
  }
  const int64_t own = layer.channels / groups;
  std::vector<T> to(static_cast<size_t>(kernels * taps * layer.channels), zero);
  for (int64_t k = 0; k < kernels; ++k) {
    const int64_t first = k / (kernels / groups) * own;
    for (int64_t c = 0; c < own; ++c)
      for (int64_t t = 0; t < taps; ++t)
        to[static_cast<size_t>((k * taps + t) * layer.channels + first + c)] = from[(k * own + c) * taps + t];
  }
  return to;
}
// A depthwise layer and its weights as direct convolutions of blocks of channels: only those have results of 32 bits.
template <class T>
std::vector<T> in_blocks(ConvLayer& layer, const std::vector<T>& weights) {
  const int64_t taps = layer.window.height * layer.window.width;
  layer.depthwise = false;
  layer.block = weight_groups(layer.in).channels;
  std::vector<T> to(static_cast<size_t>(layer.kernels * taps * layer.block));
  for (int64_t k = 0; k < layer.kernels; ++k)
    for (int64_t t = 0; t < taps; ++t)
      to[static_cast<size_t>((k * taps + t) * layer.block + k % layer.block)] =
          weights[static_cast<size_t>(t * layer.kernels + k)];
  return to;
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
