// Reshaping, slicing, joining, repeating and everything else that only moves elements; tensors made from nothing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// --- reshape

// MXNet's codes: 0 copies an extent, -1 takes what is left, -2 copies all that follow, -3 joins two, -4 splits one into the two
// numbers behind it. An element of the result may be -1.
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
      if (i + 2 >= codes.size()) return invalid_model("code -4 needs two numbers behind it").found(to_string(codes));
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
Status reshape(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  std::vector<int64_t> codes = l.integers(l.has("newshape") ? "newshape" : "shape");
  if (codes.empty() && l.has("target_shape")) {  // before 0.9: 0 took what was left
    codes = l.integers("target_shape");
    std::replace(codes.begin(), codes.end(), int64_t{0}, int64_t{-1});
    if (l.flag("keep_highest", false) && !codes.empty()) codes[0] = 0;
  }
  const bool is_plain = std::all_of(codes.begin(), codes.end(), [](int64_t c) { return c >= -1; });
  const bool reverse = l.flag("reverse", false);
  if (is_plain && !reverse && !l.dims_of(x)) {
    l.set_output(l.reshape(x, codes));
    return {};
  }
  ORKNN_TRY_ASSIGN(Dims in, l.need_dims(x, "to reshape it"));
  if (reverse) {
    std::reverse(in.begin(), in.end());
    std::reverse(codes.begin(), codes.end());
  }
  ORKNN_TRY_ASSIGN(std::vector<int64_t> shape, decode_shape(in, codes));
  if (reverse) std::reverse(shape.begin(), shape.end());
  if (std::count(shape.begin(), shape.end(), int64_t{-1}) > 1)
    return invalid_model("more than one -1 in the shape").found(to_string(codes));
  const int64_t total = element_count(in);
  Dims known;
  for (int64_t s : shape)
    if (s != -1) known.push_back(s);
  const auto rest = checked_element_count(known);
  const bool is_open = known.size() < shape.size();
  if (!rest || (is_open ? *rest == 0 || total % *rest != 0 : *rest != total))
    return shape_mismatch("the shape does not fit the data")
        .expected(std::to_string(total) + " elements")
        .found(to_string(shape));
  l.set_output(l.emit("Reshape", {x, l.add_ints("shape", shape)}));
  return {};
}

}  // namespace

Status flatten(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(l.emit("Flatten", {x}, {{"axis", int64_t{1}}}));
  return {};
}

namespace {
// lhs with a range of its axes replaced by a range of rhs's.
Status reshape_like(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId other, l.need(1));
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to reshape it"));
  ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its shape"));
  const auto range = [&](std::string_view begin_key, std::string_view end_key, const Dims& dims) {
    const int64_t rank = static_cast<int64_t>(dims.size());
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
  l.set_output(l.reshape(x, shape));
  return {};
}

Status expand_dims(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(l.unsqueeze(x, {l.integer("axis", 0)}));
  return {};
}

Status squeeze(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  std::vector<int64_t> axes = l.integers("axis");
  if (axes.empty()) {
    ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to drop axes of extent 1"));
    for (size_t i = 0; i < dims.size(); ++i)
      if (dims[i] == 1) axes.push_back(static_cast<int64_t>(i));
    if (axes.size() == dims.size() && !axes.empty()) axes.erase(axes.begin());  // no tensor of rank 0 here
    if (axes.empty()) {
      l.set_output(l.unary("Identity", x));
      return {};
    }
  }
  l.set_output(l.squeeze(x, axes));
  return {};
}

Status transpose(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  std::vector<int64_t> order = l.integers("axes");
  if (order.empty()) {
    ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to reverse its axes"));
    for (int64_t a = rank; a-- > 0;) order.push_back(a);
  }
  const int64_t rank = static_cast<int64_t>(order.size());
  for (int64_t& a : order) {
    ORKNN_TRY_ASSIGN(a, normalize_axis(a, rank));
  }
  l.set_output(l.emit("Transpose", {x}, {{"perm", order}}));
  return {};
}

Status swap_axes(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to swap axes"));
  ORKNN_TRY_ASSIGN(const int64_t first, normalize_axis(l.integer("dim1", 0), rank));
  ORKNN_TRY_ASSIGN(const int64_t second, normalize_axis(l.integer("dim2", 0), rank));
  std::vector<int64_t> order(static_cast<size_t>(rank));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::swap(order[static_cast<size_t>(first)], order[static_cast<size_t>(second)]);
  l.set_output(l.emit("Transpose", {x}, {{"perm", order}}));
  return {};
}

Status depth_to_space(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const int64_t block = l.integer("block_size", 1);
  if (block < 1) return invalid_model("illegal block_size").found(std::to_string(block));
  l.set_output(l.emit(l.op() == "depth_to_space" ? "DepthToSpace" : "SpaceToDepth", {x}, {{"blocksize", block}}));
  return {};
}

// --- slicing

Status slice(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
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
  if (axes.empty())
    l.set_output(l.unary("Identity", x));
  else
    l.set_output(l.emit(
        "Slice", {x, l.add_ints("begin", starts), l.add_ints("end", ends), l.add_ints("axes", axes), l.add_ints("step", steps)}));
  return {};
}

Status slice_axis(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const auto end = l.bounds("end");
  l.set_output(l.slice(x, l.integer("axis", 0), l.integer("begin", 0), end.size() == 1 && end[0] ? *end[0] : INT64_MAX));
  return {};
}

Status slice_like(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId other, l.need(1));
  ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its extents"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(x, "to cut it"));
  std::vector<int64_t> axes = l.integers("axes");
  if (axes.empty())
    for (int64_t a = 0; a < rank; ++a) axes.push_back(a);
  std::vector<int64_t> begins, ends;
  for (int64_t& a : axes) {
    ORKNN_TRY_ASSIGN(const int64_t there, normalize_axis(a, static_cast<int64_t>(like.size())));
    ORKNN_TRY_ASSIGN(a, normalize_axis(a, rank));
    begins.push_back(0);
    ends.push_back(like[static_cast<size_t>(there)]);
  }
  l.set_output(l.emit("Slice", {x, l.add_ints("begin", begins), l.add_ints("end", ends), l.add_ints("axes", axes)}));
  return {};
}

Status crop(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims in, l.need_dims(x, "to cut it"));
  if (in.size() != 4) return shape_mismatch("the data must be [N,C,H,W]").found(to_string(in));
  std::vector<int64_t> size = l.window("h_w", 2, 0, 0), offset = l.window("offset", 2, 0, 0);
  if (l.input_count() > 1) {
    ORKNN_TRY_ASSIGN(const TensorId other, l.need(1));
    ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its size"));
    if (like.size() != 4) return shape_mismatch("the second input must be [N,C,H,W]").found(to_string(like));
    size = {like[2], like[3]};
  }
  if (l.flag("center_crop", false)) offset = {(in[2] - size[0]) / 2, (in[3] - size[1]) / 2};
  for (size_t i = 0; i < 2; ++i)
    if (size[i] < 1 || offset[i] < 0 || offset[i] + size[i] > in[i + 2])
      return shape_mismatch("the cut lies outside of the data")
          .expected("within " + to_string(in))
          .found(to_string(size) + " from " + to_string(offset));
  l.set_output(l.emit("Slice", {x, l.add_ints("begin", offset), l.add_ints("end", {offset[0] + size[0], offset[1] + size[1]}),
                                l.add_ints("axes", {2, 3})}));
  return {};
}

Status split_into(Layer& l, TensorId x, int64_t axis, std::vector<int64_t> sizes, bool drop_axis) {
  const size_t count = sizes.size();
  std::vector<TensorId> parts = count == 1 ? std::vector<TensorId>{l.unary("Identity", x)}
                                           : l.emit_all("Split", {x, l.add_ints("sizes", sizes)}, {{"axis", axis}}, count);
  for (size_t i = 0; i < count; ++i) l.set_output(i, drop_axis ? l.squeeze(parts[i], {axis}) : parts[i]);
  return {};
}

Result<int64_t> extent_of(Layer& l, TensorId x, int64_t& axis) {
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to divide it"));
  ORKNN_TRY_ASSIGN(axis, normalize_axis(axis, static_cast<int64_t>(dims.size())));
  return dims[static_cast<size_t>(axis)];
}

Status slice_channel(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const int64_t count = l.integer("num_outputs", 1);
  int64_t axis = l.integer("axis", 1);
  ORKNN_TRY_ASSIGN(const int64_t extent, extent_of(l, x, axis));
  if (count < 1 || count > 65536 || extent % count != 0)
    return shape_mismatch("the axis does not divide into num_outputs parts")
        .expected("a divisor of " + std::to_string(extent))
        .found(std::to_string(count));
  return split_into(l, x, axis, std::vector<int64_t>(static_cast<size_t>(count), extent / count), l.flag("squeeze_axis", false));
}

Status split_at(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  int64_t axis = l.integer("axis", 1);
  ORKNN_TRY_ASSIGN(const int64_t extent, extent_of(l, x, axis));
  const int64_t sections = l.integer("sections", 0);
  std::vector<int64_t> sizes;
  if (sections > 0) {
    if (extent % sections != 0 || sections > 65536)
      return shape_mismatch("the axis does not divide into equal sections")
          .expected("a divisor of " + std::to_string(extent))
          .found(std::to_string(sections));
    sizes.assign(static_cast<size_t>(sections), extent / sections);
  } else {
    std::vector<int64_t> indices = l.integers("indices");  // where parts begin, the 0 of the first one among them
    if (indices.empty() || indices[0] != 0) indices.insert(indices.begin(), 0);
    indices.push_back(extent);
    for (size_t i = 0; i + 1 < indices.size(); ++i) {
      if (indices[i + 1] < indices[i]) return invalid_model("the indices are not in order").found(to_string(indices));
      sizes.push_back(indices[i + 1] - indices[i]);
    }
  }
  return split_into(l, x, axis, std::move(sizes), l.flag("squeeze_axis", false));
}

// --- joining and repeating

Result<std::vector<TensorId>> all_inputs(Layer& l) {
  std::vector<TensorId> parts;
  for (size_t i = 0; i < l.input_count(); ++i) {
    ORKNN_TRY_ASSIGN(const TensorId part, l.need(i));
    parts.push_back(part);
  }
  if (parts.empty()) return invalid_model("an operator without inputs");
  for (TensorId& p : parts) p = l.cast(p, l.dtype_of(parts[0]));
  return parts;
}

Status concat(Layer& l) {
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> parts, all_inputs(l));
  l.set_output(parts.size() == 1 ? l.unary("Identity", parts[0]) : l.concat(parts, l.integer("dim", l.integer("axis", 1))));
  return {};
}

Status stack(Layer& l) {
  ORKNN_TRY_ASSIGN(std::vector<TensorId> parts, all_inputs(l));
  const int64_t axis = l.integer("axis", 0);
  for (TensorId& p : parts) p = l.unsqueeze(p, {axis});
  l.set_output(l.concat(parts, axis));
  return {};
}

Status tile(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  std::vector<int64_t> repeats = l.integers("reps");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to repeat it"));
  if (std::any_of(repeats.begin(), repeats.end(), [](int64_t r) { return r < 0; }))
    return invalid_model("a negative number of repetitions").found(to_string(repeats));
  if (repeats.size() > dims.size()) {
    std::vector<int64_t> shape(repeats.size() - dims.size(), 1);
    shape.insert(shape.end(), dims.begin(), dims.end());
    x = l.reshape(x, shape);
  }
  if (repeats.size() < dims.size()) repeats.insert(repeats.begin(), dims.size() - repeats.size(), 1);
  l.set_output(l.emit("Tile", {x, l.add_ints("repeats", repeats)}));
  return {};
}

// Every element several times in a row.
Status repeat(Layer& l) {
  ORKNN_TRY_ASSIGN(TensorId x, l.need(0));
  const int64_t count = l.integer("repeats", 1);
  if (count < 1) return invalid_model("illegal number of repetitions").found(std::to_string(count));
  if (!l.has("axis")) x = l.reshape(x, {-1});
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to repeat its elements"));
  ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.integer("axis", 0), static_cast<int64_t>(dims.size())));
  const auto at = static_cast<std::ptrdiff_t>(axis);
  Dims wide = dims, shape = dims;
  wide.insert(wide.begin() + at + 1, count);
  shape[static_cast<size_t>(axis)] *= count;
  if (!checked_element_count(wide)) return shape_mismatch("the result would be too large").found(to_string(wide));
  l.set_output(l.reshape(l.expand(l.unsqueeze(x, {axis + 1}), wide), shape));
  return {};
}

Status reverse(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const std::vector<int64_t> axes = l.integers("axis");
  const std::vector<int64_t> starts(axes.size(), INT64_MAX), ends(axes.size(), INT64_MIN), steps(axes.size(), -1);
  if (axes.empty()) return invalid_model("no axis to reverse");
  l.set_output(l.emit(
      "Slice", {x, l.add_ints("begin", starts), l.add_ints("end", ends), l.add_ints("axes", axes), l.add_ints("step", steps)}));
  return {};
}

Status pad(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  const std::vector<int64_t> widths = l.integers("pad_width");
  if (widths.size() % 2 != 0 || widths.empty())
    return invalid_model("illegal pad_width").expected("two numbers per axis").found(to_string(widths));
  std::vector<int64_t> pads;
  for (size_t i = 0; i < widths.size(); i += 2) pads.push_back(widths[i]);
  for (size_t i = 1; i < widths.size(); i += 2) pads.push_back(widths[i]);
  const std::string mode = l.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect")
    return unsupported("unknown mode").expected("constant, edge or reflect").found(mode);
  std::vector<TensorId> inputs{x, l.add_ints("pads", pads)};
  if (mode == "constant") inputs.push_back(l.add_scalar("value", l.number("constant_value", 0.0), l.dtype_of(x)));
  l.set_output(l.emit("Pad", std::move(inputs), {{"mode", mode}}));
  return {};
}

// --- broadcasting

Status broadcast_to(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  std::vector<int64_t> shape = l.integers("shape");
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to broadcast it"));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] > 0) continue;
    const size_t skipped = shape.size() - std::min(shape.size(), dims.size());
    if (i < skipped) return invalid_model("0 copies an extent that does not exist").found(to_string(shape));
    shape[i] = dims[i - skipped + (dims.size() > shape.size() ? dims.size() - shape.size() : 0)];
  }
  l.set_output(l.expand(x, shape));
  return {};
}

Status broadcast_axis(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(Dims shape, l.need_dims(x, "to broadcast it"));
  const std::vector<int64_t> axes = l.integers("axis"), sizes = l.integers("size");
  if (axes.size() != sizes.size()) return invalid_model("axis and size differ in length");
  for (size_t i = 0; i < axes.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t at, normalize_axis(axes[i], static_cast<int64_t>(shape.size())));
    if (sizes[i] < 0) return invalid_model("a negative size").found(to_string(sizes));
    shape[static_cast<size_t>(at)] = sizes[i];
  }
  l.set_output(l.expand(x, shape));
  return {};
}

Status broadcast_like(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const TensorId other, l.need(1));
  ORKNN_TRY_ASSIGN(Dims shape, l.need_dims(x, "to broadcast it"));
  ORKNN_TRY_ASSIGN(const Dims like, l.need_dims(other, "to take its shape"));
  const std::vector<int64_t> own = l.integers("lhs_axes"), theirs = l.integers("rhs_axes");
  if (own.size() != theirs.size()) return invalid_model("lhs_axes and rhs_axes differ in length");
  if (own.empty()) shape = like;
  for (size_t i = 0; i < own.size(); ++i) {
    ORKNN_TRY_ASSIGN(const int64_t to, normalize_axis(own[i], static_cast<int64_t>(shape.size())));
    ORKNN_TRY_ASSIGN(const int64_t from, normalize_axis(theirs[i], static_cast<int64_t>(like.size())));
    shape[static_cast<size_t>(to)] = like[static_cast<size_t>(from)];
  }
  l.set_output(l.expand(x, shape));
  return {};
}

// --- from nothing

// An unknown extent (0, the batch of an initial state) becomes 1: such tensors are broadcast where they are used.
Status filled(Layer& l) {
  Dims dims = l.integers("shape");
  for (int64_t& d : dims)
    if (d <= 0) d = 1;
  const double value = l.op() == "_ones" ? 1.0 : l.op() == "_full" ? l.number("value", 0.0) : 0.0;
  if (!checked_element_count(dims, int64_t{1} << 31)) return invalid_model("a tensor of absurd size").found(to_string(dims));
  l.set_output(l.expand(l.add_scalar("value", value, l.dtype("dtype", DType::Float32)), dims));
  return {};
}

constexpr int64_t kMaxRange = int64_t{1} << 22;

Status number_range(Layer& l, double start, double step, int64_t count, int64_t repeat, DType dtype, const Dims& shape) {
  if (repeat < 1 || count < 0 || count > kMaxRange / repeat)
    return invalid_model("a range of absurd length").found(std::to_string(count) + " x " + std::to_string(repeat));
  TensorData values = TensorData::allocate(DType::Float64, {count * repeat});
  double* to = static_cast<double*>(values.mutable_data());
  for (int64_t i = 0; i < count * repeat; ++i) to[i] = start + static_cast<double>(i / repeat) * step;
  l.set_output(l.add_constant("range", convert(values.view(), dtype).reshaped(shape)));
  return {};
}

Status arange(Layer& l) {
  double start = l.number("start", 0.0), step = l.number("step", 1.0);
  if (step == 0 || !std::isfinite(step) || !std::isfinite(start)) return invalid_model("illegal start or step");
  if (l.flag("infer_range", false) && !l.has("stop"))
    return unsupported("a range whose length follows from its use").hint("state 'stop'");
  double stop = l.number("stop", 0.0);
  if (!l.has("stop")) {
    stop = start;
    start = 0;
  }
  const double length = std::ceil((stop - start) / step);
  if (!(length < static_cast<double>(kMaxRange))) return invalid_model("a range of absurd length").found(std::to_string(length));
  const int64_t count = std::max<int64_t>(0, static_cast<int64_t>(length)), repeat = l.integer("repeat", 1);
  return number_range(l, start, step, count, repeat, l.dtype("dtype", DType::Float32), {count * std::max<int64_t>(repeat, 1)});
}

Status arange_like(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to count along it"));
  const int64_t repeat = l.integer("repeat", 1);
  Dims shape = dims;
  if (l.has("axis")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, normalize_axis(l.integer("axis", 0), static_cast<int64_t>(dims.size())));
    shape = {dims[static_cast<size_t>(axis)]};
  }
  const int64_t total = element_count(shape);
  if (repeat < 1 || total % repeat != 0)
    return invalid_model("repeat does not divide the length")
        .expected("a divisor of " + std::to_string(total))
        .found(std::to_string(repeat));
  return number_range(l, l.number("start", 0.0), l.number("step", 1.0), total / repeat, repeat, l.dtype_of(x), shape);
}

Status linspace(Layer& l) {
  const int64_t count = l.integer("num", 50);
  const double start = l.number("start", 0.0), stop = l.number("stop", 1.0);
  const int64_t steps = l.flag("endpoint", true) ? count - 1 : count;
  return number_range(l, start, steps > 0 ? (stop - start) / static_cast<double>(steps) : 0.0, count, 1,
                      l.dtype("dtype", DType::Float32), {count});
}

Status eye(Layer& l) {
  const int64_t rows = l.integer("N", 0), given = l.integer("M", 0), shift = l.integer("k", 0),
                columns = given > 0 ? given : rows;
  if (rows < 1 || !checked_element_count(std::vector<int64_t>{rows, columns}, kMaxRange))
    return invalid_model("a matrix of absurd size").found(std::to_string(rows) + "x" + std::to_string(columns));
  std::vector<float> values(static_cast<size_t>(rows * columns), 0.0f);
  for (int64_t r = 0; r < rows; ++r)
    if (r + shift >= 0 && r + shift < columns) values[static_cast<size_t>(r * columns + r + shift)] = 1.0f;
  l.set_output(l.cast(l.floats("eye", {rows, columns}, values), l.dtype("dtype", DType::Float32)));
  return {};
}

Status shape_array(Layer& l) {
  ORKNN_TRY_ASSIGN(const TensorId x, l.need(0));
  l.set_output(l.op() == "shape_array" ? l.unary("Shape", x) : l.reshape(l.unary("Size", x), {1}));
  return {};
}

Status random_numbers(Layer&) {
  return unsupported("this operator draws random numbers")
      .hint("inference needs a fixed result: cut the model before it or make it an input");
}
}  // namespace

std::span<const Row> shape_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> list{
        {"Reshape", reshape},
        {"reshape", reshape},
        {"_np_reshape", reshape},
        {"Flatten", flatten},
        {"flatten", flatten},
        {"reshape_like", reshape_like},
        {"expand_dims", expand_dims},
        {"squeeze", squeeze},
        {"_np_squeeze", squeeze},
        {"transpose", transpose},
        {"_np_transpose", transpose},
        {"SwapAxis", swap_axes},
        {"swapaxes", swap_axes},
        {"depth_to_space", depth_to_space},
        {"space_to_depth", depth_to_space},
        {"slice", slice},
        {"crop", slice},
        {"slice_axis", slice_axis},
        {"slice_like", slice_like},
        {"Crop", crop},
        {"SliceChannel", slice_channel},
        {"split", slice_channel},
        {"_split_v2", split_at},
        {"Concat", concat},
        {"concat", concat},
        {"_rnn_param_concat", concat},
        {"_npi_concatenate", concat},
        {"stack", stack},
        {"_npi_stack", stack},
        {"tile", tile},
        {"repeat", repeat},
        {"reverse", reverse},
        {"flip", reverse},
        {"_npi_flip", reverse},
        {"Pad", pad},
        {"pad", pad},
        {"broadcast_to", broadcast_to},
        {"_npi_broadcast_to", broadcast_to},
        {"broadcast_axis", broadcast_axis},
        {"broadcast_axes", broadcast_axis},
        {"broadcast_like", broadcast_like},
        {"_zeros", filled},
        {"_ones", filled},
        {"_full", filled},
        {"_zeros_without_dtype", filled},
        {"_npi_zeros", filled},
        {"_npi_ones", filled},
        {"_arange", arange},
        {"_npi_arange", arange},
        {"_contrib_arange_like", arange_like},
        {"_linspace", linspace},
        {"_eye", eye},
        {"shape_array", shape_array},
        {"size_array", shape_array},
    };
    for (std::string_view op : {"_random_uniform", "_random_normal", "_random_gamma", "_random_exponential", "_random_poisson",
                                "_random_randint", "_sample_uniform", "_sample_normal", "_sample_multinomial", "_shuffle",
                                "uniform", "normal", "_random_uniform_like", "_random_normal_like"})
      list.push_back({op, random_numbers});
    return list;
  }();
  return rows;
}

}  // namespace orknn::importer::mxnet
