// Reshaping, slicing, joining, repeating and everything else that only moves elements; tensors made from nothing.
#include <algorithm>
#include <cmath>

#include "import/lower/axes.h"
#include "import/lower/creation.h"
#include "import/lower/window.h"
#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// --- reshape

// MXNet's codes: 0 copies an extent, -1 takes what is left, -2 copies all that follow, -3 joins two, -4 splits one into the two
// numbers after it. An element of the result may be -1.
Result<std::vector<int64_t>> decode_shape(const Dims& in, std::span<const int64_t> codes) {
  std::vector<int64_t> out;
  size_t at = 0;
  const auto take = [&]() -> Result<int64_t> {
    if (at >= in.size())
      return invalid_model("the shape has more codes than the data has axes")
          .expected(std::to_string(in.size()) + " axes")
          .found(to_string(codes));
    return in[at++];
  };
  for (size_t i = 0; i < codes.size(); ++i) {
    const int64_t code = codes[i];
    if (code == 0) {
      ORKNN_TRY_ASSIGN(const int64_t extent, take());
      out.push_back(extent);
    } else if (code > 0 || code == -1) {
      out.push_back(code);
      if (at < in.size()) ++at;
    } else if (code == -2) {
      while (at < in.size()) out.push_back(in[at++]);
    } else if (code == -3) {
      ORKNN_TRY_ASSIGN(const int64_t first, take());
      ORKNN_TRY_ASSIGN(const int64_t second, take());
      out.push_back(first * second);
    } else if (code == -4) {
      if (i + 2 >= codes.size()) return invalid_model("code -4 needs two numbers after it").found(to_string(codes));
      ORKNN_TRY_ASSIGN(const int64_t whole, take());
      int64_t first = codes[++i], second = codes[++i];
      if ((first == -1 && second <= 0) || (second == -1 && first <= 0) || first == 0 || second == 0 || first < -1 || second < -1)
        return invalid_model("code -4 needs two factors of the extent").expected("at most one -1").found(to_string(codes));
      if (first == -1) first = whole / second;
      if (second == -1) second = whole / first;
      out.push_back(first);
      out.push_back(second);
    } else {
      return invalid_model("unknown code in the shape").expected("-4 or more").found(std::to_string(code));
    }
  }
  return out;
}

// A negative number may stand for what is left only once; ours then works it out.
Result<TensorId> reshape(Layer& l, TensorId x) {
  std::vector<int64_t> codes = l.integers(l.has("newshape") ? "newshape" : "shape");
  if (codes.empty() && l.has("target_shape")) {  // before 0.9: 0 took what was left
    codes = l.integers("target_shape");
    std::ranges::replace(codes, int64_t{0}, int64_t{-1});
    if (l.flag("keep_highest", false) && !codes.empty()) codes[0] = 0;
  }
  const bool is_plain = std::ranges::all_of(codes, [](int64_t c) { return c >= -1; }), reverse = l.flag("reverse", false);
  if (is_plain && !reverse && !l.dims_of(x)) return l.reshape(x, codes);
  ORKNN_TRY_ASSIGN(Dims in, l.need_dims(x, "to reshape it"));
  if (reverse) {
    std::ranges::reverse(in);
    std::ranges::reverse(codes);
  }
  ORKNN_TRY_ASSIGN(std::vector<int64_t> shape, decode_shape(in, codes));
  if (reverse) std::ranges::reverse(shape);
  Dims known;
  std::ranges::copy_if(shape, std::back_inserter(known), [](int64_t extent) { return extent != -1; });
  if (known.size() + 1 < shape.size()) return invalid_model("more than one -1 in the shape").found(to_string(codes));
  const int64_t total = element_count(in);
  const auto rest = checked_element_count(known);
  const bool is_open = known.size() < shape.size();
  if (!rest || (is_open ? *rest == 0 || total % *rest != 0 : *rest != total))
    return shape_mismatch("the shape does not fit the data")
        .expected(std::to_string(total) + " elements")
        .found(to_string(shape));
  return l.reshape(x, shape);
}

}  // namespace

TensorId flatten(Layer& l, TensorId x) { return l.emit("Flatten", {x}, {{"axis", int64_t{1}}}); }

namespace {
// lhs with a range of its axes replaced by a range of rhs's.
Result<TensorId> reshape_like(Layer& l, TensorId x, TensorId other) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to reshape it"));
  ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its shape"));
  const auto range = [&](std::string_view begin_key, std::string_view end_key, const Dims& dims) {
    const int64_t rank = std::ssize(dims);
    const auto bound = [&](std::string_view key, int64_t fallback) {
      const int64_t v = l.integer(key, fallback);
      return std::clamp(v < 0 ? v + rank : v, int64_t{0}, rank);
    };
    const int64_t begin = bound(begin_key, 0);
    return std::pair(begin, std::max(begin, bound(end_key, rank)));
  };
  const auto [left_begin, left_end] = range("lhs_begin", "lhs_end", in);
  const auto [right_begin, right_end] = range("rhs_begin", "rhs_end", like);
  Dims shape(in.begin(), in.begin() + left_begin);
  shape.insert(shape.end(), like.begin() + right_begin, like.begin() + right_end);
  shape.insert(shape.end(), in.begin() + left_end, in.end());
  return l.reshape(x, shape);
}

TensorId expand_dims(Layer& l, TensorId x) { return l.unsqueeze(x, {l.integer("axis", 0)}); }

Result<TensorId> squeeze(Layer& l, TensorId x) {
  std::vector<int64_t> axes = l.integers("axis");
  if (axes.empty()) {
    ORKNN_TRY_ASSIGN(axes, axes_of_extent_one(l, x));
    if (std::ssize(axes) == l.rank_of(x) && !axes.empty()) axes.erase(axes.begin());  // no tensor of rank 0 here
  }
  return l.squeeze(x, axes);
}

Result<TensorId> transpose(Layer& l, TensorId x) { return permuted(l, x, l.integers("axes")); }

Result<TensorId> swap_axes(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to swap axes"));
  ORKNN_TRY_ASSIGN(const int64_t first, l.axis("dim1", 0, rank));
  ORKNN_TRY_ASSIGN(const int64_t second, l.axis("dim2", 0, rank));
  return l.swap_axes(x, first, second);
}

template <OpName Op>
Result<TensorId> move_blocks(Layer& l, TensorId x) {
  const int64_t block = l.integer("block_size", 1);
  if (block < 1) return invalid_model("illegal block_size").found(std::to_string(block));
  return l.emit(Op.chars, {x}, {{"blocksize", block}});
}

// --- slicing

Result<TensorId> slice(Layer& l, TensorId x) {
  const auto begin = l.bounds("begin"), end = l.bounds("end"), step = l.bounds("step");
  if (begin.size() != end.size() || (!step.empty() && step.size() != begin.size()))
    return invalid_model("begin, end and step differ in length");
  std::vector<int64_t> starts, ends, axes, steps;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t by = step.empty() ? 1 : step[i].value_or(1);
    if (by == 0) return invalid_model("a step of 0");
    starts.push_back(begin[i].value_or(by > 0 ? 0 : INT64_MAX));
    ends.push_back(end[i].value_or(by > 0 ? INT64_MAX : INT64_MIN));
    axes.push_back(static_cast<int64_t>(i));
    steps.push_back(by);
  }
  return axes.empty() ? x : l.slice(x, starts, ends, axes, steps);
}

TensorId slice_axis(Layer& l, TensorId x) {
  const auto end = l.bounds("end");
  return l.slice(x, l.integer("axis", 0), l.integer("begin", 0), end.size() == 1 && end[0] ? *end[0] : INT64_MAX);
}

Result<TensorId> slice_like(Layer& l, TensorId x, TensorId other) {
  ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its extents"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to cut it"));
  std::vector<int64_t> axes = l.integers("axes"), ends;
  if (axes.empty())
    for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
  for (int64_t& a : axes) {
    ORKNN_TRY_ASSIGN(const int64_t there, normalize_axis(a, std::ssize(like)));
    ORKNN_TRY_ASSIGN(a, normalize_axis(a, rank));
    ends.push_back(like[static_cast<size_t>(there)]);
  }
  return l.slice(x, std::vector<int64_t>(axes.size(), 0), ends, axes);
}

Result<TensorId> crop(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to cut it", 4));
  std::vector<int64_t> size = l.window("h_w", 2, 0, 0), offset = l.window("offset", 2, 0, 0);
  if (l.operand_count() > 1) {
    ORKNN_TRY_ASSIGN(const TensorId other, l.operand(1));
    ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its size", 4));
    size = {like[2], like[3]};
  }
  if (l.flag("center_crop", false)) offset = {(in[2] - size[0]) / 2, (in[3] - size[1]) / 2};
  for (size_t i = 0; i < 2; ++i)
    if (size[i] < 1 || offset[i] < 0 || offset[i] + size[i] > in[i + 2])
      return shape_mismatch("the cut is outside the data")
          .expected("within " + to_string(in))
          .found(to_string(size) + " from " + to_string(offset));
  return l.slice(x, offset, {offset[0] + size[0], offset[1] + size[1]}, {2, 3});
}

// The parts of equal size an axis divides into.
Result<std::vector<int64_t>> equal_parts(int64_t extent, int64_t count, std::string_view parts) {
  if (count < 1 || count > 65536 || extent % count != 0)
    return shape_mismatch("the axis does not divide into " + std::string(parts))
        .expected("a divisor of " + std::to_string(extent))
        .found(std::to_string(count));
  return std::vector<int64_t>(static_cast<size_t>(count), extent / count);
}

// The parts between the stated indices, where parts begin; the 0 of the first one may be among them.
Result<std::vector<int64_t>> parts_between(int64_t extent, std::vector<int64_t> indices) {
  if (indices.empty() || indices[0] != 0) indices.insert(indices.begin(), 0);
  indices.push_back(extent);
  if (!std::ranges::is_sorted(indices)) return invalid_model("the indices are not in order").found(to_string(indices));
  std::adjacent_difference(indices.begin(), indices.end(), indices.begin());
  indices.erase(indices.begin());
  return indices;
}

template <Result<std::vector<int64_t>> (*sizes_of)(Layer&, int64_t)>
Result<std::vector<TensorId>> split(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to divide it"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", 1, std::ssize(dims)));
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> sizes, sizes_of(l, dims[static_cast<size_t>(axis)]));
  std::vector<TensorId> parts = l.split(x, axis, sizes);
  if (l.flag("squeeze_axis", false))
    for (TensorId& part : parts) part = l.squeeze(part, {axis});
  return parts;
}
Result<std::vector<int64_t>> outputs_of(Layer& l, int64_t extent) {
  return equal_parts(extent, l.integer("num_outputs", 1), "num_outputs parts");
}
Result<std::vector<int64_t>> sections_of(Layer& l, int64_t extent) {
  const int64_t sections = l.integer("sections", 0);
  return sections > 0 ? equal_parts(extent, sections, "equal sections") : parts_between(extent, l.integers("indices"));
}

// --- joining and repeating

std::vector<TensorId> of_one_type(Layer& l, Operands inputs) {
  std::vector<TensorId> parts(inputs.begin(), inputs.end());
  for (TensorId& p : parts) p = l.cast(p, l.dtype_of(parts[0]));
  return parts;
}
TensorId concat(Layer& l, Operands inputs) { return l.concat(of_one_type(l, inputs), l.integer("dim", l.integer("axis", 1))); }
TensorId stack(Layer& l, Operands inputs) { return l.stack(of_one_type(l, inputs), l.integer("axis", 0)); }

Result<TensorId> tile(Layer& l, TensorId x) {
  std::vector<int64_t> repeats = l.integers("reps");
  ORKNN_TRY_ASSIGN(Dims dims, l.need_dims(x, "to repeat it"));
  if (std::ranges::any_of(repeats, [](int64_t r) { return r < 0; }))
    return invalid_model("a negative number of repetitions").found(to_string(repeats));
  const size_t rank = std::max(repeats.size(), dims.size());
  dims.insert(dims.begin(), rank - dims.size(), 1);
  repeats.insert(repeats.begin(), rank - repeats.size(), 1);
  return l.emit("Tile", {l.reshape(x, dims), l.add_ints("repeats", repeats)});
}

// Every element several times in a row.
Result<TensorId> repeat(Layer& l, TensorId x) {
  const int64_t count = l.integer("repeats", 1);
  if (count < 1) return invalid_model("illegal number of repetitions").found(std::to_string(count));
  if (!l.has("axis")) x = l.reshape(x, {-1});
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to repeat its elements"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", 0, std::ssize(dims)));
  Dims wide = dims, shape = dims;
  wide.insert(wide.begin() + axis + 1, count);
  if (!checked_element_count(wide)) return shape_mismatch("the result would be too large").found(to_string(wide));
  shape[static_cast<size_t>(axis)] *= count;
  return l.reshape(l.expand(l.unsqueeze(x, {axis + 1}), wide), shape);
}

Result<TensorId> reverse(Layer& l, TensorId x) {
  const std::vector<int64_t> axes = l.integers("axis");
  if (axes.empty()) return invalid_model("the axis to reverse is missing");
  return l.reverse(x, axes);
}

Result<TensorId> pad(Layer& l, TensorId x) {
  const std::vector<int64_t> widths = l.integers("pad_width");
  if (widths.size() % 2 != 0 || widths.empty())
    return invalid_model("illegal pad_width").expected("two numbers per axis").found(to_string(widths));
  std::vector<int64_t> begin, end;
  for (size_t i = 0; i < widths.size(); ++i) (i % 2 ? end : begin).push_back(widths[i]);
  const std::string mode = l.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    return unsupported("unknown mode").expected("constant, edge or reflect").found(mode);
  std::vector<TensorId> inputs{x, l.add_ints("pads", joined(begin, end))};
  if (mode == "constant") inputs.push_back(l.scalar_like(x, l.number("constant_value", 0.0)));
  return l.emit("Pad", std::move(inputs), {{"mode", mode}});
}

// --- broadcasting

Result<TensorId> broadcast_to(Layer& l, TensorId x) {
  std::vector<int64_t> shape = l.integers("shape");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to broadcast it"));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 0) continue;
    const size_t from_end = shape.size() - i;
    if (from_end > dims.size()) return invalid_model("0 copies an extent that does not exist").found(to_string(shape));
    shape[i] = dims[dims.size() - from_end];
  }
  return l.expand(x, shape);
}

Result<TensorId> broadcast_axis(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(Dims shape, l.need_dims(x, "to broadcast it"));
  const std::vector<int64_t> axes = l.integers("axis"), sizes = l.integers("size");
  if (axes.size() != sizes.size()) return invalid_model("axis and size differ in length");
  for (size_t i = 0; i < axes.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(axes[i], std::ssize(shape)));
    if (sizes[i] < 0) return invalid_model("a negative size").found(to_string(sizes));
    shape[static_cast<size_t>(at)] = sizes[i];
  }
  return l.expand(x, shape);
}

Result<TensorId> broadcast_like(Layer& l, TensorId x, TensorId other) {
  ORKNN_TRY_ASSIGN(Dims shape, l.need_dims(x, "to broadcast it"));
  ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its shape"));
  const std::vector<int64_t> own = l.integers("lhs_axes"), theirs = l.integers("rhs_axes");
  if (own.size() != theirs.size()) return invalid_model("lhs_axes and rhs_axes differ in length");
  if (own.empty()) shape = like;
  for (size_t i = 0; i < own.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t to, normalize_axis(own[i], std::ssize(shape)));
    ORKNN_TRY_ASSIGN(const int64_t from, normalize_axis(theirs[i], std::ssize(like)));
    shape[static_cast<size_t>(to)] = like[static_cast<size_t>(from)];
  }
  return l.expand(x, shape);
}

// --- from nothing

// An unknown extent (0, the batch of an initial state) becomes 1: such tensors are broadcast where they are used.
Result<TensorId> filled(Layer& l, double value) {
  Dims dims = l.integers("shape");
  for (int64_t& d : dims)
    if (d <= 0) d = 1;
  if (!checked_element_count(dims, int64_t{1} << 31)) return invalid_model("the tensor is too large").found(to_string(dims));
  return l.expand(l.add_scalar("value", value, l.dtype("dtype", DType::Float32)), dims);
}
Result<TensorId> zeros(Layer& l) { return filled(l, 0.0); }
Result<TensorId> ones(Layer& l) { return filled(l, 1.0); }
Result<TensorId> full(Layer& l) { return filled(l, l.number("value", 0.0)); }

constexpr int64_t kMaxRange = int64_t{1} << 22;

// `count` numbers, each `repeat` times, as a vector.
Result<TensorId> number_range(Layer& l, double start, double step, int64_t count, int64_t repeat, DType dtype) {
  if (repeat < 1 || count < 0 || count > kMaxRange / repeat)
    return invalid_model("the range is too long").found(std::to_string(count) + " x " + std::to_string(repeat));
  TensorData values = TensorData::allocate(DType::Float64, {count * repeat});
  double* to = static_cast<double*>(values.mutable_data());
  for (int64_t i = 0; i < count * repeat; ++i) to[i] = start + static_cast<double>(i / repeat) * step;
  return l.add_constant("range", convert(values.view(), dtype));
}

Result<TensorId> arange(Layer& l) {
  double start = l.number("start", 0.0), step = l.number("step", 1.0);
  if (step == 0 || !std::isfinite(step) || !std::isfinite(start)) return invalid_model("illegal start or step");
  if (l.flag("infer_range", false) && !l.has("stop"))
    return unsupported("a range whose length follows from its use").hint("state 'stop'");
  const double stop = l.has("stop") ? l.number("stop", 0.0) : std::exchange(start, 0.0);
  const double length = std::ceil((stop - start) / step);
  if (!(length < static_cast<double>(kMaxRange))) return invalid_model("the range is too long").found(std::to_string(length));
  return number_range(l, start, step, length > 0 ? static_cast<int64_t>(length) : 0, l.integer("repeat", 1),
                      l.dtype("dtype", DType::Float32));
}

Result<TensorId> arange_like(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(Dims shape, l.need_dims(x, "to count along it"));
  const int64_t repeat = l.integer("repeat", 1);
  if (l.has("axis")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, l.axis("axis", 0, std::ssize(shape)));
    shape = {shape[static_cast<size_t>(axis)]};
  }
  const int64_t total = element_count(shape);
  if (repeat < 1 || total % repeat != 0)
    return invalid_model("repeat does not divide the length")
        .expected("a divisor of " + std::to_string(total))
        .found(std::to_string(repeat));
  ORKNN_TRY_ASSIGN(const TensorId range,
                   number_range(l, l.number("start", 0.0), l.number("step", 1.0), total / repeat, repeat, l.dtype_of(x)));
  return l.reshape(range, shape);
}

Result<TensorId> linspace(Layer& l) {
  const int64_t count = l.integer("num", 50), steps = l.flag("endpoint", true) ? count - 1 : count;
  const double start = l.number("start", 0.0), stop = l.number("stop", 1.0);
  return number_range(l, start, steps > 0 ? (stop - start) / static_cast<double>(steps) : 0.0, count, 1,
                      l.dtype("dtype", DType::Float32));
}

Result<TensorId> eye(Layer& l) {
  const int64_t rows = l.integer("N", 0), given = l.integer("M", 0), shift = l.integer("k", 0),
                columns = given > 0 ? given : rows;
  if (rows < 1) return invalid_model("the matrix is empty").found(std::to_string(rows) + "x" + std::to_string(columns));
  return identity_matrix(l, rows, columns, shift, l.dtype("dtype", DType::Float32));
}

TensorId size_array(Layer& l, TensorId x) { return l.reshape(l.unary("Size", x), {1}); }

Status random_numbers(Layer&) {
  return unsupported("this operator draws random numbers")
      .hint("inference needs a fixed result: cut the model before it or make it an input");
}
}  // namespace

std::span<const Row> shape_rows() {
  static const Row rows[] = {
      {"Reshape|reshape|_np_reshape", reshape},
      {"Flatten|flatten", flatten},
      {"reshape_like", reshape_like},
      {"expand_dims", expand_dims},
      {"squeeze|_np_squeeze", squeeze},
      {"transpose|_np_transpose", transpose},
      {"SwapAxis|swapaxes", swap_axes},
      {"depth_to_space", move_blocks<"DepthToSpace">},
      {"space_to_depth", move_blocks<"SpaceToDepth">},
      {"slice|crop", slice},
      {"slice_axis", slice_axis},
      {"slice_like", slice_like},
      {"Crop", crop},
      {"SliceChannel|split", split<outputs_of>},
      {"_split_v2", split<sections_of>},
      {"Concat|concat|_rnn_param_concat|_npi_concatenate", concat, {.inputs = {1}}},
      {"stack|_npi_stack", stack, {.inputs = {1}}},
      {"tile", tile},
      {"repeat", repeat},
      {"reverse|flip|_npi_flip", reverse},
      {"Pad|pad", pad},
      {"broadcast_to|_npi_broadcast_to", broadcast_to},
      {"broadcast_axis|broadcast_axes", broadcast_axis},
      {"broadcast_like", broadcast_like},
      {"_zeros|_zeros_without_dtype|_npi_zeros", zeros},
      {"_ones|_npi_ones", ones},
      {"_full", full},
      {"_arange|_npi_arange", arange},
      {"_contrib_arange_like", arange_like},
      {"_linspace", linspace},
      {"_eye", eye},
      {"shape_array", same<"Shape">},
      {"size_array", size_array},
      {"_random_uniform|_random_normal|_random_gamma|_random_exponential|_random_poisson|_random_randint|"
       "_sample_uniform|_sample_normal|_sample_multinomial|_shuffle|uniform|normal|_random_uniform_like|"
       "_random_normal_like",
       random_numbers},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
