// Joins the definitions of all op files; the list of files is made by CMake (one function per file, named like it).
#include "ops/eval.h"

namespace orknn::ops {

using StemFunction = std::span<const ir::OpDef> (*)();
extern const std::span<const StemFunction> kOpFiles;

const ir::OpSet& builtin_ops() {
  static const ir::OpSet set = [] {
    ir::OpSet s;
    for (const StemFunction f : kOpFiles) s.add(f());
    return s;
  }();
  return set;
}

}  // namespace orknn::ops
