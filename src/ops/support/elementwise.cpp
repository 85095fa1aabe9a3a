#include "ops/support/elementwise.h"

#include <algorithm>

namespace orknn::ops {
using namespace ir;

bool is_wide_integer(DType t) { return is_integer(t) && t != DType::Int4 && t != DType::UInt4; }
bool is_arithmetic(DType t) { return is_float(t) || is_wide_integer(t); }
bool is_any(DType) { return true; }

Status check_type(const InferContext& c, size_t input, bool (*allowed)(DType), std::string_view what) {
  if (allowed(c.dtype(input))) return {};
  return invalid_model("input " + std::to_string(input) + " has a type this operator does not take")
      .expected(std::string(what))
      .found(std::string(dtype_name(c.dtype(input))));
}

Status check_types(const InferContext& c, bool (*allowed)(DType), std::string_view what) {
  ORKNN_TRY(check_type(c, 0, allowed, what));
  for (size_t i = 1; i < c.input_count(); ++i)
    if (c.has_input(i) && c.dtype(i) != c.dtype(0))
      return invalid_model("inputs 0 and " + std::to_string(i) + " have different types")
          .expected(std::string(dtype_name(c.dtype(0))))
          .found(std::string(dtype_name(c.dtype(i))));
  return {};
}

Result<DType> type_attribute(const NodeReader& c, std::string_view name, DType fallback) {
  const int64_t number = c.node().attributes.int_or(name, 0);
  if (number == 0) return fallback;
  const DType t = number > 0 && number < 256 ? static_cast<DType>(number) : DType::Undefined;
  if (dtype_bytes(t) == 0)
    return unsupported("attribute '" + std::string(name) + "' names a type we do not have")
        .found("ONNX type " + std::to_string(number));
  return t;
}

Status same_as_input(InferContext& c) {
  c.set_output(0, c.dtype(0), c.input(0).shape);
  return {};
}

Status float_same_as_input(InferContext& c) {
  ORKNN_TRY(check_type(
      c, 0, [](DType t) { return is_float(t); }, "a floating-point type"));
  return same_as_input(c);
}

Status arithmetic_same_as_input(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, is_arithmetic, "a number type of at least 8 bits"));
  return same_as_input(c);
}

Status broadcast_all(InferContext& c, DType result) {
  std::optional<Shape> shape = c.input(0).shape;
  for (size_t i = 1; i < c.input_count(); ++i) {
    if (!c.has_input(i)) continue;
    if (!shape || !c.shape(i)) {
      shape.reset();
      break;
    }
    ORKNN_TRY_ASSIGN(shape, broadcast(*shape, *c.shape(i)));
  }
  c.set_output(0, result, std::move(shape));
  return {};
}

Status broadcast_inputs(InferContext& c) { return broadcast_all(c, c.dtype(0)); }
Status broadcast_to_bool(InferContext& c) { return broadcast_all(c, DType::Bool); }

// Longer integer tensors are no shapes.
constexpr int64_t kMaxContent = 64;

Dims slope_dims(std::span<const int64_t> x, std::span<const int64_t> slope) {
  Dims dims(slope.begin(), slope.end());
  if (slope.size() == 1 && x.size() > 2 && slope[0] != 1 && slope[0] != x.back() && slope[0] == x[1])
    dims.resize(x.size() - 1, 1);
  return dims;
}

void fold_content(InferContext& c, const std::function<Dim(std::span<const Dim>)>& f) {
  const std::optional<Shape>& shape = c.output(0).shape;
  const std::optional<Dims> dims = shape ? to_dims(*shape) : std::nullopt;
  const Result<int64_t> count = dims ? checked_element_count(*dims, kMaxContent) : Result<int64_t>(internal_error("unknown"));
  if (!count) return;
  const size_t n = static_cast<size_t>(*count);
  std::vector<std::vector<Dim>> inputs;
  for (size_t i = 0; i < c.input_count(); ++i) {
    std::optional<std::vector<Dim>> content = c.content(i);
    if (!content || (content->size() != n && content->size() != 1)) return;
    inputs.push_back(std::move(*content));
  }
  std::vector<Dim> out(n), arguments(inputs.size());
  for (size_t k = 0; k < n; ++k) {
    for (size_t i = 0; i < inputs.size(); ++i) arguments[i] = inputs[i][inputs[i].size() == 1 ? 0 : k];
    out[k] = f(arguments);
  }
  c.set_content(0, std::move(out));
}

Result<Broadcast> Broadcast::plan(std::initializer_list<std::span<const int64_t>> inputs) {
  Broadcast b;
  b.inputs_ = inputs.size();
  for (std::span<const int64_t> dims : inputs) {
    ORKNN_TRY_ASSIGN(b.dims_, scratch_broadcast(b.dims_, dims));
  }
  const size_t rank = b.dims_.size();
  ScratchDims full(rank * b.inputs_, 0);  // strides on every axis of the result, 0 where the input is repeated
  size_t input = 0;
  for (std::span<const int64_t> dims : inputs) {
    int64_t step = 1;
    for (size_t i = dims.size(); i-- > 0;) {
      if (dims[i] != 1) full[(i + rank - dims.size()) * b.inputs_ + input] = step;
      step *= dims[i];
    }
    ++input;
  }
  // Axes of extent 1 vanish; neighbours that every input passes through alike become one.
  for (size_t axis = 0; axis < rank; ++axis) {
    const int64_t extent = b.dims_[axis];
    if (extent == 1) continue;
    const int64_t* strides = full.data() + axis * b.inputs_;
    bool merge = !b.loop_.empty();
    for (size_t k = 0; merge && k < b.inputs_; ++k) merge = b.step(k) == strides[k] * extent;
    if (merge) {
      b.loop_.back() *= extent;
    } else {
      b.loop_.push_back(extent);
      b.strides_.resize(b.loop_.size() * b.inputs_);
    }
    for (size_t k = 0; k < b.inputs_; ++k) b.stride(b.loop_.size() - 1, k) = strides[k];
  }
  if (b.loop_.empty()) {
    b.loop_ = {1};
    b.strides_.resize(b.inputs_, 1);
  }
  return b;
}

void Broadcast::for_rows(ThreadPool& pool, const Row& row) const {
  const int64_t count = element_count(dims_), length = loop_.back();
  if (count == 0) return;
  const size_t outer = loop_.size() - 1;
  pool.parallel_for(count, kElementGrain, [&](int64_t begin, int64_t end) {
    ScratchDims index(outer), start(inputs_, 0), place(inputs_);
    int64_t rest = begin / length, column = begin % length;
    for (size_t axis = outer; axis-- > 0;) {
      index[axis] = rest % loop_[axis];
      rest /= loop_[axis];
      for (size_t k = 0; k < inputs_; ++k) start[k] += index[axis] * stride(axis, k);
    }
    for (int64_t at = begin; at < end;) {
      const int64_t n = std::min(length - column, end - at);
      for (size_t k = 0; k < inputs_; ++k) place[k] = start[k] + column * stride(outer, k);
      row(at, place.data(), n);
      at += n;
      column = 0;
      for (size_t axis = outer; axis-- > 0;) {
        for (size_t k = 0; k < inputs_; ++k) start[k] += stride(axis, k);
        if (++index[axis] < loop_[axis]) break;
        for (size_t k = 0; k < inputs_; ++k) start[k] -= loop_[axis] * stride(axis, k);
        index[axis] = 0;
      }
    }
  });
}

}  // namespace orknn::ops
