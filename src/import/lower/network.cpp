#include "import/lower/network.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "base/nearest_name.h"
#include "import/lower/near_normal.h"
#include "ir/infer.h"
#include "ir/verify.h"

namespace orknn::importer {
using namespace ir;

namespace {
// A model of nothing but unknown operators is reported in this many lines.
constexpr size_t kMaxReported = 100;
// No network is fed more; beyond that a size is taken for a mistake.
constexpr int64_t kMaxInputElements = int64_t{1} << 34;
constexpr int64_t kMaxInvented = int64_t{1} << 29;
// Toolkit1's scripts leave the batch out. A size that begins with 1 where the model has more is one that lacks another extent.
bool is_without_batch(const Dims& size, const Shape& shape) {
  if (shape.size() != size.size() + 1) return false;
  return size.empty() || size[0] != 1 || !shape[1].is_known() || shape[1].value() == 1;
}
}  // namespace

Result<LayerPlan> plan_layers(std::span<const LayerNames> layers, std::span<const std::string_view> outputs,
                              const std::unordered_set<std::string_view>& stops) {
  std::unordered_map<std::string_view, size_t> producer;
  for (size_t i = 0; i < layers.size(); ++i)
    for (std::string_view name : layers[i].writes)
      if (!name.empty() && !producer.emplace(name, i).second && !stops.contains(name))
        return invalid_model("tensor '" + std::string(name) + "' is produced twice");

  LayerPlan result;
  std::vector<char> needed(layers.size(), 0);
  std::vector<std::vector<size_t>> readers(layers.size());
  std::vector<size_t> waiting(layers.size(), 0), pending;
  const auto need = [&](std::string_view name) -> std::optional<size_t> {
    result.read.insert(name);
    const auto it = stops.contains(name) ? producer.end() : producer.find(name);
    if (it == producer.end()) return std::nullopt;
    if (!needed[it->second]) {
      needed[it->second] = 1;
      pending.push_back(it->second);
    }
    return it->second;
  };
  for (std::string_view name : outputs)
    if (!name.empty()) need(name);
  size_t count = 0;
  while (!pending.empty()) {
    const size_t i = pending.back();
    pending.pop_back();
    ++count;
    for (std::string_view name : layers[i].reads) {
      if (name.empty()) continue;
      if (const auto source = need(name)) {
        readers[*source].push_back(i);
        ++waiting[i];
      }
    }
  }
  // Kahn's algorithm, the earliest in the file first.
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < layers.size(); ++i)
    if (needed[i] && waiting[i] == 0) ready.push(i);
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    result.layers.push_back(i);
    for (size_t reader : readers[i])
      if (--waiting[reader] == 0) ready.push(reader);
  }
  if (result.layers.size() != count) {
    // Going backwards through layers that still wait ends on a cycle, after as many steps as there are layers at the latest.
    size_t i =
        static_cast<size_t>(std::find_if(waiting.begin(), waiting.end(), [](size_t n) { return n > 0; }) - waiting.begin());
    for (size_t step = 0; step < layers.size(); ++step)
      for (std::string_view name : layers[i].reads)
        if (const auto it = producer.find(name); it != producer.end() && !stops.contains(name) && waiting[it->second] > 0) {
          i = it->second;
          break;
        }
    const auto name =
        std::find_if(layers[i].writes.begin(), layers[i].writes.end(), [](std::string_view n) { return !n.empty(); });
    return invalid_model("the graph has a cycle: tensor '" +
                         (name == layers[i].writes.end() ? std::string() : std::string(*name)) + "' depends on itself");
  }
  return result;
}

Status check_lengths(const ImportOptions& options, size_t inputs, bool may_be_fewer) {
  for (const auto& [given, what] : {std::pair(options.input_size_list.size(), options.sizes_option),
                                    std::pair(options.input_initial_val.size(), std::string("input_initial_val"))})
    if (given > inputs || (given < inputs && given > 0 && !may_be_fewer))
      return invalid_argument(what + " has the wrong length")
          .expected((may_be_fewer ? "at most " : "") + std::to_string(inputs) + " entries, one per input")
          .found(std::to_string(given));
  return {};
}

Result<Symbols> apply_sizes(std::vector<Port>& inputs, const ImportOptions& options) {
  ORKNN_TRY(check_lengths(options, inputs.size(), true));  // of fewer the others stay as the model says
  Symbols symbols;
  for (size_t i = 0; i < options.input_size_list.size(); ++i) {
    Dims size = options.input_size_list[i];
    Port& p = inputs[i];
    for (int64_t extent : size)
      if (extent < -1) return invalid_input_shape(to_shape(size), i).expected("positive extents, -1 for what the model says");
    if (p.shape && size.empty()) continue;                         // no size: what the model says
    if (p.shape && p.shape->empty() && size == Dims{1}) continue;  // NumPy users write scalars as vectors of one
    if (p.shape && is_without_batch(size, *p.shape)) size.insert(size.begin(), 1);
    if (p.shape && !p.shape->empty() && p.shape->size() != size.size())
      return invalid_argument("the shape of input '" + p.name + "' in " + options.sizes_option +
                              " has the wrong number of dimensions")
          .expected(std::to_string(p.shape->size()) + " as in " + ir::to_string(*p.shape))
          .found(ir::to_string(size));
    Shape shape = p.shape && p.shape->size() == size.size() ? *p.shape : Shape(size.size());
    Dims known;
    for (size_t k = 0; k < size.size(); ++k) {
      if (size[k] < 0) continue;
      if (size[k] == 0 && !(shape[k].is_known() && shape[k].value() == 0))
        return invalid_input_shape(to_shape(size), i).expected("positive extents, -1 for what the model says");
      known.push_back(size[k]);
      if (!shape[k].symbol().empty()) symbols.try_emplace(shape[k].symbol(), size[k]);
      shape[k] = Dim(size[k]);
    }
    if (!checked_element_count(known, kMaxInputElements))
      return invalid_input_shape(shape, i).expected("at most " + std::to_string(kMaxInputElements) + " elements");
    p.shape = std::move(shape);
  }
  for (Port& p : inputs) {
    if (!p.shape) continue;
    for (Dim& d : *p.shape)
      if (const auto known = symbols.find(d.symbol()); !d.symbol().empty() && known != symbols.end()) d = Dim(known->second);
  }
  for (size_t i = 0; i < options.input_initial_val.size(); ++i) {
    const TensorData& value = options.input_initial_val[i];
    if (!value.has_value()) continue;
    Port& p = inputs[i];
    p.value = value.dtype() == p.dtype ? value : convert(value.view(), p.dtype);
    if (p.shape && p.shape->empty() && value.count() == 1) p.value = p.value.reshaped({});
    if (p.shape && p.shape->size() != p.value.dims().size())
      return invalid_argument("the value of input '" + p.name + "' in input_initial_val has the wrong number of dimensions")
          .expected(ir::to_string(*p.shape))
          .found(ir::to_string(value.dims()));
  }
  return symbols;
}

Result<LayerPlan> plan_model(std::span<const LayerNames> layers, std::span<const Port> inputs,
                             std::span<const std::string> outputs, const ImportOptions& options) {
  const std::unordered_set<std::string_view> stops(options.inputs.begin(), options.inputs.end());
  const std::vector<std::string_view> wanted(outputs.begin(), outputs.end());
  ORKNN_TRY_ASSIGN(LayerPlan plan, plan_layers(layers, wanted, stops));
  std::unordered_set<std::string_view> known;
  for (const Port& p : inputs) known.insert(p.name);
  for (const LayerNames& names : layers) known.insert(names.writes.begin(), names.writes.end());
  for (const auto& [list, what] : {std::pair(&options.outputs, "outputs"), std::pair(&options.inputs, "inputs")})
    for (const std::string& name : *list)
      if (!known.contains(name)) return no_such_tensor(name, what, *list, known);
  return plan;
}

Result<std::vector<Port>> chosen_inputs(std::vector<Port> inputs, const LayerPlan& plan, const ImportOptions& options) {
  if (!options.inputs.empty()) {
    std::vector<Port> chosen;
    for (const std::string& name : options.inputs) {
      const auto it = std::ranges::find(inputs, name, &Port::name);
      chosen.push_back(it == inputs.end() ? Port{.name = name} : *it);
    }
    for (const Port& p : inputs)
      if (plan.read.contains(p.name) && std::ranges::find(options.inputs, p.name) == options.inputs.end())
        return invalid_argument("the model depends on input '" + p.name + "' too")
            .expected("its name among the inputs")
            .found(quoted_list(options.inputs));
    inputs = std::move(chosen);
  }
  ORKNN_TRY(apply_sizes(inputs, options).status());
  return inputs;
}

std::string quoted_list(std::span<const std::string> names) {
  std::string text;
  for (const std::string& n : names) text += (text.empty() ? "'" : ", '") + n + "'";
  return "[" + text + "]";
}

Status no_such_tensor(const std::string& name, std::string_view list, std::span<const std::string> names,
                      std::span<const std::string_view> known) {
  const std::string meant = did_you_mean(name, known);
  return invalid_argument("the '" + name + "' in " + std::string(list) + "=" + quoted_list(names) + " is invalid!")
      .hint(meant.empty() ? "give names of tensors in the model" : meant);
}

Status invalid_input_shape(const Shape& shape, size_t input) {
  return invalid_argument("Invalid input_shape = " + ir::to_string(shape) + " for input " + std::to_string(input) + "!")
      .hint("give the input shapes with input_size_list");
}

// --- problems

void Problems::add(const Status& problem) {
  if (!told_.insert(problem.to_string()).second) return;
  if (++count_ <= kMaxReported) kept_.also(problem);
}

Status Problems::status() const {
  Status all = kept_;
  if (count_ > kMaxReported) all.also(unsupported("and " + std::to_string(count_ - kMaxReported) + " more problems"));
  return all;
}

// --- names

void Network::add_input(const Port& port) {
  TensorId id;
  if (port.value.has_value()) {
    id = graph.add_constant(port.name, port.value);
  } else {
    id = graph.add_tensor(port.name, port.dtype, port.shape);
    graph.inputs().push_back(id);
  }
  values_[port.name] = id;
  named_.insert(id.index);
}

void Network::bind(const std::string& name, TensorId id, std::string_view layer) {
  if (named_.contains(id.index) && graph.tensor(id).name != name)
    id = Emitter(graph, ops, std::string(layer), {std::string(layer)}).emit("Identity", {id});
  if (graph.tensor(id).name != name) {
    if (const TensorId taken = graph.find_tensor(name))
      graph.rename_tensor(taken, name + "/before");  // an in-place layer: the newest value keeps the name
    graph.rename_tensor(id, name);
  }
  named_.insert(id.index);
  values_[name] = id;
}

TensorId Network::find(std::string_view name) const {
  const auto it = values_.find(std::string(name));
  return it == values_.end() ? TensorId{} : it->second;
}

Result<TensorId> Network::need(std::string_view name) const {
  if (const TensorId id = find(name)) return id;
  return invalid_model("tensor '" + std::string(name) + "' is read but nothing produces it");
}

Result<Graph> Network::finish(std::span<const std::string> outputs) {
  ORKNN_TRY(problems_.status());
  for (const std::string& name : outputs) {
    ORKNN_TRY_ASSIGN(TensorId id, need(name));
    const auto& list = graph.outputs();
    if (graph.is_constant(id) || graph.is_input(id) || std::find(list.begin(), list.end(), id) != list.end()) {
      const TensorId copy = Emitter(graph, ops, name, {name}).emit_kept("Identity", {id});
      if (graph.is_constant(id) && graph.tensor(id).name == name) {  // the output has the name, not where its value is kept
        graph.rename_tensor(id, name + "/value");
        graph.rename_tensor(copy, name);
        values_[name] = copy;
      }
      id = copy;
    }
    graph.outputs().push_back(id);
  }
  std::vector<NodeId> order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const auto& made = graph.node(*it).outputs;
    if (std::none_of(made.begin(), made.end(), [&](TensorId t) { return t && graph.reader_count(t) > 0; }))
      graph.remove_node(*it);
  }
  graph.compact();
  ORKNN_TRY(verify(graph, ops, Stage::Imported));
  // Shapes that contradict each other are reported while the model is loaded, unless an open extent may still decide.
  const bool is_settled = std::all_of(graph.inputs().begin(), graph.inputs().end(),
                                      [&](TensorId t) { return graph.tensor(t).shape && is_static(*graph.tensor(t).shape); });
  if (is_settled) ORKNN_TRY(infer_shapes(graph, ops));
  return std::move(graph);
}

TensorData random_weights(std::string_view name, Dims dims, int64_t fan_in) {
  uint64_t state = 0xcbf29ce484222325u;  // FNV-1a of the name
  for (char c : name) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return near_normal(state, 0, std::sqrt(2.0 / static_cast<double>(std::max<int64_t>(fan_in, 1))), std::move(dims));
}

TensorData filled(std::string_view name, Dims dims, Fill fill, int64_t fan_in) {
  if (fill == Fill::Random) return random_weights(name, std::move(dims), fan_in);
  TensorData value = TensorData::allocate(DType::Float32, std::move(dims));
  std::fill_n(static_cast<float*>(value.mutable_data()), value.count(), fill == Fill::Ones ? 1.0f : 0.0f);
  return value;
}

Status InventedValues::add(std::string_view owner, std::span<const int64_t> dims) {
  const Result<int64_t> count = checked_element_count(dims, kMaxInvented - count_);
  if (!count)
    return invalid_model("the values of '" + std::string(owner) + "' are too many to be made up")
        .expected("at most " + std::to_string(kMaxInvented) + " in all")
        .found(to_string(dims))
        .hint("give the file with the weights");
  count_ += *count;
  return {};
}

}  // namespace orknn::importer
