// Recurrent layers over sequences [time, batch, features], and single steps of their cells for layers that have to be written
// out. Frameworks keep the gates of a cell in different orders; ours are i, o, f, c (LSTM) and z, r, h (GRU).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer {

enum class Cell { Lstm, Gru, Tanh, Relu };
int64_t gate_count(Cell cell);

// For each of our gates, which block of a framework's rows it is.
using GateOrder = std::span<const int64_t>;
inline constexpr int64_t kGatesIfco[] = {0, 3, 1, 2}, kGatesIfoc[] = {0, 2, 1, 3}, kGatesIcfo[] = {0, 3, 2, 1};
inline constexpr int64_t kGatesRzh[] = {1, 0, 2};
// The order in which cuDNN keeps the gates, and with it MXNet, PaddlePaddle and PyTorch.
GateOrder usual_order(Cell cell);
// LSTM, GRU, RNN_TANH or RNN_RELU, in either case.
Result<Cell> cell_of_mode(std::string mode);
// Blocks of `units` rows along an axis in our order; x itself when `order` is empty.
ir::TensorId in_our_order(Emitter& e, ir::TensorId x, GateOrder order, int64_t units, int64_t axis = 0);

struct RecurrentWeights {
  ir::TensorId input = {}, state = {};            // [gates * units, features], [gates * units, units]
  ir::TensorId input_bias = {}, state_bias = {};  // [gates * units]; either may be none
  ir::TensorId projection = {};                   // of an LSTM's state, [size, units]; usually none
  ir::TensorId peepholes = {};                    // of an LSTM's cell into gates i, o, f, [3 * units]; usually none
};
struct RecurrentLayers {
  Cell cell = Cell::Lstm;
  GateOrder order = {};
  int64_t directions = 1;
  bool is_backward = false;                    // of one direction: from the last step to the first
  std::vector<RecurrentWeights> weights = {};  // layer by layer, the directions of one side by side
  // [layers * directions, batch, units] each: the hidden state, then an LSTM's cell. None of them: zeros.
  std::vector<ir::TensorId> states = {};
  ir::TensorId lengths = {};  // [batch], int32; none: all sequences are full
  bool resets_first = false;  // GRU: the reset gate weighs the state, not what the state contributes
  // Names of our functions for the gates and the contents of a cell in the order of our operator, of those that take a parameter
  // the parameter; none: the usual ones.
  std::vector<std::string> activations = {};
  std::vector<double> alphas = {};
};
struct RecurrentResult {
  ir::TensorId sequence;             // [time, batch, directions * units]
  std::vector<ir::TensorId> states;  // the last ones, like the first
};
Result<RecurrentResult> run_recurrent(Emitter& e, ir::TensorId x, const RecurrentLayers& layers);

// --- single steps
struct LstmState {
  ir::TensorId hidden, cell;
};
enum class LstmGate : size_t { Input, Output, Forget, Content };  // in our order
struct LstmRule {
  using Function = std::function<Result<ir::TensorId>(ir::TensorId)>;
  // What drives a gate. `cell` is what its peephole sees: the cell before, or the new one for the output gate.
  std::function<ir::TensorId(LstmGate gate, ir::TensorId cell)> sum;
  Function gate = {}, content = {};  // none: Sigmoid, Tanh
  Function kept = {};                // what the new cell is limited or rounded to
  bool is_coupled = false;           // the input gate is what the forget gate leaves
};
// All that a step makes: the gates, the contents that are new and those that are shown, the cell and the hidden state.
struct LstmStep {
  ir::TensorId input, output, forget, fresh, shown, cell, hidden;
};
// `cell` is none where it holds zeros.
Result<LstmStep> lstm_step(Emitter& e, ir::TensorId cell, const LstmRule& rule);

// Operators for the gates and the contents, with their parameter where they take one, and the axis of the units.
struct StepFunctions {
  std::string gate = "Sigmoid";
  std::optional<double> gate_alpha = {};
  std::string content = "Tanh";
  std::optional<double> content_alpha = {};
  int64_t axis = -1;
};
// The same from the sums that drive the gates side by side, [batch, 4 * units].
LstmState lstm_step(Emitter& e, ir::TensorId sums, ir::TensorId cell, GateOrder order, int64_t units,
                    const StepFunctions& functions = {});
// From what input and state contribute to the gates, [batch, 3 * units] each; the reset gate weighs the contribution.
ir::TensorId gru_step(Emitter& e, ir::TensorId from_input, ir::TensorId from_state, ir::TensorId hidden, GateOrder order,
                      int64_t units);
// Calls `step` with every step of x [time, ...] in turn, from the last one when reversed, and gives its results along a new first
// axis. Long sequences are refused.
using Step = std::function<Result<ir::TensorId>(ir::TensorId now)>;
Result<ir::TensorId> unrolled(Emitter& e, ir::TensorId x, bool is_reversed, const Step& step, int64_t max_steps = 4096);

}  // namespace orknn::importer
