/* Runs a model in every way the API has, and prints a checksum of each result:
 *   ways model.rknn [value of every input byte]
 * copying calls; the caller's memory in every layout; a duplicate; runs in the background; masks of cores; all memory from
 * outside; threads with a context each. All must give the same numbers: the program ends with 1 at the first that does not. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openrknn.h"
#include "rknn_api.h"

enum { MAX_PORTS = 8, THREADS = 4 };

typedef struct {
  rknn_context context;
  rknn_input_output_num number;
  rknn_tensor_attr inputs[MAX_PORTS], outputs[MAX_PORTS];
  unsigned char* pixels[MAX_PORTS]; /* dense, one byte per element */
} Model;

static void check(const char* what, int code) {
  if (code == RKNN_SUCC) return;
  printf("%s failed: %d (%s)\n", what, code, orknn_last_error());
  exit(1);
}

static unsigned long long add_bytes(unsigned long long sum, const void* data, size_t bytes) {
  const unsigned char* p = data;
  size_t i;
  for (i = 0; i < bytes; ++i) sum = (sum ^ p[i]) * 1099511628211ull;
  return sum;
}
static const unsigned long long kEmpty = 14695981039346656037ull;

static void open_model(Model* m, char* path, uint32_t flags, int value) {
  uint32_t i, k;
  memset(m, 0, sizeof *m);
  check("rknn_init", rknn_init(&m->context, path, 0, flags, NULL));
  check("number", rknn_query(m->context, RKNN_QUERY_IN_OUT_NUM, &m->number, sizeof m->number));
  if (m->number.n_input > MAX_PORTS || m->number.n_output > MAX_PORTS) exit(2);
  for (i = 0; i < m->number.n_input; ++i) {
    m->inputs[i].index = i;
    check("input", rknn_query(m->context, RKNN_QUERY_INPUT_ATTR, &m->inputs[i], sizeof m->inputs[i]));
    m->pixels[i] = malloc(m->inputs[i].n_elems);
    if (!m->pixels[i]) exit(2);
    for (k = 0; k < m->inputs[i].n_elems; ++k) m->pixels[i][k] = (unsigned char)(value + (int)k);
  }
  for (i = 0; i < m->number.n_output; ++i) {
    m->outputs[i].index = i;
    check("output", rknn_query(m->context, RKNN_QUERY_OUTPUT_ATTR, &m->outputs[i], sizeof m->outputs[i]));
  }
}

static void close_model(Model* m) {
  uint32_t i;
  check("rknn_destroy", rknn_destroy(m->context));
  for (i = 0; i < m->number.n_input; ++i) free(m->pixels[i]);
}

static void feed(const Model* m, rknn_context context) {
  uint32_t i;
  for (i = 0; i < m->number.n_input; ++i) {
    rknn_input input;
    memset(&input, 0, sizeof input);
    input.index = i;
    input.buf = m->pixels[i];
    input.size = m->inputs[i].n_elems;
    input.type = RKNN_TENSOR_UINT8;
    input.fmt = RKNN_TENSOR_NHWC;
    check("rknn_inputs_set", rknn_inputs_set(context, 1, &input));
  }
}

/* Checksum of all results as floats. */
static unsigned long long results(const Model* m, rknn_context context) {
  rknn_output outputs[MAX_PORTS];
  unsigned long long sum = kEmpty;
  uint32_t i;
  memset(outputs, 0, sizeof outputs);
  for (i = 0; i < m->number.n_output; ++i) outputs[i].want_float = 1;
  check("rknn_outputs_get", rknn_outputs_get(context, m->number.n_output, outputs, NULL));
  for (i = 0; i < m->number.n_output; ++i) sum = add_bytes(sum, outputs[i].buf, outputs[i].size);
  check("rknn_outputs_release", rknn_outputs_release(context, m->number.n_output, outputs));
  return sum;
}

static unsigned long long copying(const Model* m, rknn_context context) {
  feed(m, context);
  check("rknn_run", rknn_run(context, NULL));
  return results(m, context);
}

/* Element (n, c, h, w) of a tensor in the layout of `attr`. */
static size_t place(const rknn_tensor_attr* attr, const uint32_t nchw[4], uint32_t n, uint32_t c, uint32_t h, uint32_t w) {
  if (attr->fmt == RKNN_TENSOR_NC1HWC2) {
    const size_t blocks = attr->dims[1], lanes = attr->dims[4];
    return (((n * blocks + c / lanes) * nchw[2] + h) * nchw[3] + w) * lanes + c % lanes;
  }
  if (attr->fmt == RKNN_TENSOR_NHWC) return (((size_t)n * nchw[2] + h) * nchw[3] + w) * nchw[1] + c;
  return (((size_t)n * nchw[1] + c) * nchw[2] + h) * nchw[3] + w;
}

/* The caller's memory: pixels in rows of w_stride, results as floats in the layout that `command` gives. */
static unsigned long long zero_copy(const Model* m, rknn_query_cmd command) {
  rknn_tensor_mem *in[MAX_PORTS], *out[MAX_PORTS];
  rknn_tensor_attr attrs[MAX_PORTS];
  unsigned long long sum = kEmpty;
  uint32_t i, n, c, h, w;
  for (i = 0; i < m->number.n_input; ++i) {
    rknn_tensor_attr attr = m->inputs[i];
    attr.type = RKNN_TENSOR_UINT8;
    in[i] = rknn_create_mem(m->context, attr.size_with_stride);
    if (!in[i]) check("rknn_create_mem", -1);
    if (attr.n_dims == 4) {
      const size_t row = attr.dims[2] * attr.dims[3], pitch = attr.w_stride * attr.dims[3];
      for (h = 0; h < attr.dims[0] * attr.dims[1]; ++h) memcpy((char*)in[i]->virt_addr + h * pitch, m->pixels[i] + h * row, row);
    } else {
      memcpy(in[i]->virt_addr, m->pixels[i], attr.n_elems);
    }
    check("rknn_mem_sync", rknn_mem_sync(m->context, in[i], RKNN_MEMORY_SYNC_TO_DEVICE));
    check("rknn_set_io_mem", rknn_set_io_mem(m->context, in[i], &attr));
  }
  for (i = 0; i < m->number.n_output; ++i) {
    attrs[i].index = i;
    check("rknn_query", rknn_query(m->context, command, &attrs[i], sizeof attrs[i]));
    attrs[i].type = RKNN_TENSOR_FLOAT32;
    out[i] = rknn_create_mem(m->context, attrs[i].n_elems * 4);
    if (!out[i]) check("rknn_create_mem", -1);
    check("rknn_set_io_mem", rknn_set_io_mem(m->context, out[i], &attrs[i]));
  }
  check("rknn_run", rknn_run(m->context, NULL));
  for (i = 0; i < m->number.n_output; ++i) {
    const float* values = out[i]->virt_addr;
    const rknn_tensor_attr* plain = &m->outputs[i];
    if (plain->n_dims != 4) {
      sum = add_bytes(sum, values, plain->n_elems * 4u);
      continue;
    }
    for (n = 0; n < plain->dims[0]; ++n)
      for (c = 0; c < plain->dims[1]; ++c)
        for (h = 0; h < plain->dims[2]; ++h)
          for (w = 0; w < plain->dims[3]; ++w) sum = add_bytes(sum, &values[place(&attrs[i], plain->dims, n, c, h, w)], 4);
  }
  for (i = 0; i < m->number.n_input; ++i) check("rknn_destroy_mem", rknn_destroy_mem(m->context, in[i]));
  for (i = 0; i < m->number.n_output; ++i) check("rknn_destroy_mem", rknn_destroy_mem(m->context, out[i]));
  return sum;
}

static unsigned long long in_background(const Model* m) {
  rknn_run_extend extend;
  memset(&extend, 0, sizeof extend);
  extend.non_block = 1;
  feed(m, m->context);
  check("rknn_run", rknn_run(m->context, &extend));
  check("rknn_wait", rknn_wait(m->context, NULL));
  return results(m, m->context);
}

/* Weights and activations in memory that is described by its descriptor a second time. */
static void give_memory(Model* m) {
  rknn_mem_size sizes;
  rknn_tensor_mem *weights, *internal, *again;
  check("memory", rknn_query(m->context, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes));
  weights = rknn_create_mem(m->context, sizes.total_weight_size);
  internal = rknn_create_mem(m->context, sizes.total_internal_size ? sizes.total_internal_size : 64);
  if (!weights || !internal) check("rknn_create_mem", -1);
  again = rknn_create_mem_from_fd(m->context, internal->fd, internal->virt_addr, internal->size, 0);
  if (!again) check("rknn_create_mem_from_fd", -1);
  check("rknn_set_weight_mem", rknn_set_weight_mem(m->context, weights));
  check("rknn_set_internal_mem", rknn_set_internal_mem(m->context, again));
  check("rknn_destroy_mem", rknn_destroy_mem(m->context, again));
  check("rknn_destroy_mem", rknn_destroy_mem(m->context, internal));
  check("rknn_destroy_mem", rknn_destroy_mem(m->context, weights));
}

typedef struct {
  const Model* model;
  rknn_context context;
  unsigned long long sum;
} Worker;

static void* work(void* argument) {
  Worker* w = argument;
  int i;
  for (i = 0; i < 3; ++i) w->sum = copying(w->model, w->context);
  return NULL;
}

static unsigned long long expected;
static int wrong = 0;
static void report(const char* way, unsigned long long sum) {
  printf("%-24s %016llx%s\n", way, sum, sum == expected ? "" : " differs");
  wrong |= sum != expected;
}

int main(int argc, char** argv) {
  static const rknn_query_cmd kLayouts[] = {RKNN_QUERY_OUTPUT_ATTR, RKNN_QUERY_NATIVE_OUTPUT_ATTR,
                                            RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR};
  static const char* const kLayoutNames[] = {"zero-copy NCHW", "zero-copy native", "zero-copy NHWC"};
  static const rknn_core_mask kMasks[] = {RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_1, RKNN_NPU_CORE_0_1, RKNN_NPU_CORE_ALL};
  Model m, outside;
  Worker workers[THREADS];
  pthread_t threads[THREADS];
  rknn_context copy;
  int i;
  const int value = argc > 2 ? atoi(argv[2]) : 0;
  if (argc < 2) return 2;
  open_model(&m, argv[1], 0, value);
  expected = copying(&m, m.context);
  printf("output 0 of %u\n", m.number.n_output);
  report("copying", expected);
  for (i = 0; i < 3; ++i) report(kLayoutNames[i], zero_copy(&m, kLayouts[i]));
  check("rknn_dup_context", rknn_dup_context(&m.context, &copy));
  report("duplicate", copying(&m, copy));
  check("rknn_destroy", rknn_destroy(copy));
  report("background", in_background(&m));
  for (i = 0; i < 4; ++i) {
    (void)rknn_set_core_mask(m.context, kMasks[i]); /* refused by chips with fewer cores, as programs for all chips expect */
    report("core mask", copying(&m, m.context));
  }
  for (i = 0; i < THREADS; ++i) {
    workers[i].model = &m;
    check("rknn_dup_context", rknn_dup_context(&m.context, &workers[i].context));
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) return 2;
  }
  for (i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    report("thread", workers[i].sum);
    check("rknn_destroy", rknn_destroy(workers[i].context));
  }
  open_model(&outside, argv[1], RKNN_FLAG_MEM_ALLOC_OUTSIDE, value);
  give_memory(&outside);
  report("memory from outside", zero_copy(&outside, RKNN_QUERY_OUTPUT_ATTR));
  close_model(&outside);
  close_model(&m);
  return wrong;
}
