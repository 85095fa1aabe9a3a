#include "import/lower/strided_slice.h"

#include <algorithm>
#include <numeric>

namespace orknn::importer {
using namespace ir;

namespace {
constexpr int64_t kFar = int64_t{1} << 48;  // farther than any extent
constexpr int64_t kToTheEnd = INT64_MAX, kToTheFront = -kFar;
constexpr size_t kMostParts = 1 << 16;  // outputs of one node

// A list of numbers that are known or depend on the data.
struct Bounds {
  std::vector<int64_t> numbers;
  std::vector<TensorId> moving;  // set where only the data tells

  void add(int64_t number, TensorId tensor = {}) {
    numbers.push_back(number);
    moving.push_back(tensor);
  }
  TensorId as_tensor(Emitter& e, std::string_view role) const {
    if (std::ranges::none_of(moving, [](TensorId t) { return bool(t); })) return e.add_ints(role, numbers);
    std::vector<TensorId> parts;
    for (size_t i = 0; i < numbers.size(); ++i) parts.push_back(moving[i] ? moving[i] : e.add_ints(role, {numbers[i]}));
    return e.concat(parts, 0);
  }
};

// The entries of begin or end: numbers, or elements of the tensor.
class Entries {
 public:
  Entries(Emitter& e, TensorId list, size_t count) : e_(e), list_(list) {
    const TensorData* value = e.constant_of(list);
    is_known_ = value && !is_float(value->dtype());
    numbers_ = is_known_ ? to_ints(value->view()) : std::vector<int64_t>(count, 0);
    for (int64_t& n : numbers_) n = std::clamp(n, -kFar, kFar);
  }
  size_t size() const { return numbers_.size(); }
  bool is_known() const { return is_known_; }
  int64_t operator[](size_t i) const { return numbers_[i]; }
  TensorId moving(size_t i) const {
    const auto at = static_cast<int64_t>(i);
    return is_known_ ? TensorId{} : e_.cast(e_.slice(list_, 0, at, at + 1), DType::Int64);
  }

 private:
  Emitter& e_;
  TensorId list_;
  bool is_known_ = false;
  std::vector<int64_t> numbers_;
};

bool has(uint64_t bits, size_t i) { return (bits >> i & 1) != 0; }
}  // namespace

Result<TensorId> strided_slice(Emitter& e, TensorId x, TensorId begin, TensorId end, const std::vector<int64_t>& strides,
                               const SliceMasks& masks) {
  const size_t count = strides.size();
  if (count > 32) return unsupported("a cut of more than 32 axes is not supported").found(std::to_string(count));
  const Entries from(e, begin, count), to(e, end, count);
  if (from.size() != count || to.size() != count)
    return invalid_model("begin, end and strides differ in length").expected(std::to_string(count));
  int64_t used = 0, ellipses = 0;
  for (size_t i = 0; i < count; ++i) {
    ellipses += has(masks.ellipsis, i);
    used += !has(masks.ellipsis, i) && !has(masks.new_axis, i);
  }
  if (ellipses > 1) return invalid_model("more than one ellipsis in a cut");
  const auto rank = e.rank_of(x);
  if (ellipses > 0) ORKNN_TRY(e.need_rank(x, "to resolve the ellipsis").status());
  if (rank && used > *rank)
    return shape_mismatch("the cut has more axes than the value").expected(std::to_string(*rank)).found(std::to_string(used));
  if (masks.end_is_offset && !(from.is_known() && to.is_known()))
    return unsupported("a cut of a length that depends on the data is not supported");

  Bounds starts, ends;
  std::vector<int64_t> steps, axes, dropped, inserted;
  std::vector<std::pair<int64_t, TensorId>> picked;  // places that the data tells
  int64_t axis = 0, place = 0;                       // in the input, in the output
  for (size_t i = 0; i < count; ++i) {
    if (has(masks.ellipsis, i)) {
      axis += *rank - used;
      place += *rank - used;
    } else if (has(masks.new_axis, i)) {
      inserted.push_back(place++);
    } else if (has(masks.shrink, i)) {
      if (from.is_known()) {
        starts.add(from[i]);
        ends.add(from[i] == -1 ? kToTheEnd : from[i] + 1);
        steps.push_back(1);
        axes.push_back(axis);
      } else {
        picked.emplace_back(axis, from.moving(i));
      }
      dropped.push_back(axis++);
    } else {
      if (strides[i] == 0) return invalid_model("a cut has a stride of 0");
      const bool is_backwards = strides[i] < 0, is_from_start = has(masks.begin, i), is_to_end = has(masks.end, i);
      if (!is_from_start || !is_to_end || strides[i] != 1) {
        starts.add(is_from_start ? (is_backwards ? kToTheEnd : 0) : from[i], is_from_start ? TensorId{} : from.moving(i));
        ends.add(is_to_end ? (is_backwards ? kToTheFront : kToTheEnd) : to[i] + (masks.end_is_offset ? from[i] : 0),
                 is_to_end ? TensorId{} : to.moving(i));
        steps.push_back(strides[i]);
        axes.push_back(axis);
      }
      ++axis, ++place;
    }
  }
  TensorId y = x;
  if (!axes.empty())
    y = e.emit("Slice", {y, starts.as_tensor(e, "starts"), ends.as_tensor(e, "ends"), e.add_ints("axes", axes),
                         e.add_ints("steps", steps)});
  for (const auto& [at, index] : picked) y = e.gather(y, index, at);
  return e.unsqueeze(e.squeeze(y, dropped), inserted);
}

Result<TensorId> slice_of_size(Emitter& e, TensorId x, TensorId begin, TensorId size) {
  const auto is_open = [](int64_t n) { return n < 0; };
  if (!e.constant_of(begin) || !e.constant_of(size)) {  // a window that moves with the data
    ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to cut it"));
    if (const TensorData* sizes = e.constant_of(size); sizes && std::ranges::any_of(to_ints(sizes->view()), is_open))
      return unsupported("a slice to the end must begin at a constant").found(to_string(to_ints(sizes->view())));
    std::vector<int64_t> axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), int64_t{0});
    const TensorId first = e.cast(begin, DType::Int64);
    return e.emit("Slice", {x, first, e.add(first, e.cast(size, DType::Int64)), e.add_ints("axes", axes)});
  }
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> starts, e.need_ints(begin, "to cut there"));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> sizes, e.need_ints(size, "to cut there"));
  if (starts.size() != sizes.size())
    return invalid_model("begin and size differ in length")
        .expected(std::to_string(starts.size()))
        .found(std::to_string(sizes.size()));
  std::vector<int64_t> ends, axes;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] < 0 || sizes[i] < -1 || starts[i] > kFar || sizes[i] > kFar)
      return invalid_model("the slice is impossible").found("begin " + to_string(starts) + ", size " + to_string(sizes));
    ends.push_back(is_open(sizes[i]) ? kToTheEnd : starts[i] + sizes[i]);
    axes.push_back(static_cast<int64_t>(i));
  }
  return e.slice(x, starts, ends, axes);
}

namespace {
// The extent along an axis, which is made non-negative.
Result<Dim> extent_along(Emitter& e, TensorId x, int64_t& axis, size_t parts) {
  if (parts < 1 || parts > kMostParts)
    return invalid_model("the number of parts is out of range").found(std::to_string(static_cast<int64_t>(parts)));
  ORKNN_TRY_ASSIGN(const int64_t rank, e.need_rank(x, "to split it"));
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, rank));
  return (*e.shape_of(x))[static_cast<size_t>(axis)];
}
}  // namespace

Result<std::vector<TensorId>> split_to_sizes(Emitter& e, TensorId x, int64_t axis, std::vector<int64_t> sizes) {
  ORKNN_TRY_ASSIGN(const Dim extent, extent_along(e, x, axis, sizes.size()));
  int64_t sum = 0;
  int64_t* open = nullptr;
  bool fits = true;
  for (int64_t& size : sizes) {
    fits &= size >= -1 && size <= kFar && !(size == -1 && open);
    if (size == -1) open = &size;
    sum += std::clamp<int64_t>(size, 0, int64_t{1} << 40);
  }
  if (extent.is_known()) fits &= open ? sum <= extent.value() : sum == extent.value();
  if (!fits) return shape_mismatch("the parts do not add up").expected(extent.to_string()).found(to_string(sizes));
  if (open && !extent.is_known()) return e.not_known(x, "the extent must be known to split it");
  if (open) *open = extent.value() - sum;
  return e.split(x, axis, sizes);
}

Result<std::vector<TensorId>> split_equally(Emitter& e, TensorId x, int64_t axis, int64_t count) {
  ORKNN_TRY_ASSIGN(const Dim extent, extent_along(e, x, axis, static_cast<size_t>(count)));
  if (!extent.is_known()) return e.not_known(x, "the extent must be known to split it");
  if (extent.value() % count != 0)
    return shape_mismatch("the parts are not equal").expected("a multiple of " + std::to_string(count)).found(extent.to_string());
  return e.split(x, axis, std::vector<int64_t>(static_cast<size_t>(count), extent.value() / count));
}

std::vector<TensorId> unstack(Emitter& e, TensorId x, int64_t axis, int64_t count) {
  std::vector<TensorId> parts;
  if (count > 0) parts = e.split(x, axis, std::vector<int64_t>(static_cast<size_t>(count), 1));
  for (TensorId& part : parts) part = e.squeeze(part, {axis});
  return parts;
}

Result<TensorId> roll(Emitter& e, TensorId x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& axes) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to roll it"));
  if (shifts.size() != (axes.empty() ? 1 : axes.size()))
    return invalid_model("there must be one shift per axis").found(to_string(shifts));
  const Dims rolled = axes.empty() ? Dims{element_count(dims)} : dims;
  TensorId y = axes.empty() ? e.reshape(x, {-1}) : x;
  for (size_t i = 0; i < shifts.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(axes.empty() ? 0 : axes[i], std::ssize(rolled)));
    const int64_t extent = rolled[static_cast<size_t>(axis)];
    const int64_t kept = extent == 0 ? 0 : extent - ((shifts[i] % extent) + extent) % extent;
    if (kept != extent) y = e.concat({e.slice(y, axis, kept, extent), e.slice(y, axis, 0, kept)}, axis);
  }
  return axes.empty() ? e.reshape(y, dims) : y;
}

Result<std::vector<int64_t>> pads_of_rows(const std::vector<int64_t>& rows) {
  if (rows.size() % 2 != 0) return invalid_model("the paddings must be pairs").found(std::to_string(rows.size()) + " numbers");
  std::vector<int64_t> pads(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < 0 || rows[i] > kFar) return invalid_model("a padding is impossible").found(to_string(rows));
    pads[i % 2 * (rows.size() / 2) + i / 2] = rows[i];
  }
  return pads;
}

TensorId pad(Emitter& e, TensorId x, const std::vector<int64_t>& pads, TensorId value) {
  if (std::ranges::all_of(pads, [](int64_t n) { return n == 0; })) return x;
  std::vector<TensorId> inputs{x, e.add_ints("pads", pads)};
  if (value) inputs.push_back(value);
  return e.emit("Pad", std::move(inputs));
}

Result<TensorId> mirror_pad(Emitter& e, TensorId x, const std::vector<int64_t>& pads, bool repeats_edge) {
  const int64_t most = pads.empty() ? 0 : std::ranges::max(pads);
  if (most == 0) return x;
  // Repeating the edge by one element mirrors it; for more, mirrored pieces are put around, axis by axis.
  if (!repeats_edge || most == 1)
    return e.emit("Pad", {x, e.add_ints("pads", pads)}, {{"mode", std::string(repeats_edge ? "edge" : "reflect")}});
  const size_t rank = pads.size() / 2;
  const auto dims = e.dims_of(x);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t before = pads[i], after = pads[rank + i];
    if (dims && dims->size() == rank && std::max(before, after) > (*dims)[i])
      return invalid_model("a padding is larger than what it mirrors")
          .expected("at most " + std::to_string((*dims)[i]))
          .found(std::to_string(std::max(before, after)));
    const auto axis = static_cast<int64_t>(i);
    std::vector<TensorId> parts;
    if (before > 0) parts.push_back(e.slice(x, axis, before - 1, kToTheFront, -1));
    parts.push_back(x);
    if (after > 0) parts.push_back(e.slice(x, axis, -1, -after - 1, -1));
    x = e.concat(std::move(parts), axis);
  }
  return x;
}

}  // namespace orknn::importer
