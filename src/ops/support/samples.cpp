#include "ops/support/samples.h"

namespace orknn::ops {
using namespace ir;

Result<Dim> sample_count(const InferContext& c) {
  if (!is_float(c.dtype(0)) && !is_integer(c.dtype(0)))
    return invalid_model("features must be numbers").found(std::string(dtype_name(c.dtype(0))));
  const Shape* x = c.shape(0);
  if (!x) return Dim();
  if (x->empty() || x->size() > 2)
    return shape_mismatch("features must be one sample or a matrix of samples").found(to_string(*x));
  return x->size() == 2 ? (*x)[0] : Dim(1);
}

Result<Samples> read_samples(const RunContext& c) {
  const TensorView x = c.input(0);
  if (x.dims.empty() || x.dims.size() > 2)
    return shape_mismatch("features must be one sample or a matrix of samples").found(to_string(x.dims));
  return Samples{x.dims.size() == 2 ? x.dims[0] : 1, x.dims.back(), to_doubles(x)};
}

std::vector<double> floats_of(const NodeReader& node, std::string_view name) {
  if (const auto* floats = node.find<std::vector<double>>(name)) return *floats;
  const auto* tensor = node.find<TensorData>(std::string(name) + "_as_tensor");
  return tensor && tensor->has_value() ? to_doubles(tensor->view()) : std::vector<double>();
}

}  // namespace orknn::ops
