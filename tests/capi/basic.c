/* Walks a model through the whole general API, as the SDK's examples do, and prints what it got:
 *   basic model.rknn [value of every input byte]
 * The output lines are compared with what a session in C++ gives for the same data. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openrknn.h"
#include "rknn_api.h"

static int fail(const char* what, int code) {
  printf("%s failed: %d (%s)\n", what, code, orknn_last_error());
  return 1;
}

static void* read_file(const char* path, uint32_t* size) {
  FILE* f = fopen(path, "rb");
  void* data = NULL;
  long length;
  if (!f) return NULL;
  fseek(f, 0, SEEK_END);
  length = ftell(f);
  rewind(f);
  if (length > 0) data = malloc((size_t)length);
  if (data && fread(data, 1, (size_t)length, f) != (size_t)length) {
    free(data);
    data = NULL;
  }
  fclose(f);
  *size = data ? (uint32_t)length : 0;
  return data;
}

static void print_attr(const char* side, const rknn_tensor_attr* a) {
  uint32_t i;
  printf("%s %u %s n_dims=%u dims=", side, a->index, a->name, a->n_dims);
  for (i = 0; i < 4; ++i) printf("%u%s", a->dims[i], i < 3 ? "," : "");
  printf(" n_elems=%u size=%u fmt=%s type=%s qnt=%s zp=%d scale=%g w_stride=%u size_with_stride=%u\n", a->n_elems, a->size,
         get_format_string(a->fmt), get_type_string(a->type), get_qnt_type_string(a->qnt_type), a->zp, a->scale, a->w_stride,
         a->size_with_stride);
}

int main(int argc, char** argv) {
  rknn_context context;
  rknn_input_output_num number;
  rknn_sdk_version version;
  rknn_mem_size memory;
  rknn_custom_string text;
  rknn_perf_run perf;
  uint32_t size = 0, i, k;
  int code, value = argc > 2 ? atoi(argv[2]) : 0;
  void* model;
  if (argc < 2) return 2;
  model = read_file(argv[1], &size);
  if (!model) return fail("reading the model", 0);
  code = rknn_init(&context, model, size, 0, NULL);
  free(model);
  if (code != RKNN_SUCC) return fail("rknn_init", code);
  if ((code = rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number)) != 0) return fail("number", code);
  if ((code = rknn_query(context, RKNN_QUERY_SDK_VERSION, &version, sizeof version)) != 0) return fail("version", code);
  if ((code = rknn_query(context, RKNN_QUERY_MEM_SIZE, &memory, sizeof memory)) != 0) return fail("memory", code);
  if ((code = rknn_query(context, RKNN_QUERY_CUSTOM_STRING, &text, sizeof text)) != 0) return fail("custom string", code);
  printf("inputs %u outputs %u weights %u internal %u text '%s'\n", number.n_input, number.n_output, memory.total_weight_size,
         memory.total_internal_size, text.string);
  if (strncmp(version.api_version, orknn_version(), strlen(orknn_version())) != 0) return fail("version text", 0);
  for (i = 0; i < number.n_input; ++i) {
    rknn_tensor_attr attr;
    rknn_input input;
    attr.index = i;
    if ((code = rknn_query(context, RKNN_QUERY_INPUT_ATTR, &attr, sizeof attr)) != 0) return fail("input attr", code);
    print_attr("input", &attr);
    memset(&input, 0, sizeof input);
    input.index = i;
    input.size = attr.n_elems;
    input.type = RKNN_TENSOR_UINT8;
    input.fmt = RKNN_TENSOR_NHWC;
    input.buf = malloc(attr.n_elems);
    if (!input.buf) return 1;
    for (k = 0; k < attr.n_elems; ++k) ((unsigned char*)input.buf)[k] = (unsigned char)(value + (int)k);
    code = rknn_inputs_set(context, 1, &input);
    free(input.buf);
    if (code != 0) return fail("rknn_inputs_set", code);
  }
  if ((code = rknn_run(context, NULL)) != 0) return fail("rknn_run", code);
  if ((code = rknn_query(context, RKNN_QUERY_PERF_RUN, &perf, sizeof perf)) != 0 || perf.run_duration < 0)
    return fail("perf", code);
  {
    rknn_output* outputs = calloc(number.n_output, sizeof *outputs);
    if (!outputs) return 1;
    for (i = 0; i < number.n_output; ++i) outputs[i].want_float = 1;
    if ((code = rknn_outputs_get(context, number.n_output, outputs, NULL)) != 0) return fail("rknn_outputs_get", code);
    for (i = 0; i < number.n_output; ++i) {
      rknn_tensor_attr attr;
      attr.index = i;
      if ((code = rknn_query(context, RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr)) != 0) return fail("output attr", code);
      print_attr("output", &attr);
      printf("values %u", outputs[i].index);
      for (k = 0; k < outputs[i].size / 4; ++k) printf(" %.9g", ((float*)outputs[i].buf)[k]);
      printf("\n");
    }
    if ((code = rknn_outputs_release(context, number.n_output, outputs)) != 0) return fail("rknn_outputs_release", code);
    free(outputs);
  }
  if ((code = rknn_destroy(context)) != 0) return fail("rknn_destroy", code);
  if ((code = rknn_destroy(context)) != RKNN_ERR_CTX_INVALID) return fail("second rknn_destroy", code);
  return 0;
}
