// Programs and model facts as bytes: the exact, private part of a .rknn file (docs/rknn_format.md 3).
#pragma once

#include "format/bytes.h"
#include "format/program.h"
#include "format/weights.h"

namespace orknn::format {

// Constants go to `weights`; the program stores their offsets.
void encode_program(const Program& program, WeightCollector& weights, ByteWriter& out);
// Refuses whatever is not a well-formed program: ids out of range, cycles, values read before they exist, constants
// outside the weight section. What ops mean is checked by the executor, which knows them.
Result<Program> decode_program(ByteReader& in, const WeightSection& weights);

// Everything of a Model except its programs.
void encode_model_facts(const Model& model, ByteWriter& out);
Result<Model> decode_model_facts(ByteReader& in);

}  // namespace orknn::format
