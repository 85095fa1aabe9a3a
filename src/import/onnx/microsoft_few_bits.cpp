// Operators of the com.microsoft domain with weights of few bits, several to a byte: products, tables, and layers of experts, of
// which each vector is given to a few.
#include <algorithm>

#include "import/onnx/layer.h"

namespace orknn::importer::onnx {
namespace {
using namespace ir;

// --- products

// Numbers of `bits` bits, the lowest bits of a byte first, as bytes; `row_bytes` hold one row of `columns`.
TensorData unpacked(const TensorData& packed, int64_t rows, int64_t columns, int64_t row_bytes, int64_t bits) {
  TensorData out = TensorData::allocate(DType::UInt8, {rows, columns});
  auto* to = static_cast<uint8_t*>(out.mutable_data());
  const uint8_t* from = packed.as<uint8_t>();
  const int64_t per_byte = 8 / bits, low_bits = (1 << bits) - 1;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      *to++ = static_cast<uint8_t>(from[r * row_bytes + c / per_byte] >> (c % per_byte * bits) & low_bits);
  return out;
}

struct FewBits {
  int64_t rows = 0, depth = 0, bits = 0, block = 0, blocks = 0;
};
Result<FewBits> few_bits(Layer& l) {
  FewBits f{l.take_int("N").value_or(0), l.take_int("K").value_or(0), l.take_int("bits").value_or(4),
            l.take_int("block_size").value_or(0)};
  l.take_int("accuracy_level");
  constexpr int64_t kMost = int64_t{1} << 31;
  if (f.rows < 1 || f.depth < 1 || f.block < 8 || f.rows > kMost || f.depth > kMost || f.block > kMost)
    return invalid_model("N, K and block_size do not describe a matrix");
  if (f.bits != 2 && f.bits != 4 && f.bits != 8)
    return unsupported("weights of " + std::to_string(f.bits) + " bits are not supported").expected("2, 4 or 8");
  f.blocks = (f.depth + f.block - 1) / f.block;
  return f;
}

// The zero points of all blocks, as bytes [rows, blocks]; none where they are numbers of the scales' type.
Result<TensorId> packed_zero_points(Layer& l, const FewBits& f) {
  if (!l.has_input(3)) {
    const TensorData middle = convert(TensorData::scalar<int64_t>(int64_t{1} << (f.bits - 1)).view(), DType::UInt8);
    return l.expand(l.add_constant("middle", middle), Dims{f.rows, f.blocks});
  }
  const int64_t row_bytes = (f.blocks * f.bits + 7) / 8;
  const TensorData* stored = l.constant(3);
  if (!stored || stored->dtype() != DType::UInt8 || stored->count() != f.rows * row_bytes)
    return unsupported("these zero points are not supported").expected("constant bytes, the zero points of a row packed");
  return l.add_constant("zero_points", unpacked(*stored, f.rows, f.blocks, row_bytes, f.bits));
}

// Which block's scale and zero point a column has, [depth]: the one it lies in unless the node says otherwise (g_idx).
Result<TensorId> blocks_of_columns(Layer& l, const FewBits& f) {
  if (l.has_input(4)) {
    ORKNN_TRY_ASSIGN(const std::vector<int64_t> stated, l.need_ints(l.input(4), "to scale the weights"));
    const bool fits = std::ssize(stated) == f.depth &&
                      std::ranges::all_of(stated, [&](int64_t block) { return block >= 0 && block < f.blocks; });
    if (!fits) return invalid_model("g_idx does not give a block for every column");
    return l.add_ints("blocks", stated);
  }
  std::vector<int64_t> blocks(static_cast<size_t>(f.depth));
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<int64_t>(i) / f.block;
  return l.add_ints("blocks", blocks);
}

Result<TensorId> matmul_few_bits(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  ORKNN_TRY_ASSIGN(const FewBits f, few_bits(l));
  const TensorData* stored = l.constant(1);
  const int64_t block_bytes = f.block * f.bits / 8;
  if (!stored || stored->dtype() != DType::UInt8 || stored->count() != f.rows * f.blocks * block_bytes)
    return unsupported("the weights are not as N, K and block_size say").expected("constant bytes [N, blocks, bytes of a block]");
  const TensorId data = l.add_constant("weights", unpacked(*stored, f.rows, f.blocks * f.block, f.blocks * block_bytes, f.bits));
  const TensorId scales = l.reshape(l.input(2), {f.rows, f.blocks});
  const bool has_real_zero_points = l.has_input(3) && l.dtype(3) == l.dtype(2);
  TensorId zero_points, weight;
  if (has_real_zero_points) {
    zero_points = l.reshape(l.input(3), {f.rows, f.blocks});
  } else {
    ORKNN_TRY_ASSIGN(zero_points, packed_zero_points(l, f));
  }
  if (has_real_zero_points || l.has_input(4)) {
    ORKNN_TRY_ASSIGN(const TensorId blocks, blocks_of_columns(l, f));
    const auto per_number = [&](TensorId x) { return l.gather(l.cast(x, l.dtype(2)), blocks, 1); };
    const TensorId numbers = l.cast(l.slice(data, 1, 0, f.depth), l.dtype(2));
    weight = l.mul(l.sub(numbers, per_number(zero_points)), per_number(scales));
  } else {
    weight = l.emit_kept("DequantizeLinear", {data, scales, zero_points}, {{"axis", int64_t{1}}, {"block_size", f.block}});
    if (f.blocks * f.block != f.depth) weight = l.slice(weight, 1, 0, f.depth);
  }
  const TensorId y = l.matmul(l.input(0), l.transpose(l.cast(weight, l.dtype(0)), {1, 0}));
  return l.has_input(5) ? l.add(y, l.input(5)) : y;
}

// The numbers that four bits stand for (bitsandbytes): floating-point ones, or quantiles of the normal distribution.
constexpr float kFloatOfFourBits[] = {0.0f,  0.005208333f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
                                      -0.0f, -0.005208333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr float kNormalOfFourBits[] = {-1.0f,
                                       -0.6961928009986877f,
                                       -0.5250730514526367f,
                                       -0.39491748809814453f,
                                       -0.28444138169288635f,
                                       -0.18477343022823334f,
                                       -0.09105003625154495f,
                                       0.0f,
                                       0.07958029955625534f,
                                       0.16093020141124725f,
                                       0.24611230194568634f,
                                       0.33791524171829224f,
                                       0.44070982933044434f,
                                       0.5626170039176941f,
                                       0.7229568362236023f,
                                       1.0f};

// Weights [N, K] as one run of numbers, the first of a byte in its high bits; a scale per block of the run.
Result<TensorId> matmul_table_of_four_bits(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  const int64_t kind = l.take_int("quant_type").value_or(1);
  l.node.attributes.set("bits", int64_t{4});
  ORKNN_TRY_ASSIGN(const FewBits f, few_bits(l));
  l.take_int("training_mode");
  if (!l.take_flag("transB", true)) return unsupported("weights that are not transposed are not supported");
  if (kind != 0 && kind != 1)
    return unsupported("this quant_type is not supported").expected("0 or 1").found(std::to_string(kind));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(Dims{f.rows, f.depth}));
  const int64_t blocks = (count + f.block - 1) / f.block;
  const TensorData* stored = l.constant(1);
  ORKNN_TRY_ASSIGN(const std::vector<double> scales, l.need_doubles(l.input(2), "to scale the weights"));
  if (!stored || stored->dtype() != DType::UInt8 || stored->count() != (count + 1) / 2 || std::ssize(scales) != blocks)
    return unsupported("the weights are not as N, K and block_size say").expected("constant bytes, and a scale per block");
  const auto& table = kind == 0 ? kFloatOfFourBits : kNormalOfFourBits;
  const uint8_t* from = stored->as<uint8_t>();
  std::vector<float> weights(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const int shift = i % 2 == 0 ? 4 : 0;
    weights[static_cast<size_t>(i)] =
        table[from[i / 2] >> shift & 15] * static_cast<float>(scales[static_cast<size_t>(i / f.block)]);
  }
  const TensorId weight = l.add_constant("weights", TensorData::from<float>({f.rows, f.depth}, weights));
  return l.matmul(l.input(0), l.transpose(l.cast(weight, l.dtype(0)), {1, 0}));
}

// A table of numbers of few bits whose rows are picked before they are scaled. Bytes hold 8 / bits numbers along the last axis.
Result<TensorId> gather_few_bits(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2}));
  const int64_t bits = l.take_int("bits").value_or(4), block = l.take_int("block_size").value_or(128);
  ORKNN_TRY_ASSIGN(const Dims packed, l.need_dims(l.input(0), "to unpack it"));
  ORKNN_TRY_ASSIGN(const int64_t picked_rank, l.need_rank(l.input(1), "to pick by it"));
  const int64_t rank = std::ssize(packed);
  ORKNN_TRY_ASSIGN(const int64_t gathered, normalize_axis(l.take_int("gather_axis").value_or(0), rank));
  ORKNN_TRY_ASSIGN(const int64_t quantized, normalize_axis(l.take_int("quantize_axis").value_or(1), rank));
  if (gathered == quantized) return unsupported("picking along the axis of the blocks is not supported");
  if (block < 1) return invalid_model("illegal block_size").found(std::to_string(block));
  const bool holds_bytes = l.dtype(0) == DType::UInt8, is_packed = holds_bytes && bits < 8;
  if (holds_bytes && bits != 2 && bits != 4 && bits != 8)
    return unsupported("weights of " + std::to_string(bits) + " bits are not supported").expected("2, 4 or 8");
  const auto numbers = [&](size_t i, std::string_view role) -> Result<TensorId> {
    if (!is_packed) return l.input(i);
    const TensorData* stored = l.constant(i);
    if (!stored || stored->dtype() != DType::UInt8 || stored->dims().empty())
      return unsupported("packed numbers that are computed are not supported").expected("constant bytes");
    Dims dims = stored->dims();
    const int64_t row_bytes = dims.back(), rows = row_bytes > 0 ? stored->count() / row_bytes : 0, columns = row_bytes * 8 / bits;
    dims.back() = columns;
    return l.add_constant(role, unpacked(*stored, rows, columns, row_bytes, bits).reshaped(dims));
  };
  const auto rows_of = [&](TensorId x) { return l.gather(x, l.input(1), gathered); };
  ORKNN_TRY_ASSIGN(const TensorId data, numbers(0, "numbers"));
  const TensorId scales = rows_of(l.input(2));
  std::vector<TensorId> inputs{rows_of(data), scales};
  if (l.has_input(3)) {
    ORKNN_TRY_ASSIGN(TensorId zero_points, numbers(3, "zero_points"));
    ORKNN_TRY_ASSIGN(const Dims of_scales, l.need_dims(l.input(2), "to cut the zero points"));
    if (std::ssize(of_scales) != rank)
      return invalid_model("the scales have the wrong rank").expected(std::to_string(rank)).found(ir::to_string(of_scales));
    zero_points = l.slice(zero_points, rank - 1, 0, of_scales.back());  // the last byte of a row may be half full
    inputs.push_back(rows_of(zero_points));
  } else if (holds_bytes) {
    const TensorData middle = convert(TensorData::scalar<int64_t>(int64_t{1} << (bits - 1)).view(), DType::UInt8);
    inputs.push_back(l.emit("Expand", {l.add_constant("middle", middle), l.unary("Shape", scales)}));
  }
  const int64_t axis = quantized > gathered ? quantized + picked_rank - 1 : quantized;
  return l.emit_kept("DequantizeLinear", std::move(inputs), {{"axis", axis}, {"block_size", block}});
}

// --- experts: a router says for each vector how good each expert is; the best ones are asked, the sum of what they say is the
// result

struct ExpertLayer {
  TensorId first, second, gate;                 // weights [experts, out, in]; gate: of a third product, none without one
  TensorId first_bias, second_bias, gate_bias;  // [experts, out], may be none
};

// What comes between the two products of an expert.
Result<TensorId> expert_activation(Layer& l, TensorId x, bool has_gate) {
  const std::string name = l.take_string("activation_type").value_or("relu");
  const double alpha = l.take_float("activation_alpha").value_or(1), beta = l.take_float("activation_beta").value_or(0);
  const int64_t fusion = l.take_int("swiglu_fusion").value_or(0);
  const auto limit = l.take_float("swiglu_limit");
  if (name == "relu") return l.unary("Relu", x);
  if (name == "gelu") return l.emit("Gelu", {x}, {{"approximate", std::string("tanh")}});
  if (name == "silu") return l.unary("Swish", x);
  if (name == "identity") return x;
  if (name != "swiglu" || has_gate || (fusion != 1 && fusion != 2))
    return unsupported("this activation of experts is not supported")
        .expected("relu, gelu, silu, identity, or swiglu with swiglu_fusion 1 or 2")
        .found(name);
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to split it into gate and value"));
  const int64_t half = dims.back() / 2, axis = std::ssize(dims) - 1;
  if (dims.back() % 2 != 0) return invalid_model("the columns do not divide into gate and value").found(ir::to_string(dims));
  const auto part = [&](int64_t i) {
    return fusion == 1 ? l.slice(x, axis, i, dims.back(), 2) : l.slice(x, axis, i * half, (i + 1) * half);
  };
  TensorId gate = part(0), value = part(1);
  if (limit) {
    gate = l.clip(gate, std::nullopt, *limit);
    value = l.clip(value, -*limit, *limit);
  }
  return l.mul(l.emit("Swish", {gate}, {{"alpha", alpha}}), beta == 0 ? value : l.add(value, beta));
}

// How much each expert counts, [vectors, experts]: 0 for all but the best `k`.
Result<TensorId> expert_shares(Layer& l, TensorId scores, int64_t experts, bool normalizes) {
  const int64_t k = l.take_int("k").value_or(1);
  if (k < 1 || k > experts)
    return invalid_model("attribute 'k' is out of range").expected("1 to " + std::to_string(experts)).found(std::to_string(k));
  scores = l.softmax(scores, 1);
  const std::vector<TensorId> best =
      l.emit_all("TopK", {scores, l.add_ints("k", {k})}, {{"axis", int64_t{1}}, {"largest", int64_t{1}}}, 2);
  const TensorId shares = normalizes ? l.div(best[0], l.reduce("ReduceSum", best[0], {1}, true)) : best[0];
  return l.emit("ScatterElements", {l.full_like(scores, 0), best[1], shares}, {{"axis", int64_t{1}}});
}

Result<TensorId> asked_experts(Layer& l, TensorId x, TensorId router, const ExpertLayer& layer, bool normalizes) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to ask experts"));
  ORKNN_TRY_ASSIGN(const Dims weights, l.need_dims(layer.first, "to ask experts"));
  if (dims.size() < 2 || weights.size() != 3)
    return invalid_model("vectors or experts have the wrong rank").found(ir::to_string(dims) + " and " + ir::to_string(weights));
  if (l.take_flag("use_sparse_mixer")) return unsupported("use_sparse_mixer is not supported");
  const int64_t experts = weights[0], width = dims.back();
  const auto product = [&](TensorId of, TensorId weight, TensorId bias) {
    const TensorId y = l.matmul(of, l.swap_axes(weight, -1, -2));  // [experts, vectors, out]
    return bias.is_none() ? y : l.add(y, l.unsqueeze(bias, {1}));
  };
  ORKNN_TRY_ASSIGN(const TensorId shares, expert_shares(l, l.reshape(router, {-1, experts}), experts, normalizes));
  const TensorId vectors = l.reshape(x, {1, -1, width});
  ORKNN_TRY_ASSIGN(TensorId hidden, expert_activation(l, product(vectors, layer.first, layer.first_bias), !layer.gate.is_none()));
  if (!layer.gate.is_none()) hidden = l.mul(hidden, product(vectors, layer.gate, layer.gate_bias));
  const TensorId said = product(hidden, layer.second, layer.second_bias);
  const TensorId weighted = l.mul(said, l.unsqueeze(l.transpose(shares, {1, 0}), {2}));
  return l.reshape(l.reduce("ReduceSum", weighted, {0}, false), dims);
}

Result<TensorId> experts(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1, 2, 4}));
  const bool normalizes = l.take_flag("normalize_routing_weights");
  return asked_experts(l, l.input(0), l.input(1), {l.input(2), l.input(4), l.input(6), l.input(3), l.input(5), l.input(7)},
                       normalizes);
}

// Weights [experts, out, bytes] with a scale per row, or per block of it, and zero points packed like them.
Result<TensorId> expert_weights(Layer& l, size_t data, size_t zero_point, int64_t bits, int64_t block) {
  const size_t scale = data + 1;
  ORKNN_TRY(l.need_inputs({data, scale}));
  if (bits != 2 && bits != 4 && bits != 8)
    return unsupported("weights of " + std::to_string(bits) + " bits are not supported").expected("2, 4 or 8");
  const TensorData* stored = l.constant(data);
  if (!stored || stored->dtype() != DType::UInt8 || stored->dims().size() != 3)
    return unsupported("the weights of the experts are not as expected").expected("constant bytes [experts, out, bytes]");
  const int64_t groups = stored->dims()[0], rows = stored->dims()[1], row_bytes = stored->dims()[2];
  const int64_t columns = row_bytes * 8 / bits;
  if (block != 0 && (block < 1 || columns % block != 0))
    return invalid_model("block_size does not divide the weights").found(std::to_string(block));
  const int64_t blocks = block == 0 ? 1 : columns / block;
  const auto blocked = [&](TensorId x) { return l.reshape(x, {groups, rows, blocks}); };
  TensorData zeros = TensorData::allocate(DType::UInt8, {groups, rows, blocks});
  if (l.has_input(zero_point)) {
    // One per row: packed along the rows. Several: along the blocks of a row.
    const int64_t runs = block == 0 ? groups : groups * rows, length = block == 0 ? rows : blocks;
    const int64_t run_bytes = (length * bits + 7) / 8;
    const TensorData* packed = l.constant(zero_point);
    if (!packed || packed->dtype() != DType::UInt8 || packed->count() != runs * run_bytes)
      return unsupported("these zero points are not supported").expected("constant bytes, packed like the weights");
    zeros = unpacked(*packed, runs, length, run_bytes, bits).reshaped({groups, rows, blocks});
  } else {
    std::fill_n(static_cast<uint8_t*>(zeros.mutable_data()), zeros.count(), static_cast<uint8_t>(1 << (bits - 1)));
  }
  const TensorId numbers =
      l.add_constant("weights", unpacked(*stored, groups * rows, columns, row_bytes, bits).reshaped({groups, rows, columns}));
  const TensorId scales = blocked(l.cast(l.input(scale), DType::Float32)), zero_points = l.add_constant("zero_points", zeros);
  const TensorId real =
      l.emit_kept("DequantizeLinear", {numbers, scales, zero_points}, {{"axis", int64_t{2}}, {"block_size", columns / blocks}});
  return l.cast(real, l.dtype(0));
}

Result<TensorId> quantized_experts(Layer& l) {
  ORKNN_TRY(l.need_inputs({0, 1}));
  const int64_t bits = l.take_int("expert_weight_bits").value_or(4), block = l.take_int("block_size").value_or(0);
  if (l.has_input(14)) return unsupported("weights of the router's own are not supported");
  if (l.take_int("weights_prepacked").value_or(0) > 0) return unsupported("weights in the order of a device are not supported");
  if (const auto kind = l.take_string("quant_type"); kind && *kind != "int")
    return unsupported("this quant_type is not supported").expected("int").found(*kind);
  l.take_int("accuracy_level");             // how fast it is elsewhere
  l.take_int("normalize_routing_weights");  // ONNX Runtime always does
  ExpertLayer layer{.first_bias = l.input(4), .second_bias = l.input(7), .gate_bias = l.input(10)};
  const auto weights = [&](const std::string& name, size_t data, size_t zero_point) {
    return expert_weights(l, data, zero_point, l.take_int(name + "_expert_weight_bits").value_or(bits), block);
  };
  ORKNN_TRY_ASSIGN(layer.first, weights("fc1", 2, 11));
  ORKNN_TRY_ASSIGN(layer.second, weights("fc2", 5, 12));
  if (l.has_input(8)) {
    ORKNN_TRY_ASSIGN(layer.gate, weights("fc3", 8, 13));
  }
  return asked_experts(l, l.input(0), l.input(1), layer, true);
}

}  // namespace

std::span<const Row> microsoft_few_bits_rows() {
  static const Row rows[] = {
      {"com.microsoft:MatMulNBits", matmul_few_bits},
      {"com.microsoft:MatMulBnb4", matmul_table_of_four_bits},
      {"com.microsoft:GatherBlockQuantized", gather_few_bits},
      {"com.microsoft:MoE", experts},
      {"com.microsoft:QMoE", quantized_experts},
  };
  return rows;
}

}  // namespace orknn::importer::onnx
