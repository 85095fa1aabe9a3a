/* Computes the nodes of one operator type in this program, and prints what they get and the results of the model:
 *   custom model.rknn value type
 * Result i of a node is half of element i of its first input, plus i modulo 5. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openrknn.h"
#include "rknn_api.h"
#include "rknn_custom_op.h"

static int calls = 0;

static void check(const char* what, int code) {
  if (code == RKNN_SUCC) return;
  printf("%s failed: %d (%s)\n", what, code, orknn_last_error());
  exit(1);
}

static int init(rknn_custom_op_context* op, rknn_custom_op_tensor* in, uint32_t n_in, rknn_custom_op_tensor* out,
                uint32_t n_out) {
  rknn_custom_op_attr name;
  rknn_custom_op_get_op_attr(op, "name", &name);
  printf("node %s: %u inputs, %u outputs, first %s of %u axes and %u elements\n", name.n_elems ? (const char*)name.data : "?",
         n_in, n_out, get_type_string(in[0].attr.type), in[0].attr.n_dims, out[0].attr.n_elems);
  op->priv_data = &calls;
  return 0;
}

static int compute(rknn_custom_op_context* op, rknn_custom_op_tensor* in, uint32_t n_in, rknn_custom_op_tensor* out,
                   uint32_t n_out) {
  const float* x = (const float*)((const char*)in[0].mem.virt_addr + in[0].mem.offset);
  float* y = (float*)((char*)out[0].mem.virt_addr + out[0].mem.offset);
  uint32_t i;
  (void)n_in;
  (void)n_out;
  ++*(int*)op->priv_data;
  for (i = 0; i < out[0].attr.n_elems; ++i) y[i] = x[i % in[0].attr.n_elems] * 0.5f + (float)(i % 5);
  return 0;
}

static int destroy(rknn_custom_op_context* op) {
  printf("computed %d times\n", *(int*)op->priv_data);
  return 0;
}

int main(int argc, char** argv) {
  rknn_context context;
  rknn_custom_op op;
  rknn_input_output_num number;
  rknn_tensor_attr attr;
  rknn_input input;
  rknn_output output;
  uint32_t i;
  if (argc < 4) return 2;
  check("rknn_init", rknn_init(&context, argv[1], 0, 0, NULL));
  memset(&op, 0, sizeof op);
  op.version = 1;
  op.target = RKNN_TARGET_TYPE_CPU;
  strncpy(op.op_type, argv[3], sizeof op.op_type - 1);
  op.init = init;
  op.compute = compute;
  op.destroy = destroy;
  check("rknn_register_custom_ops", rknn_register_custom_ops(context, &op, 1));
  memset(&op, 0, sizeof op); /* the library has its own copy */
  check("number", rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number));
  attr.index = 0;
  check("input", rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr));
  memset(&input, 0, sizeof input);
  input.size = attr.n_elems;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  input.buf = malloc(attr.n_elems);
  if (!input.buf) return 2;
  for (i = 0; i < attr.n_elems; ++i) ((unsigned char*)input.buf)[i] = (unsigned char)(atoi(argv[2]) + (int)i);
  check("rknn_inputs_set", rknn_inputs_set(context, 1, &input));
  free(input.buf);
  check("rknn_run", rknn_run(context, NULL));
  memset(&output, 0, sizeof output);
  output.want_float = 1;
  check("rknn_outputs_get", rknn_outputs_get(context, 1, &output, NULL));
  printf("output 0");
  for (i = 0; i < output.size / 4; ++i) printf(" %.9g", ((float*)output.buf)[i]);
  printf("\n");
  check("rknn_outputs_release", rknn_outputs_release(context, 1, &output));
  check("rknn_destroy", rknn_destroy(context));
  return calls > 0 ? 0 : 1;
}
