// Functions of the C API that exist, so that programs link, and report that they are not available yet.
#include <cstring>

#include "runtime/c_call.h"

using namespace orknn::runtime;

namespace {
int refuse(const char* function) {
  return c_call(function, [&] { return not_yet(function); });
}
}  // namespace

int rknn_register_custom_ops(rknn_context, rknn_custom_op*, uint32_t) { return refuse("rknn_register_custom_ops"); }
void rknn_custom_op_get_op_attr(rknn_custom_op_context*, const char* attr_name, rknn_custom_op_attr* op_attr) {
  refuse("rknn_custom_op_get_op_attr");
  if (!op_attr) return;
  op_attr->n_elems = 0;
  op_attr->data = nullptr;
  if (!attr_name) return;
  std::memset(op_attr->name, 0, sizeof op_attr->name);
  std::memcpy(op_attr->name, attr_name, strnlen(attr_name, sizeof op_attr->name - 1));
}
