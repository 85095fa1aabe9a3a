// Recognizes formulas that exporters spell in many ways: any arrangement of additions, multiplications and powers that amounts to
// p(x) + q(x) * f(a(x)), with polynomials p, q, a and one function f (Erf, Tanh, Sigmoid, Clip, ...).
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/patch.h"

namespace orknn::optimize {

// Coefficients of 1, x, x^2, x^3.
using Polynomial = std::array<double, 4>;
// Every coefficient within the tolerance of a float16 constant.
bool nearly(const Polynomial& a, const Polynomial& b);

struct GatedForm {
  ir::TensorId x;
  const ir::Node* function = nullptr;
  Polynomial p{}, q{}, argument{};
  std::vector<const ir::Node*> nodes;  // everything between x and the root, the root included
};

// The first way to read `root` as such a form, with one of `functions`, that `accept` likes. Its nodes are closed.
std::optional<GatedForm> match_gated(const ir::Graph& g, const ir::Node& root, std::initializer_list<std::string_view> functions,
                                     const std::function<bool(const GatedForm&)>& accept);

// What a Clip node lets pass, by inputs or attributes; nothing when they are not constant.
struct Interval {
  double low, high;
};
std::optional<Interval> clip_bounds(const ir::Graph& g, const ir::Node& clip);

}  // namespace orknn::optimize
