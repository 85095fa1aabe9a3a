// Fake quantization of trained graphs becomes QuantizeLinear and DequantizeLinear with the graph's own ranges; stored integers
// become DequantizeLinear where their scale and zero point are whole, and arithmetic where they are not.
#include <algorithm>
#include <cmath>

#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
using namespace ir;

namespace {
// The grid TensorFlow snaps a range to: zero falls on a whole number.
struct Grid {
  double scale = 1;
  int64_t zero_point = 0;  // in the integers low..high
  int64_t low = 0, high = 255;
  double least() const { return static_cast<double>(low - zero_point) * scale; }
  double most() const { return static_cast<double>(high - zero_point) * scale; }
};

Result<Grid> nudged(double least, double most, int64_t bits, bool narrow) {
  if (bits < 2 || bits > 16) return invalid_model("num_bits is out of range").expected("2 to 16").found(std::to_string(bits));
  if (!(least <= most) || !std::isfinite(least) || !std::isfinite(most))
    return invalid_model("the range is not valid").found(std::to_string(least) + " to " + std::to_string(most));
  Grid g;
  g.low = narrow ? 1 : 0;
  g.high = (int64_t{1} << bits) - 1;
  const auto levels = static_cast<float>(g.high - g.low);
  // In float, as TensorFlow computes it: the zero point may hang on the last bit.
  const float scale = (static_cast<float>(most) - static_cast<float>(least)) / levels;
  if (!(scale > 0)) {
    g.scale = 1;
    g.zero_point = g.low;
    return g;
  }
  const float zero = static_cast<float>(g.low) - static_cast<float>(least) / scale;
  g.scale = static_cast<double>(scale);
  g.zero_point = zero < static_cast<float>(g.low)    ? g.low
                 : zero > static_cast<float>(g.high) ? g.high
                                                     : static_cast<int64_t>(std::round(zero));
  return g;
}

// Values go through signed integers: those of the grid less 128 (or 32768 for more than 8 bits). Ranges narrower than the
// integers are cut first.
TensorId quantize_and_back(Layer& layer, TensorId x, const std::vector<Grid>& grids, std::optional<int64_t> axis, int64_t bits) {
  const DType dtype = bits <= 8 ? DType::Int8 : DType::Int16;
  const int64_t shift = bits <= 8 ? 128 : 32768, full = bits <= 8 ? 255 : 65535;
  const Dims dims = axis ? Dims{static_cast<int64_t>(grids.size())} : Dims{};
  std::vector<float> scales, least, most;
  std::vector<int64_t> zero_points;
  bool cuts = false;
  for (const Grid& g : grids) {
    scales.push_back(static_cast<float>(g.scale));
    zero_points.push_back(g.zero_point - shift);
    least.push_back(static_cast<float>(g.least()));
    most.push_back(static_cast<float>(g.most()));
    cuts |= g.low != 0 || g.high != full;
  }
  if (cuts) {
    const TensorId low = layer.add_constant("least", TensorData::from<float>(dims, least)),
                   high = layer.add_constant("most", TensorData::from<float>(dims, most));
    x = axis ? layer.emit("Min", {layer.emit("Max", {x, low}), high}) : layer.emit("Clip", {x, low, high});
  }
  const TensorId scale = layer.add_constant("scale", TensorData::from<float>(dims, scales));
  const TensorId zero_point =
      layer.add_constant("zero_point", convert(TensorData::from<int64_t>(dims, zero_points).view(), dtype));
  Attributes attributes;
  if (axis) attributes.set("axis", *axis);
  const TensorId q = layer.emit_kept("QuantizeLinear", {x, scale, zero_point}, attributes);
  return layer.emit_kept("DequantizeLinear", {q, scale, zero_point}, attributes);
}

Status lower_fake_quant(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  const int64_t bits = layer.int_or("num_bits", 8);
  const bool narrow = layer.bool_or("narrow_range", false), per_channel = layer.op().ends_with("PerChannel");
  std::vector<double> least{layer.float_or("min", -6)}, most{layer.float_or("max", 6)};
  if (!layer.op().ends_with("Args")) {
    ORKNN_TRY_ASSIGN(least, layer.doubles(1, "to quantize"));
    ORKNN_TRY_ASSIGN(most, layer.doubles(2, "to quantize"));
  }
  if (least.size() != most.size() || least.empty() || (!per_channel && least.size() != 1))
    return invalid_model("min and max do not fit").found(std::to_string(least.size()) + " and " + std::to_string(most.size()));
  std::vector<Grid> grids;
  for (size_t i = 0; i < least.size(); ++i) {
    ORKNN_TRY_ASSIGN(const Grid g, nudged(least[i], most[i], bits, narrow));
    grids.push_back(g);
  }
  std::optional<int64_t> axis;
  if (per_channel) {
    ORKNN_TRY_ASSIGN(const int64_t rank, layer.need_rank(x, "to find its channels"));
    axis = rank - 1;
  }
  layer.set(quantize_and_back(layer, x, grids, axis, bits));
  return {};
}

// QuantizeAndDequantizeV2..V4 with a given range: symmetric when signed.
Status lower_quantize_and_dequantize(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  if (!layer.bool_or("range_given", false))
    return unsupported("a range taken from the data is not supported").hint("give the range while training");
  ORKNN_TRY_ASSIGN(const double least, layer.number(1, "to quantize"));
  ORKNN_TRY_ASSIGN(const double most, layer.number(2, "to quantize"));
  int64_t bits = layer.int_or("num_bits", 8);
  if (layer.op() == "QuantizeAndDequantizeV3" && layer.input_count() > 3) {
    ORKNN_TRY_ASSIGN(bits, layer.integer(3, "to quantize"));
  }
  if (bits < 2 || bits > 16) return invalid_model("num_bits is out of range").expected("2 to 16").found(std::to_string(bits));
  const bool is_signed = layer.bool_or("signed_input", true);
  const double high = static_cast<double>(is_signed ? (int64_t{1} << (bits - 1)) - 1 : (int64_t{1} << bits) - 1);
  const double low = is_signed ? (layer.bool_or("narrow_range", false) ? -high : -high - 1) : 0;
  // The side that needs the larger steps decides.
  const double from_least = low != 0 && least < 0 ? least / low : 0, from_most = most > 0 ? most / high : 0;
  Grid g;
  g.scale = std::max(from_least, from_most);
  if (!(g.scale > 0) || !std::isfinite(g.scale)) g.scale = 1;
  const int64_t offset = is_signed ? int64_t{1} << (bits <= 8 ? 7 : 15) : 0;
  g.zero_point = offset;
  g.low = static_cast<int64_t>(low) + offset;
  g.high = static_cast<int64_t>(high) + offset;
  layer.set(quantize_and_back(layer, x, {g}, std::nullopt, bits));
  return {};
}

// Integers and the real numbers their least and greatest stand for.
Status lower_dequantize(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(const double least, layer.number(1, "to dequantize"));
  ORKNN_TRY_ASSIGN(const double most, layer.number(2, "to dequantize"));
  const DType dtype = layer.dtype_of(x);
  if (!is_integer(dtype)) return invalid_model("integers are needed").found(std::string(dtype_name(dtype)));
  const std::string_view mode = layer.string_or("mode", "MIN_COMBINED");
  const auto low = static_cast<double>(dtype_min(dtype)), high = static_cast<double>(dtype_max(dtype));
  const auto linear = [&](double scale, double zero_point) {
    const TensorId s = layer.add_scalar("scale", scale), z = layer.add_scalar("zero_point", zero_point, dtype);
    return layer.emit_kept("DequantizeLinear", {x, s, z});
  };
  if (mode == "SCALED") {
    const double least_integer = layer.bool_or("narrow_range", false) ? low + 1 : low;
    const double scale = std::max(low < 0 ? least / least_integer : 0.0, most / high);
    layer.set(linear(scale, 0));
    return {};
  }
  if (mode != "MIN_FIRST" && mode != "MIN_COMBINED")
    return unsupported("the mode is not supported").expected("MIN_COMBINED, MIN_FIRST or SCALED").found(std::string(mode));
  const double scale = (most - least) / (high - low);
  double offset = least;
  if (mode == "MIN_FIRST" && scale > 0) {
    const double steps = std::round(least / scale);
    if (const double zero_point = low - steps; zero_point >= low && zero_point <= high) {
      layer.set(linear(scale, zero_point));
      return {};
    }
    offset = steps * scale;
  }
  // (x - low) * scale + offset, with the constants joined.
  const TensorId scaled = layer.emit("Mul", {layer.cast(x, DType::Float32), layer.add_scalar("scale", scale)});
  layer.set(layer.emit("Add", {scaled, layer.add_scalar("offset", offset - low * scale)}));
  return {};
}

// Real numbers to integers with a fixed range: MIN_FIRST and SCALED have whole zero points; MIN_COMBINED is brought to one.
Status lower_quantize(Layer& layer) {
  ORKNN_TRY_ASSIGN(const TensorId x, layer.input(0));
  ORKNN_TRY_ASSIGN(double least, layer.number(1, "to quantize"));
  ORKNN_TRY_ASSIGN(double most, layer.number(2, "to quantize"));
  const DType dtype = layer.dtype_or("T", DType::UInt8);
  if (!is_integer(dtype) || dtype_bytes(dtype) > 2)
    return unsupported("integers of this type are not supported").found(std::string(dtype_name(dtype)));
  const std::string_view mode = layer.string_or("mode", "MIN_COMBINED");
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
  layer.set(0, layer.emit_kept("QuantizeLinear",
                               {x, layer.add_scalar("scale", scale), layer.add_scalar("zero_point", zero_point, dtype)}));
  layer.set(1, layer.add_scalar("least", least));
  layer.set(2, layer.add_scalar("most", most));
  return {};
}
}  // namespace

std::span<const Row> quantization_rows() {
  static constexpr Row kRows[] = {
      {"FakeQuantWithMinMaxArgs", lower_fake_quant},
      {"FakeQuantWithMinMaxVars", lower_fake_quant},
      {"FakeQuantWithMinMaxVarsPerChannel", lower_fake_quant},
      {"QuantizeAndDequantizeV2", lower_quantize_and_dequantize},
      {"QuantizeAndDequantizeV3", lower_quantize_and_dequantize},
      {"QuantizeAndDequantizeV4", lower_quantize_and_dequantize},
      {"Dequantize", lower_dequantize},
      {"QuantizeV2", lower_quantize},
  };
  return kRows;
}

}  // namespace orknn::importer::tensorflow
