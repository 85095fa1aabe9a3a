// Constants whose bytes lie in a mapped file: what to ask before they are read.
#pragma once

#include <memory>
#include <vector>

#include "base/files.h"
#include "ir/graph.h"

namespace orknn::ir {

// The files mapped into memory that hold constants of `graph` are added to `files`, each once.
void collect_mapped_files(const Graph& graph, std::vector<std::shared_ptr<const MappedFile>>& files);

// Io, with every file that has become shorter since it was mapped.
Status check_mapped_files(const std::vector<std::shared_ptr<const MappedFile>>& files);
Status check_mapped_files(const Graph& graph);

}  // namespace orknn::ir
