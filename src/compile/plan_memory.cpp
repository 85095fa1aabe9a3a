#include "compile/plan_memory.h"

#include <algorithm>

#include "ir/packed.h"

namespace orknn::compile {
namespace {
using format::Buffer;
// No arena is larger: sums of offsets stay far from overflow.
constexpr uint64_t kMaxBytes = uint64_t{1} << 48;
// The chips reach 4 GiB; the simulator may run more, but nothing that no machine holds.
constexpr uint64_t kMaxPlannedBytes = uint64_t{1} << 36;

std::optional<uint64_t> product(std::initializer_list<uint64_t> factors) {
  uint64_t result = 1;
  for (uint64_t f : factors) {
    if (f == 0) return 0;
    if (result > kMaxBytes / f) return {};
    result *= f;
  }
  return result;
}

uint64_t padded(int64_t value, int multiple) {
  const uint64_t m = static_cast<uint64_t>(std::max(multiple, 1));
  return (static_cast<uint64_t>(value) + m - 1) / m * m;
}

Producer producer_of(const format::Task& task) {
  if (task.device != format::Device::Npu) return Producer::Cpu;
  if (task.engine == ir::Engine::Depthwise) return Producer::Depthwise;
  return task.engine == ir::Engine::Conv ? Producer::Conv : Producer::Other;
}
}  // namespace

std::optional<uint64_t> native_bytes(const platform::Platform& platform, DType dtype, std::span<const int64_t> dims,
                                     Producer producer) {
  for (int64_t d : dims)
    if (d < 0 || static_cast<uint64_t>(d) > kMaxBytes) return {};
  const uint64_t element = dtype_bytes(dtype);
  if (dims.size() != 4 || producer == Producer::Cpu) {
    uint64_t bytes = element;
    for (int64_t d : dims) {
      const auto next = product({bytes, static_cast<uint64_t>(d)});
      if (!next || *next == 0) return next;
      bytes = *next;
    }
    return bytes;
  }
  const platform::ChannelAlignment& align = platform.alignment(dtype);
  const int multiple = producer == Producer::Conv        ? align.conv_out
                       : producer == Producer::Depthwise ? align.depthwise
                                                         : align.other;
  const auto area = product({static_cast<uint64_t>(dims[2]), static_cast<uint64_t>(dims[3])});
  if (!area) return {};
  const uint64_t padded_area = *area > 1 ? (*area + 3) / 4 * 4 : *area;
  return product({static_cast<uint64_t>(dims[0]), padded(dims[1], multiple), padded_area, element});
}

Status plan_memory(format::Program& program, const platform::Platform& platform, const MemoryPlanner& planner) {
  const ir::Graph& graph = program.graph;
  const size_t count = graph.tensor_count();
  program.buffers.assign(count, {});
  std::vector<int64_t> last(count, -1);
  for (size_t step = 0; step < program.tasks.size(); ++step)
    for (ir::TensorId t : graph.node(program.tasks[step].node).inputs)
      if (t) last[static_cast<size_t>(t.index)] = static_cast<int64_t>(step);

  std::vector<BufferRequest> requests;
  std::vector<size_t> owners;
  const auto bytes_of = [&](ir::TensorId t, Producer producer, Buffer& buffer) -> Result<bool> {
    const ir::Tensor& tensor = graph.tensor(t);
    const auto dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
    if (!dims || tensor.dtype == DType::Undefined) return false;
    const auto bytes = native_bytes(platform, tensor.dtype, *dims, producer);
    if (!bytes || *bytes > kMaxPlannedBytes)
      return Status::error(Code::OutOfMemory, "tensor '" + tensor.name + "' of shape " + ir::to_string(*dims) + " is too large")
          .stage("plan_memory");
    buffer.bytes = *bytes;
    return true;
  };

  for (size_t i = 0; i < count; ++i) {
    const ir::Tensor& tensor = graph.tensor({static_cast<int32_t>(i)});
    if (!tensor.is_constant()) continue;
    program.buffers[i] = {Buffer::Place::Weights, 0, ir::stored_bytes(tensor.constant)};
  }
  for (ir::TensorId t : graph.inputs()) {
    Buffer& buffer = program.buffers[static_cast<size_t>(t.index)];
    if (buffer.place != Buffer::Place::None) continue;
    buffer.place = Buffer::Place::External;
    ORKNN_TRY_ASSIGN([[maybe_unused]] const bool known, bytes_of(t, Producer::Cpu, buffer));
  }
  uint64_t sum = 0;
  for (size_t step = 0; step < program.tasks.size(); ++step) {
    const format::Task& task = program.tasks[step];
    for (ir::TensorId t : graph.node(task.node).outputs) {
      if (!t) continue;
      const size_t i = static_cast<size_t>(t.index);
      Buffer& buffer = program.buffers[i];
      const bool external = graph.is_output(t);
      ORKNN_TRY_ASSIGN(const bool known, bytes_of(t, external ? Producer::Cpu : producer_of(task), buffer));
      if (external) buffer.place = Buffer::Place::External;
      if (external || !known) continue;
      sum += buffer.bytes;
      if (sum > kMaxBytes)
        return Status::error(Code::OutOfMemory, "the intermediate results of this model do not fit in memory")
            .stage("plan_memory");
      buffer.place = Buffer::Place::Arena;
      requests.push_back({buffer.bytes, static_cast<int64_t>(step), std::max(last[i], static_cast<int64_t>(step))});
      owners.push_back(i);
    }
  }
  const MemoryPlan plan = planner.plan(requests);
  for (size_t i = 0; i < owners.size(); ++i) program.buffers[owners[i]].offset = plan.offsets[i];
  program.arena_bytes = plan.total_bytes;
  if (plan.total_bytes > kMaxPlannedBytes)
    return Status::error(Code::OutOfMemory, "the intermediate results of this model do not fit in memory")
        .stage("plan_memory")
        .found(std::to_string(plan.total_bytes) + " bytes");
  return {};
}

}  // namespace orknn::compile
