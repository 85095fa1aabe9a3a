#include "ops/support/requantize.h"

#include <algorithm>

#include "ops/support/elementwise.h"

namespace orknn::ops {
using namespace ir;

std::optional<Multiplier> make_multiplier(double ratio) {
  if (!(ratio >= 0) || !std::isfinite(ratio)) return std::nullopt;
  if (ratio == 0) return Multiplier{};
  int exponent = 0;
  const double mantissa = std::frexp(ratio, &exponent);  // [0.5, 1)
  auto factor = static_cast<int64_t>(std::nearbyint(std::ldexp(mantissa, kMultiplierBits)));
  int64_t shift = kMultiplierBits - exponent;
  if (factor == int64_t{1} << kMultiplierBits) {
    factor >>= 1;
    --shift;
  }
  if (shift < 1) return std::nullopt;
  if (shift > kMaxShift) return Multiplier{};
  return Multiplier{factor, shift};
}

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
  more.push_back(attr_ints("negative_multiplier"));
  more.push_back(attr_ints("negative_shift"));
  return more;
}

Result<OutputStage> read_output_stage(const NodeReader& c, int64_t channels, const TensorView& table, int64_t max_factor) {
  OutputStage s;
  s.factor = c.get_ints("multiplier");
  s.shift = c.get_ints("shift");
  if (s.factor.size() != s.shift.size() || (s.factor.size() != 1 && static_cast<int64_t>(s.factor.size()) != channels))
    return invalid_model("multipliers and shifts belong to the whole tensor or to each channel")
        .expected("1 or " + std::to_string(channels))
        .found(std::to_string(s.factor.size()) + " and " + std::to_string(s.shift.size()));
  if (const auto* factors = c.find<std::vector<int64_t>>("negative_multiplier"),
      *shifts = c.find<std::vector<int64_t>>("negative_shift");
      factors || shifts) {
    if (!factors || !shifts || factors->size() != s.factor.size() || shifts->size() != s.factor.size())
      return invalid_model("slopes are not as many as multipliers")
          .expected(std::to_string(s.factor.size()))
          .found(std::to_string(factors ? factors->size() : 0) + " and " + std::to_string(shifts ? shifts->size() : 0));
    s.negative_factor = *factors;
    s.negative_shift = *shifts;
  }
  const auto in_range = [&](std::span<const int64_t> factors, std::span<const int64_t> shifts) -> Status {
    for (size_t i = 0; i < factors.size(); ++i)
      if (factors[i] < -max_factor || factors[i] > max_factor || shifts[i] < 1 || shifts[i] > kMaxShift)
        return invalid_model("a multiplier is out of range")
            .found(std::to_string(factors[i]) + " >> " + std::to_string(shifts[i]));
    return {};
  };
  ORKNN_TRY(in_range(s.factor, s.shift));
  ORKNN_TRY(in_range(s.negative_factor, s.negative_shift));
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

Result<OutputStage> read_output_stage(const RunContext& c, int64_t channels, size_t table, int64_t max_factor) {
  return read_output_stage(static_cast<const NodeReader&>(c), channels, c.has_input(table) ? c.input(table) : TensorView{},
                           max_factor);
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
    if (at[0] < 0 || at[0] + (share == 0 ? 0 : 1) >= extent || share < 0 || share >= one)
      return invalid_model("a place lies outside of the data")
          .expected("positions below " + std::to_string(extent) + ", shares below " + std::to_string(one))
          .found(std::to_string(at[0]) + " and " + std::to_string(share));
  }
  return {};
}

bool is_npu_integer(DType t) { return t == DType::Int8 || t == DType::UInt8 || t == DType::Int16; }

Result<int64_t> read_zero_point(const NodeReader& c, std::string_view name) {
  const int64_t value = c.get_int(name);
  if (value < INT16_MIN || value > INT16_MAX)
    return invalid_model(std::string(name) + " is out of range").found(std::to_string(value));
  return value;
}

}  // namespace orknn::ops
