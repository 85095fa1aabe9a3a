// A layer as a folder: layer.json, operands as .npy, packed operands and command streams as the unit fetches them. For emitting
// streams of a described layer, and for executing stored ones.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "silicon/recipe.h"

namespace orknn::toolkit {

struct EmitOptions {
  silicon::Grouping grouping = silicon::Grouping::Whole;
};
struct EmitReport {
  size_t tasks = 0, words = 0, packed_bytes = 0;
  std::vector<std::string> results;  // files of the tensors that the chip model computed
  size_t compared = 0;               // of these, with a file of the described folder
};
// Reads `folder` (layer.json, inputs, weights), writes streams, packed operands and the chip model's results into `out`, which is
// made when it does not exist, in the same form. Where `folder` holds expected results, others are an error.
Result<EmitReport> emit_layer(const std::string& folder, const std::string& out, const EmitOptions& options = {});

struct StoredRun {
  size_t tasks = 0;
  int64_t elements = 0, different = 0;  // of the results, beyond the stated tolerance
  double largest = 0;                   // difference
};
// Executes the streams that are stored in `folder` with the chip model and compares with the stored results.
Result<StoredRun> run_stored_layer(const std::string& folder);
// One line per command word of the stored streams.
Result<std::string> disassemble_stored_layer(const std::string& folder);

}  // namespace orknn::toolkit
