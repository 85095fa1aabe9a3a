// Joins the definitions of all op files; the list of files is made by CMake (one function per file, named like it).
#include <algorithm>

#include "base/forks.h"
#include "ops/eval.h"
#include "ops/facts.h"

namespace orknn::ops {

using StemFunction = std::span<const ir::OpDef> (*)();
extern const std::span<const StemFunction> kOpFiles;

namespace {
MadeOnce<ir::OpSet>& all_ops() {
  static auto& ops = *new MadeOnce<ir::OpSet>;
  return ops;
}
ORKNN_MAKE_AT_LOAD(all_ops);
}  // namespace

const ir::OpSet& builtin_ops() {
  return all_ops().get([] {
    ir::OpSet s;
    for (const StemFunction f : kOpFiles) s.add(f());
    return s;
  });
}

const ir::OpDef& facts_of(std::string_view op) {
  static const ir::OpDef kUnknown{};
  const ir::OpDef* def = builtin_ops().find(op);
  return def ? *def : kUnknown;
}

bool is_basic_arithmetic(std::string_view op) {
  const ir::Arithmetic a = facts_of(op).arithmetic;
  return a != ir::Arithmetic::None && a != ir::Arithmetic::Max && a != ir::Arithmetic::Min;
}

std::vector<std::string_view> ops_where(bool (*holds)(const ir::OpDef&)) {
  std::vector<std::string_view> names;
  for (const auto& [name, def] : builtin_ops())
    if (holds(*def)) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace orknn::ops
