#include "quantize/input_moments.h"

#include <algorithm>
#include <cmath>

#include "base/threads.h"
#include "ops/facts.h"

namespace orknn::quantize {
using namespace ir;
namespace {

constexpr int64_t kColumnsPerSample = 96;
constexpr int64_t kMaxRow = 4096;            // weights of one output channel
constexpr int64_t kMaxMoments = 40'000'000;  // floats held at a time: 160 MB
// Share of the mean variance added to every input's own: what few samples did not show must not look free.
constexpr double kCaution = 0.01;

// A layer's inputs as columns: what one output value is computed from.
struct Layer {
  NodeId node;
  std::string input;
  int64_t size = 0, groups = 1;
  bool product = false;
  std::vector<int64_t> kernel, strides, pads, dilations;
  Dims x, y;
  std::vector<float> products;
  std::vector<double> sums;
  int64_t columns = 0, samples = 0;

  int64_t moments() const { return size * size * groups; }
};

std::optional<Layer> layer_of(const Graph& g, NodeId id) {
  const Node& n = g.node(id);
  const Weights weights = ops::facts_of(n).weights;
  if (weights != Weights::OutIn && weights != Weights::Matrix) return std::nullopt;
  const TensorData* w = g.constant(n.input(1));
  const auto shape = [&](TensorId t) { return t && g.tensor(t).shape ? to_dims(*g.tensor(t).shape) : std::nullopt; };
  const auto x = shape(n.input(0)), y = shape(n.output());
  if (!w || w->dtype() != DType::Float32 || !x || !y) return std::nullopt;
  Layer l;
  l.node = id;
  l.input = g.tensor(n.input(0)).name;
  l.x = *x;
  l.y = *y;
  if (weights == Weights::OutIn) {
    if (x->size() != 4 || y->size() != 4 || w->dims().size() != 4 || n.attributes.string_or("auto_pad", "NOTSET") != "NOTSET")
      return std::nullopt;
    l.groups = n.attributes.int_or("group", 1);
    l.kernel = {w->dims()[2], w->dims()[3]};
    l.strides = n.attributes.ints_or("strides", {1, 1});
    l.pads = n.attributes.ints_or("pads", {0, 0, 0, 0});
    l.dilations = n.attributes.ints_or("dilations", {1, 1});
    if (l.strides.size() != 2 || l.pads.size() != 4 || l.dilations.size() != 2 || l.groups < 1 ||
        w->dims()[1] * l.groups != (*x)[1] || w->dims()[0] % l.groups != 0)
      return std::nullopt;
    l.size = w->dims()[1] * l.kernel[0] * l.kernel[1];
  } else {
    if (w->dims().size() != 2 || x->size() < 2 || n.attributes.int_or("transA", 0) != 0) return std::nullopt;
    l.product = true;
    l.size = x->back();
    if (w->count() % std::max<int64_t>(l.size, 1) != 0) return std::nullopt;
  }
  if (l.size < 1 || l.size > kMaxRow || l.moments() > kMaxMoments) return std::nullopt;
  return l;
}

// The inputs of output position `at`, all groups one after the other.
void gather_column(const Layer& l, const float* x, int64_t at, float* to) {
  if (l.product) {
    std::transform(x + at * l.size, x + (at + 1) * l.size, to, [](float v) { return std::isfinite(v) ? v : 0.0f; });
    return;
  }
  const int64_t height = l.x[2], width = l.x[3], out_width = l.y[3], plane = l.y[2] * out_width;
  const int64_t batch = at / plane, row = at % plane / out_width, column = at % out_width;
  for (int64_t c = 0; c < l.x[1]; ++c) {
    const float* from = x + (batch * l.x[1] + c) * height * width;
    for (int64_t ky = 0; ky < l.kernel[0]; ++ky)
      for (int64_t kx = 0; kx < l.kernel[1]; ++kx) {
        const int64_t iy = row * l.strides[0] - l.pads[0] + ky * l.dilations[0],
                      ix = column * l.strides[1] - l.pads[1] + kx * l.dilations[1];
        const float v = iy >= 0 && iy < height && ix >= 0 && ix < width ? from[iy * width + ix] : 0.0f;
        *to++ = std::isfinite(v) ? v : 0.0f;
      }
  }
}

void add_sample(Layer& l, const float* x) {
  const int64_t positions = l.product ? element_count(l.x) / l.size : l.y[0] * l.y[2] * l.y[3];
  const int64_t count = std::min(positions, kColumnsPerSample);
  if (count < 1) return;
  const int64_t stride = positions / count, offset = l.samples++ * 7919 % stride, length = l.size * l.groups;
  std::vector<float> columns(static_cast<size_t>(count * length));
  for (int64_t i = 0; i < count; ++i) gather_column(l, x, i * stride + offset, columns.data() + i * length);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < length; ++k) l.sums[static_cast<size_t>(k)] += columns[static_cast<size_t>(i * length + k)];
  l.columns += count;
  // A row of a group's matrix, up to the diagonal, is the work of one thread: sums are taken in the order of the columns.
  ThreadPool::shared().parallel_for(length, std::max<int64_t>(1, (1 << 16) / (l.size * count)), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      float* row = l.products.data() + k * l.size;
      for (int64_t i = 0; i < count; ++i) {
        const float* column = columns.data() + i * length + k / l.size * l.size;
        const float factor = columns[static_cast<size_t>(i * length + k)];
        if (factor == 0) continue;
        for (int64_t j = 0; j <= k % l.size; ++j) row[j] += factor * column[j];
      }
    }
  });
}
}  // namespace

void finish(const InputMoments& m, bool centered, double rounding) {
  const double per_column = 1.0 / static_cast<double>(m.columns);
  for (double& sum : m.sums) sum *= per_column;
  for (int64_t group = 0; group < m.groups; ++group) {
    float* matrix = m.products.data() + group * m.size * m.size;
    const double* mean = m.sums.data() + group * m.size;
    double trace = 0;
    for (int64_t i = 0; i < m.size; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const double v = matrix[i * m.size + j] * per_column - (centered ? mean[i] * mean[j] : 0);
        matrix[i * m.size + j] = matrix[j * m.size + i] = static_cast<float>(v);
        if (i == j) trace += std::max(v, 0.0);
      }
    const double own = std::max(rounding + kCaution * trace / static_cast<double>(m.size), 1e-12);
    for (int64_t i = 0; i < m.size; ++i) {
      float& v = matrix[i * m.size + i];
      v = static_cast<float>(std::max(static_cast<double>(v), 0.0) + own);
    }
  }
}

Status visit_input_moments(const Graph& graph, const RunSamples& run, size_t samples, const std::function<bool(NodeId)>& wanted,
                           const std::function<void(const InputMoments&)>& visit) {
  std::vector<Layer> layers;
  for (NodeId id : graph.order())
    if (auto l = wanted(id) ? layer_of(graph, id) : std::nullopt) layers.push_back(std::move(*l));
  for (size_t first = 0, end = 0; first < layers.size(); first = end) {
    std::multimap<std::string, Layer*, std::less<>> readers;
    for (int64_t held = 0; end < layers.size(); ++end) {
      Layer& l = layers[end];
      held += l.moments();
      if (held > kMaxMoments && end > first) break;
      l.products.assign(static_cast<size_t>(l.moments()), 0);
      l.sums.assign(static_cast<size_t>(l.size * l.groups), 0);
      readers.emplace(l.input, &l);
    }
    ORKNN_TRY(run(graph, samples, [&](std::string_view name, const TensorView& value) {
      const auto [begin, last] = readers.equal_range(name);
      for (auto it = begin; it != last; ++it)
        if (value.dtype == DType::Float32 &&
            std::equal(value.dims.begin(), value.dims.end(), it->second->x.begin(), it->second->x.end()))
          add_sample(*it->second, value.as<float>());
    }));
    for (size_t i = first; i < end; ++i) {
      Layer& l = layers[i];
      if (l.columns > 0) visit({l.node, l.input, l.size, l.groups, l.columns, l.products, l.sums});
      l.products = {};
      l.sums = {};
    }
  }
  return {};
}

}  // namespace orknn::quantize
