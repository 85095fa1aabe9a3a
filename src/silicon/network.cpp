#include "silicon/network.h"

#include <array>
#include <cstring>

#include "ir/index_of.h"
#include "ops/eval.h"
#include "silicon/chip_model.h"
#include "silicon/lint.h"
#include "silicon/lower.h"

namespace orknn::silicon {
namespace {
using namespace ir;

// Streams begin at multiples of this.
constexpr uint64_t kStreamAlignment = 64;

// Stands in the first atom that the last task of a job writes: a job that did not run leaves it there. No two lanes are equal, so
// that no layer with channels to fill up makes it.
constexpr std::array<uint8_t, kAtomBytes> kNotWritten{0xd3, 0x5a, 0x91, 0x2c, 0xee, 0x07, 0x68, 0xb4,
                                                      0x3f, 0xc9, 0x12, 0x85, 0x7d, 0xa6, 0x40, 0xfb};

uint32_t destination_of(const DecodedTask& task) {
  return task.registers.get(task.enable == kEnablePooling ? reg::PPU_DST_BASE_ADDR : reg::DPU_DST_BASE_ADDR);
}
}  // namespace

// Of the chips with this convolution buffer and these atoms one is known.
bool knows_registers_of(const platform::Platform& platform) {
  return platform.cbuf_banks == kCbufBanks && platform.c2_int8 == lanes_of(Precision::Int8);
}

std::vector<NetworkLayer> layers_of(const Image& image, const format::Program& program) {
  std::vector<NetworkLayer> layers;
  for (size_t i = 0; i < image.steps.size(); ++i) {
    const ImageStep& s = image.steps[i];
    NetworkLayer layer{.tasks = s.tasks, .packed_bytes = s.packed_bytes(), .macs = program.tasks[i].macs, .reason = s.reason};
    for (uint32_t t = 0; t < s.tasks; ++t) layer.words += image.tasks[s.first_task + t].words;
    layers.push_back(std::move(layer));
  }
  return layers;
}

NetworkSummary summary_of(std::span<const NetworkLayer> layers) {
  NetworkSummary s;
  for (const NetworkLayer& l : layers) {
    s.macs += l.macs;
    s.stream_macs += l.tasks ? l.macs : 0;
    s.tasks += l.tasks;
    s.stream_bytes += l.words * 8;
    s.packed_bytes += l.packed_bytes;
  }
  return s;
}

struct Network::State {
  // A tensor while the network runs: plain, as a cube, or both.
  struct Value {
    TensorData plain;
    bool cube_is_valid = false;
  };
  struct Task {
    UnitTask unit;
    size_t step = 0;
    uint64_t destination = 0;  // offset into the features
  };

  const format::Program& program;
  const OpSet& ops;
  Image image;
  std::unique_ptr<Unit> unit;
  UnitBuffer features, operands, commands;
  std::vector<Task> tasks;
  std::vector<NetworkLayer> layers;
  std::vector<const PlacedCube*> cubes;                      // per tensor; nullptr where no stream touches it
  std::vector<bool> on_unit;                                 // per step: by streams or by its place
  std::vector<std::optional<ops::OutputStage>> host_stages;  // per step
  std::vector<Value> values;                                 // per tensor
  std::vector<size_t> pending;                               // positions in tasks, not yet submitted
  UnitRun options;                                           // of the current run
  std::vector<TensorData> results;

  State(const format::Program& p, const OpSet& o, Image i, std::unique_ptr<Unit> u)
      : program(p),
        ops(o),
        image(std::move(i)),
        unit(std::move(u)),
        cubes(p.graph.tensor_count()),
        host_stages(p.tasks.size()),
        values(p.graph.tensor_count()) {}

  const Node& node(size_t step) const { return program.graph.node(program.tasks[step].node); }

  // --- preparation
  // --------------------------------------------------------------------------------------------------------------

  Status prepare() {
    for (const PlacedCube& c : image.cubes)
      if (c.tensor) cubes[index_of(c.tensor)] = &c;
    layers = layers_of(image, program);
    on_unit.assign(image.steps.size(), false);
    for (size_t i = 0; i < image.steps.size(); ++i) ORKNN_TRY(prepare_step(i));
    ORKNN_TRY_ASSIGN(features, unit->allocate(BufferUse::Features, std::max<uint64_t>(image.feature_bytes, 1)));
    ORKNN_TRY_ASSIGN(operands, unit->allocate(BufferUse::Operands, std::max<uint64_t>(image.operand_bytes, 1)));
    fill_operands(image, program, operands.bytes, ThreadPool::shared());
    std::memset(features.bytes.data(), 0, features.bytes.size());
    ORKNN_TRY(place_streams());
    ORKNN_TRY(unit->give(BufferUse::Operands));
    return unit->give(BufferUse::Commands);
  }

  Status prepare_step(size_t i) {
    const ImageStep& s = image.steps[i];
    on_unit[i] = s.kind != ImageStep::Kind::Cpu;
    for (uint32_t t = 0; t < s.tasks; ++t)
      if (image.tasks[s.first_task + t].enable == kEnablePooling && !unit->waits_for_pooling()) {
        on_unit[i] = false;
        layers[i] = {.macs = layers[i].macs, .reason = "this driver never reports the end of pooling tasks"};
      }
    if (s.kind == ImageStep::Kind::Sums && image.cubes[static_cast<size_t>(s.output)].cube.precision == Precision::Int32) {
      ORKNN_TRY_ASSIGN(host_stages[i], host_stage(program, node(i), ops));
    }
    return {};
  }

  // Streams into their buffer, each checked on the way.
  Status place_streams() {
    uint64_t bytes = 0;
    for (const ImageTask& t : image.tasks) bytes += round_up(int64_t{t.words} * 8, kStreamAlignment);
    ORKNN_TRY_ASSIGN(commands, unit->allocate(BufferUse::Commands, std::max<uint64_t>(bytes, 1)));
    const bool keeps = unit->keeps_buffer_between_tasks();
    const std::vector<uint64_t> words = relocate(image, features.address, operands.address, keeps);
    ORKNN_TRY_ASSIGN(const DeviceMemory memory, map_image(image, features, operands));
    tasks.resize(image.tasks.size());
    uint64_t at = 0;
    for (size_t i = 0; i < image.steps.size(); ++i) {
      const ImageStep& s = image.steps[i];
      std::optional<DecodedTask> before;
      for (uint32_t t = s.first_task; t < s.first_task + s.tasks; ++t) {
        const ImageTask& task = image.tasks[t];
        const std::span<const uint64_t> stream = std::span(words).subspan(task.first_word, task.words);
        auto decoded = check_task(stream, before ? &*before : nullptr, memory);
        if (!decoded) return Status(decoded.status()).node(node(i).name, node(i).op);
        if (decoded->enable != task.enable) return invalid_model("a task starts other blocks than the file says");
        std::memcpy(commands.bytes.data() + at, stream.data(), stream.size_bytes());
        tasks[t] = {{static_cast<uint32_t>(commands.address + at), task.words, task.enable, static_cast<uint32_t>(i)},
                    i,
                    destination_of(*decoded) - uint64_t{features.address}};
        at += static_cast<uint64_t>(round_up(int64_t{task.words} * 8, kStreamAlignment));
        before = std::move(*decoded);
      }
    }
    return {};
  }

  // --- jobs
  // -----------------------------------------------------------------------------------------------------------------------

  // Runs what is pending. The features belong to the CPU before and afterwards.
  Status submit() {
    if (pending.empty()) return {};
    std::vector<UnitTask> batch;
    for (const size_t t : pending) batch.push_back(tasks[t].unit);
    const Task first = tasks[pending.front()], last = tasks[pending.back()];
    pending.clear();
    std::byte* mark = features.bytes.data() + last.destination;
    std::memcpy(mark, kNotWritten.data(), kNotWritten.size());
    Status s = unit->give(BufferUse::Features);
    if (s) s = unit->run(batch, options);
    if (s) s = unit->take(BufferUse::Features);
    if (s && std::memcmp(mark, kNotWritten.data(), kNotWritten.size()) == 0)
      s = Status::error(Code::Fail, "the NPU reports the end of a job that it did not run")
              .found("the results of " + std::to_string(batch.size()) + " tasks are missing")
              .hint("look for messages of the NPU's driver in the kernel log");
    if (s) return {};
    const Node& at = node(batch.size() == 1 ? last.step : first.step);
    return s.node(at.name, at.op);
  }

  // --- values
  // ---------------------------------------------------------------------------------------------------------------------

  std::span<std::byte> memory_of(const PlacedCube& c) const { return features.bytes.subspan(c.offset, c.bytes); }

  // The tensor as a dense array.
  Result<const TensorData*> plain(TensorId t) {
    if (const TensorData* constant = program.graph.constant(t)) return constant;
    Value& v = values[index_of(t)];
    if (!v.plain.has_value()) {
      const PlacedCube* c = cubes[index_of(t)];
      if (!c || !v.cube_is_valid) return invalid_model("tensor '" + program.graph.tensor(t).name + "' has no value");
      ORKNN_TRY(submit());
      TensorData dense = TensorData::allocate(program.graph.tensor(t).dtype, *to_dims(*program.graph.tensor(t).shape));
      unpack_cube(c->cube, c->order, memory_of(*c), dense.mutable_data(), c->rows);
      v.plain = std::move(dense);
    }
    return &v.plain;
  }
  // The tensor in device memory.
  Status load_cube(const PlacedCube& c) {
    Value& v = values[index_of(c.tensor)];
    if (v.cube_is_valid) return {};
    ORKNN_TRY_ASSIGN(const TensorData* dense, plain(c.tensor));
    ORKNN_TRY(submit());
    const std::span<std::byte> memory = memory_of(c);
    std::memset(memory.data(), c.fill, memory.size());
    pack_cube(c.cube, c.order, dense->data(), memory, c.fill, c.rows);
    v.cube_is_valid = true;
    return {};
  }

  // --- steps
  // ----------------------------------------------------------------------------------------------------------------------

  Status run_on_unit(size_t i, ThreadPool& pool) {
    const ImageStep& s = image.steps[i];
    for (const int32_t input : s.inputs) ORKNN_TRY(load_cube(image.cubes[static_cast<size_t>(input)]));
    for (uint32_t t = 0; t < s.tasks; ++t) pending.push_back(s.first_task + t);
    if (s.kind == ImageStep::Kind::Sums) return finish_on_cpu(i, pool);
    for (const TensorId t : node(i).outputs)
      if (t && cubes[index_of(t)]) values[index_of(t)] = {{}, true};
    return {};
  }
  // Sums in device memory become the layer's results.
  Status finish_on_cpu(size_t i, ThreadPool& pool) {
    const ImageStep& s = image.steps[i];
    const PlacedCube& c = image.cubes[static_cast<size_t>(s.output)];
    ORKNN_TRY(submit());
    if (c.cube.precision == Precision::Float) return apply_tail(node(i), c, pool);
    const ops::OutputStage& stage = *host_stages[i];
    const int64_t count = c.elements(), pixels = count / c.cube.channels;
    std::vector<int32_t> sums(static_cast<size_t>(count)), bias(static_cast<size_t>(c.cube.channels));
    unpack_cube(c.cube, c.order, memory_of(c), sums.data(), c.rows);
    std::memcpy(bias.data(), image.operands.data() + s.host_bias.offset, s.host_bias.bytes);
    const Tensor& tensor = program.graph.tensor(node(i).output());
    TensorData dense = TensorData::allocate(tensor.dtype, *to_dims(*tensor.shape));
    auto* bytes = static_cast<uint8_t*>(dense.mutable_data());
    const bool channels_last = c.order == TensorOrder::Hwc;
    pool.parallel_for(count, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t k = begin; k < end; ++k) {
        const int64_t channel = channels_last ? k % c.cube.channels : k / pixels;
        const int64_t v = int64_t{sums[static_cast<size_t>(k)]} + bias[static_cast<size_t>(channel)];
        bytes[k] = static_cast<uint8_t>(stage.finish(stage.scaled(v, channel)));
      }
    });
    values[index_of(node(i).output())] = {std::move(dense), false};
    return {};
  }
  // float32 results in device memory get what is fused with the layer and are rounded once.
  Status apply_tail(const Node& n, const PlacedCube& c, ThreadPool& pool) {
    const Tensor& tensor = program.graph.tensor(n.output());
    Node tail;
    tail.op = "Identity";
    tail.name = n.name;
    tail.inputs = {n.output()};
    tail.outputs = n.outputs;
    tail.tail = n.tail;
    const auto own = static_cast<int32_t>(n.own_input_count());
    for (TailStep& step : tail.tail)
      if (step.operand >= 0) step.operand += 1 - own;
    std::vector<TensorData> inputs{TensorData::allocate(DType::Float32, *to_dims(*tensor.shape))};
    unpack_cube(c.cube, c.order, memory_of(c), inputs[0].mutable_data(), c.rows);
    for (size_t k = static_cast<size_t>(own); k < n.inputs.size(); ++k) {
      ORKNN_TRY_ASSIGN(const TensorData* operand, plain(n.inputs[k]));
      tail.inputs.push_back(n.inputs[k]);
      inputs.push_back(*operand);
    }
    ORKNN_TRY_ASSIGN(const std::vector<TensorData> results, ops::eval_node(tail, ops, inputs, pool));
    values[index_of(n.output())] = {convert(results[0].view(), tensor.dtype), false};
    return {};
  }
  Status run_on_cpu(const Node& n, ThreadPool& pool) {
    std::vector<TensorData> inputs;
    for (const TensorId t : n.inputs) {
      inputs.emplace_back();
      if (!t) continue;
      ORKNN_TRY_ASSIGN(const TensorData* value, plain(t));
      inputs.back() = *value;
    }
    ORKNN_TRY_ASSIGN(std::vector<TensorData> outputs, ops::eval_node(n, ops, inputs, pool));
    for (size_t i = 0; i < n.outputs.size(); ++i)
      if (n.outputs[i]) values[index_of(n.outputs[i])] = {std::move(outputs[i]), false};
    return {};
  }

  Status run_step(size_t i, const Hooks& hooks) {
    const auto begin = std::chrono::steady_clock::now();
    if (options.deadline && begin > *options.deadline) return Status::error(Code::Fail, "the run took too long");
    ThreadPool& pool = options.pool ? *options.pool : ThreadPool::shared();
    ORKNN_TRY(on_unit[i] ? run_on_unit(i, pool) : run_on_cpu(node(i), pool));
    if (hooks.timing) {
      ORKNN_TRY(submit());
      hooks.timing(i, std::chrono::steady_clock::now() - begin);
    }
    if (!hooks.observe && !hooks.amend) return {};
    for (const TensorId t : node(i).outputs) {
      if (!t) continue;
      ORKNN_TRY_ASSIGN(const TensorData* value, plain(t));
      if (hooks.observe) hooks.observe(t, value->view());
      if (hooks.amend) amend(t, hooks);
    }
    return {};
  }
  // Where the plain tensor changes, the cube has to be made anew.
  void amend(TensorId t, const Hooks& hooks) {
    Value& v = values[index_of(t)];
    const TensorData before = convert(v.plain.view(), v.plain.dtype());
    hooks.amend(t, {v.plain.dtype(), v.plain.dims(), v.plain.mutable_data()});
    if (v.plain.bytes() > 0 && std::memcmp(before.data(), v.plain.data(), v.plain.bytes()) != 0) v.cube_is_valid = false;
  }
};

Network::Network() = default;
Network::~Network() = default;

Result<std::unique_ptr<Network>> Network::create(const format::Program& program, const OpSet& ops, Image image,
                                                 std::unique_ptr<Unit> unit) {
  std::unique_ptr<Network> network(new Network());
  network->state_ = std::make_unique<State>(program, ops, std::move(image), std::move(unit));
  ORKNN_TRY(network->state_->prepare());
  return network;
}

std::span<const NetworkLayer> Network::layers() const { return state_->layers; }
const Unit& Network::unit() const { return *state_->unit; }

Status Network::run(std::span<const TensorView> inputs, const UnitRun& options, const Hooks& hooks) {
  State& s = *state_;
  s.results.clear();
  s.pending.clear();
  s.options = options;
  s.values.assign(s.values.size(), {});
  if (inputs.size() != s.program.inputs.size()) return invalid_argument("wrong number of inputs");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorId t = s.program.inputs[i].tensor;
    s.values[index_of(t)].plain = convert(inputs[i], inputs[i].dtype);
    if (hooks.observe) hooks.observe(t, inputs[i]);
  }
  for (size_t i = 0; i < s.program.tasks.size(); ++i)
    if (Status status = s.run_step(i, hooks); !status) return status.node(s.node(i).name, s.node(i).op);
  for (const format::Port& port : s.program.outputs) {
    ORKNN_TRY_ASSIGN(const TensorData* value, s.plain(port.tensor));
    s.results.push_back(*value);
  }
  return {};
}

TensorView Network::output(size_t i) const { return i < state_->results.size() ? state_->results[i].view() : TensorView{}; }

}  // namespace orknn::silicon
