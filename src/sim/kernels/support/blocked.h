// Tensors in blocks (sim/form.h): conversions, and what the kernels that read and write them share.
#pragma once

#include <algorithm>
#include <cstring>

#include "ir/tensor_data.h"
#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/int_stage.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim::kernels {

// The same tensor in the other form; `blocks` hold blocked_bytes().
void to_blocks(const ir::TensorView& rows, void* blocks, ThreadPool& pool);
void from_blocks(const void* blocks, const ir::MutableTensorView& rows, ThreadPool& pool);

// The channels of a pixel, with vectors that every machine has.
typedef uint8_t Pixel __attribute__((vector_size(kBlock)));
inline Pixel load_pixel(const void* from) {
  Pixel pixel;
  std::memcpy(&pixel, from, kBlock);
  return pixel;
}
inline void store_pixel(void* to, Pixel pixel) { std::memcpy(to, &pixel, kBlock); }

inline bool in_blocks(const OperandFacts& o) { return o.form == Form::Blocked; }

// Calls body(image * blocks + block, first pixel, pixels) for all pixels of a tensor in blocks. Parts of the same pixels follow
// each other: as in a convolution, a thread of several gets the pixels that it computed in the layer before.
template <class Body>
void for_each_part(std::span<const int64_t> dims, ThreadPool& pool, Body&& body) {
  constexpr int64_t kElements = 1 << 15;  // of a piece of work
  const int64_t area = dims[2] * dims[3], planes = dims[0] * blocks_of(dims[1]), threads = pool.threads();
  const int64_t part = std::clamp<int64_t>(threads > 1 ? divide_up(area, 2 * threads) : area, 1, kElements / kBlock),
                parts = divide_up(area, part);
  pool.parallel_for(planes * parts, std::max<int64_t>(1, kElements / (part * kBlock)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i % planes, i / planes * part, std::min(part, area - i / planes * part));
  });
}

// A convolution over blocks: the converter for unsigned bytes, and how weights become dwords.
struct BlockedConv {
  Isa isa = Isa::Portable;
  Dot dot = Dot::Words;
  Window window;
  int64_t in_blocks = 0, out_blocks = 0, channels = 0, outputs = 0;
  int64_t x_zero = 0;  // of unsigned bytes
  uint8_t flip = 0;    // what bytes of data change for the dot products, IntForms::data_flip
  OutputPlan output;   // its bias has what the zero point adds

  int64_t per_dword() const { return dot == Dot::Words ? 2 : 4; }
  // Whether gathering the pixels for sums of pairs (IntForms::blocked_panel) is worth it.
  bool multiplies_pairs() const;
  // Nothing for nodes that are not such a convolution. `depthwise`: every output channel reads the input channel of its number.
  static std::optional<BlockedConv> create(const KernelQuery& query, bool depthwise);
  // Takes the zero point of the data out of the bias of every output channel; `sums` are those of its weights.
  void fold_zero_point(std::span<const int64_t> sums);
  // Of every output channel.
  void subtract_from_bias(std::span<const int64_t> values);
  // The converter of a block.
  IntConvert converter(int64_t block) const;
};

// The weights of a convolution, without their zero points.
class Weights {
 public:
  explicit Weights(const KernelQuery& query);
  int64_t at(int64_t output, int64_t channel, int64_t tap) const {
    const int64_t i = (output * channels_ + channel) * taps_ + tap;
    return (is_signed_ ? static_cast<int8_t>(data_[i]) : data_[i]) - zeros_[zeros_.size() == 1 ? 0 : static_cast<size_t>(output)];
  }

 private:
  const uint8_t* data_;
  bool is_signed_;
  std::span<const int64_t> zeros_;
  int64_t channels_, taps_;
};

}  // namespace orknn::sim::kernels
