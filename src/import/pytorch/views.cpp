#include "import/pytorch/views.h"

#include <numeric>
#include <set>

namespace orknn::importer::pytorch {
using namespace ir;

namespace {
// Strides under which a strided tensor can be seen in another shape without copying, if there are any: both shapes are cut
// into the same runs of axes, and within a run the old axes must be dense.
std::optional<Dims> reshaped_strides(const Dims& dims, const Dims& strides, const Dims& wanted) {
  if (element_count(dims) == 0) return strides_of(wanted);
  Dims result(wanted.size(), 1);
  size_t next = wanted.size();  // new axes are filled from the last to the first
  int64_t base = strides.empty() ? 1 : strides.back(), old_run = 1, new_run = 1;
  for (size_t axis = dims.size(); axis-- > 0;) {
    old_run *= dims[axis];
    const bool run_ends = axis == 0 || (dims[axis - 1] != 1 && strides[axis - 1] != stride_times(old_run, base));
    if (!run_ends) continue;
    while (next > 0 && (new_run < old_run || wanted[next - 1] == 1)) {
      result[next - 1] = stride_times(new_run, base);
      new_run *= wanted[--next];
    }
    if (new_run != old_run) return std::nullopt;
    if (axis > 0) base = strides[axis - 1];
    old_run = new_run = 1;
  }
  return next == 0 || dims.empty() ? std::optional(result) : std::nullopt;
}

TensorId slice_of(Emitter& e, TensorId x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return e.emit("Slice", {x, e.add_ints("start", {start}), e.add_ints("end", {end}), e.add_ints("axis", {axis}),
                          e.add_ints("step", {step})});
}

// Each position of the axis takes the new element or keeps the old one.
TensorId replace_at(Emitter& e, TensorId base, TensorId value, int64_t axis, std::span<const int64_t> positions, int64_t extent) {
  std::vector<int64_t> source(static_cast<size_t>(extent));
  std::iota(source.begin(), source.end(), int64_t{0});
  for (size_t i = 0; i < positions.size(); ++i) source[static_cast<size_t>(positions[i])] = extent + static_cast<int64_t>(i);
  return e.gather(e.emit("Concat", {base, value}, {{"axis", axis}}), e.add_ints("source", source), axis);
}
}  // namespace

Result<Dims> resolve_shape(std::span<const int64_t> given, int64_t count) {
  Dims dims(given.begin(), given.end());
  int64_t known = 1;
  std::optional<size_t> open;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == -1 && !open)
      open = i;
    else if (dims[i] < 0 || __builtin_mul_overflow(known, dims[i], &known))
      return invalid_model("a shape has an impossible extent").found(to_string(dims));
  }
  if (open && known > 0 && count % known == 0) dims[*open] = count / known;
  if ((open && (known <= 0 || count % known != 0)) || (!open && known != count))
    return shape_mismatch("a tensor does not fit its new shape")
        .expected(std::to_string(count) + " elements")
        .found(to_string(Dims(given.begin(), given.end())));
  return dims;
}

Result<Value> view_reshaped(Call& c, TensorValue& parent, Dims dims) {
  auto strides = reshaped_strides(parent.dims, parent.strides, dims);
  if (!strides) {
    ORKNN_TRY_ASSIGN(const Value copy, c.made(c.reshape(parent.id, dims)));
    copy.tensor().input = parent.input;
    if (parent.quantization && parent.quantization->axis < 0) copy.tensor().quantization = parent.quantization;
    return copy;
  }
  return c.view(
      parent, *std::move(strides), [dims](Emitter& e, TensorId x) { return e.reshape(x, dims); },
      [back = parent.dims](Emitter& e, TensorId, TensorId value) { return e.reshape(value, back); });
}

int64_t stride_times(int64_t stride, int64_t count) {
  return static_cast<int64_t>(static_cast<uint64_t>(stride) * static_cast<uint64_t>(count));
}
int64_t stride_sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

std::vector<int64_t> inverse_of(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}

Result<Value> view_permuted(Call& c, TensorValue& parent, std::vector<int64_t> permutation) {
  Dims strides;
  for (int64_t axis : permutation) strides.push_back(parent.strides[static_cast<size_t>(axis)]);
  return c.view(
      parent, std::move(strides), [permutation](Emitter& e, TensorId x) { return e.transpose(x, permutation); },
      [inverse = inverse_of(permutation)](Emitter& e, TensorId, TensorId value) { return e.transpose(value, inverse); });
}

TensorId replace_slice(Emitter& e, TensorId base, TensorId value, int64_t axis, int64_t start, int64_t count, int64_t step,
                       int64_t extent) {
  if (count == extent) return value;
  if (count == 0) return base;
  if (step == 1) {
    std::vector<TensorId> parts;
    if (start > 0) parts.push_back(slice_of(e, base, axis, 0, start, 1));
    parts.push_back(value);
    if (start + count < extent) parts.push_back(slice_of(e, base, axis, start + count, extent, 1));
    return e.emit("Concat", std::move(parts), {{"axis", axis}});
  }
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < count; ++i) positions.push_back(start + i * step);
  return replace_at(e, base, value, axis, positions, extent);
}

Result<Value> view_picked(Call& c, TensorValue& parent, Picked picked, Dims strides) {
  Dims permuted;
  for (int64_t axis : picked.permutation) permuted.push_back(parent.dims[static_cast<size_t>(axis)]);
  const auto arranged = [picked](Emitter& e, TensorId x) { return e.reshape(e.transpose(x, picked.permutation), picked.shape); };
  const std::vector<int64_t> positions = to_ints(picked.positions.view());
  TensorValue::Write write;
  if (std::set<int64_t>(positions.begin(), positions.end()).size() == positions.size())
    write = [=](Emitter& e, TensorId base, TensorId value) {
      Dims row = picked.shape;
      const int64_t extent = std::exchange(row[static_cast<size_t>(picked.axis)], static_cast<int64_t>(positions.size()));
      const TensorId whole = replace_at(e, arranged(e, base), e.reshape(value, row), picked.axis, positions, extent);
      return e.transpose(e.reshape(whole, permuted), inverse_of(picked.permutation));
    };
  return c.view(
      parent, std::move(strides),
      [=](Emitter& e, TensorId x) {
        return e.gather(arranged(e, x), e.add_constant("positions", picked.positions), picked.axis);
      },
      std::move(write));
}

Result<Value> view_sliced(Call& c, TensorValue& parent, size_t axis, int64_t start, int64_t count, int64_t step) {
  const int64_t extent = parent.dims[axis], a = static_cast<int64_t>(axis);
  Dims strides = parent.strides;
  strides[axis] = stride_times(strides[axis], step);
  if (count == extent && step == 1) {
    return c.view(
        parent, std::move(strides), [](Emitter&, TensorId x) { return x; },
        [](Emitter&, TensorId, TensorId value) { return value; });
  }
  return c.view(
      parent, std::move(strides),
      [=](Emitter& e, TensorId x) { return slice_of(e, x, a, start, count == 0 ? start : start + (count - 1) * step + 1, step); },
      [=](Emitter& e, TensorId base, TensorId value) { return replace_slice(e, base, value, a, start, count, step, extent); });
}

Result<Value> view_selected(Call& c, TensorValue& parent, size_t axis, int64_t index) {
  const int64_t extent = parent.dims[axis], a = static_cast<int64_t>(axis);
  if (index < -extent || index >= extent)
    return invalid_model("an index is outside of its axis")
        .expected("within " + std::to_string(extent))
        .found(std::to_string(index));
  const int64_t at = index < 0 ? index + extent : index;
  Dims strides = parent.strides;
  strides.erase(strides.begin() + a);
  return c.view(
      parent, std::move(strides),
      [=](Emitter& e, TensorId x) {
        return e.emit("Gather", {x, e.add_int_scalar("index", at)}, {{"axis", a}});
      },
      [=](Emitter& e, TensorId base, TensorId value) {
        const TensorId wide = e.emit("Unsqueeze", {value, e.add_ints("axes", {a})});
        return replace_slice(e, base, wide, a, at, 1, 1, extent);
      });
}

Result<Value> view_expanded(Call& c, TensorValue& parent, Dims dims) {
  const size_t more = dims.size() - std::min(dims.size(), parent.dims.size());
  if (dims.size() < parent.dims.size())
    return shape_mismatch("a tensor cannot be expanded to fewer axes").expected(to_string(parent.dims)).found(to_string(dims));
  Dims strides(dims.size(), 0);
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool is_new = i < more;
    const int64_t have = is_new ? 1 : parent.dims[i - more];
    if (dims[i] == -1 && !is_new) dims[i] = have;
    if (dims[i] < 0 || (have != 1 && have != dims[i]))
      return shape_mismatch("a tensor cannot be expanded")
          .expected("an extension of " + to_string(parent.dims))
          .found(to_string(dims));
    if (!is_new && have == dims[i]) strides[i] = parent.strides[i - more];
  }
  if (dims == parent.dims) {
    return c.view(
        parent, parent.strides, [](Emitter&, TensorId x) { return x; }, [](Emitter&, TensorId, TensorId value) { return value; });
  }
  return c.view(parent, std::move(strides),
                [dims](Emitter& e, TensorId x) {
                  return e.emit("Expand", {x, e.add_ints("shape", dims)});
                },
                {});
}

Result<Value> view_unsqueezed(Call& c, TensorValue& parent, size_t axis) {
  Dims dims = parent.dims, strides = parent.strides;
  const auto at = static_cast<ptrdiff_t>(axis);
  strides.insert(strides.begin() + at, axis < dims.size() ? stride_times(strides[axis], std::max<int64_t>(dims[axis], 1)) : 1);
  dims.insert(dims.begin() + at, 1);
  return c.view(
      parent, std::move(strides), [dims](Emitter& e, TensorId x) { return e.reshape(x, dims); },
      [back = parent.dims](Emitter& e, TensorId, TensorId value) { return e.reshape(value, back); });
}

Result<Value> view_squeezed(Call& c, TensorValue& parent, std::span<const int64_t> axes) {
  Dims dims, strides;
  for (size_t i = 0; i < parent.dims.size(); ++i) {
    if (parent.dims[i] == 1 && std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) != axes.end()) continue;
    dims.push_back(parent.dims[i]);
    strides.push_back(parent.strides[i]);
  }
  return c.view(
      parent, std::move(strides), [dims](Emitter& e, TensorId x) { return e.reshape(x, dims); },
      [back = parent.dims](Emitter& e, TensorId, TensorId value) { return e.reshape(value, back); });
}

}  // namespace orknn::importer::pytorch
