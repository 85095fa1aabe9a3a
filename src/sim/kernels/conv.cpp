// Convolution as a matrix product: weights times the unfolded input, which is packed piece by piece into the cache. Constant
// weights are packed once, others in every run.
#include "sim/kernels/support/product.h"
#include "sim/kernels/support/window.h"

namespace orknn::sim {
namespace {
using namespace kernels;

struct State : KernelState {
  Window window;
  std::vector<Tap> taps;
  int64_t groups = 1, channels = 0 /* per group */, rows = 0 /* per group */;
  AlignedFloats weights;  // packed, unless they are computed
  AlignedFloats bias;     // unless there is none or it is computed
  TailPlan tail;

  int64_t depth() const { return window.taps() * channels; }
  int64_t packed_weights() const { return groups * panels_a(rows) * kPanelRows * depth(); }  // floats
};

// Panels of rows per group; depth = tap * channels + channel.
void pack_weights(const State& s, const ir::TensorView& w, ThreadPool& pool, float* packed) {
  const int64_t taps = s.window.taps(), depth = s.depth(), panels = panels_a(s.rows);
  visit_dtype(w.dtype, [&]<class T>(TypeTag<T>) {
    pool.parallel_for(s.groups * panels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t group = i / panels, row = i % panels * kPanelRows, rows = std::min(kPanelRows, s.rows - row);
        const T* from = w.as<T>() + (group * s.rows + row) * depth;
        float* to = packed + i * kPanelRows * depth;
        for (int64_t t = 0; t < taps; ++t)
          for (int64_t c = 0; c < s.channels; ++c)
            for (int64_t r = 0; r < kPanelRows; ++r) *to++ = r < rows ? static_cast<float>(from[r * depth + c * taps + t]) : 0.0f;
      }
    });
  });
}

void copy_bias(const ir::TensorView& bias, float* to) {
  const ir::Dims dims(bias.dims.begin(), bias.dims.end());
  ir::convert_elements(bias, {DType::Float32, dims, to});
}

std::optional<Window> window(const KernelQuery& q) {
  const ir::Dims& w = q.inputs[1].dims;
  return window_of(q.attributes(), q.inputs[0].dims, q.outputs[0].dims, std::span(w).subspan(std::min<size_t>(2, w.size())));
}

bool accepts(const KernelQuery& q) {
  if (q.node.op != "Conv" || !storage_of(q.inputs[0].dtype) || !storage_of(q.inputs[1].dtype)) return false;
  if (is_depthwise(q) || !storage_of(q.outputs[0].dtype)) return false;
  if (q.node.has_input(2) && (!storage_of(q.inputs[2].dtype) || ir::element_count(q.inputs[2].dims) != q.inputs[1].dims[0]))
    return false;
  // The shape rule has checked all of this; a wrong guess here would read foreign memory.
  const ir::Dims &x = q.inputs[0].dims, &w = q.inputs[1].dims, &y = q.outputs[0].dims;
  const int64_t groups = q.node.attributes.int_or("group", 1);
  const std::optional<Window> v = window(q);
  if (!v || w.size() != x.size() || groups < 1 || w[0] % groups != 0 || x[1] != groups * w[1] || y[0] != x[0] || y[1] != w[0])
    return false;
  return v->fits_int32() && TailPlan::create(q, {1, 2});
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->window = *window(q);
  s->tail = *TailPlan::create(q, {1, 2});
  s->groups = q.node.attributes.int_or("group", 1);
  s->channels = q.inputs[1].dims[1];
  s->rows = q.inputs[1].dims[0] / s->groups;
  const Window& v = s->window;
  for (int64_t z = 0; z < v.kernel[0]; ++z)
    for (int64_t y = 0; y < v.kernel[1]; ++y)
      for (int64_t x = 0; x < v.kernel[2]; ++x)
        s->taps.push_back({static_cast<int32_t>(z * v.dilation[0] - v.pad_begin[0]),
                           static_cast<int32_t>(y * v.dilation[1] - v.pad_begin[1]),
                           static_cast<int32_t>(x * v.dilation[2] - v.pad_begin[2])});
  if (const ir::TensorData* w = q.inputs[1].constant) {
    if (!s->weights.allocate(s->packed_weights())) return out_of_scratch(s->packed_weights() * 4);
    pack_weights(*s, w->view(), pool, s->weights.data());
    s->weights.share(w->data());
  }
  if (q.node.has_input(2) && q.inputs[2].constant) {
    const ir::TensorData& bias = *q.inputs[2].constant;
    if (!s->bias.allocate(bias.count())) return out_of_scratch(bias.count() * 4);
    copy_bias(bias.view(), s->bias.data());
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
  p.depth = s.depth();
  p.packed_a = s.weights.data();
  p.conv = &source;
  p.c = c.outputs[0].data;
  p.storage = *storage_of(c.outputs[0].dtype);
  p.c_row_stride = p.columns;
  p.row_bias = s.bias.data();
  p.steps = s.tail.bind(c.inputs);
  const int64_t a_size = panels_a(s.rows) * kPanelRows * p.depth, x_size = s.channels * w.in_size(), y_size = s.rows * p.columns;
  p.place = [&, groups = s.groups, rows = s.rows](int64_t batch) {
    const int64_t n = batch / groups, g = batch % groups;
    return Product::Place{
        .a = g * a_size, .b = batch * x_size, .c = batch * y_size, .bias = g * rows, .step_batch = n, .step_row = g * rows};
  };
  const auto rounded = [](int64_t count) { return (count + 15) / 16 * 16; };
  const bool computed_weights = !s.weights.data(), computed_bias = c.node.has_input(2) && !s.bias.data();
  const int64_t weights = computed_weights ? rounded(s.packed_weights()) : 0,
                bias = computed_bias ? rounded(c.inputs[2].count()) : 0;
  // Where the panels are does not matter for how much working memory the product needs, that they are packed does.
  alignas(64) static constexpr float kElsewhere = 0;
  if (computed_weights) p.packed_a = &kElsewhere;
  const int64_t bytes = (weights + bias + product_scratch(p, c.pool)) * static_cast<int64_t>(sizeof(float));
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  if (computed_weights) {
    pack_weights(s, c.inputs[1], c.pool, scratch);
    p.packed_a = scratch;
  }
  if (computed_bias) {
    copy_bias(c.inputs[2], scratch + weights);
    p.row_bias = scratch + weights;
  }
  run_product(p, c.pool, scratch + weights + bias);
  return {};
}
}  // namespace

std::span<const Kernel> conv() {
  static const Kernel kernels[] = {{"conv_gemm", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
