// TorchScript archives, traced or scripted, of every PyTorch since 1.2, and archives of torch.export. The code or graph in the
// archive is executed symbolically; weights stay in the mapped file.
#include <algorithm>

#include "import/importer.h"
#include "import/lower/network.h"
#include "import/pytorch/exported_program.h"
#include "import/pytorch/interpreter.h"
#include "import/pytorch/model.h"
#include "import/pytorch/ports.h"
#include "import/zip/archive.h"
#include "ops/eval.h"

namespace orknn::importer {
namespace pytorch {
namespace {
constexpr const char* kHowToTrace =
    "load the model in PyTorch, call model.eval(), then torch.jit.trace(model, torch.rand(1, 3, 224, 224)).save('model.pt') with "
    "an input of your own shape";
constexpr size_t kMaxOutputs = 1000;
constexpr int kMaxOutputDepth = 32;

bool sniff(std::span<const std::byte> bytes) {
  if (is_legacy_pickle(bytes)) return true;
  if (!zip::looks_like_archive(bytes)) return false;
  const auto archive = zip::Archive::open(bytes);
  return archive && look_into(*archive).kind != FileKind::Other;
}

Status not_torchscript(std::string what) {
  return invalid_model(std::move(what)).expected("a TorchScript file").hint(kHowToTrace);
}

// The tensors of a result, depth first. Entries of dictionaries have names, the others are numbered.
Status collect_outputs(const Value& value, const std::string& name, int depth, Session& session,
                       std::vector<std::pair<std::string, ir::TensorId>>& outputs) {
  if (depth > kMaxOutputDepth || outputs.size() > kMaxOutputs) return unsupported("the model has too many outputs");
  Emitter emitter(session.graph, session.ops, "output", {"output"});
  if (value.kind() == Kind::Uninitialized)
    return unsupported("output " + std::to_string(outputs.size()) +
                       " of the model is a result of its operator that is not supported");
  if (value.is_tensor()) {
    if (value.tensor().is_complex)
      return unsupported("output " + std::to_string(outputs.size()) + " of the model is complex")
          .hint("return torch.view_as_real(y), or its magnitude");
    ORKNN_TRY(session.refresh(emitter, value.tensor()));
    outputs.emplace_back(name.empty() ? "output_" + std::to_string(outputs.size()) : name, value.tensor().id);
  } else if (value.is_number()) {
    const DType t = value.kind() == Kind::Float ? DType::Float32 : value.kind() == Kind::Int ? DType::Int64 : DType::Bool;
    outputs.emplace_back(
        name.empty() ? "output_" + std::to_string(outputs.size()) : name,
        t == DType::Float32
            ? emitter.add_scalar("number", value.number())
            : emitter.add_constant("number", ir::convert(ir::TensorData::scalar<int64_t>(value.integer()).view(), t)));
  } else if (value.is_sequence()) {
    const ListValue& list = value.sequence();
    for (size_t i = 0; i < list.items.size(); ++i) {
      const std::string part = i < list.fields.size() ? list.fields[i] : name.empty() ? "" : name + "." + std::to_string(i);
      ORKNN_TRY(collect_outputs(list.items[i], part, depth + 1, session, outputs));
    }
  } else if (value.kind() == Kind::Dict) {
    for (const auto& [key, item] : value.dict().items)
      ORKNN_TRY(collect_outputs(item, (name.empty() ? "" : name + ".") + to_text(key), depth + 1, session, outputs));
  }
  return {};
}

// Output names the user cuts at: outputs of the model or any tensor on the way.
Status choose_outputs(const ImportOptions& options, Network& network, std::vector<std::string>& names) {
  if (options.outputs.empty()) return {};
  std::vector<std::string> chosen;
  for (const std::string& name : options.outputs) {
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      const ir::TensorId id = network.graph.find_tensor(name);
      if (!id || network.graph.is_constant(id)) return no_such_tensor(name, "outputs", options.outputs, names);
      network.bind(name, id, name);
    }
    chosen.push_back(name);
  }
  names = std::move(chosen);
  return {};
}

// The graph of what forward returned.
Result<Imported> finish(const Value& result, const ImportOptions& options, Session& session, Network& network) {
  std::vector<std::pair<std::string, ir::TensorId>> outputs;
  ORKNN_TRY(collect_outputs(result, "", 0, session, outputs));
  if (outputs.empty()) return unsupported("the model returns no tensor").found(describe(result));
  std::vector<std::string> names;
  for (auto& [name, id] : outputs) {
    std::string unique = name;
    for (int i = 1; std::find(names.begin(), names.end(), unique) != names.end() || network.find(unique); ++i)
      unique = name + "_" + std::to_string(i);
    network.bind(unique, id, unique);
    names.push_back(std::move(unique));
  }
  ORKNN_TRY(choose_outputs(options, network, names));
  Imported imported;
  ORKNN_TRY_ASSIGN(imported.graph, network.finish(names));
  imported.source.framework = "pytorch";
  imported.source.warnings = session.warnings;
  if (auto state = session.warning_of_state()) imported.source.warnings.push_back(*std::move(state));
  return imported;
}

// One attempt to import; `notes` may ask for another.
Result<Imported> attempt(const Source& source, const ImportOptions& options, const ir::OpSet& ops, const zip::Archive& archive,
                         const Contents& contents, InputNotes& notes, bool& again) {
  again = false;
  Network network(ops);
  Session session(network.graph, ops);
  Library library(archive, contents.root);
  ORKNN_TRY_ASSIGN(const Model model, read_model(source, archive, contents, library, session.heap));
  session.divides_integers = model.version < 4;
  session.has_input_facts = model.traced_inputs.has_value();
  Interpreter interpreter(session, library, model.constants);
  ObjectValue& root = model.root.object();
  // A module whose forward has several signatures (nn.LSTM) numbers them.
  std::string_view name = "forward";
  ORKNN_TRY_ASSIGN(const Function* forward, interpreter.find_method(root, name));
  if (!forward) {
    name = "forward__0";
    ORKNN_TRY_ASSIGN(forward, interpreter.find_method(root, name));
  }
  if (!forward) return not_torchscript("the model has no forward method");
  ORKNN_TRY_ASSIGN(const auto arguments, make_arguments(*forward, model, options, notes, interpreter, session, network));
  auto result = interpreter.call_method(root, name, arguments);
  if (!result) {
    if (session.retype) {
      again = true;
      const auto [input, dtype] = *session.retype;
      if (dtype == DType::Undefined) {
        notes.lacks_batch.resize(std::max(notes.lacks_batch.size(), static_cast<size_t>(input) + 1), 0);
        again = !notes.lacks_batch[static_cast<size_t>(input)];
        notes.lacks_batch[static_cast<size_t>(input)] = 1;
      } else {
        again = notes.types.emplace(input, dtype).second;
      }
    }
    Status status = result.status();
    for (const auto& [name, count] : interpreter.operators(model.modules))
      if (!is_known_operator(name) && status.to_string().find("(" + shown_operator(name) + ")") == std::string::npos)
        status.also(unsupported("operator is not supported").node("model", shown_operator(name)));
    return status;
  }
  ORKNN_TRY_ASSIGN(Imported imported, finish(*result, options, session, network));
  imported.graph.name = root.class_name.substr(root.class_name.rfind('.') + 1);
  imported.source.producer = "pytorch";
  imported.source.format_version = model.version;
  return imported;
}

// Everything about the inputs is in the file: one attempt is enough.
Result<Imported> load_exported(const Source& source, const ImportOptions& options, const ir::OpSet& ops,
                               const zip::Archive& archive, const Contents& contents) {
  Network network(ops);
  Session session(network.graph, ops);
  session.has_input_facts = true;
  Library library(archive, "");  // holds no code
  Interpreter interpreter(session, library, {});
  ORKNN_TRY_ASSIGN(ExportedProgram program, ExportedProgram::open(source, archive, contents, session));
  const auto result = program.execute(options, interpreter, network);
  if (!result) {
    Status status = result.status();
    for (const auto& [layer, op] : program.operators())
      if (!is_known_operator(op) && status.to_string().find("(" + shown_operator(op) + ")") == std::string::npos)
        status.also(unsupported("operator is not supported").node(layer, shown_operator(op)));
    return status;
  }
  Emitter emitter(session.graph, session.ops, "output", {"output"});
  for (const std::string& name : options.outputs)
    if (const Value inner = program.find(name); inner.is_tensor() && !network.find(name)) {
      ORKNN_TRY(session.refresh(emitter, inner.tensor()));
      if (!network.graph.is_constant(inner.tensor().id)) network.bind(name, inner.tensor().id, name);
    }
  ORKNN_TRY_ASSIGN(Imported imported, finish(*result, options, session, network));
  imported.graph.name = program.class_name();
  imported.source.producer = program.producer();
  imported.source.format_version = program.version();
  return imported;
}

// The archive of a model that can be imported.
Result<zip::Archive> open_archive(const Source& source, Contents& contents) {
  if (is_legacy_pickle(source.bytes))
    return not_torchscript("the file was written by torch.save and holds weights or an eager module, not the computation");
  if (!zip::looks_like_archive(source.bytes)) return not_torchscript("the file is not an archive of PyTorch");
  ORKNN_TRY_ASSIGN(zip::Archive archive, zip::Archive::open(source.bytes));
  contents = look_into(archive);
  if (contents.kind == FileKind::Eager)
    return not_torchscript(
        "the file was written by torch.save and holds weights (a state_dict) or an eager module, not the computation");
  if (contents.kind == FileKind::Other) return not_torchscript("the archive holds no TorchScript model");
  return archive;
}

Result<Imported> load(const Source& source, const ImportOptions& options, const ir::OpSet& ops) {
  Contents contents;
  ORKNN_TRY_ASSIGN(const zip::Archive archive, open_archive(source, contents));
  if (contents.kind == FileKind::ExportedProgram) return load_exported(source, options, ops, archive, contents);
  InputNotes notes;
  while (true) {
    bool again = false;
    auto imported = attempt(source, options, ops, archive, contents, notes, again);
    if (!again) return imported;
  }
}

Result<Survey> survey(const Source& source) {
  Contents contents;
  ORKNN_TRY_ASSIGN(const zip::Archive archive, open_archive(source, contents));
  ir::Graph graph;
  Session session(graph, ops::builtin_ops());
  Survey result;
  if (contents.kind == FileKind::ExportedProgram) {
    ORKNN_TRY_ASSIGN(const ExportedProgram program, ExportedProgram::open(source, archive, contents, session));
    for (const auto& [layer, op] : program.operators()) ++result.operators[shown_operator(op)];
    result.inputs = program.inputs();
    result.outputs = program.outputs();
    return result;
  }
  Library library(archive, contents.root);
  ORKNN_TRY_ASSIGN(const Model model, read_model(source, archive, contents, library, session.heap));
  Interpreter interpreter(session, library, model.constants);
  for (const auto& [name, count] : interpreter.operators(model.modules)) result.operators[shown_operator(name)] += count;
  ORKNN_TRY_ASSIGN(const Function* forward, interpreter.find_method(model.root.object(), "forward"));
  for (size_t i = 1; forward && i < forward->parameters.size(); ++i) {
    StatedPort& port = result.inputs.emplace_back();
    port.name = forward->parameters[i].name;
    if (!model.traced_inputs || !model.traced_inputs->is_sequence() || i > model.traced_inputs->sequence().items.size()) continue;
    if (const Value& example = model.traced_inputs->sequence().items[i - 1]; example.is_tensor() && example.tensor().storage) {
      port.dtype = example.tensor().storage->dtype;
      port.shape = ir::to_shape(example.tensor().dims);
    }
  }
  return result;
}
}  // namespace
}  // namespace pytorch

const Importer& pytorch_importer() {
  static const Importer importer{.name = "pytorch",
                                 .extensions = {".pt", ".pth", ".torchscript", ".ptl", ".pt2"},
                                 .sniff = pytorch::sniff,
                                 .load = pytorch::load,
                                 .survey = pytorch::survey};
  return importer;
}

}  // namespace orknn::importer
