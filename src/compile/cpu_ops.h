// What the chip's runtime computes on its CPU: the vendor's list of fallback operators.
#pragma once

#include "compile/node_facts.h"

namespace orknn::compile {

// Whether the vendor's runtime for the chip computes the node on the CPU; the text says why not.
Objection cpu_objection(const NodeFacts& facts);

}  // namespace orknn::compile
