// What each layer makes the chip do: work, traffic and steps, counted from shapes and the chip's granularity.
#include <algorithm>

#include "compile/npu_ops.h"
#include "compile/predict.h"
#include "compile/saturate.h"
#include "compile/tile.h"
#include "compile/weight_forms.h"
#include "ir/op_def.h"
#include "ir/packed.h"
#include "ops/facts.h"

namespace orknn::compile {
namespace {
using ir::NpuForm;

bool is_half(DType t) { return dtype_bytes(t) != 1; }

// Output channels per cycle and input channels per pass of the MAC array.
struct Array {
  uint64_t in, out, least_passes;
};
Array array_of(const platform::Platform& p, DType type) {
  const platform::ChannelAlignment& align = is_half(type) ? p.align_half : p.align_int8;
  return {u(std::max(align.conv_in, 1)), u(std::max(align.conv_out, 1)),
          u(is_half(type) ? p.min_passes_half : p.min_passes_int8)};
}

uint64_t bias_bytes(const platform::Platform& p, DType type, uint64_t channels, bool depthwise = false) {
  if (is_half(type)) return mul({4, pad(channels, 16)});
  const platform::WeightPacking& packing = p.packing;
  return depthwise ? mul({u(packing.depthwise_bias_bytes), pad(channels, u(packing.depthwise_bias_align))})
                   : mul({u(packing.bias_bytes), pad(channels, u(packing.bias_align))});
}

bool needs_table(std::string_view op) { return ops::facts_of(op).npu.stage == ir::OutputStage::Table; }
}  // namespace

ConvWork conv_work(const platform::Platform& platform, const Window& w, DType type, bool first_layer) {
  const Array array = array_of(platform, type);
  const uint64_t taps = mul({u(w.kernel[0]), u(w.kernel[1])}), pixels = mul({u(w.out.n), pad(mul({u(w.out.h), u(w.out.w)}), 16)});
  const uint64_t element = std::max<uint64_t>(dtype_bytes(type), 1), in = u(w.in_channels), out = u(w.out_channels),
                 group = std::max<uint64_t>(u(w.group), 1);
  // A transposed convolution touches every input pixel with every tap.
  const uint64_t positions = w.transposed ? mul({u(w.in.n), u(w.in.h), u(w.in.w)}) : mul({u(w.out.n), u(w.out.h), u(w.out.w)});
  ConvWork work;
  work.macs = mul({positions, w.transposed ? in : out, taps, (w.transposed ? out : in) / group});
  if (w.depthwise) {
    work.array_cycles = mul({pixels, taps, ceil_div(out, u(platform.depthwise_array))});
    work.weight_bytes =
        add(mul({out, taps, element, u(platform.packing.depthwise_bytes)}), bias_bytes(platform, type, out, true));
    return work;
  }
  const uint64_t in_per_group = std::max<uint64_t>(in / group, 1), out_per_group = std::max<uint64_t>(out / group, 1);
  const uint64_t passes = std::max(mul({taps, ceil_div(in_per_group, array.in)}), array.least_passes);
  work.array_cycles = mul({pixels, group, ceil_div(out_per_group, array.out), passes});
  const platform::WeightPacking& packing = platform.packing;
  const uint64_t padded_in = first_layer && in_per_group <= 4
                                 ? u(is_half(type) ? packing.first_inputs_half : packing.first_inputs_int8)
                                 : pad(in_per_group, u(packing.inputs));
  work.weight_bytes = add(mul({out, taps, padded_in, element}), bias_bytes(platform, type, out));
  return work;
}

ConvWork mat_mul_work(const platform::Platform& platform, uint64_t batch, uint64_t m, uint64_t k, uint64_t n, DType type) {
  const Array array = array_of(platform, type);
  ConvWork work;
  work.macs = mul({batch, m, k, n});
  work.array_cycles = mul({batch, pad(m, 16), ceil_div(n, array.out), std::max(ceil_div(k, array.in), array.least_passes)});
  work.weight_bytes = mul({batch, n, pad(k, u(platform.packing.inputs)), std::max<uint64_t>(dtype_bytes(type), 1)});
  return work;
}

uint64_t traffic_bytes(const platform::Platform& platform, DType type, std::span<const int64_t> dims, bool picture) {
  uint64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool channels = dims.size() == 4 && i == 1 && !picture;
    count = mul({count, channels ? pad(u(dims[i]), u(platform.c2(type))) : u(dims[i])});
  }
  return mul({count, dtype_bytes(type)});
}

namespace {

double number(uint64_t v) { return static_cast<double>(v); }

// Pixels take part in fours; the vendor's cycle column rounds up to sixteen.
constexpr uint64_t kPixels = 4;
constexpr uint64_t kConstantAlignment = 64;
// Products of so few float16 rows use every weight once: the array waits for each.
constexpr uint64_t kFewRows = 4;
// Output channels that generation 1 computes side by side.
constexpr uint64_t kPackedOutputs = 8;
// Channels of a depthwise convolution that count as one cycle there.
constexpr double kPackedDepthwise = 64;

// Cycles of generation 1 count 8-bit work; its time constants know float16, so 16-bit integers are brought to that.
double packed_cycles(const platform::Platform& p, double macs, DType type) {
  const double against_half =
      type == DType::Int16 && p.int16_macs > 0 && p.half_macs > 0 ? static_cast<double>(p.half_macs) / p.int16_macs : 1;
  return macs / std::max(p.int8_macs, 1) * against_half;
}

// Cycles that show in the time of a convolution.
double timing_cycles(const platform::Platform& p, const Window& w, DType type, uint64_t macs) {
  const Array array = array_of(p, type);
  const uint64_t taps = mul({u(w.kernel[0]), u(w.kernel[1])}), out = u(w.out_channels), in = u(w.in_channels),
                 group = std::max<uint64_t>(u(w.group), 1);
  const double pixels = number(mul({u(w.out.n), pad(mul({u(w.out.h), u(w.out.w)}), kPixels)}));
  if (p.packs_channels) {
    if (w.depthwise) return number(macs) / kPackedDepthwise;
    const double upsampled = w.transposed ? number(u(w.stride[0]) * u(w.stride[1])) : 1;
    return out ? packed_cycles(p, number(macs) / number(out) * number(pad(out, kPackedOutputs)) * upsampled, type) : 0;
  }
  if (group > 1 && group == in && group == out) return pixels * number(mul({taps, ceil_div(out, u(p.depthwise_array))}));
  // Channels lie in blocks, so that groups narrower than the array share a pass, with zeros where one does not read the other.
  const uint64_t in_per_group = std::max<uint64_t>(in / group, 1), out_per_group = std::max<uint64_t>(out / group, 1);
  const uint64_t together = std::clamp<uint64_t>(array.in / in_per_group, 1, group);
  const uint64_t passes = std::max(mul({taps, ceil_div(in_per_group * together, array.in)}), array.least_passes);
  return pixels * number(mul({ceil_div(group, together), ceil_div(mul({out_per_group, together}), array.out), passes}));
}

double mat_mul_cycles(const platform::Platform& p, uint64_t batch, uint64_t m, uint64_t k, uint64_t n, DType type) {
  if (p.packs_channels) return packed_cycles(p, number(mul({batch, m, k, pad(n, kPackedOutputs)})), type);
  const Array array = array_of(p, type);
  return number(mul({batch, pad(m, kPixels), ceil_div(n, array.out), std::max(ceil_div(k, array.in), array.least_passes)}));
}

// What a task costs, put together operator by operator.
class Costing {
 public:
  Costing(const format::Program& program, const format::Task& task, const platform::Platform& platform, const ir::OpSet& ops,
          const CostOptions& options)
      : graph_(program.graph),
        node_(program.graph.node(task.node)),
        program_(program),
        platform_(platform),
        ops_(ops),
        options_(options),
        facts_(program.graph, node_, platform),
        def_(facts_.def()),
        form_(facts_.form()),
        npu_(task.device == format::Device::Npu && !(platform.has_shader && !npu_objection(facts_).empty())),
        functions_(facts_.functions()) {
    type_ = node_.has_input(0) ? graph_.tensor(node_.inputs[0]).dtype : DType::Undefined;
    if (facts_.is_constant(1) && dtype_bytes(type_) > 0) {
      const DType weights = facts_.input_type(1);
      weight_scale_ =
          (weights == DType::Int4 ? 0.5 : static_cast<double>(dtype_bytes(weights))) / static_cast<double>(dtype_bytes(type_));
      if (const ir::TensorData& value = *graph_.constant(node_.inputs[1]); value.packed() && value.bytes() > 0)
        weight_scale_ *= number(value.packed()->bytes()) / number(value.bytes());
      if (!(weight_scale_ > 0 && weight_scale_ < 1)) weight_scale_ = 1;  // narrower than what they meet, or the same
    }
    picture_ = node_.has_input(0) && graph_.is_input(node_.inputs[0]) && facts_.input(0) && facts_.input(0)->size() == 4 &&
               (*facts_.input(0))[1] <= 4;
  }

  TaskCost run() {
    count_traffic();
    if (def_.weights == ir::Weights::OutIn || def_.weights == ir::Weights::InOut)
      convolution();
    else if (def_.weights == ir::Weights::Matrix)
      product();
    else if (form_ == NpuForm::Attention)
      attention();
    else if (const auto window = equal_weights_window(); window && npu_)
      equal_weights(*window);
    else if (npu_ && (form_ == NpuForm::Recurrent || form_ == NpuForm::RecurrentFloat))
      recurrent();
    else
      other();
    if (const int rate = platform_.macs_per_cycle(type_);
        npu_ && rate > 0 && !cost_.steps.empty() && cost_.steps.front().cycles > 0)
      cost_.steps.front().least_cycles = number(cost_.macs) * work_left(cost_.sparsity) / rate;
    if (weight_scale_ < 1) {
      for (Step& s : cost_.steps) s.weight_bytes *= weight_scale_;
      cost_.weight_bytes = static_cast<uint64_t>(number(cost_.weight_bytes) * weight_scale_);
      cost_.packed_bytes = static_cast<uint64_t>(number(cost_.packed_bytes) * weight_scale_);
    }
    cost_.read_bytes = add(static_cast<uint64_t>(read_), cost_.weight_bytes);
    if (npu_) keep_on_chip();
    cost_.pieces = static_cast<uint32_t>(std::clamp<uint64_t>(pieces(), 1, UINT32_MAX));
    if (cost_.packed_bytes == 0) cost_.packed_bytes = stored_constants();
    cost_.write_bytes = static_cast<uint64_t>(written_);
    return std::move(cost_);
  }

 private:
  Step& step(Step::Work work) {
    Step s;
    s.work = work;
    s.npu = npu_;
    s.half = is_half(type_);
    cost_.steps.push_back(s);
    return cost_.steps.back();
  }

  bool has_function_in_parts() const {
    return std::any_of(functions_.begin(), functions_.end(), [](std::string_view f) { return ops::facts_of(f).npu.in_parts; });
  }
  bool has_table() const { return std::any_of(functions_.begin(), functions_.end(), needs_table); }

  // What of a tensor's traffic stays on the chip, as far as its buffer reaches into that memory.
  double on_chip(ir::TensorId t, double bytes) const {
    const uint64_t window = std::max(options_.on_chip_bytes, u(platform_.feature_buffer_bytes()));
    if (window == 0 || static_cast<size_t>(t.index) >= program_.buffers.size()) return 0;
    const format::Buffer& b = program_.buffers[static_cast<size_t>(t.index)];
    if (b.place != format::Buffer::Place::Arena || b.bytes == 0 || b.offset >= window) return 0;
    return bytes * number(std::min(b.bytes, window - b.offset)) / number(b.bytes);
  }
  void keep_on_chip() {
    for (Step& s : cost_.steps) {
      const double kept = std::min(on_chip_, s.bytes);
      s.bytes -= kept;
      s.on_chip_bytes += kept;
      on_chip_ -= kept;
    }
  }

  // Equal parts that cores can take: rows, or groups of channels where there are more of these.
  uint64_t pieces() const {
    const auto e = extents(facts_.output(0));
    if (!e) return 1;
    const uint64_t lanes = u(std::max(platform_.alignment(type_).conv_out, 1));
    return facts_.output(0)->size() == 4 ? std::max(u(e->h), ceil_div(u(e->c), lanes))
                                         : std::max(mul({u(e->c), u(e->h)}), ceil_div(u(e->w), lanes));
  }

  // Constants of operators without weights: as they are.
  uint64_t stored_constants() const {
    uint64_t bytes = 0;
    for (ir::TensorId t : node_.inputs)
      if (t && graph_.is_constant(t)) bytes = add(bytes, pad(ir::stored_bytes(*graph_.constant(t)), kConstantAlignment));
    return bytes;
  }

  // Weights and bias of a convolution in memory.
  uint64_t packed(uint64_t weight_bytes, uint64_t bias) const {
    return add(pad(weight_bytes, kConstantAlignment), pad(bias, kConstantAlignment));
  }
  // Channels of depthwise kernels are padded as their tensors are.
  uint64_t packed_depthwise(const Window& w) const {
    const uint64_t lanes = platform_.packing.pads_depthwise
                               ? u(std::max((is_half(type_) ? platform_.align_half : platform_.align_int8).depthwise, 1))
                               : 1,
                   out = u(w.out_channels);
    return packed(mul({pad(out, lanes), u(w.kernel[0]), u(w.kernel[1]), std::max<uint64_t>(dtype_bytes(type_), 1),
                       u(platform_.packing.depthwise_bytes)}),
                  bias_bytes(platform_, type_, out, true));
  }

  // Constants count where the operator reads them as data; weights of convolutions and products are counted there.
  void count_traffic() {
    const bool weighted = def_.weights != ir::Weights::None;
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      const auto dims = facts_.dims_of(node_.inputs[i]);
      if (!dims) continue;
      const ir::Tensor& tensor = graph_.tensor(node_.inputs[i]);
      uint64_t count = 1;
      for (int64_t d : *dims) count = mul({count, u(d)});
      if (tensor.is_constant()) {
        if (!weighted && npu_) constants_ = add(constants_, mul({count, dtype_bytes(tensor.dtype)}));
        continue;
      }
      in_elements_ += number(count);
      const double bytes = number(traffic_bytes(platform_, tensor.dtype, *dims, i == 0 && picture_));
      read_ += bytes;
      on_chip_ += on_chip(node_.inputs[i], bytes);
    }
    for (ir::TensorId t : node_.outputs) {
      const auto dims = facts_.dims_of(t);
      if (!dims) continue;
      const DType type = graph_.tensor(t).dtype;
      uint64_t count = 1;
      for (int64_t d : *dims) count = mul({count, u(d)});
      if (t == node_.output(0)) {
        elements_ = number(count);
        first_output_ = number(traffic_bytes(platform_, type, *dims));
      }
      const double bytes = number(traffic_bytes(platform_, type, *dims));
      written_ += bytes;
      on_chip_ += on_chip(t, bytes);
    }
    cost_.weight_bytes = 0;
    read_constants_ = number(constants_);
  }

  // The pattern of the weights, when the user wants it used.
  format::Sparsity sparsity() const {
    if (options_.weights.assumed != format::Sparsity::None) return options_.weights.assumed;
    return options_.weights.sparse && facts_.is_constant(1) ? sparsity_of(*graph_.constant(node_.inputs[1]))
                                                            : format::Sparsity::None;
  }
  // Bytes of weights as stored: compressed where the chip and the user want it and it pays.
  uint64_t shortened(uint64_t bytes) const {
    if (!options_.weights.compressed || !platform_.features.weight_compression || !facts_.is_constant(1)) return bytes;
    const uint64_t element = std::max<uint64_t>(dtype_bytes(type_), 1);
    return std::min(bytes, compressed_bytes(*graph_.constant(node_.inputs[1]), bytes / element, element));
  }

  // The tiling and the fused tail of a convolution or product whose result has `padded` elements in the array's granularity.
  void finish(Step& s, double padded, const TilePlan& tiles) {
    cost_.tiling = tiles.tiling;
    cost_.tiles = tiles.tasks();
    cost_.read_again_bytes = add(tiles.features_again, tiles.weights_again);
    s.weight_bytes += number(tiles.weights_again);
    s.bytes = read_ + written_ + number(tiles.features_again);
    const bool in_parts = platform_.functions_in_parts && has_function_in_parts(), table = has_table();
    if (table && !in_parts) s.table_elements = platform_.packs_channels ? elements_ : padded;
    const bool added_last = table && ops::facts_of(functions_.back()).npu.stage == ir::OutputStage::Addend;
    if (added_last) s.bytes -= first_output_;
    // A residual Add after a table activation is a layer of its own on these chips; so are the parts of a function.
    const double later = (added_last ? 3 * first_output_ : 0) + (in_parts ? 9 * first_output_ : 0);
    if (later > 0) step(Step::Work::Move).bytes = later;
  }

  void convolution() {
    const auto window = window_of(facts_);
    if (!window) {
      other();
      return;
    }
    const ConvWork work = conv_work(platform_, *window, type_, picture_);
    cost_.macs = work.macs;
    if (!npu_) {
      step(Step::Work::CpuMacs).macs = number(work.macs);
      return;
    }
    const uint64_t bias = bias_bytes(platform_, type_, u(window->out_channels), window->depthwise);
    if (can_be_sparse(platform_, *window, type_)) cost_.sparsity = sparsity();
    const double left = work_left(cost_.sparsity);
    const uint64_t weights = static_cast<uint64_t>(number(shortened(work.weight_bytes - bias)) * left);
    cost_.array_cycles = static_cast<uint64_t>(number(work.array_cycles) * left);
    cost_.weight_bytes = add(weights, bias);
    const bool pointwise = window->kernel[0] == 1 && window->kernel[1] == 1;
    const bool depthwise = window->group > 1 && window->group == window->in_channels && window->group == window->out_channels;
    Step& s = step(depthwise            ? Step::Work::Depthwise
                   : window->transposed ? Step::Work::Conv
                   : picture_           ? Step::Work::Stem
                   : pointwise          ? Step::Work::Pointwise
                                        : Step::Work::Conv);
    s.cycles = timing_cycles(platform_, *window, type_, work.macs) * left;
    s.weight_bytes = number(cost_.weight_bytes);
    cost_.packed_bytes = depthwise ? packed_depthwise(*window) : packed(facts_.is_constant(1) ? weights : 0, bias);
    const Array array = array_of(platform_, type_);
    finish(s, number(mul({u(window->out.n), u(window->out.h), u(window->out.w), pad(u(window->out_channels), array.out)})),
           tile(platform_, *window, type_, weights));
    if (!window->transposed && pads_before(*window)) step(Step::Work::Move).bytes = 2 * read_;
    // The vendor's graphs show dilated depthwise convolutions between space-to-batch and batch-to-space.
    if (depthwise && (window->dilation[0] > 1 || window->dilation[1] > 1)) {
      Step& moved = step(Step::Work::SpaceToBatch);
      moved.elements = 2 * elements_;
      moved.bytes = 4 * first_output_;  // read and written, twice
    }
  }

  void product() {
    const auto a = facts_.input(0), b = facts_.input(1), out = facts_.output(0);
    if (!a || !b || !out || a->empty() || out->empty()) {
      other();
      return;
    }
    const bool transposed = node_.attributes.int_or("transA", 0) != 0, constant = facts_.is_constant(1);
    const uint64_t k = u(transposed ? a->front() : a->back()), n = std::max<uint64_t>(u(out->back()), 1);
    uint64_t all = 1;
    for (int64_t d : *out) all = mul({all, u(d)});
    const uint64_t rows = constant || out->size() < 2 ? all / n : u((*out)[out->size() - 2]), batch = rows ? all / n / rows : 0;
    const ConvWork work = mat_mul_work(platform_, batch, rows, k, n, type_);
    cost_.macs = work.macs;
    if (!npu_) {
      step(Step::Work::CpuMacs).macs = number(work.macs);
      return;
    }
    cost_.array_cycles = work.array_cycles;
    const uint64_t weights = constant ? shortened(work.weight_bytes) : work.weight_bytes;
    Step& s = step(constant ? Step::Work::Pointwise : Step::Work::MatMul);
    s.cycles = mat_mul_cycles(platform_, batch, rows, k, n, type_);
    s.serial = is_half(type_) && !platform_.packs_channels && rows <= kFewRows;
    if (constant) {
      cost_.weight_bytes = add(weights, facts_.has_input(2) ? bias_bytes(platform_, type_, n) : 0);
      s.weight_bytes = number(weights);
      cost_.packed_bytes = packed(weights, cost_.weight_bytes - weights);
    }
    Window rows_of;
    rows_of.in_channels = static_cast<int64_t>(k);
    rows_of.out_channels = static_cast<int64_t>(n);
    rows_of.in = rows_of.out = {1, 1, static_cast<int64_t>(rows), 1};
    // Every product of a batch has a second operand of its own.
    TilePlan plan = tile(platform_, rows_of, type_, weights / std::max<uint64_t>(batch, 1));
    plan.features_again = mul({plan.features_again, batch});
    plan.weights_again = mul({plan.weights_again, batch});
    plan.tiling.rows = static_cast<uint32_t>(std::min<uint64_t>(mul({plan.tiling.rows, batch}), UINT32_MAX));
    finish(s, elements_, plan);
  }

  // Two products with a softmax between; where the NPU has no such operator, the softmax runs on the CPU.
  void attention() {
    const auto q = facts_.input(0), k = facts_.input(1), v = facts_.input(2);
    if (!q || !k || !v || q->size() < 2 || k->size() < 2 || v->size() < 2) {
      other();
      return;
    }
    uint64_t batch = 1;
    for (size_t i = 0; i + 2 < q->size(); ++i) batch = mul({batch, u((*q)[i])});
    const uint64_t rows = u((*q)[q->size() - 2]), width = u(q->back()), keys = u((*k)[k->size() - 2]), out = u(v->back());
    const ConvWork first = mat_mul_work(platform_, batch, rows, width, keys, type_),
                   second = mat_mul_work(platform_, batch, rows, keys, out, type_);
    cost_.macs = add(first.macs, second.macs);
    const double softmax = number(mul({batch, rows, keys}));
    const double cycles[2] = {mat_mul_cycles(platform_, batch, rows, width, keys, type_),
                              mat_mul_cycles(platform_, batch, rows, keys, out, type_)};
    if (npu_) {
      cost_.array_cycles = add(first.array_cycles, second.array_cycles);
      step(Step::Work::MatMul).cycles = cycles[0] + cycles[1];
      Step& s = step(Step::Work::Attention);
      s.elements = softmax;
      s.bytes = read_ + written_;  // the scores stay on the chip
      return;
    }
    // The scores go through memory, to the CPU and back.
    const double scores = softmax * number(std::max<uint64_t>(dtype_bytes(type_), 1));
    for (size_t i = 0; i < 2; ++i) {
      Step& s = step(Step::Work::MatMul);
      s.cycles = cycles[i];
      s.bytes = scores + (i == 0 ? number(traffic_of(0)) + number(traffic_of(1)) : number(traffic_of(2)) + written_);
      s.npu = true;
    }
    step(Step::Work::Softmax).elements = softmax;
  }

  // Bytes of one operand.
  uint64_t traffic_of(size_t input) const {
    const auto dims = facts_.input(input);
    return dims ? traffic_bytes(platform_, facts_.input_type(input), *dims) : 0;
  }

  // Means and sums that are convolutions with equal weights: over channels, of small maps, of windows beyond the pooling block.
  std::optional<Window> equal_weights_window() const {
    if (form_ == NpuForm::ChannelSum) return total_window(facts_);
    if (form_ != NpuForm::GlobalAveragePool && form_ != NpuForm::AveragePool) return {};
    auto w = window_of(facts_);
    if (!w || facts_.input(0)->size() != 4) return {};
    const bool small_map = form_ == NpuForm::GlobalAveragePool && w->in.h <= 7 && w->in.w <= 7;
    if (!small_map && !averages_as_convolution(form_, *w)) return {};
    w->depthwise = true;
    return w;
  }
  void equal_weights(const Window& w) {
    const ConvWork work = conv_work(platform_, w, type_, false);
    cost_.macs = work.macs;
    cost_.array_cycles = work.array_cycles;
    cost_.weight_bytes = work.weight_bytes;
    if (w.depthwise) cost_.packed_bytes = packed_depthwise(w);
    const bool pointwise = w.kernel[0] == 1 && w.kernel[1] == 1;
    Step& s = step(w.depthwise ? Step::Work::Depthwise : pointwise ? Step::Work::Pointwise : Step::Work::Conv);
    s.cycles = timing_cycles(platform_, w, type_, work.macs);
    s.weight_bytes = number(work.weight_bytes);
    finish(s, elements_, tile(platform_, w, type_, work.weight_bytes));
  }

  // One product per time step that fills the array badly, and the gates' tables.
  void recurrent() {
    const auto x = facts_.input(0), w = facts_.input(1), r = facts_.input(2);
    if (!x || !w || !r || x->size() != 3 || w->size() != 3 || r->size() != 3) {
      other();
      return;
    }
    const uint64_t time = u((*x)[0]), rows = u((*x)[1]), directions = u((*w)[0]);
    const ConvWork in = mat_mul_work(platform_, directions, mul({time, rows}), u((*w)[2]), u((*w)[1]), type_);
    const ConvWork hidden = mat_mul_work(platform_, directions, rows, u((*r)[2]), u((*r)[1]), type_);
    cost_.macs = add(in.macs, mul({hidden.macs, time}));
    cost_.array_cycles = add(in.array_cycles, mul({hidden.array_cycles, time}));
    cost_.weight_bytes = add(in.weight_bytes, hidden.weight_bytes);
    Step& s = step(Step::Work::MatMul);
    s.cycles = number(cost_.array_cycles);
    s.weight_bytes = number(cost_.weight_bytes);
    s.bytes = read_ + written_;
    s.table_elements = number(mul({time, rows, directions, u((*r)[1])}));
  }

  void other() {
    const bool softmax = def_.work == ir::Work::Softmax, transpose = form_ == NpuForm::Transpose,
               view = def_.pattern == ir::Pattern::View;
    const auto factors = interpolation();
    count_macs();
    if (brings_into_narrow(facts_)) {
      step(Step::Work::Narrow).elements = elements_;
    } else if (softmax || transpose || view) {
      Step& s = step(softmax ? Step::Work::Softmax : transpose ? Step::Work::Transpose : Step::Work::Reshape);
      s.elements = elements_;
      if (npu_) s.bytes = read_ + written_;
    } else if (!npu_ && cost_.macs > 0) {
      step(Step::Work::CpuMacs).macs = number(cost_.macs);
    } else if (!npu_) {
      step(Step::Work::CpuElements).elements = leftover_elements();
    } else if (form_ == NpuForm::Norm || form_ == NpuForm::MeanVarianceNorm) {
      Step& s = step(Step::Work::Norm);
      s.elements = elements_;
      s.bytes = read_ + written_;
    } else if (def_.pattern == ir::Pattern::Window) {
      Step& s = step(Step::Work::Pool);
      s.elements = elements_;
      s.bytes = read_ + written_;
    } else if (def_.pattern == ir::Pattern::GlobalWindow) {
      Step& s = step(Step::Work::GlobalPool);
      s.elements = in_elements_;
      s.bytes = read_ + written_;
    } else if (factors) {
      // One task per place of a result between its four neighbours. Each reads the whole map and writes with gaps, which takes
      // the memory twice as long.
      const Extents e = extents(facts_.output(0)).value_or(Extents{});
      Step& s = step(Step::Work::Depthwise);
      s.tasks = *factors;
      s.cycles = number(mul({u(e.n), pad(mul({u(e.h), u(e.w)}), kPixels), 4, ceil_div(u(e.c), u(platform_.depthwise_array))}));
      s.bytes = read_ * *factors + 2 * written_;
    } else {
      Step& s = step(Step::Work::Move);
      s.bytes = read_ + written_;
      if (needs_table(facts_.op())) s.table_elements = elements_;
    }
    read_ += read_constants_;
  }

  // Results between one element and its neighbour in rows times those in columns when the node enlarges by interpolation.
  std::optional<double> interpolation() const {
    if (form_ != NpuForm::Resize || node_.attributes.string_or("mode", "nearest") != "linear") return {};
    const auto in = extents(facts_.input(0)), out = extents(facts_.output(0));
    if (!in || !out || u(in->h) * u(in->w) <= 1) return {};  // a single pixel is repeated
    return number(u(out->h) * u(out->w)) / number(u(in->h) * u(in->w));
  }

  // Elements that the CPU, or the NPU's shader, works on for an operator that does not multiply, in units of simple ones.
  double leftover_elements() const {
    // Interpolation reads four neighbours for every result, and reductions over other axes than the last one jump through memory
    // (4.3 and 6.8 ns in public logs where others take about 2).
    constexpr double kInterpolation = 2.1, kJumps = 3;
    // Results that the shader works on at once: a single one takes about 0.4 us per element, many take 1 to 3 ns.
    constexpr double kThreads = 200;
    if (def_.work == ir::Work::Results) return elements_;  // what only picks elements does not look at the others
    if (def_.pattern == ir::Pattern::Reduce) {
      if (platform_.has_shader) return in_elements_ * std::max(1.0, kThreads / std::max(elements_, 1.0));
      const auto axes = reduced_axes(facts_);
      const bool last =
          axes && axes->size() == 1 && facts_.input(0) && axes->front() + 1 == static_cast<int64_t>(facts_.input(0)->size());
      return in_elements_ * (last ? 1 : kJumps);
    }
    return std::max(elements_ * (interpolation() && !platform_.has_shader ? kInterpolation : 1), in_elements_);
  }

  // Operators outside the convolution family that multiply: the op's own count.
  void count_macs() {
    const ir::OpDef* def = ops_.find(node_.op);
    if (!def || !def->cost) return;
    std::vector<ir::Dims> ins, outs;
    for (size_t i = 0; i < node_.own_input_count(); ++i) {
      auto d = facts_.input(i);
      if (!d && node_.has_input(i)) return;
      ins.push_back(d.value_or(ir::Dims{}));
    }
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      auto d = facts_.output(i);
      if (!d && node_.outputs[i]) return;
      outs.push_back(d.value_or(ir::Dims{}));
    }
    cost_.macs = u(def->cost(ir::NodeReader(node_, *def), ins, outs).macs);
  }

  const ir::Graph& graph_;
  const ir::Node& node_;
  const format::Program& program_;
  const platform::Platform& platform_;
  const ir::OpSet& ops_;
  const CostOptions& options_;
  const NodeFacts facts_;
  const ir::OpDef& def_;  // of the operator that the node computes
  const NpuForm form_;
  const bool npu_;
  const std::vector<std::string_view> functions_;
  DType type_ = DType::Undefined;
  bool picture_ = false;
  double weight_scale_ = 1;  // weights in fewer bits than the activations
  uint64_t constants_ = 0;
  double read_ = 0, written_ = 0, on_chip_ = 0, read_constants_ = 0, in_elements_ = 0, elements_ = 0, first_output_ = 0;
  TaskCost cost_;
};
}  // namespace

std::string_view to_string(Step::Work work) {
  constexpr std::string_view kNames[] = {"conv",    "pointwise",      "stem",   "depthwise", "matmul",      "move",
                                         "pool",    "global_pool",    "norm",   "attention", "softmax",     "transpose",
                                         "reshape", "space_to_batch", "narrow", "cpu_macs",  "cpu_elements"};
  return kNames[static_cast<size_t>(work)];
}

TaskCost cost_of(const format::Program& program, const format::Task& task, const platform::Platform& platform,
                 const ir::OpSet& ops, const CostOptions& options) {
  return Costing(program, task, platform, ops, options).run();
}

}  // namespace orknn::compile
