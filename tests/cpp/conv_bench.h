// A layer's operands in the memory of the chip model, with the streams that read them. T: int8_t, or uint16_t for the bits of
// float16. Tensors are rows, columns, channels.
#pragma once

#include <vector>

#include "silicon/layout.h"
#include "silicon/memory.h"
#include "silicon/recipe.h"

namespace orknn::silicon {

template <class T>
struct ConvBench {
  ConvLayer layer;
  std::vector<T> input, weights, operand;
  std::vector<int32_t> bias;
  ConvOperands packed;
  std::vector<std::byte> input_cube, output_cube, operand_cube;
  ConvAddresses at;
  DeviceMemory memory;
  std::vector<Stream> streams;

  explicit ConvBench(ConvLayer l) : layer(std::move(l)) {}

  int64_t input_count() const { return layer.height * layer.width * layer.channels; }
  int64_t output_count() const { return layer.out_height * layer.out_width * layer.kernels; }
  int64_t weight_count() const {
    return layer.window.height * layer.window.width * layer.channels * (layer.depthwise ? 1 : layer.kernels);
  }

  // What the layer has no use for stays without an address.
  Status place() {
    ORKNN_TRY_ASSIGN(packed, pack_operands(layer, weights.data(), bias));
    input_cube.resize(static_cast<size_t>(layer.input_bytes()));
    output_cube.resize(static_cast<size_t>(layer.output_bytes()));
    // The reader fetches a bias for every channel that is written, of which short groups hold less: a driver allocates pages.
    if (layer.grouping == Grouping::Short)
      packed.bias.resize(static_cast<size_t>(round_up(std::ssize(packed.bias), AddressSpace::kPage)));
    pack_cube(layer.input(), TensorOrder::Hwc, input.data(), input_cube, layer.in_zero_point);
    if (layer.element_wise) {
      operand_cube.resize(output_cube.size());
      pack_cube(layer.output(), TensorOrder::Hwc, operand.data(), operand_cube, 0);
    }
    AddressSpace space;
    const auto put = [&](const char* name, uint32_t& address, std::span<std::byte> bytes) -> Status {
      if (bytes.empty()) return {};
      ORKNN_TRY_ASSIGN(address, space.allocate(bytes.size()));
      return memory.map(name, address, bytes);
    };
    ORKNN_TRY(put("input", at.input, input_cube));
    ORKNN_TRY(put("weights", at.weights, packed.weights));
    ORKNN_TRY(put("bias", at.bias, packed.bias));
    ORKNN_TRY(put("output", at.output, output_cube));
    ORKNN_TRY(put("operand", at.operand, operand_cube));
    ORKNN_TRY_ASSIGN(streams, conv_streams(layer, at));
    return {};
  }
};

}  // namespace orknn::silicon
