/* A plug-in with the operator cstAffine: y = x * alpha + bias, with one bias per channel (axis 1) and a float attribute alpha. */
#include <stdlib.h>
#include <string.h>

#include "rknn_custom_op.h"

static int init(rknn_custom_op_context* op, rknn_custom_op_tensor* in, uint32_t n_in, rknn_custom_op_tensor* out,
                uint32_t n_out) {
  rknn_custom_op_attr alpha;
  (void)in, (void)out;
  if (n_in != 2 || n_out != 1) return -1;
  rknn_custom_op_get_op_attr(op, "alpha", &alpha);
  if (alpha.n_elems != 1 || alpha.dtype != RKNN_TENSOR_FLOAT32) return -1;
  op->priv_data = malloc(sizeof(float));
  if (!op->priv_data) return -1;
  memcpy(op->priv_data, alpha.data, sizeof(float));
  return 0;
}

static int compute(rknn_custom_op_context* op, rknn_custom_op_tensor* in, uint32_t n_in, rknn_custom_op_tensor* out,
                   uint32_t n_out) {
  const float alpha = *(const float*)op->priv_data;
  const float* x = (const float*)((char*)in[0].mem.virt_addr + in[0].mem.offset);
  const float* bias = (const float*)((char*)in[1].mem.virt_addr + in[1].mem.offset);
  float* y = (float*)((char*)out[0].mem.virt_addr + out[0].mem.offset);
  const uint32_t channels = in[0].attr.dims[1], plane = in[0].attr.n_elems / in[0].attr.dims[0] / channels;
  uint32_t i;
  (void)n_in, (void)n_out;
  if (in[0].attr.type != RKNN_TENSOR_FLOAT32 || in[1].attr.type != RKNN_TENSOR_FLOAT32 || in[0].attr.fmt != RKNN_TENSOR_NCHW ||
      in[1].attr.n_elems != channels || out[0].attr.n_elems != in[0].attr.n_elems || out[0].mem.size != out[0].attr.n_elems * 4)
    return -1;
  for (i = 0; i < in[0].attr.n_elems; ++i) y[i] = x[i] * alpha + bias[i / plane % channels];
  return 0;
}

static int destroy(rknn_custom_op_context* op) {
  free(op->priv_data);
  return 0;
}

RKNN_CUSTOM_OP_EXPORT rknn_custom_op* get_rknn_custom_op(void);
rknn_custom_op* get_rknn_custom_op(void) {
  static rknn_custom_op op;
  strcpy(op.op_type, "cstAffine");
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  op.init = init;
  op.compute = compute;
  op.destroy = destroy;
  return &op;
}
