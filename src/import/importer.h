// What every framework implements: a name, a way to recognize its files, and a loader that returns our graph.
// The namespace is `importer` because `import` begins a module directive in C++20.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/op_set.h"

namespace orknn::importer {

// The model as it was found: a mapped file or bytes in memory.
struct Source {
  std::string path;    // as the user gave it; names the model in messages. May be empty for bytes in memory
  std::string folder;  // where files the model refers to are looked for; empty = it may not refer to any
  // Where the model's own file really lies when `path` is a link, as in caches that keep models as links to blobs; else empty.
  std::string real_folder;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> keeper;    // holds `bytes`; constants of the graph may point into them and keep it
  std::vector<std::string> other_files;  // second file of formats that have one (weights)
};

// How the user wants the model cut and sized. All lists are optional; those about inputs run in the order of `inputs`, or of
// the model's own inputs when `inputs` is empty.
struct ImportOptions {
  std::vector<std::string> inputs;                // tensors at which the graph begins
  std::vector<ir::Dims> input_size_list;          // their shapes; a negative extent leaves what the model says
  std::string sizes_option = "input_size_list";   // what the user gave them with, for messages
  std::vector<ir::TensorData> input_initial_val;  // an entry with a value makes that input a constant
  std::vector<std::string> outputs;               // tensors at which the graph ends
  bool input_is_nchw = false;                     // 4-D inputs of a channels-last framework are channels first in this model
  std::map<std::string, ir::TensorData> feeds;    // values for placeholders that only steer the graph (training switches)
  bool missing_weights = false;                   // weights that cannot be found get arbitrary values, with a warning
};

// Where the model came from, for reports.
struct SourceInfo {
  std::string framework;                                 // name of the importer
  std::string producer;                                  // "pytorch 2.1", when the file tells
  int64_t format_version = 0;                            // ir_version of ONNX, schema version of others
  std::vector<std::pair<std::string, int64_t>> op_sets;  // domain and version; "" is the framework's own
  std::vector<std::string> warnings;                     // things the user should know, one sentence each
  bool has_open_inputs = false;  // the file leaves extents of inputs open and has no place to state them: runs may choose them
};

struct Imported {
  ir::Graph graph;  // ir::verify(graph, ops, Stage::Imported) holds; shapes are not settled yet
  SourceInfo source;
};

// What a file says about itself without being imported.
struct StatedPort {
  std::string name;
  DType dtype = DType::Undefined;  // not stated
  std::optional<ir::Shape> shape = {};
};
struct Survey {
  std::map<std::string, size_t> operators;  // in the framework's own words, with their number
  std::vector<StatedPort> inputs, outputs;  // where the file states them
};

struct Importer {
  std::string_view name;
  std::vector<std::string_view> extensions;  // with the dot
  // Whether the bytes look like this format. Called with any file; reads as little as it can.
  bool (*sniff)(std::span<const std::byte> bytes);
  // Reports every unknown operator at once.
  Result<Imported> (*load)(const Source& source, const ImportOptions& options, const ir::OpSet& ops);
  // For reports on models that cannot be imported.
  Result<Survey> (*survey)(const Source& source);
  // What the name of the second file ends with, for formats that keep weights apart; `extensions` then begins with the
  // description's.
  std::string_view weights_extension = {};
};

// All importers, in alphabetical order: the folders of this room that hold a file of their own name (<name>/<name>.cpp with
// `const Importer& <name>_importer()`).
std::vector<const Importer*> importers();
const Importer* find_importer(std::string_view name);  // nullptr when there is none
// The importer for a file, by content, then by extension.
Result<const Importer*> sniff(std::string_view path, std::span<const std::byte> bytes);

// Maps `path` and loads it. `framework` names the importer; empty = sniff. Errors name the model and the stage "import".
Result<Imported> load_file(const std::string& path, const ImportOptions& options, const ir::OpSet& ops,
                           std::string_view framework = {}, std::vector<std::string> other_files = {});
// The same for bytes in memory, which are copied nowhere: `source.keeper` must hold them.
Result<Imported> load_bytes(const Source& source, const ImportOptions& options, const ir::OpSet& ops,
                            std::string_view framework = {});

// The importer for a file: the one of that name, or the one that recognizes it when the name is empty.
Result<const Importer*> choose_importer(const std::string& path, std::string_view framework);
// What the file says about itself; fails when it cannot be read at all.
Result<Survey> survey_file(const std::string& path, std::string_view framework);

}  // namespace orknn::importer
