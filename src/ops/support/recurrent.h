// What RNN, GRU and LSTM share: shapes, directions, layouts, activation functions, sequence lengths, and the walk through time.
// An op only adds its cell.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/threads.h"
#include "ir/op_def.h"

namespace orknn::ops {

struct RecurrentShape {
  int64_t steps = 0, batch = 0, input = 0, hidden = 0;
  int64_t gates = 1;       // rows of W and R are gates * hidden
  int64_t directions = 1;  // 2 for bidirectional
  bool first_reversed = false;
  bool batch_first = false;  // layout = 1

  bool reversed(int64_t direction) const { return first_reversed || direction == 1; }
  int64_t macs() const { return steps * batch * directions * gates * hidden * (input + hidden); }
};

using Activation = std::function<double(double)>;

// Attributes all three have.
std::vector<ir::AttributeDef> recurrent_attributes();
// Shape rule: Y, Y_h and, for a cell with memory, Y_c.
Status infer_recurrent(ir::InferContext& c, int64_t gates, std::span<const std::string_view> default_activations, bool has_cell);
// Checks all inputs of the node (X, W, R, B, sequence_lens, initial_h, and for LSTM initial_c, P).
Result<RecurrentShape> recurrent_shape(const ir::RunContext& c, int64_t gates);
ir::OpCost recurrent_cost(const ir::NodeReader& node, std::span<const ir::Dims> inputs, int64_t gates);

// The functions of each direction, `defaults.size()` apiece.
Result<std::vector<Activation>> read_activations(const ir::NodeReader& node, std::span<const std::string_view> defaults);
// The bound on what goes into activations; infinity when there is none.
double read_clip(const ir::NodeReader& node);

// One time step of one sequence: `gates` is W x + Wb, `hidden` and `cell` are the state to advance.
struct CellStep {
  int64_t direction;
  const double* gates;
  double* hidden;
  double* cell;
};

// R of one direction as double, with the rows' products.
class RecurrentWeights {
 public:
  RecurrentWeights(std::vector<double> values, int64_t hidden) : values_(std::move(values)), hidden_(hidden) {}
  // Row `row` of direction `direction` times h.
  double dot(int64_t row, const double* h) const {
    const double* r = values_.data() + row * hidden_;
    double sum = 0;
    for (int64_t i = 0; i < hidden_; ++i) sum += r[i] * h[i];
    return sum;
  }

 private:
  std::vector<double> values_;
  int64_t hidden_;
};

// Walks every sequence in every direction, calls `step` for each of its elements and writes the outputs.
Status run_recurrent(ir::RunContext& c, const RecurrentShape& s, bool has_cell, const std::function<void(const CellStep&)>& step);

}  // namespace orknn::ops
