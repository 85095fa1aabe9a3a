// Layers that combine values: Eltwise, Scale, Bias, Axpy, Reduction, ArgMax.
#include "import/caffe/layer.h"

namespace orknn::importer::caffe {
using namespace ir;

namespace {
Status eltwise(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1000));
  const Message& p = l.parameters("eltwise_param");
  ORKNN_TRY_ASSIGN(const std::string word, p.get_word("operation", "SUM"));
  ORKNN_TRY_ASSIGN(const auto factors, p.get_doubles("coeff"));
  const bool is_sum = word == "SUM" || word == "1";
  const char* op = is_sum                          ? "Add"
                   : word == "PROD" || word == "0" ? "Mul"
                   : word == "MAX" || word == "2"  ? "Max"
                   : word == "MIN" || word == "3"  ? "Min"
                                                   : nullptr;
  if (!op) return unsupported("unknown operation").expected("PROD, SUM or MAX").found(word);
  if (!factors.empty() && factors.size() != l.bottom_count())
    return invalid_model("the number of 'coeff' does not fit")
        .expected(std::to_string(l.bottom_count()))
        .found(std::to_string(factors.size()));
  TensorId y;
  for (size_t i = 0; i < l.bottom_count(); ++i) {
    // A difference is spelled with a factor of -1.
    if (is_sum && y && !factors.empty() && factors[i] == -1) {
      y = l.emit("Sub", {y, l.bottom(i)});
      continue;
    }
    const TensorId x = is_sum && !factors.empty() ? l.scaled(l.bottom(i), factors[i]) : l.bottom(i);
    y = y ? l.emit(op, {y, x}) : x;
  }
  return l.set_top(y);
}

// The second operand of Scale and Bias: a bottom, or a blob with some of the axes of the first bottom.
Result<TensorId> operand_along(Layer& l, const Message& p, size_t blob, std::string_view role, Filling filling) {
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to line up the operand"));
  ORKNN_TRY_ASSIGN(const int64_t axis, rank == 0 ? Result<int64_t>(0) : l.axis_of(p, "axis", 1, rank));
  if (l.bottom_count() > 1 && blob == 0) {
    ORKNN_TRY_ASSIGN(const int64_t other_rank, l.need_rank(l.bottom(1), "to line up the operand"));
    const int64_t behind = rank - axis - other_rank;
    if (behind <= 0) return l.bottom(1);
    std::vector<int64_t> shape(static_cast<size_t>(other_rank), 0);  // 0 keeps an extent
    shape.insert(shape.end(), static_cast<size_t>(behind), 1);
    return l.emit("Reshape", {l.bottom(1), l.add_ints("shape", shape)});
  }
  ORKNN_TRY_ASSIGN(const int64_t axes, p.get_int("num_axes", 1));
  const int64_t end = axes == -1 ? rank : axis + axes;
  if (axes < -1 || end > rank)
    return invalid_model("'num_axes' is out of range")
        .expected("-1 to " + std::to_string(rank - axis))
        .found(std::to_string(axes));
  Dims dims;
  for (int64_t i = axis; i < end; ++i) {
    ORKNN_TRY_ASSIGN(const int64_t extent, l.extent(l.bottom(), i, "to read the blob"));
    dims.push_back(extent);
  }
  ORKNN_TRY_ASSIGN(const TensorId value,
                   l.blob(blob, {.role = role,
                                 .dims = dims,
                                 .filling = filling,
                                 .fan_in = 1,
                                 .filler = &p.message(role == "bias" && p.has("bias_filler") ? "bias_filler" : "filler")}));
  return dims.empty() ? value : l.along_axis(value, dims, axis, rank);
}

Status scale(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  const Message& p = l.parameters("scale_param");
  ORKNN_TRY_ASSIGN(const bool has_bias, p.get_bool("bias_term", false));
  ORKNN_TRY_ASSIGN(const TensorId factor, operand_along(l, p, 0, "scale", Filling::Ones));
  TensorId y = l.emit("Mul", {l.bottom(), factor});
  if (has_bias) {
    if (l.bottom_count() > 1) {  // the only blob is the bias, shaped like the second bottom
      ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(factor, "to read the bias"));
      ORKNN_TRY_ASSIGN(
          const TensorId bias,
          l.blob(0, {.role = "bias", .dims = dims, .filling = Filling::Zeros, .fan_in = 1, .filler = &p.message("bias_filler")}));
      y = l.emit("Add", {y, bias});
    } else {
      ORKNN_TRY_ASSIGN(const TensorId bias, operand_along(l, p, 1, "bias", Filling::Zeros));
      y = l.emit("Add", {y, bias});
    }
  }
  return l.set_top(y);
}

Status bias(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 2));
  ORKNN_TRY_ASSIGN(const TensorId term, operand_along(l, l.parameters("bias_param"), 0, "bias", Filling::Zeros));
  return l.set_top(l.emit("Add", {l.bottom(), term}));
}

// A factor per channel, times x, plus y.
Status axpy(Layer& l) {
  ORKNN_TRY(l.need_bottoms(3, 3));
  ORKNN_TRY_ASSIGN(const int64_t factor_rank, l.need_rank(l.bottom(0), "to line up the factors"));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(1), "to line up the factors"));
  TensorId factor = l.bottom(0);
  if (factor_rank < rank) {
    std::vector<int64_t> shape(static_cast<size_t>(factor_rank), 0);
    shape.insert(shape.end(), static_cast<size_t>(rank - factor_rank), 1);
    factor = l.emit("Reshape", {factor, l.add_ints("shape", shape)});
  }
  return l.set_top(l.emit("Add", {l.emit("Mul", {factor, l.bottom(1)}), l.bottom(2)}));
}

Status reduction(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("reduction_param");
  ORKNN_TRY_ASSIGN(const std::string word, p.get_word("operation", "SUM"));
  ORKNN_TRY_ASSIGN(const double factor, p.get_double("coeff", 1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to find the axes"));
  ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(p, "axis", 0, rank));
  const char* op = word == "SUM" || word == "1"     ? "ReduceSum"
                   : word == "ASUM" || word == "2"  ? "ReduceL1"
                   : word == "SUMSQ" || word == "3" ? "ReduceSumSquare"
                   : word == "MEAN" || word == "4"  ? "ReduceMean"
                                                    : nullptr;
  if (!op) return unsupported("unknown operation").expected("SUM, ASUM, SUMSQ or MEAN").found(word);
  std::vector<int64_t> axes;
  for (int64_t i = axis; i < rank; ++i) axes.push_back(i);
  return l.set_top(l.scaled(l.emit(op, {l.bottom(), l.add_ints("axes", axes)}, {{"keepdims", int64_t{0}}}), factor));
}

// Positions of the greatest values, as floats; with out_max_val also or instead the values.
Status arg_max(Layer& l) {
  ORKNN_TRY(l.need_bottoms(1, 1));
  const Message& p = l.parameters("argmax_param");
  ORKNN_TRY_ASSIGN(const bool with_values, p.get_bool("out_max_val", false));
  ORKNN_TRY_ASSIGN(const int64_t count, p.get_int("top_k", 1));
  ORKNN_TRY_ASSIGN(const int64_t rank, l.need_rank(l.bottom(), "to find the axis"));
  const TensorId k = l.add_ints("k", {count});
  if (p.has("axis")) {
    ORKNN_TRY_ASSIGN(const int64_t axis, l.axis_of(p, "axis", 1, rank));
    const auto best = l.emit_all("TopK", {l.bottom(), k}, {{"axis", axis}}, 2);
    return l.set_top(with_values ? best[0] : l.cast(best[1], DType::Float32));
  }
  const auto best = l.emit_all("TopK", {l.emit("Flatten", {l.bottom()}, {{"axis", int64_t{1}}}), k}, {{"axis", int64_t{1}}}, 2);
  std::vector<int64_t> shape{0, 1, count};
  shape.resize(static_cast<size_t>(std::max<int64_t>(rank, 3)), 1);
  const TensorId places = l.emit("Reshape", {l.cast(best[1], DType::Float32), l.add_ints("shape", shape)});
  if (!with_values) return l.set_top(places);
  const TensorId values = l.emit("Reshape", {best[0], l.add_ints("shape", shape)});
  return l.set_top(l.emit("Concat", {places, values}, {{"axis", int64_t{1}}}));
}
}  // namespace

std::span<const Row> arithmetic_rows() {
  static constexpr Row kRows[] = {
      {"Eltwise", eltwise}, {"Scale", scale}, {"Bias", bias}, {"Axpy", axpy}, {"Reduction", reduction}, {"ArgMax", arg_max},
  };
  return kRows;
}

}  // namespace orknn::importer::caffe
