// A source model before it is built: what it is, its ports, its operators and how often each occurs, and what stands in the way
// of importing it. Also finds the weights file of formats that keep weights apart.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "import/importer.h"

namespace orknn::toolkit {

struct SourcePort {
  std::string name, type, shape;
};

struct SourceReport {
  std::string file, framework, producer;
  std::vector<std::string> other_files;
  std::vector<SourcePort> inputs, outputs;
  std::map<std::string, size_t>
      operators;  // as imported, with their number; in the source's own words when it cannot be imported
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // one line per layer that cannot be imported, with the reason; then the ports are what the
                                      // file states, "?" for what it does not
};

// Reads the model without building it. Fails only when the file cannot be read or its format is not known; what the importer
// refuses is part of the report, and `refusal` holds it.
Result<SourceReport> inspect_source(const std::string& path, std::string_view framework, const importer::ImportOptions& options,
                                    std::vector<std::string> other_files, Status& refusal);

// The files a model at `path` needs beside it, when none were named: the weights of the same stem (model-symbol.json,
// model-0010.params), or the only ones whose name holds the model's or is held by it (model.cfg, model_final.weights). Empty for
// formats of one file and when there are none. `framework` empty = recognize the file.
Result<std::vector<std::string>> find_other_files(const std::string& path, std::string_view framework);

nlohmann::ordered_json to_json(const SourceReport& report);
std::string source_text(const SourceReport& report, size_t width = 0);  // width as in report.h

}  // namespace orknn::toolkit
