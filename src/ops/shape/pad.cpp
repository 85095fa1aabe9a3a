// Adds elements around a tensor (or removes them where a pad is negative).
#include <algorithm>
#include <cstring>

#include "ops/support/copies.h"
#include "ops/support/movement.h"

namespace orknn::ops {
namespace {
using namespace ir;

enum class Mode { Constant, Reflect, Edge, Wrap };

Result<Mode> mode_of(const NodeReader& c) {
  const std::string& mode = c.get_string("mode");
  if (mode == "constant") return Mode::Constant;
  if (mode == "reflect") return Mode::Reflect;
  if (mode == "edge") return Mode::Edge;
  if (mode == "wrap") return Mode::Wrap;
  return unsupported("unknown padding mode").expected("constant, reflect, edge or wrap").found(mode);
}

// What is added before and after each axis, for axes without an entry nothing.
template <class Number>
Result<Scratch<std::pair<Number, Number>>> pads_per_axis(size_t rank, std::span<const Number> pads, GivenAxes axes) {
  const size_t count = axes ? axes->size() : rank;
  if (pads.size() != 2 * count)
    return invalid_model("pads needs two entries per axis")
        .expected(std::to_string(2 * count))
        .found(std::to_string(pads.size()));
  Scratch<std::pair<Number, Number>> out(rank, {Number(0), Number(0)});
  if (axes) ORKNN_TRY(distinct_axes(*axes, static_cast<int64_t>(rank)).status());
  for (size_t i = 0; i < count; ++i) {
    const auto axis = axes ? static_cast<size_t>(*normalize_axis((*axes)[i], static_cast<int64_t>(rank))) : i;
    out[axis] = {pads[i], pads[count + i]};
  }
  return out;
}

Status nothing_to_repeat(std::string found) {
  return shape_mismatch("an axis without elements can only be padded with a constant").found(std::move(found));
}

// How much of an axis stays, between pads that remove.
int64_t kept_count(int64_t extent, int64_t before, int64_t after) {
  return std::max<int64_t>(0, extent + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0));
}

Status infer(InferContext& c) {
  ORKNN_TRY_ASSIGN(const Mode mode, mode_of(c));
  ORKNN_TRY(require_integer(c, 1, "pads"));
  ORKNN_TRY(require_integer(c, 3, "axes"));
  if (c.has_input(2) && c.dtype(2) != c.dtype(0))
    return invalid_model("the padding value must have the type of the data")
        .expected(std::string(dtype_name(c.dtype(0))))
        .found(std::string(dtype_name(c.dtype(2))));
  const Shape* x = c.shape(0);
  if (!x) {
    c.set_output(0, c.dtype(0), std::nullopt);
    return {};
  }
  const auto pads = c.content(1);
  const auto axes = c.ints(3);
  Shape out(x->size());
  if (pads && (axes || !c.has_input(3))) {
    ORKNN_TRY_ASSIGN(const auto added, pads_per_axis<Dim>(x->size(), *pads, axes ? GivenAxes(*axes) : std::nullopt));
    bool nothing_kept = false;
    for (size_t i = 0; i < x->size(); ++i) {
      out[i] = (*x)[i] + (added[i].first + added[i].second);
      if (out[i].is_known() && out[i].value() < 0)
        return shape_mismatch("pads remove more than there is").found("axis " + std::to_string(i) + " of " + to_string(*x));
      const auto& [before, after] = added[i];
      nothing_kept |= (*x)[i].is_known() && before.is_known() && after.is_known() && out[i].is_known() &&
                      kept_count((*x)[i].value(), before.value(), after.value()) == 0;
    }
    const std::optional<Dims> dims = to_dims(out);
    if (nothing_kept && dims && element_count(*dims) > 0 && mode != Mode::Constant) return nothing_to_repeat(to_string(*x));
  }
  c.set_output(0, c.dtype(0), std::move(out));
  return {};
}

// Where element `at` of an axis of `extent` elements, continued on both sides, comes from.
int64_t source_of(Mode mode, int64_t at, int64_t extent) {
  if (at >= 0 && at < extent) return at;
  if (mode == Mode::Edge || extent == 1) return at < 0 ? 0 : extent - 1;
  const int64_t period = mode == Mode::Wrap ? extent : 2 * (extent - 1);
  int64_t phase = at % period;
  if (phase < 0) phase += period;
  return phase < extent ? phase : period - phase;
}

// The kept part of an axis: [first, first + count) of the source lands at `target`.
struct Kept {
  int64_t first = 0, count = 0, target = 0;
};

Status run(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const Mode mode, mode_of(c));
  ScratchDims axes;
  if (c.has_input(3)) axes = scratch_ints(c.input(3));
  const ScratchDims given = scratch_ints(c.input(1));
  ORKNN_TRY_ASSIGN(const auto pads,
                   pads_per_axis<int64_t>(x.dims.size(), given, c.has_input(3) ? GivenAxes(axes) : std::nullopt));
  const size_t rank = x.dims.size();
  ScratchDims dims(rank);
  Scratch<Kept> kept(rank);
  bool nothing_kept = false;
  for (size_t i = 0; i < rank; ++i) {
    const auto [before, after] = pads[i];
    if (__builtin_add_overflow(x.dims[i], before, &dims[i]) || __builtin_add_overflow(dims[i], after, &dims[i]) || dims[i] < 0)
      return invalid_argument("illegal pads")
          .found(std::to_string(before) + " and " + std::to_string(after) + " for extent " + std::to_string(x.dims[i]));
    kept[i].first = before < 0 ? -before : 0;
    kept[i].count = kept_count(x.dims[i], before, after);
    kept[i].target = std::max<int64_t>(before, 0);
    nothing_kept |= kept[i].count == 0;
  }
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  if (y.count() == 0) return {};
  const size_t bytes = dtype_bytes(x.dtype);
  const ScratchDims from_strides = scratch_strides(x.dims), to_strides = scratch_strides(dims);

  if (mode == Mode::Constant) {
    const uint64_t zero = 0;
    const void* value = &zero;
    if (c.has_input(2) && c.input(2).count() > 0) value = c.input(2).data;
    if (rank > 0) fill_elements(y.data, y.count(), value, bytes);
    int64_t from = 0, to = 0;
    CopyAxes copy;
    for (size_t i = 0; i < rank; ++i) {
      copy.push_back({kept[i].count, from_strides[i], to_strides[i]});
      from += kept[i].first * from_strides[i];
      to += kept[i].target * to_strides[i];
    }
    if (!nothing_kept) copy_strided(std::move(copy), offset_by(x.data, from, bytes), offset_by(y.data, to, bytes), bytes, c.pool);
    return {};
  }

  if (nothing_kept) return nothing_to_repeat(to_string(x.dims));
  if (rank == 0) {
    std::memcpy(y.data, x.data, bytes);
    return {};
  }
  // Source position for each output position, per axis.
  Scratch<ScratchDims> source(rank);
  for (size_t i = 0; i < rank; ++i)
    for (int64_t at = 0; at < dims[i]; ++at)
      source[i].push_back(kept[i].first + source_of(mode, at - kept[i].target, kept[i].count));
  const size_t last = rank - 1;
  const int64_t rows = y.count() / dims[last];
  c.pool.parallel_for(rows, std::max<int64_t>(1, (1 << 14) / dims[last]), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      int64_t rest = row, from = 0;
      for (size_t i = last; i-- > 0; rest /= dims[i]) from += source[i][static_cast<size_t>(rest % dims[i])] * from_strides[i];
      const auto* in = static_cast<const std::byte*>(offset_by(x.data, from, bytes));
      auto* out = static_cast<std::byte*>(offset_by(y.data, row * dims[last], bytes));
      const auto copy_one = [&](int64_t at) {
        std::memcpy(out + static_cast<size_t>(at) * bytes,
                    in + static_cast<size_t>(source[last][static_cast<size_t>(at)]) * bytes, bytes);
      };
      const Kept& k = kept[last];
      for (int64_t at = 0; at < k.target; ++at) copy_one(at);
      std::memcpy(out + static_cast<size_t>(k.target) * bytes, in + static_cast<size_t>(k.first) * bytes,
                  static_cast<size_t>(k.count) * bytes);
      for (int64_t at = k.target + k.count; at < dims[last]; ++at) copy_one(at);
    }
  });
  return {};
}

int copied(const InferContext& c) {
  const TensorData* pads = c.constant(1);
  if (!pads || !is_integer(pads->dtype())) return kNoCopy;
  const std::vector<int64_t> values = to_ints(pads->view());
  return std::all_of(values.begin(), values.end(), [](int64_t p) { return p == 0; }) ? 0 : kNoCopy;
}
}  // namespace

std::span<const OpDef> pad() {
  static const OpDef def{.name = "Pad",
                         .summary = "adds or removes elements around a tensor",
                         .inputs = {2, 4},
                         .attributes = {attr_string("mode", "constant")},
                         .infer = infer,
                         .run = run,
                         .widen_half = false,
                         .quant = QuantRule::Padding,
                         .engine = Engine::Move,
                         .pattern = Pattern::Move,
                         .axes = AxisNames::Input3,
                         .copied_input = copied,
                         .npu = {.form = NpuForm::Pad},
                         .cpu = {CpuList::LargeChips}};
  return {&def, 1};
}
}  // namespace orknn::ops
