#include "import/lower/segments.h"

#include <algorithm>
#include <limits>

namespace orknn::importer {
using namespace ir;

namespace {
const char* reduction_of(Combination how) {
  switch (how) {
    case Combination::Sum:
    case Combination::Mean: return "add";
    case Combination::Product: return "mul";
    case Combination::Maximum: return "max";
    case Combination::Minimum: return "min";
  }
  return "add";
}

double start_of(Combination how, DType dtype) {
  const double lowest = is_float(dtype) ? -std::numeric_limits<float>::max() : static_cast<double>(dtype_min(dtype));
  const double highest = is_float(dtype) ? std::numeric_limits<float>::max() : static_cast<double>(dtype_max(dtype));
  return how == Combination::Product ? 1 : how == Combination::Maximum ? lowest : how == Combination::Minimum ? highest : 0;
}
}  // namespace

Result<TensorId> combine_segments(Emitter& e, TensorId x, TensorId ids, std::optional<int64_t> count, Combination how) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to combine its rows"));
  ORKNN_TRY_ASSIGN(const Dims of_ids, e.need_dims(ids, "to combine rows by them"));
  std::vector<int64_t> known;
  if (e.constant_of(ids) || !count) {
    ORKNN_TRY_ASSIGN(known, e.need_ints(ids, "to count the segments"));
  }
  const int64_t most = known.empty() ? -1 : std::ranges::max(known);
  const int64_t segments = count.value_or(most < INT32_MAX ? most + 1 : -1);
  if (segments < 0 || of_ids.size() > dims.size() || !std::equal(of_ids.begin(), of_ids.end(), dims.begin()))
    return invalid_model("the segments do not fit the data").found(std::to_string(segments) + " segments for " + to_string(dims));
  // A row more takes what belongs to no segment: negative numbers would count from the end.
  const auto lies_outside = [&](int64_t id) { return id < 0 || id >= segments; };
  const bool has_spare = known.empty() || std::ranges::any_of(known, lies_outside);
  ids = e.cast(ids, DType::Int64);
  if (has_spare) {
    const TensorId end = e.add_int_scalar("segments", segments);
    const TensorId outside = e.binary("Or", e.with_scalar("Less", ids, 0), e.binary("GreaterOrEqual", ids, end));
    ids = e.where(outside, end, ids);
  }
  const auto rank = static_cast<int64_t>(of_ids.size());
  const auto combined = [&](TensorId rows, Dims shape) -> Result<TensorId> {
    shape.erase(shape.begin(), shape.begin() + rank);
    shape.insert(shape.begin(), segments + has_spare);
    ORKNN_TRY(checked_element_count(shape).status());
    const TensorId start = e.expand(e.scalar_like(rows, start_of(how, e.dtype_of(rows)), "start"), shape);
    const TensorId y =
        e.emit("ScatterND", {start, e.unsqueeze(ids, {rank}), rows}, {{"reduction", std::string(reduction_of(how))}});
    return has_spare ? e.slice(y, 0, 0, segments) : y;
  };
  ORKNN_TRY_ASSIGN(const TensorId y, combined(x, dims));
  if (how != Combination::Mean) return y;
  Dims ones = of_ids;
  ones.resize(dims.size(), 1);
  ORKNN_TRY_ASSIGN(const TensorId sizes, combined(e.expand(e.scalar_like(x, 1.0, "one"), ones), ones));
  return e.div(y, e.with_scalar("Max", sizes, 1.0));
}

}  // namespace orknn::importer
