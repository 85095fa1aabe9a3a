#include "import/keras/sequences.h"

#include <cmath>
#include <map>
#include <span>

#include "import/keras/operations.h"

namespace orknn::importer::keras {
namespace {

// --- recurrent layers

// One direction of a recurrent layer: where its weights are, and how it runs.
struct Recurrence {
  const Json& config;
  std::string kind;
  std::string below;         // the part of the layer that has the weights
  size_t first = 0;          // of them
  bool is_backward = false;  // from the last step to the first
};

size_t weight_count(const Json& config) { return config["use_bias"].flag(true) ? 3 : 2; }

Status check_recurrence(const Recurrence& r) {
  const bool has_gates = r.kind != "SimpleRNN";
  if (r.config["activation"].string("tanh") != "tanh" ||
      (has_gates && r.config["recurrent_activation"].string("sigmoid") != "sigmoid"))
    return unsupported(r.kind + " with other activations than tanh and sigmoid is not supported");
  if (r.config["stateful"].flag(false) || r.config["return_state"].flag(false))
    return unsupported(r.kind + " that keeps or returns its state is not supported");
  return {};
}

struct RecurrentWeights {
  Weight kernel, recurrent, bias;
  int64_t units = 0;
};
Result<RecurrentWeights> recurrent_weights(const LayerCall& call, const Recurrence& r) {
  const int64_t gates = r.kind == "LSTM" ? 4 : r.kind == "GRU" ? 3 : 1;
  RecurrentWeights w;
  ORKNN_TRY_ASSIGN(w.kernel, call.weight(r.first, r.below));
  ORKNN_TRY_ASSIGN(w.recurrent, call.weight(r.first + 1, r.below));
  constexpr int64_t kMostUnits = 1 << 24;
  w.units = r.config["units"].integer(0);
  if (w.units < 1 || w.units > kMostUnits || w.kernel.dims.size() != 2 ||
      w.recurrent.dims != ir::Dims{w.units, gates * w.units} || w.kernel.dims[1] != gates * w.units)
    return shape_mismatch("the weights of the layer have the wrong shape").found(ir::to_string(w.kernel.dims));
  const bool has_two = r.kind == "GRU" && r.config["reset_after"].flag(true);  // of the input and of the state
  const auto zeros = static_cast<size_t>(gates * w.units);
  w.bias = {{gates * w.units}, std::vector<float>(zeros, 0)};
  if (r.config["use_bias"].flag(true)) {
    ORKNN_TRY_ASSIGN(w.bias, call.weight(r.first + 2, r.below));
    const ir::Dims expected = has_two ? ir::Dims{2, gates * w.units} : ir::Dims{gates * w.units};
    if (w.bias.dims != expected)
      return shape_mismatch("the bias of the layer has the wrong shape")
          .expected(ir::to_string(expected))
          .found(ir::to_string(w.bias.dims));
  }
  if (w.bias.values.size() == zeros) w.bias.values.resize(2 * zeros, 0);
  w.bias.dims = {2 * gates * w.units};
  return w;
}

// Gates in the order i, f, c, o, as BlockLSTMV2 has them. Sequences are time-major here.
Tensor lstm_states(GraphWriter& g, const Tensor& x, RecurrentWeights w, int64_t batch) {
  const auto units = static_cast<size_t>(w.units);
  w.kernel.values.insert(w.kernel.values.end(), w.recurrent.values.begin(), w.recurrent.values.end());
  w.kernel.dims[0] += w.units;
  w.bias.values.resize(4 * units);
  w.bias.dims = {4 * w.units};
  const Tensor zeros = g.floats({batch, w.units}, std::vector<float>(static_cast<size_t>(batch) * units, 0));
  const Tensor none = g.floats({w.units}, std::vector<float>(units, 0));
  const Tensor extents = g.node("Shape", {x}, 1, Attributes().type("out_type", kTfInt64));
  const Tensor steps =
      g.node("StridedSlice", {extents, g.ints({0}), g.ints({1}), g.ints({1})}, 0, Attributes().integer("shrink_axis_mask", 1));
  Tensor all = g.node("BlockLSTMV2", {steps, x, zeros, zeros, g.floats(w.kernel), none, none, none, g.floats(w.bias)}, 3);
  all.name += ":6";  // the hidden states
  return all;
}

// TensorFlow has no operator for the others: its importer knows this one of ours.
Tensor other_states(GraphWriter& g, const Tensor& x, const RecurrentWeights& w, const Recurrence& r) {
  return g.node("KerasRecurrent", {x, g.floats(w.kernel), g.floats(w.recurrent), g.floats(w.bias)}, 3,
                Attributes().flag("is_gru", r.kind == "GRU").flag("reset_after", r.config["reset_after"].flag(r.kind == "GRU")));
}

Tensor reversed(GraphWriter& g, const Tensor& x, int64_t axis) { return g.like("ReverseV2", {x, g.ints({axis})}); }

Result<Tensor> run_recurrence(LayerCall& call, const Recurrence& r) {
  GraphWriter& g = call.graph;
  ORKNN_TRY(check_recurrence(r));
  ORKNN_TRY_ASSIGN(const RecurrentWeights w, recurrent_weights(call, r));
  Tensor x = g.like("Transpose", {call.input(), g.ints({1, 0, 2})});
  if (r.is_backward) x = reversed(g, x, 0);
  const Tensor all = r.kind == "LSTM" ? lstm_states(g, x, w, call.batch) : other_states(g, x, w, r);
  if (r.config["return_sequences"].flag(false)) return g.like("Transpose", {all, g.ints({1, 0, 2})});
  return g.node("StridedSlice", {all, g.ints({-1}), g.ints({0}), g.ints({1})}, 2,
                Attributes().integer("shrink_axis_mask", 1).integer("end_mask", 1));
}

bool is_recurrent(const std::string& kind) { return kind == "LSTM" || kind == "GRU" || kind == "SimpleRNN"; }

}  // namespace

Result<Tensor> recurrent(LayerCall& call) {
  const bool is_flat = call.weights.count(call.path) > 0;
  return run_recurrence(
      call, {call.config, call.layer["class_name"].string(), is_flat ? "" : "cell", 0, call.config["go_backwards"].flag(false)});
}

Result<Tensor> bidirectional(LayerCall& call) {
  GraphWriter& g = call.graph;
  const Json &layer = call.config["layer"], &own = call.config["backward_layer"];
  const Json &forward = layer["config"], &backward = own.is_null() ? forward : own["config"];
  const std::string kind = layer["class_name"].string();
  if (!is_recurrent(kind)) return unsupported("Bidirectional around the layer '" + kind + "' is not supported");
  const bool is_flat = call.weights.count(call.path) > 0;
  ORKNN_TRY_ASSIGN(const Tensor there, run_recurrence(call, {forward, kind, is_flat ? "" : "forward_layer/cell", 0, false}));
  ORKNN_TRY_ASSIGN(Tensor back, run_recurrence(call, {backward, kind, is_flat ? "" : "backward_layer/cell",
                                                      is_flat ? weight_count(forward) : 0, true}));
  if (back.rank == 3) back = reversed(g, back, 1);  // in the order of the sequence again
  const std::string mode = call.config["merge_mode"].string();
  if (mode == "concat") return g.like("ConcatV2", {there, back, g.integer(there.rank - 1)}, Attributes().integer("N", 2));
  if (mode == "mul") return g.like("Mul", {there, back});
  const Tensor sum = g.like("AddV2", {there, back});
  if (mode == "sum") return sum;
  if (mode == "ave") return g.like("Mul", {sum, g.scalar(0.5F)});
  return unsupported("Bidirectional with two results is not supported").expected("merge_mode concat, sum, mul or ave");
}

// Steps are samples of their own while the layer computes.
Result<Tensor> time_distributed(LayerCall& call) {
  GraphWriter& g = call.graph;
  const Json& layer = call.config["layer"];
  const std::string kind = layer["class_name"].string();
  if (is_model(layer) || !is_known_layer(layer) || is_recurrent(kind) || kind == "Bidirectional" || kind == "TimeDistributed")
    return unsupported("TimeDistributed around '" + kind + "' is not supported");
  const auto extents = [&](const Tensor& t) { return g.node("Shape", {t}, 1, Attributes().type("out_type", kTfInt64)); };
  const auto part = [&](const Tensor& list, int64_t begin, int64_t end) {
    return g.node("StridedSlice", {list, g.ints({begin}), g.ints({end}), g.ints({1})}, 1,
                  Attributes().integer("end_mask", end == 0 ? 1 : 0));
  };
  const auto joined = [&](const Tensor& a, const Tensor& b) {
    return g.node("ConcatV2", {a, b, g.integer(0)}, 1, Attributes().integer("N", 2));
  };
  const Tensor x = call.input(), outer = extents(x);
  if (x.rank < 3) return invalid_model("TimeDistributed needs a sequence").found("rank " + std::to_string(x.rank));
  const Tensor samples = g.node("Reshape", {x, joined(g.ints({-1}), part(outer, 2, 0))}, x.rank - 1);
  const bool is_flat = call.weights.count(call.path) > 0;
  LayerCall inner{g,         layer,      layer["config"], is_flat ? call.path : call.path + "/layer", call.weights,
                  {samples}, call.batch, call.generation};
  ORKNN_TRY_ASSIGN(const Tensor y, lower_layer(inner));
  return g.node("Reshape", {y, joined(part(outer, 0, 2), part(extents(y), 1, 0))}, y.rank + 1);
}

// --- attention

namespace {

// One of the projections: its place among the weights of a flat layer, and its names in archives.
struct Projection {
  size_t place;
  const char* name;
};

Result<Tensor> projected(LayerCall& call, const Tensor& x, const Projection& p, const char* equation) {
  GraphWriter& g = call.graph;
  const bool is_flat = call.weights.count(call.path) > 0, has_bias = call.config["use_bias"].flag(true);
  const std::string name = p.name, below = is_flat ? "" : call.weights.count(call.path + "/_" + name) ? "_" + name : name;
  const size_t first = is_flat ? p.place * (has_bias ? 2 : 1) : 0;
  ORKNN_TRY_ASSIGN(const Weight kernel, call.weight(first, below));
  if (kernel.dims.size() != 3) return shape_mismatch("a projection has the wrong rank").found(ir::to_string(kernel.dims));
  const std::string_view text = equation;
  const auto rank = static_cast<int64_t>(text.size() - text.find('>') - 1);
  const Tensor y = g.node("Einsum", {x, g.floats(kernel)}, rank, Attributes().text("equation", text).integer("N", 2));
  if (!has_bias) return y;
  ORKNN_TRY_ASSIGN(const Weight bias, call.weight(first + 1, below));
  return g.like("AddV2", {y, g.floats(bias)});
}

// The sequences of a call by their names: arguments in order have those of `places`.
std::map<std::string, Tensor, std::less<>> named_sequences(const LayerCall& call, std::span<const char* const> places) {
  std::map<std::string, Tensor, std::less<>> found;
  size_t next = 0;
  const auto add = [&](const std::string& name) {
    if (next < call.inputs.size()) found.emplace(name, call.inputs[next++]);
  };
  const std::vector<Json>& stated = call.arguments["args"].items;
  for (size_t i = 0; i < stated.size() && i < places.size(); ++i)
    if (is_tensor(stated[i])) add(places[i]);
  if (call.arguments.kind != Json::Kind::Map) add(places[0]);  // Keras 2 names all but the first
  for (const auto& [name, value] : named_arguments(call.arguments).entries)
    if (is_tensor(value) || is_reference(value)) add(name);
  return found;
}

// Places after the own one count nothing.
Tensor without_later_places(GraphWriter& g, const Tensor& scores) {
  const Tensor extents = g.node("Shape", {scores}, 1, Attributes().type("out_type", kTfInt64));
  const Tensor sides =
      g.node("StridedSlice", {extents, g.ints({-2}), g.ints({0}), g.ints({1})}, 1, Attributes().integer("end_mask", 1));
  const Tensor seen = g.node("MatrixBandPart", {g.node("Fill", {sides, g.scalar(1)}, 2), g.integer(-1), g.integer(0)}, 2);
  constexpr float kFar = -1e9F;  // as Keras has it
  return g.like("AddV2", {scores, g.like("Mul", {g.node("Sub", {g.scalar(1), seen}, 2), g.scalar(kFar)})});
}

}  // namespace

// Query, value, and the key where it is not the value.
Result<Tensor> multi_head_attention(LayerCall& call) {
  GraphWriter& g = call.graph;
  static constexpr const char* kPlaces[] = {"query", "value", "key", "attention_mask"};
  const auto given = named_sequences(call, kPlaces);
  for (const auto& [name, tensor] : given) {
    if (name != "query" && name != "value" && name != "key")
      return unsupported("the argument '" + name + "' of MultiHeadAttention is not supported");
    if (tensor.rank != 3) return unsupported("MultiHeadAttention of other than sequences of vectors is not supported");
  }
  if (!given.count("query") || !given.count("value")) return invalid_model("the layer needs a query and a value");
  const Tensor &query = given.find("query")->second, &value = given.find("value")->second;
  const Tensor& key = given.count("key") ? given.find("key")->second : value;
  const int64_t width = call.config["key_dim"].integer(0);
  if (width < 1) return invalid_model("the layer has no key_dim");
  ORKNN_TRY_ASSIGN(const Tensor q, projected(call, query, {0, "query_dense"}, "abd,dhk->abhk"));
  ORKNN_TRY_ASSIGN(const Tensor k, projected(call, key, {1, "key_dense"}, "abd,dhk->abhk"));
  ORKNN_TRY_ASSIGN(const Tensor v, projected(call, value, {2, "value_dense"}, "abd,dhk->abhk"));
  const Tensor scaled = g.like("Mul", {q, g.scalar(static_cast<float>(1 / std::sqrt(static_cast<double>(width))))});
  const auto product = [&](const Tensor& a, const Tensor& b, const char* equation) {
    return g.node("Einsum", {a, b}, 4, Attributes().text("equation", equation).integer("N", 2));
  };
  Tensor scores = product(scaled, k, "abhk,achk->ahbc");
  if (named_arguments(call.arguments)["use_causal_mask"].flag(false)) scores = without_later_places(g, scores);
  const Tensor weights = g.like("Softmax", {scores});
  return projected(call, product(weights, v, "ahbc,achv->abhv"), {3, "output_dense"}, "abhv,hvd->abd");
}

// Of the query with the key, or the value where there is none.
Result<Tensor> attention(LayerCall& call) {
  GraphWriter& g = call.graph;
  if (call.inputs.size() < 2 || call.inputs.size() > 3 || call.config["score_mode"].string("dot") != "dot")
    return unsupported("only Attention with two or three inputs and score_mode 'dot' is supported");
  for (const auto& [name, value] : named_arguments(call.arguments).entries)
    if ((name == "mask" && !value.is_null()) || (name == "return_attention_scores" && value.flag(false)))
      return unsupported("the argument '" + name + "' of Attention is not supported");
  const Tensor &query = call.inputs[0], &value = call.inputs[1], &key = call.inputs.back();
  Tensor scores = g.like("BatchMatMulV2", {query, key}, Attributes().flag("adj_y", true));
  if (call.config["use_scale"].flag(false)) {
    ORKNN_TRY_ASSIGN(const Weight scale, call.weight(0));
    scores = g.like("Mul", {scores, g.floats(scale)});
  }
  if (named_arguments(call.arguments)["use_causal_mask"].flag(false)) scores = without_later_places(g, scores);
  return g.like("BatchMatMulV2", {g.like("Softmax", {scores}), value});
}

}  // namespace orknn::importer::keras
