#include "silicon/network.h"

#include <cstring>
#include <optional>

#include "ops/eval.h"
#include "silicon/lint.h"
#include "silicon/lower.h"

namespace orknn::silicon {
namespace {
using namespace ir;

size_t index_of(TensorId t) { return static_cast<size_t>(t.index); }

// A tensor while the network runs: plain, as a cube, or both.
struct Value {
  TensorData plain;
  bool cube_is_valid = false;
};
// A tensor's place in device memory; none for tensors that no stream touches.
struct Place {
  std::optional<LoweredTensor> form;
  int64_t bytes = 0;
  int64_t fill = 0;  // of lanes without a channel
  uint32_t address = 0;
  std::vector<std::byte> memory;
};
struct Step {
  LoweredNode lowered;
  std::vector<std::byte> sums;  // of a layer that the CPU finishes
  uint32_t sums_at = 0;
  uint32_t weights = 0, bias = 0;
  std::vector<Stream> streams;
};

bool same_form(const LoweredTensor& a, const LoweredTensor& b) {
  return a.order == b.order && a.cube.height == b.cube.height && a.cube.width == b.cube.width &&
         a.cube.channels == b.cube.channels;
}
}  // namespace

// Of the chips with this convolution buffer and these atoms one is known.
bool knows_registers_of(const platform::Platform& platform) {
  return platform.cbuf_banks == kCbufBanks && platform.c2_int8 == lanes_of(Precision::Int8);
}

struct Network::State {
  const format::Program& program;
  const OpSet& ops;
  AddressSpace space;
  DeviceMemory memory;
  std::vector<Step> steps;
  std::vector<NetworkLayer> layers;
  std::vector<Place> places;  // per tensor
  std::vector<Value> values;  // per tensor
  std::vector<TensorData> results;

  State(const format::Program& p, const OpSet& o)
      : program(p), ops(o), places(p.graph.tensor_count()), values(p.graph.tensor_count()) {}

  const Node& node(size_t step) const { return program.graph.node(program.tasks[step].node); }

  Status build() {
    for (size_t i = 0; i < program.tasks.size(); ++i) {
      Step step;
      step.lowered = lower(program, node(i), ops);
      if (step.lowered.has_streams()) claim(step.lowered);
      steps.push_back(std::move(step));
    }
    ORKNN_TRY(place());
    for (size_t i = 0; i < steps.size(); ++i) ORKNN_TRY(emit(i));
    return {};
  }

  // Reserves the memory of a layer's tensors. A tensor has one form; a layer that wants another is left to the CPU.
  void claim(LoweredNode& l) {
    const auto* conv = std::get_if<ConvLayer>(&l.layer);
    for (const LoweredTensor* t : {&l.input, &l.output, &l.operand}) {
      if (!t->tensor) continue;
      const Place& p = places[index_of(t->tensor)];
      const bool in_place = !(l.host && t == &l.output);
      if (in_place && p.form && !same_form(*p.form, *t)) {
        l.reason = "tensor '" + program.graph.tensor(t->tensor).name + "' has another layout in memory";
        return;
      }
    }
    const auto reserve = [&](const LoweredTensor& t, int64_t bytes, int64_t fill) {
      Place& p = places[index_of(t.tensor)];
      p.form = t;
      p.bytes = std::max(p.bytes, bytes);
      p.fill = fill;
    };
    reserve(l.input, conv ? conv->input_bytes() : l.input.cube.bytes(), conv ? conv->in_zero_point : 0);
    if (!l.host) reserve(l.output, conv ? conv->output_bytes() : l.output.cube.bytes(), 0);
    if (l.operand.tensor) reserve(l.operand, l.operand.cube.bytes(), 0);
  }

  Status place() {
    for (size_t i = 0; i < places.size(); ++i) {
      Place& p = places[i];
      if (!p.form) continue;
      p.memory.resize(static_cast<size_t>(p.bytes));
      ORKNN_TRY_ASSIGN(p.address, space.allocate(p.memory.size()));
      ORKNN_TRY(memory.map(program.graph.tensor(TensorId{static_cast<int32_t>(i)}).name, p.address, p.memory));
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      Step& s = steps[i];
      if (s.lowered.operands.weights.empty() || !s.lowered.has_streams()) continue;
      ORKNN_TRY(map_bytes("weights of " + node(i).name, s.weights, s.lowered.operands.weights));
      if (!s.lowered.operands.bias.empty()) ORKNN_TRY(map_bytes("bias of " + node(i).name, s.bias, s.lowered.operands.bias));
      if (!s.lowered.host) continue;
      s.sums.resize(static_cast<size_t>(std::get<ConvLayer>(s.lowered.layer).output_bytes()));
      ORKNN_TRY(map_bytes("sums of " + node(i).name, s.sums_at, s.sums));
    }
    return {};
  }

  Status map_bytes(std::string name, uint32_t& address, std::span<std::byte> bytes) {
    ORKNN_TRY_ASSIGN(address, space.allocate(bytes.size()));
    return memory.map(std::move(name), address, bytes);
  }

  uint32_t address_of(const LoweredTensor& t) const { return t.tensor ? places[index_of(t.tensor)].address : 0; }

  Status emit(size_t index) {
    Step& s = steps[index];
    NetworkLayer layer{.macs = program.tasks[index].macs, .reason = s.lowered.reason};
    if (s.lowered.has_streams()) {
      const uint32_t in = address_of(s.lowered.input), out = s.lowered.host ? s.sums_at : address_of(s.lowered.output);
      if (const auto* conv = std::get_if<ConvLayer>(&s.lowered.layer)) {
        ORKNN_TRY_ASSIGN(s.streams, conv_streams(*conv, {in, s.weights, s.bias, out, address_of(s.lowered.operand)}));
      } else {
        ORKNN_TRY_ASSIGN(Stream stream, pool_stream(std::get<PoolLayer>(s.lowered.layer), in, out));
        s.streams.push_back(std::move(stream));
      }
      layer.tasks = s.streams.size();
      if (s.lowered.host) layer.reason = "the CPU converts its sums with a function table";
      for (const Stream& stream : s.streams) layer.words += stream.size();
      layer.packed_bytes = s.lowered.operands.weights.size() + s.lowered.operands.bias.size();
    }
    layers.push_back(std::move(layer));
    return {};
  }

  // The tensor as a dense array.
  const TensorData& plain(TensorId t) {
    if (const TensorData* constant = program.graph.constant(t)) return *constant;
    Value& v = values[index_of(t)];
    if (!v.plain.has_value()) {
      const Place& p = places[index_of(t)];
      TensorData dense = TensorData::allocate(program.graph.tensor(t).dtype, *to_dims(*program.graph.tensor(t).shape));
      unpack_cube(p.form->cube, p.form->order, p.memory, dense.mutable_data());
      v.plain = std::move(dense);
    }
    return v.plain;
  }
  // The tensor in device memory.
  void load_cube(const LoweredTensor& t) {
    Value& v = values[index_of(t.tensor)];
    if (v.cube_is_valid) return;
    Place& p = places[index_of(t.tensor)];
    std::memset(p.memory.data(), static_cast<int>(p.fill), p.memory.size());
    pack_cube(p.form->cube, p.form->order, plain(t.tensor).data(), p.memory, p.fill);
    v.cube_is_valid = true;
  }

  Status run_streams_of(Step& s, ThreadPool& pool) {
    load_cube(s.lowered.input);
    if (s.lowered.operand.tensor) load_cube(s.lowered.operand);
    ORKNN_TRY(run_streams(s.streams, memory, pool));
    if (s.lowered.host)
      finish_on_cpu(s, pool);
    else
      values[index_of(s.lowered.output.tensor)] = {{}, true};
    return {};
  }
  // Sums in device memory become the layer's results.
  void finish_on_cpu(const Step& s, ThreadPool& pool) {
    const LoweredNode& l = s.lowered;
    const Cube& cube = l.output.cube;
    const Tensor& tensor = program.graph.tensor(l.output.tensor);
    std::vector<int32_t> sums(static_cast<size_t>(cube.height * cube.width * cube.channels));
    unpack_cube(cube, l.output.order, s.sums, sums.data());
    TensorData dense = TensorData::allocate(tensor.dtype, *to_dims(*tensor.shape));
    auto* bytes = static_cast<uint8_t*>(dense.mutable_data());
    const int64_t pixels = cube.height * cube.width, count = pixels * cube.channels;
    const bool channels_last = l.output.order == TensorOrder::Hwc;
    pool.parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = channels_last ? i % cube.channels : i / pixels;
        const int64_t v = int64_t{sums[static_cast<size_t>(i)]} + l.host->bias[static_cast<size_t>(channel)];
        bytes[i] = static_cast<uint8_t>(l.host->stage.finish(l.host->stage.scaled(v, channel)));
      }
    });
    values[index_of(l.output.tensor)] = {std::move(dense), false};
  }
  Status run_on_cpu(const Node& n, ThreadPool& pool) {
    std::vector<TensorData> inputs;
    for (const TensorId t : n.inputs) inputs.push_back(t ? plain(t) : TensorData());
    ORKNN_TRY_ASSIGN(std::vector<TensorData> outputs, ops::eval_node(n, ops, inputs, pool));
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) values[index_of(n.outputs[i])] = {std::move(outputs[i]), false};
    return {};
  }
};

Network::Network() = default;
Network::~Network() = default;

Result<std::unique_ptr<Network>> Network::create(const format::Program& program, const OpSet& ops) {
  std::unique_ptr<Network> network(new Network());
  network->state_ = std::make_unique<State>(program, ops);
  ORKNN_TRY(network->state_->build());
  return network;
}

std::span<const NetworkLayer> Network::layers() const { return state_->layers; }

NetworkSummary Network::summary() const {
  NetworkSummary s;
  for (const NetworkLayer& l : state_->layers) {
    s.macs += l.macs;
    s.stream_macs += l.tasks ? l.macs : 0;
    s.tasks += l.tasks;
    s.stream_bytes += l.words * 8;
    s.packed_bytes += l.packed_bytes;
  }
  return s;
}

Status Network::run(std::span<const TensorView> inputs, ThreadPool& pool, const Observe& observe) {
  State& s = *state_;
  s.results.clear();
  s.values.assign(s.values.size(), {});
  if (inputs.size() != s.program.inputs.size()) return invalid_argument("wrong number of inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorId t = s.program.inputs[i].tensor;
    s.values[index_of(t)].plain = convert(inputs[i], inputs[i].dtype);
    if (observe) observe(t, inputs[i]);
  }
  for (size_t i = 0; i < s.steps.size(); ++i) {
    const Node& n = s.node(i);
    Status status = s.steps[i].lowered.has_streams() ? s.run_streams_of(s.steps[i], pool) : s.run_on_cpu(n, pool);
    if (!status) return status.node(n.name, n.op);
    if (observe)
      for (const TensorId t : n.outputs)
        if (t) observe(t, s.plain(t).view());
  }
  for (const format::Port& port : s.program.outputs) s.results.push_back(s.plain(port.tensor));
  return {};
}

TensorView Network::output(size_t i) const { return i < state_->results.size() ? state_->results[i].view() : TensorView{}; }

}  // namespace orknn::silicon
