#include "quantize/integer_graph.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "ops/eval.h"
#include "ops/support/requantize.h"
#include "quantize/adaptive_rounding.h"
#include "quantize/bias_correction.h"
#include "quantize/layer_formats.h"
#include "quantize/weights.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Entries of the table behind a layer's sums: fine enough that its rounding does not show next to that of the result. (An index's
// zero point has 16 bits.)
int64_t table_entries(DType result) { return result == DType::Int16 ? 32768 : 4096; }

size_t index_of(TensorId t) { return static_cast<size_t>(t.index); }

std::string to_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

std::vector<std::string> functions_of(std::span<const TailStep> steps) {
  std::vector<std::string> names;
  for (const TailStep& s : steps) names.push_back(s.op);
  return names;
}

// A chain of functions of one value.
class Functions {
 public:
  // `operand_first`: by node, the value is the second operand; empty = never.
  Functions(const OpSet& ops, std::vector<Node> nodes, std::vector<std::vector<TensorData>> operands,
            std::vector<char> operand_first = {})
      : ops_(ops), nodes_(std::move(nodes)), operands_(std::move(operands)), operand_first_(std::move(operand_first)) {}
  bool empty() const { return nodes_.empty(); }
  // In double, so that the table's entries are rounded once.
  Result<std::vector<double>> operator()(std::vector<double> x) const {
    TensorData value = TensorData::from<double>({static_cast<int64_t>(x.size())}, x);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      std::vector<TensorData> inputs{value};
      inputs.insert(i < operand_first_.size() && operand_first_[i] ? inputs.begin() : inputs.end(), operands_[i].begin(),
                    operands_[i].end());
      ORKNN_TRY_ASSIGN(auto results, ops::eval_node(nodes_[i], ops_, inputs));
      value = results[0];
    }
    return to_doubles(value.view());
  }

  // One node of its own, with its constant operands.
  static Node plain(std::string op, Attributes attributes, size_t inputs) {
    Node n;
    n.op = std::move(op);
    n.attributes = std::move(attributes);
    n.inputs.assign(inputs, TensorId{0});
    n.outputs = {TensorId{0}};
    return n;
  }

 private:
  const OpSet& ops_;
  std::vector<Node> nodes_;
  std::vector<std::vector<TensorData>> operands_;
  std::vector<char> operand_first_;
};

// Where the sums of a layer go: straight to the result's scale between two bounds, or through a table.
struct Target {
  double scale = 1;
  int64_t zero_point = 0, low = -128, high = 127;
  DType type = DType::Int8;  // of the result
  TensorData table = {};     // no value = none
};

class Lowering {
 public:
  Lowering(const Graph& graph, const OpSet& ops, Assignment& assignment, const QuantizeOptions& options,
           const TensorStatistics& statistics)
      : in_(graph),
        ops_(ops),
        assignment_(assignment),
        options_(options),
        statistics_(statistics),
        versions_(graph.tensor_count()) {}

  Result<Graph> run() {
    out_.name = in_.name;
    for (TensorId t : in_.inputs()) add_input(t);
    for (NodeId id : in_.order()) {
      LayerForm& form = assignment_.forms[static_cast<size_t>(id.index)];
      const Node& n = in_.node(id);
      if (form.form != Form::Float) {
        ORKNN_TRY_ASSIGN(const std::string problem, lower(n, form.form));
        if (problem.empty()) continue;
        form = {Form::Float, problem};
      }
      copy_node(n);
    }
    for (TensorId t : in_.outputs()) out_.outputs().push_back(primary(t));
    out_.compact();
    return std::move(out_);
  }

 private:
  struct Versions {
    TensorId real, integer;
  };
  const std::optional<QuantParams>& parameters(TensorId t) const { return assignment_.tensors[index_of(t)]; }
  double scale(TensorId t) const { return parameters(t)->scale[0]; }
  int64_t zero(TensorId t) const { return parameters(t)->zero_point[0]; }
  DType type(TensorId t) const {
    return assignment_.types.empty() ? options_.format.activations : assignment_.types[index_of(t)];
  }
  Limits limits(TensorId t) const { return limits_of(type(t), parameters(t)->fixed_point); }
  const NumberFormat& format(const Node& n) const { return format_of(options_, in_.tensor(n.output()).name); }
  bool per_channel(const Node& n) const { return options_.per_channel && !format(n).per_tensor; }
  int64_t quantized(double real, TensorId t) const { return rounded(real, scale(t), zero(t), limits(t)); }
  // Every value in the parameters of `t`.
  TensorData integers(TensorId t, Dims dims, std::span<const double> reals) const {
    std::vector<int64_t> values;
    for (double v : reals) values.push_back(quantized(v, t));
    return integer_tensor(type(t), std::move(dims), values);
  }
  TensorData zero_scalar(TensorId t) const { return integer_tensor(type(t), {}, {zero(t)}); }
  std::string integer_name(TensorId t) const { return in_.tensor(t).name + "_" + std::string(dtype_name(type(t))); }

  // --- tensors
  TensorId declare(TensorId old, const std::string& name, bool integer) {
    const Tensor& source = in_.tensor(old);
    const TensorId t = out_.add_tensor(name, integer ? type(old) : source.dtype, source.shape);
    out_.tensor(t).layout = source.layout;
    out_.tensor(t).quant = integer ? parameters(old) : source.quant;  // what integers mean stays where they stay
    return t;
  }
  TensorId constant(const std::string& name, TensorData value) { return out_.add_constant(name, std::move(value)); }

  void add_input(TensorId t) {
    const auto users = in_.users(t);
    const bool integer = parameters(t) && (assignment_.integer_inputs || std::any_of(users.begin(), users.end(), [&](NodeId u) {
                                             return assignment_.forms[static_cast<size_t>(u.index)].form != Form::Float;
                                           }));
    const TensorId made = declare(t, in_.tensor(t).name, integer);
    (integer ? versions_[index_of(t)].integer : versions_[index_of(t)].real) = made;
    out_.inputs().push_back(made);
  }

  TensorId primary(TensorId old) {
    const Versions& v = versions_[index_of(old)];
    return v.integer ? v.integer : real(old);
  }

  TensorId real(TensorId old) {
    if (!old) return {};
    Versions& v = versions_[index_of(old)];
    if (v.real) return v.real;
    const Tensor& source = in_.tensor(old);
    if (source.is_constant()) return v.real = constant(source.name, source.constant);
    ORKNN_ASSERT(v.integer, "a tensor is made before it is read");
    return v.real = convert("DequantizeLinear", old, v.integer, source.name + "_float", false);
  }

  TensorId integer(TensorId old) {
    Versions& v = versions_[index_of(old)];
    if (!v.integer) v.integer = convert("QuantizeLinear", old, v.real, integer_name(old), true);
    return v.integer;
  }

  TensorId convert(const std::string& op, TensorId old, TensorId from, const std::string& name, bool to_integer) {
    Node n;
    n.op = op;
    n.name = name;
    n.inputs = {from, constant(name + "/scale", TensorData::scalar<float>(parameters(old)->scale[0])),
                constant(name + "/zero_point", zero_scalar(old))};
    n.outputs = {declare(old, name, to_integer)};
    n.origin = {in_.tensor(old).name};
    const TensorId made = n.outputs[0];
    out_.add_node(std::move(n));
    return made;
  }

  // --- nodes
  void copy_node(const Node& n) {
    Node copy = n;
    for (TensorId& t : copy.inputs) t = real(t);
    for (TensorId& t : copy.outputs) {
      if (!t) continue;
      const TensorId made = declare(t, in_.tensor(t).name, false);
      versions_[index_of(t)].real = made;
      t = made;
    }
    out_.add_node(std::move(copy));
  }

  // Adds the integer form of `n`; its results become integer tensors.
  void add(const Node& n, std::string op, std::vector<TensorId> inputs, Attributes attributes) {
    Node made;
    made.op = std::move(op);
    made.name = n.name;
    made.origin = n.origin;
    while (!inputs.empty() && !inputs.back()) inputs.pop_back();
    made.inputs = std::move(inputs);
    made.attributes = std::move(attributes);
    for (TensorId t : n.outputs) {
      TensorId created;
      if (t) versions_[index_of(t)].integer = created = declare(t, in_.tensor(t).name, true);
      made.outputs.push_back(created);
    }
    out_.add_node(std::move(made));
  }

  // The answer is empty, or says why the layer has to stay in float.
  Result<std::string> lower(const Node& n, Form form) {
    switch (form) {
      case Form::Conv: return lower_conv(n);
      case Form::MatMul: return lower_matmul(n);
      case Form::Binary: return lower_binary(n);
      case Form::Table: return lower_function(n);
      case Form::PRelu: return lower_prelu(n);
      case Form::Move: return lower_move(n);
      case Form::Concat: return lower_concat(n);
      case Form::Average: return lower_average(n);
      case Form::Mean: return lower_mean(n);
      case Form::Softmax: return lower_softmax(n);
      case Form::Resize: return lower_resize(n);
      case Form::Float: break;
    }
    return std::string("there is no integer form");
  }

  // --- where sums go
  static bool is_bound(const TailStep& s) { return s.op == "Relu" || s.op == "Clip"; }

  Target plain_target(TensorId y) const {
    return {.scale = scale(y), .zero_point = zero(y), .low = limits(y).low, .high = limits(y).high, .type = type(y)};
  }

  Result<Target> target_of(const Node& n, std::span<const TailStep> steps) const {
    const TensorId y = n.output();
    Target target = plain_target(y);
    if (std::all_of(steps.begin(), steps.end(), is_bound)) {
      for (const TailStep& s : steps) {
        const double low = s.op == "Relu" ? 0 : s.attributes.float_or("min", -INFINITY),
                     high = s.op == "Relu" ? INFINITY : s.attributes.float_or("max", INFINITY);
        if (low > -INFINITY) target.low = std::max(target.low, quantized(low, y));
        if (high < INFINITY) target.high = std::min(target.high, quantized(high, y));
      }
      target.high = std::max(target.high, target.low);
      return target;
    }
    std::vector<Node> nodes;
    std::vector<std::vector<TensorData>> operands;
    std::vector<char> first;
    for (const TailStep& s : steps) {
      std::vector<TensorData> bounds;
      Attributes attributes = s.attributes;
      if (s.op == "Clip") {  // a step states its bounds as attributes, a node as inputs
        for (const char* name : {"min", "max"}) {
          bounds.push_back(attributes.has(name) ? TensorData::scalar<double>(attributes.float_or(name, 0)) : TensorData());
          attributes.erase(name);
        }
      }
      if (s.operand >= 0)
        bounds.push_back(
            ir::convert(in_.constant(n.inputs[static_cast<size_t>(s.operand)])->view(), DType::Float64).reshaped({}));
      Node node = Functions::plain(s.op, std::move(attributes), 1 + bounds.size());
      for (size_t i = 0; i < bounds.size(); ++i)
        if (!bounds[i].has_value()) node.inputs[1 + i] = TensorId{};
      nodes.push_back(std::move(node));
      operands.push_back(std::move(bounds));
      first.push_back(s.operand_first);
    }
    return through_table(Functions(ops_, std::move(nodes), std::move(operands), std::move(first)), y);
  }

  // A table over the values at which the result still changes.
  Result<Target> through_table(const Functions& f, TensorId y) const {
    double low = -1024, high = 1024;
    const double reach =
        std::max(std::abs(static_cast<double>(parameters(y)->min[0])), std::abs(static_cast<double>(parameters(y)->max[0])));
    low = std::min(low, -4 * reach);
    high = std::max(high, 4 * reach);
    for (int round = 0; round < 4; ++round) {
      constexpr int64_t kPoints = 2048;
      std::vector<double> x(kPoints);
      for (int64_t i = 0; i < kPoints; ++i)
        x[static_cast<size_t>(i)] = low + (high - low) * static_cast<double>(i) / (kPoints - 1);
      ORKNN_TRY_ASSIGN(const std::vector<double> values, f(x));
      size_t first = 0, last = kPoints - 1;
      while (first < last && quantized(values[first + 1], y) == quantized(values[0], y)) ++first;
      while (last > first && quantized(values[last - 1], y) == quantized(values[kPoints - 1], y)) --last;
      low = x[first];
      high = x[last];
      if (high <= low) high = low + 1;
    }
    const int64_t entries = table_entries(type(y));
    Target target;
    target.type = type(y);
    target.scale = (high - low) / static_cast<double>(entries - 1);
    target.zero_point = static_cast<int64_t>(std::nearbyint(-low / target.scale));
    if (target.zero_point < INT16_MIN || target.zero_point > INT16_MAX)
      return unsupported("the function changes too far from zero");
    target.low = 0;
    target.high = entries - 1;
    std::vector<double> x(static_cast<size_t>(entries));
    for (int64_t i = 0; i < entries; ++i) x[static_cast<size_t>(i)] = static_cast<double>(i - target.zero_point) * target.scale;
    ORKNN_TRY_ASSIGN(const std::vector<double> values, f(std::move(x)));
    target.table = integers(y, {entries}, values);
    return target;
  }

  static void set_stage(Attributes& a, const Target& target, std::vector<int64_t> factors, std::vector<int64_t> shifts,
                        std::vector<std::string> fused) {
    a.set("multiplier", std::move(factors));
    a.set("shift", std::move(shifts));
    a.set("y_zero_point", target.zero_point);
    a.set("low", target.low);
    a.set("high", target.high);
    if (target.type != DType::Int8) a.set("y_type", static_cast<int64_t>(target.type));
    if (!fused.empty()) a.set("fused", std::move(fused));
  }
  TensorId table_input(const Node& n, const Target& target) {
    return target.table.has_value() ? constant(n.name + "/table", target.table) : TensorId{};
  }

  // --- sums of products
  // Weights, bias, multipliers and the addend of a layer, common to convolutions and matrix products.
  Result<std::string> finish_product(const Node& n, const std::string& op, TensorId weights, const std::vector<double>& w_scales,
                                     std::span<const double> bias, Attributes attributes) {
    const TensorId x = n.input(0), y = n.output();
    const TailParts parts = tail_parts(in_, n, n.op == "Conv" || n.op == "ConvTranspose" ? Form::Conv : Form::MatMul);
    const TensorId addend = parts.addend;
    const bool adds = static_cast<bool>(addend);
    auto target = target_of(n, std::span(n.tail).subspan(parts.functions));
    if (!target) return target.status().message();
    std::vector<int64_t> factors, shifts, add_factors;
    const double add_ratio = adds ? scale(addend) / target->scale : 0;
    for (double w : w_scales) {
      const auto m = ops::make_multiplier(scale(x) * w / target->scale);
      if (!m) return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
      ops::Multiplier multiplier = *m;
      if (adds) {
        while (multiplier.shift > 1 &&
               std::ldexp(add_ratio, static_cast<int>(multiplier.shift)) > static_cast<double>(ops::kMaxAddFactor)) {
          multiplier.factor = (multiplier.factor + 1) >> 1;
          --multiplier.shift;
        }
        const double factor = std::nearbyint(std::ldexp(add_ratio, static_cast<int>(multiplier.shift)));
        if (factor > static_cast<double>(ops::kMaxAddFactor))
          return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
        add_factors.push_back(static_cast<int64_t>(factor));
      }
      factors.push_back(multiplier.factor);
      shifts.push_back(multiplier.shift);
    }
    TensorId bias_tensor;
    if (!bias.empty()) {
      TensorData values = TensorData::allocate(DType::Int32, {static_cast<int64_t>(bias.size())});
      auto* to = static_cast<int32_t*>(values.mutable_data());
      for (size_t i = 0; i < bias.size(); ++i) {
        const double q = std::nearbyint(bias[i] / (scale(x) * w_scales[w_scales.size() == 1 ? 0 : i]));
        if (std::abs(q) > 2147483647.0) return std::string("its bias does not fit 32 bits");
        to[i] = std::isnan(q) ? 0 : static_cast<int32_t>(q);
      }
      bias_tensor = constant(bias_name(n, parts), std::move(values));
      QuantParams p;
      for (size_t i = 0; i < bias.size(); ++i)
        p.scale.push_back(static_cast<float>(scale(x) * w_scales[w_scales.size() == 1 ? 0 : i]));
      p.zero_point.assign(bias.size(), 0);
      p.axis = 0;
      p.min.assign(bias.begin(), bias.end());
      p.max = p.min;
      p.fixed_point = parameters(x)->fixed_point;
      out_.tensor(bias_tensor).quant = std::move(p);
    }
    if (!parts.slopes.empty() && !set_slopes(attributes, scale(x) / target->scale, w_scales, parts.slopes, factors, shifts))
      return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
    attributes.set("x_zero_point", zero(x));
    if (adds) {
      attributes.set("add_zero_point", zero(addend));
      attributes.set("add_multiplier", std::move(add_factors));
    }
    set_stage(attributes, *target, std::move(factors), std::move(shifts), functions_of(n.tail));
    const TensorId data = integer(x), other = adds ? integer(addend) : TensorId{};
    add(n, op, {data, weights, bias_tensor, other, table_input(n, *target)}, std::move(attributes));
    return std::string();
  }

  // Multipliers of sums below zero: as many as of others, which become one per channel where there are several slopes. False when
  // one is too large.
  static bool set_slopes(Attributes& attributes, double ratio, const std::vector<double>& w_scales,
                         const std::vector<double>& slopes, std::vector<int64_t>& factors, std::vector<int64_t>& shifts) {
    const size_t count = std::max(factors.size(), slopes.size());
    factors.resize(count, factors[0]);
    shifts.resize(count, shifts[0]);
    std::vector<int64_t> negative_factors, negative_shifts;
    for (size_t i = 0; i < count; ++i) {
      const double slope = ratio * w_scales[w_scales.size() == 1 ? 0 : i] * slopes[slopes.size() == 1 ? 0 : i];
      const auto m = ops::make_multiplier(std::abs(slope));
      if (!m) return false;
      negative_factors.push_back(slope < 0 ? -m->factor : m->factor);
      negative_shifts.push_back(m->shift);
    }
    attributes.set("negative_multiplier", std::move(negative_factors));
    attributes.set("negative_shift", std::move(negative_shifts));
    return true;
  }

  // After the source's bias, when there is one.
  std::string bias_name(const Node& n, const TailParts& parts) const {
    if (n.has_input(2)) return in_.tensor(n.input(2)).name + "_int32";
    return parts.bias ? in_.tensor(n.inputs[static_cast<size_t>(n.tail[0].operand)]).name + "_int32" : n.name + "/bias";
  }

  // A bias above this many units would leave no room for the sum itself.
  std::vector<double> least_scales(std::span<const double> bias, TensorId x) const {
    std::vector<double> list;
    for (double b : bias) list.push_back(std::isfinite(b) ? std::abs(b) / (scale(x) * 1073741824.0) : 0);
    return list;
  }

  Result<std::string> lower_conv(const Node& n) {
    const TensorData& w = *in_.constant(n.input(1));
    const bool transposed = n.op == "ConvTranspose";
    const int64_t group = n.attributes.int_or("group", 1);
    std::vector<double> bias;
    if (n.has_input(2)) bias = to_doubles(in_.constant(n.input(2))->view());
    // Weights of a transposed convolution are [in, out / group, ...]: with groups a channel is no axis of its own.
    std::optional<int64_t> axis;
    if (per_channel(n) && (!transposed || group == 1)) axis = transposed ? 1 : 0;
    const std::optional<int64_t> channels = !transposed  ? std::optional<int64_t>(0)
                                            : group == 1 ? std::optional<int64_t>(1)
                                                         : std::nullopt;
    const QuantizedWeights q = weights_of(n, w, in_.tensor(n.input(1)).quant, channels, axis, bias);
    const TensorId weights = constant(weight_name(n, q), q.values);
    set_weight_parameters(weights, q, axis);
    Attributes attributes = n.attributes;
    set_weight_zero_points(attributes, q);
    return finish_product(n, transposed ? "int:ConvTranspose" : "int:Conv", weights, q.scales, bias, std::move(attributes));
  }

  // On the grid the model states, or else rounded. `channels` is the axis that a grid of several scales has to have.
  QuantizedWeights weights_of(const Node& n, const TensorData& w, const std::optional<QuantParams>& stated,
                              std::optional<int64_t> channels, std::optional<int64_t> axis, std::vector<double>& bias) const {
    if (stated && (stated->scale.size() == 1 || (channels && stated->axis == *channels)))
      if (auto q = stored_weights(w, *stated)) return std::move(*q);
    return rounded_weights(n, w, axis, bias);
  }

  std::string weight_name(const Node& n, const QuantizedWeights& q) const {
    return in_.tensor(n.input(1)).name + "_" + std::string(dtype_name(q.values.dtype()));
  }

  static void set_weight_zero_points(Attributes& attributes, const QuantizedWeights& q) {
    if (std::any_of(q.zero_points.begin(), q.zero_points.end(), [](int64_t z) { return z != 0; }))
      attributes.set("w_zero_point", q.zero_points);
  }

  // Rounded weights of a layer, laid out as `w`; the bias takes the shift of the mean that rounding brings.
  QuantizedWeights rounded_weights(const Node& n, const TensorData& w, std::optional<int64_t> axis,
                                   std::vector<double>& bias) const {
    const std::vector<double> least = least_scales(bias, n.input(0));
    std::vector<double> shift;
    QuantizedWeights q;
    const RoundedLayer* ahead = nullptr;
    if (options_.rounded && format(n).weights == DType::Int8 && !format(n).power_of_two)
      if (const auto it = options_.rounded->find(in_.tensor(n.output()).name); it != options_.rounded->end()) ahead = &it->second;
    const auto fits = [&] {  // it may come from a file
      if (n.op == "ConvTranspose" || ahead->weights.values.dims() != w.dims()) return false;
      const auto outputs = static_cast<size_t>(n.op == "Conv" ? w.dims()[0] : w.dims().back());
      if (ahead->weights.scales.size() != (axis ? outputs : 1) || ahead->bias_shift.size() != outputs) return false;
      for (size_t i = 0; i < least.size(); ++i)
        if (least[i] > ahead->weights.scales[ahead->weights.scales.size() == 1 ? 0 : i]) return false;
      return true;
    };
    if (ahead && fits()) {
      q = ahead->weights;
      shift = ahead->bias_shift;
    } else {
      q = round_weights(w, axis, least, format(n).weights, format(n).power_of_two);
      // A transposed convolution spreads its weights over results that each see a part of them.
      if (n.op == "Conv" && q.values.dtype() == DType::Int8) shift = bias_correction(n, w, q, channels_of(n.input(0)));
    }
    if (options_.correct_bias && (bias.empty() || bias.size() == shift.size())) {
      bias.resize(shift.size(), 0);
      double largest = 0;
      for (size_t i = 0; i < shift.size(); ++i) {
        bias[i] += shift[i];
        largest = std::max(largest, std::abs(shift[i]));
      }
      if (options_.remark && largest > 0)
        options_.remark(kCorrectBias, "'" + in_.tensor(n.output()).name + "': bias moved by up to " + to_text(largest));
    }
    return q;
  }

  // What calibration said about the channels of a tensor; nothing when it was not seen.
  std::vector<ChannelStatistics> channels_of(TensorId t) const {
    if (const auto seen = statistics_.find(in_.tensor(t).name); seen != statistics_.end())
      return {seen->second.channels().begin(), seen->second.channels().end()};
    std::vector<ChannelStatistics> channels;
    if (const auto means = options_.channel_means.find(in_.tensor(t).name); means != options_.channel_means.end())
      for (double mean : means->second) channels.push_back({.sum = mean, .count = 1});
    return channels;
  }

  void set_weight_parameters(TensorId weights, const QuantizedWeights& q, std::optional<int64_t> axis) {
    QuantParams p;
    p.scale.assign(q.scales.begin(), q.scales.end());
    p.zero_point.assign(q.scales.size(), 0);
    for (size_t i = 0; i < q.zero_points.size(); ++i) p.zero_point[i] = static_cast<int32_t>(q.zero_points[i]);
    p.axis = axis && q.scales.size() > 1 ? static_cast<int32_t>(*axis) : -1;
    out_.tensor(weights).quant = std::move(p);
  }

  Result<std::string> lower_matmul(const Node& n) {
    const TensorData* b = in_.constant(n.input(1));
    if (!b) {
      Attributes attributes;
      attributes.set("w_zero_point", std::vector<int64_t>{zero(n.input(1))});
      return finish_product(n, "int:MatMul", integer(n.input(1)), {scale(n.input(1))}, {}, std::move(attributes));
    }
    TensorData weights = *b;
    std::optional<QuantParams> stated = in_.tensor(n.input(1)).quant;
    std::vector<double> bias;
    if (n.op == "Gemm") {
      const double alpha = n.attributes.float_or("alpha", 1), beta = n.attributes.float_or("beta", 1);
      Node move = Functions::plain("Transpose", {}, 1);
      if (n.attributes.int_or("transB", 0) != 0) {
        ORKNN_TRY_ASSIGN(auto turned, ops::eval_node(move, ops_, std::span(&weights, 1)));
        weights = turned[0];
        if (stated && stated->axis >= 0) stated->axis = 1 - stated->axis;
      }
      if (alpha != 1) {
        if (stated && alpha > 0)
          for (float& s : stated->scale) s = static_cast<float>(s * alpha);
        else
          stated.reset();
        TensorData scaled = TensorData::allocate(DType::Float32, weights.dims());
        auto* to = static_cast<float*>(scaled.mutable_data());
        for (int64_t i = 0; i < weights.count(); ++i) to[i] = static_cast<float>(weights.as<float>()[i] * alpha);
        weights = scaled;
      }
      if (n.has_input(2)) {
        bias = to_doubles(in_.constant(n.input(2))->view());
        bias.resize(static_cast<size_t>(weights.dims().back()), bias.empty() ? 0 : bias[0]);
        for (double& v : bias) v *= beta;
      }
    }
    if (const TensorData* added = tail_parts(in_, n, Form::MatMul).bias) bias = to_doubles(added->view());
    const auto last = static_cast<int64_t>(weights.dims().size()) - 1;
    const std::optional<int64_t> axis = per_channel(n) ? std::optional(last) : std::nullopt;
    const QuantizedWeights q = weights_of(n, weights, stated, last, axis, bias);
    const TensorId tensor = constant(weight_name(n, q), q.values);
    set_weight_parameters(tensor, q, axis);
    Attributes attributes;
    set_weight_zero_points(attributes, q);
    return finish_product(n, "int:MatMul", tensor, q.scales, bias, std::move(attributes));
  }

  // --- element by element
  struct Operand {
    TensorId tensor;
    double scale = 1;
    int64_t zero_point = 0;
  };
  // A constant is rounded to the format of the result that it goes into.
  Operand operand(TensorId t, bool reciprocal, DType result, bool fixed_point) {
    const TensorData* value = in_.constant(t);
    if (!value) return {integer(t), scale(t), zero(t)};
    TensorData real = *value;
    if (reciprocal) {
      real = TensorData::allocate(DType::Float32, value->dims());
      auto* to = static_cast<float*>(real.mutable_data());
      for (int64_t i = 0; i < real.count(); ++i) to[i] = 1.0f / value->as<float>()[i];
    }
    const std::optional<QuantParams>& stated = in_.tensor(t).quant;
    QuantizedConstant q;
    if (auto stored = stated && !reciprocal && stated->scale.size() == 1 ? stored_weights(real, *stated) : std::nullopt)
      q = {stored->values, *stated};
    else
      q = round_constant(real, result, fixed_point);
    const TensorId made = constant(in_.tensor(t).name + "_" + std::string(dtype_name(q.values.dtype())), std::move(q.values));
    out_.tensor(made).quant = q.parameters;
    return {made, q.parameters.scale[0], q.parameters.zero_point[0]};
  }

  Result<std::string> lower_binary(const Node& n) {
    auto target = target_of(n, n.tail);
    if (!target) return target.status().message();
    const bool fixed_point = parameters(n.output())->fixed_point;
    const Operand a = operand(n.input(0), false, target->type, fixed_point),
                  b = operand(n.input(1), n.op == "Div", target->type, fixed_point);
    Attributes attributes;
    attributes.set("a_zero_point", a.zero_point);
    attributes.set("b_zero_point", b.zero_point);
    std::string op = n.op == "Max" ? "int:Max" : n.op == "Min" ? "int:Min" : "int:Add";
    if (n.op == "Mul" || n.op == "Div") {
      op = "int:Mul";
      const auto m = ops::make_multiplier(a.scale * b.scale / target->scale);
      if (!m) return "the scale of '" + in_.tensor(n.output()).name + "' is too small for its inputs";
      set_stage(attributes, *target, {m->factor}, {m->shift}, functions_of(n.tail));
    } else {
      // Both factors below 2^30 with one shift.
      const double ratio_a = a.scale / target->scale, ratio_b = b.scale / target->scale;
      int exponent = 0;
      static_cast<void>(std::frexp(std::max(ratio_a, ratio_b), &exponent));
      const int shift = std::min<int>(29 - exponent, static_cast<int>(ops::kMaxShift));
      if (shift < 1) return "the scale of '" + in_.tensor(n.output()).name + "' is too small for its inputs";
      const auto factor = [&](double ratio) { return static_cast<int64_t>(std::nearbyint(std::ldexp(ratio, shift))); };
      attributes.set("b_multiplier", n.op == "Sub" ? -factor(ratio_b) : factor(ratio_b));
      set_stage(attributes, *target, {factor(ratio_a)}, {shift}, functions_of(n.tail));
    }
    add(n, op, {a.tensor, b.tensor, table_input(n, *target)}, std::move(attributes));
    return std::string();
  }

  // f of every value `x` can have, in the result's parameters.
  Result<TensorId> table_of(const Functions& f, TensorId x, TensorId y, const std::string& name) {
    const int64_t entries = type(x) == DType::Int16 ? 65536 : 256;
    std::vector<double> reals(static_cast<size_t>(entries));
    for (int64_t i = 0; i < entries; ++i)
      reals[static_cast<size_t>(i)] = static_cast<double>(i + dtype_min(type(x)) - zero(x)) * scale(x);
    ORKNN_TRY_ASSIGN(const std::vector<double> values, f(std::move(reals)));
    return constant(name, integers(y, {entries}, values));
  }

  Result<std::string> lower_function(const Node& n) {
    std::vector<TensorData> operands;
    Node plain = Functions::plain(n.op, n.attributes, n.own_input_count());
    for (size_t i = 1; i < n.own_input_count(); ++i) {
      if (!n.inputs[i]) {
        plain.inputs[i] = TensorId{};
        operands.emplace_back();
        continue;
      }
      const TensorData& value = *in_.constant(n.inputs[i]);
      operands.push_back(is_float(value.dtype()) ? ir::convert(value.view(), DType::Float64).reshaped({}) : value);
    }
    const Functions f(ops_, {std::move(plain)}, {std::move(operands)});
    auto table = table_of(f, n.input(0), n.output(), n.name + "/table");
    if (!table) return table.status().message();
    Attributes attributes;
    if (n.op != "Identity") attributes.set("fused", std::vector<std::string>{n.op});  // which only changes the format
    add(n, "int:Table", {integer(n.input(0)), *table}, std::move(attributes));
    return std::string();
  }

  Result<std::string> lower_prelu(const Node& n) {
    const TensorId x = n.input(0), y = n.output();
    const auto slopes = slopes_of(in_, x, n.input(1));
    const double ratio = scale(x) / scale(y);
    const auto m = ops::make_multiplier(ratio);
    std::vector<int64_t> factors{m ? m->factor : 0}, shifts{m ? m->shift : 1};
    Attributes attributes;
    if (!m || !set_slopes(attributes, ratio, {1.0}, slopes->values, factors, shifts))
      return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
    attributes.set("x_zero_point", zero(x));
    attributes.set("axis", slopes->axis);
    set_stage(attributes, plain_target(y), std::move(factors), std::move(shifts), {});
    add(n, "int:PRelu", {integer(x)}, std::move(attributes));
    return std::string();
  }

  Result<std::string> lower_move(const Node& n) {
    if (n.op == "Identity" && !parameters(n.input(0))) {
      const TensorId y = n.output();
      versions_[index_of(y)].integer = convert("QuantizeLinear", y, real(n.input(0)), in_.tensor(y).name, true);
      return std::string();
    }
    std::vector<TensorId> inputs{integer(n.input(0))};
    for (size_t i = 1; i < n.own_input_count(); ++i) inputs.push_back(real(n.inputs[i]));
    if (n.op == "Pad" && n.attributes.string_or("mode", "constant") == "constant") {
      inputs.resize(std::max<size_t>(inputs.size(), 3));
      const int64_t fill = pads_below_all(in_, n) ? limits(n.input(0)).low : zero(n.input(0));
      inputs[2] = constant(n.name + "/fill", integer_tensor(type(n.input(0)), {}, {fill}));
    }
    add(n, n.op, std::move(inputs), n.attributes);
    return std::string();
  }

  // Operands in other parameters than the result's are brought to them first.
  Result<std::string> lower_concat(const Node& n) {
    const TensorId y = n.output();
    std::vector<TensorId> inputs;
    for (TensorId t : n.inputs) {
      if (const TensorData* value = in_.constant(t)) {
        inputs.push_back(constant(in_.tensor(t).name + "_" + std::string(dtype_name(type(y))),
                                  integers(y, value->dims(), to_doubles(value->view()))));
        continue;
      }
      const TensorId made = integer(t);
      if (scale(t) == scale(y) && zero(t) == zero(y) && type(t) == type(y)) {
        inputs.push_back(made);
        continue;
      }
      ORKNN_TRY_ASSIGN(const TensorId table, table_of(Functions(ops_, {}, {}), t, y, in_.tensor(t).name + "/rescale"));
      Node rescale;
      rescale.op = "int:Table";
      rescale.name = in_.tensor(t).name + "_rescaled";
      rescale.inputs = {made, table};
      rescale.outputs = {declare(t, rescale.name, true)};
      out_.tensor(rescale.outputs[0]).dtype = type(y);
      out_.tensor(rescale.outputs[0]).quant = parameters(y);
      rescale.origin = n.origin;
      inputs.push_back(rescale.outputs[0]);
      out_.add_node(std::move(rescale));
    }
    add(n, "Concat", std::move(inputs), n.attributes);
    return std::string();
  }

  // --- means
  Result<std::string> lower_average(const Node& n) {
    const TensorId x = n.input(0), y = n.output();
    int64_t taps = 1;
    for (int64_t k : n.attributes.ints_or("kernel_shape")) taps *= k;
    if (taps < 1 || taps > 1 << 14) return std::string("its window is too large");
    // One multiplier per number of values a window can hold.
    std::vector<int64_t> factors, shifts;
    for (int64_t count = 1; count <= taps; ++count) {
      const auto m = ops::make_multiplier(scale(x) / (scale(y) * static_cast<double>(count)));
      if (!m) return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
      factors.push_back(m->factor);
      shifts.push_back(m->shift);
    }
    Attributes attributes = n.attributes;
    attributes.set("x_zero_point", zero(x));
    set_stage(attributes, plain_target(y), std::move(factors), std::move(shifts), {});
    add(n, "int:AveragePool", {integer(x)}, std::move(attributes));
    return std::string();
  }

  Result<std::string> lower_mean(const Node& n) {
    const TensorId x = n.input(0), y = n.output();
    const auto axes = mean_axes(in_, n);
    const auto dims = to_dims(*in_.tensor(x).shape);
    int64_t count = 1;
    for (int64_t i = axes->first; i < axes->end; ++i) count *= (*dims)[static_cast<size_t>(i)];
    const auto m = ops::make_multiplier(scale(x) / (scale(y) * static_cast<double>(count)));
    if (!m) return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
    Attributes attributes;
    attributes.set("x_zero_point", zero(x));
    attributes.set("first_axis", axes->first);
    attributes.set("end_axis", axes->end);
    set_stage(attributes, plain_target(y), {m->factor}, {m->shift}, {n.op});
    const bool keeps = n.op == "GlobalAveragePool" || n.attributes.int_or("keepdims", 1) != 0;
    const TensorId data = integer(x);
    if (keeps) {
      add(n, "int:ReduceMean", {data}, std::move(attributes));
      return std::string();
    }
    Node mean;
    mean.op = "int:ReduceMean";
    mean.name = n.name + "/mean";
    mean.inputs = {data};
    mean.attributes = std::move(attributes);
    mean.origin = n.origin;
    Shape kept = *in_.tensor(x).shape;
    for (int64_t i = axes->first; i < axes->end; ++i) kept[static_cast<size_t>(i)] = Dim(1);
    const TensorId middle = out_.add_tensor(mean.name, type(y), kept);
    out_.tensor(middle).quant = parameters(y);
    mean.outputs = {middle};
    out_.add_node(std::move(mean));
    std::vector<int64_t> removed;
    for (int64_t i = axes->first; i < axes->end; ++i) removed.push_back(i);
    add(n, "Squeeze", {middle, constant(n.name + "/axes", TensorData::vector(removed))}, {});
    return std::string();
  }

  // Where the results of one axis lie: the operator itself tells it when it interpolates the positions.
  Result<TensorData> places(const Node& n, const AxisResize& axis, int64_t one) const {
    std::vector<double> positions(static_cast<size_t>(axis.from));
    for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<double>(i);
    Attributes attributes = n.attributes;
    attributes.set("axes", std::vector<int64_t>{0});
    Node plain = Functions::plain("Resize", std::move(attributes), 4);
    plain.inputs[1] = TensorId{};
    plain.inputs[axis.scale != 0 ? 3 : 2] = TensorId{};
    std::vector<TensorData> inputs(4);
    inputs[0] = TensorData::from<double>({axis.from}, positions);
    if (axis.scale != 0)
      inputs[2] = TensorData::from<float>({1}, std::vector<float>{static_cast<float>(axis.scale)});
    else
      inputs[3] = TensorData::vector(std::vector<int64_t>{axis.to});
    ORKNN_TRY_ASSIGN(const auto results, ops::eval_node(plain, ops_, inputs));
    const std::vector<double> at = to_doubles(results[0].view());
    std::vector<int32_t> pairs;
    for (double v : at) {
      auto position = static_cast<int32_t>(std::floor(v));
      auto share = static_cast<int32_t>(std::nearbyint((v - position) * static_cast<double>(one)));
      if (share == one) {
        ++position;
        share = 0;
      }
      pairs.insert(pairs.end(), {position, share});
    }
    return TensorData::from<int32_t>({static_cast<int64_t>(at.size()), 2}, pairs);
  }

  Result<std::string> lower_resize(const Node& n) {
    const TensorId x = n.input(0), y = n.output();
    const auto axes = linear_resize(in_, n);
    const int64_t bits = ops::resize_bits(type(x));
    auto m = ops::make_multiplier(scale(x) / (scale(y) * std::ldexp(1.0, static_cast<int>(2 * bits))));
    if (!m) return "the scale of '" + in_.tensor(y).name + "' is too small for its inputs";
    ORKNN_TRY_ASSIGN(TensorData rows, places(n, (*axes)[axes->size() - 2], int64_t{1} << bits));
    ORKNN_TRY_ASSIGN(TensorData columns, places(n, axes->back(), int64_t{1} << bits));
    Attributes attributes;
    attributes.set("x_zero_point", zero(x));
    set_stage(attributes, plain_target(y), {m->factor}, {m->shift}, {});
    const TensorId data = integer(x);
    add(n, "int:Resize", {data, constant(n.name + "/rows", std::move(rows)), constant(n.name + "/columns", std::move(columns))},
        std::move(attributes));
    return std::string();
  }

  Result<std::string> lower_softmax(const Node& n) {
    const TensorId x = n.input(0);
    if (type(n.output()) != type(x)) return std::string("its result has another type than its data");
    const int64_t entries = ops::softmax_entries(type(x));
    TensorData table = TensorData::allocate(DType::Int32, {entries});
    auto* to = static_cast<int32_t*>(table.mutable_data());
    for (int64_t i = 0; i < entries; ++i)
      to[i] = static_cast<int32_t>(std::nearbyint(std::exp(-static_cast<double>(i) * scale(x)) * 16777216.0));
    Attributes attributes;
    attributes.set("axis", n.attributes.int_or("axis", -1));
    attributes.set("y_zero_point", zero(n.output()));
    const double factor = std::nearbyint(256 / scale(n.output()));
    if (!(factor >= 1 && factor <= ops::kMaxSoftmaxFactor))
      return "the scale of '" + in_.tensor(n.output()).name + "' is out of range";
    attributes.set("y_factor", static_cast<int64_t>(factor));
    add(n, "int:Softmax", {integer(x), constant(n.name + "/powers", std::move(table))}, std::move(attributes));
    return std::string();
  }

  const Graph& in_;
  Graph out_;
  const OpSet& ops_;
  Assignment& assignment_;
  const QuantizeOptions& options_;
  const TensorStatistics& statistics_;
  std::vector<Versions> versions_;
};
}  // namespace

Result<Graph> make_integer_graph(const Graph& graph, const OpSet& ops, Assignment& assignment, const QuantizeOptions& options,
                                 const TensorStatistics& statistics) {
  return Lowering(graph, ops, assignment, options, statistics).run();
}

std::vector<LayerDecision> describe(const Graph& graph, const Assignment& assignment) {
  std::vector<LayerDecision> decisions;
  for (NodeId id : graph.order()) {
    const Node& n = graph.node(id);
    const LayerForm& form = assignment.forms[static_cast<size_t>(id.index)];
    decisions.push_back({n.name, n.type_name(), n.output() ? graph.tensor(n.output()).name : "", form.form != Form::Float,
                         form.reason, form.notable});
  }
  return decisions;
}

}  // namespace orknn::quantize
