// Lowering functions on constants: what they build is computed at once, so their results can be read.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "import/lower/emitter.h"
#include "ops/eval.h"

namespace orknn::tests {

struct Folded {
  ir::Graph graph;
  importer::Emitter e{graph, ops::builtin_ops(), "layer", {"layer"}};

  ir::TensorId floats(ir::Dims dims, const std::vector<float>& values) {
    return e.add_constant("x", ir::TensorData::from<float>(std::move(dims), values));
  }
  // Fails the test when the tensor could not be computed.
  std::vector<double> values(ir::TensorId id) {
    const ir::TensorData* data = id ? e.constant_of(id) : nullptr;
    if (data) return ir::to_doubles(data->view());
    ADD_FAILURE() << "the result is no constant";
    return {};
  }
  ir::Dims dims(ir::TensorId id) { return e.dims_of(id).value_or(ir::Dims{}); }
};

}  // namespace orknn::tests
