// Shared lowerings of the importers on constants, whose values the emitter computes at once.
#pragma once

#include <gtest/gtest.h>

#include "import/lower/emitter.h"
#include "ops/eval.h"

namespace orknn::tests {

struct Emitted {
  ir::Graph graph;
  importer::Emitter e{graph, ops::builtin_ops(), "layer", {"layer"}};

  ir::TensorId floats(ir::Dims dims, const std::vector<float>& values) {
    return e.add_constant("floats", ir::TensorData::from<float>(std::move(dims), values));
  }
  // 0, 1, 2, ... of a shape.
  ir::TensorId counted(const ir::Dims& dims) {
    std::vector<float> values(static_cast<size_t>(ir::element_count(dims)));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return floats(dims, values);
  }
  // An input of this shape, whose values are not known.
  ir::TensorId input(const ir::Dims& dims, DType dtype = DType::Float32) {
    const ir::TensorId id = graph.add_tensor("input", dtype, ir::to_shape(dims));
    graph.inputs().push_back(id);
    return id;
  }
  // Elements of a result; a failed lowering or one that was not computed fails the test.
  std::vector<double> values(const Result<ir::TensorId>& result) {
    if (!result) {
      ADD_FAILURE() << result.status().to_string();
      return {};
    }
    const ir::TensorData* value = e.constant_of(*result);
    if (!value) {
      ADD_FAILURE() << "the result was not computed";
      return {};
    }
    return ir::to_doubles(value->view());
  }
  ir::Dims dims(const Result<ir::TensorId>& result) { return result ? e.dims_of(*result).value_or(ir::Dims{}) : ir::Dims{}; }
};

using Values = std::vector<double>;

}  // namespace orknn::tests
