// Keras models: .h5 of Keras 2 and 3, .keras archives.
#include "import/importer.h"
#include "import/keras/call.h"
#include "import/keras/hdf5.h"
#include "import/keras/layer.h"
#include "import/zip/archive.h"

namespace orknn::importer {
namespace keras {
namespace {

constexpr uint64_t kMaxConfigBytes = uint64_t{64} << 20, kMaxWeightBytes = uint64_t{16} << 30;
constexpr const char* kConfigEntry = "config.json";
constexpr const char* kWeightsEntry = "model.weights.h5";

// The archive's directory stands at its end; an archive with these entries is no other framework's.
bool is_keras_archive(Bytes bytes) {
  if (!zip::looks_like_archive(bytes)) return false;
  const auto archive = zip::Archive::open(bytes);
  return archive && archive->find(kConfigEntry) && archive->find(kWeightsEntry);
}

bool sniff(std::span<const std::byte> bytes) { return looks_like_hdf5(bytes) || is_keras_archive(bytes); }

Result<Model> read_h5(Bytes bytes) {
  ORKNN_TRY_ASSIGN(const Hdf5 file, Hdf5::open(bytes));
  ORKNN_TRY_ASSIGN(const auto config, file.texts(file.root(), "model_config"));
  if (!config || config->size() != 1)
    return invalid_model("the file holds no description of a model")
        .hint("it may hold weights alone: save the whole model with model.save()");
  ORKNN_TRY_ASSIGN(const auto version, file.texts(file.root(), "keras_version"));
  Model model;
  if (version && !version->empty()) model.version = version->front();
  ORKNN_TRY_ASSIGN(model.description, parse_json(config->front()));
  ORKNN_TRY_ASSIGN(model.weights, read_h5_weights(file, model.description));
  return model;
}

Result<Model> read_archive(Bytes bytes) {
  ORKNN_TRY_ASSIGN(const zip::Archive archive, zip::Archive::open(bytes));
  const zip::Entry *config = archive.find(kConfigEntry), *weights = archive.find(kWeightsEntry),
                   *metadata = archive.find("metadata.json");
  if (!config || !weights)
    return invalid_model("the archive holds no Keras model").expected("config.json and model.weights.h5 in it");
  Model model;
  if (metadata) {
    ORKNN_TRY_ASSIGN(const std::string text, archive.text(*metadata, kMaxConfigBytes));
    ORKNN_TRY_ASSIGN(const Json facts, parse_json(text));
    model.version = facts["keras_version"].string();
  }
  ORKNN_TRY_ASSIGN(const std::string text, archive.text(*config, kMaxConfigBytes));
  ORKNN_TRY_ASSIGN(model.description, parse_json(text));
  ORKNN_TRY_ASSIGN(const std::string stored, archive.text(*weights, kMaxWeightBytes));
  ORKNN_TRY_ASSIGN(const Hdf5 file, Hdf5::open(std::as_bytes(std::span(stored.data(), stored.size()))));
  ORKNN_TRY_ASSIGN(model.weights, read_archive_weights(file, model.description));
  return model;
}

Result<Model> read_model(Bytes bytes) { return looks_like_hdf5(bytes) ? read_h5(bytes) : read_archive(bytes); }

Result<Imported> load(const Source& source, const ImportOptions& options, const ir::OpSet& ops) {
  ORKNN_TRY_ASSIGN(const Model model, read_model(source.bytes));
  ORKNN_TRY_ASSIGN(const FlatModel flat, flatten(model.description, model.generation()));
  std::vector<LayerNames> names;
  for (const Call& call : flat.calls)
    names.push_back({{call.inputs.begin(), call.inputs.end()}, {call.outputs.begin(), call.outputs.end()}});
  const std::vector<std::string>& outputs = options.outputs.empty() ? flat.outputs : options.outputs;
  ORKNN_TRY_ASSIGN(const LayerPlan plan, plan_model(names, flat.inputs, outputs, options));
  ORKNN_TRY_ASSIGN(const std::vector<Port> inputs, chosen_inputs(flat.inputs, plan, options));
  Build build(model, ops);
  for (const Port& port : inputs) build.network.add_input(port);
  build.network.lower_all(names, plan, [&](size_t i, bool is_reachable) -> Status {
    const Call& call = flat.calls[i];
    if (!is_reachable && find_row(*call.layer)) return {};
    return lower_call(build, call).node(call.path, (*call.layer)["class_name"].string());
  });
  Imported result;
  result.source.framework = "keras";
  result.source.producer = "Keras " + model.version;
  ORKNN_TRY_ASSIGN(result.graph, build.network.finish(outputs));
  for (const auto& [ports, is_nchw] :
       {std::pair(result.graph.inputs(), options.input_is_nchw), std::pair(result.graph.outputs(), false)})
    for (const ir::TensorId id : ports)
      if (ir::Tensor& port = result.graph.tensor(id); port.shape && port.shape->size() == 4)
        port.layout = is_nchw ? ir::Layout::NCHW : ir::Layout::NHWC;
  result.source.warnings = build.network.warnings;
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const Model model, read_model(source.bytes));
  ORKNN_TRY_ASSIGN(const FlatModel flat, flatten(model.description, model.generation()));
  Survey result;
  for (const Call& call : flat.calls)
    if (!is_constant(*call.layer)) ++result.operators[(*call.layer)["class_name"].string()];
  for (const Port& port : flat.inputs) result.inputs.push_back({port.name, port.dtype, port.shape});
  for (const std::string& name : flat.outputs) result.outputs.push_back({.name = name});
  return result;
}
}  // namespace
}  // namespace keras

const Importer& keras_importer() {
  static const Importer importer{.name = "keras",
                                 .extensions = {".h5", ".keras", ".hdf5"},
                                 .sniff = keras::sniff,
                                 .load = keras::load,
                                 .survey = keras::survey};
  return importer;
}

}  // namespace orknn::importer
