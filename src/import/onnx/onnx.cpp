// ONNX files: every opset and IR version, external data, functions, cropping.
#include <algorithm>
#include <unordered_set>

#include "import/importer.h"
#include "import/onnx/graph_builder.h"

namespace orknn::importer {
namespace onnx {
namespace {
// The newest standard op set our operators follow.
constexpr int64_t kNewestOpset = 28;

// ModelProto begins with a version number and holds a graph; GraphDef of TensorFlow and NetParameter of Caffe do not.
bool sniff(std::span<const std::byte> bytes) {
  wire::Reader reader(bytes);
  bool has_version = false, has_graph = false;
  for (wire::Field field; reader.next(field);) {
    has_version |= field.number == 1 && field.type == wire::WireType::Varint;
    has_graph |= field.number == 7 && field.type == wire::WireType::Bytes;
    if (field.number == 1 && field.type != wire::WireType::Varint) return false;
  }
  return reader.status().is_ok() && has_version && has_graph;
}

Result<Imported> load(const Source& source, const ImportOptions& options, const ir::OpSet& ops) {
  ORKNN_TRY_ASSIGN(const ModelProto model, parse_model(source.bytes));
  if (!model.has_graph) return invalid_model("the file holds no graph").hint("is it an ONNX model?");
  Imported result;
  result.source.framework = "onnx";
  result.source.producer = std::string(model.producer_name);
  if (!model.producer_version.empty()) result.source.producer += " " + std::string(model.producer_version);
  result.source.format_version = model.ir_version;
  for (const auto& [domain, version] : op_sets_of(model.op_sets)) {
    result.source.op_sets.emplace_back(std::string(domain), version);
    if (domain.empty() && version > kNewestOpset)
      result.source.warnings.push_back("opset " + std::to_string(version) + " is newer than " + std::to_string(kNewestOpset) +
                                       ": its operators are read as those of that version");
  }
  TensorReader tensors({source.folder, source.real_folder}, source.keeper, options.missing_weights);
  GraphBuilder builder(model, tensors, ops);
  ORKNN_TRY_ASSIGN(result.graph, builder.build(options));
  result.source.warnings.insert(result.source.warnings.end(), builder.warnings().begin(), builder.warnings().end());
  if (tensors.stand_in_count())
    result.source.warnings.push_back(
        std::to_string(tensors.stand_in_count()) +
        " tensors have no weights in the model and get arbitrary ones: shapes and speed are right, results are not");
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const ModelProto model, parse_model(source.bytes));
  Survey result;
  for (const NodeProto& n : model.graph.nodes) ++result.operators[std::string(n.op_type)];
  const auto port_of = [](const ValueInfoProto& info) {
    StatedPort port{.name = std::string(info.name)};
    if (const auto dtype = to_dtype(info.type.element_type); dtype && info.type.kind == TypeProto::Kind::Tensor)
      port.dtype = *dtype;
    if (!info.type.has_shape) return port;
    port.shape.emplace();
    for (const DimProto& d : info.type.shape)
      port.shape->push_back(d.kind == DimProto::Kind::Value && d.value >= 0 ? ir::Dim(d.value)
                            : d.parameter.empty()                           ? ir::Dim()
                                                                            : ir::Dim::symbol(std::string(d.parameter)));
    return port;
  };
  std::unordered_set<std::string_view> weights;
  for (const TensorProto& tensor : model.graph.initializers) weights.insert(tensor.name);
  for (const ValueInfoProto& input : model.graph.inputs)
    if (!weights.contains(input.name)) result.inputs.push_back(port_of(input));
  for (const ValueInfoProto& output : model.graph.outputs) result.outputs.push_back(port_of(output));
  return result;
}
}  // namespace
}  // namespace onnx

const Importer& onnx_importer() {
  static const Importer importer{
      .name = "onnx", .extensions = {".onnx"}, .sniff = onnx::sniff, .load = onnx::load, .survey = onnx::survey};
  return importer;
}

}  // namespace orknn::importer
