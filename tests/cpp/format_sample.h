// A small model for format and runtime tests, and ways to damage its file. Made by hand, so that these tests need
// neither importer nor compiler.
#pragma once

#include <random>

#include "format/program.h"

namespace orknn::format {

// x (1x2x2x3 float16, NCHW) -> Relu with a fused Mul -> y; plus a second output that goes through a nested graph.
Model sample_model();
// Changes some bytes of a valid file and makes all its checksums right again.
void forge(std::vector<std::byte>& file, std::mt19937& random);
// Creates an executor and runs it on zeros; true when that worked.
bool try_to_run(const Model& model);

}  // namespace orknn::format
