// Convolution as a matrix product: weights times the unfolded input, which is packed piece by piece into the cache.
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

struct State : KernelState {
  Window window;
  std::vector<Tap> taps;
  int64_t groups = 1, channels = 0 /* per group */, rows = 0 /* per group */;
  AlignedFloats weights;  // packed, per group; depth = tap * channels + channel
  AlignedFloats bias;
  bool has_bias = false;
  TailPlan tail;
};

std::optional<Window> window(const KernelQuery& q) {
  const ir::Dims& w = q.inputs[1].dims;
  return window_of(q.attributes(), q.inputs[0].dims, q.outputs[0].dims, std::span(w).subspan(std::min<size_t>(2, w.size())));
}

bool accepts(const KernelQuery& q) {
  if (q.node.op != "Conv" || !storage_of(q.inputs[0].dtype) || !storage_of(q.inputs[1].dtype)) return false;
  if (is_depthwise(q) || !q.inputs[1].constant || !storage_of(q.outputs[0].dtype)) return false;
  if (q.node.has_input(2) && (!q.inputs[2].constant || !storage_of(q.inputs[2].dtype))) return false;
  // The shape rule has checked all of this; a wrong guess here would read foreign memory.
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims, &y = q.outputs[0].dims;
  const int64_t groups = q.node.attributes.int_or("group", 1);
  const std::optional<Window> v = window(q);
  if (!v || w.size() != x.size() || groups < 1 || w[0] % groups != 0 || x[1] != groups * w[1] || y[0] != x[0] || y[1] != w[0]) return false;
  return v->fits_int32() && TailPlan::create(q, {1, 2});
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->window = *window(q);
  s->tail = *TailPlan::create(q, {1, 2});
  const ir::TensorData& w = *q.inputs[1].constant;
  s->groups = q.node.attributes.int_or("group", 1);
  s->channels = w.dims()[1];
  s->rows = w.dims()[0] / s->groups;
  const Window& v = s->window;
  for (int64_t z = 0; z < v.kernel[0]; ++z)
    for (int64_t y = 0; y < v.kernel[1]; ++y)
      for (int64_t x = 0; x < v.kernel[2]; ++x)
        s->taps.push_back({static_cast<int32_t>(z * v.dilation[0] - v.pad_begin[0]), static_cast<int32_t>(y * v.dilation[1] - v.pad_begin[1]),
                           static_cast<int32_t>(x * v.dilation[2] - v.pad_begin[2])});
  const int64_t taps = v.taps(), depth = taps * s->channels, panels = panels_a(s->rows);
  if (!s->weights.allocate(s->groups * panels * kPanelRows * depth)) return out_of_scratch(s->groups * panels * kPanelRows * depth * 4);
  visit_dtype(w.dtype(), [&]<class T>(TypeTag<T>) {
    pool.parallel_for(s->groups * panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / panels, row = i % panels * kPanelRows, rows = std::min(kPanelRows, s->rows - row);
        const T* from = w.as<T>() + (group * s->rows + row) * depth;
        float* to = s->weights.data() + i * kPanelRows * depth;
        for (int64_t t = 0; t < taps; ++t)
          for (int64_t c = 0; c < s->channels; ++c)
            for (int64_t r = 0; r < kPanelRows; ++r) *to++ = r < rows ? static_cast<float>(from[r * depth + c * taps + t]) : 0.0f;
      }
    });
  });
  if (q.node.has_input(2)) {
    const ir::TensorData bias = ir::convert(q.inputs[2].constant->view(), DType::Float32);
    if (!s->bias.allocate(bias.count())) return out_of_scratch(bias.count() * 4);
    std::copy_n(bias.as<float>(), bias.count(), s->bias.data());
    s->has_bias = true;
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Window& w = s.window;
  ConvSource source;
  source.x = c.inputs[0].data;
  source.storage = *storage_of(c.inputs[0].dtype);
  source.channels = s.channels;
  source.taps = s.taps.data();
  const bool pointwise = w.taps() == 1 && w.stride == Window::Axes{1, 1, 1} && !w.padded();
  if (pointwise) {  // the whole plane is one long row
    source.width = source.out_width = w.in_size();
  } else {
    source.depth = w.in[0];
    source.height = w.in[1];
    source.width = w.in[2];
    source.out_height = w.out[1];
    source.out_width = w.out[2];
    source.stride_z = w.stride[0];
    source.stride_y = w.stride[1];
    source.stride_x = w.stride[2];
  }
  Product p;
  p.batches = c.inputs[0].dims[0] * s.groups;
  p.rows = s.rows;
  p.columns = w.out_size();
  p.depth = w.taps() * s.channels;
  p.packed_a = s.weights.data();
  p.conv = &source;
  p.c = c.outputs[0].data;
  p.storage = *storage_of(c.outputs[0].dtype);
  p.c_row_stride = p.columns;
  p.row_bias = s.has_bias ? s.bias.data() : nullptr;
  p.steps = s.tail.bind(c.inputs);
  const int64_t a_size = panels_a(s.rows) * kPanelRows * p.depth, x_size = s.channels * w.in_size(), y_size = s.rows * p.columns;
  p.place = [&, groups = s.groups, rows = s.rows](int64_t batch) {
    const int64_t n = batch / groups, g = batch % groups;
    return Product::Place{.a = g * a_size, .b = batch * x_size, .c = batch * y_size, .bias = g * rows, .step_batch = n, .step_row = g * rows};
  };
  return run_product(p, c);
}
}  // namespace

std::span<const Kernel> conv() {
  static const Kernel kernels[] = {{"conv_gemm", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
