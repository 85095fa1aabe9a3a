/* A plug-in with the operator cstIndexOfMax: the channel (axis 1) of the largest value at every place, as int64. */
#include <string.h>

#include "rknn_custom_op.h"

static int compute(rknn_custom_op_context* op, rknn_custom_op_tensor* in, uint32_t n_in, rknn_custom_op_tensor* out,
                   uint32_t n_out) {
  const float* x = (const float*)((char*)in[0].mem.virt_addr + in[0].mem.offset);
  int64_t* y = (int64_t*)((char*)out[0].mem.virt_addr + out[0].mem.offset);
  const uint32_t channels = in[0].attr.dims[1], plane = in[0].attr.dims[2] * in[0].attr.dims[3];
  uint32_t n, c, i;
  (void)op, (void)n_in, (void)n_out;
  if (out[0].attr.type != RKNN_TENSOR_INT64 || out[0].attr.n_elems != in[0].attr.n_elems / channels) return -1;
  for (n = 0; n < in[0].attr.dims[0]; ++n)
    for (i = 0; i < plane; ++i) {
      const float* pixel = x + n * channels * plane + i;
      uint32_t best = 0;
      for (c = 1; c < channels; ++c)
        if (pixel[c * plane] > pixel[best * plane]) best = c;
      y[n * plane + i] = best;
    }
  return 0;
}

RKNN_CUSTOM_OP_EXPORT rknn_custom_op* get_rknn_custom_op(void);
rknn_custom_op* get_rknn_custom_op(void) {
  static rknn_custom_op op;
  strcpy(op.op_type, "cstIndexOfMax");
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  op.compute = compute;
  return &op;
}
