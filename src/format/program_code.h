// Programs and model facts as bytes: the exact, private part of a .rknn file (docs/rknn_format.md 3).
#pragma once

#include "format/bytes.h"
#include "format/program.h"
#include "format/weights.h"

namespace orknn::format {

// Constants go to `weights`; the program stores their offsets.
void encode_program(const Program& program, WeightCollector& weights, ByteWriter& out);
// How many bytes encode_program writes. Nothing is encoded, and constants are not looked at.
uint64_t program_bytes(const Program& program);
// Adds the constants as encode_program does, in the same order, without encoding anything.
void collect_weights(const Program& program, WeightCollector& weights);
// Marks what Model::leaves_out_weights keeps out of files: constants of several axes that convolutions read. Before they are
// added.
void leave_out_convolution_weights(const Program& program, WeightCollector& weights);
// The buffer of a tensor as it is stored: that of a constant is its place in the weight section.
Buffer stored_buffer(const Program& program, size_t tensor, WeightCollector& weights);
// Refuses whatever is cut off, names a constant outside the weight section or violates verify() (verify.h).
Result<Program> decode_program(ByteReader& in, const WeightSection& weights);

// Everything of a Model except its programs.
void encode_model_facts(const Model& model, ByteWriter& out);
uint64_t model_facts_bytes(const Model& model);  // that encode_model_facts writes
Result<Model> decode_model_facts(ByteReader& in);

}  // namespace orknn::format
