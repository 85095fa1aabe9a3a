// Writes MXNet models in memory: symbol text from a list of nodes, parameter files of every version, and small samples of both.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "import/importer.h"

namespace orknn::tests::mxnet {

struct NodeText {
  std::string op, name;
  std::vector<std::pair<int, int>> inputs = {};  // node, output
  std::vector<std::pair<std::string, std::string>> attributes = {};
  std::string extra = {};  // further keys, beginning with a comma
};

struct SymbolForm {
  std::string attributes_key = "attrs";  // or "attr", "param"
  bool with_versions = true;             // [node, output, version] instead of [node, output]
  int version = 10901;                   // 0 = not stated
};

NodeText variable(std::string name, std::vector<std::pair<std::string, std::string>> attributes = {});
// `heads` default to output 0 of the last node.
std::string symbol(const std::vector<NodeText>& nodes, std::vector<std::pair<int, int>> heads = {}, const SymbolForm& form = {});

struct Array {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<float> values;
};
// A parameter file of format version 0 to 3; names are written as they stand ("arg:w").
std::string params(const std::vector<Array>& arrays, int version = 2);
// One array with its element type and bytes as given.
std::string raw_params(const std::string& name, const std::vector<int64_t>& dims, int32_t dtype, std::string_view bytes,
                       int32_t storage = 0);

Result<importer::Imported> import(const std::string& symbol, const std::optional<std::string>& params = {},
                                  const importer::ImportOptions& options = {});

struct Sample {
  std::string name, symbol, params;
  std::vector<ir::Dims> sizes;
};
// Small valid models that between them use every part of the format.
std::vector<Sample> samples();

}  // namespace orknn::tests::mxnet
