// For tests: a program with every kind of step, and what the reference kernels make of it.
#pragma once

#include <random>

#include "format/program.h"
#include "ops/eval.h"

namespace orknn::silicon {

inline ir::TensorData random_bytes(ir::Dims dims, uint32_t seed) {
  std::mt19937 engine(seed);
  ir::TensorData data = ir::TensorData::allocate(DType::Int8, std::move(dims));
  auto* bytes = static_cast<int8_t*>(data.mutable_data());
  for (int64_t i = 0; i < ir::element_count(data.dims()); ++i)
    bytes[i] = static_cast<int8_t>(static_cast<int>(engine() % 256) - 128);
  return data;
}

// A task per node of the graph, which reads x and makes y.
inline void make_tasks(format::Program& program, ir::TensorId x, ir::TensorId y) {
  ir::Graph& g = program.graph;
  g.inputs() = {x};
  g.outputs() = {y};
  for (const ir::NodeId id : g.order()) program.tasks.push_back({.node = id, .macs = 1000});
  program.buffers.resize(g.tensor_count());
  program.inputs.push_back({.tensor = x});
  program.outputs.push_back({.tensor = y});
}

// x [1,19,24,20] -> conv 3x3 to 32 channels, in bands with `rows` high enough -> max pool -> two convolutions, joined -> average
// -> split -> addition -> a layer of the CPU.
class SmallNetwork {
 public:
  explicit SmallNetwork(int64_t rows = 24, int64_t columns = 20) {
    ir::Graph& g = program.graph;
    const ir::TensorId x = tensor("x", {1, 19, rows, columns});
    const ir::TensorId a = conv("first", x, {1, 32, rows, columns}, 3, 1);
    const ir::TensorId pooled = tensor("pooled", {1, 32, rows / 2, columns / 2});
    ir::Attributes window;
    window.set("kernel_shape", std::vector<int64_t>{2, 2});
    window.set("strides", std::vector<int64_t>{2, 2});
    g.add_node({.op = "MaxPool", .name = "pool", .inputs = {a}, .outputs = {pooled}, .attributes = window});
    const ir::TensorId left = conv("left", pooled, {1, 32, rows / 2, columns / 2}, 1, 2),
                       right = conv("right", pooled, {1, 32, rows / 2, columns / 2}, 3, 3);
    const ir::TensorId joined = tensor("joined", {1, 64, rows / 2, columns / 2});
    ir::Attributes axis;
    axis.set("axis", int64_t{1});
    g.add_node({.op = "Concat", .name = "join", .inputs = {left, right}, .outputs = {joined}, .attributes = axis});
    const ir::TensorId mean = tensor("mean", {1, 64, rows / 4, columns / 4});
    ir::Attributes same = window;
    same.set("same_scale", int64_t{1});
    g.add_node({.op = "int:AveragePool", .name = "mean", .inputs = {joined}, .outputs = {mean}, .attributes = same});
    const ir::TensorId low = tensor("low", {1, 32, rows / 4, columns / 4}), high = tensor("high", {1, 32, rows / 4, columns / 4});
    g.add_node({.op = "Split", .name = "split", .inputs = {mean}, .outputs = {low, high}, .attributes = axis});
    const ir::TensorId b = conv("after", low, {1, 32, rows / 4, columns / 4}, 1, 4);
    const ir::TensorId c = conv("beside", high, {1, 32, rows / 4, columns / 4}, 1, 5);
    const ir::TensorId y = tensor("y", {1, 32, rows / 4, columns / 4});
    g.add_node({.op = "Max", .name = "cpu", .inputs = {b, c}, .outputs = {y}});
    make_tasks(program, x, y);
    input = random_bytes({1, 19, rows, columns}, 77);
  }

  std::vector<int8_t> expected() const {
    const auto results = ops::eval_graph(program.graph, ops::builtin_ops(), std::span(&input, 1));
    if (!results) return {};
    const auto values = results->front().values<int8_t>();
    return {values.begin(), values.end()};
  }

  format::Program program;
  ir::TensorData input;

 private:
  ir::TensorId tensor(const char* name, ir::Dims dims) { return program.graph.add_tensor(name, DType::Int8, ir::to_shape(dims)); }
  ir::TensorId conv(const std::string& name, ir::TensorId x, const ir::Dims& out, int64_t kernel, uint32_t seed) {
    ir::Graph& g = program.graph;
    const int64_t channels = (*ir::to_dims(*g.tensor(x).shape))[1];
    const ir::TensorId w = g.add_constant(name + ".w", random_bytes({out[1], channels, kernel, kernel}, seed));
    ir::Attributes a;
    a.set("pads", std::vector<int64_t>(4, kernel / 2));
    a.set("x_zero_point", int64_t{3});
    a.set("multiplier", std::vector<int64_t>{20000});
    a.set("shift", std::vector<int64_t>{kernel == 1 ? 24 : 26});
    a.set("y_zero_point", int64_t{-4});
    a.set("low", int64_t{-128});
    a.set("high", int64_t{127});
    const ir::TensorId y = g.add_tensor(name + ".y", DType::Int8, ir::to_shape(out));
    g.add_node({.op = "int:Conv", .name = name, .inputs = {x, w}, .outputs = {y}, .attributes = a});
    return y;
  }
};

}  // namespace orknn::silicon
