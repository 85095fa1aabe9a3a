// Fake quantization of trained graphs becomes QuantizeLinear and DequantizeLinear with the graph's own ranges; stored integers
// become DequantizeLinear where their scale and zero point are whole, and arithmetic where they are not.
#include <algorithm>
#include <cmath>

#include "import/lower/fake_quant.h"
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
Result<TensorId> within(Layer& l, TensorId x, const std::vector<double>& least, const std::vector<double>& most,
                        std::optional<int64_t> axis) {
  const int64_t bits = l.int_or("num_bits", 8);
  if (least.size() != most.size() || least.empty() || (!axis && least.size() != 1))
    return invalid_model("min and max do not fit").found(std::to_string(least.size()) + " and " + std::to_string(most.size()));
  std::vector<IntegerGrid> grids;
  for (size_t i = 0; i < least.size(); ++i) {
    ORKNN_TRY_ASSIGN(const IntegerGrid g, nudged_grid(least[i], most[i], bits, l.bool_or("narrow_range", false)));
    grids.push_back(g);
  }
  return fake_quant(l, x, grids, axis, bits);
}
Result<TensorId> within_attributes(Layer& l, TensorId x) {
  return within(l, x, {l.float_or("min", -6)}, {l.float_or("max", 6)}, std::nullopt);
}
Result<TensorId> within_inputs(Layer& l, TensorId x, std::optional<int64_t> axis) {
  ORKNN_TRY_ASSIGN(const auto least, l.doubles(1, "to quantize"));
  ORKNN_TRY_ASSIGN(const auto most, l.doubles(2, "to quantize"));
  return within(l, x, least, most, axis);
}
Result<TensorId> within_one_range(Layer& l, TensorId x) { return within_inputs(l, x, std::nullopt); }
Result<TensorId> within_channels(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to find its channels"));
  return within_inputs(l, x, rank - 1);
}

// QuantizeAndDequantizeV2..V4 with a given range: symmetric when signed.
Result<TensorId> quantize_and_dequantize(Layer& l, TensorId x) {
  if (!l.bool_or("range_given", false))
    return unsupported("a range taken from the data is not supported").hint("give the range while training");
  ORKNN_TRY_ASSIGN(const double least, l.number(1, "to quantize"));
  ORKNN_TRY_ASSIGN(const double most, l.number(2, "to quantize"));
  int64_t bits = l.int_or("num_bits", 8);
  if (l.op() == "QuantizeAndDequantizeV3" && l.operand_count() > 3) {
    ORKNN_TRY_ASSIGN(bits, l.integer(3, "to quantize"));
  }
  if (bits < 2 || bits > 16) return invalid_model("num_bits is out of range").expected("2 to 16").found(std::to_string(bits));
  const bool is_signed = l.bool_or("signed_input", true);
  const double high = static_cast<double>(is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1);
  const double low = is_signed ? (l.bool_or("narrow_range", false) ? -high : -high - 1) : 0;
  // The side that needs the larger steps decides.
  const double from_least = low != 0 && least < 0 ? least / low : 0, from_most = most > 0 ? most / high : 0;
  IntegerGrid g;
  g.scale = std::max(from_least, from_most);
  if (!(g.scale > 0) || !std::isfinite(g.scale)) g.scale = 1;
  const int64_t offset = is_signed ? int64_t{1} << (bits <= 8 ? 7 : 15) : 0;
  g.zero_point = offset;
  g.low = static_cast<int64_t>(low) + offset;
  g.high = static_cast<int64_t>(high) + offset;
  return fake_quant(l, x, {g}, std::nullopt, bits);
}

// Integers and the real numbers their least and greatest stand for.
Result<TensorId> dequantize(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const double least, l.number(1, "to dequantize"));
  ORKNN_TRY_ASSIGN(const double most, l.number(2, "to dequantize"));
  const DType dtype = l.dtype_of(x);
  if (!is_integer(dtype)) return invalid_model("integers are needed").found(std::string(dtype_name(dtype)));
  const std::string_view mode = l.string_or("mode", "MIN_COMBINED");
  const auto low = static_cast<double>(dtype_min(dtype)), high = static_cast<double>(dtype_max(dtype));
  const auto linear = [&](double scale, double zero_point) {
    const TensorId s = l.add_scalar("scale", scale), z = l.add_scalar("zero_point", zero_point, dtype);
    return l.emit_kept("DequantizeLinear", {x, s, z});
  };
  if (mode == "SCALED") {
    const double least_integer = l.bool_or("narrow_range", false) ? low + 1 : low;
    const double scale = std::max(low < 0 ? least / least_integer : 0.0, most / high);
    return linear(scale, 0);
  }
  if (mode != "MIN_FIRST" && mode != "MIN_COMBINED")
    return unsupported("the mode is not supported").expected("MIN_COMBINED, MIN_FIRST or SCALED").found(std::string(mode));
  const double scale = (most - least) / (high - low);
  double offset = least;
  if (mode == "MIN_FIRST" && scale > 0) {
    const double steps = std::round(least / scale);
    if (const double zero_point = low - steps; zero_point >= low && zero_point <= high) return linear(scale, zero_point);
    offset = steps * scale;
  }
  // (x - low) * scale + offset, with the constants joined.
  return l.add(l.mul(l.cast(x, DType::Float32), scale), offset - low * scale);
}

// Real numbers to integers with a fixed range: MIN_FIRST and SCALED have whole zero points; MIN_COMBINED is brought to one.
Result<std::vector<TensorId>> quantize(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(double least, l.number(1, "to quantize"));
  ORKNN_TRY_ASSIGN(double most, l.number(2, "to quantize"));
  const DType dtype = l.dtype_or("T", DType::UInt8);
  if (!is_integer(dtype) || dtype_bytes(dtype) > 2)
    return unsupported("integers of this type are not supported").found(std::string(dtype_name(dtype)));
  const std::string_view mode = l.string_or("mode", "MIN_COMBINED");
  const auto low = static_cast<double>(dtype_min(dtype)), high = static_cast<double>(dtype_max(dtype));
  double scale = 1, zero_point = 0;
  if (mode == "SCALED") {
    scale = std::max(low < 0 ? least / low : 0.0, most / high);
    least = low * scale;
    most = high * scale;
  } else {
    least = std::min(least, 0.0);
    most = std::max(most, least + 1e-6);
    scale = (most - least) / (high - low);
    zero_point = std::clamp(std::round(low - least / scale), low, high);
  }
  if (!(scale > 0) || !std::isfinite(scale))
    return invalid_model("the range is not valid").found(std::to_string(least) + " to " + std::to_string(most));
  const TensorId step = l.add_scalar("scale", scale), zero = l.add_scalar("zero_point", zero_point, dtype);
  return std::vector{l.emit_kept("QuantizeLinear", {x, step, zero}), l.add_scalar("least", least), l.add_scalar("most", most)};
}
}  // namespace

std::span<const Row> quantized_rows() {
  static const Row rows[] = {
      {"FakeQuantWithMinMaxArgs", within_attributes},
      {"FakeQuantWithMinMaxVars", within_one_range},
      {"FakeQuantWithMinMaxVarsPerChannel", within_channels},
      {"QuantizeAndDequantizeV2|QuantizeAndDequantizeV3|QuantizeAndDequantizeV4", quantize_and_dequantize},
      {"Dequantize", dequantize},
      {"QuantizeV2", quantize},
  };
  return rows;
}

}  // namespace orknn::importer::tensorflow
