#include "sim/kernels/support/float_maps.h"

#include <algorithm>

namespace orknn::sim::kernels {
namespace {
constexpr int64_t kBandBytes = 384 << 10;  // of the input that all weights pass by
constexpr int64_t kLinePixels = 28;        // a part of a plane whose rows are one is a multiple of these
constexpr int64_t kSmallestJob = 100'000;  // multiply-accumulates
constexpr int64_t kFewChannels = 8;        // fewer results than these leave most lanes empty
constexpr int64_t kSmallPlane = 64;        // pixels, where that does not matter
constexpr int64_t kRowChannels = 4;        // of pictures, which are read in rows
constexpr int64_t kRowsApart = 2;          // of the result, where rows of taps lie too far apart for one copy

// How a plane of the result, and its blocks, are divided into jobs.
struct Division {
  bool flat = false;   // the plane is one row
  bool apart = false;  // rows of taps are copied one by one, those that the result of a job meets in the input
  int64_t height = 0, width = 0, part = 0 /* rows, or pixels of a flat plane */, parts = 0, blocks = 0, block_parts = 0;
};
Division divide(const FloatConv& c, int64_t images, int64_t threads) {
  const Window& w = c.window;
  Division d;
  d.flat = !c.from_rows && w.taps() == 1 && w.stride == Window::Axes{1, 1, 1} && !w.padded();
  d.height = d.flat ? 1 : w.out[1];
  d.width = d.flat ? w.out_size() : w.out[2];
  const int64_t extent = d.flat ? d.width : d.height, unit = d.flat ? kLinePixels : 1;
  const int64_t bytes = (d.flat ? 1 : w.stride[1] * padded_columns(w)) * c.channels * 4;  // of the input, per pixel or row
  const int64_t overlap = d.flat ? 0 : (w.kernel[1] - 1) * w.dilation[1] / w.stride[1];
  // Which taps are left out does not depend on the threads: their weights may be infinite.
  d.apart = w.padded() && w.dilation[1] > kRowsApart * w.stride[1] && kBandBytes / bytes < 2 * overlap;
  d.parts = divide_up(extent, d.apart ? kRowsApart : std::max(unit, kBandBytes / bytes - overlap));
  d.block_parts = 1;
  if (threads > 1) {
    const int64_t work = w.out_size() * w.taps() * c.channels * c.outputs;
    const int64_t wanted = std::min(divide_up(kJobsPerThread * threads, images), std::max<int64_t>(1, work / kSmallestJob));
    if (!d.apart) d.parts = std::max(d.parts, std::min(wanted, divide_up(extent, unit)));
    d.block_parts = std::min(divide_up(c.y_blocks, kTogether), divide_up(wanted, d.parts));
  }
  d.part = d.apart ? std::min(kRowsApart, extent) : divide_up(divide_up(extent, d.parts), unit) * unit;
  d.parts = divide_up(extent, d.part);
  d.blocks = divide_up(divide_up(c.y_blocks, d.block_parts), kTogether) * kTogether;
  d.block_parts = divide_up(c.y_blocks, d.blocks);
  return d;
}

// Rows of taps [first, end) that results of rows [begin, begin + count) meet in the input, at least one.
struct TapRows {
  int64_t first = 0, end = 0;
};
TapRows tap_rows_inside(const Window& w, int64_t begin, int64_t count) {
  const int64_t above = w.pad_begin[1] - (begin + count - 1) * w.stride[1],
                below = w.in[1] + w.pad_begin[1] - begin * w.stride[1];
  TapRows t;
  t.first = above > 0 ? std::min(divide_up(above, w.dilation[1]), w.kernel[1] - 1) : 0;
  t.end = std::clamp(below > 0 ? divide_up(below, w.dilation[1]) : 0, t.first + 1, w.kernel[1]);
  return t;
}

// A copy with its padding, or one per row of taps, is not out of proportion to the plane.
bool suits_a_copy(const Window& w) {
  return w.fits_int32() && !w.cuts_input() && w.kernel[2] * w.dilation[2] <= 4 * (w.in[2] + 16) &&
         (w.kernel[1] - 1) * w.dilation[1] + 1 <= 4 * (w.in[1] + 16);
}
}  // namespace

void BlockedSteps::append(const Step& step) {
  steps_.push_back(step);
  operands_.emplace_back();
}

bool BlockedSteps::append(const KernelQuery& q, Fn fn, size_t index) {
  const OperandFacts& o = q.inputs[index];
  const ir::Dims& result = q.outputs[0].dims;
  if (!storage_of(o.dtype) || o.dims.size() > 4) return false;
  ir::Dims dims(4 - o.dims.size(), 1);
  dims.insert(dims.end(), o.dims.begin(), o.dims.end());
  Step step{.fn = fn};
  Operand operand;
  const bool one = ir::element_count(dims) == 1, per_channel = dims[1] == result[1] && dims[2] == 1 && dims[3] == 1;
  if (o.constant) {
    if (!one && !(per_channel && dims[0] == 1)) return false;
    const ir::TensorData values = ir::convert(o.constant->view(), DType::Float32);
    operand.values.assign(values.as<float>(), values.as<float>() + values.count());
    if (!one) operand.values.resize(static_cast<size_t>(blocks_of(result[1]) * kBlock));
  } else {
    if (o.dtype != DType::Float32) return false;
    operand.input = static_cast<int64_t>(index);
    if (!one && (!in_blocks(o) || (dims[0] != 1 && dims[0] != result[0]))) return false;
    const bool whole = dims[1] == result[1] && dims[2] == result[2] && dims[3] == result[3];
    if (!one && !per_channel && !whole) return false;
    if (!one && dims[0] != 1) operand.image_stride = blocked_bytes(dims) / dims[0];
    if (whole && !one) step.row_stride = kBlock;
  }
  if (!one) {
    step.column_stride = 1;
    step.batch_stride = kBlock * (step.row_stride ? result[2] * result[3] : 1);
  }
  steps_.push_back(step);
  operands_.push_back(std::move(operand));
  return true;
}

bool BlockedSteps::append_tail(const KernelQuery& q) {
  for (const ir::TailStep& tail : q.node.tail) {
    if (tail.operand < 0) {
      const std::optional<Step> function = unary_step(tail.op, tail.attributes);
      if (!function) return false;
      append(*function);
    } else {
      const std::optional<Fn> fn = binary_function(tail.op, tail.operand_first);
      if (!fn || !append(q, *fn, static_cast<size_t>(tail.operand))) return false;
    }
  }
  return true;
}

std::optional<BlockedSteps> BlockedSteps::of_tail(const KernelQuery& q) {
  BlockedSteps steps;
  return steps.append_tail(q) ? std::optional(std::move(steps)) : std::nullopt;
}

StepList BlockedSteps::bind(std::span<const ir::TensorView> inputs, int64_t image) const {
  StepList steps;
  for (size_t i = 0; i < steps_.size(); ++i) {
    steps.push_back(steps_[i]);
    const Operand& o = operands_[i];
    if (o.input >= 0)
      steps.back().operand = inputs[static_cast<size_t>(o.input)].as<float>() + image * o.image_stride;
    else if (!o.values.empty())
      steps.back().operand = o.values.data();
  }
  return steps;
}

std::optional<FloatConv> FloatConv::create(const KernelQuery& q) {
  if (q.node.op != "Conv" || !in_blocks(q.outputs[0]) || q.inputs[0].dtype != DType::Float32 || !q.inputs[1].constant ||
      !storage_of(q.inputs[1].dtype))
    return std::nullopt;
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims, &y = q.outputs[0].dims;
  if (x.size() != 4 || w.size() != 4 || y.size() != 4 || q.node.attributes.int_or("group", 1) != 1) return std::nullopt;
  if (x[1] != w[1] || y[0] != x[0] || y[1] != w[0]) return std::nullopt;
  if (q.node.has_input(2) && (!q.inputs[2].constant || !storage_of(q.inputs[2].dtype) || q.inputs[2].constant->count() != w[0]))
    return std::nullopt;
  const std::optional<Window> window = window_of(q.attributes(), x, y, std::span(w).subspan(2));
  if (!window || !suits_a_copy(*window)) return std::nullopt;
  FloatConv c;
  c.window = *window;
  c.channels = x[1];
  c.outputs = y[1];
  c.x_blocks = blocks_of(c.channels);
  c.y_blocks = blocks_of(c.outputs);
  c.from_rows = !in_blocks(q.inputs[0]);
  if (c.from_rows && c.channels > kRowChannels) return std::nullopt;
  if (c.outputs < kFewChannels && c.window.out_size() > kSmallPlane) return std::nullopt;
  std::optional<BlockedSteps> tail = BlockedSteps::of_tail(q);
  if (!tail) return std::nullopt;
  c.tail = std::move(*tail);
  return c;
}

Status FloatConv::take_bias(const KernelQuery& q) {
  if (!bias.allocate(y_blocks * kBlock)) return out_of_scratch(y_blocks * kBlock * 4);
  std::fill_n(bias.data(), y_blocks * kBlock, 0.0f);
  if (q.node.has_input(2)) {
    const ir::TensorData values = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    std::copy_n(values.as<float>(), outputs, bias.data());
  }
  return {};
}

Status FloatConv::pack_weights(const ir::TensorView& values, ThreadPool& pool, AlignedFloats& weights) const {
  const int64_t taps = window.taps(), depth = taps * channels, size = y_blocks * depth * kBlock;
  if (!weights.allocate(size)) return out_of_scratch(size * 4);
  visit_dtype(values.dtype, [&]<class T>(TypeTag<T>) {
    pool.parallel_for(y_blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const T* from = values.as<T>() + block * kBlock * depth;
        const int64_t some = std::min(kBlock, outputs - block * kBlock);
        float* to = weights.data() + block * depth * kBlock;
        for (int64_t t = 0; t < taps; ++t)
          for (int64_t c = 0; c < channels; ++c)
            for (int64_t o = 0; o < kBlock; ++o) *to++ = o < some ? static_cast<float>(from[o * depth + c * taps + t]) : 0.0f;
      }
    });
  });
  return {};
}

Status FloatConv::run(KernelContext& c, const float* packed) const {
  const Window& w = window;
  const Forms& f = forms();
  if (c.outputs[0].count() == 0) return {};
  const int64_t images = c.outputs[0].dims[0], lanes = from_rows ? 1 : kBlock, groups = from_rows ? channels : x_blocks;
  const Division d = divide(*this, images, c.pool.threads());
  const bool copies = w.padded();
  const int64_t pitch = copies ? padded_columns(w) : w.in[2], depth = w.taps() * channels, area = w.out_size();
  const int64_t tap_rows = (d.part - 1) * w.stride[1] + 1;  // of a copy per row of taps
  const int64_t band_rows = !copies   ? 0
                            : d.apart ? w.kernel[1] * tap_rows
                                      : padded_rows(w, d.part),
                copy_size = groups * band_rows * pitch * lanes;
  const int64_t per_worker = divide_up(copy_size, 16) * 16, table = divide_up(w.taps(), 8) * 16,  // floats
      bytes = (table + c.pool.threads() * per_worker) * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  auto* offsets = reinterpret_cast<int64_t*>(scratch);
  for (int64_t y = 0; y < w.kernel[1]; ++y)
    for (int64_t x = 0; x < w.kernel[2]; ++x)
      offsets[y * w.kernel[2] + x] = (y * (d.apart ? tap_rows : w.dilation[1]) * pitch + x * w.dilation[2]) * lanes;

  for_each_job(c.pool, images * d.parts * d.block_parts, [&](int64_t job, int64_t worker) {
    const int64_t image = job / (d.parts * d.block_parts), part = job / d.block_parts % d.parts,
                  first_block = job % d.block_parts * d.blocks, end_block = std::min(y_blocks, first_block + d.blocks);
    const int64_t begin = part * d.part, count = std::min(d.part, (d.flat ? d.width : d.height) - begin);
    const float* x = c.inputs[0].as<float>() + image * groups * w.in_size() * lanes;
    ConvPixels core;
    core.block_step = w.in_size() * lanes;
    core.row_step = w.stride[1] * pitch * lanes;
    TapRows taps{0, w.kernel[1]};
    if (d.apart) {
      taps = tap_rows_inside(w, begin, count);
      float* copy = scratch + table + worker * per_worker;
      core.block_step = band_rows * pitch * lanes;
      for (int64_t group = 0; group < groups; ++group)
        for (int64_t tap = taps.first; tap < taps.end; ++tap)
          pad_pixels(w, x + group * w.in_size() * lanes, 0, lanes, pitch, begin * w.stride[1] + tap * w.dilation[1], tap_rows,
                     copy + group * core.block_step + tap * tap_rows * pitch * lanes);
      core.x = copy;
    } else if (copies) {
      float* copy = scratch + table + worker * per_worker;
      const int64_t rows = padded_rows(w, count);
      core.block_step = rows * pitch * lanes;
      for (int64_t group = 0; group < groups; ++group)
        pad_pixels(w, x + group * w.in_size() * lanes, 0, lanes, pitch, begin * w.stride[1], rows,
                   copy + group * core.block_step);
      core.x = copy;
    } else {
      core.x = x + (d.flat ? begin * lanes : begin * core.row_step);
    }
    StepList steps = tail.bind(c.inputs, image);
    const Clamp clamp = take_clamp(steps);
    core.lanes = lanes;
    core.channels = channels;
    core.pixel_step = w.stride[2] * lanes;
    core.offsets = offsets + taps.first * w.kernel[2];
    core.taps = (taps.end - taps.first) * w.kernel[2];
    core.weights_step = depth * kBlock;
    core.ahead = kTogether * core.weights_step;
    core.rows = d.flat ? 1 : count;
    core.columns = d.flat ? count : d.width;
    core.clamp = clamp.active;
    core.low = clamp.low;
    core.high = clamp.high;
    core.y_block_step = area * kBlock;
    core.y_row_step = w.out[2] * kBlock;
    const int64_t pixel = d.flat ? begin : begin * w.out[2], pixels = core.rows * core.columns;
    for (int64_t block = first_block; block < end_block; block += kTogether) {
      core.weights = packed + block * core.weights_step + taps.first * w.kernel[2] * channels * kBlock;
      core.bias = bias.data() + block * kBlock;
      core.blocks = std::min(kTogether, end_block - block);
      core.y = c.outputs[0].as<float>() + ((image * y_blocks + block) * area + pixel) * kBlock;
      f.conv_pixels(core);
      for (int64_t i = 0; i < core.blocks && !steps.empty(); ++i)
        f.apply_steps(core.y + i * core.y_block_step, kBlock, pixels, kBlock, steps.data(), static_cast<int64_t>(steps.size()),
                      block + i, pixel, 0);
    }
  });
  return {};
}

}  // namespace orknn::sim::kernels
