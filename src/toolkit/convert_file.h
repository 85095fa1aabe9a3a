// The yml files of rknn_convert: which model to convert, how to cut and quantize it, and the options of config().
#pragma once

#include <string>
#include <vector>

#include "data/yaml.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {

// One model of such a file.
struct ConvertFile {
  std::string name;    // of the .rknn, without ending and folder
  SourceModel source;  // paths as they can be opened
  bool do_quantization = false;
  std::string dataset;
  data::YamlValue configs;  // a map from keys of config() to their values, or Null
};

// Reads the form of Toolkit2 (one model under `models`) and that of Toolkit1 (several, by name). Relative paths are relative to
// the file's folder, else to the current directory. The error names the line.
Result<std::vector<ConvertFile>> read_convert_file(const std::string& path);
// The same from text; `folder` is where the paths in it begin.
Result<std::vector<ConvertFile>> parse_convert_file(std::string_view text, const std::string& folder);

// The build options that a file's `configs` state. Reports all that are wrong.
Result<BuildConfig> config_of(const ConvertFile& file);

}  // namespace orknn::toolkit
