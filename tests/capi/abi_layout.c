/* Made by make_abi_layout.py: fails to compile when a header differs from the published ABI, and to link when a function is
 * missing. */
#include <stddef.h>
#include <stdio.h>

#include "rknn_api.h"
#include "rknn_custom_op.h"
#include "rknn_matmul_api.h"

#define CHECK(name, condition) typedef char name[(condition) ? 1 : -1]

#if defined(__arm__)
CHECK(size_of_rknn_context, sizeof(rknn_context) == 4 && sizeof(rknn_matmul_ctx) == 4);
CHECK(size_of_rknn_input_output_num, sizeof(rknn_input_output_num) == 8);
CHECK(size_of_rknn_tensor_attr, sizeof(rknn_tensor_attr) == 376);
CHECK(size_of_rknn_input_range, sizeof(rknn_input_range) == 33040);
CHECK(size_of_rknn_perf_detail, sizeof(rknn_perf_detail) == 16);
CHECK(size_of_rknn_perf_run, sizeof(rknn_perf_run) == 8);
CHECK(size_of_rknn_sdk_version, sizeof(rknn_sdk_version) == 512);
CHECK(size_of_rknn_mem_size, sizeof(rknn_mem_size) == 64);
CHECK(size_of_rknn_custom_string, sizeof(rknn_custom_string) == 1024);
CHECK(size_of_rknn_tensor_mem, sizeof(rknn_tensor_mem) == 40);
CHECK(size_of_rknn_input, sizeof(rknn_input) == 24);
CHECK(size_of_rknn_output, sizeof(rknn_output) == 16);
CHECK(size_of_rknn_init_extend, sizeof(rknn_init_extend) == 132);
CHECK(size_of_rknn_run_extend, sizeof(rknn_run_extend) == 24);
CHECK(size_of_rknn_output_extend, sizeof(rknn_output_extend) == 8);
CHECK(size_of_rknn_quant_params, sizeof(rknn_quant_params) == 272);
CHECK(size_of_rknn_matmul_tensor_attr, sizeof(rknn_matmul_tensor_attr) == 332);
CHECK(size_of_rknn_matmul_io_attr, sizeof(rknn_matmul_io_attr) == 996);
CHECK(size_of_rknn_matmul_shape, sizeof(rknn_matmul_shape) == 12);
CHECK(size_of_rknn_matmul_info, sizeof(rknn_matmul_info) == 64);
CHECK(size_of_rknn_gpu_op_context, sizeof(rknn_gpu_op_context) == 12);
CHECK(size_of_rknn_custom_op_context, sizeof(rknn_custom_op_context) == 24);
CHECK(size_of_rknn_custom_op_tensor, sizeof(rknn_custom_op_tensor) == 416);
CHECK(size_of_rknn_custom_op_attr, sizeof(rknn_custom_op_attr) == 268);
CHECK(size_of_rknn_custom_op, sizeof(rknn_custom_op) == 816);
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
CHECK(offset_of_rknn_input_buf, offsetof(rknn_input, buf) == 4);
CHECK(offset_of_rknn_input_size, offsetof(rknn_input, size) == 8);
CHECK(offset_of_rknn_input_pass_through, offsetof(rknn_input, pass_through) == 12);
CHECK(offset_of_rknn_input_type, offsetof(rknn_input, type) == 16);
CHECK(offset_of_rknn_input_fmt, offsetof(rknn_input, fmt) == 20);
CHECK(offset_of_rknn_output_want_float, offsetof(rknn_output, want_float) == 0);
CHECK(offset_of_rknn_output_is_prealloc, offsetof(rknn_output, is_prealloc) == 1);
CHECK(offset_of_rknn_output_index, offsetof(rknn_output, index) == 4);
CHECK(offset_of_rknn_output_buf, offsetof(rknn_output, buf) == 8);
CHECK(offset_of_rknn_output_size, offsetof(rknn_output, size) == 12);
CHECK(offset_of_rknn_init_extend_ctx, offsetof(rknn_init_extend, ctx) == 0);
CHECK(offset_of_rknn_init_extend_real_model_offset, offsetof(rknn_init_extend, real_model_offset) == 4);
CHECK(offset_of_rknn_init_extend_real_model_size, offsetof(rknn_init_extend, real_model_size) == 8);
CHECK(offset_of_rknn_init_extend_model_buffer_fd, offsetof(rknn_init_extend, model_buffer_fd) == 12);
CHECK(offset_of_rknn_init_extend_model_buffer_flags, offsetof(rknn_init_extend, model_buffer_flags) == 16);
CHECK(offset_of_rknn_init_extend_reserved, offsetof(rknn_init_extend, reserved) == 20);
CHECK(offset_of_rknn_run_extend_frame_id, offsetof(rknn_run_extend, frame_id) == 0);
CHECK(offset_of_rknn_run_extend_non_block, offsetof(rknn_run_extend, non_block) == 8);
CHECK(offset_of_rknn_run_extend_timeout_ms, offsetof(rknn_run_extend, timeout_ms) == 12);
CHECK(offset_of_rknn_run_extend_fence_fd, offsetof(rknn_run_extend, fence_fd) == 16);
CHECK(offset_of_rknn_output_extend_frame_id, offsetof(rknn_output_extend, frame_id) == 0);
CHECK(offset_of_rknn_quant_params_name, offsetof(rknn_quant_params, name) == 0);
CHECK(offset_of_rknn_quant_params_scale, offsetof(rknn_quant_params, scale) == 256);
CHECK(offset_of_rknn_quant_params_scale_len, offsetof(rknn_quant_params, scale_len) == 260);
CHECK(offset_of_rknn_quant_params_zp, offsetof(rknn_quant_params, zp) == 264);
CHECK(offset_of_rknn_quant_params_zp_len, offsetof(rknn_quant_params, zp_len) == 268);
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
CHECK(offset_of_rknn_gpu_op_context_cl_command_queue, offsetof(rknn_gpu_op_context, cl_command_queue) == 4);
CHECK(offset_of_rknn_gpu_op_context_cl_kernel, offsetof(rknn_gpu_op_context, cl_kernel) == 8);
CHECK(offset_of_rknn_custom_op_context_target, offsetof(rknn_custom_op_context, target) == 0);
CHECK(offset_of_rknn_custom_op_context_internal_ctx, offsetof(rknn_custom_op_context, internal_ctx) == 4);
CHECK(offset_of_rknn_custom_op_context_gpu_ctx, offsetof(rknn_custom_op_context, gpu_ctx) == 8);
CHECK(offset_of_rknn_custom_op_context_priv_data, offsetof(rknn_custom_op_context, priv_data) == 20);
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
CHECK(offset_of_rknn_custom_op_prepare, offsetof(rknn_custom_op, prepare) == 796);
CHECK(offset_of_rknn_custom_op_compute, offsetof(rknn_custom_op, compute) == 800);
CHECK(offset_of_rknn_custom_op_compute_native, offsetof(rknn_custom_op, compute_native) == 804);
CHECK(offset_of_rknn_custom_op_destroy, offsetof(rknn_custom_op, destroy) == 808);
#else
CHECK(size_of_rknn_context, sizeof(rknn_context) == 8 && sizeof(rknn_matmul_ctx) == 8);
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
#endif
CHECK(value_of_RKNN_QUERY_IN_OUT_NUM, (long long)(RKNN_QUERY_IN_OUT_NUM) == 0LL);
CHECK(value_of_RKNN_QUERY_INPUT_ATTR, (long long)(RKNN_QUERY_INPUT_ATTR) == 1LL);
CHECK(value_of_RKNN_QUERY_OUTPUT_ATTR, (long long)(RKNN_QUERY_OUTPUT_ATTR) == 2LL);
CHECK(value_of_RKNN_QUERY_PERF_DETAIL, (long long)(RKNN_QUERY_PERF_DETAIL) == 3LL);
CHECK(value_of_RKNN_QUERY_PERF_RUN, (long long)(RKNN_QUERY_PERF_RUN) == 4LL);
CHECK(value_of_RKNN_QUERY_SDK_VERSION, (long long)(RKNN_QUERY_SDK_VERSION) == 5LL);
CHECK(value_of_RKNN_QUERY_MEM_SIZE, (long long)(RKNN_QUERY_MEM_SIZE) == 6LL);
CHECK(value_of_RKNN_QUERY_CUSTOM_STRING, (long long)(RKNN_QUERY_CUSTOM_STRING) == 7LL);
CHECK(value_of_RKNN_QUERY_NATIVE_INPUT_ATTR, (long long)(RKNN_QUERY_NATIVE_INPUT_ATTR) == 8LL);
CHECK(value_of_RKNN_QUERY_NATIVE_OUTPUT_ATTR, (long long)(RKNN_QUERY_NATIVE_OUTPUT_ATTR) == 9LL);
CHECK(value_of_RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR, (long long)(RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR) == 8LL);
CHECK(value_of_RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR, (long long)(RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR) == 9LL);
CHECK(value_of_RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR, (long long)(RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR) == 10LL);
CHECK(value_of_RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR, (long long)(RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR) == 11LL);
CHECK(value_of_RKNN_QUERY_DEVICE_MEM_INFO, (long long)(RKNN_QUERY_DEVICE_MEM_INFO) == 12LL);
CHECK(value_of_RKNN_QUERY_INPUT_DYNAMIC_RANGE, (long long)(RKNN_QUERY_INPUT_DYNAMIC_RANGE) == 13LL);
CHECK(value_of_RKNN_QUERY_CURRENT_INPUT_ATTR, (long long)(RKNN_QUERY_CURRENT_INPUT_ATTR) == 14LL);
CHECK(value_of_RKNN_QUERY_CURRENT_OUTPUT_ATTR, (long long)(RKNN_QUERY_CURRENT_OUTPUT_ATTR) == 15LL);
CHECK(value_of_RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR, (long long)(RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR) == 16LL);
CHECK(value_of_RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR, (long long)(RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR) == 17LL);
CHECK(value_of_RKNN_QUERY_CMD_MAX, (long long)(RKNN_QUERY_CMD_MAX) == 18LL);
CHECK(value_of_RKNN_TENSOR_FLOAT32, (long long)(RKNN_TENSOR_FLOAT32) == 0LL);
CHECK(value_of_RKNN_TENSOR_FLOAT16, (long long)(RKNN_TENSOR_FLOAT16) == 1LL);
CHECK(value_of_RKNN_TENSOR_INT8, (long long)(RKNN_TENSOR_INT8) == 2LL);
CHECK(value_of_RKNN_TENSOR_UINT8, (long long)(RKNN_TENSOR_UINT8) == 3LL);
CHECK(value_of_RKNN_TENSOR_INT16, (long long)(RKNN_TENSOR_INT16) == 4LL);
CHECK(value_of_RKNN_TENSOR_UINT16, (long long)(RKNN_TENSOR_UINT16) == 5LL);
CHECK(value_of_RKNN_TENSOR_INT32, (long long)(RKNN_TENSOR_INT32) == 6LL);
CHECK(value_of_RKNN_TENSOR_UINT32, (long long)(RKNN_TENSOR_UINT32) == 7LL);
CHECK(value_of_RKNN_TENSOR_INT64, (long long)(RKNN_TENSOR_INT64) == 8LL);
CHECK(value_of_RKNN_TENSOR_BOOL, (long long)(RKNN_TENSOR_BOOL) == 9LL);
CHECK(value_of_RKNN_TENSOR_INT4, (long long)(RKNN_TENSOR_INT4) == 10LL);
CHECK(value_of_RKNN_TENSOR_BFLOAT16, (long long)(RKNN_TENSOR_BFLOAT16) == 11LL);
CHECK(value_of_RKNN_TENSOR_TYPE_MAX, (long long)(RKNN_TENSOR_TYPE_MAX) == 12LL);
CHECK(value_of_RKNN_TENSOR_QNT_NONE, (long long)(RKNN_TENSOR_QNT_NONE) == 0LL);
CHECK(value_of_RKNN_TENSOR_QNT_DFP, (long long)(RKNN_TENSOR_QNT_DFP) == 1LL);
CHECK(value_of_RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC, (long long)(RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC) == 2LL);
CHECK(value_of_RKNN_TENSOR_QNT_MAX, (long long)(RKNN_TENSOR_QNT_MAX) == 3LL);
CHECK(value_of_RKNN_TENSOR_NCHW, (long long)(RKNN_TENSOR_NCHW) == 0LL);
CHECK(value_of_RKNN_TENSOR_NHWC, (long long)(RKNN_TENSOR_NHWC) == 1LL);
CHECK(value_of_RKNN_TENSOR_NC1HWC2, (long long)(RKNN_TENSOR_NC1HWC2) == 2LL);
CHECK(value_of_RKNN_TENSOR_UNDEFINED, (long long)(RKNN_TENSOR_UNDEFINED) == 3LL);
CHECK(value_of_RKNN_TENSOR_FORMAT_MAX, (long long)(RKNN_TENSOR_FORMAT_MAX) == 4LL);
CHECK(value_of_RKNN_NPU_CORE_AUTO, (long long)(RKNN_NPU_CORE_AUTO) == 0LL);
CHECK(value_of_RKNN_NPU_CORE_0, (long long)(RKNN_NPU_CORE_0) == 1LL);
CHECK(value_of_RKNN_NPU_CORE_1, (long long)(RKNN_NPU_CORE_1) == 2LL);
CHECK(value_of_RKNN_NPU_CORE_2, (long long)(RKNN_NPU_CORE_2) == 4LL);
CHECK(value_of_RKNN_NPU_CORE_0_1, (long long)(RKNN_NPU_CORE_0_1) == 3LL);
CHECK(value_of_RKNN_NPU_CORE_0_1_2, (long long)(RKNN_NPU_CORE_0_1_2) == 7LL);
CHECK(value_of_RKNN_NPU_CORE_ALL, (long long)(RKNN_NPU_CORE_ALL) == 65535LL);
CHECK(value_of_RKNN_NPU_CORE_UNDEFINED, (long long)(RKNN_NPU_CORE_UNDEFINED) == 65536LL);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE, (long long)(RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE) == 1LL);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_FROM_FD, (long long)(RKNN_TENSOR_MEMORY_FLAGS_FROM_FD) == 2LL);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS, (long long)(RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS) == 3LL);
CHECK(value_of_RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN, (long long)(RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN) == 4LL);
CHECK(value_of_RKNN_FLAG_MEMORY_FLAGS_DEFAULT, (long long)(RKNN_FLAG_MEMORY_FLAGS_DEFAULT) == 0LL);
CHECK(value_of_RKNN_FLAG_MEMORY_CACHEABLE, (long long)(RKNN_FLAG_MEMORY_CACHEABLE) == 1LL);
CHECK(value_of_RKNN_FLAG_MEMORY_NON_CACHEABLE, (long long)(RKNN_FLAG_MEMORY_NON_CACHEABLE) == 2LL);
CHECK(value_of_RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM, (long long)(RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM) == 4LL);
CHECK(value_of_RKNN_MEMORY_SYNC_TO_DEVICE, (long long)(RKNN_MEMORY_SYNC_TO_DEVICE) == 1LL);
CHECK(value_of_RKNN_MEMORY_SYNC_FROM_DEVICE, (long long)(RKNN_MEMORY_SYNC_FROM_DEVICE) == 2LL);
CHECK(value_of_RKNN_MEMORY_SYNC_BIDIRECTIONAL, (long long)(RKNN_MEMORY_SYNC_BIDIRECTIONAL) == 3LL);
CHECK(value_of_RKNN_QUANT_TYPE_PER_LAYER_SYM, (long long)(RKNN_QUANT_TYPE_PER_LAYER_SYM) == 0LL);
CHECK(value_of_RKNN_QUANT_TYPE_PER_LAYER_ASYM, (long long)(RKNN_QUANT_TYPE_PER_LAYER_ASYM) == 1LL);
CHECK(value_of_RKNN_QUANT_TYPE_PER_CHANNEL_SYM, (long long)(RKNN_QUANT_TYPE_PER_CHANNEL_SYM) == 2LL);
CHECK(value_of_RKNN_QUANT_TYPE_PER_CHANNEL_ASYM, (long long)(RKNN_QUANT_TYPE_PER_CHANNEL_ASYM) == 3LL);
CHECK(value_of_RKNN_QUANT_TYPE_PER_GROUP_SYM, (long long)(RKNN_QUANT_TYPE_PER_GROUP_SYM) == 4LL);
CHECK(value_of_RKNN_QUANT_TYPE_PER_GROUP_ASYM, (long long)(RKNN_QUANT_TYPE_PER_GROUP_ASYM) == 5LL);
CHECK(value_of_RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32, (long long)(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT32) == 1LL);
CHECK(value_of_RKNN_INT8_MM_INT8_TO_INT32, (long long)(RKNN_INT8_MM_INT8_TO_INT32) == 2LL);
CHECK(value_of_RKNN_INT8_MM_INT8_TO_INT8, (long long)(RKNN_INT8_MM_INT8_TO_INT8) == 3LL);
CHECK(value_of_RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16, (long long)(RKNN_FLOAT16_MM_FLOAT16_TO_FLOAT16) == 4LL);
CHECK(value_of_RKNN_FLOAT16_MM_INT8_TO_FLOAT32, (long long)(RKNN_FLOAT16_MM_INT8_TO_FLOAT32) == 5LL);
CHECK(value_of_RKNN_FLOAT16_MM_INT8_TO_FLOAT16, (long long)(RKNN_FLOAT16_MM_INT8_TO_FLOAT16) == 6LL);
CHECK(value_of_RKNN_FLOAT16_MM_INT4_TO_FLOAT32, (long long)(RKNN_FLOAT16_MM_INT4_TO_FLOAT32) == 7LL);
CHECK(value_of_RKNN_FLOAT16_MM_INT4_TO_FLOAT16, (long long)(RKNN_FLOAT16_MM_INT4_TO_FLOAT16) == 8LL);
CHECK(value_of_RKNN_INT8_MM_INT8_TO_FLOAT32, (long long)(RKNN_INT8_MM_INT8_TO_FLOAT32) == 9LL);
CHECK(value_of_RKNN_INT4_MM_INT4_TO_INT16, (long long)(RKNN_INT4_MM_INT4_TO_INT16) == 10LL);
CHECK(value_of_RKNN_INT8_MM_INT4_TO_INT32, (long long)(RKNN_INT8_MM_INT4_TO_INT32) == 11LL);
CHECK(value_of_RKNN_FLOAT16_MM_INT4_TO_BFLOAT16, (long long)(RKNN_FLOAT16_MM_INT4_TO_BFLOAT16) == 12LL);
CHECK(value_of_RKNN_INT8_MM_INT4_TO_FLOAT16, (long long)(RKNN_INT8_MM_INT4_TO_FLOAT16) == 15LL);
CHECK(value_of_RKNN_MM_LAYOUT_NORM, (long long)(RKNN_MM_LAYOUT_NORM) == 0LL);
CHECK(value_of_RKNN_MM_LAYOUT_NATIVE, (long long)(RKNN_MM_LAYOUT_NATIVE) == 1LL);
CHECK(value_of_RKNN_MM_LAYOUT_TP_NORM, (long long)(RKNN_MM_LAYOUT_TP_NORM) == 2LL);
CHECK(value_of_RKNN_TARGET_TYPE_CPU, (long long)(RKNN_TARGET_TYPE_CPU) == 1LL);
CHECK(value_of_RKNN_TARGET_TYPE_GPU, (long long)(RKNN_TARGET_TYPE_GPU) == 2LL);
CHECK(value_of_RKNN_TARGET_TYPE_MAX, (long long)(RKNN_TARGET_TYPE_MAX) == 3LL);
CHECK(value_of_RKNN_FLAG_PRIOR_HIGH, (long long)(RKNN_FLAG_PRIOR_HIGH) == 0LL);
CHECK(value_of_RKNN_FLAG_PRIOR_MEDIUM, (long long)(RKNN_FLAG_PRIOR_MEDIUM) == 1LL);
CHECK(value_of_RKNN_FLAG_PRIOR_LOW, (long long)(RKNN_FLAG_PRIOR_LOW) == 2LL);
CHECK(value_of_RKNN_FLAG_ASYNC_MASK, (long long)(RKNN_FLAG_ASYNC_MASK) == 4LL);
CHECK(value_of_RKNN_FLAG_COLLECT_PERF_MASK, (long long)(RKNN_FLAG_COLLECT_PERF_MASK) == 8LL);
CHECK(value_of_RKNN_FLAG_MEM_ALLOC_OUTSIDE, (long long)(RKNN_FLAG_MEM_ALLOC_OUTSIDE) == 16LL);
CHECK(value_of_RKNN_FLAG_SHARE_WEIGHT_MEM, (long long)(RKNN_FLAG_SHARE_WEIGHT_MEM) == 32LL);
CHECK(value_of_RKNN_FLAG_FENCE_IN_OUTSIDE, (long long)(RKNN_FLAG_FENCE_IN_OUTSIDE) == 64LL);
CHECK(value_of_RKNN_FLAG_FENCE_OUT_OUTSIDE, (long long)(RKNN_FLAG_FENCE_OUT_OUTSIDE) == 128LL);
CHECK(value_of_RKNN_FLAG_COLLECT_MODEL_INFO_ONLY, (long long)(RKNN_FLAG_COLLECT_MODEL_INFO_ONLY) == 256LL);
CHECK(value_of_RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE, (long long)(RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE) == 512LL);
CHECK(value_of_RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU, (long long)(RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU) == 1024LL);
CHECK(value_of_RKNN_FLAG_ENABLE_SRAM, (long long)(RKNN_FLAG_ENABLE_SRAM) == 2048LL);
CHECK(value_of_RKNN_FLAG_SHARE_SRAM, (long long)(RKNN_FLAG_SHARE_SRAM) == 4096LL);
CHECK(value_of_RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY, (long long)(RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY) == 8192LL);
CHECK(value_of_RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE, (long long)(RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE) == 16384LL);
CHECK(value_of_RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE, (long long)(RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE) == 32768LL);
CHECK(value_of_RKNN_FLAG_MODEL_BUFFER_ZERO_COPY, (long long)(RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) == 65536LL);
CHECK(value_of_RKNN_MEM_FLAG_ALLOC_NO_CONTEXT, (long long)(RKNN_MEM_FLAG_ALLOC_NO_CONTEXT) == 131072LL);
CHECK(value_of_RKNN_SUCC, (long long)(RKNN_SUCC) == 0LL);
CHECK(value_of_RKNN_ERR_FAIL, (long long)(RKNN_ERR_FAIL) == -1LL);
CHECK(value_of_RKNN_ERR_TIMEOUT, (long long)(RKNN_ERR_TIMEOUT) == -2LL);
CHECK(value_of_RKNN_ERR_DEVICE_UNAVAILABLE, (long long)(RKNN_ERR_DEVICE_UNAVAILABLE) == -3LL);
CHECK(value_of_RKNN_ERR_MALLOC_FAIL, (long long)(RKNN_ERR_MALLOC_FAIL) == -4LL);
CHECK(value_of_RKNN_ERR_PARAM_INVALID, (long long)(RKNN_ERR_PARAM_INVALID) == -5LL);
CHECK(value_of_RKNN_ERR_MODEL_INVALID, (long long)(RKNN_ERR_MODEL_INVALID) == -6LL);
CHECK(value_of_RKNN_ERR_CTX_INVALID, (long long)(RKNN_ERR_CTX_INVALID) == -7LL);
CHECK(value_of_RKNN_ERR_INPUT_INVALID, (long long)(RKNN_ERR_INPUT_INVALID) == -8LL);
CHECK(value_of_RKNN_ERR_OUTPUT_INVALID, (long long)(RKNN_ERR_OUTPUT_INVALID) == -9LL);
CHECK(value_of_RKNN_ERR_DEVICE_UNMATCH, (long long)(RKNN_ERR_DEVICE_UNMATCH) == -10LL);
CHECK(value_of_RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL, (long long)(RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL) == -11LL);
CHECK(value_of_RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION,
      (long long)(RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION) == -12LL);
CHECK(value_of_RKNN_ERR_TARGET_PLATFORM_UNMATCH, (long long)(RKNN_ERR_TARGET_PLATFORM_UNMATCH) == -13LL);
CHECK(value_of_RKNN_MAX_DIMS, (long long)(RKNN_MAX_DIMS) == 16LL);
CHECK(value_of_RKNN_MAX_NUM_CHANNEL, (long long)(RKNN_MAX_NUM_CHANNEL) == 15LL);
CHECK(value_of_RKNN_MAX_NAME_LEN, (long long)(RKNN_MAX_NAME_LEN) == 256LL);
CHECK(value_of_RKNN_MAX_DYNAMIC_SHAPE_NUM, (long long)(RKNN_MAX_DYNAMIC_SHAPE_NUM) == 512LL);
CHECK(value_of_RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE, (long long)(RKNN_WARNING_SKIP_CUSTOM_OP_COMPUTE) == -14LL);
CHECK(value_of_RKNN_CUSTOM_OP_MAX_STR_LEN, (long long)(RKNN_CUSTOM_OP_MAX_STR_LEN) == 64LL);
CHECK(value_of_RKNN_CUSTOM_OP_MAX_VALUE_LEN, (long long)(RKNN_CUSTOM_OP_MAX_VALUE_LEN) == 32LL);
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
