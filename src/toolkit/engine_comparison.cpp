#include "toolkit/engine_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/half.h"
#include "base/refusal.h"
#include "ops/eval.h"
#include "ops/facts.h"
#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

using Values = std::map<int32_t, TensorData>;  // by tensor

TensorData copy_of(const TensorView& v) { return convert(v, v.dtype); }

bool is_product(const Node& n) { return ops::facts_of(n).weights != Weights::None; }
bool is_mean(const Node& n) {
  const QuantRule rule = ops::facts_of(n).quant;
  return rule == QuantRule::Average || rule == QuantRule::Mean;
}

// Distance from a float16 number of this magnitude to the next one.
double half_unit(double magnitude) {
  if (!std::isfinite(magnitude) || magnitude < 0x1p-14) return 0x1p-24;
  return std::ldexp(1.0, std::ilogb(std::min(magnitude, 65504.0)) - 10);
}

// How much of a difference before a tail is left after it, at most.
Result<double> gain_of_tail(const Node& n, const std::function<const TensorData*(TensorId)>& value, const OpSet& ops,
                            ThreadPool& pool) {
  double gain = 1;
  for (const TailStep& step : n.tail) {
    ORKNN_TRY_ASSIGN(const bool keeps, keeps_distances(step, ops, pool));
    if (keeps) continue;
    const TensorData* operand = step.operand < 0 ? nullptr : value(n.inputs[static_cast<size_t>(step.operand)]);
    if (ops::facts_of(step.op).arithmetic == Arithmetic::Mul && operand) {
      double most = 0;
      for (const double v : to_doubles(operand->view())) most = std::max(most, std::abs(v));
      gain *= most;
    } else {
      gain *= 2;  // functions of one number that networks use are no steeper
    }
  }
  return gain;
}

// What float32 additions in another order may change, per element of the layer's result; empty: nothing.
Result<std::vector<double>> allowance(const format::Program& program, size_t task, const Values& values, const OpSet& ops,
                                      ThreadPool& pool) {
  const Node& n = program.graph.node(program.tasks[task].node);
  const Tensor& out = program.graph.tensor(n.output());
  if ((!is_product(n) && !is_mean(n)) || out.dtype != DType::Float16) return std::vector<double>();
  const auto value = [&](TensorId t) -> const TensorData* {
    if (const TensorData* constant = program.graph.constant(t)) return constant;
    const auto at = values.find(t.index);
    return at == values.end() ? nullptr : &at->second;
  };
  Node plain = n;
  plain.tail.clear();
  plain.inputs.resize(n.own_input_count());
  std::vector<TensorData> magnitudes;
  for (const TensorId t : plain.inputs) {
    magnitudes.emplace_back();
    const TensorData* v = t ? value(t) : nullptr;
    if (!v) continue;
    magnitudes.back() = is_float(v->dtype()) ? convert(v->view(), DType::Float32) : *v;
    if (!is_float(v->dtype())) continue;
    auto* numbers = static_cast<float*>(magnitudes.back().mutable_data());
    for (int64_t i = 0; i < magnitudes.back().count(); ++i) numbers[i] = std::abs(numbers[i]);
  }
  const auto sums = ops::eval_node(plain, ops, magnitudes, pool);
  if (!sums && !is_refusal(sums.status())) return sums.status();
  if (!sums) return std::vector<double>();
  std::vector<double> allowed = to_doubles(sums->front().view());
  const int64_t results = std::max<int64_t>(static_cast<int64_t>(allowed.size()), 1);
  double terms = static_cast<double>(program.tasks[task].macs) / static_cast<double>(results) + 1, coefficient = 0;
  if (is_mean(n)) {
    const auto* kernel = n.attributes.get<std::vector<int64_t>>("kernel_shape");
    terms = kernel ? static_cast<double>(element_count(*kernel))
                   : static_cast<double>(magnitudes[0].count()) / static_cast<double>(results);
    coefficient = std::abs(half_to_float(float_to_half(static_cast<float>(1 / terms))) * terms - 1);
  }
  ORKNN_TRY_ASSIGN(const double gain, gain_of_tail(n, value, ops, pool));
  const double factor = (2 * terms * 0x1p-24 + coefficient) * gain;
  for (double& v : allowed) v *= factor;
  return allowed;
}

void compare_floats(const TensorView& a, const TensorView& b, const std::vector<double>& allowed, LayerComparison& layer) {
  const std::vector<double> x = to_doubles(a), y = to_doubles(b);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i] || (std::isnan(x[i]) && std::isnan(y[i]))) continue;
    ++layer.unequal;
    const double unit = half_unit(std::max(std::abs(x[i]), std::abs(y[i]))), difference = std::abs(x[i] - y[i]);
    layer.largest_units = std::max(layer.largest_units, std::isfinite(difference) ? difference / unit : INFINITY);
    layer.beyond += !(difference <= unit + (i < allowed.size() ? allowed[i] : 0));
  }
}
void compare_integers(const TensorView& a, const TensorView& b, LayerComparison& layer) {
  const std::vector<double> x = to_doubles(a), y = to_doubles(b);
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    ++layer.unequal;
    ++layer.beyond;
    layer.largest_units = std::max(layer.largest_units, std::abs(x[i] - y[i]));
  }
}
}  // namespace

Result<bool> keeps_distances(const TailStep& step, const OpSet& ops, ThreadPool& pool) {
  const OpDef& facts = ops::facts_of(step.op);
  if (facts.bounds != Bounds::None) return true;
  if (step.operand >= 0)
    return facts.arithmetic == Arithmetic::Add || facts.arithmetic == Arithmetic::Sub || facts.arithmetic == Arithmetic::Max ||
           facts.arithmetic == Arithmetic::Min;
  constexpr int kSamples = 4097;
  constexpr float kSpacing = 1.0f / 128, kRounding = 1e-5f;
  std::vector<float> x(kSamples);
  for (int i = 0; i < kSamples; ++i) x[static_cast<size_t>(i)] = static_cast<float>(i - kSamples / 2) * kSpacing;
  Node function;
  function.op = step.op;
  function.attributes = step.attributes;
  function.inputs = {TensorId{0}};
  function.outputs = {TensorId{1}};
  const TensorData samples = TensorData::from<float>({kSamples}, x);
  const auto results = ops::eval_node(function, ops, std::span(&samples, 1), pool);
  if (!results && !is_refusal(results.status())) return results.status();
  if (!results) return false;
  const auto y = results->front().values<float>();
  return std::ranges::adjacent_find(y, [](float a, float b) { return !(std::abs(a - b) <= kSpacing + kRounding); }) == y.end();
}

void compare_elements(const TensorView& a, const TensorView& b, const std::vector<double>& allowed, LayerComparison& layer) {
  if (is_float(a.dtype))
    compare_floats(a, b, allowed, layer);
  else
    compare_integers(a, b, layer);
}

Result<EngineComparison> compare_engines(const std::shared_ptr<const format::Model>& model, ThreadPool& pool,
                                         const std::function<Status(runtime::Session&)>& feed) {
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> simulator, runtime::Session::open(model, &pool));
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> streams, runtime::Session::open(model, &pool));
  return compare_engines(*simulator, *streams, pool, feed);
}

Result<EngineComparison> compare_engines(runtime::Session& simulator, runtime::Session& streams, ThreadPool& pool,
                                         const std::function<Status(runtime::Session&)>& feed) {
  simulator.use_simulator();
  if (!streams.uses_registers()) ORKNN_TRY(streams.use_registers());
  ORKNN_TRY(feed(simulator));
  ORKNN_TRY(feed(streams));
  Values expected;
  sim::RunHooks hooks;
  hooks.observe = [&](TensorId t, const TensorView& v) { expected[t.index] = copy_of(v); };
  ORKNN_TRY(simulator.run(hooks));

  const format::Program& program = streams.program();
  EngineComparison result;
  Status problem;
  std::map<int32_t, size_t> task_of;  // by tensor
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const Node& n = program.graph.node(program.tasks[i].node);
    result.layers.push_back({.type = n.type_name(), .name = n.name});
    for (const TensorId t : n.outputs)
      if (t) task_of[t.index] = i;
  }
  hooks.observe = [&](TensorId t, const TensorView& v) {
    ++result.tensors;
    const TensorData& other = expected[t.index];
    const auto at = task_of.find(t.index);
    LayerComparison alone;
    const bool computed = at != task_of.end();
    if (other.dtype() != v.dtype || other.count() != v.count())
      alone.unequal = alone.beyond = v.count();
    else if (v.count() > 0 && std::memcmp(v.data, other.data(), v.bytes()) != 0) {
      Result<std::vector<double>> allowed = std::vector<double>();
      if (computed) allowed = allowance(program, at->second, expected, ops::builtin_ops(), pool);
      if (!allowed) {
        problem.also(allowed.status());
        return;
      }
      compare_elements(v, other.view(), *allowed, alone);
    }
    if (alone.beyond > 0 && result.different++ == 0) result.first_different = program.graph.tensor(t).name;
    result.rounded += alone.unequal > 0 && alone.beyond == 0;
    if (!computed) return;
    LayerComparison& layer = result.layers[at->second];
    layer.elements += v.count();
    layer.unequal += alone.unequal;
    layer.beyond += alone.beyond;
    layer.largest_units = std::max(layer.largest_units, alone.largest_units);
  };
  hooks.amend = [&](TensorId t, const MutableTensorView& v) {
    const TensorData& other = expected[t.index];
    if (is_float(v.dtype) && other.dtype() == v.dtype && other.bytes() == v.bytes() && v.bytes() > 0)
      std::memcpy(v.data, other.data(), v.bytes());
  };
  ORKNN_TRY(streams.run(hooks));
  ORKNN_TRY(problem);
  result.unit = streams.unit_name();
  for (size_t i = 0; i < result.layers.size(); ++i) result.layers[i].as_stream = streams.kernel_name(i) == "command stream";
  return result;
}

void merge(EngineComparison& total, const EngineComparison& sample) {
  if (total.layers.empty()) {
    total = sample;
    return;
  }
  total.tensors += sample.tensors;
  if (total.different == 0) total.first_different = sample.first_different;
  total.different += sample.different;
  total.rounded += sample.rounded;
  for (size_t i = 0; i < total.layers.size() && i < sample.layers.size(); ++i) {
    LayerComparison& to = total.layers[i];
    const LayerComparison& from = sample.layers[i];
    to.elements += from.elements;
    to.unequal += from.unequal;
    to.beyond += from.beyond;
    to.largest_units = std::max(to.largest_units, from.largest_units);
  }
}

nlohmann::ordered_json to_json(const EngineComparison& c) {
  auto layers = nlohmann::ordered_json::array();
  for (const LayerComparison& l : c.layers)
    layers.push_back({{"type", l.type},
                      {"name", l.name},
                      {"stream", l.as_stream},
                      {"elements", l.elements},
                      {"unequal", l.unequal},
                      {"beyond", l.beyond},
                      {"largest_units", l.largest_units}});
  return {{"unit", c.unit},
          {"tensors", c.tensors},
          {"different", c.different},
          {"rounded", c.rounded},
          {"first_different", c.first_different},
          {"layers", layers}};
}

std::string engine_comparison_text(const EngineComparison& c, bool layers, size_t width) {
  Table table({{"#", Table::Align::Right},
               {"type"},
               {"name", Table::Align::Left, true},
               {"by"},
               {"elements", Table::Align::Right},
               {"unequal", Table::Align::Right},
               {"beyond rounding", Table::Align::Right},
               {"largest, units", Table::Align::Right}});
  for (size_t i = 0; i < c.layers.size(); ++i) {
    const LayerComparison& l = c.layers[i];
    table.add({std::to_string(i), l.type, l.name, l.as_stream ? "stream" : "CPU", std::to_string(l.elements),
               std::to_string(l.unequal), std::to_string(l.beyond), fmt::format("{:.3g}", l.largest_units)});
  }
  std::string text = layers ? table.to_text(width) : "";
  text += fmt::format("streams computed by {}: {} tensors, {} differ from the simulator's", c.unit, c.tensors, c.different);
  if (c.rounded > 0) text += fmt::format(", {} by the rounding of float32 sums alone", c.rounded);
  return text + "\n";
}

Status status_of(const EngineComparison& c) {
  if (c.different == 0) return {};
  return Status::error(Code::Fail, "the command streams, computed by " + c.unit +
                                       ", give other values than the simulator, first '" + c.first_different + "'");
}

}  // namespace orknn::toolkit
