// Elements picked and placed by index.
#include <algorithm>

#include "import/lower/gather.h"
#include "import/lower/one_hot.h"
#include "import/paddle/layer.h"

namespace orknn::importer::paddle {
using namespace ir;

namespace {
Result<TensorId> gathered(Layer& l, TensorId x, TensorId index) {
  ORKNN_TRY_ASSIGN(const int64_t axis, l.integer(2, "axis", 0, "to pick along it"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(index, "to pick by it"));
  return l.gather(x, rank == 2 ? l.reshape(index, {-1}) : index, axis);  // a column of indices counts as a list
}
TensorId index_selected(Layer& l, TensorId x, TensorId index) { return l.gather(x, index, l.integer("axis", 0)); }
TensorId gathered_nd(Layer& l, TensorId x, TensorId index) { return gather_nd(l, x, index); }
TensorId taken_along(Layer& l, TensorId x, TensorId index) {
  return l.emit("GatherElements", {x, index}, {{"axis", l.integer("axis", 0)}});
}
TensorId sampled_by_index(Layer& l, TensorId x, TensorId index) { return l.gather_elements(x, index, 1); }

Result<TensorId> put_along(Layer& l, TensorId x, TensorId index, TensorId values) {
  const std::string how = l.text("reduce", "assign");
  std::string ours = how == "assign" ? "none" : how == "multiply" ? "mul" : how == "amax" ? "max" : how == "amin" ? "min" : how;
  if (ours != "none" && ours != "mul" && ours != "max" && ours != "min" && ours != "add")
    return unsupported("unknown reduction").expected("assign, add, multiply, amax or amin").found("'" + how + "'");
  if (ours != "none" && !l.flag("include_self", true)) return unsupported("a reduction without the values that are there");
  return l.emit("ScatterElements", {x, index, l.cast(values, l.dtype_of(x))},
                {{"axis", l.integer("axis", 0)}, {"reduction", ours}});
}
// Rows written, or added to rows of zeros.
Result<TensorId> scattered(Layer& l, TensorId x, TensorId index, TensorId rows) {
  const TensorId places = l.reshape(index, {-1, 1});
  if (l.flag("overwrite", true)) return l.emit("ScatterND", {x, places, rows});
  const TensorId cleared = l.emit("ScatterND", {x, places, l.mul(rows, 0.0)});
  return l.emit("ScatterND", {cleared, places, rows}, {{"reduction", std::string("add")}});
}
TensorId scatter_added(Layer& l, TensorId x, TensorId index, TensorId rows) {
  return l.emit("ScatterND", {x, index, rows}, {{"reduction", std::string("add")}});
}
Result<TensorId> one_hot_of(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t depth, l.integer(1, "depth", 0, "to make rows of that length"));
  const DType dtype = l.dtype("dtype", DType::Float32);
  return one_hot(l, x, depth, -1, l.add_scalar("on", 1, dtype), l.add_scalar("off", 0, dtype));
}
// Rows of the table; the one with the number of the padding is zero.
Result<TensorId> embedded(Layer& l, TensorId ids, TensorId table) {
  const TensorId rows = l.gather(table, ids, 0);
  const int64_t padding = l.integer("padding_idx", -1);
  if (padding < 0) return rows;
  const TensorId is_padding = l.unsqueeze(l.with_scalar("Equal", ids, static_cast<double>(padding)), {-1});
  return l.where(is_padding, l.scalar_like(rows, 0), rows);
}

// --- values written into a part

// One axis of the part: where in the value each place of the tensor finds its element, -1 for what stays as it is.
struct WrittenAxis {
  std::vector<int64_t> sources;
  int64_t extent = 0;  // of the part
};
WrittenAxis written_axis(int64_t extent, int64_t start, int64_t end, int64_t step) {
  const auto place = [&](int64_t at) {
    at = at < 0 ? at + extent : at;
    return step > 0 ? std::clamp<int64_t>(at, 0, extent) : std::clamp<int64_t>(at, -1, extent - 1);
  };
  WrittenAxis axis;
  axis.sources.assign(static_cast<size_t>(extent), -1);
  const int64_t last = place(end);
  for (int64_t at = place(start); step > 0 ? at < last : at > last; at += step)
    axis.sources[static_cast<size_t>(at)] = axis.extent++;
  return axis;
}

// The value as a tensor, or as the numbers that an operator states; old versions have a list per type.
Result<TensorId> written_value(Layer& l, DType dtype, size_t operand) {
  if (operand > 0 && l.has(operand)) {
    ORKNN_TRY_ASSIGN(const TensorId value, l.operand(operand));
    return l.cast(value, dtype);
  }
  std::vector<double> numbers;
  for (const char* key : {"values", "fp32_values", "fp64_values", "int32_values", "int64_values", "bool_values", "fp16_values"})
    if (numbers.empty()) numbers = l.numbers(key);
  Dims dims = l.integers("shape");
  if (dims.empty()) dims = {std::ssize(numbers)};
  for (int64_t d : dims)
    if (d < 0) return invalid_model("illegal shape of a value").found(to_string(dims));
  ORKNN_TRY_ASSIGN(const int64_t count, checked_element_count(dims));
  if (numbers.empty() || count != std::ssize(numbers))
    return invalid_model("the value does not fill its shape").expected(to_string(dims)).found(std::to_string(numbers.size()));
  return l.add_constant("value", convert(TensorData::from<double>(dims, numbers).view(), dtype));
}

// x with `value` in the part that starts, ends and steps name: x[..., 1:5:2] = value. Along every axis the value is spread over
// the places of x, and a mask chooses between both.
Result<TensorId> write_part(Layer& l, size_t value_operand, size_t first) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.operand(0));
  ORKNN_TRY_ASSIGN(const Dims d, l.need_dims(x, "to write into it"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> starts, l.ints(first, "starts", "to find the part"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> ends, l.ints(first + 1, "ends", "to find the part"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> steps, l.ints(first + 2, "steps", "to find the part"));
  const std::vector<int64_t> axes = l.integers("axes");
  if (!l.integers("none_axes").empty())
    return unsupported("assigning to a part with new axes is not supported").hint("index the value instead");
  if (starts.size() != axes.size() || ends.size() != axes.size() || steps.size() != axes.size())
    return invalid_model("starts, ends, steps and axes of the part differ in number");
  Dims part = d;
  std::vector<std::pair<int64_t, WrittenAxis>> written;
  for (size_t i = 0; i < axes.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(axes[i], std::ssize(d)));
    if (steps[i] == 0) return invalid_model("a step of the part is 0");
    written.emplace_back(axis, written_axis(d[static_cast<size_t>(axis)], starts[i], ends[i], steps[i]));
    part[static_cast<size_t>(axis)] = written.back().second.extent;
    if (written.back().second.extent == 0) return x;
  }
  std::vector<int64_t> gone = l.integers("decrease_axes");
  Dims shape;
  for (int64_t i = 0; i < std::ssize(part); ++i)
    if (std::find(gone.begin(), gone.end(), i) == gone.end()) shape.push_back(part[static_cast<size_t>(i)]);
  ORKNN_TRY_ASSIGN(TensorId value, written_value(l, l.dtype_of(x), value_operand));
  ORKNN_TRY_ASSIGN(const Dims own, l.need_dims(value, "to write it"));
  if (std::ssize(own) > std::ssize(shape))
    value = l.reshape(value, std::vector<int64_t>(own.end() - std::ssize(shape), own.end()));
  value = l.reshape(l.expand(value, shape), std::vector<int64_t>(part.begin(), part.end()));
  TensorId mask;
  for (const auto& [axis, places] : written) {
    std::vector<int64_t> sources = places.sources, is_written, along(d.size(), 1);
    for (int64_t& source : sources) {
      is_written.push_back(source >= 0);
      source = std::max<int64_t>(source, 0);
    }
    along[static_cast<size_t>(axis)] = std::ssize(sources);
    value = l.gather(value, l.add_ints("sources", sources), axis);
    const TensorId here = l.reshape(l.cast(l.add_ints("written", is_written), DType::Bool), along);
    mask = mask ? l.binary("And", mask, here) : here;
  }
  return mask ? l.where(mask, value, x) : value;
}
Result<TensorId> write_tensor(Layer& l) { return write_part(l, 1, 2); }
Result<TensorId> write_numbers(Layer& l) { return write_part(l, 0, 1); }

TensorId places_of_nonzero(Layer& l, TensorId x) { return indices_of_nonzero(l, x); }
}  // namespace

std::span<const Row> indexing_rows() {
  static const Row rows[] = {
      {"gather", gathered},
      {"gather_nd", gathered_nd},
      {"index_select", index_selected},
      {"index_sample", sampled_by_index},
      {"take_along_axis", taken_along},
      {"put_along_axis", put_along},
      {"scatter", scattered},
      {"scatter_nd_add", scatter_added},
      {"set_value_with_tensor", write_tensor},
      {"set_value", write_numbers},
      {"one_hot", one_hot_of},
      {"embedding", embedded},
      {"nonzero", places_of_nonzero},
  };
  return rows;
}

}  // namespace orknn::importer::paddle
