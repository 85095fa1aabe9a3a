// Normalizations: of the last axes (LayerNormalization, RMSNormalization), of channels or groups of channels of an image
// (InstanceNormalization, GroupNormalization), and with given statistics (BatchNormalization).
#include <algorithm>
#include <cmath>

#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 14;  // elements per piece of work

bool same_float_types(const KernelQuery& q) {
  if (!storage_of(q.inputs[0].dtype) || q.outputs[0].dtype != q.inputs[0].dtype) return false;
  for (size_t i = 1; i < q.outputs.size(); ++i)
    if (q.outputs[i].exists()) return false;
  for (size_t i = 1; i < q.inputs.size(); ++i)
    if (q.inputs[i].exists() && !storage_of(q.inputs[i].dtype)) return false;
  return true;
}

const void* element(const ir::TensorView& t, int64_t offset) {
  return static_cast<const std::byte*>(t.data) + offset * static_cast<int64_t>(dtype_bytes(t.dtype));
}

// A parameter as float, converted into `buffer` where it is half.
const float* as_float(const Forms& f, const ir::TensorView& t, float* buffer) {
  if (t.dtype == DType::Float32) return t.as<float>();
  f.to_float(t.as<Half>(), buffer, t.count());
  return buffer;
}

// --- last axes

bool accepts_layer(const KernelQuery& q) {
  if ((q.node.op != "LayerNormalization" && q.node.op != "RMSNormalization") || !q.node.tail.empty() || !same_float_types(q))
    return false;
  const ir::Dims& x = q.inputs[0].dims;
  const auto axis = ir::normalize_axis(q.node.attributes.int_or("axis", -1), static_cast<int64_t>(x.size()));
  if (!axis) return false;
  const ir::Dims inner(x.begin() + *axis, x.end());
  return q.inputs[1].dims == inner && (!q.node.has_input(2) || q.inputs[2].dims == inner) && ir::element_count(inner) > 0;
}

Status run_layer(KernelContext& c, const KernelState*) {
  const ir::TensorView& x = c.inputs[0];
  const int64_t axis = *ir::normalize_axis(c.node.attributes.int_or("axis", -1), x.rank());
  const int64_t count = ir::element_count(x.dims.subspan(static_cast<size_t>(axis))), rows = x.count() / count;
  const Forms& f = forms();
  const int64_t size = (count + 15) / 16 * 16;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(2 * size) * sizeof(float)));
  if (!scratch) return out_of_scratch(2 * size * 4);
  NormalizeRow row;
  row.storage = *storage_of(x.dtype);
  row.count = count;
  row.centered = c.node.op == "LayerNormalization";
  row.epsilon = static_cast<float>(c.node.attributes.float_or("epsilon", 1e-5));
  row.scale = as_float(f, c.inputs[1], scratch);
  if (c.node.has_input(2)) row.bias = as_float(f, c.inputs[2], scratch + size);
  c.pool.parallel_for(rows, std::max<int64_t>(1, kGrain / count), [&](int64_t begin, int64_t end) {
    NormalizeRow one = row;
    for (int64_t i = begin; i < end; ++i) {
      one.x = element(x, i * count);
      one.y = const_cast<void*>(element(c.outputs[0], i * count));
      f.normalize(one);
    }
  });
  return {};
}

// --- channels

bool accepts_group(const KernelQuery& q) {
  if ((q.node.op != "InstanceNormalization" && q.node.op != "GroupNormalization") || !q.node.tail.empty() || !same_float_types(q))
    return false;
  const ir::Dims& x = q.inputs[0].dims;
  if (x.size() < 2 || ir::element_count(x) == 0) return false;
  const int64_t groups = q.node.op == "GroupNormalization" ? q.node.attributes.int_or("num_groups", 0) : x[1];
  return groups >= 1 && x[1] % groups == 0 && q.inputs[1].dims == ir::Dims{x[1]} && q.inputs[2].dims == ir::Dims{x[1]};
}

Status run_group(KernelContext& c, const KernelState*) {
  const ir::TensorView& x = c.inputs[0];
  const int64_t channels = x.dims[1], inner = ir::element_count(x.dims.subspan(2));
  const int64_t groups = c.node.op == "GroupNormalization" ? c.node.attributes.int_or("num_groups", 1) : channels,
                per_group = channels / groups;
  const Forms& f = forms();
  const int64_t size = (channels + 15) / 16 * 16;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(2 * size) * sizeof(float)));
  if (!scratch) return out_of_scratch(2 * size * 4);
  const float *scale = as_float(f, c.inputs[1], scratch), *bias = as_float(f, c.inputs[2], scratch + size);
  const double epsilon = c.node.attributes.float_or("epsilon", 1e-5);
  const Storage storage = *storage_of(x.dtype);
  c.pool.parallel_for(x.dims[0] * groups, std::max<int64_t>(1, kGrain / (per_group * inner)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = i * per_group * inner, count = per_group * inner;
      const Moments m = f.moments(element(x, first), storage, count);
      const double inverse = 1.0 / std::sqrt(m.variance + epsilon);
      for (int64_t k = 0; k < per_group; ++k) {
        const int64_t channel = i % groups * per_group + k, offset = first + k * inner;
        const double factor = inverse * static_cast<double>(scale[channel]);
        f.shift_scale(element(x, offset), const_cast<void*>(element(c.outputs[0], offset)), storage, inner,
                      static_cast<float>(m.mean), static_cast<float>(factor), bias[channel]);
      }
    }
  });
  return {};
}

// --- given statistics

struct BatchState : KernelState {
  TailPlan tail;
};

bool accepts_batch(const KernelQuery& q) {
  if (q.node.op != "BatchNormalization" || !same_float_types(q) || q.node.attributes.int_or("training_mode", 0) != 0)
    return false;
  const ir::Dims& x = q.inputs[0].dims;
  if (x.size() < 2 || q.outputs[0].dims != x) return false;
  for (size_t i = 1; i < 5; ++i)
    if (q.inputs[i].dims != ir::Dims{x[1]}) return false;
  return TailPlan::create(q, {1, 2}).has_value();
}

Result<std::unique_ptr<const KernelState>> prepare_batch(const KernelQuery& q, ThreadPool&) {
  auto state = std::make_unique<BatchState>();
  state->tail = *TailPlan::create(q, {1, 2});
  return std::unique_ptr<const KernelState>(std::move(state));
}

// What is done to every value of a channel before the tail: (x - shift) * scale + bias.
struct ChannelLine {
  float shift = 0, scale = 0, bias = 0;
};

// One channel of one sample with its tail. A tail operand may lie where the result goes, so a part of the channel passes through
// all steps before it is stored.
void run_channel(const Forms& f, KernelContext& c, int64_t plane, const ChannelLine& line, const StepList& steps) {
  constexpr int64_t kChunk = 2048;  // elements that go through all steps while in the first-level cache
  const ir::TensorView& x = c.inputs[0];
  const int64_t channels = x.dims[1], inner = ir::element_count(x.dims.subspan(2));
  const bool half = x.dtype == DType::Float16;
  alignas(64) float values[kChunk];
  for (int64_t i = 0; i < inner; i += kChunk) {
    const int64_t count = std::min(kChunk, inner - i), at = plane * inner + i;
    if (half)
      f.to_float(x.as<Half>() + at, values, count);
    else
      std::copy_n(x.as<float>() + at, count, values);
    f.shift_scale(values, values, Storage::Float, count, line.shift, line.scale, line.bias);
    f.apply_steps(values, 0, 1, count, steps.data(), static_cast<int64_t>(steps.size()), plane / channels, plane % channels, i);
    if (half)
      f.to_half(values, c.outputs[0].as<Half>() + at, count);
    else
      std::copy_n(values, count, c.outputs[0].as<float>() + at);
  }
}

Status run_batch(KernelContext& c, const KernelState* state) {
  const ir::TensorView& x = c.inputs[0];
  const int64_t channels = x.dims[1], inner = ir::element_count(x.dims.subspan(2));
  if (x.count() == 0) return {};
  const Forms& f = forms();
  const int64_t size = (channels + 15) / 16 * 16;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(4 * size) * sizeof(float)));
  if (!scratch) return out_of_scratch(4 * size * 4);
  const float* parameters[4];  // scale, bias, mean, variance
  for (size_t i = 0; i < 4; ++i) parameters[i] = as_float(f, c.inputs[i + 1], scratch + static_cast<int64_t>(i) * size);
  const double epsilon = c.node.attributes.float_or("epsilon", 1e-5);
  const Storage storage = *storage_of(x.dtype);
  const StepList steps = static_cast<const BatchState*>(state)->tail.bind(c.inputs);
  c.pool.parallel_for(x.dims[0] * channels, std::max<int64_t>(1, kGrain / inner), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t channel = i % channels;
      const double deviation = std::sqrt(static_cast<double>(parameters[3][channel]) + epsilon);
      const ChannelLine line{.shift = parameters[2][channel],
                             .scale = static_cast<float>(static_cast<double>(parameters[0][channel]) / deviation),
                             .bias = parameters[1][channel]};
      if (steps.empty())
        f.shift_scale(element(x, i * inner), const_cast<void*>(element(c.outputs[0], i * inner)), storage, inner, line.shift,
                      line.scale, line.bias);
      else
        run_channel(f, c, i, line, steps);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> normalize() {
  static const Kernel kernels[] = {{"normalize_rows", accepts_layer, nullptr, run_layer},
                                   {"normalize_channels", accepts_group, nullptr, run_group},
                                   {"batch_norm", accepts_batch, prepare_batch, run_batch}};
  return kernels;
}

}  // namespace orknn::sim
