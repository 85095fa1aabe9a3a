/* Made by make_abi_layout.py: fails to compile when a header differs from the published ABI (64-bit), and to link when a
 * function is missing. */
#include <stddef.h>
#include <stdio.h>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"

#define CHECK(name, condition) typedef char name[(condition) ? 1 : -1]

CHECK(size_of_rknn_input_output_num, sizeof(rknn_input_output_num) == 8);
CHECK(size_of_rknn_tensor_attr, sizeof(rknn_tensor_attr) == 376);
CHECK(size_of_rknn_input_range, sizeof(rknn_input_range) == 33040);
CHECK(size_of_rknn_perf_detail, sizeof(rknn_perf_detail) == 16);
CHECK(size_of_rknn_perf_run, sizeof(rknn_perf_run) == 8);
CHECK(size_of_rknn_sdk_version, sizeof(rknn_sdk_version) == 512);
CHECK(size_of_rknn_mem_size, sizeof(rknn_mem_size) == 64);
CHECK(size_of_rknn_custom_string, sizeof(rknn_custom_string) == 1024);
CHECK(size_of_rknn_tensor_mem, sizeof(rknn_tensor_mem) == 40);
CHECK(size_of_rknn_input, sizeof(rknn_input) == 32);
CHECK(size_of_rknn_output, sizeof(rknn_output) == 24);
CHECK(size_of_rknn_init_extend, sizeof(rknn_init_extend) == 136);
CHECK(size_of_rknn_run_extend, sizeof(rknn_run_extend) == 24);
CHECK(size_of_rknn_output_extend, sizeof(rknn_output_extend) == 8);
CHECK(size_of_rknn_quant_params, sizeof(rknn_quant_params) == 288);
CHECK(size_of_rknn_matmul_tensor_attr, sizeof(rknn_matmul_tensor_attr) == 332);
CHECK(size_of_rknn_matmul_io_attr, sizeof(rknn_matmul_io_attr) == 996);
CHECK(size_of_rknn_matmul_shape, sizeof(rknn_matmul_shape) == 12);
CHECK(size_of_rknn_matmul_info, sizeof(rknn_matmul_info) == 64);
CHECK(size_of_rknn_gpu_op_context, sizeof(rknn_gpu_op_context) == 24);
CHECK(size_of_rknn_custom_op_context, sizeof(rknn_custom_op_context) == 48);
CHECK(size_of_rknn_custom_op_tensor, sizeof(rknn_custom_op_tensor) == 416);
CHECK(size_of_rknn_custom_op_attr, sizeof(rknn_custom_op_attr) == 272);
CHECK(size_of_rknn_custom_op, sizeof(rknn_custom_op) == 832);
CHECK(offset_of_rknn_input_output_num_n_input, offsetof(rknn_input_output_num, n_input) == 0);
CHECK(offset_of_rknn_input_output_num_n_output, offsetof(rknn_input_output_num, n_output) == 4);
CHECK(offset_of_rknn_tensor_attr_index, offsetof(rknn_tensor_attr, index) == 0);
CHECK(offset_of_rknn_tensor_attr_n_dims, offsetof(rknn_tensor_attr, n_dims) == 4);
CHECK(offset_of_rknn_tensor_attr_dims, offsetof(rknn_tensor_attr, dims) == 8);
CHECK(offset_of_rknn_tensor_attr_name, offsetof(rknn_tensor_attr, name) == 72);
CHECK(offset_of_rknn_tensor_attr_n_elems, offsetof(rknn_tensor_attr, n_elems) == 328);
CHECK(offset_of_rknn_tensor_attr_size, offsetof(rknn_tensor_attr, size) == 332);
CHECK(offset_of_rknn_tensor_attr_fmt, offsetof(rknn_tensor_attr, fmt) == 336);
CHECK(offset_of_rknn_tensor_attr_type, offsetof(rknn_tensor_attr, type) == 340);
CHECK(offset_of_rknn_tensor_attr_qnt_type, offsetof(rknn_tensor_attr, qnt_type) == 344);
CHECK(offset_of_rknn_tensor_attr_fl, offsetof(rknn_tensor_attr, fl) == 348);
CHECK(offset_of_rknn_tensor_attr_zp, offsetof(rknn_tensor_attr, zp) == 352);
CHECK(offset_of_rknn_tensor_attr_scale, offsetof(rknn_tensor_attr, scale) == 356);
CHECK(offset_of_rknn_tensor_attr_w_stride, offsetof(rknn_tensor_attr, w_stride) == 360);
CHECK(offset_of_rknn_tensor_attr_size_with_stride, offsetof(rknn_tensor_attr, size_with_stride) == 364);
CHECK(offset_of_rknn_tensor_attr_pass_through, offsetof(rknn_tensor_attr, pass_through) == 368);
CHECK(offset_of_rknn_tensor_attr_h_stride, offsetof(rknn_tensor_attr, h_stride) == 372);
CHECK(offset_of_rknn_input_range_index, offsetof(rknn_input_range, index) == 0);
CHECK(offset_of_rknn_input_range_shape_number, offsetof(rknn_input_range, shape_number) == 4);
CHECK(offset_of_rknn_input_range_fmt, offsetof(rknn_input_range, fmt) == 8);
CHECK(offset_of_rknn_input_range_name, offsetof(rknn_input_range, name) == 12);
CHECK(offset_of_rknn_input_range_dyn_range, offsetof(rknn_input_range, dyn_range) == 268);
CHECK(offset_of_rknn_input_range_n_dims, offsetof(rknn_input_range, n_dims) == 33036);
CHECK(offset_of_rknn_perf_detail_perf_data, offsetof(rknn_perf_detail, perf_data) == 0);
CHECK(offset_of_rknn_perf_detail_data_len, offsetof(rknn_perf_detail, data_len) == 8);
CHECK(offset_of_rknn_perf_run_run_duration, offsetof(rknn_perf_run, run_duration) == 0);
CHECK(offset_of_rknn_sdk_version_api_version, offsetof(rknn_sdk_version, api_version) == 0);
CHECK(offset_of_rknn_sdk_version_drv_version, offsetof(rknn_sdk_version, drv_version) == 256);
CHECK(offset_of_rknn_mem_size_total_weight_size, offsetof(rknn_mem_size, total_weight_size) == 0);
CHECK(offset_of_rknn_mem_size_total_internal_size, offsetof(rknn_mem_size, total_internal_size) == 4);
CHECK(offset_of_rknn_mem_size_total_dma_allocated_size, offsetof(rknn_mem_size, total_dma_allocated_size) == 8);
CHECK(offset_of_rknn_mem_size_total_sram_size, offsetof(rknn_mem_size, total_sram_size) == 16);
CHECK(offset_of_rknn_mem_size_free_sram_size, offsetof(rknn_mem_size, free_sram_size) == 20);
CHECK(offset_of_rknn_mem_size_reserved, offsetof(rknn_mem_size, reserved) == 24);
CHECK(offset_of_rknn_custom_string_string, offsetof(rknn_custom_string, string) == 0);
CHECK(offset_of_rknn_tensor_mem_virt_addr, offsetof(rknn_tensor_mem, virt_addr) == 0);
CHECK(offset_of_rknn_tensor_mem_phys_addr, offsetof(rknn_tensor_mem, phys_addr) == 8);
CHECK(offset_of_rknn_tensor_mem_fd, offsetof(rknn_tensor_mem, fd) == 16);
CHECK(offset_of_rknn_tensor_mem_offset, offsetof(rknn_tensor_mem, offset) == 20);
CHECK(offset_of_rknn_tensor_mem_size, offsetof(rknn_tensor_mem, size) == 24);
CHECK(offset_of_rknn_tensor_mem_flags, offsetof(rknn_tensor_mem, flags) == 28);
CHECK(offset_of_rknn_tensor_mem_priv_data, offsetof(rknn_tensor_mem, priv_data) == 32);
CHECK(offset_of_rknn_input_index, offsetof(rknn_input, index) == 0);
CHECK(offset_of_rknn_input_buf, offsetof(rknn_input, buf) == 8);
CHECK(offset_of_rknn_input_size, offsetof(rknn_input, size) == 16);
CHECK(offset_of_rknn_input_pass_through, offsetof(rknn_input, pass_through) == 20);
CHECK(offset_of_rknn_input_type, offsetof(rknn_input, type) == 24);
CHECK(offset_of_rknn_input_fmt, offsetof(rknn_input, fmt) == 28);
CHECK(offset_of_rknn_output_want_float, offsetof(rknn_output, want_float) == 0);
CHECK(offset_of_rknn_output_is_prealloc, offsetof(rknn_output, is_prealloc) == 1);
CHECK(offset_of_rknn_output_index, offsetof(rknn_output, index) == 4);
CHECK(offset_of_rknn_output_buf, offsetof(rknn_output, buf) == 8);
CHECK(offset_of_rknn_output_size, offsetof(rknn_output, size) == 16);
CHECK(offset_of_rknn_init_extend_ctx, offsetof(rknn_init_extend, ctx) == 0);
CHECK(offset_of_rknn_init_extend_real_model_offset, offsetof(rknn_init_extend, real_model_offset) == 8);
CHECK(offset_of_rknn_init_extend_real_model_size, offsetof(rknn_init_extend, real_model_size) == 12);
CHECK(offset_of_rknn_init_extend_model_buffer_fd, offsetof(rknn_init_extend, model_buffer_fd) == 16);
CHECK(offset_of_rknn_init_extend_model_buffer_flags, offsetof(rknn_init_extend, model_buffer_flags) == 20);
CHECK(offset_of_rknn_init_extend_reserved, offsetof(rknn_init_extend, reserved) == 24);
CHECK(offset_of_rknn_run_extend_frame_id, offsetof(rknn_run_extend, frame_id) == 0);
CHECK(offset_of_rknn_run_extend_non_block, offsetof(rknn_run_extend, non_block) == 8);
CHECK(offset_of_rknn_run_extend_timeout_ms, offsetof(rknn_run_extend, timeout_ms) == 12);
CHECK(offset_of_rknn_run_extend_fence_fd, offsetof(rknn_run_extend, fence_fd) == 16);
CHECK(offset_of_rknn_output_extend_frame_id, offsetof(rknn_output_extend, frame_id) == 0);
CHECK(offset_of_rknn_quant_params_name, offsetof(rknn_quant_params, name) == 0);
CHECK(offset_of_rknn_quant_params_scale, offsetof(rknn_quant_params, scale) == 256);
CHECK(offset_of_rknn_quant_params_scale_len, offsetof(rknn_quant_params, scale_len) == 264);
CHECK(offset_of_rknn_quant_params_zp, offsetof(rknn_quant_params, zp) == 272);
CHECK(offset_of_rknn_quant_params_zp_len, offsetof(rknn_quant_params, zp_len) == 280);
CHECK(offset_of_rknn_matmul_tensor_attr_name, offsetof(rknn_matmul_tensor_attr, name) == 0);
CHECK(offset_of_rknn_matmul_tensor_attr_n_dims, offsetof(rknn_matmul_tensor_attr, n_dims) == 256);
CHECK(offset_of_rknn_matmul_tensor_attr_dims, offsetof(rknn_matmul_tensor_attr, dims) == 260);
CHECK(offset_of_rknn_matmul_tensor_attr_size, offsetof(rknn_matmul_tensor_attr, size) == 324);
CHECK(offset_of_rknn_matmul_tensor_attr_type, offsetof(rknn_matmul_tensor_attr, type) == 328);
CHECK(offset_of_rknn_matmul_io_attr_A, offsetof(rknn_matmul_io_attr, A) == 0);
CHECK(offset_of_rknn_matmul_io_attr_B, offsetof(rknn_matmul_io_attr, B) == 332);
CHECK(offset_of_rknn_matmul_io_attr_C, offsetof(rknn_matmul_io_attr, C) == 664);
CHECK(offset_of_rknn_matmul_shape_M, offsetof(rknn_matmul_shape, M) == 0);
CHECK(offset_of_rknn_matmul_shape_K, offsetof(rknn_matmul_shape, K) == 4);
CHECK(offset_of_rknn_matmul_shape_N, offsetof(rknn_matmul_shape, N) == 8);
CHECK(offset_of_rknn_matmul_info_M, offsetof(rknn_matmul_info, M) == 0);
CHECK(offset_of_rknn_matmul_info_K, offsetof(rknn_matmul_info, K) == 4);
CHECK(offset_of_rknn_matmul_info_N, offsetof(rknn_matmul_info, N) == 8);
CHECK(offset_of_rknn_matmul_info_type, offsetof(rknn_matmul_info, type) == 12);
CHECK(offset_of_rknn_matmul_info_B_layout, offsetof(rknn_matmul_info, B_layout) == 16);
CHECK(offset_of_rknn_matmul_info_B_quant_type, offsetof(rknn_matmul_info, B_quant_type) == 18);
CHECK(offset_of_rknn_matmul_info_AC_layout, offsetof(rknn_matmul_info, AC_layout) == 20);
CHECK(offset_of_rknn_matmul_info_AC_quant_type, offsetof(rknn_matmul_info, AC_quant_type) == 22);
CHECK(offset_of_rknn_matmul_info_iommu_domain_id, offsetof(rknn_matmul_info, iommu_domain_id) == 24);
CHECK(offset_of_rknn_matmul_info_group_size, offsetof(rknn_matmul_info, group_size) == 28);
CHECK(offset_of_rknn_matmul_info_reserved, offsetof(rknn_matmul_info, reserved) == 30);
CHECK(offset_of_rknn_gpu_op_context_cl_context, offsetof(rknn_gpu_op_context, cl_context) == 0);
CHECK(offset_of_rknn_gpu_op_context_cl_command_queue, offsetof(rknn_gpu_op_context, cl_command_queue) == 8);
CHECK(offset_of_rknn_gpu_op_context_cl_kernel, offsetof(rknn_gpu_op_context, cl_kernel) == 16);
CHECK(offset_of_rknn_custom_op_context_target, offsetof(rknn_custom_op_context, target) == 0);
CHECK(offset_of_rknn_custom_op_context_internal_ctx, offsetof(rknn_custom_op_context, internal_ctx) == 8);
CHECK(offset_of_rknn_custom_op_context_gpu_ctx, offsetof(rknn_custom_op_context, gpu_ctx) == 16);
CHECK(offset_of_rknn_custom_op_context_priv_data, offsetof(rknn_custom_op_context, priv_data) == 40);
CHECK(offset_of_rknn_custom_op_tensor_attr, offsetof(rknn_custom_op_tensor, attr) == 0);
CHECK(offset_of_rknn_custom_op_tensor_mem, offsetof(rknn_custom_op_tensor, mem) == 376);
CHECK(offset_of_rknn_custom_op_attr_name, offsetof(rknn_custom_op_attr, name) == 0);
CHECK(offset_of_rknn_custom_op_attr_dtype, offsetof(rknn_custom_op_attr, dtype) == 256);
CHECK(offset_of_rknn_custom_op_attr_n_elems, offsetof(rknn_custom_op_attr, n_elems) == 260);
CHECK(offset_of_rknn_custom_op_attr_data, offsetof(rknn_custom_op_attr, data) == 264);
CHECK(offset_of_rknn_custom_op_version, offsetof(rknn_custom_op, version) == 0);
CHECK(offset_of_rknn_custom_op_target, offsetof(rknn_custom_op, target) == 4);
CHECK(offset_of_rknn_custom_op_op_type, offsetof(rknn_custom_op, op_type) == 8);
CHECK(offset_of_rknn_custom_op_cl_kernel_name, offsetof(rknn_custom_op, cl_kernel_name) == 264);
CHECK(offset_of_rknn_custom_op_cl_kernel_source, offsetof(rknn_custom_op, cl_kernel_source) == 520);
CHECK(offset_of_rknn_custom_op_cl_source_size, offsetof(rknn_custom_op, cl_source_size) == 528);
CHECK(offset_of_rknn_custom_op_cl_build_options, offsetof(rknn_custom_op, cl_build_options) == 536);
CHECK(offset_of_rknn_custom_op_init, offsetof(rknn_custom_op, init) == 792);
CHECK(offset_of_rknn_custom_op_prepare, offsetof(rknn_custom_op, prepare) == 800);
CHECK(offset_of_rknn_custom_op_compute, offsetof(rknn_custom_op, compute) == 808);
CHECK(offset_of_rknn_custom_op_compute_native, offsetof(rknn_custom_op, compute_native) == 816);
CHECK(offset_of_rknn_custom_op_destroy, offsetof(rknn_custom_op, destroy) == 824);
CHECK(value_of_RKNN_QUERY_IN_OUT_NUM, (long)(RKNN_QUERY_IN_OUT_NUM) == 0L);
CHECK(value_of_RKNN_QUERY_INPUT_ATTR, (long)(RKNN_QUERY_INPUT_ATTR) == 1L);
CHECK(value_of_RKNN_QUERY_OUTPUT_ATTR, (long)(RKNN_QUERY_OUTPUT_ATTR) == 2L);
CHECK(value_of_RKNN_QUERY_PERF_DETAIL, (long)(RKNN_QUERY_PERF_DETAIL) == 3L);
CHECK(value_of_RKNN_QUERY_PERF_RUN, (long)(RKNN_QUERY_PERF_RUN) == 4L);
CHECK(value_of_RKNN_QUERY_SDK_VERSION, (long)(RKNN_QUERY_SDK_VERSION) == 5L);
CHECK(value_of_RKNN_QUERY_MEM_SIZE, (long)(RKNN_QUERY_MEM_SIZE) == 6L);
CHECK(value_of_RKNN_QUERY_CUSTOM_STRING, (long)(RKNN_QUERY_CUSTOM_STRING) == 7L);
CHECK(value_of_RKNN_QUERY_NATIVE_INPUT_ATTR, (long)(RKNN_QUERY_NATIVE_INPUT_ATTR) == 8L);
CHECK(value_of_RKNN_QUERY_NATIVE_OUTPUT_ATTR, (long)(RKNN_QUERY_NATIVE_OUTPUT_ATTR) == 9L);
CHECK(value_of_RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR, (long)(RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR) == 8L);
CHECK(value_of_RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR, (long)(RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR) == 9L);
CHECK(value_of_RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR, (long)(RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR) == 10L);
CHECK(value_of_RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR, (long)(RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR) == 11L);
CHECK(value_of_RKNN_QUERY_DEVICE_MEM_INFO, (long)(RKNN_QUERY_DEVICE_MEM_INFO) == 12L);
CHECK(value_of_RKNN_QUERY_INPUT_DYNAMIC_RANGE, (long)(RKNN_QUERY_INPUT_DYNAMIC_RANGE) == 13L);
CHECK(value_of_RKNN_QUERY_CURRENT_INPUT_ATTR, (long)(RKNN_QUERY_CURRENT_INPUT_ATTR) == 14L);
CHECK(value_of_RKNN_QUERY_CURRENT_OUTPUT_ATTR, (long)(RKNN_QUERY_CURRENT_OUTPUT_ATTR) == 15L);
CHECK(value_of_RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR, (long)(RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR) == 16L);
CHECK(value_of_RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR, (long)(RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR) == 17L);
CHECK(value_of_RKNN_QUERY_CMD_MAX, (long)(RKNN_QUERY_CMD_MAX) == 18L);
CHECK(value_of_RKNN_TENSOR_FLOAT32, (long)(RKNN_TENSOR_FLOAT32) == 0L);
CHECK(value_of_RKNN_TENSOR_FLOAT16, (long)(RKNN_TENSOR_FLOAT16) == 1L);
CHECK(value_of_RKNN_TENSOR_INT8, (long)(RKNN_TENSOR_INT8) == 2L);
CHECK(value_of_RKNN_TENSOR_UINT8, (long)(RKNN_TENSOR_UINT8) == 3L);
CHECK(value_of_RKNN_TENSOR_INT16, (long)(RKNN_TENSOR_INT16) == 4L);
CHECK(value_of_RKNN_TENSOR_UINT16, (long)(RKNN_TENSOR_UINT16) == 5L);
CHECK(value_of_RKNN_TENSOR_INT32, (long)(RKNN_TENSOR_INT32) == 6L);
CHECK(value_of_RKNN_TENSOR_UINT32, (long)(RKNN_TENSOR_UINT32) == 7L);
CHECK(value_of_RKNN_TENSOR_INT64, (long)(RKNN_TENSOR_INT64) == 8L);
CHECK(value_of_RKNN_TENSOR_BOOL, (long)(RKNN_TENSOR_BOOL) == 9L);
CHECK(value_of_RKNN_TENSOR_INT4, (long)(RKNN_TENSOR_INT4) == 10L);
CHECK(value_of_RKNN_TENSOR_BFLOAT16, (long)(RKNN_TENSOR_BFLOAT16) == 11L);
CHECK(value_of_RKNN_TENSOR_TYPE_MAX, (long)(RKNN_TENSOR_TYPE_MAX) == 12L);
CHECK(value_of_RKNN_TENSOR_QNT_NONE, (long)(RKNN_TENSOR_QNT_NONE) == 0L);
CHECK(value_of_RKNN_TENSOR_QNT_DFP, (long)(RKNN_TENSOR_QNT_DFP) == 1L);
CHECK(value_of_RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC, (long)(RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC) == 2L);
CHECK(value_of_RKNN_TENSOR_QNT_MAX, (long)(RKNN_TENSOR_QNT_MAX) == 3L);
CHECK(value_of_RKNN_TENSOR_NCHW, (long)(RKNN_TENSOR_NCHW) == 0L);
CHECK(value_of_RKNN_TENSOR_NHWC, (long)(RKNN_TENSOR_NHWC) == 1L);
CHECK(value_of_RKNN_TENSOR_NC1HWC2, (long)(RKNN_TENSOR_NC1HWC2) == 2L);
CHECK(value_of_RKNN_TENSOR_UNDEFINED, (long)(RKNN_TENSOR_UNDEFINED) == 3L);
CHECK(value_of_RKNN_TENSOR_FORMAT_MAX, (long)(RKNN_TENSOR_FORMAT_MAX) == 4L);
CHECK(value_of_RKNN_NPU_CORE_AUTO, (long)(RKNN_NPU_CORE_AUTO) == 0L);
CHECK(value_of_RKNN_NPU_CORE_0, (long)(RKNN_NPU_CORE_0) == 1L);
CHECK(value_of_RKNN_NPU_CORE_1, (long)(RKNN_NPU_CORE_1) == 2L);
CHECK(value_of_RKNN_NPU_CORE_2, (long)(RKNN_NPU_CORE_2) == 4L);
CHECK(value_of_RKNN_NPU_CORE_0_1, (long)(RKNN_NPU_CORE_0_1) == 3L);
CHECK(value_of_RKNN_NPU_CORE_0_1_2, (long)(RKNN_NPU_CORE_0_1_2) == 7L);
CHECK(value_of_RKNN_NPU_CORE_ALL, (long)(RKNN_NPU_CORE_ALL) == 65535L);
CHECK(value_of_RKNN_NPU_CORE_UNDEFINED, (long)(RKNN_NPU_CORE_UNDEFINED) == 65536L);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE, (long)(RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE) == 1L);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_FROM_FD, (long)(RKNN_TENSOR_MEMORY_FLAGS_FROM_FD) == 2L);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS, (long)(RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS) == 3L);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN, (long)(RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN) == 4L);
CHECK(value_of_RKNN_FLAG_MEMORY_FLAGS_DEFAULT, (long)(RKNN_FLAG_MEMORY_FLAGS_DEFAULT) == 0L);
CHECK(value_of_RKNN_FLAG_MEMORY_CACHEABLE, (long)(RKNN_FLAG_MEMORY_CACHEABLE) == 1L);
CHECK(value_of_RKNN_FLAG_MEMORY_NON_CACHEABLE, (long)(RKNN_FLAG_MEMORY_NON_CACHEABLE) == 2L);
CHECK(value_of_RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM, (long)(RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM) == 4L);
CHECK(value_of_RKNN_MEMORY_SYNC_TO_DEVICE, (long)(RKNN_MEMORY_SYNC_TO_DEVICE) == 1L);
CHECK(value_of_RKNN_MEMORY_SYNC_FROM_DEVICE, (long)(RKNN_MEMORY_SYNC_FROM_DEVICE) == 2L);
CHECK(value_of_RKNN_MEMORY_SYNC_BIDIRECTIONAL, (long)(RKNN_MEMORY_SYNC_BIDIRECTIONAL) == 3L);
CHECK(value_of_RKNN_QUANT_TYPE_PER_LAYER_SYM, (long)(RKNN_QUANT_TYPE_PER_LAYER_SYM) == 0L);
CHECK(value_of_RKNN_QUANT_TYPE_PER_LAYER_ASYM, (long)(RKNN_QUANT_TYPE_PER_LAYER_ASYM) == 1L);
CHECK(value_of_RKNN_QUANT_TYPE_PER_CHANNEL_SYM, (long)(RKNN_QUANT_TYPE_PER_CHANNEL_SYM) == 2L);
CHECK(value_of_RKNN_QUANT_TYPE_PER_CHANNEL_ASYM, (long)(RKNN_QUANT_TYPE_PER_CHANNEL_ASYM) == 3L);
CHECK(value_of_RKNN_QUANT_TYPE_PER_GROUP_SYM, (long)(RKNN_QUANT_TYPE_PER_GROUP_SYM) == 4L);
CHECK(value_of_RKNN_QUANT_TYPE_PER_GROUP_ASYM, (long)(RKNN_QUANT_TYPE_PER_GROUP_ASYM) == 5L);
CHECK(value_of_RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, (long)(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32) == 1L);
CHECK(value_of_RKNN_INT8_MM_INT8_TO_INT32, (long)(RKNN_INT8_MM_INT8_TO_INT32) == 2L);
CHECK(value_of_RKNN_INT8_MM_INT8_TO_INT8, (long)(RKNN_INT8_MM_INT8_TO_INT8) == 3L);
CHECK(value_of_RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16, (long)(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16) == 4L);
CHECK(value_of_RKNN_FLOAT16_MM_INT8_TO_FLOAT32, (long)(RKNN_FLOAT16_MM_INT8_TO_FLOAT32) == 5L);
CHECK(value_of_RKNN_FLOAT16_MM_INT8_TO_FLOAT16, (long)(RKNN_FLOAT16_MM_INT8_TO_FLOAT16) == 6L);
CHECK(value_of_RKNN_FLOAT16_MM_INT4_TO_FLOAT32, (long)(RKNN_FLOAT16_MM_INT4_TO_FLOAT32) == 7L);
CHECK(value_of_RKNN_FLOAT16_MM_INT4_TO_FLOAT16, (long)(RKNN_FLOAT16_MM_INT4_TO_FLOAT16) == 8L);
CHECK(value_of_RKNN_INT8_MM_INT8_TO_FLOAT32, (long)(RKNN_INT8_MM_INT8_TO_FLOAT32) == 9L);
CHECK(value_of_RKNN_INT4_MM_INT4_TO_INT16, (long)(RKNN_INT4_MM_INT4_TO_INT16) == 10L);
CHECK(value_of_RKNN_INT8_MM_INT4_TO_INT32, (long)(RKNN_INT8_MM_INT4_TO_INT32) == 11L);
CHECK(value_of_RKNN_FLOAT16_MM_INT4_TO_BFLOAT16, (long)(RKNN_FLOAT16_MM_INT4_TO_BFLOAT16) == 12L);
CHECK(value_of_RKNN_INT8_MM_INT4_TO_FLOAT16, (long)(RKNN_INT8_MM_INT4_TO_FLOAT16) == 15L);
CHECK(value_of_RKNN_MM_LAYOUT_NORM, (long)(RKNN_MM_LAYOUT_NORM) == 0L);
CHECK(value_of_RKNN_MM_LAYOUT_NATIVE, (long)(RKNN_MM_LAYOUT_NATIVE) == 1L);
CHECK(value_of_RKNN_MM_LAYOUT_TP_NORM, (long)(RKNN_MM_LAYOUT_TP_NORM) == 2L);
CHECK(value_of_RKNN_TARGET_TYPE_CPU, (long)(RKNN_TARGET_TYPE_CPU) == 1L);
CHECK(value_of_RKNN_TARGET_TYPE_GPU, (long)(RKNN_TARGET_TYPE_GPU) == 2L);
CHECK(value_of_RKNN_TARGET_TYPE_MAX, (long)(RKNN_TARGET_TYPE_MAX) == 3L);
CHECK(value_of_RKNN_FLAG_PRIOR_HIGH, (long)(RKNN_FLAG_PRIOR_HIGH) == 0L);
CHECK(value_of_RKNN_FLAG_PRIOR_MEDIUM, (long)(RKNN_FLAG_PRIOR_MEDIUM) == 1L);
CHECK(value_of_RKNN_FLAG_PRIOR_LOW, (long)(RKNN_FLAG_PRIOR_LOW) == 2L);
CHECK(value_of_RKNN_FLAG_ASYNC_MASK, (long)(RKNN_FLAG_ASYNC_MASK) == 4L);
CHECK(value_of_RKNN_FLAG_COLLECT_PERF_MASK, (long)(RKNN_FLAG_COLLECT_PERF_MASK) == 8L);
CHECK(value_of_RKNN_FLAG_MEM_ALLOC_OUTSIDE, (long)(RKNN_FLAG_MEM_ALLOC_OUTSIDE) == 16L);
CHECK(value_of_RKNN_FLAG_SHARE_WEIGHT_MEM, (long)(RKNN_FLAG_SHARE_WEIGHT_MEM) == 32L);
CHECK(value_of_RKNN_FLAG_FENCE_IN_OUTSIDE, (long)(RKNN_FLAG_FENCE_IN_OUTSIDE) == 64L);
CHECK(value_of_RKNN_FLAG_FENCE_OUT_OUTSIDE, (long)(RKNN_FLAG_FENCE_OUT_OUTSIDE) == 128L);
CHECK(value_of_RKNN_FLAG_COLLECT_MODEL_INFO_ONLY, (long)(RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) == 256L);
CHECK(value_of_RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE, (long)(RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE) == 512L);
CHECK(value_of_RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU, (long)(RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU) == 1024L);
CHECK(value_of_RKNN_FLAG_ENABLE_SRAM, (long)(RKNN_FLAG_ENABLE_SRAM) == 2048L);
CHECK(value_of_RKNN_FLAG_SHARE_SRAM, (long)(RKNN_FLAG_SHARE_SRAM) == 4096L);
CHECK(value_of_RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY, (long)(RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY) == 8192L);
CHECK(value_of_RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, (long)(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE) == 16384L);
CHECK(value_of_RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE, (long)(RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE) == 32768L);
CHECK(value_of_RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, (long)(RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) == 65536L);
CHECK(value_of_RKNN_MEM_FLAG_ALLOC_NO_CONTEXT, (long)(RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) == 131072L);
CHECK(value_of_RKNN_SUCC, (long)(RKNN_SUCC) == 0L);
CHECK(value_of_RKNN_ERR_FAIL, (long)(RKNN_ERR_FAIL) == -1L);
CHECK(value_of_RKNN_ERR_TIMEOUT, (long)(RKNN_ERR_TIMEOUT) == -2L);
CHECK(value_of_RKNN_ERR_DEVICE_UNAVAILABLE, (long)(RKNN_ERR_DEVICE_UNAVAILABLE) == -3L);
CHECK(value_of_RKNN_ERR_MALLOC_FAIL, (long)(RKNN_ERR_MALLOC_FAIL) == -4L);
CHECK(value_of_RKNN_ERR_PARAM_INVALID, (long)(RKNN_ERR_PARAM_INVALID) == -5L);
CHECK(value_of_RKNN_ERR_MODEL_INVALID, (long)(RKNN_ERR_MODEL_INVALID) == -6L);
CHECK(value_of_RKNN_ERR_CTX_INVALID, (long)(RKNN_ERR_CTX_INVALID) == -7L);
CHECK(value_of_RKNN_ERR_INPUT_INVALID, (long)(RKNN_ERR_INPUT_INVALID) == -8L);
CHECK(value_of_RKNN_ERR_OUTPUT_INVALID, (long)(RKNN_ERR_OUTPUT_INVALID) == -9L);
CHECK(value_of_RKNN_ERR_DEVICE_UNMATCH, (long)(RKNN_ERR_DEVICE_UNMATCH) == -10L);
CHECK(value_of_RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL, (long)(RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL) == -11L);
CHECK(value_of_RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION, (long)(RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION) == -12L);
CHECK(value_of_RKNN_ERR_TARGET_PLATFORM_UNMATCH, (long)(RKNN_ERR_TARGET_PLATFORM_UNMATCH) == -13L);
CHECK(value_of_RKNN_MAX_DIMS, (long)(RKNN_MAX_DIMS) == 16L);
CHECK(value_of_RKNN_MAX_NUM_CHANNEL, (long)(RKNN_MAX_NUM_CHANNEL) == 15L);
CHECK(value_of_RKNN_MAX_NAME_LEN, (long)(RKNN_MAX_NAME_LEN) == 256L);
CHECK(value_of_RKNN_MAX_DYNAMIC_SHAPE_NUM, (long)(RKNN_MAX_DYNAMIC_SHAPE_NUM) == 512L);
CHECK(value_of_RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE, (long)(RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE) == -14L);
CHECK(value_of_RKNN_CUSTOM_OP_MAX_STR_LEN, (long)(RKNN_CUSTOM_OP_MAX_STR_LEN) == 64L);
CHECK(value_of_RKNN_CUSTOM_OP_MAX_VALUE_LEN, (long)(RKNN_CUSTOM_OP_MAX_VALUE_LEN) == 32L);
CHECK(size_of_enums, sizeof(rknn_query_cmd) == 4 && sizeof(rknn_tensor_type) == 4 && sizeof(rknn_matmul_type) == 4);

typedef void (*any_function)(void);

static const struct {
  const char* name;
  any_function function;
} functions[] = {
    {"rknn_init", (any_function)rknn_init},
    {"rknn_dup_context", (any_function)rknn_dup_context},
    {"rknn_destroy", (any_function)rknn_destroy},
    {"rknn_query", (any_function)rknn_query},
    {"rknn_inputs_set", (any_function)rknn_inputs_set},
    {"rknn_set_batch_core_num", (any_function)rknn_set_batch_core_num},
    {"rknn_set_core_mask", (any_function)rknn_set_core_mask},
    {"rknn_run", (any_function)rknn_run},
    {"rknn_wait", (any_function)rknn_wait},
    {"rknn_outputs_get", (any_function)rknn_outputs_get},
    {"rknn_outputs_release", (any_function)rknn_outputs_release},
    {"rknn_create_mem_from_phys", (any_function)rknn_create_mem_from_phys},
    {"rknn_create_mem_from_fd", (any_function)rknn_create_mem_from_fd},
    {"rknn_create_mem_from_mb_blk", (any_function)rknn_create_mem_from_mb_blk},
    {"rknn_create_mem", (any_function)rknn_create_mem},
    {"rknn_create_mem2", (any_function)rknn_create_mem2},
    {"rknn_destroy_mem", (any_function)rknn_destroy_mem},
    {"rknn_set_weight_mem", (any_function)rknn_set_weight_mem},
    {"rknn_set_internal_mem", (any_function)rknn_set_internal_mem},
    {"rknn_set_io_mem", (any_function)rknn_set_io_mem},
    {"rknn_set_input_shape", (any_function)rknn_set_input_shape},
    {"rknn_set_input_shapes", (any_function)rknn_set_input_shapes},
    {"rknn_mem_sync", (any_function)rknn_mem_sync},
    {"rknn_matmul_create", (any_function)rknn_matmul_create},
    {"rknn_matmul_create_dynamic_shape", (any_function)rknn_matmul_create_dynamic_shape},
    {"rknn_matmul_set_io_mem", (any_function)rknn_matmul_set_io_mem},
    {"rknn_matmul_set_core_mask", (any_function)rknn_matmul_set_core_mask},
    {"rknn_matmul_set_quant_params", (any_function)rknn_matmul_set_quant_params},
    {"rknn_matmul_get_quant_params", (any_function)rknn_matmul_get_quant_params},
    {"rknn_matmul_set_dynamic_shape", (any_function)rknn_matmul_set_dynamic_shape},
    {"rknn_matmul_run", (any_function)rknn_matmul_run},
    {"rknn_matmul_destroy", (any_function)rknn_matmul_destroy},
    {"rknn_B_normal_layout_to_native_layout", (any_function)rknn_B_normal_layout_to_native_layout},
    {"rknn_register_custom_ops", (any_function)rknn_register_custom_ops},
    {"rknn_custom_op_get_op_attr", (any_function)rknn_custom_op_get_op_attr},
};

int main(void) {
  size_t i, missing = 0, count = sizeof functions / sizeof functions[0];
  for (i = 0; i < count; ++i)
    if (!functions[i].function) {
      printf("%s is missing\n", functions[i].name);
      ++missing;
    }
  printf("%lu functions\n", (unsigned long)(count - missing));
  return missing != 0;
}
