#include "compile/predict.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ir/op_def.h"

namespace orknn::compile {
namespace {

// Figures of lying shapes saturate instead of wrapping.
constexpr uint64_t kMost = uint64_t{1} << 60;

uint64_t mul(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (uint64_t f : factors) {
    if (f == 0) return 0;
    if (result > kMost / f) return kMost;
    result *= f;
  }
  return result;
}
uint64_t add(uint64_t a, uint64_t b) { return std::min(kMost, a + b); }
uint64_t ceil_div(uint64_t a, uint64_t b) { return b ? (a + b - 1) / b : a; }
uint64_t pad(uint64_t value, uint64_t multiple) { return mul({ceil_div(value, multiple), multiple}); }
uint64_t u(int64_t v) { return v > 0 ? static_cast<uint64_t>(v) : 0; }

bool is_half(DType t) { return dtype_bytes(t) != 1; }

// Output channels per cycle and input channels per pass of the MAC array.
struct Array {
  uint64_t in, out, least_passes;
};
Array array_of(const platform::Platform& p, DType type) {
  const platform::ChannelAlignment& align = is_half(type) ? p.align_half : p.align_int8;
  return {u(std::max(align.conv_in, 1)), u(std::max(align.conv_out, 1)), u(is_half(type) ? p.min_passes_half : p.min_passes_int8)};
}

uint64_t bias_bytes(DType type, uint64_t channels) { return is_half(type) ? 4 * pad(channels, 16) : 8 * pad(channels, 32); }

bool needs_table(const std::string& op) {
  static const std::set<std::string_view> kTables{"Swish", "Sigmoid", "Tanh", "Gelu", "Mish", "HardSwish", "Softplus", "Elu", "HardSigmoid", "Exp"};
  return kTables.contains(op);
}
}  // namespace

ConvWork conv_work(const platform::Platform& platform, const Window& w, DType type, bool first_layer) {
  const Array array = array_of(platform, type);
  const uint64_t taps = mul({u(w.kernel[0]), u(w.kernel[1])}), pixels = mul({u(w.out.n), pad(mul({u(w.out.h), u(w.out.w)}), 16)});
  const uint64_t element = std::max<uint64_t>(dtype_bytes(type), 1), in = u(w.in_channels), out = u(w.out_channels), group = std::max<uint64_t>(u(w.group), 1);
  // A transposed convolution touches every input pixel with every tap.
  const uint64_t positions = w.transposed ? mul({u(w.in.n), u(w.in.h), u(w.in.w)}) : mul({u(w.out.n), u(w.out.h), u(w.out.w)});
  ConvWork work;
  work.macs = mul({positions, w.transposed ? in : out, taps, (w.transposed ? out : in) / group});
  if (w.depthwise) {
    work.array_cycles = mul({pixels, taps, ceil_div(out, u(platform.depthwise_array))});
    work.weight_bytes = add(mul({out, taps, element}), bias_bytes(type, out));
    return work;
  }
  const uint64_t in_per_group = std::max<uint64_t>(in / group, 1), out_per_group = std::max<uint64_t>(out / group, 1);
  const uint64_t passes = std::max(mul({taps, ceil_div(in_per_group, array.in)}), array.least_passes);
  work.array_cycles = mul({pixels, group, ceil_div(out_per_group, array.out), passes});
  const uint64_t padded_in = first_layer && is_half(type) && in_per_group <= 4 ? 8 : pad(in_per_group, 16);
  work.weight_bytes = add(mul({out, taps, padded_in, element}), bias_bytes(type, out));
  return work;
}

ConvWork mat_mul_work(const platform::Platform& platform, uint64_t batch, uint64_t m, uint64_t k, uint64_t n, DType type) {
  const Array array = array_of(platform, type);
  ConvWork work;
  work.macs = mul({batch, m, k, n});
  work.array_cycles = mul({batch, pad(m, 16), ceil_div(n, array.out), std::max(ceil_div(k, array.in), array.least_passes)});
  work.weight_bytes = mul({batch, n, pad(k, 16), std::max<uint64_t>(dtype_bytes(type), 1)});
  return work;
}

uint32_t row_bands(const platform::Platform& platform, const Window& w, DType type, uint64_t weight_bytes) {
  const uint64_t bank = u(platform.cbuf_bank_bytes), banks = u(platform.cbuf_banks), element = std::max<uint64_t>(dtype_bytes(type), 1);
  const uint64_t row = pad(mul({u(w.in.w), u(w.in_channels), element}), 128);  // whole entries of the buffer
  const uint64_t in_rows = u(w.in.h), kernel_rows = u(w.dilated(0)), out_rows = u(w.out.h);
  if (row == 0 || out_rows == 0 || banks < 2) return 1;
  const uint64_t least_data = std::min(banks - 1, ceil_div(mul({kernel_rows, row}), bank));
  const uint64_t weight_banks = std::clamp<uint64_t>(ceil_div(weight_bytes, bank), 1, banks - std::max<uint64_t>(least_data, 1));
  const uint64_t rows = mul({banks - weight_banks, bank}) / row;
  if (rows >= in_rows) return 1;
  const uint64_t stride = w.transposed ? 1 : u(w.stride[0]);
  const uint64_t out_per_band = rows <= kernel_rows ? 1 : (rows - kernel_rows) / stride + 1;
  return static_cast<uint32_t>(std::min<uint64_t>(ceil_div(out_rows, out_per_band), UINT32_MAX));
}

uint64_t traffic_bytes(const platform::Platform& platform, DType type, std::span<const int64_t> dims, bool picture) {
  uint64_t count = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool channels = dims.size() == 4 && i == 1 && !picture;
    count = mul({count, channels ? pad(u(dims[i]), u(platform.c2(type))) : u(dims[i])});
  }
  return mul({count, dtype_bytes(type)});
}

void predict(format::Program& program, const platform::Platform& platform, const ir::OpSet& ops) {
  const ir::Graph& graph = program.graph;
  const double clock = static_cast<double>(platform.npu_hz);
  const platform::SpeedModel& speed = platform.speed;
  for (format::Task& task : program.tasks) {
    const ir::Node& n = graph.node(task.node);
    const NodeFacts facts(graph, n, platform);
    const bool npu = task.device == format::Device::Npu;
    const DType type = n.has_input(0) ? graph.tensor(n.inputs[0]).dtype : DType::Undefined;

    bool known = true;
    ConvWork work;
    const bool first_layer = n.has_input(0) && graph.is_input(n.inputs[0]) && facts.input(0) && facts.input(0)->size() == 4 && (*facts.input(0))[1] <= 4;
    std::optional<Window> window;
    if (n.op == "Conv" || n.op == "ConvTranspose") window = window_of(facts);
    if (window) {
      work = conv_work(platform, *window, type, first_layer);
      if (npu) task.tiles = row_bands(platform, *window, type, work.weight_bytes);
    } else if (n.op == "MatMul" || n.op == "Gemm") {
      const auto a = facts.input(0), out = facts.output(0);
      if (a && out && !a->empty() && !out->empty()) {
        const bool transposed = n.op == "Gemm" && n.attributes.int_or("transA", 0) != 0;
        const uint64_t k = u(transposed ? a->front() : a->back()), columns = u(out->back());
        uint64_t rows = 1;
        for (size_t i = 0; i + 1 < out->size(); ++i) rows = mul({rows, u((*out)[i])});
        work = mat_mul_work(platform, 1, rows, k, columns, type);
      }
    } else if (const ir::OpDef* def = ops.find(n.op); def && def->cost) {
      std::vector<ir::Dims> ins, outs;
      for (size_t i = 0; i < n.own_input_count(); ++i) {
        auto d = facts.input(i);
        known &= d.has_value() || !n.has_input(i);
        ins.push_back(d.value_or(ir::Dims{}));
      }
      for (size_t i = 0; i < n.outputs.size(); ++i) {
        auto d = facts.output(i);
        known &= d.has_value() || !n.outputs[i];
        outs.push_back(d.value_or(ir::Dims{}));
      }
      if (known) {
        work.macs = u(def->cost(ir::NodeReader(n, *def), ins, outs).macs);
        const int rate = platform.macs_per_cycle(type);
        work.array_cycles = rate > 0 ? ceil_div(work.macs, u(rate)) : work.macs;
      }
    }
    task.macs = work.macs;

    task.read_bytes = task.write_bytes = 0;
    uint64_t out_elements = 0;
    bool weights_counted = false;
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (!n.inputs[i]) continue;
      const auto dims = facts.dims_of(n.inputs[i]);
      if (!dims) continue;
      const ir::Tensor& tensor = graph.tensor(n.inputs[i]);
      if (window && work.weight_bytes && tensor.is_constant() && i < n.own_input_count()) {
        if (!weights_counted) task.read_bytes = add(task.read_bytes, work.weight_bytes);
        weights_counted = true;
        continue;
      }
      const bool dense = !npu || tensor.is_constant() || (i == 0 && first_layer);
      task.read_bytes = add(task.read_bytes, traffic_bytes(platform, tensor.dtype, *dims, dense));
    }
    for (ir::TensorId t : n.outputs) {
      const auto dims = facts.dims_of(t);
      if (!dims) continue;
      task.write_bytes = add(task.write_bytes, traffic_bytes(platform, graph.tensor(t).dtype, *dims, !npu));
      out_elements = add(out_elements, traffic_bytes(platform, graph.tensor(t).dtype, *dims, !npu) / std::max<uint64_t>(dtype_bytes(graph.tensor(t).dtype), 1));
    }

    double seconds;
    const double bytes = static_cast<double>(task.read_bytes) + static_cast<double>(task.write_bytes);
    if (npu) {
      const bool pointwise = window && window->kernel[0] == 1 && window->kernel[1] == 1;
      const double efficiency = pointwise && speed.efficiency_1x1 > 0 ? speed.efficiency_1x1 : speed.efficiency;
      const double compute = static_cast<double>(work.array_cycles) / (efficiency * clock);
      const bool table = needs_table(n.op) || std::any_of(n.tail.begin(), n.tail.end(), [](const ir::TailStep& s) { return needs_table(s.op); });
      const double look_up = table && speed.lut_elements_per_cycle > 0 ? static_cast<double>(out_elements) / (speed.lut_elements_per_cycle * clock) : 0;
      seconds = std::max({compute, bytes / speed.bytes_per_second, look_up}) + speed.overhead_us * 1e-6;
    } else {
      // About what the logs of the vendor's runtime show for its CPU operators: a fixed cost, a few ns per element.
      seconds = 20e-6 + static_cast<double>(out_elements) * 2e-9 + static_cast<double>(work.macs) * 0.25e-9;
    }
    task.predicted_cycles = static_cast<uint64_t>(std::min(seconds * clock, 1e18) + 0.5);
  }
}

}  // namespace orknn::compile
