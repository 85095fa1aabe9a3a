// Functions of the C API that exist, so that programs link, and report that they are not available yet.
#include "runtime/c_call.h"

using namespace orknn::runtime;

namespace {
int refuse(const char* function) {
  return c_call(function, [&] { return not_yet(function); });
}
rknn_tensor_mem* refuse_memory(const char* function) {
  refuse(function);
  return nullptr;
}
}  // namespace

int rknn_dup_context(rknn_context*, rknn_context*) { return refuse("rknn_dup_context"); }
int rknn_set_batch_core_num(rknn_context, int) { return refuse("rknn_set_batch_core_num"); }
int rknn_wait(rknn_context, rknn_run_extend*) { return refuse("rknn_wait"); }

rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context, uint64_t, void*, uint32_t) {
  return refuse_memory("rknn_create_mem_from_phys");
}
rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context, int32_t, void*, uint32_t, int32_t) {
  return refuse_memory("rknn_create_mem_from_fd");
}
rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context, void*, int32_t) {
  return refuse_memory("rknn_create_mem_from_mb_blk");
}
rknn_tensor_mem* rknn_create_mem(rknn_context, uint32_t) { return refuse_memory("rknn_create_mem"); }
rknn_tensor_mem* rknn_create_mem2(rknn_context, uint64_t, uint64_t) { return refuse_memory("rknn_create_mem2"); }
int rknn_destroy_mem(rknn_context, rknn_tensor_mem*) { return refuse("rknn_destroy_mem"); }
int rknn_set_weight_mem(rknn_context, rknn_tensor_mem*) { return refuse("rknn_set_weight_mem"); }
int rknn_set_internal_mem(rknn_context, rknn_tensor_mem*) { return refuse("rknn_set_internal_mem"); }
int rknn_set_io_mem(rknn_context, rknn_tensor_mem*, rknn_tensor_attr*) { return refuse("rknn_set_io_mem"); }
int rknn_mem_sync(rknn_context, rknn_tensor_mem*, rknn_mem_sync_mode) { return refuse("rknn_mem_sync"); }

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
