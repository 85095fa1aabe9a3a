#include "quantize/adaptive_rounding.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "quantize/layer_forms.h"

namespace orknn::quantize {
using namespace ir;
namespace {

constexpr int64_t kColumnsPerSample = 96;
constexpr int64_t kMaxRow = 4096;             // weights of one output channel
constexpr int64_t kMaxMoments = 40'000'000;   // floats held at a time: 160 MB
constexpr int kSweeps = 12;
// Share of the mean variance added to every input's own: what few samples did not show must not look free.
constexpr double kCaution = 0.01;

// Inputs of a layer as columns: what one output value is computed from.
struct Layer {
  NodeId node;
  std::string input;
  int64_t size = 0, groups = 1;
  bool product = false;
  std::vector<int64_t> kernel, strides, pads, dilations;
  Dims x, y;
  // Sums over columns, per group.
  std::vector<float> products;
  std::vector<double> sums;
  int64_t columns = 0, samples = 0;
};

std::optional<Layer> layer_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const TensorData* w = g.constant(n.input(1));
  if (!w || w->dtype() != DType::Float32 || (n.op != "Conv" && n.op != "MatMul" && n.op != "Gemm")) return std::nullopt;
  const Form form = layer_form(g, n).form;
  if (form != Form::Conv && form != Form::MatMul) return std::nullopt;
  const auto shape = [&](TensorId t) { return g.tensor(t).shape ? to_dims(*g.tensor(t).shape) : std::nullopt; };
  const auto x = shape(n.input(0)), y = shape(n.output());
  if (!x || !y) return std::nullopt;
  Layer l;
  l.node = id;
  l.input = g.tensor(n.input(0)).name;
  l.x = *x;
  l.y = *y;
  if (n.op == "Conv") {
    if (x->size() != 4 || w->dims().size() != 4 || n.attributes.string_or("auto_pad", "NOTSET") != "NOTSET") return std::nullopt;
    l.groups = n.attributes.int_or("group", 1);
    l.kernel = {w->dims()[2], w->dims()[3]};
    l.strides = n.attributes.ints_or("strides", {1, 1});
    l.pads = n.attributes.ints_or("pads", {0, 0, 0, 0});
    l.dilations = n.attributes.ints_or("dilations", {1, 1});
    if (l.strides.size() != 2 || l.pads.size() != 4 || l.dilations.size() != 2 || l.groups < 1 || w->dims()[1] * l.groups != (*x)[1] || w->dims()[0] % l.groups != 0) return std::nullopt;
    l.size = w->dims()[1] * l.kernel[0] * l.kernel[1];
  } else {
    if (w->dims().size() != 2 || x->size() < 2) return std::nullopt;
    l.product = true;
    l.size = x->back();
    if (w->count() % std::max<int64_t>(l.size, 1) != 0) return std::nullopt;
  }
  if (l.size < 1 || l.size > kMaxRow || l.size * l.size * l.groups > kMaxMoments) return std::nullopt;
  return l;
}

// The inputs of output position `at`, all groups one after the other.
void gather_column(const Layer& l, const float* x, int64_t at, float* to) {
  if (l.product) {
    std::copy_n(x + at * l.size, l.size, to);
    return;
  }
  const int64_t height = l.x[2], width = l.x[3], out_width = l.y[3], plane = l.y[2] * out_width;
  const int64_t batch = at / plane, row = at % plane / out_width, column = at % out_width;
  for (int64_t c = 0; c < l.x[1]; ++c) {
    const float* from = x + (batch * l.x[1] + c) * height * width;
    for (int64_t ky = 0; ky < l.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < l.kernel[1]; ++kx) {
        const int64_t iy = row * l.strides[0] - l.pads[0] + ky * l.dilations[0], ix = column * l.strides[1] - l.pads[1] + kx * l.dilations[1];
        const float v = iy >= 0 && iy < height && ix >= 0 && ix < width ? from[iy * width + ix] : 0.0f;
        *to++ = std::isfinite(v) ? v : 0.0f;
      }
  }
}

void add_sample(Layer& l, const float* x) {
  const int64_t positions = l.product ? element_count(l.x) / l.size : l.y[0] * l.y[2] * l.y[3];
  const int64_t count = std::min(positions, kColumnsPerSample);
  if (count < 1) return;
  const int64_t stride = positions / count, offset = l.samples++ * 7919 % stride;
  const int64_t length = l.size * l.groups;
  std::vector<float> columns(static_cast<size_t>(count * length));
  for (int64_t i = 0; i < count; ++i) gather_column(l, x, i * stride + offset, columns.data() + i * length);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k) l.sums[static_cast<size_t>(k)] += columns[static_cast<size_t>(i * length + k)];
  l.columns += count;
  // Row k of every group's matrix, up to the diagonal, is the work of one thread: sums are taken in the order of the columns.
  ThreadPool::shared().parallel_for(length, std::max<int64_t>(1, (1 << 16) / (l.size * count)), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t group = k / l.size, length_of_row = k % l.size + 1;
      float* row = l.products.data() + k * l.size;
      for (int64_t i = 0; i < count; ++i) {
        const float* column = columns.data() + i * length + group * l.size;
        const float factor = columns[static_cast<size_t>(i * length + k)];
        if (factor == 0) continue;
        for (int64_t j = 0; j < length_of_row; ++j) row[j] += factor * column[j];
      }
    }
  });
}

// Sums become means and covariances; `rounding` is the variance that 8-bit inputs add to each.
void finish_moments(Layer& l, double rounding) {
  const double per_column = 1.0 / static_cast<double>(std::max<int64_t>(l.columns, 1));
  for (double& s : l.sums) s *= per_column;
  for (int64_t group = 0; group < l.groups; ++group) {
    float* matrix = l.products.data() + group * l.size * l.size;
    const double* mean = l.sums.data() + group * l.size;
    double trace = 0;
    for (int64_t i = 0; i < l.size; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const double v = matrix[i * l.size + j] * per_column - mean[i] * mean[j];
        matrix[i * l.size + j] = matrix[j * l.size + i] = static_cast<float>(v);
        if (i == j) trace += std::max(v, 0.0);
      }
    const double own = rounding + kCaution * trace / static_cast<double>(l.size);
    for (int64_t i = 0; i < l.size; ++i) {
      float& v = matrix[i * l.size + i];
      v = static_cast<float>(std::max(static_cast<double>(v), 0.0) + std::max(own, 1e-12));
    }
  }
}

RoundedLayer round_layer(const Graph& g, const Layer& l, const QuantizeOptions& options) {
  const Node& n = g.node(l.node);
  const TensorData& w = *g.constant(n.input(1));
  const int64_t outputs = w.count() / l.size, outputs_per_group = outputs / l.groups;
  // Conv and a turned Gemm keep a row's weights together; [K, N] has them a column apart.
  const bool rows = !l.product || (n.op == "Gemm" && n.attributes.int_or("transB", 0) != 0);
  const double alpha = n.op == "Gemm" ? n.attributes.float_or("alpha", 1) : 1;
  RoundedLayer result;
  result.weights.values = TensorData::allocate(DType::Int8, l.product ? Dims{l.size, outputs} : w.dims());
  result.weights.scales.assign(static_cast<size_t>(outputs), 1);
  result.bias_shift.assign(static_cast<size_t>(outputs), 0);
  std::vector<int64_t> moved(static_cast<size_t>(outputs), 0);
  const float* from = w.as<float>();
  auto* to = static_cast<int8_t*>(result.weights.values.mutable_data());
  float largest_of_all = 0;
  for (int64_t i = 0; i < w.count(); ++i) largest_of_all = std::max(largest_of_all, std::abs(from[i]));
  ThreadPool::shared().parallel_for(outputs, 1, [&](int64_t begin, int64_t end) {
    std::vector<float> row(static_cast<size_t>(l.size));
    for (int64_t o = begin; o < end; ++o) {
      float largest = 0;
      for (int64_t k = 0; k < l.size; ++k) {
        const float v = static_cast<float>(from[rows ? o * l.size + k : k * outputs + o] * alpha);
        row[static_cast<size_t>(k)] = std::isfinite(v) ? v : 0.0f;
        largest = std::max(largest, std::abs(row[static_cast<size_t>(k)]));
      }
      double scale = (options.per_channel ? largest : std::abs(static_cast<float>(largest_of_all * alpha))) / 127.0;
      if (!(scale > 1e-30)) scale = 1;
      const int64_t group = o / outputs_per_group;
      const auto covariance = std::span(l.products).subspan(static_cast<size_t>(group * l.size * l.size), static_cast<size_t>(l.size * l.size));
      const std::vector<int8_t> integers = round_row(row, covariance, scale);
      double shift = 0;
      for (int64_t k = 0; k < l.size; ++k) {
        const auto at = static_cast<size_t>(k);
        moved[static_cast<size_t>(o)] += integers[at] != std::clamp(std::nearbyint(row[at] / scale), -127.0, 127.0);
        shift += (row[at] - integers[at] * scale) * l.sums[static_cast<size_t>(group * l.size + k)];
        to[l.product ? k * outputs + o : o * l.size + k] = integers[at];
      }
      result.weights.scales[static_cast<size_t>(o)] = scale;
      result.bias_shift[static_cast<size_t>(o)] = shift;
    }
  });
  for (int64_t count : moved) result.moved += count;
  if (!options.per_channel) result.weights.scales.resize(1);
  return result;
}
}  // namespace

std::vector<int8_t> round_row(std::span<const float> weights, std::span<const float> covariance, double scale, int limit) {
  const size_t size = weights.size();
  std::vector<double> error(size), slope(size, 0);
  std::vector<int8_t> result(size);
  for (size_t i = 0; i < size; ++i) {
    const double q = std::clamp(std::nearbyint(weights[i] / scale), static_cast<double>(-limit), static_cast<double>(limit));
    result[i] = static_cast<int8_t>(q);
    error[i] = weights[i] - q * scale;
  }
  for (size_t i = 0; i < size; ++i) {
    const float* row = covariance.data() + i * size;
    if (error[i] == 0) continue;
    for (size_t j = 0; j < size; ++j) slope[j] += error[i] * row[j];
  }
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    bool moved = false;
    for (size_t i = 0; i < size; ++i) {
      const float* row = covariance.data() + i * size;
      const double wanted = std::nearbyint(slope[i] / (scale * row[i]));
      const double q = std::clamp(result[i] + wanted, static_cast<double>(-limit), static_cast<double>(limit));
      const double step = (q - result[i]) * scale;
      if (step == 0 || !(step * step * row[i] < 2 * step * slope[i])) continue;
      result[i] = static_cast<int8_t>(q);
      for (size_t j = 0; j < size; ++j) slope[j] -= step * row[j];
      moved = true;
    }
    if (!moved) break;
  }
  return result;
}

Result<RoundedLayers> round_adaptively(const Graph& graph, const RunSamples& run, size_t samples, const TensorStatistics& statistics, const QuantizeOptions& options) {
  std::vector<Layer> layers;
  for (NodeId id : graph.order())
    if (auto l = layer_of(graph, id)) layers.push_back(std::move(*l));
  RoundedLayers result;
  for (size_t first = 0, end = 0; first < layers.size(); first = end) {
    std::multimap<std::string, Layer*, std::less<>> readers;
    for (int64_t held = 0; end < layers.size(); ++end) {
      Layer& l = layers[end];
      held += l.size * l.size * l.groups;
      if (held > kMaxMoments && end > first) break;
      l.products.assign(static_cast<size_t>(l.size * l.size * l.groups), 0);
      l.sums.assign(static_cast<size_t>(l.size * l.groups), 0);
      readers.emplace(l.input, &l);
    }
    ORKNN_TRY(run(graph, samples, [&](std::string_view name, const TensorView& value) {
      const auto [begin, last] = readers.equal_range(name);
      for (auto it = begin; it != last; ++it)
        if (value.dtype == DType::Float32 && std::equal(value.dims.begin(), value.dims.end(), it->second->x.begin(), it->second->x.end())) add_sample(*it->second, value.as<float>());
    }));
    for (size_t i = first; i < end; ++i) {
      Layer& l = layers[i];
      if (l.columns > 0) {
        double rounding = 0;
        if (const auto seen = statistics.find(l.input); seen != statistics.end()) {
          const Range range = choose_range(seen->second, options.algorithm);
          rounding = (range.high - range.low) * (range.high - range.low) / (255.0 * 255 * 12);
        }
        finish_moments(l, rounding);
        result.emplace(graph.tensor(graph.node(l.node).output()).name, round_layer(graph, l, options));
      }
      l.products = {};
      l.sums = {};
    }
  }
  return result;
}

}  // namespace orknn::quantize
