// Random tensors. The same seed (or, without one, the same node name) always gives the same numbers.
#include "ops/support/random.h"

#include <algorithm>
#include <bit>

#include "ops/support/elementwise.h"

namespace orknn::ops {
namespace {
using namespace ir;

constexpr int64_t kMaxElements = int64_t{1} << 31;

Random make_random(const NodeReader& c) {
  if (c.node().attributes.has("seed")) return Random(std::bit_cast<uint64_t>(c.node().attributes.float_or("seed", 0)));
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char letter : c.node().name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3u;
  return Random(hash);
}

Result<DType> output_type(const NodeReader& c, DType fallback, bool (*allowed)(DType)) {
  ORKNN_TRY_ASSIGN(const DType t, type_attribute(c, "dtype", fallback));
  if (!allowed(t)) return unsupported("cannot make random numbers of this type").found(std::string(dtype_name(t)));
  return t;
}
bool float_type(DType t) { return is_float(t); }
bool index_type(DType t) { return t == DType::Int32 || t == DType::Int64; }
bool number_or_bool(DType t) { return is_arithmetic(t) || t == DType::Bool; }

// y[i] = f(i), converted.
template <class F>
Status fill(RunContext& c, DType type, std::span<const int64_t> dims, F&& f) {
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, type, dims));
  visit_dtype(type, [&]<class T>(TypeTag<T>) {
    c.pool.parallel_for(y.count(), kElementGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (std::is_same_v<T, bool>)
          y.as<T>()[i] = f(i) != 0;
        else if constexpr (std::is_same_v<T, double> || std::is_integral_v<T>)
          y.as<T>()[i] = static_cast<T>(f(i));
        else
          y.as<T>()[i] = T(static_cast<float>(f(i)));
      }
    });
  });
  return {};
}

Status fill_distribution(RunContext& c, DType type, std::span<const int64_t> dims, bool normal) {
  const Random random = make_random(c);
  if (normal) {
    const double mean = c.get_float("mean"), scale = c.get_float("scale");
    return fill(c, type, dims, [&](int64_t i) { return mean + scale * random.normal(static_cast<uint64_t>(i)); });
  }
  const double low = c.get_float("low"), high = c.get_float("high");
  return fill(c, type, dims, [&](int64_t i) { return low + (high - low) * random.uniform(static_cast<uint64_t>(i)); });
}

Status infer_shaped(InferContext& c) {
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, DType::Float32, float_type));
  const std::vector<int64_t>& dims = c.get_ints("shape");
  for (const int64_t d : dims)
    if (d < 0) return invalid_model("a shape has a negative extent").found(to_string(dims));
  ORKNN_TRY(checked_element_count(dims, kMaxElements).status());
  c.set_output(0, type, to_shape(dims));
  return {};
}
template <bool normal>
Status run_shaped(RunContext& c) {
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, DType::Float32, float_type));
  return fill_distribution(c, type, c.get_ints("shape"), normal);
}

template <bool (*allowed)(DType)>
Status infer_like(InferContext& c) {
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, c.dtype(0), allowed));
  c.set_output(0, type, c.input(0).shape);
  return {};
}
template <bool normal>
Status run_like(RunContext& c) {
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, c.input(0).dtype, float_type));
  return fill_distribution(c, type, c.input(0).dims, normal);
}

Status infer_bernoulli(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, float_type, "floating-point probabilities"));
  return infer_like<number_or_bool>(c);
}
Status run_bernoulli(RunContext& c) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, x.dtype, number_or_bool));
  const Random random = make_random(c);
  const std::vector<double> p = to_doubles(x);
  return fill(c, type, x.dims,
              [&](int64_t i) { return random.uniform(static_cast<uint64_t>(i)) < p[static_cast<size_t>(i)] ? 1 : 0; });
}

Status check_classes(const Dim& classes) {
  if (classes != Dim(0)) return {};
  return shape_mismatch("there is no class to choose").expected("at least one").found("none");
}

Status infer_multinomial(InferContext& c) {
  ORKNN_TRY(check_type(c, 0, float_type, "floating-point log-probabilities"));
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, DType::Int32, index_type));
  const int64_t samples = c.get_int("sample_size");
  if (samples < 0 || samples > kMaxElements)
    return invalid_model("attribute 'sample_size' is out of range").found(std::to_string(samples));
  if (c.shape(0) && c.shape(0)->size() != 2)
    return shape_mismatch("one row of classes per sample is needed").found(to_string(*c.shape(0)));
  if (c.shape(0)) ORKNN_TRY(check_classes((*c.shape(0))[1]));
  c.set_output(0, type, Shape{c.shape(0) ? (*c.shape(0))[0] : Dim(), samples});
  return {};
}
Status run_multinomial(RunContext& c) {
  const TensorView x = c.input(0);
  if (x.rank() != 2) return shape_mismatch("one row of classes per sample is needed").found(to_string(x.dims));
  ORKNN_TRY_ASSIGN(const DType type, output_type(c, DType::Int32, index_type));
  const int64_t batch = x.dims[0], classes = x.dims[1], samples = c.get_int("sample_size");
  ORKNN_TRY(check_classes(classes));
  const Dims dims{batch, samples};
  ORKNN_TRY(checked_element_count(dims, kMaxElements).status());
  const Random random = make_random(c);
  std::vector<double> steps = to_doubles(x);  // running sums of exp(x - greatest of the row)
  for (int64_t b = 0; b < batch; ++b) {
    double* row = steps.data() + b * classes;
    const double greatest = *std::max_element(row, row + classes);
    double sum = 0;
    for (int64_t k = 0; k < classes; ++k) row[k] = sum += std::exp(row[k] - greatest);
  }
  return fill(c, type, dims, [&](int64_t i) {
    const double* row = steps.data() + i / samples * classes;
    const double at = random.uniform(static_cast<uint64_t>(i)) * row[classes - 1];
    return std::min<int64_t>(std::upper_bound(row, row + classes, at) - row, classes - 1);
  });
}
}  // namespace

std::span<const OpDef> random() {
  const auto normal = [](std::vector<AttributeDef> more) {
    more.insert(more.end(), {attr_int("dtype"), attr_float("seed"), attr_float("mean", 0.0), attr_float("scale", 1.0)});
    return more;
  };
  const auto uniform = [](std::vector<AttributeDef> more) {
    more.insert(more.end(), {attr_int("dtype"), attr_float("seed"), attr_float("low", 0.0), attr_float("high", 1.0)});
    return more;
  };
  static const OpDef defs[] = {
      {.name = "RandomNormal",
       .summary = "normally distributed numbers",
       .inputs = {0, 0},
       .attributes = normal({required(attr_ints("shape"))}),
       .infer = infer_shaped,
       .run = run_shaped<true>,
       .widen_half = false,
       .deterministic = false},
      {.name = "RandomNormalLike",
       .summary = "normally distributed numbers, shaped like the input",
       .attributes = normal({}),
       .infer = infer_like<float_type>,
       .run = run_like<true>,
       .widen_half = false,
       .deterministic = false},
      {.name = "RandomUniform",
       .summary = "evenly distributed numbers",
       .inputs = {0, 0},
       .attributes = uniform({required(attr_ints("shape"))}),
       .infer = infer_shaped,
       .run = run_shaped<false>,
       .widen_half = false,
       .deterministic = false},
      {.name = "RandomUniformLike",
       .summary = "evenly distributed numbers, shaped like the input",
       .attributes = uniform({}),
       .infer = infer_like<float_type>,
       .run = run_like<false>,
       .widen_half = false,
       .deterministic = false},
      {.name = "Bernoulli",
       .summary = "1 with the given probability, otherwise 0",
       .attributes = {attr_int("dtype"), attr_float("seed")},
       .infer = infer_bernoulli,
       .run = run_bernoulli,
       .widen_half = false,
       .deterministic = false},
      {.name = "Multinomial",
       .summary = "classes drawn by their log-probabilities",
       .attributes = {attr_int("dtype"), attr_int("sample_size", 1), attr_float("seed")},
       .infer = infer_multinomial,
       .run = run_multinomial,
       .widen_half = false,
       .deterministic = false},
  };
  return defs;
}
}  // namespace orknn::ops
