// Functions of the C API that exist, so that programs link, and report that they are not available yet.
#include "runtime/c_call.h"

using namespace orknn::runtime;

namespace {
int refuse(const char* function) {
  return c_call(function, [&] { return not_yet(function); });
}
}  // namespace

int rknn_matmul_create(rknn_matmul_ctx*, rknn_matmul_info*, rknn_matmul_io_attr*) { return refuse("rknn_matmul_create"); }
int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx*, rknn_matmul_info*, int, rknn_matmul_shape[], rknn_matmul_io_attr[]) {
  return refuse("rknn_matmul_create_dynamic_shape");
}
int rknn_matmul_set_io_mem(rknn_matmul_ctx, rknn_tensor_mem*, rknn_matmul_tensor_attr*) {
  return refuse("rknn_matmul_set_io_mem");
}
int rknn_matmul_set_core_mask(rknn_matmul_ctx, rknn_core_mask) { return refuse("rknn_matmul_set_core_mask"); }
int rknn_matmul_set_quant_params(rknn_matmul_ctx, rknn_quant_params*) { return refuse("rknn_matmul_set_quant_params"); }
int rknn_matmul_get_quant_params(rknn_matmul_ctx, rknn_quant_params*, float*) { return refuse("rknn_matmul_get_quant_params"); }
int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx, rknn_matmul_shape*) { return refuse("rknn_matmul_set_dynamic_shape"); }
int rknn_matmul_run(rknn_matmul_ctx) { return refuse("rknn_matmul_run"); }
int rknn_matmul_destroy(rknn_matmul_ctx) { return refuse("rknn_matmul_destroy"); }
int rknn_B_normal_layout_to_native_layout(void*, void*, int, int, rknn_matmul_info*) {
  return refuse("rknn_B_normal_layout_to_native_layout");
}
