// TFLite files (schema version 3): float, half, integer and mixed models, variables, control flow, sparse weights.
#include "import/importer.h"
#include "import/tflite/graph_builder.h"

namespace orknn::importer {
namespace tflite {
namespace {
bool sniff(std::span<const std::byte> bytes) { return bytes.size() >= 8 && std::memcmp(bytes.data() + 4, "TFL3", 4) == 0; }

Result<Imported> load(const Source& source, const ImportOptions& options, const ir::OpSet& ops) {
  const FlatFile file(source.bytes);
  ORKNN_TRY_ASSIGN(const Model model, parse_model(file));
  GraphBuilder builder(model, file, source.keeper, ops);
  Imported result;
  ORKNN_TRY_ASSIGN(result.graph, builder.build(options));
  result.source.framework = "tflite";
  result.source.producer = std::string(model.description);
  if (!model.runtime_version.empty()) result.source.producer += " (runtime " + std::string(model.runtime_version) + ")";
  result.source.format_version = model.version;
  result.source.warnings = builder.warnings();
  return result;
}

Result<Survey> survey(const Source& source) {
  const FlatFile file(source.bytes);
  ORKNN_TRY_ASSIGN(const Model model, parse_model(file));
  Survey result;
  for (const Subgraph& g : model.subgraphs)
    for (const Operator& op : g.operators) ++result.operators[std::string(op.name)];
  const Subgraph& whole = model.subgraphs[0];
  const auto ports_of = [&](const Numbers<int32_t>& indices) {
    std::vector<StatedPort> ports;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0) continue;
      const TensorInfo& t = whole.tensors[static_cast<size_t>(indices[i])];
      StatedPort port{std::string(t.name), to_dtype(t.type), ir::Shape()};
      for (size_t k = 0; k < t.shape.size(); ++k) port.shape->push_back(t.shape[k] >= 0 ? ir::Dim(t.shape[k]) : ir::Dim());
      ports.push_back(std::move(port));
    }
    return ports;
  };
  result.inputs = ports_of(whole.inputs);
  result.outputs = ports_of(whole.outputs);
  return result;
}
}  // namespace
}  // namespace tflite

const Importer& tflite_importer() {
  static const Importer importer{.name = "tflite",
                                 .extensions = {".tflite", ".lite"},
                                 .sniff = tflite::sniff,
                                 .load = tflite::load,
                                 .survey = tflite::survey};
  return importer;
}

}  // namespace orknn::importer
