// Depthwise convolution of 8-bit data, one plane at a time in bands that fit the cache. Each padded row becomes dwords of the
// neighbours that a row of the kernel multiplies, one dword per output column, so the sums of a whole band are one long row.
#include <algorithm>
#include <cstring>

#include "ops/support/convolution.h"
#include "sim/kernels/support/int_stage.h"
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBandDwords = 12 << 10;
constexpr int64_t kChunk = 512;      // columns summed at a time
constexpr int64_t kGrain = 1 << 17;  // multiply-accumulates per piece of work
constexpr int64_t kSlack = 32;       // elements the cores may touch beyond the last

struct State : KernelState {
  Isa isa = Isa::Portable;
  bool words = false;
  uint8_t flip = 0;  // IntForms::data_flip of bytes
  Window window;
  int64_t in_channels = 0, channels = 0, zero = 0;
  int64_t per_row = 0;           // dwords per row of the kernel
  std::vector<int32_t> weights;  // [channel][kernel row][dword]
  OutputPlan output;             // its bias has what zero points add
};

std::optional<Window> window(const KernelQuery& q) {
  if (q.node.op != "int:Conv" || !is_byte(q.inputs[0].dtype) || !is_byte(q.inputs[1].dtype) || !q.inputs[1].constant)
    return std::nullopt;
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims;
  if (x.size() < 3 || x.size() > 4 || w.size() != x.size()) return std::nullopt;
  const auto shape = ops::conv_shape(q.attributes(), x, w);
  if (!shape || shape->output_dims() != q.outputs[0].dims || shape->groups < 2 || shape->channels_per_group() != 1)
    return std::nullopt;
  const Window v = window_of(shape->window, shape->input, shape->output);
  // A window far larger than the plane would need a buffer out of proportion to the data.
  if (!v.fits_int32() || v.cuts_input() || v.kernel[2] * v.dilation[2] > 4 * (v.in[2] + v.out[2] + 64) ||
      padded_rows(v, 1) > 4 * (v.in[1] + 64))
    return std::nullopt;
  if (v.stride[1] > 64) return std::nullopt;
  return v;
}

std::optional<OutputPlan> output_plan(const KernelQuery& q, int64_t outputs) {
  return OutputPlan::create(q, {2, 3, 4}, ops::product_limits(q.inputs[0].dtype, q.inputs[1].dtype, outputs));
}

bool accepts(const KernelQuery& q) {
  if (!window(q)) return false;
  const int64_t outputs = q.outputs[0].dims[1];
  return zero_points_fit(q, outputs) && output_plan(q, outputs).has_value();
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->window = *window(q);
  s->isa = current_isa();
  s->in_channels = q.inputs[0].dims[1];
  s->channels = q.outputs[0].dims[1];
  s->output = *output_plan(q, s->channels);
  s->zero = q.attributes().get_int("x_zero_point");
  const std::vector<int64_t>& w_zero = q.attributes().get_ints("w_zero_point");
  const bool is_signed = q.inputs[1].dtype == DType::Int8;
  const auto* w = static_cast<const uint8_t*>(q.inputs[1].constant->data());
  s->words = !int_forms(s->isa).has_bytes;
  for (int64_t z : w_zero) s->words |= z != (is_signed ? 0 : 128);
  const int64_t per = s->words ? 2 : 4, height = s->window.kernel[1], width = s->window.kernel[2];
  s->per_row = divide_up(width, per);
  s->flip = s->words ? 0 : int_forms(s->isa).data_flip;
  const int64_t x_zero = s->zero + byte_offset(q.inputs[0].dtype) - s->flip;  // of bytes as they are multiplied
  for (int64_t channel = 0; channel < s->channels; ++channel) {
    const int64_t zero = w_zero[w_zero.size() == 1 ? 0 : static_cast<size_t>(channel)];
    uint32_t total = 0;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < s->per_row * per; x += per) {
        uint32_t packed = 0;
        for (int64_t j = 0; j < per && x + j < width; ++j) {
          const uint8_t raw = w[(channel * height + y) * width + x + j];
          const int64_t value = (is_signed ? static_cast<int8_t>(raw) : raw) - zero;
          total += static_cast<uint32_t>(value);
          packed |= s->words ? static_cast<uint32_t>(static_cast<uint16_t>(value)) << (16 * j)
                             : static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * j);
        }
        s->weights.push_back(static_cast<int32_t>(packed));
      }
    if (s->words) continue;
    int32_t& bias = s->output.bias[static_cast<size_t>(channel)];
    bias = static_cast<int32_t>(static_cast<uint32_t>(bias) - static_cast<uint32_t>(x_zero) * total);
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& v = s.window;
  const IntForms& f = int_forms(s.isa);
  const bool is_signed = c.inputs[0].dtype == DType::Int8;
  const int64_t per = s.words ? 2 : 4, out_height = v.out[1], out_width = v.out[2], stride = v.stride[1],
                depth = v.kernel[1] * s.per_row;
  // Rows of a band, divided by their remainder modulo the stride so that those of one tap are neighbours.
  const int64_t fitting = kBandDwords / (out_width * s.per_row) - (v.kernel[1] - 1) * v.dilation[1];
  const int64_t band = std::clamp<int64_t>(fitting / stride, std::min<int64_t>(4, out_height), out_height),
                bands = divide_up(out_height, band);
  const int64_t per_remainder = divide_up(padded_rows(v, band), stride), remainder_size = per_remainder * out_width + kSlack;
  const int64_t length = std::max((out_width - 1) * v.stride[2] + (s.per_row * per - 1) * v.dilation[2] + 1, v.pad_begin[2]),
                padded_stride = length + kSlack;
  const int64_t padded_bytes = (padded_rows(v, band) * padded_stride + 4 * kSlack) * 2;
  const int64_t band_bytes = s.per_row * stride * remainder_size * 4, sums_bytes = (kChunk + kSlack) * 4;
  const int64_t worker_bytes = divide_up(band_bytes, 64) * 64 + divide_up(padded_bytes, 64) * 64 + divide_up(sums_bytes, 64) * 64;
  const int64_t bytes_of_workers = worker_bytes * c.pool.threads(), all_bytes = bytes_of_workers + depth * 8;
  std::byte* scratch = c.scratch(static_cast<size_t>(all_bytes));
  if (!scratch) return out_of_scratch(all_bytes);
  auto* const offsets = reinterpret_cast<int64_t*>(scratch + bytes_of_workers);
  for (int64_t y = 0; y < v.kernel[1]; ++y)
    for (int64_t g = 0; g < s.per_row; ++g) {
      const int64_t row = y * v.dilation[1];
      offsets[y * s.per_row + g] = 4 * ((g * stride + row % stride) * remainder_size + row / stride * out_width);
    }

  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  const auto* addend = s.output.has_addend ? static_cast<const std::byte*>(c.inputs[s.output.addend_slot].data) : nullptr;
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  const int64_t planes = c.outputs[0].dims[0] * s.channels, multiplier = s.channels / s.in_channels;
  const int64_t per_job = std::clamp<int64_t>(kGrain / (band * out_width * v.taps()), 1, planes * bands);
  for_each_job(c.pool, divide_up(planes * bands, per_job), [&](int64_t job, int64_t worker) {
    auto* rows = reinterpret_cast<int32_t*>(scratch + worker * worker_bytes);
    auto* sums = reinterpret_cast<int32_t*>(scratch + worker * worker_bytes + divide_up(band_bytes, 64) * 64);
    std::byte* padded = reinterpret_cast<std::byte*>(sums) + divide_up(sums_bytes, 64) * 64;
    for (int64_t i = job * per_job; i < std::min((job + 1) * per_job, planes * bands); ++i) {
      const int64_t plane = i / bands, image = plane / s.channels, channel = plane % s.channels, first = i % bands * band,
                    count = std::min(band, out_height - first);
      IntPad p;
      p.words = s.words;
      p.is_signed = is_signed;
      p.flip = s.flip ^ (is_signed ? 0x80 : 0);
      p.zero = static_cast<int32_t>(s.zero);
      p.fill = s.words ? 0 : (static_cast<int32_t>(s.zero) + (is_signed ? 128 : 0)) ^ s.flip;
      p.x = x + (image * s.in_channels + channel / multiplier) * v.in_size();
      p.width = v.in[2];
      p.height = v.in[1];
      p.first = first * stride - v.pad_begin[1];
      p.rows = padded_rows(v, count);
      p.left = v.pad_begin[2];
      p.inside = std::min(length - p.left, v.in[2]);
      p.length = length;
      p.y = padded;
      p.y_stride = padded_stride;
      f.pad(p);
      IntExpand e;
      e.words = s.words;
      e.x_stride = padded_stride;
      e.rows = p.rows;
      e.row_stride = stride;
      e.remainder_size = remainder_size;
      e.stride = v.stride[2];
      e.dilation = v.dilation[2];
      e.count = out_width;
      for (int64_t g = 0; g < s.per_row; ++g) {
        e.x = padded + g * per * v.dilation[2] * (s.words ? 2 : 1);
        e.y = rows + g * stride * remainder_size;
        f.expand(e);
      }
      IntRow r;
      r.dot = s.words ? Dot::Words : Dot::BytesBUnsigned;
      r.weights = s.weights.data() + channel * depth;
      r.offsets = offsets;
      r.depth = depth;
      r.sums = sums;
      const int64_t total = count * out_width, place = plane * v.out_size() + first * out_width;
      for (int64_t at = 0; at < total; at += kChunk) {
        r.b = reinterpret_cast<const std::byte*>(rows + at);
        r.columns = std::min(kChunk, total - at);
        f.row(r);
        const IntConvert to =
            s.output.channel(channel, addend ? addend + (place + at) * int_bytes(s.output.addend_type) : nullptr,
                             y + (place + at) * int_bytes(s.output.type));
        convert(f, s.output, to, sums, r.columns);
      }
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_depthwise() {
  static const Kernel kernels[] = {{"int_conv_depthwise", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
