#include "optimize/normalization.h"

#include <algorithm>
#include <cstring>

#include "optimize/match.h"

namespace orknn::optimize {
namespace {
using namespace ir;

// ReduceMean that keeps its axes.
const Node* mean_of(const Graph& g, TensorId t) {
  const Node* n = producer(g, t, "ReduceMean");
  return n && n->attributes.int_or("keepdims", 1) ? n : nullptr;
}

// The tensor whose square `t` is.
TensorId squared(const Graph& g, TensorId t, const Node*& node) {
  if ((node = producer(g, t, "Pow")) && is_scalar(g, node->input(1), 2)) return node->input(0);
  if ((node = producer(g, t, "Mul")) && node->input(0) == node->input(1)) return node->input(0);
  return {};
}

// 1 / sqrt(v + epsilon): gives v and epsilon. `inverse` = false matches sqrt(v + epsilon).
struct Root {
  TensorId v;
  double epsilon = 0;
  std::vector<const Node*> nodes;
};

std::optional<Root> match_sum(const Graph& g, TensorId t, std::vector<const Node*> nodes) {
  const Node* sum = producer(g, t, "Add");
  if (!sum) return std::nullopt;
  nodes.push_back(sum);
  for (size_t i = 0; i < 2; ++i)
    if (const auto epsilon = constant_scalar(g, sum->input(i)); epsilon && *epsilon > 0 && *epsilon < 1)
      return Root{sum->input(1 - i), *epsilon, nodes};
  return std::nullopt;
}

std::optional<Root> match_root(const Graph& g, TensorId t, bool inverse) {
  if (const Node* power = producer(g, t, "Pow"); power && is_scalar(g, power->input(1), inverse ? -0.5 : 0.5))
    return match_sum(g, power->input(0), {power});
  if (!inverse) {
    const Node* root = producer(g, t, "Sqrt");
    return root ? match_sum(g, root->input(0), {root}) : std::nullopt;
  }
  const Node* divide = producer(g, t, "Reciprocal");
  TensorId below;
  if (divide) {
    below = divide->input(0);
  } else if ((divide = producer(g, t, "Div")) && is_scalar(g, divide->input(0), 1)) {
    below = divide->input(1);
  } else {
    return std::nullopt;
  }
  auto root = match_root(g, below, false);
  if (root) root->nodes.push_back(divide);
  return root;
}

// Centered = Sub(x, ReduceMean(x)). Adds its nodes.
bool match_centered(const Graph& g, TensorId t, Normalization& m) {
  const Node* difference = producer(g, t, "Sub");
  if (!difference) return false;
  // Squares do not mind the order of the two.
  for (size_t i = 0; i < 2; ++i) {
    const Node* mean = mean_of(g, difference->input(1 - i));
    const auto axes = mean ? reduce_axes(g, *mean) : std::nullopt;
    if (!axes || mean->input(0) != difference->input(i)) continue;
    m.x = difference->input(i);
    m.axes = *axes;
    m.nodes.insert(m.nodes.end(), {mean, difference});
    return true;
  }
  return false;
}

// v = ReduceMean(square of something): completes `m` from the variance's side.
bool match_variance(const Graph& g, TensorId v, Normalization& m) {
  const Node* variance = mean_of(g, v);
  const auto axes = variance ? reduce_axes(g, *variance) : std::nullopt;
  if (!axes) return false;
  const Node* square = nullptr;
  const TensorId base = squared(g, variance->input(0), square);
  if (!base) return false;
  m.nodes.insert(m.nodes.end(), {variance, square});
  m.is_centered = match_centered(g, base, m);
  if (!m.is_centered) {
    m.x = base;
    m.axes = *axes;
  }
  return m.axes == *axes;
}

// Numerator of the quotient: the centered x again (the same tensor or computed twice), or x itself.
bool match_numerator(const Graph& g, TensorId t, Normalization& m) {
  if (!m.is_centered) return t == m.x;
  Normalization again;
  const Node* difference = producer(g, t, "Sub");
  if (!difference || difference->input(0) != m.x || !match_centered(g, t, again)) return false;
  m.nodes.insert(m.nodes.end(), again.nodes.begin(), again.nodes.end());
  return again.axes == m.axes;
}

bool finish(const Graph& g, const Node& root, Normalization& m, const Root& r) {
  m.epsilon = r.epsilon;
  m.nodes.insert(m.nodes.end(), r.nodes.begin(), r.nodes.end());
  m.nodes.push_back(&root);
  std::vector<const Node*> unique;
  for (const Node* n : m.nodes)
    if (std::ranges::find(unique, n) == unique.end()) unique.push_back(n);
  m.nodes = unique;
  return same_shape(g, m.x, root.output(0)) && is_closed(g, m.nodes, root);
}

// x * s + (shift - mean * s), s = r or r * scale.
std::optional<Normalization> match_folded(const Graph& g, const Node& root) {
  for (size_t i = 0; i < 2; ++i) {
    const Node* product = producer(g, root.input(i), "Mul");
    const Node* rest = producer(g, root.input(1 - i), "Sub");
    if (!product || !rest || !g.is_constant(rest->input(0))) continue;
    const Node* mean_product = producer(g, rest->input(1), "Mul");
    if (!mean_product) continue;
    for (size_t j = 0; j < 2; ++j) {
      const TensorId s = product->input(j), x = product->input(1 - j);
      const size_t k = mean_product->input(0) == s ? 1 : 0;
      if (mean_product->input(1 - k) != s) continue;
      const Node* mean = mean_of(g, mean_product->input(k));
      if (!mean || mean->input(0) != x) continue;
      Normalization m;
      std::optional<Root> r = match_root(g, s, true);
      if (const Node* scaled = r ? nullptr : producer(g, s, "Mul")) {
        for (size_t side = 0; side < 2 && !r; ++side) {
          if (!g.is_constant(scaled->input(side))) continue;
          r = match_root(g, scaled->input(1 - side), true);
          m.scale = scaled->input(side);
        }
        m.nodes.push_back(scaled);
      }
      if (!r || !match_variance(g, r->v, m) || !m.is_centered || m.x != x || reduce_axes(g, *mean) != m.axes) continue;
      m.shift = rest->input(0);
      m.nodes.insert(m.nodes.end(), {mean, product, mean_product, rest});
      if (finish(g, root, m, *r)) return m;
    }
  }
  return std::nullopt;
}
}  // namespace

std::optional<Normalization> match_normalization(const Graph& g, const Node& root) {
  if (!root.tail.empty() || !is_float_tensor(g, root.output(0))) return std::nullopt;
  if (root.op == "Add") return match_folded(g, root);
  for (size_t i = 0; i < 2; ++i) {
    if (root.op == "Div" && i == 1) break;
    const auto r = match_root(g, root.input(1 - i), root.op == "Mul");
    if (!r) continue;
    Normalization m;
    if (match_variance(g, r->v, m) && match_numerator(g, root.input(i), m) && finish(g, root, m, *r)) return m;
  }
  return std::nullopt;
}

bool are_trailing(const std::vector<int64_t>& axes, int64_t rank) {
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != rank - static_cast<int64_t>(axes.size()) + static_cast<int64_t>(i)) return false;
  return !axes.empty() && rank > 0;
}

std::optional<TensorData> broadcast_constant(const TensorData& value, const Dims& dims) {
  Dims from = value.dims();
  while (from.size() > dims.size() && from.front() == 1) from.erase(from.begin());
  if (from.size() > dims.size()) return std::nullopt;
  from.insert(from.begin(), dims.size() - from.size(), 1);
  Dims strides = strides_of(from);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (from[i] != dims[i] && from[i] != 1) return std::nullopt;
    if (from[i] == 1) strides[i] = 0;
  }
  TensorData out = TensorData::allocate(value.dtype(), dims);
  const size_t size = dtype_bytes(value.dtype());
  auto* target = static_cast<char*>(out.mutable_data());
  const auto* source = static_cast<const char*>(value.data());
  const int64_t count = out.count();
  const Dims steps = strides_of(dims);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < dims.size(); ++axis) offset += i / steps[axis] % dims[axis] * strides[axis];
    std::memcpy(target + static_cast<size_t>(i) * size, source + static_cast<size_t>(offset) * size, size);
  }
  return out;
}

}  // namespace orknn::optimize
