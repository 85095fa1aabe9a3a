// Quantized layers whose weights come packed in objects of PyTorch: convolutions, products, recurrent layers, embeddings.
#include "import/lower/recurrent.h"
#include "import/pytorch/convolution.h"
#include "import/pytorch/operators.h"
#include "import/pytorch/quantization.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

struct Packed {
  TensorValue* weight = nullptr;
  Value bias;
  ConvolutionGeometry geometry;  // of a convolution

  TensorId bias_id() const { return bias.is_tensor() ? bias.tensor().id : TensorId{}; }
};
// The lists of a geometry by the names that packed objects have for them.
auto lists_of(auto& geometry) {
  return std::array{std::pair("stride", &geometry.stride), std::pair("padding", &geometry.padding),
                    std::pair("dilation", &geometry.dilation), std::pair("output_padding", &geometry.output_padding)};
}
Result<Value> pack(Call& c, const char* class_name, const Packed& p) {
  ObjectValue* object = c.heap().object(class_name);
  object->attributes["weight"] = Value(p.weight);
  object->attributes["bias"] = p.bias;
  for (const auto& [name, list] : lists_of(p.geometry)) {
    ORKNN_TRY_ASSIGN(object->attributes[name], c.made(*list));
  }
  object->attributes["groups"] = p.geometry.groups;
  object->attributes["transposed"] = p.geometry.transposed;
  return Value(object);
}
template <bool Transposed>
Result<Value> conv_prepack(Call& c) {
  Packed p{&c.handle("weight"), c.value("bias"), {}};
  p.geometry = {.stride = c.ints("stride"),
                .padding = c.ints("padding"),
                .dilation = c.ints("dilation"),
                .output_padding = Transposed ? c.ints("output_padding") : std::vector<int64_t>{0},
                .groups = c.integer("groups"),
                .transposed = Transposed};
  return pack(c, "__torch__.torch.classes.quantized.ConvPackedParamsBase", p);
}
constexpr const char* kLinearClass = "__torch__.torch.classes.quantized.LinearPackedParamsBase";
Result<Value> linear_prepack(Call& c) { return pack(c, kLinearClass, {&c.handle("weight"), c.value("bias"), {}}); }
Result<Value> half_prepack(Call& c) {
  ORKNN_TRY_ASSIGN(const Value rounded, c.made(c.cast(c.cast(c.tensor("weight"), DType::Float16), DType::Float32)));
  return pack(c, kLinearClass, {&rounded.tensor(), c.value("bias"), {}});
}

Status bad_state(const ObjectValue& object) {
  return invalid_model("the stored state of " + object.class_name + " is not understood");
}

// What a pickled object says: linear (weight, bias); convolutions (version, [config, weight], [bias]).
Status unpickle(Call& c, ObjectValue& object, Packed& p) {
  const Value& state = *object.state;
  if (!state.is_sequence()) return bad_state(object);
  const auto& parts = state.sequence().items;
  if (parts.size() == 2 && parts[0].is_tensor()) {
    p.weight = &parts[0].tensor();
    p.bias = parts[1];
    return {};
  }
  if (parts.size() != 3 || !parts[1].is_sequence() || !parts[2].is_sequence() || parts[1].sequence().items.size() < 2 ||
      parts[2].sequence().items.empty())
    return bad_state(object);
  const auto& tensors = parts[1].sequence().items;
  if (!tensors[0].is_tensor() || !tensors[1].is_tensor()) return bad_state(object);
  p.weight = &tensors[1].tensor();
  p.bias = parts[2].sequence().items[0];
  ORKNN_TRY(c.session().refresh(c, tensors[0].tensor()));
  ORKNN_TRY_ASSIGN(const auto config, c.need_ints(tensors[0].tensor().id, "to read packed weights"));
  // [version or dims, stride..., padding..., dilation..., output_padding..., groups, flags]
  if (config.empty() || config[0] < 1 || config[0] > 3) return bad_state(object);
  const size_t n = static_cast<size_t>(config[0]);
  if (config.size() != 4 * n + 3) return bad_state(object);
  auto next = config.begin() + 1;
  for (const auto& [name, list] : lists_of(p.geometry)) {
    list->assign(next, next + config[0]);
    next += config[0];
  }
  p.geometry.groups = config[4 * n + 1];
  p.geometry.transposed = (config[4 * n + 2] & 1) != 0;
  return {};
}
Result<Packed> unpacked(Call& c, ObjectValue& object) {
  Packed p;
  if (object.state) {
    ORKNN_TRY(unpickle(c, object, p));
  } else {
    const auto at = [&](const char* attribute) {
      const auto it = object.attributes.find(attribute);
      return it == object.attributes.end() ? Value() : it->second;
    };
    if (!at("weight").is_tensor()) return bad_state(object);
    p.weight = &at("weight").tensor();
    p.bias = at("bias");
    for (const auto& [name, list] : lists_of(p.geometry)) *list = ints_of(at(name));
    p.geometry.groups = at("groups").is_number() ? at("groups").integer() : 1;
    p.geometry.transposed = at("transposed").is_number() && at("transposed").boolean();
  }
  ORKNN_TRY(c.session().refresh(c, *p.weight));
  if (p.bias.is_tensor()) ORKNN_TRY(c.session().refresh(c, p.bias.tensor()));
  return p;
}
Result<Packed> unpacked(Call& c) { return unpacked(c, c.value("packed").object()); }
Result<std::vector<Value>> unpack(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, c.value("self").object()));
  return std::vector<Value>{Value(p.weight), p.bias};
}

double levels_of(Call& c) { return c.flag("reduce_range") ? 127 : 255; }
// One-dimensional convolutions may be kept as two-dimensional ones, their weights with an axis of height one.
Result<TensorId> packed_convolution(Call& c, TensorId x, Packed p) {
  const size_t spatial = p.weight->dims.size() - std::min<size_t>(p.weight->dims.size(), 2);
  for (const auto& [name, list] : lists_of(p.geometry))
    if (list->size() > spatial) list->erase(list->begin(), list->end() - static_cast<ptrdiff_t>(spatial));
  return convolved(c, x, p.weight->id, p.bias_id(), p.geometry);
}
Result<TensorId> packed_conv(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c));
  if (c.rank() + 1 != static_cast<int64_t>(p.weight->dims.size())) return packed_convolution(c, x, p);
  const bool is_line = c.op().find("1d") != std::string::npos;  // else the batch is missing
  if (!is_line) ORKNN_TRY(ask_for_batch(c, c.handle()));
  const int64_t missing = is_line ? 2 : 0;
  ORKNN_TRY_ASSIGN(const TensorId y, packed_convolution(c, c.unsqueeze(x, {missing}), p));
  return c.squeeze(y, {missing});
}
Result<TensorId> conv_dynamic(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c));
  return packed_convolution(c, dynamically_quantized(c, x, levels_of(c)), p);
}

Result<TensorId> multiplied(Call& c, TensorId x, const Packed& p) {
  if (p.weight->dims.size() != 2) return invalid_model("a linear layer needs a matrix");
  const TensorId y = c.matmul(x, c.transpose(p.weight->id, {1, 0}));
  return p.bias.is_tensor() ? c.add(y, p.bias.tensor().id) : y;
}
// By the range of the data when the weights are integers.
Result<TensorId> multiplied_dynamically(Call& c, TensorId x, const Packed& p, double levels) {
  return multiplied(c, p.weight->quantization ? dynamically_quantized(c, x, levels) : x, p);
}
Result<TensorId> packed_linear(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c));
  return multiplied(c, x, p);
}
Result<TensorId> linear_dynamic(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c));
  return multiplied_dynamically(c, x, p, levels_of(c));
}

// --- recurrent layers: input and state are quantized by their own range before each product, so the steps are spelled out
struct PackedCell {
  Packed input, state;
  double levels = 255;
};
// ("quantized_dynamic" or "quantized_fp16", tensors, numbers, [whether ranges are reduced], [packed input weights, packed state
// weights])
Result<PackedCell> packed_cell(Call& c, const Value& v, int64_t gates) {
  if (v.kind() != Kind::Object || !v.object().state || !v.object().state->is_sequence())
    return invalid_model("a recurrent layer has no packed weights").found(describe(v));
  const auto& parts = v.object().state->sequence().items;
  const auto is_pair = [](const Value& list) {
    return list.is_sequence() && list.sequence().items.size() == 2 && list.sequence().items[0].kind() == Kind::Object &&
           list.sequence().items[1].kind() == Kind::Object;
  };
  if (parts.size() < 5 || !is_pair(parts[4])) return bad_state(v.object());
  PackedCell cell;
  ORKNN_TRY_ASSIGN(cell.input, unpacked(c, parts[4].sequence().items[0].object()));
  ORKNN_TRY_ASSIGN(cell.state, unpacked(c, parts[4].sequence().items[1].object()));
  if (const auto reduced = ints_of(parts[3]); !reduced.empty() && reduced[0] != 0) cell.levels = 127;
  const Dims &w = cell.input.weight->dims, &r = cell.state.weight->dims;
  if (w.size() != 2 || r.size() != 2 || w[0] != r[0] || r[1] < 1 || r[0] != gates * r[1])
    return invalid_model("the weights of a recurrent layer do not fit each other")
        .found(ir::to_string(w) + " and " + ir::to_string(r));
  return cell;
}
// One direction of one layer over [time, batch, features]; the steps' results, and the last states in `states`.
Result<TensorId> run_steps(Call& c, const PackedCell& cell, TensorId x, bool is_reversed, std::vector<TensorId>& states) {
  const int64_t units = cell.state.weight->dims[1];
  ORKNN_TRY_ASSIGN(const TensorId from_input, multiplied_dynamically(c, x, cell.input, cell.levels));
  return unrolled(c, from_input, is_reversed, [&](TensorId given) -> Result<TensorId> {
    ORKNN_TRY_ASSIGN(const TensorId from_state, multiplied_dynamically(c, states[0], cell.state, cell.levels));
    if (states.size() == 2) {
      const LstmState s = lstm_step(c, c.add(given, from_state), states[1], kGatesIfco, units);
      states = {s.hidden, s.cell};
    } else {
      states[0] = gru_step(c, given, from_state, states[0], kGatesRzh, units);
    }
    return states[0];
  });
}
template <Cell Kind>
Result<std::vector<TensorId>> recurrent_dynamic(Call& c) {
  constexpr size_t kStates = Kind == Cell::Lstm ? 2 : 1;
  const int64_t layers = c.integer("num_layers"), directions = c.flag("bidirectional") ? 2 : 1;
  const auto& params = c.items("params");
  const std::vector<Value> given = Kind == Cell::Lstm ? c.items("hx") : std::vector<Value>{c.value("hx")};
  if (given.size() != kStates || layers < 1 || layers > 1000 || params.size() != static_cast<size_t>(layers * directions))
    return invalid_model("a recurrent layer has an unexpected number of weights or states");
  for (const Value& s : given)
    if (!s.is_tensor() || s.tensor().dims.size() != 3 || s.tensor().dims[0] != layers * directions)
      return invalid_model("a state of a recurrent layer has the wrong shape").found(describe(s));
  if (c.rank("input") != 3)
    return invalid_model("a recurrent layer needs [time, batch, features]").found(ir::to_string(c.dims("input")));
  const auto time_first = [&](TensorId x) { return c.flag("batch_first") ? c.transpose(x, {1, 0, 2}) : x; };
  TensorId x = time_first(c.tensor("input"));
  std::vector<TensorId> last[kStates];
  for (int64_t l = 0; l < layers; ++l) {
    std::vector<TensorId> sides;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t at = l * directions + d;
      ORKNN_TRY_ASSIGN(const PackedCell cell, packed_cell(c, params[at], gate_count(Kind)));
      std::vector<TensorId> states;
      for (const Value& s : given) states.push_back(c.squeeze(c.slice(s.tensor().id, 0, at, at + 1), {0}));
      ORKNN_TRY_ASSIGN(const TensorId y, run_steps(c, cell, x, d == 1, states));
      sides.push_back(y);
      for (size_t i = 0; i < kStates; ++i) last[i].push_back(states[i]);
    }
    x = c.concat(std::move(sides), 2);
  }
  std::vector<TensorId> results{time_first(x)};
  for (auto& states : last) results.push_back(c.stack(std::move(states), 0));
  return results;
}

// (version, [weight], doubles, longs)
Result<TensorId> embedding_bytes(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index("indices"));
  ObjectValue& object = c.value("weight").object();
  const Value state = object.state.value_or(Value());
  if (!state.is_sequence() || state.sequence().items.size() < 2 || !state.sequence().items[1].is_sequence() ||
      state.sequence().items[1].sequence().items.empty() || !state.sequence().items[1].sequence().items[0].is_tensor())
    return bad_state(object);
  TensorValue& weight = state.sequence().items[1].sequence().items[0].tensor();
  ORKNN_TRY(c.session().refresh(c, weight));
  return c.gather(weight.id, index, 0);
}

#define ORKNN_OUT "Scalar scale, int zero_point)"
}  // namespace

std::span<const Row> packed_rows() {
  static const Row rows[] = {
      {"quantized::conv1d_prepack|quantized::conv2d_prepack|quantized::conv3d_prepack|quantized::conv_prepack(Tensor weight, "
       "Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)",
       conv_prepack<false>},
      {"quantized::conv_transpose1d_prepack|quantized::conv_transpose2d_prepack|quantized::conv_transpose3d_prepack(Tensor "
       "weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] dilation, int groups)",
       conv_prepack<true>},
      {"quantized::linear_prepack(Tensor weight, Tensor? bias=None)", linear_prepack},
      {"quantized::linear_prepack_fp16(Tensor weight, Tensor? bias=None)", half_prepack},
      {"quantized::linear_unpack|quantized::linear_unpack_fp16|quantized::conv1d_unpack|quantized::conv2d_unpack|"
       "quantized::conv3d_unpack|quantized::conv_unpack|ConvPackedParamsBase.unpack|Conv2dPackedParamsBase.unpack|"
       "Conv3dPackedParamsBase.unpack|LinearPackedParamsBase.unpack(object self)",
       unpack},
      {"quantized::conv1d|quantized::conv2d|quantized::conv3d|quantized::conv_transpose1d|quantized::conv_transpose2d|"
       "quantized::conv_transpose3d(Tensor self, object packed, " ORKNN_OUT,
       requantized<packed_conv>},
      {"quantized::conv1d_relu|quantized::conv2d_relu|quantized::conv3d_relu(Tensor self, object packed, " ORKNN_OUT,
       requantized<relu_of<packed_conv>>},
      // The oldest form repeats the geometry; the packed one counts.
      {"quantized::conv2d(Tensor self, object packed, int[] stride, int[] padding, int[] dilation, int groups, " ORKNN_OUT,
       requantized<packed_conv>},
      {"quantized::conv2d_relu(Tensor self, object packed, int[] stride, int[] padding, int[] dilation, int groups, " ORKNN_OUT,
       requantized<relu_of<packed_conv>>},
      {"quantized::conv1d_dynamic|quantized::conv2d_dynamic|quantized::conv3d_dynamic(Tensor self, object packed, bool "
       "reduce_range=False)",
       conv_dynamic},
      {"quantized::linear(Tensor self, object packed, " ORKNN_OUT, requantized<packed_linear>},
      {"quantized::linear_relu(Tensor self, object packed, " ORKNN_OUT, requantized<relu_of<packed_linear>>},
      {"quantized::linear_dynamic(Tensor self, object packed, bool reduce_range=False)", linear_dynamic},
      {"quantized::linear_relu_dynamic(Tensor self, object packed, bool reduce_range=False)", relu_of<linear_dynamic>},
      {"quantized::linear_dynamic_fp16(Tensor self, object packed)", packed_linear},
      {"quantized_lstm(Tensor input, Tensor[] hx, list params, bool has_biases, int num_layers, float dropout, bool train, bool "
       "bidirectional, bool batch_first, *, int? dtype=None, bool use_dynamic=False)",
       recurrent_dynamic<Cell::Lstm>},
      {"quantized_gru(Tensor input, Tensor hx, list params, bool has_biases, int num_layers, float dropout, bool train, bool "
       "bidirectional, bool batch_first)",
       recurrent_dynamic<Cell::Gru>},
      {"quantized::embedding_byte|quantized::embedding_4bit(object weight, Tensor indices, bool pruned_weights=False)",
       embedding_bytes},
  };
  return rows;
}
#undef ORKNN_OUT

}  // namespace orknn::importer::pytorch
