// Recurrent layers: LSTM, GRU and simple ones over sequences of vectors, ConvLSTM over sequences of pictures, in one direction or
// both, with first states and masks.
#include "import/lower/recurrent.h"

#include <algorithm>

#include "import/keras/layer.h"
#include "import/lower/cumulative.h"
#include "import/lower/one_hot.h"

namespace orknn::importer::keras {
using namespace ir;

namespace {
// One cell that runs over a sequence: where its weights are, and how it runs.
struct Recurrence {
  const Json& config;
  std::string kind;                   // LSTM, GRU, SimpleRNN, ConvLSTM2D, ...
  std::string below;                  // the part of the layer that has the weights
  size_t first = 0;                   // of them, in one list
  bool is_backward = false;           // from the last step to the first; results stay in the order of the steps taken
  std::vector<TensorId> states = {};  // [batch, units] each; none: zeros
};
struct Ran {
  TensorId sequence;  // [batch, time, ...]
  std::vector<TensorId> states;
};

size_t weight_count(const Json& config) { return config["use_bias"].flag(true) ? 3 : 2; }
size_t state_count(std::string_view kind) { return kind == "GRU" || kind == "SimpleRNN" ? 1 : 2; }

// --- activations of cells

struct CellFunction {
  std::string op;
  std::optional<double> alpha = {};  // where the function takes one
};
Result<CellFunction> cell_function(const Layer& l, const Json& stated, const char* usual) {
  const std::string name = stated.string(stated["config"].string(usual));
  if (name == "tanh") return CellFunction{"Tanh"};
  if (name == "sigmoid") return CellFunction{"Sigmoid"};
  if (name == "relu") return CellFunction{"Relu"};
  if (name == "softsign") return CellFunction{"Softsign"};
  if (name == "softplus") return CellFunction{"Softplus"};
  if (name == "elu") return CellFunction{"Elu", 1.0};
  if (name == "hard_sigmoid") return CellFunction{"HardSigmoid", l.generation() >= 3 ? 1.0 / 6 : 0.2};
  return unsupported("a recurrent layer with the activation '" + name + "' is not supported")
      .expected("tanh, sigmoid, relu, softsign, softplus, elu or hard_sigmoid");
}
struct CellFunctions {
  CellFunction gate, content;
};
Result<CellFunctions> functions_of(const Layer& l, const Json& config, const char* usual_gate) {
  CellFunctions f;
  ORKNN_TRY_ASSIGN(f.gate, cell_function(l, config["recurrent_activation"], usual_gate));
  ORKNN_TRY_ASSIGN(f.content, cell_function(l, config["activation"], "tanh"));
  return f;
}

// --- masks

// Steps that a mask excludes leave the state as it is: the others move together, which our layers stop after, and the result of
// a step is that of the last one that counts. All is [time, batch, ...] here.
struct Masked {
  TensorId counted;  // [time, batch]: how many steps count so far
  TensorId lengths;  // [batch], int32
  int64_t steps = 0, batch = 0;

  static Result<Masked> make(Layer& l, TensorId mask, const Dims& dims) {
    const TensorId ones = l.cast(mask, DType::Int64);
    Masked m{cumulative(l, "CumSum", ones, 0, false, false), {}, dims[0], dims[1]};
    m.lengths = l.cast(l.squeeze(l.slice(m.counted, 0, dims[0] - 1, dims[0]), {0}), DType::Int32);
    return m;
  }
  TensorId picked(Layer& l, TensorId x, TensorId places, int64_t width) const {
    return l.gather_elements(x, l.expand(l.unsqueeze(places, {2}), Dims{steps, batch, width}), 0);
  }
  // Those that count first, in their order.
  TensorId moved_together(Layer& l, TensorId x, TensorId mask, int64_t width) const {
    const TensorId size = l.add_int_scalar("steps", steps);
    const TensorId rank = l.sub(l.mul(l.cast(mask, DType::Int64), size), positions(l, steps, 0, 2));
    const TensorId order = l.top_k(l.cast(rank, DType::Float32), l.reshape(size, {1}), 0)[1];
    return picked(l, x, order, width);
  }
  TensorId put_back(Layer& l, TensorId sequence, int64_t width) const {
    const TensorId zero = l.add_int_scalar("zero", 0), one = l.add_int_scalar("one", 1);
    const TensorId last = picked(l, sequence, l.binary("Max", l.sub(counted, one), zero), width);
    return l.where(l.unsqueeze(l.binary("Greater", counted, zero), {2}), last, l.scalar_like(last, 0));
  }
};

// --- sequences of vectors

Result<Ran> run_vectors(Layer& l, TensorId x, const Recurrence& r, TensorId mask) {
  const Cell cell = r.kind == "LSTM" ? Cell::Lstm : r.kind == "GRU" ? Cell::Gru : Cell::Tanh;
  const int64_t units = r.config["units"].integer(0), rows = gate_count(cell) * units;
  ORKNN_TRY_ASSIGN(const CellFunctions f, functions_of(l, r.config, "sigmoid"));
  RecurrentLayers layers{.cell = cell, .order = cell == Cell::Lstm ? GateOrder(kGatesIfco) : GateOrder()};
  layers.resets_first = cell == Cell::Gru && !r.config["reset_after"].flag(l.generation() >= 3);
  const bool is_usual = f.content.op == "Tanh" && (cell == Cell::Tanh || f.gate.op == "Sigmoid");
  if (!is_usual) {
    std::vector<CellFunction> used{f.gate, f.content, f.content};
    if (cell == Cell::Tanh) used = {f.content};
    if (cell == Cell::Gru) used.pop_back();
    for (const CellFunction& function : used) {
      layers.activations.push_back(function.op);
      if (function.alpha) layers.alphas.push_back(*function.alpha);
    }
  }
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0, r.below, r.first));
  ORKNN_TRY_ASSIGN(const TensorId recurrent, l.weight(1, r.below, r.first));
  const Dims from = *l.dims_of(kernel);
  if (units < 1 || units > (1 << 24) || from.size() != 2 || from[1] != rows || l.dims_of(recurrent) != Dims{units, rows})
    return shape_mismatch("the weights of the layer have the wrong shape").found(to_string(from));
  RecurrentWeights w{.input = l.transpose(kernel, {1, 0}), .state = l.transpose(recurrent, {1, 0})};
  if (r.config["use_bias"].flag(true)) {
    ORKNN_TRY_ASSIGN(w.input_bias, l.weight(2, r.below, r.first));
    const bool has_two = cell == Cell::Gru && !layers.resets_first;  // of the input and of the state
    const Dims expected = has_two ? Dims{2, rows} : Dims{rows}, found = *l.dims_of(w.input_bias);
    if (found != expected)
      return shape_mismatch("the bias of the layer has the wrong shape").expected(to_string(expected)).found(to_string(found));
    if (has_two) {
      const auto both = l.split(l.reshape(w.input_bias, {2 * rows}), 0, {rows, rows});
      w.input_bias = both[0];
      w.state_bias = both[1];
    }
  }
  layers.weights = {w};
  for (size_t i = 0; i < state_count(r.kind); ++i)
    layers.states.push_back(i < r.states.size() ? l.unsqueeze(r.states[i], {0}) : TensorId{});
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to walk along time"));
  if (rank != 3) return shape_mismatch("the layer needs sequences of vectors").found("rank " + std::to_string(rank));
  x = l.transpose(x, {1, 0, 2});
  if (mask) mask = l.transpose(mask, {1, 0});
  if (r.is_backward) x = l.reverse(x, {0});
  if (r.is_backward && mask) mask = l.reverse(mask, {0});
  std::optional<Masked> masked;
  if (mask) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to leave out masked steps"));
    ORKNN_TRY_ASSIGN(masked, Masked::make(l, mask, dims));
    layers.lengths = masked->lengths;
    x = masked->moved_together(l, x, mask, dims[2]);
  }
  ORKNN_TRY_ASSIGN(const RecurrentResult made, run_recurrent(l, x, layers));
  Ran ran{l.transpose(masked ? masked->put_back(l, made.sequence, units) : made.sequence, {1, 0, 2}), {}};
  for (TensorId state : made.states) ran.states.push_back(l.squeeze(state, {0}));
  return ran;
}

// --- sequences of pictures

Result<Ran> run_pictures(Layer& l, TensorId x, const Recurrence& r) {
  const size_t spatial = r.kind == "ConvLSTM1D" ? 1 : r.kind == "ConvLSTM2D" ? 2 : 3;
  const PictureFormat format{r.config["data_format"].string("channels_last") != "channels_first", spatial};
  ORKNN_TRY_ASSIGN(const CellFunctions f, functions_of(l, r.config, l.generation() >= 3 ? "sigmoid" : "hard_sigmoid"));
  ORKNN_TRY_ASSIGN(const TensorId kernel, l.weight(0, r.below, r.first));
  ORKNN_TRY_ASSIGN(const TensorId recurrent, l.weight(1, r.below, r.first));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to walk along time"));
  const Dims from = *l.dims_of(kernel), again = *l.dims_of(recurrent);
  const int64_t filters = r.config["filters"].integer(0);
  if (dims.size() != spatial + 3 || from.size() != spatial + 2 || again.size() != spatial + 2 || filters < 1 ||
      from.back() != 4 * filters || again.back() != from.back() || again[spatial] != filters)
    return shape_mismatch("the weights of the layer have the wrong shape").found(to_string(from));
  const auto window = [&](const Dims& weights, bool is_input, TensorId pictures) -> Result<Window> {
    Window w{.kernel = {weights.begin(), weights.end() - 2}};
    w.strides = is_input ? r.config["strides"].integers(spatial) : std::vector<int64_t>(spatial, 1);
    w.dilations = is_input ? r.config["dilation_rate"].integers(spatial) : std::vector<int64_t>(spatial, 1);
    if (w.strides.size() != spatial || w.dilations.size() != spatial) return invalid_model("the layer has no strides");
    ORKNN_TRY(w.check());
    if (is_input && r.config["padding"].string("valid") != "same") return w;
    w.padding = Window::Padding::Same;
    return with_explicit_padding(std::move(w), spatial_extents(l, {false, spatial}, pictures));
  };
  // What the input contributes to the gates, for all steps at once: [time, batch, 4 * filters, spatial...].
  TensorId pictures = l.reshape(x, joined({dims[0] * dims[1]}, {dims.begin() + 2, dims.end()}));
  ORKNN_TRY_ASSIGN(pictures, to_channels_first(l, format, pictures));
  ORKNN_TRY_ASSIGN(const Window of_input, window(from, true, pictures));
  ORKNN_TRY_ASSIGN(TensorId sums, convolution(l, pictures, filters_first(l, kernel, spatial), {}, of_input));
  if (r.config["use_bias"].flag(true)) {
    ORKNN_TRY_ASSIGN(const TensorId bias, l.weight(2, r.below, r.first));
    sums = l.add(sums, along_channels(l, {false, spatial}, bias));
  }
  ORKNN_TRY_ASSIGN(const Dims made, l.need_dims(sums, "to walk along time"));
  sums = l.swap_axes(l.reshape(sums, joined({dims[0], dims[1]}, {made.begin() + 1, made.end()})), 0, 1);
  const TensorId weights = filters_first(l, recurrent, spatial);
  LstmState state;
  if (r.states.size() == 2) {
    ORKNN_TRY_ASSIGN(state.hidden, to_channels_first(l, format, r.states[0]));
    ORKNN_TRY_ASSIGN(state.cell, to_channels_first(l, format, r.states[1]));
  }
  const StepFunctions functions{f.gate.op, f.gate.alpha, f.content.op, f.content.alpha, 1};
  const Step step = [&](TensorId now) -> Result<TensorId> {
    if (state.hidden) {
      ORKNN_TRY_ASSIGN(const Window of_state, window(again, false, state.hidden));
      ORKNN_TRY_ASSIGN(const TensorId more, convolution(l, state.hidden, weights, {}, of_state));
      now = l.add(now, more);
    }
    state = lstm_step(l, now, state.cell, kGatesIfco, filters, functions);
    return state.hidden;
  };
  ORKNN_TRY_ASSIGN(TensorId sequence, unrolled(l, sums, r.is_backward, step));
  if (r.is_backward) sequence = l.reverse(sequence, {0});  // in the order of the steps taken
  // [time, batch, filters, spatial...] to the order of the format.
  std::vector<int64_t> order{1, 0};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(i) + 3);
  order.insert(format.channels_last ? order.end() : order.begin() + 2, 2);
  return Ran{l.transpose(sequence, order),
             {from_channels_first(l, format, state.hidden), from_channels_first(l, format, state.cell)}};
}

Result<Ran> run(Layer& l, TensorId x, const Recurrence& r) {
  const TensorId mask = l.mask_of(x);
  if (r.config["stateful"].flag(false)) l.warn("it begins every run with an empty state (stateful)");
  if (!r.kind.starts_with("ConvLSTM")) return run_vectors(l, x, r, mask);
  if (mask) l.warn("steps that are masked are read like others");
  return run_pictures(l, x, r);
}

std::vector<TensorId> results(Layer& l, TensorId x, const Json& config, const Ran& ran) {
  const bool is_sequence = config["return_sequences"].flag(false);
  std::vector<TensorId> outputs{is_sequence ? ran.sequence : ran.states[0]};
  if (config["return_state"].flag(false)) outputs.insert(outputs.end(), ran.states.begin(), ran.states.end());
  if (const TensorId mask = l.mask_of(x); is_sequence && mask) l.build.masks[outputs[0].index] = mask;
  return outputs;
}

// The first states: after the sequence itself, or by name.
std::vector<TensorId> first_states(Layer& l) {
  std::vector<TensorId> all = l.tensors(0, "sequence");
  if (all.size() > 1) return {all.begin() + 1, all.end()};
  return l.tensors(1, "initial_state");
}

Status check_states(const std::vector<TensorId>& states, size_t count) {
  if (states.empty() || states.size() == count) return {};
  return invalid_model("the layer gets the wrong number of first states")
      .expected(std::to_string(count))
      .found(std::to_string(states.size()));
}

Result<std::vector<TensorId>> recurrent(Layer& l, TensorId x) {
  Recurrence r{l.config, l.kind(), "cell", 0, l.flag("go_backwards", false)};
  if (l.flag("time_major", false)) return unsupported("sequences with time first (time_major) are not supported");
  r.states = first_states(l);
  ORKNN_TRY(check_states(r.states, state_count(r.kind)));
  ORKNN_TRY_ASSIGN(const Ran ran, run(l, x, r));
  return results(l, x, l.config, ran);
}

// A layer made of cells, one after the other at each step: the same as layers one after the other.
Result<std::vector<TensorId>> layer_of_cells(Layer& l, TensorId x) {
  const Json& cell = l.config["cell"];
  const bool is_stack = cell["class_name"].string() == "StackedRNNCells";
  const std::vector<Json> cells = is_stack ? cell["config"]["cells"].items : std::vector{cell};
  const std::vector<TensorId> given = first_states(l);
  Ran all;
  size_t first = 0, state = 0;
  std::map<std::string, size_t> earlier;
  for (const Json& own : cells) {
    std::string kind = own["class_name"].string();
    if (kind != "LSTMCell" && kind != "GRUCell" && kind != "SimpleRNNCell")
      return unsupported("a recurrent layer of '" + kind + "' is not supported").expected("LSTMCell, GRUCell or SimpleRNNCell");
    std::string below = "cell";
    if (is_stack) {
      const size_t before = earlier[kind]++;
      below += "/cells/" + snake_case(kind) + (before ? "_" + std::to_string(before) : "");
    }
    kind.resize(kind.size() - 4);
    Recurrence r{own["config"], kind, below, first, l.flag("go_backwards", false) && first == 0};
    for (size_t i = 0; i < state_count(kind) && state < given.size(); ++i) r.states.push_back(given[state++]);
    ORKNN_TRY(check_states(r.states, state_count(kind)));
    ORKNN_TRY_ASSIGN(const Ran ran, run(l, all.sequence ? all.sequence : x, r));
    if (const TensorId mask = l.mask_of(x)) l.build.masks[ran.sequence.index] = mask;
    all.sequence = ran.sequence;
    all.states.insert(all.states.end(), ran.states.begin(), ran.states.end());
    first += weight_count(r.config);
  }
  if (!all.sequence) return invalid_model("the layer has no cells");
  std::vector<TensorId> outputs = results(l, x, l.config, all);
  if (!l.flag("return_sequences", false)) {  // what the last cell gives
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(all.sequence, "to take the last step"));
    outputs[0] = l.squeeze(l.slice(all.sequence, 1, dims[1] - 1, dims[1]), {1});
  }
  return outputs;
}

Result<std::vector<TensorId>> bidirectional(Layer& l, TensorId x) {
  const Json &layer = l.config["layer"], &own = l.config["backward_layer"];
  const Json &forward = layer["config"], &backward = own.is_null() ? forward : own["config"];
  const std::string kind = layer["class_name"].string();
  static const std::set<std::string, std::less<>> kinds{"LSTM", "GRU", "SimpleRNN", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D"};
  if (!kinds.contains(kind)) return unsupported("Bidirectional around the layer '" + kind + "' is not supported");
  const std::vector<TensorId> given = first_states(l);
  const size_t count = state_count(kind);
  ORKNN_TRY(check_states(given, 2 * count));
  const auto half = static_cast<std::ptrdiff_t>(given.size() / 2);
  ORKNN_TRY_ASSIGN(const Ran there,
                   run(l, x, {forward, kind, "forward_layer/cell", 0, false, {given.begin(), given.begin() + half}}));
  ORKNN_TRY_ASSIGN(
      Ran back,
      run(l, x, {backward, kind, "backward_layer/cell", weight_count(forward), true, {given.begin() + half, given.end()}}));
  const bool is_sequence = forward["return_sequences"].flag(false);
  back.sequence = l.reverse(back.sequence, {1});  // in the order of the sequence again
  const std::vector<TensorId> a = results(l, x, forward, there), b = results(l, x, backward, back);
  TensorId ahead = a[0], behind = b[0];
  if (const TensorId mask = l.mask_of(x); mask && is_sequence) {  // steps that do not count give zeros here
    const TensorId counts = l.unsqueeze(mask, {2});
    ahead = l.where(counts, ahead, l.scalar_like(ahead, 0));
    behind = l.where(counts, behind, l.scalar_like(behind, 0));
  }
  const std::string mode = l.text("merge_mode");
  std::vector<TensorId> outputs;
  if (mode == "concat")
    outputs = {l.concat({ahead, behind}, !is_sequence && kind.starts_with("Conv") && !l.format(2).channels_last ? 1 : -1)};
  else if (mode == "mul")
    outputs = {l.mul(ahead, behind)};
  else if (mode == "sum" || mode == "ave")
    outputs = {mode == "ave" ? l.mul(l.add(ahead, behind), 0.5) : l.add(ahead, behind)};
  else if (mode.empty())
    outputs = {ahead, behind};
  else
    return unsupported("this way to merge directions is not supported").expected("concat, sum, mul, ave or none").found(mode);
  if (const TensorId mask = l.mask_of(x); mask && is_sequence) l.build.masks[outputs[0].index] = mask;
  outputs.insert(outputs.end(), a.begin() + 1, a.end());
  outputs.insert(outputs.end(), b.begin() + 1, b.end());
  return outputs;
}
}  // namespace

std::span<const Row> recurrent_rows() {
  static const Row rows[] = {
      {"LSTM|GRU|SimpleRNN|ConvLSTM1D|ConvLSTM2D|ConvLSTM3D", recurrent},
      {"RNN", layer_of_cells},
      {"Bidirectional", bidirectional},
  };
  return rows;
}

}  // namespace orknn::importer::keras
