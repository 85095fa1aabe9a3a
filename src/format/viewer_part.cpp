#include "format/viewer_part.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "format/json_text.h"
#include "format/model_facts.h"
#include "ir/custom_op.h"
#include "ir/packed.h"
#include "platform/platforms.h"
#include "rknn_generated.h"

namespace orknn::format {
namespace {
using namespace ir;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

enum Kind : int8_t { kPlaceholder = 0, kInput = 1, kOutput = 2, kBetween = 3, kNpuConstant = 4, kCpuConstant = 5 };

template <class To>
To saturate(uint64_t value) {
  return static_cast<To>(std::min<uint64_t>(value, static_cast<uint64_t>(std::numeric_limits<To>::max())));
}

std::vector<int32_t> viewer_shape(const Tensor& t) {
  std::vector<int32_t> shape;
  if (t.shape)
    for (const Dim& d : *t.shape) shape.push_back(d.is_known() ? saturate<int32_t>(static_cast<uint64_t>(d.value())) : -1);
  return shape;
}

// Names of types the JSON part may state; viewers refuse others.
std::string viewer_type(DType t) {
  switch (t) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Int16:
    case DType::Int32:
    case DType::Int64:
    case DType::Float16:
    case DType::Float32:
    case DType::Float64: return std::string(dtype_name(t));
    default: return "";
  }
}

std::string_view layout_name(Layout layout) {
  return layout == Layout::NHWC ? "NHWC" : layout == Layout::NCHW ? "NCHW" : "UNDEFINED";
}

std::string quant_method(const Tensor& t) { return !t.quant ? "" : t.quant->axis < 0 ? "layer" : "channel"; }

// How many axes have more than one scale.
std::string packed_method(const PackedForm& form) {
  int64_t axes = 0;
  for (size_t i = 0; i < form.dims.size(); ++i) axes += form.block[i] < form.dims[i];
  return axes == 0 ? "layer" : axes == 1 ? "channel" : "group";
}

std::string ports_json(const Program& program, const std::vector<Port>& ports) {
  std::string members;
  std::set<TensorId> seen;
  for (const Port& p : ports) {
    if (!seen.insert(p.tensor).second) continue;
    const Tensor& t = program.graph.tensor(p.tensor);
    members += (members.empty() ? "" : ",") + json::text(t.name) + ':' +
               json::object({{"dtype", json::text(dtype_name(t.dtype))}, {"layout", json::text(layout_name(p.layout))}});
  }
  return '{' + members + '}';
}

// "2.3.2" -> 20302.
int32_t version_code(std::string_view version) {
  int32_t code = 0;
  for (int part = 0; part < 3; ++part) {
    int32_t number = 0;
    const auto [end, error] = std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc()) number = 0;
    code = code * 100 + std::clamp(number, 0, 99);
    version.remove_prefix(static_cast<size_t>(end - version.data()));
    if (!version.empty() && version.front() == '.') version.remove_prefix(1);
  }
  return code;
}

class GraphWriter {
 public:
  GraphWriter(FlatBufferBuilder& builder, const Program& program) : b_(builder), p_(program), g_(program.graph) {}

  Offset<fb::Graph> write() {
    for (const Task& task : p_.tasks)
      if (task.device == Device::Npu)
        for (TensorId t : g_.node(task.node).inputs) npu_reads_.insert(t);
    std::vector<Offset<fb::Tensor>> tensors{placeholder()};
    for (size_t i = 0; i < g_.tensor_count(); ++i) tensors.push_back(tensor(TensorId{static_cast<int32_t>(i)}));
    std::vector<Offset<fb::Node>> nodes;
    std::vector<int32_t> inputs, outputs;
    std::vector<Offset<fb::InputNormalization>> normalization;
    for (const Port& port : p_.inputs) {
      inputs.push_back(number(port.tensor));
      nodes.push_back(node("InputOperator", "InputOperator:" + g_.tensor(port.tensor).name, Device::Cpu, {}, {inputs.back()}));
      normalization.push_back(fb::CreateInputNormalization(b_, b_.CreateVector(port.mean), b_.CreateVector(port.std)));
    }
    for (const Task& task : p_.tasks) {
      const Node& n = g_.node(task.node);
      const std::string type = viewer_node_type(n);
      std::vector<TensorId> results = n.outputs;
      std::erase_if(results, [](TensorId t) { return !t; });
      nodes.push_back(node(type, type + ":" + n.name, task.device, numbers(n.inputs), numbers(results)));
    }
    for (const Port& port : p_.outputs) {
      outputs.push_back(number(port.tensor));
      nodes.push_back(node("OutputOperator", "OutputOperator:" + g_.tensor(port.tensor).name, Device::Cpu, {outputs.back()}, {}));
    }
    return fb::CreateGraph(b_, b_.CreateVector(tensors), b_.CreateVector(nodes), b_.CreateVector(inputs),
                           b_.CreateVector(outputs), b_.CreateVector(normalization));
  }

 private:
  // Entry 0 stands for "no tensor".
  static int32_t number(TensorId t) { return t.index + 1; }
  static std::vector<int32_t> numbers(std::vector<TensorId> ids) {
    while (!ids.empty() && !ids.back()) ids.pop_back();
    std::vector<int32_t> out;
    for (TensorId t : ids) out.push_back(number(t));
    return out;
  }
  Offset<fb::Tensor> placeholder() { return fb::CreateTensor(b_, 0, 0, kPlaceholder, 0, 0, b_.CreateString("")); }

  Kind kind(TensorId t) const {
    if (g_.is_constant(t)) return npu_reads_.contains(t) ? kNpuConstant : kCpuConstant;
    const auto is_port = [&](const std::vector<Port>& ports) {
      return std::any_of(ports.begin(), ports.end(), [&](const Port& p) { return p.tensor == t; });
    };
    return is_port(p_.inputs) ? kInput : is_port(p_.outputs) ? kOutput : kBetween;
  }

  Offset<fb::Tensor> tensor(TensorId id) {
    const Tensor& t = g_.tensor(id);
    const auto shape = b_.CreateVector(viewer_shape(t));
    const auto name = b_.CreateString(t.name);
    const PackedForm* packed = t.constant.packed().get();
    const auto method = b_.CreateString(packed ? packed_method(*packed) : quant_method(t));
    const auto type = b_.CreateString(packed    ? std::string(dtype_name(packed->type))
                                      : t.quant ? std::string(dtype_name(t.dtype))
                                                : "");
    QuantParams quant = t.quant.value_or(QuantParams{});
    if (packed) quant = {};
    if (packed && packed_method(*packed) != "group") {  // scales of groups are as many as some weights
      quant.scale.assign(packed->scales.as<float>(), packed->scales.as<float>() + packed->scales.count());
      quant.zero_point.assign(quant.scale.size(), 0);
    }
    const auto min = b_.CreateVector(quant.min), max = b_.CreateVector(quant.max), scale = b_.CreateVector(quant.scale);
    const auto zero_point = b_.CreateVector(quant.zero_point);
    const Buffer& buffer = p_.buffers[static_cast<size_t>(id.index)];
    const uint64_t bytes = t.is_constant() ? stored_bytes(t.constant) : buffer.bytes;
    return fb::CreateTensor(b_, static_cast<int8_t>(t.dtype), static_cast<int8_t>(t.layout), kind(id), shape, shape, name, method,
                            type, min, max, scale, zero_point, saturate<uint32_t>(bytes),
                            buffer.place == Buffer::Place::Arena ? saturate<uint32_t>(buffer.offset) : 0);
  }

  Offset<fb::Node> node(const std::string& type, const std::string& name, Device device, const std::vector<int32_t>& inputs,
                        const std::vector<int32_t>& outputs) {
    const auto type_text = b_.CreateString(type);
    const auto name_text = b_.CreateString(name);
    const auto in = b_.CreateVector(inputs), out = b_.CreateVector(outputs);
    return fb::CreateNode(b_, 0, type_text, name_text, device == Device::Npu ? 2 : 0, in, out);
  }

  FlatBufferBuilder& b_;
  const Program& p_;
  const Graph& g_;
  std::set<TensorId> npu_reads_;
};
}  // namespace

std::string viewer_node_type(const ir::Node& n) {
  std::vector<std::string> parts{std::string(ir::custom_type(n.op))};
  for (const ir::TailStep& step : n.tail) parts.push_back(step.op);
  constexpr std::string_view kInteger = "int:";
  if (n.op.starts_with(kInteger)) {
    // An integer layer goes by what it computes; a form that serves several operators says which.
    const auto* fused = n.attributes.get<std::vector<std::string>>("fused");
    if (fused) parts.insert(parts.end(), fused->begin(), fused->end());
    if (n.op == "int:Table" && parts.size() == 1) return "exDataConvert";
    if ((n.op == "int:Table" || n.op == "int:ReduceMean") && parts.size() > 1)
      parts.erase(parts.begin());
    else
      parts[0].erase(0, kInteger.size());
  }
  std::string text = parts[0] == "Swish" ? "exSwish" : parts[0];
  for (size_t i = 1; i < parts.size(); ++i) text += parts[i] == "Swish" ? "ExSwish" : parts[i];
  return text;
}

std::vector<std::byte> make_viewer_flatbuffer(const Model& model, uint64_t weight_bytes) {
  FlatBufferBuilder b;
  std::vector<Offset<fb::Graph>> graphs;
  uint64_t arena_bytes = 0;
  for (const Program& program : model.programs) {
    graphs.push_back(GraphWriter(b, program).write());
    arena_bytes = std::max(arena_bytes, program.arena_bytes);
  }
  const auto graph_list = b.CreateVector(graphs);
  const platform::Platform* platform = platform::find(model.target_platform);
  const auto format = b.CreateString(std::string(platform ? platform->npu_name : "RKNPU"));
  const auto generator = b.CreateString(std::string(kWriterMark));
  const auto compiler = b.CreateString(model.toolkit_version + "-" + std::string(kWriterMark));
  const auto runtime = b.CreateString(model.target_platform);
  const auto source = b.CreateString(model.source_framework);
  const bool has_program = !model.programs.empty();
  const auto input_json = b.CreateString(has_program ? ports_json(model.programs[0], model.programs[0].inputs) : "{}");
  const auto output_json = b.CreateString(has_program ? ports_json(model.programs[0], model.programs[0].outputs) : "{}");
  const auto shape_kind = b.CreateString(has_shape_sets(model) ? "dynamic_shape" : "static_shape");
  const auto sizes = fb::CreateSizes(b, weight_bytes, arena_bytes);
  fb::ModelBuilder root(b);
  root.add_version(6);
  root.add_format(format);
  root.add_graphs(graph_list);
  root.add_generator(generator);
  root.add_toolkit_code(version_code(model.toolkit_version));
  root.add_compiler(compiler);
  root.add_runtime(runtime);
  root.add_source(source);
  root.add_input_json(input_json);
  root.add_output_json(output_json);
  root.add_shape_kind(shape_kind);
  root.add_sizes(sizes);
  fb::FinishModelBuffer(b, root.Finish());
  const auto* p = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  return {p, p + b.GetSize()};
}

std::string make_viewer_json(const Model& model) {
  std::vector<std::string> tensors, connections, ports;
  const auto add = [&](const Program& program, const Port& port, const char* side, size_t position) {
    const Tensor& t = program.graph.tensor(port.tensor);
    const std::string id = std::to_string(tensors.size()), index = std::to_string(position), type = viewer_type(t.dtype);
    std::vector<std::string> shape;
    for (int32_t extent : viewer_shape(t)) shape.push_back(json::number(extent));
    tensors.push_back(json::object({{"tensor_id", id},
                                    {"url", json::text(t.name)},
                                    {"dim_num", std::to_string(shape.size())},
                                    {"size", json::array(shape)},
                                    {"dtype", json::object({{"vx_type", json::text(type)},
                                                            {"qnt_type", json::text(t.quant ? type : "")},
                                                            {"qnt_method", json::text(quant_method(t))}})}}));
    connections.push_back(
        json::object({{"left", json::text(side)},
                      {"left_tensor_id", index},
                      {"node_id", json::number(0)},
                      {"right_tensor", json::object({{"tensor_id", id}, {"type", json::text("norm_tensor")}})}}));
    ports.push_back(json::object(
        {{"left", json::text(side)}, {"left_tensor_id", index}, {"right", json::text("norm_tensor")}, {"right_tensor_id", id}}));
  };
  size_t inputs = 0, outputs = 0;
  if (!model.programs.empty()) {
    const Program& program = model.programs[0];
    for (const Port& p : program.inputs) add(program, p, "input", inputs++);
    for (const Port& p : program.outputs) add(program, p, "output", outputs++);
  }
  const std::string network = json::text("RKNN_OP_NNBG"), input_count = std::to_string(inputs),
                    output_count = std::to_string(outputs);
  const std::string node = json::object({{"lid", json::text("npu_network_bin_graph")},
                                         {"uid", json::number(0)},
                                         {"name", json::text("nnbg")},
                                         {"op", network},
                                         {"input_num", input_count},
                                         {"output_num", output_count},
                                         {"nn", json::object({{"nbg", json::object({{"type", network}})}})}});
  std::vector<std::string> platforms;
  for (const std::string& name : platforms_of(model)) platforms.push_back(json::text(name));
  return json::object({{"name", json::text(model.name)},
                       {"version", json::text(model.toolkit_version + "-" + std::string(kWriterMark))},
                       {"ori_network_platform", json::text(model.source_framework)},
                       {"network_platform", json::text(model.source_framework)},
                       {"target_platform", json::array(platforms)},
                       {"input_num", input_count},
                       {"output_num", output_count},
                       {"node_num", json::number(1)},
                       {"norm_tensor_num", std::to_string(tensors.size())},
                       {"nodes", json::array({node})},
                       {"connection", json::array(connections)},
                       {"graph", json::array(ports)},
                       {"norm_tensor", json::array(tensors)},
                       {"const_tensor", json::array({})},
                       {"virtual_tensor", json::array({})}});
}

bool is_viewer_flatbuffer(std::span<const std::byte> bytes) {
  // Every table and vector takes at least four bytes, so this many tables can exist and no more.
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), 64,
                                 static_cast<flatbuffers::uoffset_t>(std::min<size_t>(bytes.size() / 4 + 1, 1u << 30)));
  return fb::VerifyModelBuffer(verifier);
}

}  // namespace orknn::format
