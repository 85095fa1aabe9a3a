// Imports and runs ONNX models written in memory.
#pragma once

#include "onnx_writer.h"
#include "run_import.h"

namespace orknn::tests {

inline constexpr int kFloat = 1, kUInt8 = 2, kInt64 = 7, kString = 8, kBool = 9, kHalf = 10, kUInt64 = 13, kUInt4 = 21,
                     kInt4 = 22;

using Values = std::vector<double>;

inline Result<importer::Imported> import_model(const Message& m, const importer::ImportOptions& options = {}) {
  return import_content("test.onnx", m.bytes(), options);
}

inline std::string error_of(const Message& m, const importer::ImportOptions& options = {}) {
  const auto result = import_model(m, options);
  return result ? "no error" : result.status().to_string();
}

inline bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

inline ir::TensorData floats(ir::Dims dims, const std::vector<float>& values) {
  return ir::TensorData::from<float>(std::move(dims), values);
}

// Imports, infers, runs; every result as doubles, nothing in them after a failure.
inline std::vector<Values> run(const Message& m, const std::vector<ir::TensorData>& inputs,
                               const importer::ImportOptions& options = {}) {
  return run_import_values(import_model(m, options), inputs);
}

}  // namespace orknn::tests
