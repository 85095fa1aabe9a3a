/* Sixteen threads that call everything on four contexts at once, then contexts that come and go:
 *   stress model.rknn [calls of each thread [init and destroy cycles]]
 * Every result must be that of an undisturbed run, no call may fail, and neither memory nor descriptors may grow with the
 * cycles. Ends with 1 otherwise. Small counts are part of the ordinary tests; `make test-threads` has the full ones, with
 * libraries built with a sanitizer. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "openrknn.h"
#include "rknn_api.h"
#include "rknn_matmul_api.h"

enum { THREADS = 16, CONTEXTS = 4, MOST_OUTPUTS = 8, MATMUL = 32 };

static rknn_context contexts[CONTEXTS];
static rknn_tensor_attr input_attr;
static uint32_t output_count;
static unsigned char* pixels;
static unsigned char* model;
static uint32_t model_bytes;
static unsigned long long expected;
static long calls_of_a_thread = 100;

typedef struct {
  unsigned random;
  long wrong;
} Worker;

/* A failed call of a thread is counted, and the first ones are shown. */
static void expect(Worker* w, const char* what, int code) {
  if (code == RKNN_SUCC) return;
  if (++w->wrong <= 3) fprintf(stderr, "%s failed: %d (%s)\n", what, code, orknn_last_error());
}
static void check(const char* what, int code) {
  if (code == RKNN_SUCC) return;
  fprintf(stderr, "%s failed: %d (%s)\n", what, code, orknn_last_error());
  exit(1);
}

static unsigned next_random(Worker* w) {
  w->random = w->random * 1664525u + 1013904223u;
  return w->random >> 8;
}

static int feed(rknn_context context) {
  rknn_input input;
  memset(&input, 0, sizeof input);
  input.buf = pixels;
  input.size = input_attr.n_elems;
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  return rknn_inputs_set(context, 1, &input);
}

/* Gets all results as floats; the checksum of their bytes. */
static int results(rknn_context context, unsigned long long* sum) {
  rknn_output outputs[MOST_OUTPUTS];
  uint32_t i, k;
  int code;
  memset(outputs, 0, sizeof outputs);
  for (i = 0; i < output_count; ++i) outputs[i].want_float = 1;
  code = rknn_outputs_get(context, output_count, outputs, NULL);
  if (code != RKNN_SUCC) return code;
  *sum = 14695981039346656037ull;
  for (i = 0; i < output_count; ++i)
    for (k = 0; k < outputs[i].size; ++k) *sum = (*sum ^ ((unsigned char*)outputs[i].buf)[k]) * 1099511628211ull;
  return rknn_outputs_release(context, output_count, outputs);
}

static void expect_results(Worker* w, rknn_context context) {
  unsigned long long sum = 0;
  const int code = results(context, &sum);
  expect(w, "rknn_outputs_get", code);
  if (code == RKNN_SUCC && sum != expected && ++w->wrong <= 3) fprintf(stderr, "a result differs: %016llx\n", sum);
}

/* A context of this thread alone, with input and output in memory of its own. */
static void zero_copy(Worker* w, rknn_context from) {
  rknn_context copy = 0;
  rknn_tensor_attr in = input_attr, out;
  rknn_tensor_mem *in_mem, *out_mem;
  expect(w, "rknn_dup_context", rknn_dup_context(&from, &copy));
  memset(&out, 0, sizeof out);
  expect(w, "rknn_query", rknn_query(copy, RKNN_QUERY_NATIVE_OUTPUT_ATTR, &out, sizeof out));
  in.type = RKNN_TENSOR_UINT8;
  in_mem = rknn_create_mem(copy, in.size_with_stride);
  out_mem = rknn_create_mem(copy, out.size_with_stride);
  if (!in_mem || !out_mem) {
    expect(w, "rknn_create_mem", -1);
  } else {
    memset(in_mem->virt_addr, 7, in_mem->size);
    expect(w, "rknn_mem_sync", rknn_mem_sync(copy, in_mem, RKNN_MEMORY_SYNC_TO_DEVICE));
    expect(w, "rknn_set_io_mem", rknn_set_io_mem(copy, in_mem, &in));
    expect(w, "rknn_set_io_mem", rknn_set_io_mem(copy, out_mem, &out));
    expect(w, "rknn_run", rknn_run(copy, NULL));
    expect(w, "rknn_mem_sync", rknn_mem_sync(copy, out_mem, RKNN_MEMORY_SYNC_FROM_DEVICE));
  }
  if (in_mem) expect(w, "rknn_destroy_mem", rknn_destroy_mem(copy, in_mem));
  if (out_mem) expect(w, "rknn_destroy_mem", rknn_destroy_mem(copy, out_mem));
  expect(w, "rknn_destroy", rknn_destroy(copy));
}

static void matmul(Worker* w) {
  rknn_matmul_info info;
  rknn_matmul_io_attr io;
  rknn_matmul_ctx context = 0;
  rknn_tensor_mem *a, *b, *c;
  int i;
  memset(&info, 0, sizeof info);
  memset(&io, 0, sizeof io);
  info.M = info.K = info.N = MATMUL;
  info.type = RKNN_INT8_MM_INT8_TO_INT32;
  expect(w, "rknn_matmul_create", rknn_matmul_create(&context, &info, &io));
  if (!context) return;
  a = rknn_create_mem(context, io.A.size);
  b = rknn_create_mem(context, io.B.size);
  c = rknn_create_mem(context, io.C.size);
  memset(a->virt_addr, 1, io.A.size);
  memset(b->virt_addr, 2, io.B.size);
  expect(w, "rknn_matmul_set_io_mem", rknn_matmul_set_io_mem(context, a, &io.A));
  expect(w, "rknn_matmul_set_io_mem", rknn_matmul_set_io_mem(context, b, &io.B));
  expect(w, "rknn_matmul_set_io_mem", rknn_matmul_set_io_mem(context, c, &io.C));
  expect(w, "rknn_matmul_run", rknn_matmul_run(context));
  for (i = 0; i < MATMUL * MATMUL; ++i)
    if (((int*)c->virt_addr)[i] != 2 * MATMUL) {
      expect(w, "the product", -1);
      break;
    }
  expect(w, "rknn_destroy_mem", rknn_destroy_mem(context, a));
  expect(w, "rknn_destroy_mem", rknn_destroy_mem(context, b));
  expect(w, "rknn_destroy_mem", rknn_destroy_mem(context, c));
  expect(w, "rknn_matmul_destroy", rknn_matmul_destroy(context));
}

static void open_and_close(Worker* w) {
  rknn_context context = 0;
  expect(w, "rknn_init", rknn_init(&context, model, model_bytes, 0, NULL));
  expect(w, "rknn_inputs_set", feed(context));
  expect(w, "rknn_run", rknn_run(context, NULL));
  expect_results(w, context);
  expect(w, "rknn_destroy", rknn_destroy(context));
}

static void one_call(Worker* w) {
  const rknn_context c = contexts[next_random(w) % CONTEXTS];
  rknn_run_extend extend;
  rknn_tensor_attr attr;
  rknn_mem_size sizes;
  rknn_tensor_mem* mem;
  memset(&extend, 0, sizeof extend);
  memset(&attr, 0, sizeof attr);
  switch (next_random(w) % 16) {
    case 0:
    case 1: expect(w, "rknn_run", rknn_run(c, NULL)); break;
    case 2:
    case 3:
      extend.non_block = 1;
      expect(w, "rknn_run", rknn_run(c, &extend));
      break;
    case 4: expect(w, "rknn_wait", rknn_wait(c, NULL)); break;
    case 5:
    case 6: expect(w, "rknn_inputs_set", feed(c)); break;
    case 7:
    case 8:
    case 9: expect_results(w, c); break;
    case 10: expect(w, "rknn_query", rknn_query(c, RKNN_QUERY_OUTPUT_ATTR, &attr, sizeof attr)); break;
    case 11: expect(w, "rknn_query", rknn_query(c, RKNN_QUERY_MEM_SIZE, &sizes, sizeof sizes)); break;
    case 12:
      mem = rknn_create_mem(c, 64 + next_random(w) % 5000);
      expect(w, "rknn_mem_sync", mem ? rknn_mem_sync(c, mem, RKNN_MEMORY_SYNC_BIDIRECTIONAL) : -1);
      if (mem) expect(w, "rknn_destroy_mem", rknn_destroy_mem(c, mem));
      break;
    case 13: expect(w, "rknn_set_core_mask", rknn_set_core_mask(c, 1u << next_random(w) % 3)); break;
    case 14: zero_copy(w, c); break;
    default: next_random(w) % 4 ? matmul(w) : open_and_close(w);
  }
}

static void* work(void* argument) {
  long i;
  for (i = 0; i < calls_of_a_thread; ++i) one_call(argument);
  return NULL;
}

static void read_model(const char* path) {
  FILE* file = fopen(path, "rb");
  long bytes;
  if (!file || fseek(file, 0, SEEK_END) != 0 || (bytes = ftell(file)) <= 0) exit(2);
  rewind(file);
  model_bytes = (uint32_t)bytes;
  model = malloc(model_bytes);
  if (!model || fread(model, 1, model_bytes, file) != model_bytes) exit(2);
  fclose(file);
}

static void open_contexts(void) {
  static const uint32_t kFlags[CONTEXTS] = {0, RKNN_FLAG_ASYNC_MASK, RKNN_FLAG_PRIOR_LOW, RKNN_FLAG_PRIOR_HIGH};
  rknn_input_output_num number;
  uint32_t i;
  for (i = 0; i < CONTEXTS; ++i) check("rknn_init", rknn_init(&contexts[i], model, model_bytes, kFlags[i], NULL));
  check("rknn_query", rknn_query(contexts[0], RKNN_QUERY_IN_OUT_NUM, &number, sizeof number));
  if (number.n_input != 1 || number.n_output > MOST_OUTPUTS) exit(2);
  output_count = number.n_output;
  check("rknn_query", rknn_query(contexts[0], RKNN_QUERY_INPUT_ATTR, &input_attr, sizeof input_attr));
  pixels = malloc(input_attr.n_elems);
  if (!pixels) exit(2);
  for (i = 0; i < input_attr.n_elems; ++i) pixels[i] = (unsigned char)(i * 7);
  for (i = 0; i < CONTEXTS; ++i) {
    check("rknn_inputs_set", feed(contexts[i]));
    check("rknn_run", rknn_run(contexts[i], NULL));
  }
  check("rknn_outputs_get", results(contexts[0], &expected));
}

static long run_threads(void) {
  Worker workers[THREADS];
  pthread_t threads[THREADS];
  long wrong = 0;
  int i;
  for (i = 0; i < THREADS; ++i) {
    workers[i].random = (unsigned)i;
    workers[i].wrong = 0;
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) exit(2);
  }
  for (i = 0; i < THREADS; ++i) {
    pthread_join(threads[i], NULL);
    wrong += workers[i].wrong;
  }
  return wrong;
}

/* What a cycle could leave behind. */
typedef struct {
  long heap, resident;            /* KB: allocated blocks, pages in use */
  long descriptors, areas, tasks; /* open files, mapped areas, threads */
} Held;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The sanitizers' allocators keep what was freed: pages say nothing about the program. */
extern size_t __sanitizer_get_current_allocated_bytes(void);
static long heap_kb(void) { return (long)(__sanitizer_get_current_allocated_bytes() / 1024); }
static long resident_kb(void) { return 0; }
static long count_areas(void) { return 0; }
#else
static long heap_kb(void) {
  const struct mallinfo2 info = mallinfo2();
  return (long)((info.uordblks + info.hblkhd) / 1024);
}
static long resident_kb(void) {
  long total = 0, pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld", &total, &pages) != 2) exit(2);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static long count_areas(void) {
  long lines = 0;
  int byte;
  FILE* file = fopen("/proc/self/maps", "r");
  if (!file) exit(2);
  while ((byte = fgetc(file)) != EOF) lines += byte == '\n';
  fclose(file);
  return lines;
}
#endif

static long count_entries(const char* folder) {
  long entries = 0;
  DIR* dir = opendir(folder);
  if (!dir) exit(2);
  while (readdir(dir)) ++entries;
  closedir(dir);
  return entries;
}

static Held held(void) {
  Held h;
  h.heap = heap_kb();
  h.resident = resident_kb();
  h.descriptors = count_entries("/proc/self/fd");
  h.areas = count_areas();
  h.tasks = count_entries("/proc/self/task");
  return h;
}

/* A context that is opened, used in one of the ways there are, and destroyed. */
static void cycle(Worker* w, long number) {
  static const uint32_t kFlags[] = {0, RKNN_FLAG_ASYNC_MASK, RKNN_FLAG_PRIOR_HIGH, RKNN_FLAG_COLLECT_PERF_MASK};
  rknn_context context = 0;
  rknn_run_extend extend;
  memset(&extend, 0, sizeof extend);
  extend.non_block = 1;
  expect(w, "rknn_init", rknn_init(&context, model, model_bytes, kFlags[number % 4], NULL));
  expect(w, "rknn_inputs_set", feed(context));
  expect(w, "rknn_run", rknn_run(context, number % 2 ? &extend : NULL));
  if (number % 3) expect_results(w, context); /* else destroyed while the run may be under way */
  if (number % 5 == 0) zero_copy(w, context);
  if (number % 7 == 0) matmul(w);
  expect(w, "rknn_destroy", rknn_destroy(context));
}

/* Compares what is held after half of the cycles, when everything that is kept for good has been allocated, and at the end. */
static int run_cycles(long cycles) {
  const Held most = {64, 2048, 0, 16, 0};
  Worker w = {1, 0};
  Held before, after, grown;
  long i;
  before = held();
  for (i = 0; i < cycles; ++i) {
    if (i == cycles / 2) before = held();
    cycle(&w, i);
  }
  after = held();
  grown.heap = after.heap - before.heap;
  grown.resident = after.resident - before.resident;
  grown.descriptors = after.descriptors - before.descriptors;
  grown.areas = after.areas - before.areas;
  grown.tasks = after.tasks - before.tasks;
  printf(
      "%ld cycles: %ld wrong; the second half added %ld KB of blocks, %ld KB of pages, %ld descriptors, %ld areas, %ld threads\n",
      cycles, w.wrong, grown.heap, grown.resident, grown.descriptors, grown.areas, grown.tasks);
  return w.wrong == 0 && grown.heap <= most.heap && grown.resident <= most.resident && grown.descriptors <= most.descriptors &&
         grown.areas <= most.areas && grown.tasks <= most.tasks;
}

int main(int argc, char** argv) {
  const long cycles = argc > 3 ? atol(argv[3]) : 20;
  long wrong;
  int i, flat;
  if (argc < 2) return 2;
  if (argc > 2) calls_of_a_thread = atol(argv[2]);
  read_model(argv[1]);
  open_contexts();
  wrong = run_threads();
  printf("%d threads, %d contexts, %ld calls each: %ld wrong\n", THREADS, CONTEXTS, calls_of_a_thread, wrong);
  for (i = 0; i < CONTEXTS; ++i) check("rknn_destroy", rknn_destroy(contexts[i]));
  flat = run_cycles(cycles);
  free(pixels);
  free(model);
  return wrong || !flat;
}
