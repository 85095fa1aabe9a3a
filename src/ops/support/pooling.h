// What pools share: geometry over [N, C, spatial...] and a walk over the input positions that each window covers.
#pragma once

#include <utility>
#include <vector>

#include "base/threads.h"
#include "ops/support/window.h"

namespace orknn::ops {

struct PoolShape {
  int64_t batch = 0, channels = 0;
  Window window;           // padding settled
  ir::Dims input, output;  // spatial extents

  int64_t planes() const { return batch * channels; }
  ir::Dims output_dims() const;
};

// Schema of the attributes all pools share.
std::vector<ir::AttributeDef> pool_attributes();
Result<PoolShape> pool_shape(const ir::NodeReader& node, std::span<const int64_t> x);
// Shape of the outputs, symbols included; nothing when the rank is unknown.
Result<std::optional<ir::Shape>> infer_pool(const ir::InferContext& c);
// Shape rule of pools with one output of the input's type, floating point only.
Status infer_float_pool(ir::InferContext& c);
// The order of a norm, attribute `p`, is at least 1.
Status check_norm_order(const ir::NodeReader& node);
ir::OpCost pool_cost(const ir::NodeReader& node, std::span<const ir::Dims> inputs, std::span<const ir::Dims> outputs);

// The taps of one window that lie inside the input, per axis.
struct Taps {
  ir::Dims first;            // input position of the first tap
  ir::Dims count;            // number of taps inside
  int64_t inside = 0;        // product of counts
  int64_t with_padding = 0;  // taps inside the padded input (a window of ceil_mode may reach beyond it)
  // Index of an earlier output with all these taps, or -1. A window larger than its input covers the same elements many times.
  int64_t same_as = -1;
};

// Calls visit(output index in the plane, taps) for every output position of one plane, in row-major order.
template <class Visit>
void for_each_window(const PoolShape& s, Visit&& visit) {
  const size_t rank = s.window.rank();
  const int64_t total = ir::element_count(s.output);
  ir::Dims at(rank, 0);
  Taps taps{ir::Dims(rank), ir::Dims(rank), 0, 0};
  const auto differs = [](int64_t& known, int64_t now) { return std::exchange(known, now) != now; };
  ir::Dims padded_count(rank, -1);
  bool same_row = false;  // as the row before, where axes other than the last are concerned
  for (int64_t o = 0; o < total; ++o, next_index(at, s.output)) {
    taps.inside = taps.with_padding = 1;
    const bool begins_row = at[rank - 1] == 0;
    bool same_column = !begins_row;
    if (begins_row) same_row = o > 0;
    for (size_t i = 0; i < rank; ++i) {
      const int64_t start = at[i] * s.window.strides[i] - s.window.pads_begin[i];
      const OutputRange range = outputs_inside(start, s.window.dilations[i], s.input[i], s.window.kernel[i]);
      const OutputRange padded = outputs_inside(start + s.window.pads_begin[i], s.window.dilations[i],
                                                s.input[i] + s.window.pads_begin[i] + s.window.pads_end[i], s.window.kernel[i]);
      bool changes = differs(taps.first[i], start + range.begin * s.window.dilations[i]);
      changes |= differs(taps.count[i], range.end - range.begin);
      changes |= differs(padded_count[i], padded.end - padded.begin);
      if (changes) (i + 1 == rank ? same_column : same_row) = false;
      taps.inside *= taps.count[i];
      taps.with_padding *= padded_count[i];
    }
    taps.same_as = same_column ? o - 1 : same_row ? o - s.output[rank - 1] : -1;
    visit(o, taps);
  }
}

// Calls visit(position) with the row-major index of every tap inside the plane. `strides` are those of the plane.
template <class Visit>
void for_each_tap(const PoolShape& s, const Taps& taps, std::span<const int64_t> strides, Visit&& visit) {
  if (taps.inside == 0) return;
  const size_t inner = s.window.rank() - 1;
  ir::Dims at(inner, 0);
  const std::span<const int64_t> outer(taps.count.data(), inner);
  do {
    int64_t position = taps.first[inner];
    for (size_t i = 0; i < inner; ++i) position += (taps.first[i] + at[i] * s.window.dilations[i]) * strides[i];
    for (int64_t k = 0; k < taps.count[inner]; ++k, position += s.window.dilations[inner]) visit(position);
  } while (next_index(at, outer));
}

// Runs body(plane) for every plane, several per thread.
void for_each_plane(ThreadPool& pool, int64_t planes, const std::function<void(int64_t plane)>& body);

}  // namespace orknn::ops
