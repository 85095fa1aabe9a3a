#include "format/verify.h"

#include <map>
#include <set>

#include "format/bytes.h"
#include "ir/index_of.h"
#include "ir/verify.h"

namespace orknn::format {
namespace {
using namespace ir;

Status verify_task(const Task& task, const Graph& graph) {
  if (!graph.is_alive(task.node)) return invalid_model("a task names no node");
  if (task.device > Device::Gpu || task.engine > Engine::Recurrent || task.tiling.resident > Tiling::Resident::Weights ||
      task.sparsity > Sparsity::Both)
    return invalid_model("a task is of no known kind").node(graph.node(task.node).name, graph.node(task.node).op);
  return {};
}

Status verify_ports(const std::vector<Port>& ports, const Graph& graph, const std::string& kind) {
  for (const Port& port : ports) {
    if (!port.tensor || index_of(port.tensor) >= graph.tensor_count())
      return invalid_model("an " + kind + " port names no tensor");
    if (dtype_bytes(port.dtype) == 0 || port.layout > Layout::NCHW)
      return invalid_model("the port of " + kind + " '" + graph.tensor(port.tensor).name + "' has an unknown type or layout");
  }
  return {};
}

// Tasks in their order: each node once, every value computed, once, before it is read.
Status verify_order(const Program& program) {
  const Graph& g = program.graph;
  std::vector<char> known(g.tensor_count(), 0);
  for (size_t i = 0; i < known.size(); ++i) known[i] = g.is_constant(TensorId{static_cast<int32_t>(i)});
  for (const Port& port : program.inputs) {
    const Tensor& tensor = g.tensor(port.tensor);
    if (known[index_of(port.tensor)]) return invalid_model("input '" + tensor.name + "' is a constant or given twice");
    if (tensor.dtype == DType::Undefined) return invalid_model("input '" + tensor.name + "' has no type");
    known[index_of(port.tensor)] = 1;
  }
  std::set<NodeId> done;
  for (const Task& task : program.tasks) {
    const Node& n = g.node(task.node);
    if (!done.insert(task.node).second) return invalid_model("two tasks run the same node").node(n.name, n.op);
    for (TensorId t : n.inputs)
      if (t && !known[index_of(t)])
        return invalid_model("tensor '" + g.tensor(t).name + "' is read before it is computed").node(n.name, n.op);
    for (TensorId t : n.outputs) {
      if (!t) continue;
      if (known[index_of(t)]) return invalid_model("tensor '" + g.tensor(t).name + "' is computed twice").node(n.name, n.op);
      if (g.tensor(t).dtype == DType::Undefined)
        return invalid_model("tensor '" + g.tensor(t).name + "' has no type").node(n.name, n.op);
      known[index_of(t)] = 1;
    }
  }
  for (const Port& port : program.outputs)
    if (!known[index_of(port.tensor)]) return invalid_model("output '" + g.tensor(port.tensor).name + "' is never computed");
  return {};
}

// Memory of the arena that is in use. A value may take exactly the place of one that dies at the same task.
class LiveRanges {
 public:
  // False when some of the bytes are in use already.
  bool claim(uint64_t offset, uint64_t bytes) {
    if (bytes == 0) return true;
    const auto next = live_.lower_bound(offset);
    const bool hits_next = next != live_.end() && next->first < offset + bytes;
    const bool hits_previous = next != live_.begin() && std::prev(next)->second > offset;
    if (hits_next || hits_previous) return false;
    live_[offset] = offset + bytes;
    return true;
  }
  void release(uint64_t offset, uint64_t bytes) {
    if (bytes) live_.erase(offset);
  }

 private:
  std::map<uint64_t, uint64_t> live_;  // begin -> end
};

// Whether the buffer of a computed value is inside the arena and holds it.
Status verify_extent(const Program& program, TensorId t) {
  const Buffer& b = program.buffers[index_of(t)];
  const Tensor& tensor = program.graph.tensor(t);
  const std::optional<Dims> dims = tensor.shape ? to_dims(*tensor.shape) : std::nullopt;
  if (!dims) return invalid_model("tensor '" + tensor.name + "' has planned memory but no known size");
  const uint64_t dense = static_cast<uint64_t>(element_count(*dims)) * dtype_bytes(tensor.dtype);
  if (b.offset % kFileAlignment != 0 || b.bytes < dense || b.offset > program.arena_bytes ||
      b.bytes > program.arena_bytes - b.offset)
    return invalid_model("the memory of tensor '" + tensor.name + "' is not inside the arena")
        .expected("at least " + std::to_string(dense) + " bytes at a multiple of " + std::to_string(kFileAlignment) + " inside " +
                  std::to_string(program.arena_bytes))
        .found(std::to_string(b.bytes) + " bytes at " + std::to_string(b.offset));
  return {};
}

// The memory plan against the life of each value.
Status verify_memory(const Program& program) {
  const Graph& g = program.graph;
  std::vector<uint32_t> readers(g.tensor_count(), 0);
  for (const Task& task : program.tasks)
    for (TensorId t : g.node(task.node).inputs)
      if (t) ++readers[index_of(t)];
  for (const Port& port : program.outputs) ++readers[index_of(port.tensor)];
  const auto in_arena = [&](TensorId t) {
    return t && program.buffers[index_of(t)].place == Buffer::Place::Arena && g.producer(t);
  };
  LiveRanges live;
  const auto release = [&](TensorId t) {
    if (in_arena(t)) live.release(program.buffers[index_of(t)].offset, program.buffers[index_of(t)].bytes);
  };
  for (const Task& task : program.tasks) {
    const Node& n = g.node(task.node);
    for (TensorId t : n.inputs)
      if (t && --readers[index_of(t)] == 0) release(t);
    for (TensorId t : n.outputs) {
      if (!in_arena(t)) continue;
      ORKNN_TRY(verify_extent(program, t));
      if (!live.claim(program.buffers[index_of(t)].offset, program.buffers[index_of(t)].bytes))
        return invalid_model("the memory plan gives tensor '" + g.tensor(t).name + "' memory that is in use");
    }
    for (TensorId t : n.outputs)
      if (t && readers[index_of(t)] == 0) release(t);
  }
  return {};
}
}  // namespace

Status verify(const Program& program) {
  const Graph& g = program.graph;
  ORKNN_TRY(verify_structure(g));
  for (size_t i = 0; i < g.tensor_count(); ++i) {
    const Tensor& t = g.tensor(TensorId{static_cast<int32_t>(i)});
    const std::optional<Dims> dims = t.shape ? to_dims(*t.shape) : std::nullopt;
    if (dims && !checked_element_count(*dims)) return invalid_model("tensor '" + t.name + "' has an impossible shape");
  }
  if (program.tasks.size() != g.node_count()) return invalid_model("the number of tasks differs from that of nodes");
  if (program.buffers.size() != g.tensor_count()) return invalid_model("the number of buffers differs from that of tensors");
  for (const Task& task : program.tasks) ORKNN_TRY(verify_task(task, g));
  for (const Buffer& b : program.buffers)
    if (b.place > Buffer::Place::Weights) return invalid_model("a buffer has an unknown place");
  ORKNN_TRY(verify_ports(program.inputs, g, "input"));
  ORKNN_TRY(verify_ports(program.outputs, g, "output"));
  ORKNN_TRY(verify_order(program));
  return verify_memory(program);
}

}  // namespace orknn::format
