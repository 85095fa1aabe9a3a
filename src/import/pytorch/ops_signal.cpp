// Fourier transforms and complex numbers. A complex tensor has its real and imaginary parts in an axis of its own at the end of
// the value in the graph; only rows that say `complex` take one.
#include <cmath>
#include <numeric>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

constexpr int64_t kMaxLength = 1 << 24;

// --- parts

TensorId part(Call& c, TensorId x, int64_t i) { return c.gather(x, c.add_int_scalar("part", i), -1); }
TensorId joined(Call& c, TensorId real, TensorId imaginary) {
  return c.concat({c.unsqueeze(real, {-1}), c.unsqueeze(imaginary, {-1})}, -1);
}

bool is_complex(Call& c, std::string_view name) { return c.value(name).is_tensor() && c.value(name).tensor().is_complex; }

Result<Value> real_part(Call& c) { return c.made(part(c, c.tensor("self"), 0)); }
Result<Value> imaginary_part(Call& c) { return c.made(part(c, c.tensor("self"), 1)); }
Result<Value> as_real(Call& c) { return c.made(c.tensor("self")); }
Result<Value> as_complex(Call& c) { return c.made_complex(c.tensor("self")); }
Result<Value> complex_of(Call& c) { return c.made_complex(joined(c, c.tensor("real"), c.tensor("imag"))); }
Result<Value> polar(Call& c) {
  const TensorId angle = c.tensor("angle");
  return c.made_complex(
      joined(c, c.mul(c.tensor("abs"), c.emit("Cos", {angle})), c.mul(c.tensor("abs"), c.emit("Sin", {angle}))));
}
Result<Value> magnitude(Call& c) { return c.made(c.reduce("ReduceL2", c.tensor("self"), {-1}, false)); }
Result<Value> conjugate(Call& c) {
  const TensorId x = c.tensor("self");
  return c.made_complex(joined(c, part(c, x, 0), c.emit("Neg", {part(c, x, 1)})));
}
// The angle between the parts: that of their quotient, turned by half a circle left of the origin.
Result<Value> angle(Call& c) {
  const TensorId x = c.tensor("self"), real = part(c, x, 0), imaginary = part(c, x, 1);
  const DType t = c.dtype_of(x);
  constexpr double kPi = 3.14159265358979323846;
  const TensorId zero = c.scalar(0, t);
  const TensorId is_left = c.emit("Less", {real, zero}), is_below = c.emit("Less", {imaginary, zero}),
                 is_upright = c.emit("Equal", {real, zero});
  const TensorId slope = c.emit("Atan", {c.div(imaginary, c.where(is_upright, c.scalar(1, t), real))});
  const TensorId turned = c.where(is_left, c.add(slope, c.where(is_below, c.scalar(-kPi, t), c.scalar(kPi, t))), slope);
  const TensorId upright = c.mul(c.emit("Sign", {imaginary}), c.scalar(kPi / 2, t));
  return c.made(c.where(is_upright, upright, turned));
}

// --- arithmetic

// An operand with both parts.
TensorId both_parts(Call& c, std::string_view name, DType t) {
  if (is_complex(c, name)) return c.tensor(name);
  const TensorId real = c.as(c.value(name), t);
  return joined(c, real, c.mul(real, c.scalar(0, t)));
}
DType type_of_parts(Call& c) { return c.dtype_of(c.tensor(is_complex(c, "self") ? "self" : "other")); }

Result<Value> sum(Call& c, bool negative) {
  const DType t = type_of_parts(c);
  if (c.has("alpha") && c.number("alpha") != 1) return c.fail("complex sums with a factor are not supported");
  return c.made_complex(c.emit(negative ? "Sub" : "Add", {both_parts(c, "self", t), both_parts(c, "other", t)}));
}
Result<Value> add(Call& c) { return sum(c, false); }
Result<Value> sub(Call& c) { return sum(c, true); }
// A real factor or divisor works on both parts alike.
Result<Value> scaled(Call& c, const char* op, std::string_view complex, std::string_view real) {
  const TensorId x = c.tensor(complex);
  const DType t = c.dtype_of(x);
  const TensorId factor = c.as(c.value(real), t);
  return c.made_complex(c.emit(op, {x, c.value(real).is_tensor() ? c.unsqueeze(factor, {-1}) : factor}));
}
Result<Value> product(Call& c) {
  if (!is_complex(c, "other")) return scaled(c, "Mul", "self", "other");
  if (!is_complex(c, "self")) return scaled(c, "Mul", "other", "self");
  const TensorId a = c.tensor("self"), b = c.tensor("other");
  const TensorId ar = part(c, a, 0), ai = part(c, a, 1), br = part(c, b, 0), bi = part(c, b, 1);
  return c.made_complex(joined(c, c.sub(c.mul(ar, br), c.mul(ai, bi)), c.add(c.mul(ar, bi), c.mul(ai, br))));
}
Result<Value> quotient(Call& c) {
  if (!is_complex(c, "other")) return scaled(c, "Div", "self", "other");
  const DType t = type_of_parts(c);
  const TensorId a = both_parts(c, "self", t), b = c.tensor("other");
  const TensorId ar = part(c, a, 0), ai = part(c, a, 1), br = part(c, b, 0), bi = part(c, b, 1);
  const TensorId real = c.add(c.mul(ar, br), c.mul(ai, bi)), imaginary = c.sub(c.mul(ai, br), c.mul(ar, bi));
  return c.made_complex(c.div(joined(c, real, imaginary), c.reduce("ReduceSumSquare", b, {-1}, true)));
}

// --- shapes: copies, never views

Result<Value> sizes(Call& c) { return c.int_list(c.dims("self")); }
Result<Value> one_size(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return Value(c.rank("self") == 0 ? int64_t{1} : c.dims("self")[axis]);
}
Result<Value> rank(Call& c) { return Value(c.rank("self")); }
Result<Value> always(Call&) { return Value(true); }
Result<Value> same(Call& c) { return c.value("self"); }
Result<Value> transpose(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t a, c.axis("dim0", c.rank("self")));
  ORKNN_TRY_ASSIGN(const size_t b, c.axis("dim1", c.rank("self")));
  return c.made_complex(c.swap_axes(c.tensor("self"), static_cast<int64_t>(a), static_cast<int64_t>(b)));
}
Result<Value> permute(Call& c) {
  std::vector<int64_t> order;
  for (int64_t axis : c.ints("dims")) {
    ORKNN_TRY_ASSIGN(const size_t a, c.axis_of(axis, c.rank("self")));
    order.push_back(static_cast<int64_t>(a));
  }
  order.push_back(c.rank("self"));
  return c.made_complex(c.transpose(c.tensor("self"), std::move(order)));
}
Result<Value> unsqueeze(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self") + 1));
  return c.made_complex(c.unsqueeze(c.tensor("self"), {static_cast<int64_t>(axis)}));
}
Result<Value> squeeze(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  if (c.rank("self") == 0 || c.dims("self")[axis] != 1) return c.value("self");
  return c.made_complex(c.squeeze(c.tensor("self"), {static_cast<int64_t>(axis)}));
}
Result<Value> slice(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  const int64_t start = c.has("start") ? c.integer("start") : 0, end = c.has("end") ? c.integer("end") : INT64_MAX;
  if (c.integer("step") < 1) return invalid_model("a slice needs a positive step").found(std::to_string(c.integer("step")));
  return c.made_complex(c.slice(c.tensor("self"), static_cast<int64_t>(axis), start, end, c.integer("step")));
}
Result<Value> select(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t axis, c.axis("dim", c.rank("self")));
  return c.made_complex(c.gather(c.tensor("self"), c.add_int_scalar("index", c.integer("index")), static_cast<int64_t>(axis)));
}
Result<Value> reshape(Call& c) {
  std::vector<int64_t> shape = c.ints("shape");
  shape.push_back(2);
  return c.made_complex(c.reshape(c.tensor("self"), std::move(shape)));
}
Result<Value> flatten(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t first, c.axis("start_dim", c.rank("self")));
  ORKNN_TRY_ASSIGN(const size_t last, c.axis("end_dim", c.rank("self")));
  const Dims& dims = c.dims("self");
  if (first > last || dims.empty()) return c.value("self");
  Dims shape(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(first));
  shape.push_back(-1);
  shape.insert(shape.end(), dims.begin() + static_cast<ptrdiff_t>(last) + 1, dims.end());
  shape.push_back(2);
  return c.made_complex(c.reshape(c.tensor("self"), std::move(shape)));
}

// --- transforms

enum class Transform { Forward, Inverse, RealForward, RealInverse };

enum class Division { None, ByRoot, ByLength };  // as PyTorch numbers them

bool is_inverse(Transform kind) { return kind == Transform::Inverse || kind == Transform::RealInverse; }

// How the `norm` of a transform divides what it gives.
Result<Division> division_of(Call& c, Transform kind) {
  const std::string norm = c.has("norm") ? std::string(c.text("norm")) : "backward";
  if (norm == "ortho") return Division::ByRoot;
  if (norm == "backward") return is_inverse(kind) ? Division::ByLength : Division::None;
  if (norm == "forward") return is_inverse(kind) ? Division::None : Division::ByLength;
  return invalid_model("unknown normalization of a transform").expected("backward, ortho or forward").found(norm);
}

// `x` has its parts in the last axis, which a real signal has one of.
TensorId along(Call& c, TensorId x, int64_t axis, int64_t length, Transform kind) {
  ir::Attributes attributes;
  if (is_inverse(kind)) attributes.set("inverse", int64_t{1});
  if (kind == Transform::RealForward || kind == Transform::RealInverse) attributes.set("onesided", int64_t{1});
  return c.emit("DFT", {x, c.add_int_scalar("length", length), c.add_int_scalar("axis", axis)}, std::move(attributes));
}

// The axes of a transform and how many elements of each it works on; a negative length means all there are.
Result<Value> transformed(Call& c, std::vector<int64_t> axes, std::vector<int64_t> lengths, Transform kind, Division division) {
  const int64_t rank = c.rank("self");
  if (axes.empty() || rank == 0) return invalid_model("a transform needs an axis").found(ir::to_string(c.dims("self")));
  if (!lengths.empty() && lengths.size() != axes.size())
    return invalid_model("a transform needs one length per axis")
        .expected(std::to_string(axes.size()))
        .found(std::to_string(lengths.size()));
  TensorId x = is_complex(c, "self") ? c.tensor("self") : c.unsqueeze(c.as_float("self"), {-1});
  double elements = 1;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    ORKNN_TRY_ASSIGN(const size_t axis, c.axis_of(axes[i], rank));
    axes[i] = static_cast<int64_t>(axis);
    const int64_t extent = c.dims("self")[axis];
    const bool is_last_of_real = kind == Transform::RealInverse && i + 1 == axes.size();
    const int64_t length = !lengths.empty() && lengths[i] >= 0 ? lengths[i] : is_last_of_real ? 2 * (extent - 1) : extent;
    if (length < 1 || length > kMaxLength) return invalid_model("illegal length of a transform").found(std::to_string(length));
    sizes.push_back(length);
    elements *= static_cast<double>(length);
  }
  // The last axis is the one of which a real signal has half a spectrum: first there, last on the way back.
  const Transform other = is_inverse(kind) ? Transform::Inverse : Transform::Forward;
  if (kind != Transform::RealInverse) x = along(c, x, axes.back(), sizes.back(), kind);
  for (size_t i = axes.size() - 1; i-- > 0;) x = along(c, x, axes[i], sizes[i], other);
  if (kind == Transform::RealInverse) x = along(c, x, axes.back(), sizes.back(), kind);
  double factor = division == Division::ByRoot ? 1 / std::sqrt(elements) : division == Division::ByLength ? 1 / elements : 1;
  if (is_inverse(kind)) factor = division == Division::ByLength ? 1 : factor * elements;  // our inverse divides by the length
  if (factor != 1) x = c.mul(x, c.scalar(factor, c.dtype_of(x)));
  return kind == Transform::RealInverse ? c.made(c.squeeze(x, {-1})) : c.made_complex(x);
}

template <Transform Kind>
Result<Value> one_axis(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, division_of(c, Kind));
  return transformed(c, {c.integer("dim")}, {c.has("n") ? c.integer("n") : -1}, Kind, division);
}
template <Transform Kind>
Result<Value> many_axes(Call& c) {
  std::vector<int64_t> lengths = c.ints("s"), axes = c.ints("dim");
  if (axes.empty()) {  // the last ones, as many as lengths are given, or all
    axes.resize(lengths.empty() ? static_cast<size_t>(c.rank("self")) : lengths.size());
    std::iota(axes.begin(), axes.end(), -static_cast<int64_t>(axes.size()));
  }
  ORKNN_TRY_ASSIGN(const Division division, division_of(c, Kind));
  return transformed(c, std::move(axes), std::move(lengths), Kind, division);
}
// The forms that archives of torch.export call: the division is a number.
Result<Division> numbered_division(Call& c) {
  const int64_t number = c.integer("normalization");
  if (number < 0 || number > 2)
    return invalid_model("unknown normalization of a transform").expected("0 to 2").found(std::to_string(number));
  return static_cast<Division>(number);
}
Result<Value> real_to_complex(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, numbered_division(c));
  return transformed(c, c.ints("dim"), {}, c.flag("onesided") ? Transform::RealForward : Transform::Forward, division);
}
Result<Value> complex_to_real(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, numbered_division(c));
  std::vector<int64_t> lengths(c.ints("dim").size(), -1);
  if (!lengths.empty()) lengths.back() = c.integer("last_dim_size");
  return transformed(c, c.ints("dim"), std::move(lengths), Transform::RealInverse, division);
}
Result<Value> complex_to_complex(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, numbered_division(c));
  return transformed(c, c.ints("dim"), {}, c.flag("forward") ? Transform::Forward : Transform::Inverse, division);
}

// --- spectrograms

// The window as long as a frame: its own length in the middle, zeros around.
Result<TensorId> window_of(Call& c, int64_t frame, DType t) {
  const int64_t length = c.has("win_length") ? c.integer("win_length") : frame;
  if (length < 1 || length > frame)
    return invalid_model("the window does not fit the frame")
        .expected("1 to " + std::to_string(frame))
        .found(std::to_string(length));
  if (c.has("window") && c.dims("window") != Dims{length})
    return shape_mismatch("the window has another length than stated")
        .expected(ir::to_string(Dims{length}))
        .found(ir::to_string(c.dims("window")));
  const TensorId window = c.has("window") ? c.cast(c.tensor("window"), t) : c.full(Dims{length}, 1, t);
  if (length == frame) return window;
  const int64_t left = (frame - length) / 2;
  return c.emit("Pad", {window, c.add_ints("pads", {left, frame - length - left})});
}

Result<Value> stft(Call& c, bool center) {
  const int64_t frame = c.integer("n_fft"), hop = c.has("hop_length") ? c.integer("hop_length") : frame / 4;
  if (frame < 1 || frame > kMaxLength || hop < 1)
    return invalid_model("illegal frames").found(std::to_string(frame) + " elements every " + std::to_string(hop));
  const bool has_batch = c.rank("self") == 2;
  if (c.rank("self") != 1 && !has_batch)
    return invalid_model("a spectrogram is made of signals [batch, time]").found(ir::to_string(c.dims("self")));
  TensorId x = c.as_float("self");
  const DType t = c.dtype_of(x);
  if (!has_batch) x = c.unsqueeze(x, {0});
  if (center) {
    const std::string mode(c.text("pad_mode"));
    if (mode != "reflect" && mode != "constant" && mode != "replicate")
      return c.fail("padding mode '" + mode + "' is not supported");
    x = c.emit("Pad", {x, c.add_ints("pads", {0, frame / 2, 0, frame / 2})},
               {{"mode", mode == "replicate" ? std::string("edge") : mode}});
  }
  ORKNN_TRY_ASSIGN(const TensorId window, window_of(c, frame, t));
  const bool onesided = !c.has("onesided") || c.flag("onesided");
  TensorId y = c.emit("STFT", {c.unsqueeze(x, {-1}), c.add_int_scalar("step", hop), window, c.add_int_scalar("frame", frame)},
                      {{"onesided", int64_t{onesided}}});
  y = c.transpose(y, {0, 2, 1, 3});  // frequencies before frames
  if (c.flag("normalized")) y = c.mul(y, c.scalar(1 / std::sqrt(static_cast<double>(frame)), t));
  if (!has_batch) y = c.squeeze(y, {0});
  return c.has("return_complex") && c.flag("return_complex") ? c.made_complex(y) : c.made(y);
}
Result<Value> stft_of_frames(Call& c) { return stft(c, false); }
Result<Value> stft_centered(Call& c) { return stft(c, c.flag("center")); }

// Frames back to a signal: each is weighted once more, added where it overlaps others, and divided by the sum of squared weights
// there.
Result<Value> istft(Call& c) {
  const int64_t frame = c.integer("n_fft"), hop = c.has("hop_length") ? c.integer("hop_length") : frame / 4;
  if (frame < 1 || frame > (1 << 16) || hop < 1 || hop > frame)
    return invalid_model("illegal frames").found(std::to_string(frame) + " elements every " + std::to_string(hop));
  const bool has_batch = c.rank("self") == 3;
  if (c.rank("self") != 2 && !has_batch)
    return invalid_model("a spectrogram is [batch, frequencies, frames]").found(ir::to_string(c.dims("self")));
  if (c.flag("return_complex")) return c.fail("complex signals are not supported");
  TensorId x = c.tensor("self");
  const DType t = c.dtype_of(x);
  if (!has_batch) x = c.unsqueeze(x, {0});
  const int64_t frames = c.dims("self").back(), bins = c.dims("self")[c.dims("self").size() - 2];
  if (bins != frame / 2 + 1 || (c.has("onesided") && !c.flag("onesided")))
    return c.fail("only spectrograms with half of the frequencies are supported")
        .expected(std::to_string(frame / 2 + 1))
        .found(std::to_string(bins));
  if (c.flag("normalized")) x = c.mul(x, c.scalar(std::sqrt(static_cast<double>(frame)), t));
  ORKNN_TRY_ASSIGN(const TensorId window, window_of(c, frame, t));
  const TensorId signals = c.mul(c.squeeze(along(c, c.transpose(x, {0, 2, 1, 3}), 2, frame, Transform::RealInverse), {-1}),
                                 window);  // [batch, frames, frame]
  const int64_t total = frame + hop * (frames - 1), begin = c.flag("center") ? frame / 2 : 0;
  const TensorId extent = c.add_ints("extent", {1, total}), block = c.add_ints("block", {1, frame});
  const auto overlapped = [&](TensorId rows) {  // [batch, 1, 1, total]
    return c.emit("Col2Im", {c.transpose(rows, {0, 2, 1}), extent, block}, {{"strides", std::vector<int64_t>{1, hop}}});
  };
  const TensorId weights = c.expand(c.reshape(c.mul(window, window), {1, 1, frame}), Dims{1, frames, frame});
  const int64_t end = c.has("length") ? begin + c.integer("length") : c.flag("center") ? total - frame / 2 : total;
  if (end <= begin || end > total)
    return c.fail("the wanted length is longer than the signal")
        .expected("at most " + std::to_string(total - begin))
        .found(std::to_string(end - begin));
  const TensorId y =
      c.squeeze(c.div(c.slice(overlapped(signals), 3, begin, end), c.slice(overlapped(weights), 3, begin, end)), {1, 2});
  return c.made(has_batch ? y : c.squeeze(y, {0}));
}

// Halves of axes change places.
template <bool Back>
Result<Value> shifted(Call& c) {
  TensorId x = c.tensor("self");
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, c.axes("dim", c.rank("self")));
  for (int64_t axis : axes) {
    const int64_t extent = c.dims("self")[static_cast<size_t>(axis)], middle = Back ? extent / 2 : (extent + 1) / 2;
    if (extent > 1) x = c.concat({c.slice(x, axis, middle, extent), c.slice(x, axis, 0, middle)}, axis);
  }
  return is_complex(c, "self") ? c.made_complex(x) : c.made(x);
}

#define ORKNN_ONE_AXIS " self, int? n=None, int dim=-1, str? norm=None)"
#define ORKNN_TWO_AXES " self, int[]? s=None, int[] dim=[-2, -1], str? norm=None)"
#define ORKNN_ALL_AXES " self, int[]? s=None, int[]? dim=None, str? norm=None)"
}  // namespace

std::span<const Row> signal_rows() {
  static constexpr Row kRows[] = {
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, "
       "bool? "
       "onesided=None, bool? return_complex=None, any align=None)",
       stft_of_frames},
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str "
       "pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, any align=None)",
       stft_centered},
      {"istft(complex self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool "
       "normalized=False, bool? onesided=None, int? length=None, bool return_complex=False)",
       istft},
      {"fft_fft(Tensor" ORKNN_ONE_AXIS, one_axis<Transform::Forward>},
      {"fft_fft(complex" ORKNN_ONE_AXIS, one_axis<Transform::Forward>},
      {"fft_ifft(Tensor" ORKNN_ONE_AXIS, one_axis<Transform::Inverse>},
      {"fft_ifft(complex" ORKNN_ONE_AXIS, one_axis<Transform::Inverse>},
      {"fft_rfft(Tensor" ORKNN_ONE_AXIS, one_axis<Transform::RealForward>},
      {"fft_irfft(complex" ORKNN_ONE_AXIS, one_axis<Transform::RealInverse>},
      {"fft_irfft(Tensor" ORKNN_ONE_AXIS, one_axis<Transform::RealInverse>},
      {"fft_fft2(Tensor" ORKNN_TWO_AXES, many_axes<Transform::Forward>},
      {"fft_fft2(complex" ORKNN_TWO_AXES, many_axes<Transform::Forward>},
      {"fft_ifft2(Tensor" ORKNN_TWO_AXES, many_axes<Transform::Inverse>},
      {"fft_ifft2(complex" ORKNN_TWO_AXES, many_axes<Transform::Inverse>},
      {"fft_rfft2(Tensor" ORKNN_TWO_AXES, many_axes<Transform::RealForward>},
      {"fft_irfft2(complex" ORKNN_TWO_AXES, many_axes<Transform::RealInverse>},
      {"fft_fftn(Tensor" ORKNN_ALL_AXES, many_axes<Transform::Forward>},
      {"fft_fftn(complex" ORKNN_ALL_AXES, many_axes<Transform::Forward>},
      {"fft_ifftn(Tensor" ORKNN_ALL_AXES, many_axes<Transform::Inverse>},
      {"fft_ifftn(complex" ORKNN_ALL_AXES, many_axes<Transform::Inverse>},
      {"fft_rfftn(Tensor" ORKNN_ALL_AXES, many_axes<Transform::RealForward>},
      {"fft_irfftn(complex" ORKNN_ALL_AXES, many_axes<Transform::RealInverse>},
      {"_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided)", real_to_complex},
      {"_fft_c2r(complex self, int[] dim, int normalization, int last_dim_size)", complex_to_real},
      {"_fft_c2c(complex self, int[] dim, int normalization, bool forward)", complex_to_complex},
      {"fft_fftshift(Tensor self, int[]? dim=None)", shifted<false>},
      {"fft_fftshift(complex self, int[]? dim=None)", shifted<false>},
      {"fft_ifftshift(Tensor self, int[]? dim=None)", shifted<true>},
      {"fft_ifftshift(complex self, int[]? dim=None)", shifted<true>},
      {"view_as_complex(Tensor self)", as_complex},
      {"view_as_real(complex self)", as_real},
      {"complex(Tensor real, Tensor imag)", complex_of},
      {"polar(Tensor abs, Tensor angle)", polar},
      {"real(complex self)", real_part},
      {"imag(complex self)", imaginary_part},
      {"abs(complex self)", magnitude},
      {"angle(complex self)", angle},
      {"conj(complex self)", conjugate},
      {"_conj(complex self)", conjugate},
      {"conj_physical(complex self)", conjugate},
      {"resolve_conj(complex self)", same},
      {"resolve_neg(complex self)", same},
      {"add(complex self, complex other, *, Scalar alpha=1)", add},
      {"add(complex self, operand other, *, Scalar alpha=1)", add},
      {"add(operand self, complex other, *, Scalar alpha=1)", add},
      {"sub(complex self, complex other, *, Scalar alpha=1)", sub},
      {"sub(complex self, operand other, *, Scalar alpha=1)", sub},
      {"sub(operand self, complex other, *, Scalar alpha=1)", sub},
      {"mul(complex self, complex other)", product},
      {"mul(complex self, operand other)", product},
      {"mul(operand self, complex other)", product},
      {"div(complex self, operand other)", quotient},
      {"div(complex self, complex other)", quotient},
      {"div(operand self, complex other)", quotient},
      {"size(complex self)", sizes},
      {"size(complex self, int dim)", one_size},
      {"prim::shape(complex self)", sizes},
      {"dim(complex self)", rank},
      {"is_complex(complex self)", always},
      {"transpose(complex self, int dim0, int dim1)", transpose},
      {"permute(complex self, int[] dims)", permute},
      {"unsqueeze(complex self, int dim)", unsqueeze},
      {"squeeze(complex self, int dim)", squeeze},
      {"slice(complex self, int dim=0, int? start=None, int? end=None, int step=1)", slice},
      {"select(complex self, int dim, int index)", select},
      {"reshape(complex self, int[] shape)", reshape},
      {"view(complex self, int[] shape)", reshape},
      {"flatten(complex self, int start_dim=0, int end_dim=-1)", flatten},
      {"contiguous(complex self, *, any memory_format=None)", same},
      {"clone(complex self, *, any memory_format=None)", same},
      {"detach(complex self)", same},
  };
  return kRows;
}
#undef ORKNN_ONE_AXIS
#undef ORKNN_TWO_AXES
#undef ORKNN_ALL_AXES

}  // namespace orknn::importer::pytorch
