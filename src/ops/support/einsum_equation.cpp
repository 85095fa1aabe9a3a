#include "ops/support/einsum_equation.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;
namespace {
Status bad_equation(const std::string& equation, const std::string& problem) {
  return invalid_model("equation " + problem).found("'" + equation + "'");
}

// A term as written: letters, and kEllipsis once where "..." stands.
Result<EinsumLabels> read_term(const std::string& equation, std::string_view term) {
  EinsumLabels out;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term[i] == '.') {
      if (term.substr(i, 3) != "..." || std::count(out.begin(), out.end(), kEllipsis))
        return bad_equation(equation, "has a misplaced dot");
      out.push_back(kEllipsis);
      i += 2;
    } else if ((term[i] >= 'a' && term[i] <= 'z') || (term[i] >= 'A' && term[i] <= 'Z')) {
      out.push_back(term[i]);
    } else {
      return bad_equation(equation, "has a character that is not a letter");
    }
  }
  return out;
}

// Puts one label per axis in the place of kEllipsis.
EinsumLabels expand(const EinsumLabels& term, size_t axes) {
  EinsumLabels out;
  for (EinsumLabel l : term) {
    if (l != kEllipsis)
      out.push_back(l);
    else
      for (size_t i = 0; i < axes; ++i) out.push_back(kEllipsis + static_cast<EinsumLabel>(axes - i));
  }
  return out;
}
}  // namespace

Result<EinsumEquation> read_einsum(const std::string& text) {
  std::string equation = text;
  std::erase_if(equation, [](char c) { return c == ' ' || c == '\t'; });
  const size_t arrow = equation.find("->");
  const std::string_view left = std::string_view(equation).substr(0, arrow);
  EinsumEquation e;
  for (size_t begin = 0; begin <= left.size();) {
    const size_t end = std::min(left.find(',', begin), left.size());
    ORKNN_TRY_ASSIGN(EinsumLabels term, read_term(text, left.substr(begin, end - begin)));
    e.inputs.push_back(std::move(term));
    begin = end + 1;
  }
  if (arrow != std::string::npos) {
    ORKNN_TRY_ASSIGN(e.output, read_term(text, std::string_view(equation).substr(arrow + 2)));
    for (EinsumLabel l : e.output)
      if (std::count(e.output.begin(), e.output.end(), l) > 1) return bad_equation(text, "repeats an index of the output");
    return e;
  }
  std::map<EinsumLabel, int> uses;
  for (const EinsumLabels& term : e.inputs)
    for (EinsumLabel l : term) ++uses[l];
  if (uses.contains(kEllipsis)) e.output.push_back(kEllipsis);
  for (const auto& [label, count] : uses)
    if (count == 1 && label != kEllipsis) e.output.push_back(label);
  return e;
}

Result<EinsumPlan> plan_einsum(const NodeReader& node, std::span<const Shape> shapes) {
  const std::string& text = node.get_string("equation");
  ORKNN_TRY_ASSIGN(EinsumEquation e, read_einsum(text));
  if (e.inputs.size() != shapes.size())
    return bad_equation(text, "has the wrong number of terms").expected(std::to_string(shapes.size()));
  EinsumPlan plan;
  size_t ellipsis_axes = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const EinsumLabels& term = e.inputs[i];
    const bool ellipsis = std::count(term.begin(), term.end(), kEllipsis) > 0;
    const size_t letters = term.size() - (ellipsis ? 1 : 0);
    if (shapes[i].size() < letters || (!ellipsis && shapes[i].size() != letters))
      return shape_mismatch("operand " + std::to_string(i) + " does not fit its term in '" + text + "'")
          .expected("rank " + std::to_string(letters))
          .found(to_string(shapes[i]));
    if (ellipsis) ellipsis_axes = std::max(ellipsis_axes, shapes[i].size() - letters);
    const EinsumLabels labels = expand(term, shapes[i].size() - letters);
    for (size_t k = 0; k < labels.size(); ++k) {
      const Dim& d = shapes[i][k];
      const auto [at, fresh] = plan.dims.try_emplace(labels[k], d);
      if (fresh || at->second == d) continue;
      if (at->second.is_known() && d.is_known() && at->second.value() != 1 && d.value() != 1)
        return shape_mismatch("an index of '" + text + "' has two extents").expected(at->second.to_string()).found(d.to_string());
      if (!at->second.is_known() ? d.is_known() && d.value() != 1 : at->second.value() == 1) at->second = d;
    }
    plan.equation.inputs.push_back(labels);
  }
  plan.equation.output = expand(e.output, ellipsis_axes);
  for (EinsumLabel l : plan.equation.output)
    if (!plan.dims.contains(l)) return bad_equation(text, "has an output index that no operand has");
  return plan;
}

}  // namespace orknn::ops
