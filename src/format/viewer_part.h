// The part of a .rknn file that graph viewers read: a flatbuffer with the graph and a JSON text around it
// (docs/rknn_format.md 2). Execution does not use it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "format/program.h"

namespace orknn::format {

// In the flatbuffer of every file we write, and in no other.
inline constexpr std::string_view kWriterMark = "OpenRKNN";

// The node type as the vendor's compiler and viewers spell it: Swish is exSwish, ConvExSwish after a convolution.
std::string viewer_node_type(const ir::Node& node);
std::vector<std::byte> make_viewer_flatbuffer(const Model& model, uint64_t weight_bytes);
std::string make_viewer_json(const Model& model);
// Structure of an untrusted flatbuffer.
bool is_viewer_flatbuffer(std::span<const std::byte> bytes);

}  // namespace orknn::format
