// Keras models: .h5 of Keras 2 and 3, .keras archives. They become a TensorFlow graph, which that importer reads.
#include "import/importer.h"
#include "import/keras/hdf5.h"
#include "import/keras/model.h"
#include "import/tensorflow/lowering.h"
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

// Layers may be named where TensorFlow names tensors.
void name_tensors(const TfGraph& graph, std::vector<std::string>& names) {
  for (std::string& name : names)
    if (const auto found = graph.layers.find(name); found != graph.layers.end()) name = found->second;
}

Result<Imported> load(const Source& source, const ImportOptions& given, const ir::OpSet& ops) {
  ORKNN_TRY_ASSIGN(const Model model, read_model(source.bytes));
  ORKNN_TRY_ASSIGN(TfGraph written, to_tensorflow(model));
  ImportOptions options = given;
  name_tensors(written, options.inputs);
  name_tensors(written, options.outputs);
  if (options.outputs.empty()) options.outputs = written.outputs;
  const auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(written.bytes));
  ORKNN_TRY_ASSIGN(const tensorflow::GraphDef graph, tensorflow::parse_graph(*bytes));
  Imported result;
  result.source.framework = "keras";
  result.source.producer = "Keras " + model.version;
  tensorflow::Lowering lowering(graph, bytes, ops);
  ORKNN_TRY_ASSIGN(result.graph, lowering.run(options));
  result.source.warnings = lowering.warnings();
  result.source.warnings.insert(result.source.warnings.end(), written.warnings.begin(), written.warnings.end());
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const Model model, read_model(source.bytes));
  Survey result;
  for (const Json& layer : layers_of(model.description)) {
    const std::string kind = layer["class_name"].string();
    ++result.operators[kind];
    if (kind == "InputLayer") result.inputs.push_back({.name = name_of(layer)});
  }
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
