// Runs what an importer returned with the reference kernels.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "import/importer.h"
#include "ir/infer.h"
#include "ops/eval.h"

namespace orknn::tests {

// Imports a file that exists in memory alone.
inline Result<importer::Imported> import_content(std::string path, const std::string& content,
                                                 const importer::ImportOptions& options, std::string_view framework = {}) {
  auto bytes = std::make_shared<std::string>(content);
  importer::Source source;
  source.path = std::move(path);
  source.bytes = std::as_bytes(std::span(bytes->data(), bytes->size()));
  source.keeper = bytes;
  return importer::load_bytes(source, options, ops::builtin_ops(), framework);
}

// Infers shapes and computes the outputs. A failure of any step fails the test; nothing is answered then.
inline std::vector<ir::TensorData> run_import(Result<importer::Imported> imported, std::span<const ir::TensorData> inputs) {
  if (!imported) {
    ADD_FAILURE() << imported.status().to_string();
    return {};
  }
  if (const Status s = ir::infer_shapes(imported->graph, ops::builtin_ops()); !s) ADD_FAILURE() << s.to_string();
  auto results = ops::eval_graph(imported->graph, ops::builtin_ops(), inputs);
  if (!results) {
    ADD_FAILURE() << results.status().to_string();
    return {};
  }
  return *std::move(results);
}

// The same as doubles; `least` empty results stand in for those of a failed run, so that a test may go on to read them.
inline std::vector<std::vector<double>> run_import_values(Result<importer::Imported> imported,
                                                          std::span<const ir::TensorData> inputs, size_t least = 4) {
  const std::vector<ir::TensorData> results = run_import(std::move(imported), inputs);
  if (results.empty()) return std::vector<std::vector<double>>(least);
  std::vector<std::vector<double>> values;
  for (const ir::TensorData& t : results) values.push_back(ir::to_doubles(t.view()));
  return values;
}

}  // namespace orknn::tests
