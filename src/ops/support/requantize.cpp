#include "ops/support/requantize.h"

#include <algorithm>

#include "ops/support/elementwise.h"

namespace orknn::ops {
using namespace ir;

std::optional<Multiplier> make_multiplier(double ratio, int64_t max_factor) {
  if (!(ratio >= 0) || !std::isfinite(ratio)) return std::nullopt;
  if (ratio == 0) return Multiplier{};
  int exponent = 0;
  std::frexp(static_cast<double>(max_factor), &exponent);
  const int bits = exponent;
  static_cast<void>(std::frexp(ratio, &exponent));
  int64_t shift = bits - exponent;
  auto factor = [&] { return static_cast<int64_t>(std::nearbyint(std::ldexp(ratio, static_cast<int>(shift)))); };
  if (shift <= kMaxShift && factor() > max_factor) --shift;
  if (shift < 1) return std::nullopt;
  if (shift > kMaxShift) return Multiplier{};
  return Multiplier{factor(), shift};
}

std::optional<Multiplier> make_multiplier(double ratio) { return make_multiplier(ratio, (int64_t{1} << kMultiplierBits) - 1); }

std::vector<AttributeDef> output_stage_attributes(std::vector<AttributeDef> more) {
  std::vector<AttributeDef> list{required(attr_ints("multiplier")),
                                 required(attr_ints("shift")),
                                 attr_int("y_zero_point", 0),
                                 required(attr_int("low")),
                                 required(attr_int("high")),
                                 attr_int("y_type", static_cast<int64_t>(DType::Int8)),
                                 attr_strings("fused")};
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  return list;
}

std::vector<AttributeDef> slope_attributes(std::vector<AttributeDef> more) {
  more.push_back(attr_ints("slope_multiplier"));
  more.push_back(attr_int("slope_shift", 0));
  return output_stage_attributes(std::move(more));
}

std::vector<AttributeDef> product_stage_attributes(std::vector<AttributeDef> more) {
  more.insert(more.end(), {attr_ints("channel_multiplier"), attr_int("channel_shift", 0), attr_int("add_zero_point", 0),
                           attr_int("add_multiplier", 0), attr_int("add_shift", 0)});
  return slope_attributes(std::move(more));
}

StageLimits product_limits(DType a, DType b, int64_t channels) {
  const bool wide = has_wide_sums(a, b);
  return {.channels = channels, .max_factor = wide ? kMaxWideFactor : int64_t{1} << 30, .wide = wide};
}

namespace {
Status check_factors(std::string_view what, std::span<const int64_t> factors, int64_t most) {
  for (int64_t f : factors)
    if (f < -most - 1 || f > most)
      return invalid_model(std::string(what) + " is out of range")
          .expected("at most " + std::to_string(most))
          .found(std::to_string(f));
  return {};
}

Status check_add_factor(std::string_view what, int64_t factor) {
  if (factor >= 0 && factor <= kMaxAddFactor) return {};
  return invalid_model(std::string(what) + " is out of range")
      .expected("0 to " + std::to_string(kMaxAddFactor))
      .found(std::to_string(factor));
}

Status check_shift(std::string_view what, int64_t shift, int64_t least) {
  if (shift >= least && shift <= kMaxShift) return {};
  return invalid_model(std::string(what) + " is out of range")
      .expected(std::to_string(least) + " to " + std::to_string(kMaxShift))
      .found(std::to_string(shift));
}

Status check_number(std::string_view what, size_t found, int64_t expected, bool one_will_do) {
  if (static_cast<int64_t>(found) == expected || (one_will_do && found == 1)) return {};
  return invalid_model(std::string(what) + " has the wrong number of values")
      .expected((one_will_do ? "1 or " : "") + std::to_string(expected))
      .found(std::to_string(found));
}

// Factors of single channels, slopes and the added operand; an op without them has no such attributes.
Status read_product_stages(const NodeReader& c, const StageLimits& limits, OutputStage& s) {
  if (const auto* factors = c.find<std::vector<int64_t>>("channel_multiplier")) {
    s.channel_factor = *factors;
    s.channel_shift = c.get_int("channel_shift");
    s.limit = INT32_MAX;
    ORKNN_TRY(check_number("channel_multiplier", factors->size(), limits.channels, false));
    ORKNN_TRY(check_factors("channel_multiplier", *factors, kMaxChannelFactor));
    ORKNN_TRY(check_shift("channel_shift", s.channel_shift, 0));
  }
  if (const auto* factors = c.find<std::vector<int64_t>>("slope_multiplier")) {
    s.slope_factor = *factors;
    s.slope_shift = c.get_int("slope_shift");
    ORKNN_TRY(check_number("slope_multiplier", factors->size(), limits.channels, true));
    ORKNN_TRY(check_factors("slope_multiplier", *factors, kMaxChannelFactor));
    ORKNN_TRY(check_shift("slope_shift", s.slope_shift, 0));
  }
  if (const int64_t* factor = c.find<int64_t>("add_multiplier")) {
    s.add_factor = *factor;
    s.add_shift = c.get_int("add_shift");
    ORKNN_TRY_ASSIGN(s.add_zero, read_zero_point(c, "add_zero_point"));
    ORKNN_TRY(check_add_factor("add_multiplier", s.add_factor));
    ORKNN_TRY(check_shift("add_shift", s.add_shift, 0));
  }
  return {};
}
}  // namespace

Result<OutputStage> read_output_stage(const NodeReader& c, const TensorView& table, const StageLimits& limits) {
  OutputStage s;
  s.limit = limits.wide ? kMaxWideSum : INT32_MAX;
  s.factor = c.get_ints("multiplier");
  s.shift = c.get_ints("shift");
  ORKNN_TRY(check_number("multiplier", s.factor.size(), limits.multipliers, true));
  ORKNN_TRY(check_number("shift", s.shift.size(), static_cast<int64_t>(s.factor.size()), false));
  ORKNN_TRY(check_factors("multiplier", s.factor, limits.max_factor));
  for (int64_t shift : s.shift) ORKNN_TRY(check_shift("shift", shift, 1));
  ORKNN_TRY(read_product_stages(c, limits, s));
  ORKNN_TRY_ASSIGN(s.zero_point, read_zero_point(c, "y_zero_point"));
  s.low = c.get_int("low");
  s.high = c.get_int("high");
  ORKNN_TRY_ASSIGN(s.dtype, type_attribute(c, "y_type", DType::Int8));
  s.table = table;
  const bool indexes = table.dtype != DType::Undefined;
  const int64_t least = indexes ? 0 : static_cast<int64_t>(dtype_min(s.dtype)),
                most = indexes ? table.count() - 1 : static_cast<int64_t>(dtype_max(s.dtype));
  if (s.low > s.high || s.low < least || s.high > most)
    return invalid_model("the bounds of the result are out of range")
        .expected(std::to_string(least) + " to " + std::to_string(most))
        .found(std::to_string(s.low) + " to " + std::to_string(s.high));
  return s;
}

Result<OutputStage> read_output_stage(const RunContext& c, size_t table, const StageLimits& limits) {
  return read_output_stage(static_cast<const NodeReader&>(c), c.has_input(table) ? c.input(table) : TensorView{}, limits);
}

Status check_output_stage(const InferContext& c, size_t table, const StageLimits& limits) {
  if (!c.has_input(table)) return read_output_stage(c, TensorView{}, limits).status();
  const std::optional<Dims> dims = c.shape(table) ? to_dims(*c.shape(table)) : std::nullopt;
  const Dims entries = dims.value_or(Dims{INT64_MAX});
  return read_output_stage(c, TensorView{c.dtype(table), entries, nullptr}, limits).status();
}

Result<BinaryScale> read_binary_scale(const NodeReader& c) {
  BinaryScale s;
  ORKNN_TRY_ASSIGN(s.a_zero, read_zero_point(c, "a_zero_point"));
  ORKNN_TRY_ASSIGN(s.b_zero, read_zero_point(c, "b_zero_point"));
  s.a_factor = c.get_int("a_multiplier");
  s.b_factor = c.get_int("b_multiplier");
  s.b_shift = c.get_int("b_shift");
  ORKNN_TRY(check_factors("a_multiplier", {&s.a_factor, 1}, INT8_MAX));
  ORKNN_TRY(check_add_factor("b_multiplier", s.b_factor));
  ORKNN_TRY(check_shift("b_shift", s.b_shift, 0));
  return s;
}

Result<DType> output_stage_type(const InferContext& c, size_t table) {
  ORKNN_TRY_ASSIGN(const DType type, type_attribute(c, "y_type", DType::Int8));
  if (!is_npu_integer(type))
    return invalid_model("the result's type is not supported")
        .expected("int8, uint8 or int16")
        .found(std::string(dtype_name(type)));
  if (c.has_input(table) && c.dtype(table) != type)
    return invalid_model("the table differs in type from the result")
        .expected(std::string(dtype_name(type)))
        .found(std::string(dtype_name(c.dtype(table))));
  return type;
}

Status check_count(const InferContext& c, size_t slot, std::string_view what, const Shape& shape) {
  const auto wanted = to_dims(shape), found = c.shape(slot) ? to_dims(*c.shape(slot)) : std::nullopt;
  if (!wanted || !found) return {};
  ORKNN_TRY_ASSIGN(const int64_t expected, checked_element_count(*wanted));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(*found));
  if (count == expected) return {};
  return shape_mismatch(std::string(what) + " has the wrong number of elements")
      .expected(std::to_string(expected))
      .found(to_string(*found));
}

Status check_places(const TensorView& places, int64_t extent, int64_t one) {
  if (places.dtype != DType::Int32 || places.rank() != 2 || places.dims[1] != 2)
    return shape_mismatch("places are pairs of a position and a share").found(to_string(places.dims));
  for (int64_t i = 0; i < places.dims[0]; ++i) {
    const int32_t* at = places.as<int32_t>() + 2 * i;
    const int32_t share = at[1];
    if (at[0] < 0 || int64_t{at[0]} + (share == 0 ? 0 : 1) >= extent || share < 0 || share >= one)
      return invalid_model("a place is outside the data")
          .expected("positions below " + std::to_string(extent) + ", shares below " + std::to_string(one))
          .found(std::to_string(at[0]) + " and " + std::to_string(share));
  }
  return {};
}

bool is_npu_integer(DType t) { return t == DType::Int8 || t == DType::UInt8 || t == DType::Int16; }

namespace {
Status check_zero_point(std::string_view name, int64_t value) {
  if (value >= INT16_MIN && value <= INT16_MAX) return {};
  return invalid_model(std::string(name) + " is out of range").found(std::to_string(value));
}
}  // namespace

Result<int64_t> read_zero_point(const NodeReader& c, std::string_view name) {
  const int64_t value = c.get_int(name);
  ORKNN_TRY(check_zero_point(name, value));
  return value;
}

Result<std::vector<int64_t>> read_weight_zero_points(const NodeReader& c, int64_t channels) {
  const std::vector<int64_t>& values = c.get_ints("w_zero_point");
  if (values.size() != 1 && static_cast<int64_t>(values.size()) != channels)
    return invalid_model("zero points belong to all weights or to each output channel")
        .expected("1 or " + std::to_string(channels))
        .found(std::to_string(values.size()));
  for (const int64_t value : values) ORKNN_TRY(check_zero_point("w_zero_point", value));
  return values;
}

}  // namespace orknn::ops
