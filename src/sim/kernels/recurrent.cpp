// LSTM, GRU and RNN with their usual functions. The products of all time steps with W are one matrix product per block of
// steps; each step then adds the product of the state with R. Weights are packed once.
#include <algorithm>
#include <string_view>

#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBlockFloats = 1 << 20;  // gates of the steps whose products with W are computed together

enum Input : size_t { kX, kW, kR, kB, kLengths, kInitialHidden, kInitialCell, kPeepholes };
enum class Cell { Lstm, Gru, Rnn };

// Constant weights [rows][depth] as the right operand of a product.
struct Packed {
  AlignedFloats panels;
  int64_t columns = 0;
};

struct Direction {
  bool reversed = false;
  Packed w;                      // of all gates
  Packed r, r_last;              // of the gates computed from the state; GRU's candidate comes from another product
  std::vector<float> bias;       // added to the product with W
  std::vector<float> last_bias;  // of GRU's candidate when the reset comes after the product
};

struct State : KernelState {
  Cell cell = Cell::Lstm;
  int64_t steps = 0, batch = 0, input = 0, hidden = 0, gates = 0;
  bool batch_first = false, reset_after = false;
  std::vector<Direction> directions;
};

bool is_default(const KernelQuery& q, Cell cell, size_t directions) {
  const auto* names = q.attributes().find<std::vector<std::string>>("activations");
  if (!names || names->empty()) return true;
  std::vector<std::string_view> usual{"sigmoid", "tanh", "tanh"};
  if (cell == Cell::Gru) usual = {"sigmoid", "tanh"};
  if (cell == Cell::Rnn) usual = {"tanh"};
  if (names->size() != usual.size() * directions) return false;
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  for (size_t i = 0; i < names->size(); ++i) {
    const std::string_view name = (*names)[i], expected = usual[i % usual.size()];
    if (!std::equal(name.begin(), name.end(), expected.begin(), expected.end(), same)) return false;
  }
  return true;
}

// Shapes and kinds; weights are packed later.
std::unique_ptr<State> plan(const KernelQuery& q) {
  auto s = std::make_unique<State>();
  if (q.node.op == "LSTM")
    s->cell = Cell::Lstm, s->gates = 4;
  else if (q.node.op == "GRU")
    s->cell = Cell::Gru, s->gates = 3;
  else if (q.node.op == "RNN")
    s->cell = Cell::Rnn, s->gates = 1;
  else
    return nullptr;
  const auto given = [&](size_t i) { return i < q.inputs.size() && q.inputs[i].exists(); };
  if (!q.node.tail.empty() || q.inputs.size() < 3 || given(kLengths) || given(kPeepholes)) return nullptr;
  for (size_t i = 0; i < q.inputs.size(); ++i)
    if (given(i) && (!storage_of(q.inputs[i].dtype) || ((i == kW || i == kR || i == kB) && !q.inputs[i].constant)))
      return nullptr;
  for (const OperandFacts& o : q.outputs)
    if (o.exists() && o.dtype != q.inputs[kX].dtype) return nullptr;
  const ir::Attributes& attributes = q.node.attributes;
  const std::string direction = attributes.string_or("direction", "forward");
  if (attributes.float_or("clip", 0) > 0 || attributes.int_or("input_forget", 0) != 0) return nullptr;
  s->batch_first = attributes.int_or("layout", 0) != 0;
  s->reset_after = attributes.int_or("linear_before_reset", 0) != 0;
  s->directions.resize(direction == "bidirectional" ? 2 : 1);
  s->directions.back().reversed = direction != "forward";
  if (!is_default(q, s->cell, s->directions.size())) return nullptr;
  // The reference checks these when it runs; here they decide what is read.
  const ir::Dims &x = q.inputs[kX].dims, &r = q.inputs[kR].dims;
  if (x.size() != 3 || r.size() != 3) return nullptr;
  s->steps = x[s->batch_first ? 1 : 0];
  s->batch = x[s->batch_first ? 0 : 1];
  s->input = x[2];
  s->hidden = r[2];
  const auto count = static_cast<int64_t>(s->directions.size()), rows = s->gates * s->hidden;
  const ir::Dims state = s->batch_first ? ir::Dims{s->batch, count, s->hidden} : ir::Dims{count, s->batch, s->hidden};
  const auto fits = [&](size_t i, const ir::Dims& dims) { return !given(i) || q.inputs[i].dims == dims; };
  if (!fits(kW, {count, rows, s->input}) || !fits(kR, {count, rows, s->hidden}) || !fits(kB, {count, 2 * rows}) ||
      !fits(kInitialHidden, state) || !fits(kInitialCell, state))
    return nullptr;
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }

// Rows [row, row + rows) of a constant [rows][depth] matrix that begins at `offset` become the columns of a packed operand.
Status pack(Packed& to, const ir::TensorData& from, int64_t offset, int64_t row, int64_t rows, int64_t depth) {
  to.columns = rows;
  const int64_t size = panels_b(rows) * kPanelColumns * depth;
  if (!to.panels.allocate(size)) return out_of_scratch(size * 4);
  const auto* source =
      static_cast<const std::byte*>(from.data()) + (offset + row * depth) * static_cast<int64_t>(dtype_bytes(from.dtype()));
  forms().pack_b(source, *storage_of(from.dtype()), 1, depth, depth, rows, to.panels.data());
  to.panels.share(source);
  return {};
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  std::unique_ptr<State> s = plan(q);
  const int64_t n = s->hidden, rows = s->gates * n, from_state = s->cell == Cell::Gru ? 2 * n : rows;
  std::vector<double> bias(2 * s->directions.size() * static_cast<size_t>(rows));
  if (q.inputs.size() > kB && q.inputs[kB].exists()) bias = ir::to_doubles(q.inputs[kB].constant->view());
  for (size_t i = 0; i < s->directions.size(); ++i) {
    Direction& d = s->directions[i];
    const auto at = static_cast<int64_t>(i);
    ORKNN_TRY(pack(d.w, *q.inputs[kW].constant, at * rows * s->input, 0, rows, s->input));
    ORKNN_TRY(pack(d.r, *q.inputs[kR].constant, at * rows * n, 0, from_state, n));
    if (from_state < rows) ORKNN_TRY(pack(d.r_last, *q.inputs[kR].constant, at * rows * n, from_state, rows - from_state, n));
    for (int64_t k = 0; k < rows; ++k) {
      const double of_w = bias[static_cast<size_t>(2 * at * rows + k)], of_r = bias[static_cast<size_t>((2 * at + 1) * rows + k)];
      const bool apart = k >= from_state && s->reset_after;
      d.bias.push_back(static_cast<float>(apart ? of_w : of_w + of_r));
      if (k >= from_state) d.last_bias.push_back(static_cast<float>(of_r));
    }
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

// One direction of one run.
class Walk {
 public:
  Walk(const State& s, size_t direction, KernelContext& c, float* scratch)
      : s_(s), d_(s.directions[direction]), direction_(static_cast<int64_t>(direction)), c_(c), f_(forms()) {
    gates_ = scratch;
    now_ = gates_ + rounded(block_steps(s) * s.batch * rows());
    hidden_ = now_ + rounded(s.batch * rows());
    cell_ = hidden_ + rounded(s.batch * s.hidden);
    kept_ = cell_ + rounded(s.batch * s.hidden);
    product_ = kept_ + rounded(s.batch * s.hidden);
  }

  static int64_t block_steps(const State& s) {
    return std::clamp<int64_t>(kBlockFloats / std::max<int64_t>(1, s.batch * s.gates * s.hidden), 1, s.steps);
  }
  // Floats of working memory.
  static int64_t scratch(const State& s, const ThreadPool& pool) {
    const Direction& d = s.directions[0];
    const int64_t block = block_steps(s), rows = s.gates * s.hidden;
    int64_t product = 0;
    for (int64_t count : {block, s.steps - (divide_up(s.steps, block) - 1) * block})  // whole blocks and the last one
      product = std::max(
          product,
          product_scratch(shape(s.batch_first ? s.batch : 1, s.batch_first ? count : count * s.batch, s.input, d.w), pool));
    for (const Packed* r : {&d.r, &d.r_last})
      if (r->columns) product = std::max(product, product_scratch(shape(1, s.batch, s.hidden, *r), pool));
    return rounded(block * s.batch * rows) + rounded(s.batch * rows) + 3 * rounded(s.batch * s.hidden) + rounded(product);
  }

  void run() {
    load(kInitialHidden, hidden_);
    if (s_.cell == Cell::Lstm) load(kInitialCell, cell_);
    const int64_t block = block_steps(s_), blocks = divide_up(s_.steps, block);
    for (int64_t i = 0; i < blocks; ++i) {
      const int64_t begin = (d_.reversed ? blocks - 1 - i : i) * block, count = std::min(block, s_.steps - begin);
      multiply_inputs(begin, count);
      for (int64_t k = 0; k < count; ++k) {
        const int64_t step = d_.reversed ? count - 1 - k : k;
        advance(step, count);
        if (c_.outputs[0].dtype != DType::Undefined) store_step(begin + step);
      }
    }
    if (c_.outputs.size() > 1 && c_.outputs[1].dtype != DType::Undefined) store_state(c_.outputs[1], hidden_);
    if (c_.outputs.size() > 2 && c_.outputs[2].dtype != DType::Undefined) store_state(c_.outputs[2], cell_);
  }

 private:
  static int64_t rounded(int64_t count) { return (count + 15) / 16 * 16; }
  int64_t rows() const { return s_.gates * s_.hidden; }

  static Product shape(int64_t batches, int64_t rows, int64_t depth, const Packed& b) {
    Product p;
    p.batches = batches;
    p.rows = rows;
    p.depth = depth;
    p.columns = b.columns;
    p.packed_b = b.panels.data();
    p.c_row_stride = b.columns;
    p.place = [](int64_t) { return Product::Place{}; };
    return p;
  }

  int64_t state_at(int64_t sequence) const {
    const auto directions = static_cast<int64_t>(s_.directions.size());
    return (s_.batch_first ? sequence * directions + direction_ : direction_ * s_.batch + sequence) * s_.hidden;
  }
  void load(size_t slot, float* to) const {
    if (slot >= c_.inputs.size() || c_.inputs[slot].dtype == DType::Undefined) {
      std::fill_n(to, s_.batch * s_.hidden, 0.0f);
      return;
    }
    for (int64_t b = 0; b < s_.batch; ++b) {
      if (c_.inputs[slot].dtype == DType::Float16)
        f_.to_float(c_.inputs[slot].as<Half>() + state_at(b), to + b * s_.hidden, s_.hidden);
      else
        std::copy_n(c_.inputs[slot].as<float>() + state_at(b), s_.hidden, to + b * s_.hidden);
    }
  }
  void store(const ir::MutableTensorView& y, int64_t at, const float* from) const {
    if (y.dtype == DType::Float16)
      f_.to_half(from, y.as<Half>() + at, s_.hidden);
    else
      std::copy_n(from, s_.hidden, y.as<float>() + at);
  }
  void store_state(const ir::MutableTensorView& y, const float* from) const {
    for (int64_t b = 0; b < s_.batch; ++b) store(y, state_at(b), from + b * s_.hidden);
  }
  void store_step(int64_t t) const {
    const auto directions = static_cast<int64_t>(s_.directions.size());
    for (int64_t b = 0; b < s_.batch; ++b)
      store(c_.outputs[0],
            (s_.batch_first ? (b * s_.steps + t) * directions + direction_ : (t * directions + direction_) * s_.batch + b) *
                s_.hidden,
            hidden_ + b * s_.hidden);
  }

  // gates_ = X W^T + bias for `count` steps: [step][sequence][rows], or [sequence][step][rows] where the batch comes first.
  void multiply_inputs(int64_t begin, int64_t count) {
    Product p = shape(s_.batch_first ? s_.batch : 1, s_.batch_first ? count : count * s_.batch, s_.input, d_.w);
    p.a = {c_.inputs[kX].data, *storage_of(c_.inputs[kX].dtype), s_.input, 1};
    p.c = gates_;
    p.steps.push_back({.fn = Fn::Add, .operand = d_.bias.data(), .column_stride = 1});
    p.place = [&, begin, count](int64_t sequence) {
      if (!s_.batch_first) return Product::Place{.a = begin * s_.batch * s_.input};
      return Product::Place{.a = (sequence * s_.steps + begin) * s_.input, .c = sequence * count * rows()};
    };
    run_product(p, c_.pool, product_);
  }

  // The gates of `step` of a block of `count` steps, of sequence 0, and how far apart those of sequences are.
  const float* gates_of(int64_t step) const { return gates_ + step * rows() * (s_.batch_first ? 1 : s_.batch); }

  // to = a R^T, plus `operand` (rows `operand_stride` apart) if given.
  void multiply_state(const float* a, const Packed& r, const float* operand, int64_t operand_stride, float* to,
                      int64_t to_stride) {
    Product p = shape(1, s_.batch, s_.hidden, r);
    p.a = {a, Storage::Float, s_.hidden, 1};
    p.c = to;
    p.c_row_stride = to_stride;
    if (operand) p.steps.push_back({.fn = Fn::Add, .operand = operand, .row_stride = operand_stride, .column_stride = 1});
    run_product(p, c_.pool, product_);
  }

  void advance(int64_t step, int64_t count) {
    const int64_t n = s_.hidden, stride = rows() * (s_.batch_first ? count : 1);
    const float* gates = gates_of(step);
    multiply_state(hidden_, d_.r, gates, stride, now_, rows());
    if (s_.cell == Cell::Gru) return advance_gru(gates, stride);
    for (int64_t b = 0; b < s_.batch; ++b) {
      float *g = now_ + b * rows(), *h = hidden_ + b * n, *cell = cell_ + b * n;
      if (s_.cell == Cell::Rnn) {
        f_.map(Fn::Tanh, 0, 0, g, h, n);
        continue;
      }
      // Gates in the order input, output, forget, cell.
      f_.map(Fn::Sigmoid, 0, 0, g, g, 3 * n);
      f_.map(Fn::Tanh, 0, 0, g + 3 * n, g + 3 * n, n);
      f_.map2(Fn::Multiply, g + 2 * n, true, cell, true, cell, n);
      f_.map2(Fn::Multiply, g, true, g + 3 * n, true, g, n);
      f_.map2(Fn::Add, cell, true, g, true, cell, n);
      f_.map(Fn::Tanh, 0, 0, cell, h, n);
      f_.map2(Fn::Multiply, h, true, g + n, true, h, n);
    }
  }

  // Gates in the order update, reset, candidate; the first two are in now_.
  void advance_gru(const float* gates, int64_t stride) {
    const int64_t n = s_.hidden;
    for (int64_t b = 0; b < s_.batch; ++b) {
      float* g = now_ + b * rows();
      f_.map(Fn::Sigmoid, 0, 0, g, g, 2 * n);
      if (!s_.reset_after) f_.map2(Fn::Multiply, g + n, true, hidden_ + b * n, true, kept_ + b * n, n);
    }
    if (s_.reset_after)
      multiply_state(hidden_, d_.r_last, d_.last_bias.data(), 0, now_ + 2 * n, rows());
    else
      multiply_state(kept_, d_.r_last, gates + 2 * n, stride, now_ + 2 * n, rows());
    for (int64_t b = 0; b < s_.batch; ++b) {
      float *g = now_ + b * rows(), *candidate = g + 2 * n, *h = hidden_ + b * n;
      if (s_.reset_after) {
        f_.map2(Fn::Multiply, candidate, true, g + n, true, candidate, n);
        f_.map2(Fn::Add, candidate, true, gates + b * stride + 2 * n, true, candidate, n);
      }
      f_.map(Fn::Tanh, 0, 0, candidate, candidate, n);
      f_.map2(Fn::Subtract, h, true, candidate, true, h, n);  // h = candidate + update * (h - candidate)
      f_.map2(Fn::Multiply, h, true, g, true, h, n);
      f_.map2(Fn::Add, h, true, candidate, true, h, n);
    }
  }

  const State& s_;
  const Direction& d_;
  int64_t direction_;
  KernelContext& c_;
  const Forms& f_;
  float *gates_, *now_, *hidden_, *cell_, *kept_, *product_;
};

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const int64_t each = Walk::scratch(s, c.pool), bytes = static_cast<int64_t>(s.directions.size()) * each * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  if (s.directions.size() == 1) {
    Walk(s, 0, c, scratch).run();
    return {};
  }
  const bool reproducible = reproducible_floats();
  c.pool.parallel_for(2, 1, [&](int64_t begin, int64_t end) {
    const ReproducibleFloats floats(reproducible);  // a walk begins products of its own
    for (int64_t i = begin; i < end; ++i) Walk(s, static_cast<size_t>(i), c, scratch + i * each).run();
  });
  return {};
}
}  // namespace

std::span<const Kernel> recurrent() {
  static const Kernel kernels[] = {{"recurrent", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
