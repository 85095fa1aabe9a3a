// TensorFlow frozen graphs, binary (.pb) and text (.pbtxt), by themselves or in a saved model, and saved models with variables.
#include <filesystem>
#include <unordered_set>

#include "import/importer.h"
#include "import/tensorflow/lowering.h"
#include "import/tensorflow/saved_model.h"

namespace orknn::importer {
namespace tensorflow {
namespace {
std::string_view as_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The first byte of a binary graph is the tag of a node, a library or versions; text begins with a letter, blank or comment.
bool may_be_text(Bytes bytes) {
  for (std::byte b : bytes.first(std::min<size_t>(bytes.size(), 64)))
    if (const auto c = static_cast<uint8_t>(b); c >= 0x7f || (c < 0x20 && c != '\n' && c != '\r' && c != '\t')) return false;
  return !bytes.empty();
}

bool sniff(std::span<const std::byte> bytes) {
  return may_be_text(bytes) ? looks_like_graph_text(as_text(bytes)) : looks_like_graph(bytes);
}

struct ReadGraph {
  GraphDef graph;
  Bytes bytes;                         // of the file; a text encoded
  std::shared_ptr<const void> keeper;  // of what the graph points into
};
Result<ReadGraph> read_graph(const Source& source) {
  ReadGraph result{.graph = {}, .bytes = source.bytes, .keeper = source.keeper};
  if (may_be_text(source.bytes)) {
    ORKNN_TRY_ASSIGN(auto encoded, encode_graph_text(as_text(source.bytes)));
    const auto owned = std::make_shared<const std::vector<std::byte>>(std::move(encoded));
    result.bytes = *owned;
    result.keeper = owned;
  }
  ORKNN_TRY_ASSIGN(result.graph, parse_graph(result.bytes));
  if (result.graph.nodes.empty()) return invalid_model("the file holds no graph").hint("is it a frozen TensorFlow graph?");
  return result;
}

// Values for the variables of a saved model, whose files lie beside it even where it has none. The signature says where it ends
// unless the user does. False for other graphs.
Result<bool> freeze_saved_model(const Source& source, ReadGraph& read, ImportOptions& options) {
  const std::filesystem::path prefix = std::filesystem::path(source.folder) / "variables" / "variables";
  const bool has_values = has_variables(read.graph);
  std::error_code problem;
  if (source.folder.empty() || !std::filesystem::exists(prefix.string() + ".index", problem)) return false;
  const bool follows_signature = options.outputs.empty();
  if (follows_signature) {
    ORKNN_TRY_ASSIGN(const Signature signature, signature_of(read.bytes));
    options.outputs = signature.outputs;
  }
  if (!has_values) return follows_signature && !options.outputs.empty();
  if (options.outputs.empty())
    return invalid_model("the saved model has no signature").hint("name the tensors at which it ends with 'outputs'");
  struct Kept {
    std::shared_ptr<const void> file;
    OwnedMessages values;
  };
  const auto kept = std::make_shared<Kept>(Kept{read.keeper, {}});
  read.keeper = kept;
  ORKNN_TRY(freeze(read.graph, read.bytes, options.outputs, prefix.string(), kept->values));
  return true;
}

Result<Imported> load(const Source& source, const ImportOptions& given, const ir::OpSet& ops) {
  ORKNN_TRY_ASSIGN(ReadGraph read, read_graph(source));
  ImportOptions options = given;
  ORKNN_TRY_ASSIGN(const bool is_saved_model, freeze_saved_model(source, read, options));
  const GraphDef& graph = read.graph;
  Imported result;
  result.source.framework = "tensorflow";
  result.source.format_version = graph.producer;
  Lowering lowering(graph, read.keeper, ops);
  if (is_saved_model) lowering.take_one_sample();
  ORKNN_TRY_ASSIGN(result.graph, lowering.run(options));
  result.source.warnings = lowering.warnings();
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const ReadGraph read, read_graph(source));
  Survey result;
  std::unordered_set<std::string_view> read_nodes;
  for (const NodeDef& n : read.graph.nodes)
    for (std::string_view name : n.inputs) read_nodes.insert(name.substr(0, name.find(':')));
  for (const NodeDef& n : read.graph.nodes) {
    ++result.operators[std::string(n.op)];
    StatedPort port{.name = std::string(n.name)};
    for (const AttributeDef& a : n.attributes) {
      const auto value = parse_attribute(a.value);
      if (!value) continue;
      if (a.name == "dtype" && value->kind == AttributeValue::Kind::Type) port.dtype = to_dtype(value->number);
      if (a.name == "shape" && value->kind == AttributeValue::Kind::Shape)
        if (auto shape = parse_shape(value->message)) port.shape = *std::move(shape);
    }
    if (n.op == "Placeholder")
      result.inputs.push_back(std::move(port));
    else if (!read_nodes.contains(n.name) && n.op != "Const" && n.op != "NoOp")
      result.outputs.push_back({.name = std::string(n.name)});
  }
  for (const FunctionDef& f : read.graph.functions)
    for (const NodeDef& n : f.nodes) ++result.operators[std::string(n.op)];
  return result;
}
}  // namespace
}  // namespace tensorflow

const Importer& tensorflow_importer() {
  static const Importer importer{.name = "tensorflow",
                                 .extensions = {".pb", ".pbtxt"},
                                 .sniff = tensorflow::sniff,
                                 .load = tensorflow::load,
                                 .survey = tensorflow::survey};
  return importer;
}

}  // namespace orknn::importer
