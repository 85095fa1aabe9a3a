#include "sim/kernels/support/blocked.h"

#include "ops/support/convolution.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim::kernels {
namespace {
uint8_t flip_of(DType dtype) { return dtype == DType::Int8 ? 0x80 : 0; }
}  // namespace

void to_blocks(const ir::TensorView& rows, void* blocks, ThreadPool& pool) {
  const int64_t area = rows.dims[2] * rows.dims[3], count = blocks_of(rows.dims[1]);
  if (rows.dtype == DType::Float32) {
    const Forms& f = forms();
    for_each_part(rows.dims, pool, [&](int64_t plane, int64_t first, int64_t pixels) {
      const int64_t channel = plane % count * kBlock, at = plane / count * rows.dims[1] + channel;
      f.to_pixels(rows.as<float>() + at * area + first, Storage::Float, area, std::min(kBlock, rows.dims[1] - channel), pixels,
                  static_cast<float*>(blocks) + (plane * area + first) * kBlock);
    });
    return;
  }
  const auto* x = static_cast<const uint8_t*>(rows.data);
  auto* y = static_cast<uint8_t*>(blocks);
  for_each_part(rows.dims, pool, [&](int64_t plane, int64_t first, int64_t pixels) {
    const int64_t channel = plane % count * kBlock, at = plane / count * rows.dims[1] + channel;
    int_forms().to_pixels(x + at * area + first, area, std::min(kBlock, rows.dims[1] - channel), flip_of(rows.dtype), pixels,
                          y + (plane * area + first) * kBlock);
  });
}

void from_blocks(const void* blocks, const ir::MutableTensorView& rows, ThreadPool& pool) {
  const int64_t area = rows.dims[2] * rows.dims[3], count = blocks_of(rows.dims[1]);
  if (rows.dtype == DType::Float32) {
    const Forms& f = forms();
    for_each_part(rows.dims, pool, [&](int64_t plane, int64_t first, int64_t pixels) {
      const int64_t channel = plane % count * kBlock, at = plane / count * rows.dims[1] + channel;
      f.from_pixels(static_cast<const float*>(blocks) + (plane * area + first) * kBlock, std::min(kBlock, rows.dims[1] - channel),
                    pixels, rows.as<float>() + at * area + first, area);
    });
    return;
  }
  const auto* x = static_cast<const uint8_t*>(blocks);
  auto* y = static_cast<uint8_t*>(rows.data);
  for_each_part(rows.dims, pool, [&](int64_t plane, int64_t first, int64_t pixels) {
    const int64_t channel = plane % count * kBlock, at = plane / count * rows.dims[1] + channel;
    int_forms().from_pixels(x + (plane * area + first) * kBlock, flip_of(rows.dtype), pixels, area,
                            std::min(kBlock, rows.dims[1] - channel), y + at * area + first);
  });
}

std::optional<BlockedConv> BlockedConv::create(const KernelQuery& q, bool depthwise) {
  if (q.node.op != "int:Conv" || q.inputs[0].dims.size() != 4 || !is_byte(q.inputs[0].dtype) || !is_byte(q.inputs[1].dtype) ||
      !q.inputs[1].constant)
    return std::nullopt;
  const auto shape = ops::conv_shape(q.attributes(), q.inputs[0].dims, q.inputs[1].dims);
  if (!shape || shape->output_dims() != q.outputs[0].dims) return std::nullopt;
  const bool fits =
      depthwise ? shape->groups > 1 && shape->channels_per_group() == 1 && shape->outputs_per_group() == 1 : shape->groups == 1;
  if (!fits) return std::nullopt;
  BlockedConv c;
  c.window = window_of(shape->window, shape->input, shape->output);
  const Window& v = c.window;
  // A window far larger than the plane would need a buffer out of proportion to the data.
  if (!v.fits_int32() || v.cuts_input() || v.kernel[2] * v.dilation[2] > 4 * (v.in[2] + v.out[2] + 64) ||
      padded_rows(v, 1) > 4 * (v.in[1] + 64) || v.stride[1] > 64 || v.stride[2] > 64)
    return std::nullopt;
  c.channels = q.inputs[0].dims[1];
  c.outputs = q.outputs[0].dims[1];
  c.in_blocks = blocks_of(c.channels);
  c.out_blocks = blocks_of(c.outputs);
  if (!zero_points_fit(q, c.outputs)) return std::nullopt;
  auto output = OutputPlan::create(q, {2, 3, 4}, ops::product_limits(q.inputs[0].dtype, q.inputs[1].dtype, c.outputs));
  if (!output || !output->is_bytes()) return std::nullopt;
  if (output->has_addend && q.inputs[output->addend_slot].dims != q.outputs[0].dims) return std::nullopt;
  c.output = std::move(*output);
  c.output.make_unsigned();
  c.isa = current_isa();
  c.x_zero = q.attributes().get_int("x_zero_point") + byte_offset(q.inputs[0].dtype);
  // Signed bytes hold weights whose zero point is the middle of their range.
  const std::vector<int64_t>& zeros = q.attributes().get_ints("w_zero_point");
  const int64_t middle = q.inputs[1].dtype == DType::Int8 ? 0 : 128;
  const bool bytes = int_forms(c.isa).has_bytes && std::ranges::all_of(zeros, [&](int64_t z) { return z == middle; });
  c.dot = bytes ? Dot::BytesBUnsigned : Dot::Words;
  c.flip = bytes ? int_forms(c.isa).data_flip : 0;
  return c;
}

bool BlockedConv::multiplies_pairs() const {
  constexpr int64_t kLeastDepth = 24, kLeastOutputs = 24;
  return dot == Dot::Words && int_forms(isa).blocked_panel && channels * window.taps() >= kLeastDepth && outputs >= kLeastOutputs;
}

Weights::Weights(const KernelQuery& q)
    : data_(static_cast<const uint8_t*>(q.inputs[1].constant->data())),
      is_signed_(q.inputs[1].dtype == DType::Int8),
      zeros_(q.attributes().get_ints("w_zero_point")),
      channels_(q.inputs[1].dims[1]),
      taps_(q.inputs[1].dims[2] * q.inputs[1].dims[3]) {}

void BlockedConv::fold_zero_point(std::span<const int64_t> sums) {
  for (size_t i = 0; i < sums.size(); ++i)
    output.bias[i] =
        static_cast<int32_t>(static_cast<uint32_t>(output.bias[i]) - static_cast<uint32_t>((x_zero - flip) * sums[i]));
}
void BlockedConv::subtract_from_bias(std::span<const int64_t> values) {
  for (size_t i = 0; i < values.size(); ++i)
    output.bias[i] = static_cast<int32_t>(static_cast<uint32_t>(output.bias[i]) - static_cast<uint32_t>(values[i]));
}

IntConvert BlockedConv::converter(int64_t block) const {
  IntConvert c = output.row(block * kBlock, nullptr, nullptr);
  c.addend = output.has_addend ? c.bias : nullptr;  // says only that there is one
  return c;
}

}  // namespace orknn::sim::kernels
