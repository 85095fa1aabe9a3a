#include "import/lower/creation.h"

#include <algorithm>

namespace orknn::importer {
using namespace ir;

namespace {
constexpr int64_t kMostElements = 1 << 24;
}

Result<TensorId> evenly_spaced(Emitter& e, double first, double last, int64_t count, DType dtype) {
  if (count < 0 || count > kMostElements)
    return invalid_model("the number of values is out of range").found(std::to_string(count));
  std::vector<double> values(static_cast<size_t>(count));
  const double step = count > 1 ? (last - first) / static_cast<double>(count - 1) : 0;
  for (size_t i = 0; i < values.size(); ++i) values[i] = first + step * static_cast<double>(i);
  if (count > 1) values.back() = last;
  return e.cast(e.add_constant("values", TensorData::from<double>({count}, values)), dtype);
}

Result<TensorId> identity_matrix(Emitter& e, int64_t rows, int64_t columns, int64_t shift, DType dtype) {
  if (!checked_element_count(Dims{rows, columns}, kMostElements))
    return invalid_model("the matrix is too large").found(std::to_string(rows) + "x" + std::to_string(columns));
  std::vector<float> values(static_cast<size_t>(rows * columns), 0.0f);
  if (shift > -rows && shift < columns)
    for (int64_t r = std::max<int64_t>(0, -shift); r < rows && r + shift < columns; ++r)
      values[static_cast<size_t>(r * columns + r + shift)] = 1;
  return e.cast(e.add_constant("eye", TensorData::from<float>({rows, columns}, values)), dtype);
}

}  // namespace orknn::importer
