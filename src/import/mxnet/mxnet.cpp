// MXNet models: a symbol file and the parameters beside it, written by any version from 0.7 to 1.9.
#include <unordered_set>

#include "base/files.h"
#include "import/importer.h"
#include "import/mxnet/model.h"
#include "import/mxnet/roles.h"

namespace orknn::importer {
namespace mxnet {
namespace {
// 10901 = 1.9.1.
std::string version_text(int64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

Result<Imported> load(const Source& source, const ImportOptions& options, const ir::OpSet& ops) {
  if (source.other_files.empty()) return import_model(source.bytes, nullptr, options, ops);
  ORKNN_TRY_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(source.other_files[0]));
  ORKNN_TRY_ASSIGN(const Params params, Params::parse(file->bytes(), file));
  return import_model(source.bytes, &params, options, ops);
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const Symbol symbol, parse_symbol(source.bytes));
  Survey result;
  for (const SymbolNode& n : symbol.nodes)
    if (!n.is_variable()) ++result.operators[n.op];
  std::unordered_set<uint32_t> data;  // variables that are read as something else than a parameter, a state or a label
  for (const SymbolNode& n : symbol.nodes)
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (symbol.nodes[n.inputs[i].node].is_variable() && role_of_input(n, i) == Role::Data) data.insert(n.inputs[i].node);
  for (uint32_t i = 0; i < symbol.nodes.size(); ++i)
    if (data.contains(i))
      result.inputs.push_back({symbol.nodes[i].name, stated_dtype(symbol.nodes[i]), stated_shape(symbol.nodes[i])});
  for (const Entry& head : symbol.heads)
    result.outputs.push_back({.name = symbol.nodes[head.node].name + "_" + output_suffix(symbol.nodes[head.node], head.output)});
  return result;
}
}  // namespace

Result<Imported> import_model(std::span<const std::byte> bytes, const Params* params, const ImportOptions& options,
                              const ir::OpSet& ops) {
  ORKNN_TRY_ASSIGN(const Symbol symbol, parse_symbol(bytes));
  Model model(symbol, params, ops);
  Imported result;
  ORKNN_TRY_ASSIGN(result.graph, model.build(options));
  result.source.framework = "mxnet";
  result.source.producer = symbol.version > 0 ? "mxnet " + version_text(symbol.version) : "mxnet";
  result.source.format_version = symbol.version;
  result.source.warnings = model.warnings();
  return result;
}
}  // namespace mxnet

const Importer& mxnet_importer() {
  static const Importer importer{.name = "mxnet",
                                 .extensions = {"-symbol.json"},
                                 .sniff = mxnet::looks_like_symbol,
                                 .load = mxnet::load,
                                 .survey = mxnet::survey,
                                 .weights_extension = ".params"};
  return importer;
}

}  // namespace orknn::importer
