// Transposed convolution as ordinary ones: output positions with the same remainder modulo the stride read the same taps,
// so each remainder is a convolution of stride 1, and the results are interleaved.
#include <algorithm>

#include "ops/support/convolution.h"
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

// The outputs at first + i * stride on each axis.
struct Phase {
  Window::Axes first{0, 0, 0}, count{0, 0, 0};
  std::vector<Tap> taps;
  AlignedFloats weights;  // packed, per group
  int64_t offset = 0;     // of its results among those of all phases
  int64_t size() const { return count[0] * count[1] * count[2]; }
};

struct State : KernelState {
  Window window;
  int64_t groups = 1, channels = 0, rows = 0;  // channels and rows per group
  std::vector<Phase> phases;
  std::vector<float> bias;
  TailPlan tail;
};

std::optional<Window> window(const KernelQuery& q) {
  if (q.inputs[0].dims.size() > 5) return std::nullopt;
  const auto s = ops::conv_transpose_shape(q.attributes(), q.inputs[0].dims, q.inputs[1].dims);
  if (!s || s->output_dims() != q.outputs[0].dims) return std::nullopt;
  return window_of(s->window, s->input, s->output);
}

bool accepts(const KernelQuery& q) {
  if (q.node.op != "ConvTranspose" || !storage_of(q.inputs[0].dtype) || !storage_of(q.inputs[1].dtype)) return false;
  if (!q.inputs[1].constant || !storage_of(q.outputs[0].dtype)) return false;
  if (q.node.has_input(2) && (!q.inputs[2].constant || !storage_of(q.inputs[2].dtype))) return false;
  const std::optional<Window> w = window(q);
  return w && w->fits_int32() && w->stride[0] * w->stride[1] * w->stride[2] <= 1024 && TailPlan::create(q, {1, 2});
}

// Taps of one axis that reach the outputs with remainder `first`: kernel position and input offset.
std::vector<std::pair<int64_t, int32_t>> axis_taps(const Window& w, size_t axis, int64_t first) {
  std::vector<std::pair<int64_t, int32_t>> taps;
  for (int64_t k = 0; k < w.kernel[axis]; ++k) {
    const int64_t distance = first + w.pad_begin[axis] - k * w.dilation[axis];
    if (distance % w.stride[axis] == 0) taps.emplace_back(k, static_cast<int32_t>(distance / w.stride[axis]));
  }
  return taps;
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->window = *window(q);
  s->tail = *TailPlan::create(q, {1, 2});
  const Window& w = s->window;
  const ir::TensorData weights = ir::convert(q.inputs[1].constant->view(), DType::Float32);  // [channels, rows, taps]
  s->groups = q.node.attributes.int_or("group", 1);
  s->channels = weights.dims()[0] / s->groups;
  s->rows = weights.dims()[1];
  int64_t offset = 0;
  for (int64_t z = 0; z < std::min(w.stride[0], w.out[0]); ++z)
    for (int64_t y = 0; y < std::min(w.stride[1], w.out[1]); ++y)
      for (int64_t x = 0; x < std::min(w.stride[2], w.out[2]); ++x) {
        Phase& phase = s->phases.emplace_back();
        phase.first = {z, y, x};
        for (size_t i = 0; i < 3; ++i) phase.count[i] = divide_up(w.out[i] - phase.first[i], w.stride[i]);
        phase.offset = offset;
        offset += phase.size();
        std::vector<int64_t> places;
        for (const auto& [kz, dz] : axis_taps(w, 0, z))
          for (const auto& [ky, dy] : axis_taps(w, 1, y))
            for (const auto& [kx, dx] : axis_taps(w, 2, x)) {
              phase.taps.push_back({dz, dy, dx});
              places.push_back((kz * w.kernel[1] + ky) * w.kernel[2] + kx);
            }
        const int64_t panels = panels_a(s->rows), depth = static_cast<int64_t>(places.size()) * s->channels;
        if (!phase.weights.allocate(s->groups * panels * kPanelRows * depth))
          return out_of_scratch(s->groups * panels * kPanelRows * depth * 4);
        float* to = phase.weights.data();
        for (int64_t group = 0; group < s->groups; ++group)
          for (int64_t row = 0; row < panels * kPanelRows; row += kPanelRows)
            for (int64_t place : places)
              for (int64_t c = 0; c < s->channels; ++c)
                for (int64_t r = row; r < row + kPanelRows; ++r)
                  *to++ = r < s->rows ? weights.as<float>()[((group * s->channels + c) * s->rows + r) * w.taps() + place] : 0.0f;
        phase.weights.share(q.inputs[1].constant->data());
      }
  if (q.node.has_input(2)) {
    const ir::TensorData b = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    s->bias.assign(b.as<float>(), b.as<float>() + b.count());
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& w = s.window;
  if (c.outputs[0].count() == 0) return {};
  const int64_t batch = c.inputs[0].dims[0], out_channels = s.groups * s.rows, planes = batch * out_channels,
                out_size = w.out_size();
  const bool half = c.outputs[0].dtype == DType::Float16;
  ConvSource source;
  source.x = c.inputs[0].data;
  source.storage = *storage_of(c.inputs[0].dtype);
  source.channels = s.channels;
  source.depth = w.in[0];
  source.height = w.in[1];
  source.width = w.in[2];
  Product p;
  p.batches = batch * s.groups;
  p.rows = s.rows;
  p.conv = &source;
  p.row_bias = s.bias.empty() ? nullptr : s.bias.data();
  int64_t a_size = 0;
  p.place = [&](int64_t b) {
    return Product::Place{.a = b % s.groups * a_size,
                          .b = b * s.channels * w.in_size(),
                          .c = b * s.rows * p.columns,
                          .bias = b % s.groups * s.rows};
  };
  const auto choose = [&](const Phase& phase) {
    source.taps = phase.taps.data();
    source.out_height = phase.count[1];
    source.out_width = phase.count[2];
    p.columns = p.c_row_stride = phase.size();
    p.depth = static_cast<int64_t>(phase.taps.size()) * s.channels;
    p.packed_a = phase.weights.data();
    a_size = panels_a(s.rows) * kPanelRows * p.depth;
  };
  // Results of all phases, one block per phase, then the working memory of the products or of interleaving.
  const int64_t results = (planes * out_size + 15) / 16 * 16;
  int64_t working = half ? c.pool.threads() * ((out_size + 15) / 16 * 16) : 0;
  for (const Phase& phase : s.phases) {
    choose(phase);
    working = std::max(working, product_scratch(p, c.pool));
  }
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(results + working) * sizeof(float)));
  if (!scratch) return out_of_scratch((results + working) * 4);
  for (const Phase& phase : s.phases) {
    choose(phase);
    p.c = scratch + planes * phase.offset;
    run_product(p, c.pool, scratch + results);
  }
  const Forms& f = forms();
  const StepList steps = s.tail.bind(c.inputs);
  for_each_job(c.pool, planes, [&](int64_t plane, int64_t worker) {
    float* y = half ? scratch + results + worker * ((out_size + 15) / 16 * 16) : c.outputs[0].as<float>() + plane * out_size;
    for (const Phase& phase : s.phases) {
      const float* from = scratch + planes * phase.offset + plane * phase.size();
      for (int64_t z = 0; z < phase.count[0]; ++z)
        for (int64_t r = 0; r < phase.count[1]; ++r) {
          float* to =
              y + ((phase.first[0] + z * w.stride[0]) * w.out[1] + phase.first[1] + r * w.stride[1]) * w.out[2] + phase.first[2];
          for (int64_t x = 0; x < phase.count[2]; ++x) to[x * w.stride[2]] = *from++;
        }
    }
    if (!steps.empty())
      f.apply_steps(y, 0, 1, out_size, steps.data(), static_cast<int64_t>(steps.size()), plane / out_channels,
                    plane % out_channels, 0);
    if (half) f.to_half(y, c.outputs[0].as<Half>() + plane * out_size, out_size);
  });
  return {};
}
}  // namespace

std::span<const Kernel> conv_transpose() {
  static const Kernel kernels[] = {{"conv_transpose", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
