#include "ops/support/recurrent.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/support/floating.h"
#include "ops/support/operands.h"

namespace orknn::ops {
using namespace ir;

namespace {
enum Slot : size_t { kX, kW, kR, kB, kLengths, kInitialHidden, kInitialCell, kPeepholes };

Result<int64_t> direction_count(const NodeReader& node) {
  const std::string& d = node.get_string("direction");
  if (d == "forward" || d == "reverse") return 1;
  if (d == "bidirectional") return 2;
  return invalid_model("unknown direction").expected("forward, reverse or bidirectional").found(d);
}

bool same_dims(std::span<const int64_t> a, const Dims& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

// An activation function and the defaults of its parameters; NaN where it has none.
struct NamedActivation {
  std::string_view name;
  double alpha, beta;
  double (*apply)(double x, double alpha, double beta);
};
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const NamedActivation kActivations[] = {
    {"relu", kNone, kNone, [](double x, double, double) { return std::max(x, 0.0); }},
    {"tanh", kNone, kNone, [](double x, double, double) { return std::tanh(x); }},
    {"sigmoid", kNone, kNone, [](double x, double, double) { return 1 / (1 + std::exp(-x)); }},
    {"affine", 1.0, 0.0, [](double x, double a, double b) { return a * x + b; }},
    {"leakyrelu", 0.01, kNone, [](double x, double a, double) { return x >= 0 ? x : a * x; }},
    {"thresholdedrelu", 1.0, kNone, [](double x, double a, double) { return x >= a ? x : 0.0; }},
    {"scaledtanh", 1.0, 1.0, [](double x, double a, double b) { return a * std::tanh(b * x); }},
    {"hardsigmoid", 0.2, 0.5, [](double x, double a, double b) { return std::clamp(a * x + b, 0.0, 1.0); }},
    {"elu", 1.0, kNone, [](double x, double a, double) { return x >= 0 ? x : a * std::expm1(x); }},
    {"softsign", kNone, kNone, [](double x, double, double) { return x / (1 + std::abs(x)); }},
    {"softplus", kNone, kNone, [](double x, double, double) { return std::log1p(std::exp(-std::abs(x))) + std::max(x, 0.0); }},
};
}  // namespace

std::vector<AttributeDef> recurrent_attributes() {
  return {attr_floats("activation_alpha"),     attr_floats("activation_beta"), attr_strings("activations"), attr_float("clip"),
          attr_string("direction", "forward"), attr_int("hidden_size"),        attr_int("layout", 0)};
}

Result<std::vector<Activation>> read_activations(const NodeReader& node, std::span<const std::string_view> defaults) {
  ORKNN_TRY_ASSIGN(const int64_t directions, direction_count(node));
  std::vector<std::string> names;
  if (const auto* given = node.find<std::vector<std::string>>("activations")) names = *given;
  if (names.empty())
    for (int64_t d = 0; d < directions; ++d) names.insert(names.end(), defaults.begin(), defaults.end());
  if (names.size() != defaults.size() * static_cast<size_t>(directions))
    return invalid_model("wrong number of activations")
        .expected(std::to_string(defaults.size() * static_cast<size_t>(directions)))
        .found(std::to_string(names.size()));
  const auto* alphas = node.find<std::vector<double>>("activation_alpha");
  const auto* betas = node.find<std::vector<double>>("activation_beta");
  // Parameters are listed only for the functions that take them.
  size_t next_alpha = 0, next_beta = 0;
  std::vector<Activation> out;
  for (const std::string& name : names) {
    std::string lower = name;
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char ch) { return static_cast<char>(std::tolower(ch)); });
    const auto* f =
        std::find_if(std::begin(kActivations), std::end(kActivations), [&](const NamedActivation& a) { return a.name == lower; });
    if (f == std::end(kActivations)) return invalid_model("unknown activation function").found(name);
    double alpha = f->alpha, beta = f->beta;
    if (!std::isnan(alpha) && alphas && next_alpha < alphas->size()) alpha = (*alphas)[next_alpha++];
    if (!std::isnan(beta) && betas && next_beta < betas->size()) beta = (*betas)[next_beta++];
    out.push_back([apply = f->apply, alpha, beta](double x) { return apply(x, alpha, beta); });
  }
  return out;
}

double read_clip(const NodeReader& node) {
  const double clip = node.node().attributes.float_or("clip", 0);
  return clip > 0 ? clip : std::numeric_limits<double>::infinity();
}

Status infer_recurrent(InferContext& c, int64_t gates, std::span<const std::string_view> default_activations, bool has_cell) {
  ORKNN_TRY(require_float(c, kX));
  for (size_t slot : {kW, kR, kB, kInitialHidden, kInitialCell, kPeepholes})
    if (slot < c.input_count()) ORKNN_TRY(require_same_type(c, kX, slot));
  ORKNN_TRY(require_type(c, kLengths, DType::Int32));
  for (size_t slot : {kX, kW, kR}) ORKNN_TRY(require_rank(c, slot, 3));
  ORKNN_TRY_ASSIGN(const int64_t directions, direction_count(c));
  ORKNN_TRY(read_activations(c, default_activations).status());
  const bool batch_first = c.get_int("layout") != 0;
  Dim steps, batch, hidden;
  if (const Shape* x = c.shape(kX)) {
    steps = (*x)[batch_first ? 1 : 0];
    batch = (*x)[batch_first ? 0 : 1];
  }
  if (const Shape* r = c.shape(kR))
    hidden = (*r)[2];
  else if (const Shape* w = c.shape(kW))
    hidden = (*w)[1] / Dim(gates);
  if (const auto* size = c.find<int64_t>("hidden_size")) {
    if (*size < 1) return invalid_model("hidden_size is out of range").expected("at least 1").found(std::to_string(*size));
    if (hidden.is_known() && hidden.value() != *size)
      return shape_mismatch("hidden_size differs from the weights").expected(hidden.to_string()).found(std::to_string(*size));
    hidden = *size;
  }
  const Shape state = batch_first ? Shape{batch, directions, hidden} : Shape{directions, batch, hidden};
  ORKNN_TRY(require_shape(c, kW, "W", {directions, Dim(gates) * hidden, c.shape(kX) ? (*c.shape(kX))[2] : Dim()}));
  ORKNN_TRY(require_shape(c, kR, "R", {directions, Dim(gates) * hidden, hidden}));
  ORKNN_TRY(require_shape(c, kB, "B", {directions, Dim(2 * gates) * hidden}));
  ORKNN_TRY(require_shape(c, kLengths, "sequence_lens", {batch}));
  ORKNN_TRY(require_values(c, kLengths, "a sequence length is", 0, steps));
  ORKNN_TRY(require_shape(c, kInitialHidden, "initial_h", state));
  ORKNN_TRY(require_shape(c, kInitialCell, "initial_c", state));
  ORKNN_TRY(require_shape(c, kPeepholes, "P", {directions, Dim(3) * hidden}));
  c.set_output(0, c.dtype(kX), batch_first ? Shape{batch, steps, directions, hidden} : Shape{steps, directions, batch, hidden});
  c.set_output(1, c.dtype(kX), state);
  if (has_cell) c.set_output(2, c.dtype(kX), state);
  return {};
}

Result<RecurrentShape> recurrent_shape(const RunContext& c, int64_t gates) {
  const TensorView x = c.input(kX), r = c.input(kR);
  RecurrentShape s;
  s.gates = gates;
  s.batch_first = c.get_int("layout") != 0;
  s.steps = x.dims[s.batch_first ? 1 : 0];
  s.batch = x.dims[s.batch_first ? 0 : 1];
  s.input = x.dims[2];
  s.hidden = r.dims[2];
  ORKNN_TRY_ASSIGN(s.directions, direction_count(c));
  s.first_reversed = c.get_string("direction") == "reverse";
  const auto check = [&](size_t slot, const char* name, const Dims& expected) -> Status {
    if (!c.has_input(slot) || same_dims(c.input(slot).dims, expected)) return {};
    return wrong_shape(name, to_string(expected), c.input(slot).dims);
  };
  const Dims state = s.batch_first ? Dims{s.batch, s.directions, s.hidden} : Dims{s.directions, s.batch, s.hidden};
  ORKNN_TRY(check(kW, "W", {s.directions, gates * s.hidden, s.input}));
  ORKNN_TRY(check(kR, "R", {s.directions, gates * s.hidden, s.hidden}));
  ORKNN_TRY(check(kB, "B", {s.directions, 2 * gates * s.hidden}));
  ORKNN_TRY(check(kLengths, "sequence_lens", {s.batch}));
  ORKNN_TRY(check(kInitialHidden, "initial_h", state));
  ORKNN_TRY(check(kInitialCell, "initial_c", state));
  ORKNN_TRY(check(kPeepholes, "P", {s.directions, 3 * s.hidden}));
  if (c.has_input(kLengths))
    for (int32_t length : c.input(kLengths).values<int32_t>())
      if (length < 0 || length > s.steps)
        return invalid_argument("a sequence length is out of range")
            .expected("0 to " + std::to_string(s.steps))
            .found(std::to_string(length));
  return s;
}

OpCost recurrent_cost(const NodeReader& node, std::span<const Dims> inputs, int64_t gates) {
  if (inputs.size() < 3 || inputs[kX].size() != 3 || inputs[kR].size() != 3) return {};
  const auto directions = direction_count(node);
  const Dims &x = inputs[kX], &r = inputs[kR];
  const RecurrentShape s{
      .steps = x[0], .batch = x[1], .input = x[2], .hidden = r[2], .gates = gates, .directions = directions ? *directions : 1};
  return {.macs = s.macs(), .element_ops = s.steps * s.batch * s.directions * s.hidden * gates};
}

Status run_recurrent(RunContext& c, const RecurrentShape& s, bool has_cell, const std::function<void(const CellStep&)>& step) {
  const TensorView x = c.input(kX);
  const Dims state_dims = s.batch_first ? Dims{s.batch, s.directions, s.hidden} : Dims{s.directions, s.batch, s.hidden};
  const Dims y_dims =
      s.batch_first ? Dims{s.batch, s.steps, s.directions, s.hidden} : Dims{s.steps, s.directions, s.batch, s.hidden};
  std::optional<MutableTensorView> outputs[3];
  for (size_t i = 0; i < (has_cell ? 3u : 2u); ++i)
    if (c.has_output(i)) {
      ORKNN_TRY_ASSIGN(outputs[i], c.output(i, x.dtype, i == 0 ? y_dims : state_dims));
    }
  const int64_t rows = s.gates * s.hidden;
  const auto hidden = static_cast<size_t>(s.hidden);
  return run_as_float(x.dtype, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(s.directions * s.batch, 1, [&](int64_t begin, int64_t end) {
      std::vector<double> gates(static_cast<size_t>(rows)), state(hidden), cell(hidden);
      for (int64_t item = begin; item < end; ++item) {
        const int64_t direction = item / s.batch, sequence = item % s.batch;
        const int64_t state_at =
            (s.batch_first ? sequence * s.directions + direction : direction * s.batch + sequence) * s.hidden;
        const auto load = [&](size_t slot, std::vector<double>& to) {
          if (!c.has_input(slot)) return std::fill(to.begin(), to.end(), 0.0);
          const T* from = c.input(slot).as<T>() + state_at;
          std::copy(from, from + s.hidden, to.begin());
        };
        load(kInitialHidden, state);
        load(kInitialCell, cell);
        const T* w = c.input(kW).as<T>() + direction * rows * s.input;
        const T* bias = c.has_input(kB) ? c.input(kB).as<T>() + direction * 2 * rows : nullptr;
        const int64_t length = c.has_input(kLengths) ? c.input(kLengths).as<int32_t>()[sequence] : s.steps;
        const auto y_at = [&](int64_t t) {
          return outputs[0]->as<T>() + (s.batch_first ? (sequence * s.steps + t) * s.directions + direction
                                                      : (t * s.directions + direction) * s.batch + sequence) *
                                           s.hidden;
        };
        for (int64_t i = 0; i < length; ++i) {
          const int64_t t = s.reversed(direction) ? length - 1 - i : i;
          const T* at = x.as<T>() + (s.batch_first ? sequence * s.steps + t : t * s.batch + sequence) * s.input;
          for (int64_t row = 0; row < rows; ++row) {
            double sum = bias ? static_cast<double>(bias[row]) : 0.0;
            for (int64_t k = 0; k < s.input; ++k) sum += static_cast<double>(w[row * s.input + k]) * static_cast<double>(at[k]);
            gates[static_cast<size_t>(row)] = sum;
          }
          step({direction, gates.data(), state.data(), cell.data()});
          if (outputs[0]) std::copy(state.begin(), state.end(), y_at(t));
        }
        if (outputs[0])
          for (int64_t t = length; t < s.steps; ++t) std::fill_n(y_at(t), s.hidden, T{});
        if (outputs[1]) std::copy(state.begin(), state.end(), outputs[1]->as<T>() + state_at);
        if (outputs[2]) std::copy(cell.begin(), cell.end(), outputs[2]->as<T>() + state_at);
      }
    });
    return Status();
  });
}

}  // namespace orknn::ops
