// Fourier transforms and complex numbers. A complex tensor has its real and imaginary parts in an axis of its own at the end of
// the value in the graph; only rows that say `complex` take one.
#include <cmath>
#include <numeric>

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

constexpr int64_t kMaxLength = 1 << 24;

// --- parts

TensorId part(Emitter& e, TensorId x, int64_t i) { return e.gather(x, e.add_int_scalar("part", i), -1); }
ComplexId complex_of(Emitter& e, TensorId real, TensorId imaginary) { return {e.stack({real, imaginary}, -1)}; }
// The parts of a complex tensor.
struct Parts {
  TensorId real, imaginary;
};
Parts parts_of(Emitter& e, TensorId x) { return {part(e, x, 0), part(e, x, 1)}; }

bool is_complex(Call& c, std::string_view name) { return c.value(name).is_tensor() && c.value(name).tensor().is_complex; }

template <int64_t Part>
TensorId one_part(Emitter& e, TensorId x) {
  return part(e, x, Part);
}
ComplexId as_complex(Emitter&, TensorId x) { return {x}; }
ComplexId polar(Emitter& e, TensorId size, TensorId angle) {
  return complex_of(e, e.mul(size, e.unary("Cos", angle)), e.mul(size, e.unary("Sin", angle)));
}
TensorId magnitude(Emitter& e, TensorId x) { return e.reduce("ReduceL2", x, {-1}, false); }
ComplexId conjugate(Emitter& e, TensorId x) { return complex_of(e, part(e, x, 0), e.unary("Neg", part(e, x, 1))); }
TensorId complex_angle(Emitter& e, TensorId x) { return e.binary("Atan2", part(e, x, 1), part(e, x, 0)); }

// --- arithmetic

// Both operands with both parts.
std::pair<TensorId, TensorId> complex_operands(Call& c) {
  const DType t = c.dtype(is_complex(c, "self") ? "self" : "other");
  const auto with_parts = [&](std::string_view name) {
    if (is_complex(c, name)) return c.tensor(name);
    const TensorId real = c.as(name, t);
    return complex_of(c, real, c.mul(real, 0)).id;
  };
  return {with_parts("self"), with_parts("other")};
}

template <OpName Op>
Result<ComplexId> complex_sum(Call& c) {
  if (c.number("alpha") != 1) return unsupported("complex sums with a factor are not supported");
  const auto [a, b] = complex_operands(c);
  return ComplexId{c.binary(Op.chars, a, b)};
}
// A real factor or divisor works on both parts alike.
ComplexId complex_scaled(Call& c, const char* op, std::string_view complex, std::string_view real) {
  const TensorId x = c.tensor(complex), factor = c.as(real, c.dtype_of(x));
  return {c.binary(op, x, c.value(real).is_tensor() ? c.unsqueeze(factor, {-1}) : factor)};
}
ComplexId complex_product(Call& c) {
  if (!is_complex(c, "other")) return complex_scaled(c, "Mul", "self", "other");
  if (!is_complex(c, "self")) return complex_scaled(c, "Mul", "other", "self");
  const Parts a = parts_of(c, c.tensor("self")), b = parts_of(c, c.tensor("other"));
  return complex_of(c, c.sub(c.mul(a.real, b.real), c.mul(a.imaginary, b.imaginary)),
                    c.add(c.mul(a.real, b.imaginary), c.mul(a.imaginary, b.real)));
}
ComplexId complex_quotient(Call& c) {
  if (!is_complex(c, "other")) return complex_scaled(c, "Div", "self", "other");
  const auto [dividend, divisor] = complex_operands(c);
  const Parts a = parts_of(c, dividend), b = parts_of(c, divisor);
  const TensorId real = c.add(c.mul(a.real, b.real), c.mul(a.imaginary, b.imaginary)),
                 imaginary = c.sub(c.mul(a.imaginary, b.real), c.mul(a.real, b.imaginary));
  return {c.div(complex_of(c, real, imaginary).id, c.reduce("ReduceSumSquare", divisor, {-1}, true))};
}

// --- shapes: copies, never views

Result<int64_t> complex_size(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  return c.rank() == 0 ? 1 : c.dims()[axis];
}
Result<ComplexId> complex_transpose(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t a, c.axis("dim0"));
  ORKNN_TRY_ASSIGN(const int64_t b, c.axis("dim1"));
  return ComplexId{c.swap_axes(x, a, b)};
}
Result<ComplexId> complex_permute(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(std::vector<int64_t> order, c.ordered_axes("dims"));
  order.push_back(c.rank());
  return ComplexId{c.transpose(x, std::move(order))};
}
Result<ComplexId> complex_unsqueeze(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis_of(c.integer("dim"), c.rank() + 1));
  return ComplexId{c.unsqueeze(x, {axis})};
}
Output complex_squeeze(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  if (c.rank() == 0 || c.dims()[axis] != 1) return c.value("self");
  return ComplexId{c.squeeze(c.tensor("self"), {axis})};
}
Result<ComplexId> complex_slice(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  const int64_t step = c.integer("step");
  if (step < 1) return invalid_model("a slice needs a positive step").found(std::to_string(step));
  return ComplexId{c.slice(x, axis, c.integer_or("start", 0), c.integer_or("end", INT64_MAX), step)};
}
Result<ComplexId> complex_select(Call& c, TensorId x) {
  ORKNN_TRY_ASSIGN(const int64_t axis, c.axis());
  return ComplexId{c.gather(x, c.add_int_scalar("index", c.integer("index")), axis)};
}
ComplexId complex_reshape(Call& c, TensorId x) {
  std::vector<int64_t> shape = c.ints("shape");
  shape.push_back(2);
  return {c.reshape(x, std::move(shape))};
}
Output complex_flatten(Call& c) {
  ORKNN_TRY_ASSIGN(const int64_t first, c.axis("start_dim"));
  ORKNN_TRY_ASSIGN(const int64_t last, c.axis("end_dim"));
  Dims shape = c.dims();
  if (first > last || shape.empty()) return c.value("self");
  shape.erase(shape.begin() + first, shape.begin() + last);
  shape[first] = -1;
  shape.push_back(2);
  return ComplexId{c.reshape(c.tensor("self"), std::move(shape))};
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
TensorId transformed_along(Call& c, TensorId x, int64_t axis, int64_t length, Transform kind) {
  ir::Attributes attributes;
  if (is_inverse(kind)) attributes.set("inverse", int64_t{1});
  if (kind == Transform::RealForward || kind == Transform::RealInverse) attributes.set("onesided", int64_t{1});
  return c.emit("DFT", {x, c.add_int_scalar("length", length), c.add_int_scalar("axis", axis)}, std::move(attributes));
}

// The axes of a transform and how many elements of each it works on; a negative length means all there are.
Output transformed(Call& c, std::vector<int64_t> axes, std::vector<int64_t> lengths, Transform kind, Division division) {
  const int64_t rank = c.rank();
  if (axes.empty() || rank == 0) return invalid_model("a transform needs an axis").found(ir::to_string(c.dims()));
  if (!lengths.empty() && lengths.size() != axes.size())
    return invalid_model("a transform needs one length per axis")
        .expected(std::to_string(axes.size()))
        .found(std::to_string(lengths.size()));
  TensorId x = is_complex(c, "self") ? c.tensor("self") : c.unsqueeze(c.as_float(c.tensor("self")), {-1});
  double elements = 1;
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    ORKNN_TRY_ASSIGN(axes[i], c.axis_of(axes[i], rank));
    const int64_t extent = c.dims()[axes[i]];
    const bool is_last_of_real = kind == Transform::RealInverse && i + 1 == axes.size();
    const int64_t length = !lengths.empty() && lengths[i] >= 0 ? lengths[i] : is_last_of_real ? 2 * (extent - 1) : extent;
    if (length < 1 || length > kMaxLength) return invalid_model("illegal length of a transform").found(std::to_string(length));
    sizes.push_back(length);
    elements *= static_cast<double>(length);
  }
  // The last axis is the one of which a real signal has half a spectrum: first there, last on the way back.
  const Transform other = is_inverse(kind) ? Transform::Inverse : Transform::Forward;
  if (kind != Transform::RealInverse) x = transformed_along(c, x, axes.back(), sizes.back(), kind);
  for (size_t i = axes.size() - 1; i-- > 0;) x = transformed_along(c, x, axes[i], sizes[i], other);
  if (kind == Transform::RealInverse) x = transformed_along(c, x, axes.back(), sizes.back(), kind);
  double factor = division == Division::ByRoot ? 1 / std::sqrt(elements) : division == Division::ByLength ? 1 / elements : 1;
  if (is_inverse(kind)) factor = division == Division::ByLength ? 1 : factor * elements;  // our inverse divides by the length
  if (factor != 1) x = c.mul(x, factor);
  return kind == Transform::RealInverse ? Output(c.squeeze(x, {-1})) : ComplexId{x};
}

template <Transform Kind>
Output one_axis(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, division_of(c, Kind));
  return transformed(c, {c.integer("dim")}, {c.integer_or("n", -1)}, Kind, division);
}
template <Transform Kind>
Output many_axes(Call& c) {
  std::vector<int64_t> lengths = c.ints("s"), axes = c.ints("dim");
  if (axes.empty()) {  // the last ones, as many as lengths are given, or all
    axes.resize(lengths.empty() ? static_cast<size_t>(c.rank()) : lengths.size());
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
Output real_to_complex(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, numbered_division(c));
  return transformed(c, c.ints("dim"), {}, c.flag("onesided") ? Transform::RealForward : Transform::Forward, division);
}
Output complex_to_real(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, numbered_division(c));
  std::vector<int64_t> lengths(c.ints("dim").size(), -1);
  if (!lengths.empty()) lengths.back() = c.integer("last_dim_size");
  return transformed(c, c.ints("dim"), std::move(lengths), Transform::RealInverse, division);
}
Output complex_to_complex(Call& c) {
  ORKNN_TRY_ASSIGN(const Division division, numbered_division(c));
  return transformed(c, c.ints("dim"), {}, c.flag("forward") ? Transform::Forward : Transform::Inverse, division);
}

// --- spectrograms

// The window as long as a frame: its own length in the middle, zeros around.
Result<TensorId> window_of(Call& c, int64_t frame, DType t) {
  const int64_t length = c.integer_or("win_length", frame);
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

// `Padded`: the argument `center` tells whether frames are centred.
template <bool Padded>
Output stft(Call& c) {
  const int64_t frame = c.integer("n_fft"), hop = c.integer_or("hop_length", frame / 4);
  if (frame < 1 || frame > kMaxLength || hop < 1)
    return invalid_model("illegal frames").found(std::to_string(frame) + " elements every " + std::to_string(hop));
  const bool has_batch = c.rank() == 2;
  if (c.rank() != 1 && !has_batch)
    return invalid_model("a spectrogram is made of signals [batch, time]").found(ir::to_string(c.dims()));
  TensorId x = c.as_float(c.tensor("self"));
  const DType t = c.dtype_of(x);
  if (!has_batch) x = c.unsqueeze(x, {0});
  if (Padded && c.flag("center")) {
    const std::string mode(c.text("pad_mode"));
    if (mode != "reflect" && mode != "constant" && mode != "replicate")
      return unsupported("padding mode '" + mode + "' is not supported");
    x = c.emit("Pad", {x, c.add_ints("pads", {0, frame / 2, 0, frame / 2})},
               {{"mode", mode == "replicate" ? std::string("edge") : mode}});
  }
  ORKNN_TRY_ASSIGN(const TensorId window, window_of(c, frame, t));
  const bool onesided = !c.has("onesided") || c.flag("onesided");
  TensorId y = c.emit("STFT", {c.unsqueeze(x, {-1}), c.add_int_scalar("step", hop), window, c.add_int_scalar("frame", frame)},
                      {{"onesided", int64_t{onesided}}});
  y = c.transpose(y, {0, 2, 1, 3});  // frequencies before frames
  if (c.flag("normalized")) y = c.mul(y, 1 / std::sqrt(static_cast<double>(frame)));
  if (!has_batch) y = c.squeeze(y, {0});
  return c.flag("return_complex") ? Output(ComplexId{y}) : y;
}

// Frames back to a signal: each is weighted once more, added where it overlaps others, and divided by the sum of squared weights
// there.
Result<TensorId> istft(Call& c) {
  const int64_t frame = c.integer("n_fft"), hop = c.integer_or("hop_length", frame / 4);
  if (frame < 1 || frame > (1 << 16) || hop < 1 || hop > frame)
    return invalid_model("illegal frames").found(std::to_string(frame) + " elements every " + std::to_string(hop));
  const bool has_batch = c.rank() == 3;
  if (c.rank() != 2 && !has_batch)
    return invalid_model("a spectrogram is [batch, frequencies, frames]").found(ir::to_string(c.dims()));
  if (c.flag("return_complex")) return unsupported("complex signals are not supported");
  TensorId x = c.tensor("self");
  const DType t = c.dtype_of(x);
  if (!has_batch) x = c.unsqueeze(x, {0});
  const int64_t frames = c.dims().back(), bins = c.dims()[c.dims().size() - 2];
  if (bins != frame / 2 + 1 || (c.has("onesided") && !c.flag("onesided")))
    return unsupported("only spectrograms with half of the frequencies are supported")
        .expected(std::to_string(frame / 2 + 1))
        .found(std::to_string(bins));
  if (c.flag("normalized")) x = c.mul(x, std::sqrt(static_cast<double>(frame)));
  ORKNN_TRY_ASSIGN(const TensorId window, window_of(c, frame, t));
  const TensorId signals =
      c.mul(c.squeeze(transformed_along(c, c.transpose(x, {0, 2, 1, 3}), 2, frame, Transform::RealInverse), {-1}),
            window);  // [batch, frames, frame]
  const int64_t total = frame + hop * (frames - 1), begin = c.flag("center") ? frame / 2 : 0;
  const TensorId extent = c.add_ints("extent", {1, total}), block = c.add_ints("block", {1, frame});
  const auto overlapped = [&](TensorId rows) {  // [batch, 1, 1, total]
    return c.emit("Col2Im", {c.transpose(rows, {0, 2, 1}), extent, block}, {{"strides", std::vector<int64_t>{1, hop}}});
  };
  const TensorId weights = c.expand(c.reshape(c.mul(window, window), {1, 1, frame}), Dims{1, frames, frame});
  const int64_t end = c.has("length") ? begin + c.integer("length") : c.flag("center") ? total - frame / 2 : total;
  if (end <= begin || end > total)
    return unsupported("the wanted length is longer than the signal")
        .expected("at most " + std::to_string(total - begin))
        .found(std::to_string(end - begin));
  const TensorId y =
      c.squeeze(c.div(c.slice(overlapped(signals), 3, begin, end), c.slice(overlapped(weights), 3, begin, end)), {1, 2});
  return has_batch ? y : c.squeeze(y, {0});
}

// Halves of axes change places.
template <bool Back>
Output shifted(Call& c) {
  TensorId x = c.tensor("self");
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> axes, c.axes());
  for (int64_t axis : axes) {
    const int64_t extent = c.dims()[axis], middle = Back ? extent / 2 : (extent + 1) / 2;
    if (extent > 1) x = c.concat({c.slice(x, axis, middle, extent), c.slice(x, axis, 0, middle)}, axis);
  }
  return is_complex(c, "self") ? Output(ComplexId{x}) : x;
}

#define ORKNN_ONE_AXIS " self, int? n=None, int dim=-1, str? norm=None)"
#define ORKNN_TWO_AXES " self, int[]? s=None, int[] dim=[-2, -1], str? norm=None)"
#define ORKNN_ALL_AXES " self, int[]? s=None, int[]? dim=None, str? norm=None)"
}  // namespace

std::span<const Row> signal_rows() {
  static const Row rows[] = {
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, "
       "bool? "
       "onesided=None, bool? return_complex=None, any align=None)",
       stft<false>},
      {"stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str "
       "pad_mode=\"reflect\", bool normalized=False, bool? onesided=None, bool? return_complex=None, any align=None)",
       stft<true>},
      {"istft(complex self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool "
       "normalized=False, bool? onesided=None, int? length=None, bool return_complex=False)",
       istft},
      {"fft_fft(either" ORKNN_ONE_AXIS, one_axis<Transform::Forward>},
      {"fft_ifft(either" ORKNN_ONE_AXIS, one_axis<Transform::Inverse>},
      {"fft_rfft(Tensor" ORKNN_ONE_AXIS, one_axis<Transform::RealForward>},
      {"fft_irfft(either" ORKNN_ONE_AXIS, one_axis<Transform::RealInverse>},
      {"fft_fft2(either" ORKNN_TWO_AXES, many_axes<Transform::Forward>},
      {"fft_ifft2(either" ORKNN_TWO_AXES, many_axes<Transform::Inverse>},
      {"fft_rfft2(Tensor" ORKNN_TWO_AXES, many_axes<Transform::RealForward>},
      {"fft_irfft2(complex" ORKNN_TWO_AXES, many_axes<Transform::RealInverse>},
      {"fft_fftn(either" ORKNN_ALL_AXES, many_axes<Transform::Forward>},
      {"fft_ifftn(either" ORKNN_ALL_AXES, many_axes<Transform::Inverse>},
      {"fft_rfftn(Tensor" ORKNN_ALL_AXES, many_axes<Transform::RealForward>},
      {"fft_irfftn(complex" ORKNN_ALL_AXES, many_axes<Transform::RealInverse>},
      {"_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided)", real_to_complex},
      {"_fft_c2r(complex self, int[] dim, int normalization, int last_dim_size)", complex_to_real},
      {"_fft_c2c(complex self, int[] dim, int normalization, bool forward)", complex_to_complex},
      {"fft_fftshift(either self, int[]? dim=None)", shifted<false>},
      {"fft_ifftshift(either self, int[]? dim=None)", shifted<true>},
      {"view_as_complex(Tensor self)", as_complex},
      {"view_as_real(complex self)", pass_on},
      {"complex(Tensor real, Tensor imag)", complex_of},
      {"polar(Tensor abs, Tensor angle)", polar},
      {"real(complex self)", one_part<0>},
      {"imag(complex self)", one_part<1>},
      {"abs(complex self)", magnitude},
      {"angle(complex self)", complex_angle},
      {"conj|_conj|conj_physical(complex self)", conjugate},
      {"resolve_conj|resolve_neg|detach(complex self)", itself},
      {"contiguous|clone(complex self, *, any memory_format=None)", itself},
      {"add(complex self, either other, *, Scalar alpha=1)", complex_sum<"Add">},
      {"add(operand self, complex other, *, Scalar alpha=1)", complex_sum<"Add">},
      {"sub(complex self, either other, *, Scalar alpha=1)", complex_sum<"Sub">},
      {"sub(operand self, complex other, *, Scalar alpha=1)", complex_sum<"Sub">},
      {"mul(complex self, either other)", complex_product},
      {"mul(operand self, complex other)", complex_product},
      {"div(complex self, either other)", complex_quotient},
      {"div(operand self, complex other)", complex_quotient},
      {"size(complex self, int dim)", complex_size},
      {"transpose(complex self, int dim0, int dim1)", complex_transpose},
      {"permute(complex self, int[] dims)", complex_permute},
      {"unsqueeze(complex self, int dim)", complex_unsqueeze},
      {"squeeze(complex self, int dim)", complex_squeeze},
      {"slice(complex self, int dim=0, int? start=None, int? end=None, int step=1)", complex_slice},
      {"select(complex self, int dim, int index)", complex_select},
      {"reshape|view(complex self, int[] shape)", complex_reshape},
      {"flatten(complex self, int start_dim=0, int end_dim=-1)", complex_flatten},
  };
  return rows;
}
#undef ORKNN_ONE_AXIS
#undef ORKNN_TWO_AXES
#undef ORKNN_ALL_AXES

}  // namespace orknn::importer::pytorch
