#include "quantize/equalize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/files.h"
#include "base/threads.h"
#include "ir/known_dims.h"
#include "ops/facts.h"
#include "quantize/channel_weights.h"
#include "quantize/kept_channels.h"
#include "quantize/layer_forms.h"
#include "quantize/wide.h"

namespace orknn::quantize {
using namespace ir;
namespace {

// Channels keep this much room above what the samples showed: few samples show less than the largest value of a channel.
constexpr double kHeadroom = 1.25;
constexpr double kMaxFactor = 64;
// Strengths tried: 0 leaves everything, 1 lets every channel fill its tensor's range.
constexpr std::array kStrengths = {0.0, 0.25, 0.5, 0.75, 1.0};
using ByStrength = std::array<double, kStrengths.size()>;

// Of a row of weights: adds the squares of each column to `squares`, and finds the size of its largest.
ORKNN_WIDE void look_at_row(const float* weights, int64_t columns, int64_t taps, double* squares, float* largest) {
  if (taps == 1) {
    for (int64_t c = 0; c < columns; ++c) {
      squares[c] += static_cast<double>(weights[c]) * static_cast<double>(weights[c]);
      largest[c] = std::abs(weights[c]);
    }
    return;
  }
  for (int64_t c = 0; c < columns; ++c) {
    double sum = squares[c];
    float most = 0;
    for (int64_t t = 0; t < taps; ++t) {
      const float w = weights[c * taps + t], size = std::abs(w);
      sum += static_cast<double>(w) * static_cast<double>(w);
      most = size > most ? size : most;
    }
    squares[c] = sum;
    largest[c] = most;
  }
}

// Of numbers that are not negative; in lanes, which the compiler puts into registers.
ORKNN_WIDE float largest_product(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<float, kLanes> most{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) {
      const float v = a[i + k] * b[i + k];
      most[static_cast<size_t>(k)] = v > most[static_cast<size_t>(k)] ? v : most[static_cast<size_t>(k)];
    }
  for (; i < count; ++i) most[0] = std::max(most[0], a[i] * b[i]);
  return *std::max_element(most.begin(), most.end());
}

ORKNN_WIDE void keep_larger(const float* a, float factor, int64_t count, float* most) {
  for (int64_t i = 0; i < count; ++i) {
    const float v = a[i] * factor;
    most[i] = v > most[i] ? v : most[i];
  }
}

ORKNN_WIDE void multiply_and_divide(const float* from, double by, const double* divided_by, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(static_cast<double>(from[i]) * by / divided_by[i]);
}
ORKNN_WIDE void multiply_and_divide(const float* from, const double* by, double divided_by, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(static_cast<double>(from[i]) * by[i] / divided_by);
}

class Equalizer {
 public:
  Equalizer(const Graph& graph, TensorStatistics& statistics) : graph_(graph), statistics_(statistics) {}

  Equalization run() {
    declare();
    for (NodeId id : graph_.order()) connect(graph_.node(id));
    for (TensorId t : graph_.inputs()) freeze(t);
    for (TensorId t : graph_.outputs()) freeze(t);
    flatten();
    measure();
    choose();
    Equalization result{rescaled(), std::move(remarks_)};
    rescale_statistics();
    return result;
  }

 private:
  // A variable is one channel of one tensor; tied ones share a factor.
  struct Channels {
    int32_t first = 0, count = 0;
  };
  Channels channels(TensorId t) const { return t ? channels_[static_cast<size_t>(t.index)] : Channels{}; }

  void declare() {
    channels_.resize(graph_.tensor_count());
    int32_t total = 0;
    for (size_t i = 0; i < channels_.size(); ++i) {
      const TensorId t{static_cast<int32_t>(i)};
      const Tensor& tensor = graph_.tensor(t);
      const auto dims = dims_of(graph_, t);
      if (tensor.is_constant() || tensor.dtype != DType::Float32 || !dims || dims->size() < 2 || (*dims)[1] < 1 ||
          (*dims)[1] > 8192)
        continue;
      channels_[i] = {total, static_cast<int32_t>((*dims)[1])};
      total += channels_[i].count;
    }
    parent_.resize(static_cast<size_t>(total));
    std::iota(parent_.begin(), parent_.end(), 0);
    frozen_.assign(parent_.size(), 0);
    group_.resize(channels_.size());
    std::iota(group_.begin(), group_.end(), 0);
  }

  static int32_t root(std::vector<int32_t>& parents, int32_t v) {
    while (parents[static_cast<size_t>(v)] != v) {
      auto& p = parents[static_cast<size_t>(v)];
      p = parents[static_cast<size_t>(p)];
      v = p;
    }
    return v;
  }
  int32_t root(int32_t v) { return root(parent_, v); }
  void tie_variables(int32_t a, int32_t b) {
    a = root(a);
    b = root(b);
    if (a == b) return;
    if (b < a) std::swap(a, b);
    parent_[static_cast<size_t>(b)] = a;
    frozen_[static_cast<size_t>(a)] |= frozen_[static_cast<size_t>(b)];
  }
  // All ties are known: every variable and tensor names its root, and looking it up changes nothing any more.
  void flatten() {
    for (size_t i = 0; i < parent_.size(); ++i) parent_[i] = root(static_cast<int32_t>(i));
    for (size_t i = 0; i < group_.size(); ++i) group_[i] = root(group_, static_cast<int32_t>(i));
  }
  void freeze(TensorId t) {
    const Channels c = channels(t);
    for (int32_t i = 0; i < c.count; ++i) frozen_[static_cast<size_t>(root(c.first + i))] = 1;
  }
  void freeze(const Node& n) {
    for (TensorId t : n.inputs) freeze(t);
    for (TensorId t : n.outputs) freeze(t);
  }
  // Channels [from, from + count) of a go with [to, to + count) of b.
  void tie(TensorId a, int32_t from, TensorId b, int32_t to, int32_t count) {
    for (int32_t i = 0; i < count; ++i) tie_variables(channels(a).first + from + i, channels(b).first + to + i);
    const int32_t ga = root(group_, a.index), gb = root(group_, b.index);
    if (ga != gb) group_[static_cast<size_t>(std::max(ga, gb))] = std::min(ga, gb);
  }
  void tie(TensorId a, TensorId b) {
    if (channels(a).count != channels(b).count || channels(a).count == 0) {
      freeze(a);
      freeze(b);
      return;
    }
    tie(a, 0, b, 0, channels(a).count);
  }

  // --- what each operator does with a factor per channel
  // The channels of a MatMul are its last axis, whatever its rank.
  static bool is_product(const Node& n) { return ops::facts_of(n).weights != Weights::None && n.op != "MatMul"; }

  bool takes_factors(const Node& n) const {
    const TensorData* w = graph_.constant(n.input(1));
    if (!is_product(n) || !w || w->dtype() != DType::Float32 || w->dims().size() < 2) return false;
    if (n.has_input(2) && (!graph_.is_constant(n.input(2)) || graph_.tensor(n.input(2)).dtype != DType::Float32)) return false;
    const Weights order = ops::facts_of(n).weights;
    if (order == Weights::Matrix && (n.attributes.int_or("transA", 0) != 0 || w->dims().size() != 2)) return false;
    const Channels x = channels(n.input(0)), y = channels(n.output());
    if (x.count == 0 || y.count == 0 || n.outputs.size() != 1) return false;
    if (n.has_input(2)) {
      const int64_t bias = graph_.tensor(n.input(2)).constant.count();
      if (bias != 1 && bias != y.count) return false;
    }
    const Dims& d = w->dims();
    const int64_t group = n.attributes.int_or("group", 1);
    if (order == Weights::Matrix)
      return n.attributes.int_or("transB", 0) != 0 ? d[0] == y.count && d[1] == x.count : d[1] == y.count && d[0] == x.count;
    return order == Weights::OutIn ? d[0] == y.count && d[1] * group == x.count : d[0] == x.count && d[1] * group == y.count;
  }

  static bool bounds_follow(double low) { return low == 0 || low == -INFINITY; }

  // Constant operands of a node that is a function of input 0.
  bool function_follows(const Node& n) const {
    if (ops::facts_of(n).scales_through) return n.own_input_count() < 2 || !n.has_input(1) || graph_.is_constant(n.input(1));
    if (ops::facts_of(n).bounds != Bounds::Given) return false;
    double low = -INFINITY;
    if (n.has_input(1)) {
      const TensorData* value = graph_.constant(n.input(1));
      if (!value || value->count() != 1) return false;
      low = to_doubles(value->view())[0];
    }
    return bounds_follow(low);
  }
  static bool step_follows(const TailStep& s) {
    if (s.operand >= 0) return false;
    const auto bounds = bounds_of(s);
    return ops::facts_of(s.op).scales_through || (bounds && bounds_follow(bounds->low));
  }

  void connect_tail(const Node& n) {
    for (const TailStep& s : n.tail) {
      const OpDef& facts = ops::facts_of(s.op);
      if (facts.arithmetic == Arithmetic::Add && s.operand >= 0 &&
          same_shape(n.output(), n.inputs[static_cast<size_t>(s.operand)])) {
        tie(n.output(), n.inputs[static_cast<size_t>(s.operand)]);
      } else if (facts.quant == QuantRule::Slopes && s.operand >= 0 &&
                 graph_.is_constant(n.inputs[static_cast<size_t>(s.operand)])) {
        continue;
      } else if (!step_follows(s)) {
        freeze(n.output());
        if (s.operand >= 0) freeze(n.inputs[static_cast<size_t>(s.operand)]);
      }
    }
  }

  bool same_shape(TensorId a, TensorId b) const {
    const auto x = dims_of(graph_, a), y = dims_of(graph_, b);
    return x && y && *x == *y;
  }

  // A result within [-1, 1] that multiplies features: the features' channels go through.
  bool is_gate(TensorId t) const {
    const Node* p = graph_.producer_node(t);
    if (!p) return false;
    const std::string_view last = p->tail.empty() ? std::string_view(p->op) : std::string_view(p->tail.back().op);
    return has_unit_range(last) || has_symmetric_range(last);
  }

  void connect_binary(const Node& n) {
    const TensorId a = n.input(0), b = n.input(1), y = n.output();
    const bool product = multiplies_or_divides(n), multiplies = ops::facts_of(n).arithmetic == Arithmetic::Mul;
    if (multiplies && graph_.is_constant(a) && same_shape(b, y)) return tie(b, y);
    if (product && graph_.is_constant(b) && same_shape(a, y)) return tie(a, y);
    if (multiplies && is_gate(b) && same_shape(a, y)) {
      freeze(b);
      return tie(a, y);
    }
    if (multiplies && is_gate(a) && same_shape(b, y)) {
      freeze(a);
      return tie(b, y);
    }
    if (product || !same_shape(a, y) || !same_shape(b, y)) return freeze(n);
    tie(a, y);
    tie(b, y);
  }

  void connect_concat(const Node& n) {
    const auto y = dims_of(graph_, n.output());
    if (!y) return freeze(n);
    const auto axis = normalize_axis(n.attributes.int_or("axis", 0), static_cast<int64_t>(y->size()));
    if (!axis || *axis == 0) return freeze(n);
    int32_t at = 0;
    for (TensorId t : n.inputs) {
      const Channels c = channels(t);
      const int32_t from = *axis == 1 ? at : 0;
      if (c.count == 0 || from + c.count > channels(n.output()).count) {
        // A constant among the operands: its channels stay as they are.
        const auto dims = dims_of(graph_, t);
        if (*axis != 1 || !graph_.is_constant(t) || !dims || dims->size() != y->size()) return freeze(n);
        const auto extent = static_cast<int32_t>((*dims)[1]);
        for (int32_t i = 0; i < extent && at + i < channels(n.output()).count; ++i)
          frozen_[static_cast<size_t>(root(channels(n.output()).first + at + i))] = 1;
        at += extent;
        continue;
      }
      tie(t, 0, n.output(), from, c.count);
      at += c.count;
    }
  }

  void connect_split(const Node& n) {
    const auto x = dims_of(graph_, n.input(0));
    if (!x) return freeze(n);
    const auto axis = normalize_axis(n.attributes.int_or("axis", 0), static_cast<int64_t>(x->size()));
    if (!axis || *axis != 1) return freeze(n);
    int32_t at = 0;
    for (TensorId t : n.outputs) {
      if (!t || channels(t).count == 0 || at + channels(t).count > channels(n.input(0)).count) return freeze(n);
      tie(n.input(0), at, t, 0, channels(t).count);
      at += channels(t).count;
    }
  }

  void connect(const Node& n) {
    connect_tail(n);
    if (is_product(n)) {
      if (!takes_factors(n)) freeze(n);
    } else if (ops::facts_of(n).arithmetic != Arithmetic::None) {
      n.own_input_count() == 2 ? connect_binary(n) : freeze(n);
    } else if (ops::facts_of(n).parts == Parts::Joined) {
      connect_concat(n);
    } else if (ops::facts_of(n).parts == Parts::Divided) {
      connect_split(n);
    } else if (function_follows(n) || keeps_channels(graph_, n)) {
      tie(n.input(0), n.output());
    } else {
      freeze(n);
    }
  }

  // --- how far each channel may go
  const Statistics* seen(TensorId t) const {
    const auto it = statistics_.find(graph_.tensor(t).name);
    return it == statistics_.end() || it->second.empty() ? nullptr : &it->second;
  }

  void measure() {
    room_.assign(parent_.size(), INFINITY);
    for (size_t i = 0; i < channels_.size(); ++i) {
      const TensorId t{static_cast<int32_t>(i)};
      const Channels c = channels_[i];
      if (c.count == 0) continue;
      const Statistics* s = seen(t);
      if (!s || s->channels().size() != static_cast<size_t>(c.count) || s->not_finite() > 0) {
        freeze(t);
        continue;
      }
      for (int32_t k = 0; k < c.count; ++k) {
        const ChannelStatistics& own = s->channels()[static_cast<size_t>(k)];
        double& room = room_[static_cast<size_t>(root(c.first + k))];
        if (own.max > 0) room = std::min(room, static_cast<double>(s->max()) / own.max);
        if (own.min < 0) room = std::min(room, static_cast<double>(s->min()) / own.min);
      }
    }
  }

  double factor(int32_t variable, double strength) const {
    const auto r = static_cast<size_t>(parent_[static_cast<size_t>(variable)]);
    if (frozen_[r] || !(room_[r] > kHeadroom) || !std::isfinite(room_[r])) return 1;
    return std::min(std::pow(room_[r] / kHeadroom, strength), kMaxFactor);
  }

  // Predicted rounding noise after a layer relative to its result, with its input's channels raised with each strength.
  ByStrength noise(const Node& n) const {
    const Statistics &in = *seen(n.input(0)), &out = *seen(n.output());
    const Channels inputs = channels(n.input(0));
    const TensorData& w = *graph_.constant(n.input(1));
    const WeightGrid grid(n, w.dims());
    const auto input_count = static_cast<size_t>(inputs.count), outputs = static_cast<size_t>(channels(n.output()).count);
    const auto groups = static_cast<size_t>(std::max<int64_t>(n.attributes.int_or("group", 1), 1));
    const size_t group_inputs = std::max<size_t>(input_count / groups, 1), group_outputs = std::max<size_t>(outputs / groups, 1);
    std::array<std::vector<double>, kStrengths.size()> raised_by;
    std::array<std::vector<float>, kStrengths.size()> divided_by, most;  // most: by output channel, the largest divided weight
    for (size_t s = 0; s < kStrengths.size(); ++s) {
      most[s].assign(outputs, 0);
      for (int32_t c = 0; c < inputs.count; ++c) {
        raised_by[s].push_back(factor(inputs.first + c, kStrengths[s]));
        divided_by[s].push_back(static_cast<float>(1 / raised_by[s].back()));
      }
    }
    std::vector<double> squares(input_count, 0);  // by input channel: sum over its weights
    std::vector<float> largest(static_cast<size_t>(grid.columns));
    std::vector<double> unread(largest.size(), 0);
    for (int64_t row = 0; row < grid.rows; ++row) {
      const auto first = static_cast<size_t>(grid.first_column(row)), r = static_cast<size_t>(row);
      const float* weights = w.as<float>() + row * grid.columns * grid.taps;
      if (grid.rows_are_outputs) {
        look_at_row(weights, grid.columns, grid.taps, squares.data() + first, largest.data());
        for (size_t s = 0; s < kStrengths.size(); ++s)
          most[s][r] = largest_product(largest.data(), divided_by[s].data() + first, grid.columns);
      } else {
        for (int64_t i = 0; i < grid.columns * grid.taps; ++i) squares[r] += static_cast<double>(weights[i]) * weights[i];
        look_at_row(weights, grid.columns, grid.taps, unread.data(), largest.data());
        for (size_t s = 0; s < kStrengths.size(); ++s)
          keep_larger(largest.data(), divided_by[s][r], grid.columns, most[s].data() + first);
      }
    }
    double signal = 0;
    for (const ChannelStatistics& c : out.channels()) signal += c.mean_square();
    const double step = (std::max(static_cast<double>(in.max()), 0.0) - std::min(static_cast<double>(in.min()), 0.0)) / 255;
    ByStrength result{};
    for (size_t s = 0; s < kStrengths.size(); ++s) {
      std::vector<double> power(input_count / group_inputs, 0);  // by group
      double activations = 0, rounded_weights = 0;
      for (size_t c = 0; c < input_count; ++c) {
        const double k = raised_by[s][c];
        activations += squares[c] / (k * k);
        power[c / group_inputs] += static_cast<double>(grid.taps) * k * k * in.channels()[c].mean_square();
      }
      for (size_t o = 0; o < outputs; ++o) {
        const double size = most[s][o];
        rounded_weights += size * size / (127.0 * 127.0) * power[o / group_outputs];
      }
      result[s] = (activations * step * step + rounded_weights) / std::max(signal, 1e-30);
    }
    return result;
  }

  void choose() {
    std::vector<std::vector<NodeId>> readers(channels_.size());
    std::vector<size_t> groups;  // those that have some
    for (NodeId id : graph_.order()) {
      const Node& n = graph_.node(id);
      if (!takes_factors(n) || !seen(n.input(0)) || !seen(n.output()) || seen(n.input(0))->channels().empty()) continue;
      const auto g = static_cast<size_t>(group_[static_cast<size_t>(n.input(0).index)]);
      if (readers[g].empty()) groups.push_back(g);
      readers[g].push_back(id);
    }
    std::ranges::sort(groups);
    std::vector<ByStrength> noise_of(groups.size());
    ThreadPool::shared().parallel_for(static_cast<int64_t>(groups.size()), 1, [&](int64_t begin, int64_t end) {
      for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
        for (NodeId id : readers[groups[i]]) {
          const ByStrength of_layer = noise(graph_.node(id));
          for (size_t s = 0; s < of_layer.size(); ++s) noise_of[i][s] += of_layer[s];
        }
    });
    strength_.assign(channels_.size(), 0);
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto least = static_cast<size_t>(std::ranges::min_element(noise_of[i]) - noise_of[i].begin());
      const double strength = strength_[groups[i]] = kStrengths[least];
      if (strength > 0)
        remarks_.push_back("channels of '" + graph_.tensor(graph_.node(readers[groups[i]][0]).input(0)).name +
                           "' are equalized, strength " + std::to_string(strength).substr(0, 4) + ", predicted noise " +
                           std::to_string(std::sqrt(noise_of[i][least] / noise_of[i][0])).substr(0, 5) + " of what it was");
    }
  }

  // --- the graph with the factors in it
  std::vector<double> factors(TensorId t) {
    std::vector<double> list;
    const double strength = strength_[static_cast<size_t>(group_[static_cast<size_t>(t.index)])];
    for (int32_t i = 0; i < channels(t).count; ++i) list.push_back(strength > 0 ? factor(channels(t).first + i, strength) : 1);
    return list;
  }
  static bool neutral(std::span<const double> list) {
    return std::all_of(list.begin(), list.end(), [](double v) { return v == 1; });
  }

  Patch rescaled() {
    Patch patch(graph_);
    for (NodeId id : graph_.order()) {
      if (!takes_factors(graph_.node(id))) continue;
      Node n = graph_.node(id);
      const std::vector<double> in = factors(n.input(0)), out = factors(n.output());
      if (neutral(in) && neutral(out)) continue;
      const TensorId weights = n.input(1), bias = n.input(2);
      n.inputs[1] = patch.add_constant(graph_.tensor(weights).name + "/equalized", rescaled_weights(n, in, out));
      if (n.has_input(2) && !neutral(out))
        n.inputs[2] = patch.add_constant(graph_.tensor(bias).name + "/equalized", rescaled_bias(*graph_.constant(bias), out));
      patch.replace_node(id, std::move(n));
    }
    return patch;
  }

  TensorData rescaled_weights(const Node& n, std::span<const double> in, std::span<const double> out) const {
    const TensorData& w = *graph_.constant(n.input(1));
    TensorData scaled = TensorData::allocate(DType::Float32, w.dims());
    const WeightGrid grid(n, w.dims());
    const std::span<const double> of_rows = grid.rows_are_outputs ? out : in, of_columns = grid.rows_are_outputs ? in : out;
    const int64_t row_weights = grid.columns * grid.taps,
                  grain = std::max<int64_t>(1, (1 << 15) / std::max<int64_t>(row_weights, 1));
    ThreadPool::shared().parallel_for(grid.rows, grain, [&](int64_t begin, int64_t end) {
      std::vector<double> line;  // the factors of the columns, each for all its taps
      int64_t line_is_from = -1;
      for (int64_t row = begin; row < end; ++row) {
        if (const int64_t first = grid.first_column(row); first != line_is_from) {
          line.clear();
          for (int64_t c = first; c < first + grid.columns; ++c)
            line.insert(line.end(), static_cast<size_t>(grid.taps), of_columns[static_cast<size_t>(c)]);
          line_is_from = first;
        }
        const float* from = w.as<float>() + row * row_weights;
        float* to = static_cast<float*>(scaled.mutable_data()) + row * row_weights;
        const double of_row = of_rows[static_cast<size_t>(row)];
        if (grid.rows_are_outputs)
          multiply_and_divide(from, of_row, line.data(), row_weights, to);
        else
          multiply_and_divide(from, line.data(), of_row, row_weights, to);
      }
    });
    release_mapped_pages({static_cast<const std::byte*>(w.data()), w.bytes()});  // rarely looked at again
    return scaled;
  }

  static TensorData rescaled_bias(const TensorData& bias, std::span<const double> out) {
    TensorData scaled = TensorData::allocate(DType::Float32, {static_cast<int64_t>(out.size())});
    auto* to = static_cast<float*>(scaled.mutable_data());
    for (size_t i = 0; i < out.size(); ++i) to[i] = static_cast<float>(bias.as<float>()[bias.count() == 1 ? 0 : i] * out[i]);
    return scaled;
  }

  void rescale_statistics() {
    for (size_t i = 0; i < channels_.size(); ++i) {
      if (channels_[i].count == 0) continue;
      const TensorId t{static_cast<int32_t>(i)};
      const std::vector<double> list = factors(t);
      if (const auto it = statistics_.find(graph_.tensor(t).name); it != statistics_.end() && !neutral(list))
        it->second.scale_channels(list);
    }
  }

  const Graph& graph_;
  TensorStatistics& statistics_;
  std::vector<Channels> channels_;  // by tensor
  std::vector<int32_t> parent_;     // of variables
  std::vector<char> frozen_;        // by root variable
  std::vector<int32_t> group_;      // of tensors tied by any channel
  std::vector<double> room_;        // by root variable: how much it may be raised
  std::vector<double> strength_;    // by root of groups
  std::vector<std::string> remarks_;
};
}  // namespace

Equalization equalize_channels(const Graph& graph, TensorStatistics& statistics) { return Equalizer(graph, statistics).run(); }

}  // namespace orknn::quantize
