#include "optimize/gated_form.h"

#include <algorithm>
#include <cmath>

#include "ops/facts.h"
#include "optimize/match.h"

namespace orknn::optimize {
namespace {
using namespace ir;

constexpr int kMaxDepth = 8;
constexpr size_t kMaxCandidates = 12;

bool is_polynomial_step(const Node& n) {
  return n.tail.empty() && (ops::is_basic_arithmetic(n.op) || n.op == "Pow" || n.op == "Neg" || n.op == "Sum");
}

bool is_zero(const Polynomial& a) {
  return std::ranges::all_of(a, [](double c) { return c == 0; });
}
bool is_constant(const Polynomial& a) { return a[1] == 0 && a[2] == 0 && a[3] == 0; }

Polynomial add(const Polynomial& a, const Polynomial& b, double sign = 1) {
  Polynomial c;
  for (size_t i = 0; i < c.size(); ++i) c[i] = a[i] + sign * b[i];
  return c;
}

std::optional<Polynomial> multiply(const Polynomial& a, const Polynomial& b) {
  Polynomial c{};
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < b.size(); ++j) {
      if (a[i] == 0 || b[j] == 0) continue;
      if (i + j >= c.size()) return std::nullopt;
      c[i + j] += a[i] * b[j];
    }
  return c;
}

// p + q * f
struct Form {
  Polynomial p{}, q{};
};

std::optional<Form> multiply(const Form& a, const Form& b) {
  if (!is_zero(a.q) && !is_zero(b.q)) return std::nullopt;
  const auto p = multiply(a.p, b.p), left = multiply(a.q, b.p), right = multiply(a.p, b.q);
  if (!p || !left || !right) return std::nullopt;
  return Form{*p, add(*left, *right)};
}

class Reader {
 public:
  Reader(const Graph& g, TensorId x, const Node* function) : g_(g), x_(x), function_(function) {}

  std::optional<Form> read(TensorId t, int depth = 0) {
    if (t == x_) return Form{{0, 1, 0, 0}, {}};
    if (function_ && t == function_->output(0)) return Form{{}, {1, 0, 0, 0}};
    if (g_.is_constant(t)) {
      const auto c = constant_scalar(g_, t);
      if (!c || !std::isfinite(*c)) return std::nullopt;
      return Form{{*c, 0, 0, 0}, {}};
    }
    const Node* n = g_.producer_node(t);
    if (!n || depth > kMaxDepth || !is_polynomial_step(*n)) return std::nullopt;
    if (std::ranges::find(nodes, n) == nodes.end()) nodes.push_back(n);
    return combine(*n, depth);
  }

  std::optional<Form> combine(const Node& n, int depth) {
    const auto a = read(n.input(0), depth + 1);
    if (!a) return std::nullopt;
    if (n.op == "Neg") return multiply(*a, {{-1, 0, 0, 0}, {}});
    if (n.inputs.size() != 2) return std::nullopt;
    const auto b = read(n.input(1), depth + 1);
    if (!b) return std::nullopt;
    if (n.op == "Add" || n.op == "Sum") return Form{add(a->p, b->p), add(a->q, b->q)};
    if (n.op == "Sub") return Form{add(a->p, b->p, -1), add(a->q, b->q, -1)};
    if (n.op == "Mul") return multiply(*a, *b);
    if (!is_constant(b->p) || !is_zero(b->q)) return std::nullopt;
    const double c = b->p[0];
    if (n.op == "Div") return c == 0 ? std::nullopt : multiply(*a, {{1 / c, 0, 0, 0}, {}});
    if (n.op != "Pow" || (c != 1 && c != 2 && c != 3)) return std::nullopt;
    std::optional<Form> power = a;
    for (int i = 1; power && i < static_cast<int>(c); ++i) power = multiply(*power, *a);
    return power;
  }

  std::vector<const Node*> nodes;

 private:
  const Graph& g_;
  TensorId x_;
  const Node* function_;
};

// Tensors that arithmetic below `t` reads, nearest first; `t` itself is the first.
std::vector<TensorId> sources(const Graph& g, TensorId t) {
  std::vector<TensorId> found{t};
  for (size_t i = 0; i < found.size() && found.size() < kMaxCandidates; ++i) {
    const Node* n = g.producer_node(found[i]);
    if (!n || !is_polynomial_step(*n)) continue;
    for (TensorId in : n->inputs)
      if (in && !g.is_constant(in) && std::ranges::find(found, in) == found.end()) found.push_back(in);
  }
  return found;
}
}  // namespace

bool nearly(const Polynomial& a, const Polynomial& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (b[i] == 0 ? std::abs(a[i]) > 1e-6 : !nearly(a[i], b[i])) return false;
  return true;
}

std::optional<GatedForm> match_gated(const Graph& g, const Node& root, std::initializer_list<std::string_view> functions,
                                     const std::function<bool(const GatedForm&)>& accept) {
  if (!root.tail.empty() || !is_float_tensor(g, root.output(0))) return std::nullopt;
  const auto is_function = [&](const Node& n) { return n.tail.empty() && std::ranges::find(functions, n.op) != functions.end(); };
  std::vector<const Node*> candidates;
  if (is_function(root))
    candidates.push_back(&root);
  else if (is_polynomial_step(root))
    for (TensorId t : sources(g, root.output(0)))
      if (const Node* n = g.producer_node(t); n && is_function(*n)) candidates.push_back(n);
  for (const Node* function : candidates) {
    // Farthest first: a scale or offset in front belongs to the argument where the function has parameters for it.
    std::vector<TensorId> arguments = sources(g, function->input(0));
    std::ranges::reverse(arguments);
    for (TensorId x : arguments) {
      Reader argument_reader(g, x, nullptr), root_reader(g, x, function);
      const auto argument = argument_reader.read(function->input(0));
      if (!argument) continue;
      std::optional<Form> form = Form{{}, {1, 0, 0, 0}};
      if (function != &root) form = root_reader.read(root.output(0));
      if (!form || !same_shape(g, x, root.output(0))) continue;
      GatedForm match{x, function, form->p, form->q, argument->p, argument_reader.nodes};
      for (const Node* n : root_reader.nodes)
        if (std::ranges::find(match.nodes, n) == match.nodes.end()) match.nodes.push_back(n);
      if (std::ranges::find(match.nodes, function) == match.nodes.end()) match.nodes.push_back(function);
      if (accept(match) && is_closed(g, match.nodes, root)) return match;
    }
  }
  return std::nullopt;
}

std::optional<Interval> clip_bounds(const Graph& g, const Node& clip) {
  Interval b{clip.attributes.float_or("min", -INFINITY), clip.attributes.float_or("max", INFINITY)};
  for (size_t i = 1; i <= 2; ++i) {
    if (!clip.has_input(i)) continue;
    const auto value = constant_scalar(g, clip.input(i));
    if (!value) return std::nullopt;
    (i == 1 ? b.low : b.high) = *value;
  }
  return b;
}

}  // namespace orknn::optimize
