// What holds for every Program, wherever it comes from. The reader asks before it hands out a program of a file, the writer
// before it saves one, the executor before it runs one.
#pragma once

#include "format/program.h"

namespace orknn::format {

// The structure of the graph (ir/verify.h); a task for each node and a buffer for each tensor; every value computed before it is
// read; typed values; ports that name tensors; planned memory inside the arena that no two living values share. What operators
// mean is left to the executor, which knows them. Returns the first violation.
Status verify(const Program& program);

}  // namespace orknn::format
