// Quantized layers whose weights come packed in objects of PyTorch: convolutions, products, recurrent layers, embeddings.
#include "import/pytorch/ops.h"
#include "import/pytorch/quantize.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

struct Packed {
  TensorValue* weight = nullptr;
  Value bias;
  std::vector<int64_t> stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false;
};
Value list_of(Call& c, const std::vector<int64_t>& values) {
  std::vector<Value> items;
  for (int64_t v : values) items.push_back(v);
  return Value::list(c.heap().list(std::move(items)));
}
Result<Value> pack(Call& c, const char* class_name, const Packed& p) {
  ObjectValue* object = c.heap().object(class_name);
  object->attributes["weight"] = Value(p.weight);
  object->attributes["bias"] = p.bias;
  object->attributes["stride"] = list_of(c, p.stride);
  object->attributes["padding"] = list_of(c, p.padding);
  object->attributes["dilation"] = list_of(c, p.dilation);
  object->attributes["output_padding"] = list_of(c, p.output_padding);
  object->attributes["groups"] = p.groups;
  object->attributes["transposed"] = p.transposed;
  return Value(object);
}
Result<Value> conv_prepack(Call& c) {
  return pack(c, "__torch__.torch.classes.quantized.ConvPackedParamsBase",
              {&c.handle("weight"),
               c.value("bias"),
               c.ints("stride"),
               c.ints("padding"),
               c.ints("dilation"),
               {0},
               c.integer("groups"),
               false});
}
Result<Value> conv_transpose_prepack(Call& c) {
  return pack(c, "__torch__.torch.classes.quantized.ConvPackedParamsBase",
              {&c.handle("weight"), c.value("bias"), c.ints("stride"), c.ints("padding"), c.ints("dilation"),
               c.ints("output_padding"), c.integer("groups"), true});
}
Result<Value> linear_prepack(Call& c) {
  return pack(c, "__torch__.torch.classes.quantized.LinearPackedParamsBase",
              {&c.handle("weight"), c.value("bias"), {}, {}, {}, {}, 1, false});
}

std::vector<int64_t> ints_of(const Value& v) {
  std::vector<int64_t> list;
  if (v.is_sequence())
    for (const Value& item : v.sequence().items) list.push_back(item.integer());
  return list;
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
  const auto part = [&](size_t i) {
    return std::vector<int64_t>(config.begin() + static_cast<ptrdiff_t>(1 + i * n),
                                config.begin() + static_cast<ptrdiff_t>(1 + (i + 1) * n));
  };
  p.stride = part(0);
  p.padding = part(1);
  p.dilation = part(2);
  p.output_padding = part(3);
  p.groups = config[4 * n + 1];
  p.transposed = (config[4 * n + 2] & 1) != 0;
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
    p.stride = ints_of(at("stride"));
    p.padding = ints_of(at("padding"));
    p.dilation = ints_of(at("dilation"));
    p.output_padding = ints_of(at("output_padding"));
    p.groups = at("groups").is_number() ? at("groups").integer() : 1;
    p.transposed = at("transposed").is_number() && at("transposed").boolean();
  }
  ORKNN_TRY(c.session().refresh(c, *p.weight));
  if (p.bias.is_tensor()) ORKNN_TRY(c.session().refresh(c, p.bias.tensor()));
  return p;
}
Result<Packed> unpacked(Call& c, std::string_view name) { return unpacked(c, c.value(name).object()); }
Result<Value> unpack(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "self"));
  return c.tuple({Value(p.weight), p.bias});
}

Result<TensorId> convolved(Call& c, TensorId x, const Packed& p) {
  const Dims& w = p.weight->dims;
  if (w.size() < 3) return invalid_model("a convolution needs weights of three and more axes").found(ir::to_string(w));
  const size_t spatial = w.size() - 2;
  std::vector<int64_t> lists[] = {p.stride, p.padding, p.dilation, p.output_padding};
  for (auto& list : lists) {
    if (list.size() == 1) list.resize(spatial, list[0]);
    if (list.size() > spatial)
      list.erase(list.begin(), list.end() - static_cast<ptrdiff_t>(spatial));  // one-dimensional ones are kept as two-dimensional
    if (list.size() != spatial) return invalid_model("a convolution's geometry does not fit its weights");
  }
  std::vector<int64_t> pads = lists[1];
  pads.insert(pads.end(), lists[1].begin(), lists[1].end());
  ir::Attributes attributes{{"strides", lists[0]}, {"pads", pads}, {"dilations", lists[2]}, {"group", p.groups}};
  std::vector<TensorId> inputs{x, p.weight->id};
  if (p.bias.is_tensor()) inputs.push_back(p.bias.tensor().id);
  if (!p.transposed) return c.emit("Conv", std::move(inputs), std::move(attributes));
  attributes.set("output_padding", lists[3]);
  return c.emit("ConvTranspose", std::move(inputs), std::move(attributes));
}
TensorId multiplied(Call& c, TensorId x, const Packed& p) {
  const TensorId y = c.matmul(x, c.transpose(p.weight->id, {1, 0}));
  return p.bias.is_tensor() ? c.add(y, p.bias.tensor().id) : y;
}

template <bool Relu>
Result<Value> conv(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  // One-dimensional weights may be stored with an axis of height one.
  TensorId x = c.tensor("self");
  const bool lacks_height = c.rank("self") + 1 == static_cast<int64_t>(p.weight->dims.size());
  if (lacks_height) x = c.unsqueeze(x, {2});
  ORKNN_TRY_ASSIGN(TensorId y, convolved(c, x, p));
  if (lacks_height) y = c.squeeze(y, {2});
  return quantized_result(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
Result<Value> conv_dynamic(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  ORKNN_TRY_ASSIGN(const TensorId y,
                   convolved(c, dynamically_quantized(c, c.tensor("self"), c.flag("reduce_range") ? 127 : 255), p));
  return c.made(y);
}
template <bool Relu>
Result<Value> linear(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  if (p.weight->dims.size() != 2) return invalid_model("a linear layer needs a matrix");
  const TensorId y = multiplied(c, c.tensor("self"), p);
  return quantized_result(c, Relu ? c.emit("Relu", {y}) : y, "self");
}
template <bool Relu>
Result<Value> linear_dynamic(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  if (p.weight->dims.size() != 2) return invalid_model("a linear layer needs a matrix");
  const bool is_half = !p.weight->quantization;
  const TensorId x = is_half ? c.tensor("self") : dynamically_quantized(c, c.tensor("self"), c.flag("reduce_range") ? 127 : 255);
  const TensorId y = multiplied(c, x, p);
  return c.made(Relu ? c.emit("Relu", {y}) : y);
}
Result<Value> linear_half(Call& c) {
  ORKNN_TRY_ASSIGN(const Packed p, unpacked(c, "packed"));
  return c.made(multiplied(c, c.tensor("self"), p));
}
Result<Value> half_prepack(Call& c) {
  ORKNN_TRY_ASSIGN(const Value rounded, c.made(c.cast(c.cast(c.tensor("weight"), DType::Float16), DType::Float32)));
  return pack(c, "__torch__.torch.classes.quantized.LinearPackedParamsBase",
              {&rounded.tensor(), c.value("bias"), {}, {}, {}, {}, 1, false});
}

// --- recurrent layers: input and state are quantized by their own range before each product, so the steps are spelled out
constexpr int64_t kMaxSteps = 4096;

struct RecurrentCell {
  Packed input, state;
  double levels = 255;

  static TensorId product(Call& c, TensorId x, const Packed& p, double levels) {
    return multiplied(c, p.weight->quantization ? dynamically_quantized(c, x, levels) : x, p);
  }
};
// ("quantized_dynamic" or "quantized_fp16", tensors, numbers, [whether ranges are reduced], [packed input weights, packed state
// weights])
Result<RecurrentCell> recurrent_cell(Call& c, const Value& v, int64_t gates) {
  if (v.kind() != Kind::Object || !v.object().state || !v.object().state->is_sequence())
    return invalid_model("a recurrent layer has no packed weights").found(describe(v));
  const auto& parts = v.object().state->sequence().items;
  const auto is_pair = [](const Value& list) {
    return list.is_sequence() && list.sequence().items.size() == 2 && list.sequence().items[0].kind() == Kind::Object &&
           list.sequence().items[1].kind() == Kind::Object;
  };
  if (parts.size() < 5 || !is_pair(parts[4])) return bad_state(v.object());
  RecurrentCell cell;
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
Result<TensorId> run_steps(Call& c, const RecurrentCell& cell, TensorId x, bool is_reversed, std::vector<TensorId>& states) {
  ORKNN_TRY_ASSIGN(const Dims dims, c.need_dims(x, "to write out the steps"));
  const int64_t hidden = cell.state.weight->dims[1], steps = dims[0];
  if (steps > kMaxSteps)
    return c.fail("the sequence is too long for a recurrent layer that quantizes as it runs")
        .expected("at most " + std::to_string(kMaxSteps) + " steps");
  const TensorId from_input = RecurrentCell::product(c, x, cell.input, cell.levels);
  std::vector<TensorId> results(static_cast<size_t>(steps));
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = is_reversed ? steps - 1 - k : k;
    const TensorId given = c.squeeze(c.slice(from_input, 0, t, t + 1), {0}), h = states[0];
    const TensorId from_state = RecurrentCell::product(c, h, cell.state, cell.levels);
    const auto part = [&](TensorId all, int64_t gate) { return c.slice(all, -1, gate * hidden, (gate + 1) * hidden); };
    if (states.size() == 2) {
      const TensorId all = c.add(given, from_state);
      const auto gate = [&](const char* op, int64_t number) { return c.emit(op, {part(all, number)}); };
      states[1] = c.add(c.mul(gate("Sigmoid", 1), states[1]), c.mul(gate("Sigmoid", 0), gate("Tanh", 2)));
      states[0] = c.mul(gate("Sigmoid", 3), c.emit("Tanh", {states[1]}));
    } else {
      const auto both = [&](int64_t number) { return c.emit("Sigmoid", {c.add(part(given, number), part(from_state, number))}); };
      const TensorId reset = both(0), update = both(1),
                     fresh = c.emit("Tanh", {c.add(part(given, 2), c.mul(reset, part(from_state, 2)))});
      states[0] = c.add(fresh, c.mul(update, c.sub(h, fresh)));
    }
    results[static_cast<size_t>(t)] = c.unsqueeze(states[0], {0});
  }
  return c.concat(std::move(results), 0);
}
template <int64_t Gates>
Result<Value> recurrent_dynamic(Call& c) {
  const int64_t layers = c.integer("num_layers"), directions = c.flag("bidirectional") ? 2 : 1;
  const auto& params = c.items("params");
  const std::vector<Value> given = Gates == 4 ? c.items("hx") : std::vector<Value>{c.value("hx")};
  if (given.size() != (Gates == 4 ? 2u : 1u) || layers < 1 || layers > 1000 ||
      params.size() != static_cast<size_t>(layers * directions))
    return invalid_model("a recurrent layer has an unexpected number of weights or states");
  for (const Value& s : given)
    if (!s.is_tensor() || s.tensor().dims.size() != 3 || s.tensor().dims[0] != layers * directions)
      return invalid_model("a state of a recurrent layer has the wrong shape").found(describe(s));
  if (c.rank("input") != 3)
    return invalid_model("a recurrent layer needs [time, batch, features]").found(ir::to_string(c.dims("input")));
  TensorId x = c.tensor("input");
  if (c.flag("batch_first")) x = c.transpose(x, {1, 0, 2});
  std::vector<TensorId> last[2];
  for (int64_t l = 0; l < layers; ++l) {
    std::vector<TensorId> sides;
    for (int64_t d = 0; d < directions; ++d) {
      const int64_t at = l * directions + d;
      ORKNN_TRY_ASSIGN(const RecurrentCell cell, recurrent_cell(c, params[static_cast<size_t>(at)], Gates));
      std::vector<TensorId> states;
      for (const Value& s : given) states.push_back(c.squeeze(c.slice(s.tensor().id, 0, at, at + 1), {0}));
      ORKNN_TRY_ASSIGN(const TensorId y, run_steps(c, cell, x, d == 1, states));
      sides.push_back(y);
      for (size_t i = 0; i < states.size(); ++i) last[i].push_back(c.unsqueeze(states[i], {0}));
    }
    x = c.concat(std::move(sides), 2);
  }
  if (c.flag("batch_first")) x = c.transpose(x, {1, 0, 2});
  ORKNN_TRY_ASSIGN(const Value sequence, c.made(x));
  std::vector<Value> results{sequence};
  for (size_t i = 0; i < given.size(); ++i) {
    ORKNN_TRY_ASSIGN(const Value state, c.made(c.concat(std::move(last[i]), 0)));
    results.push_back(state);
  }
  return c.tuple(std::move(results));
}

Result<Value> embedding_bytes(Call& c) {
  ORKNN_TRY_ASSIGN(const TensorId index, c.as_index(c.handle("indices")));
  ObjectValue& object = c.value("weight").object();
  const Value state = object.state.value_or(Value());
  // (version, [weight], doubles, longs)
  if (!state.is_sequence() || state.sequence().items.size() < 2 || !state.sequence().items[1].is_sequence() ||
      state.sequence().items[1].sequence().items.empty() || !state.sequence().items[1].sequence().items[0].is_tensor())
    return bad_state(object);
  TensorValue& weight = state.sequence().items[1].sequence().items[0].tensor();
  ORKNN_TRY(c.session().refresh(c, weight));
  return c.made(c.gather(weight.id, index, 0));
}

#define ORKNN_OUT "Scalar scale, int zero_point)"
}  // namespace

std::span<const Row> packed_rows() {
  static constexpr Row kRows[] = {
      {"quantized::conv1d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)",
       conv_prepack},
      {"quantized::conv2d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)",
       conv_prepack},
      {"quantized::conv3d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)",
       conv_prepack},
      {"quantized::conv_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups)",
       conv_prepack},
      {"quantized::conv_transpose1d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, "
       "int[] dilation, int groups)",
       conv_transpose_prepack},
      {"quantized::conv_transpose2d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, "
       "int[] dilation, int groups)",
       conv_transpose_prepack},
      {"quantized::conv_transpose3d_prepack(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, "
       "int[] dilation, int groups)",
       conv_transpose_prepack},
      {"quantized::linear_prepack(Tensor weight, Tensor? bias=None)", linear_prepack},
      {"quantized::linear_prepack_fp16(Tensor weight, Tensor? bias=None)", half_prepack},
      {"quantized::linear_unpack(object self)", unpack},
      {"quantized::linear_unpack_fp16(object self)", unpack},
      {"quantized::conv1d_unpack(object self)", unpack},
      {"quantized::conv2d_unpack(object self)", unpack},
      {"quantized::conv3d_unpack(object self)", unpack},
      {"quantized::conv_unpack(object self)", unpack},
      {"ConvPackedParamsBase.unpack(object self)", unpack},
      {"Conv2dPackedParamsBase.unpack(object self)", unpack},
      {"Conv3dPackedParamsBase.unpack(object self)", unpack},
      {"LinearPackedParamsBase.unpack(object self)", unpack},
      {"quantized::conv1d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
      {"quantized::conv2d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
      {"quantized::conv3d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
      {"quantized::conv1d_relu(Tensor self, object packed, " ORKNN_OUT, conv<true>},
      {"quantized::conv2d_relu(Tensor self, object packed, " ORKNN_OUT, conv<true>},
      {"quantized::conv3d_relu(Tensor self, object packed, " ORKNN_OUT, conv<true>},
      // The oldest form repeats the geometry; the packed one counts.
      {"quantized::conv2d(Tensor self, object packed, int[] stride, int[] padding, int[] dilation, int groups, " ORKNN_OUT,
       conv<false>},
      {"quantized::conv2d_relu(Tensor self, object packed, int[] stride, int[] padding, int[] dilation, int groups, " ORKNN_OUT,
       conv<true>},
      {"quantized::conv_transpose1d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
      {"quantized::conv_transpose2d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
      {"quantized::conv_transpose3d(Tensor self, object packed, " ORKNN_OUT, conv<false>},
      {"quantized::conv1d_dynamic(Tensor self, object packed, bool reduce_range=False)", conv_dynamic},
      {"quantized::conv2d_dynamic(Tensor self, object packed, bool reduce_range=False)", conv_dynamic},
      {"quantized::conv3d_dynamic(Tensor self, object packed, bool reduce_range=False)", conv_dynamic},
      {"quantized::linear(Tensor self, object packed, " ORKNN_OUT, linear<false>},
      {"quantized::linear_relu(Tensor self, object packed, " ORKNN_OUT, linear<true>},
      {"quantized::linear_dynamic(Tensor self, object packed, bool reduce_range=False)", linear_dynamic<false>},
      {"quantized::linear_relu_dynamic(Tensor self, object packed, bool reduce_range=False)", linear_dynamic<true>},
      {"quantized::linear_dynamic_fp16(Tensor self, object packed)", linear_half},
      {"quantized_lstm(Tensor input, Tensor[] hx, list params, bool has_biases, int num_layers, float dropout, bool train, bool "
       "bidirectional, bool batch_first, *, int? dtype=None, bool use_dynamic=False)",
       recurrent_dynamic<4>},
      {"quantized_gru(Tensor input, Tensor hx, list params, bool has_biases, int num_layers, float dropout, bool train, bool "
       "bidirectional, bool batch_first)",
       recurrent_dynamic<3>},
      {"quantized::embedding_byte(object weight, Tensor indices, bool pruned_weights=False)", embedding_bytes},
      {"quantized::embedding_4bit(object weight, Tensor indices, bool pruned_weights=False)", embedding_bytes},
  };
  return kRows;
}
#undef ORKNN_OUT

}  // namespace orknn::importer::pytorch
