/* Runs a model on float32 inputs and writes every output as float32:
 *   run_model model.rknn output_prefix input0.bin [input1.bin ...]
 * Custom operators come from plug-ins. Prints the error text and returns 1 when a call fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openrknn.h"
#include "rknn_api.h"

static int fail(const char* what, int code) {
  printf("%s: %d: %s\n", what, code, orknn_last_error());
  return 1;
}

int main(int argc, char** argv) {
  rknn_context context = 0;
  rknn_input_output_num number;
  rknn_output outputs[8];
  uint32_t i;
  int code;
  if (argc < 4) return 2;
  if ((code = rknn_init(&context, argv[1], 0, 0, NULL)) != 0) return fail("rknn_init", code);
  if ((code = rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number)) != 0) return fail("rknn_query", code);
  if (number.n_input != (uint32_t)argc - 3 || number.n_output > 8) return 2;
  for (i = 0; i < number.n_input; ++i) {
    rknn_tensor_attr attr;
    rknn_input input;
    FILE* file = fopen(argv[3 + i], "rb");
    memset(&attr, 0, sizeof attr);
    memset(&input, 0, sizeof input);
    attr.index = input.index = i;
    if ((code = rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr)) != 0) return fail("rknn_query", code);
    input.size = attr.n_elems * 4;
    input.buf = malloc(input.size);
    if (!file || !input.buf || fread(input.buf, 1, input.size, file) != input.size) return 2;
    fclose(file);
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = attr.n_dims == 4 ? RKNN_TENSOR_NCHW : RKNN_TENSOR_UNDEFINED;
    if ((code = rknn_inputs_set(context, 1, &input)) != 0) return fail("rknn_inputs_set", code);
    free(input.buf);
  }
  if ((code = rknn_run(context, NULL)) != 0) return fail("rknn_run", code);
  memset(outputs, 0, sizeof outputs);
  for (i = 0; i < number.n_output; ++i) outputs[i].want_float = 1;
  if ((code = rknn_outputs_get(context, number.n_output, outputs, NULL)) != 0) return fail("rknn_outputs_get", code);
  for (i = 0; i < number.n_output; ++i) {
    char path[4096];
    FILE* file;
    snprintf(path, sizeof path, "%s%u.bin", argv[2], i);
    file = fopen(path, "wb");
    if (!file || fwrite(outputs[i].buf, 1, outputs[i].size, file) != outputs[i].size) return 2;
    fclose(file);
  }
  rknn_outputs_release(context, number.n_output, outputs);
  if ((code = rknn_destroy(context)) != 0) return fail("rknn_destroy", code);
  printf("done\n");
  return 0;
}
