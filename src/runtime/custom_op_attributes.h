// Attributes of a custom node as callbacks of the C API get them.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "rknn_custom_op.h"

namespace orknn::runtime {

// What rknn_custom_op_context::internal_ctx points to. A plug-in may be bound to another copy of this library than the one that
// calls it, so the object brings its own function, and C programs may hand in anything, so it brings a mark.
struct OpHandle {
  static constexpr uint64_t kMark = 0x6f726b6e6e6f7001;
  uint64_t mark = kMark;
  void (*get)(const OpHandle& handle, const char* name, rknn_custom_op_attr& attr) = nullptr;
};

class NodeAttributes : public OpHandle {
 public:
  explicit NodeAttributes(const ir::Node& node);

 private:
  struct Value {
    rknn_tensor_type type = RKNN_TENSOR_FLOAT32;
    uint32_t count = 0;
    std::vector<std::byte> bytes;  // followed by a zero byte, so that texts end
  };
  template <class T>
  void add(const std::string& name, rknn_tensor_type type, const std::vector<T>& values);
  void add(const std::string& name, const ir::Attribute& value);
  static void get_value(const OpHandle& handle, const char* name, rknn_custom_op_attr& attr);

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace orknn::runtime
