// The values of variables that a saved model keeps beside its graph: variables/variables.index, a sorted table of names, and the
// bytes in variables/variables.data-*.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "import/wire/reader.h"
#include "ir/shape.h"

namespace orknn::importer::tensorflow {

// Where a value lies.
struct BundleEntry {
  int64_t type = 0;  // TensorFlow's number
  ir::Dims dims;
  wire::Bytes bytes;
};

class VariableBundle {
 public:
  // `prefix`: the path of the index without its ending.
  static Result<VariableBundle> open(const std::string& prefix);
  // nullptr when there is none of that name.
  const BundleEntry* find(std::string_view name) const;
  // The objects that have these values, as a message; empty in files of TensorFlow 1.
  wire::Bytes objects() const { return objects_; }

 private:
  Status add(std::string_view name, wire::Bytes message);

  std::vector<std::shared_ptr<const MappedFile>> files_;  // the parts of the data
  std::map<std::string, BundleEntry, std::less<>> entries_;
  wire::Bytes objects_;
};

// The entries of a sorted table, in order. Damaged and compressed tables are refused.
Result<std::vector<std::pair<std::string, wire::Bytes>>> read_table(wire::Bytes file);

}  // namespace orknn::importer::tensorflow
