// A small model for format and runtime tests, and ways to damage its file. Made by hand, so that these tests need
// neither importer nor compiler.
#pragma once

#include <random>

#include "format/program.h"

namespace orknn::format {

// x float16[1,3,2,2] -> Relu with a fused Mul -> Add, Relu -> y, and reshaped -> z. `with_body` adds an If with nested graphs.
Model sample_model(bool with_body = false);
// Changes some bytes of a valid file and makes all its checksums right again.
void forge(std::vector<std::byte>& file, std::mt19937& random);
// Creates an executor and runs it on zeros; true when that worked.
bool try_to_run(const Model& model);

}  // namespace orknn::format
