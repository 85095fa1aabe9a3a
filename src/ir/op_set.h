// The operators known to a piece of code, as a value: built-ins plus the user's custom ops. Parsers, inference and the
// .rknn reader take one as an argument.
#pragma once

#include <span>
#include <string_view>
#include <unordered_map>

#include "ir/op_def.h"

namespace orknn::ir {

class OpSet {
 public:
  // Definitions must outlive the set. A later definition of the same name replaces the earlier one.
  void add(std::span<const OpDef> defs) {
    for (const OpDef& d : defs) defs_[d.name] = &d;
  }
  const OpDef* find(std::string_view name) const {
    const auto it = defs_.find(name);
    return it == defs_.end() ? nullptr : it->second;
  }
  size_t size() const { return defs_.size(); }
  auto begin() const { return defs_.begin(); }
  auto end() const { return defs_.end(); }

 private:
  std::unordered_map<std::string_view, const OpDef*> defs_;
};

}  // namespace orknn::ir
