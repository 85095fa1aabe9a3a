/* Classifies pictures with a .rknn through the RKNN C API: classify model.rknn picture.ppm ...
 * Each picture is a binary PPM (P6) of the model's input size. Prints one line per picture: file, best class, score, ms,
 * then one line with memory use. Build: cc classify.c -I$(openrknn --includedir) -L$(openrknn --libdir) -lrknnrt */
#define _POSIX_C_SOURCE 199309L /* clock_gettime in plain C */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rknn_api.h"

static int fail(const char* what, int code) {
  fprintf(stderr, "%s failed: %d\n", what, code);
  return 1;
}

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Pixels of a binary PPM, or NULL. */
static unsigned char* read_ppm(const char* path, unsigned* width, unsigned* height) {
  FILE* f = fopen(path, "rb");
  unsigned char* pixels = NULL;
  if (f && fscanf(f, "P6 %u %u 255", width, height) == 2 && fgetc(f) != EOF && *width <= 8192 && *height <= 8192) {
    size_t bytes = (size_t)*width * *height * 3;
    pixels = malloc(bytes);
    if (pixels && fread(pixels, 1, bytes, f) != bytes) {
      free(pixels);
      pixels = NULL;
    }
  }
  if (f) fclose(f);
  return pixels;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s model.rknn picture.ppm ...\n", argv[0]);
    return 2;
  }
  rknn_context context = 0;
  int code = rknn_init(&context, argv[1], 0, 0, NULL); /* size 0: the second argument is a path */
  if (code != RKNN_SUCC) return fail("rknn_init", code);

  for (int i = 2; i < argc; ++i) {
    unsigned width = 0, height = 0;
    unsigned char* pixels = read_ppm(argv[i], &width, &height);
    if (!pixels) {
      fprintf(stderr, "%s: not a binary PPM\n", argv[i]);
      return 1;
    }
    double start = now_ms();
    rknn_input input;
    memset(&input, 0, sizeof input);
    input.buf = pixels;
    input.size = width * height * 3;
    input.type = RKNN_TENSOR_UINT8;
    input.fmt = RKNN_TENSOR_NHWC;
    if ((code = rknn_inputs_set(context, 1, &input)) != RKNN_SUCC) return fail("rknn_inputs_set", code);
    if ((code = rknn_run(context, NULL)) != RKNN_SUCC) return fail("rknn_run", code);
    rknn_output output;
    memset(&output, 0, sizeof output);
    output.want_float = 1;
    if ((code = rknn_outputs_get(context, 1, &output, NULL)) != RKNN_SUCC) return fail("rknn_outputs_get", code);
    const float* scores = output.buf;
    unsigned count = output.size / sizeof(float), best = 0;
    for (unsigned c = 1; c < count; ++c)
      if (scores[c] > scores[best]) best = c;
    printf("%s %u %.9g %.3f\n", argv[i], best, scores[best], now_ms() - start);
    rknn_outputs_release(context, 1, &output);
    free(pixels);
  }
  rknn_mem_size memory;
  if ((code = rknn_query(context, RKNN_QUERY_MEM_SIZE, &memory, sizeof memory)) != RKNN_SUCC) return fail("rknn_query", code);
  printf("memory %u %u\n", memory.total_weight_size, memory.total_internal_size);
  rknn_destroy(context);
  return 0;
}
