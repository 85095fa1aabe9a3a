/* A plug-in with the operator cstAffine of affine_plugin.c as an OpenCL kernel, whose tensors are imported by their descriptors
 * as programs for boards do it. The few declarations of OpenCL that it needs stand here. */
#include <stdint.h>
#include <string.h>

#include "rknn_custom_op.h"

extern void* clImportMemoryARM(void*, uint64_t, const intptr_t*, void*, size_t, int32_t*);
extern int32_t clSetKernelArg(void*, uint32_t, size_t, const void*);
extern int32_t clEnqueueNDRangeKernel(void*, void*, uint32_t, const size_t*, const size_t*, const size_t*, uint32_t, const void*,
                                      void*);
extern int32_t clFinish(void*);
extern int32_t clReleaseMemObject(void*);

static char source[] =
    "#pragma OPENCL FP_CONTRACT OFF\n"
    "__kernel void affine(__global const float* x, __global const float* bias, __global float* y, float alpha, int plane, int "
    "channels) {\n"
    "  int i = get_global_id(0);\n"
    "  y[i] = x[i] * alpha + bias[i / plane % channels];\n"
    "}\n";

static void* import(void* context, const rknn_tensor_mem* mem) {
  const intptr_t dma_buf[] = {0x40B2, 0x40B4, 0};
  int32_t code = 0;
  int fd = mem->fd;
  void* buffer = clImportMemoryARM(context, 1, dma_buf, &fd, (size_t)mem->offset + mem->size, &code);
  return code == 0 ? buffer : NULL;
}

static int compute(rknn_custom_op_context* op, rknn_custom_op_tensor* in, uint32_t n_in, rknn_custom_op_tensor* out,
                   uint32_t n_out) {
  void* kernel = op->gpu_ctx.cl_kernel;
  void* buffers[3];
  rknn_custom_op_attr alpha;
  const int channels = (int)in[0].attr.dims[1], plane = (int)(in[0].attr.dims[2] * in[0].attr.dims[3]);
  const size_t items = in[0].attr.n_elems;
  int i, bad = 0;
  (void)n_in, (void)n_out;
  if (op->target != RKNN_TARGET_TYPE_GPU) return -1;
  rknn_custom_op_get_op_attr(op, "alpha", &alpha);
  if (alpha.n_elems != 1) return -1;
  buffers[0] = import(op->gpu_ctx.cl_context, &in[0].mem);
  buffers[1] = import(op->gpu_ctx.cl_context, &in[1].mem);
  buffers[2] = import(op->gpu_ctx.cl_context, &out[0].mem);
  for (i = 0; i < 3; ++i) bad |= !buffers[i] || clSetKernelArg(kernel, (uint32_t)i, sizeof buffers[i], &buffers[i]) != 0;
  bad |= clSetKernelArg(kernel, 3, sizeof(float), alpha.data) != 0;
  bad |= clSetKernelArg(kernel, 4, sizeof plane, &plane) != 0 || clSetKernelArg(kernel, 5, sizeof channels, &channels) != 0;
  bad = bad || clEnqueueNDRangeKernel(op->gpu_ctx.cl_command_queue, kernel, 1, NULL, &items, NULL, 0, NULL, NULL) != 0;
  bad = bad || clFinish(op->gpu_ctx.cl_command_queue) != 0;
  for (i = 0; i < 3; ++i)
    if (buffers[i]) clReleaseMemObject(buffers[i]);
  return bad ? -1 : 0;
}

RKNN_CUSTOM_OP_EXPORT rknn_custom_op* get_rknn_custom_op(void);
rknn_custom_op* get_rknn_custom_op(void) {
  static rknn_custom_op op;
  strcpy(op.op_type, "cstAffine");
  strcpy(op.cl_kernel_name, "affine");
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_GPU;
  op.cl_kernel_source = source;
  op.cl_source_size = strlen(source);
  op.compute = compute;
  return &op;
}
