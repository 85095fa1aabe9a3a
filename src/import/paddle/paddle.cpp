// PaddlePaddle inference models: .pdmodel of Paddle 1 and 2, .json of Paddle 3, each with its .pdiparams or, as Paddle 1 writes
// them, a file per parameter.
#include <algorithm>
#include <functional>

#include "base/files.h"
#include "import/lower/known_names.h"
#include "import/paddle/control_flow.h"
#include "import/paddle/layer.h"
#include "import/paddle/model.h"

namespace orknn::importer {
namespace paddle {
using namespace ir;

namespace {
const RowTable<Layer>& table() {
  static const RowTable<Layer> rows{elementwise_rows(), convolution_rows(), normalization_rows(), matrix_rows(), reduction_rows(),
                                    shape_rows(),       indexing_rows(),    creation_rows(),      resize_rows(), recurrent_rows(),
                                    detection_rows(),   box_rows(),         quantized_rows()};
  return rows;
}

// Lowers one operator and binds what it makes. Outputs that no lowering makes may be missing only where nothing reads them.
Status lower_operator(Network& network, const Operator& op, const std::function<bool(std::string_view)>& is_read) {
  std::vector<TensorId> results;
  if (has_blocks(op)) {
    // Within a block, who reads an output that is missing finds that nothing produces it.
    const LowerOperator lower = [](Network& inner, const Operator& own) {
      return lower_operator(inner, own, [](std::string_view) { return false; });
    };
    ORKNN_TRY_ASSIGN(results, lower_blocks(network, op, lower));
  } else {
    const OperatorRow<Layer>* row = table().find(op.type);
    if (!row) return unsupported("operator '" + op.type + "' of PaddlePaddle is not supported");
    Layer layer(network, op);
    ORKNN_TRY_ASSIGN(results, (*row)(layer));
  }
  size_t at = 0;
  for (const auto& list : op.outputs)
    for (const std::string& name : list) {
      if (at < results.size() && results[at])
        network.bind(name, results[at], op.name);
      else if (is_read(name))
        return unsupported("output " + std::to_string(at) + " of this operator is not supported");
      ++at;
    }
  return {};
}

class Loader {
 public:
  Loader(const Program& program, const ParameterValues* parameters, const ImportOptions& options, const OpSet& ops)
      : program_(program), parameters_(parameters), options_(options), network_(ops) {}
  const std::vector<std::string>& warnings() const { return network_.warnings; }

  Result<Graph> load() {
    for (const Operator& op : program_.operators) {
      LayerNames& names = names_.emplace_back();
      for (const Operand& operand : op.inputs)
        names.reads.insert(names.reads.end(), operand.values.begin(), operand.values.end());
      const std::vector<std::string_view> captured = captured_names(op);
      names.reads.insert(names.reads.end(), captured.begin(), captured.end());
      for (const auto& list : op.outputs) names.writes.insert(names.writes.end(), list.begin(), list.end());
    }
    const std::vector<std::string>& outputs = options_.outputs.empty() ? program_.outputs : options_.outputs;
    ORKNN_TRY_ASSIGN(const LayerPlan plan, plan_model(names_, program_.inputs, outputs, options_));
    ORKNN_TRY_ASSIGN(const std::vector<Port> inputs, chosen_inputs(program_.inputs, plan, options_));
    for (const Port& p : inputs) {
      if (p.dtype == DType::Undefined) return invalid_model("input '" + p.name + "' has an unknown element type");
      network_.add_input(p);
    }
    ORKNN_TRY(add_parameters(plan));
    network_.lower_all(names_, plan, [&](size_t i, bool is_reachable) -> Status {
      const Operator& op = program_.operators[i];
      if (!is_reachable && (has_blocks(op) || table().find(op.type))) return {};
      Status lowered = lower_operator(network_, op, [&](std::string_view name) { return is_read(name); });
      if (lowered) return {};
      if (const std::string replaced = replaced_numbers(op); !replaced.empty()) lowered.hint(replaced);
      return lowered.node(op.name, op.type);
    });
    return network_.finish(outputs);
  }

 private:
  Status add_parameters(const LayerPlan& plan) {
    InventedValues invented;
    bool is_any_made_up = false;
    for (const Parameter& p : program_.parameters) {
      if (!plan.read.contains(p.name)) continue;
      TensorData value;
      if (parameters_) {
        const auto it = parameters_->find(p.name);
        if (it == parameters_->end()) return invalid_model("the parameter file has no '" + p.name + "'");
        value = it->second;
      } else {
        if (p.dtype == DType::Undefined) return invalid_model("parameter '" + p.name + "' has an unknown element type");
        for (int64_t d : p.dims)
          if (d < 0) return invalid_model("parameter '" + p.name + "' has an open extent").found(to_string(p.dims));
        ORKNN_TRY(invented.add(p.name, p.dims));
        const int64_t fan_in = p.dims.size() < 2 ? 1 : element_count(p.dims) / std::max<int64_t>(p.dims[0], 1);
        value = convert(filled(p.name, p.dims, p.dims.size() < 2 ? Fill::Ones : Fill::Random, fan_in).view(), p.dtype);
        is_any_made_up = true;
      }
      network_.add_input({.name = p.name, .dtype = value.dtype(), .shape = to_shape(value.dims()), .value = value});
    }
    if (is_any_made_up) network_.warnings.emplace_back(kRandomWeights);
    return {};
  }

  bool is_read(std::string_view name) const {
    const auto reads = [&](const LayerNames& names) {
      return std::find(names.reads.begin(), names.reads.end(), name) != names.reads.end();
    };
    const std::vector<std::string>& outputs = options_.outputs.empty() ? program_.outputs : options_.outputs;
    return std::any_of(names_.begin(), names_.end(), reads) || std::find(outputs.begin(), outputs.end(), name) != outputs.end();
  }

  const Program& program_;
  const ParameterValues* parameters_;
  const ImportOptions& options_;
  Network network_;
  std::vector<LayerNames> names_;
};

// The parameter file beside the model: of the same name, or as old versions call it.
std::optional<std::string> parameters_beside(const Source& source) {
  if (source.path.empty()) return std::nullopt;
  std::string stem = source.path;
  for (std::string_view ending : {".pdmodel", ".json"})
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  std::string file = stem.ends_with("__model__") ? stem.substr(0, stem.size() - 9) + "__params__" : stem + ".pdiparams";
  return MappedFile::open(file) ? std::optional(file) : std::nullopt;
}

Result<Imported> load(const Source& source, const ImportOptions& options, const OpSet& ops) {
  ORKNN_TRY_ASSIGN(const Program program, parse_program(source.bytes));
  std::optional<std::string> file = source.other_files.empty() ? parameters_beside(source) : source.other_files[0];
  const std::string folder = source.path.substr(0, source.path.rfind('/') + 1);
  if (!file && !source.path.empty() && has_parameter_files(folder, program)) {
    ORKNN_TRY_ASSIGN(const ParameterValues values, read_parameter_files(folder, program));
    return import_program(program, &values, options, ops);
  }
  if (!file || program.parameters.empty()) return import_program(program, nullptr, options, ops);
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> mapped, MappedFile::open(*file));
  ORKNN_TRY_ASSIGN(const ParameterValues values, read_parameters(mapped->bytes(), mapped, program));
  return import_program(program, &values, options, ops);
}

void count_operators(const std::vector<Operator>& operators, Survey& survey) {
  for (const Operator& op : operators) {
    ++survey.operators[op.type];
    for (const Body& body : op.bodies) count_operators(body.operators, survey);
  }
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const Program program, parse_program(source.bytes));
  Survey result;
  count_operators(program.operators, result);
  for (const Port& p : program.inputs) result.inputs.push_back({p.name, p.dtype, p.shape});
  for (const std::string& name : program.outputs) result.outputs.push_back({.name = name});
  return result;
}
}  // namespace

Result<Imported> import_program(const Program& program, const ParameterValues* parameters, const ImportOptions& options,
                                const OpSet& ops) {
  Loader loader(program, parameters, options, ops);
  Imported result;
  ORKNN_TRY_ASSIGN(result.graph, loader.load());
  result.source.framework = "paddle";
  result.source.producer = program.producer;
  result.source.format_version = program.version;
  result.source.warnings = loader.warnings();
  return result;
}
}  // namespace paddle

const Importer& paddle_importer() {
  static const Importer importer{.name = "paddle",
                                 .extensions = {".pdmodel", "__model__"},
                                 .sniff = paddle::looks_like_program,
                                 .load = paddle::load,
                                 .survey = paddle::survey,
                                 .weights_extension = ".pdiparams"};
  return importer;
}

}  // namespace orknn::importer
