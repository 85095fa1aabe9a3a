/* Products of every type, layout and quantization scheme, compared byte for byte with plain loops:
 *   matmul [chip]
 * Without a chip every type is tried; with one, those it offers. Ends with 0 and the number of products, or with 1 at the first
 * that differs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "openrknn.h"
#include "rknn_matmul_api.h"

enum { HALF, INT8, INT4, FLOAT, INT32, INT16, BFLOAT };

typedef struct {
  int value, left, right, result;
} Type;
static const Type kTypes[] = {{1, HALF, HALF, FLOAT}, {2, INT8, INT8, INT32},  {3, INT8, INT8, INT8},   {4, HALF, HALF, HALF},
                              {5, HALF, INT8, FLOAT}, {6, HALF, INT8, HALF},   {7, HALF, INT4, FLOAT},  {8, HALF, INT4, HALF},
                              {9, INT8, INT8, FLOAT}, {10, INT4, INT4, INT16}, {11, INT8, INT4, INT32}, {12, HALF, INT4, BFLOAT},
                              {15, INT8, INT4, HALF}};

/* Quantization of the three matrices: scales and zero points of B by group and column. */
typedef struct {
  float a_scale, c_scale, *b_scale;
  int a_zero, c_zero, *b_zero;
} Quant;

/* One product and its plain matrices: integers, or floats that are halves. */
typedef struct {
  const Type* type;
  rknn_matmul_info info;
  int M, K, N, group; /* depth of a group: K unless B is quantized per group */
  float *a, *b;
  Quant q;
} Product;

static unsigned long long seed = 1;
static int draw(int low, int high) { /* both included */
  seed = seed * 6364136223846793005ull + 1442695040888963407ull;
  return low + (int)((seed >> 33) % (unsigned)(high - low + 1));
}

static unsigned bits_of(float value) {
  unsigned bits;
  memcpy(&bits, &value, 4);
  return bits;
}

/* Rounds to a half; results of these tests are finite. */
static unsigned short to_half(float value) {
  const unsigned bits = bits_of(value), sign = bits >> 16 & 0x8000;
  const unsigned magnitude = bits & 0x7fffffff;
  if (magnitude >= 0x477ff000) return (unsigned short)(sign | 0x7c00);
  if (magnitude < 0x38800000) { /* multiples of 2^-24 */
    const float scaled = (value < 0 ? -value : value) * 16777216.0f;
    unsigned whole = (unsigned)scaled;
    const float rest = scaled - (float)whole;
    if (rest > 0.5f || (rest == 0.5f && (whole & 1))) ++whole;
    return (unsigned short)(sign | whole);
  }
  return (unsigned short)(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}
static unsigned short to_bfloat(float value) {
  const unsigned bits = bits_of(value);
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double nearest(double value) { /* halves to even */
  const double down = (double)(long long)(value < 0 ? value - 1 : value);
  double floor_value = down > value ? down - 1 : down, rest;
  if (floor_value + 1 <= value) floor_value += 1;
  rest = value - floor_value;
  if (rest > 0.5 || (rest == 0.5 && (long long)floor_value % 2 != 0)) floor_value += 1;
  return floor_value;
}
static double clamp(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

static int bits(int type) { return type == INT4 ? 4 : type == INT8 ? 8 : type == INT32 || type == FLOAT ? 32 : 16; }

/* Writes element `at` of a matrix. */
static void put(void* data, int type, long long at, double value, int high_first) {
  unsigned char* bytes = data;
  if (type == INT4) {
    const int high = (at % 2 != 0) != high_first;
    const unsigned nibble = (unsigned)(int)value & 15;
    bytes[at / 2] = (unsigned char)(high ? (bytes[at / 2] & 0x0f) | nibble << 4 : (bytes[at / 2] & 0xf0) | nibble);
  } else if (type == INT8) {
    ((signed char*)data)[at] = (signed char)value;
  } else if (type == INT16) {
    ((short*)data)[at] = (short)value;
  } else if (type == INT32) {
    ((int*)data)[at] = (int)(long long)value;
  } else if (type == HALF) {
    ((unsigned short*)data)[at] = to_half((float)value);
  } else if (type == BFLOAT) {
    ((unsigned short*)data)[at] = to_bfloat((float)value);
  } else {
    ((float*)data)[at] = (float)value;
  }
}

/* Where an element is: dims of 2 are rows, of 3 [blocks][rows][block], of 4 [columns / n][depth / k][n][k]. */
static long long row_place(const rknn_matmul_tensor_attr* attr, int row, int column) {
  if (attr->n_dims == 2) return (long long)row * attr->dims[1] + column;
  return ((long long)(column / (int)attr->dims[2]) * attr->dims[1] + row) * attr->dims[2] + column % (int)attr->dims[2];
}
static long long right_place(const Product* p, const rknn_matmul_tensor_attr* attr, int segment, int k, int n) {
  const int sub_n = (int)attr->dims[2], sub_k = (int)attr->dims[3];
  int rows;
  if (attr->n_dims == 2) return p->info.B_layout == RKNN_MM_LAYOUT_NORM ? (long long)k * p->N + n : (long long)n * p->K + k;
  rows = k / segment < p->K / segment ? segment : p->K % segment;
  return (long long)(k / segment) * segment * attr->dims[0] * sub_n +
         (((long long)(n / sub_n) * ((rows + sub_k - 1) / sub_k) + k % segment / sub_k) * sub_n + n % sub_n) * sub_k + k % sub_k;
}

static int has_groups(const Product* p) { return p->info.B_quant_type >= RKNN_QUANT_TYPE_PER_GROUP_SYM; }
static int has_channels(const Product* p) {
  return p->info.B_quant_type == RKNN_QUANT_TYPE_PER_CHANNEL_SYM || p->info.B_quant_type == RKNN_QUANT_TYPE_PER_CHANNEL_ASYM;
}
static int b_index(const Product* p, int k, int n) { return has_groups(p) ? k / p->group * p->N + n : has_channels(p) ? n : 0; }

/* The result as the documentation defines it. */
static double expected(const Product* p, int m, int n) {
  const float* a = p->a + (long long)m * p->K;
  const Quant* q = &p->q;
  const float b_scale = has_groups(p) ? 1.0f : q->b_scale[b_index(p, 0, n)];
  const float factor = (float)((double)q->a_scale * (double)b_scale);
  int k;
  if (p->type->left == HALF) {
    float sum = 0;
    for (k = 0; k < p->K; ++k) {
      const int i = b_index(p, k, n);
      float b = p->b[(long long)k * p->N + n];
      if (p->type->right != HALF) b -= (float)q->b_zero[i];
      if (has_groups(p)) b *= q->b_scale[i];
      sum += a[k] * b;
    }
    return sum * factor;
  }
  {
    long long sum = 0;
    float groups = 0;
    for (k = 0; k < p->K; ++k) {
      const int i = b_index(p, k, n);
      sum += ((long long)a[k] - q->a_zero) * ((long long)p->b[(long long)k * p->N + n] - q->b_zero[i]);
      if (!has_groups(p) || (k + 1) % p->group != 0) continue;
      groups += (float)sum * q->b_scale[i];
      sum = 0;
    }
    if (has_groups(p)) return groups * factor;
    if (p->type->result == FLOAT || p->type->result == HALF) return (float)sum * factor;
    if (p->type->result == INT16) return clamp((double)sum, -32768, 32767);
    if (p->type->result == INT8)
      return clamp(nearest((double)sum * ((double)q->a_scale * (double)b_scale / (double)q->c_scale)) + q->c_zero, -128, 127);
    if (p->type->value == 2 && has_channels(p)) {
      float most = 0;
      for (k = 0; k < p->N; ++k) most = q->b_scale[k] > most ? q->b_scale[k] : most;
      return clamp(nearest((double)sum * ((double)b_scale / (double)most)), -2147483648.0, 2147483647.0);
    }
    return (double)(int)(unsigned)(unsigned long long)sum;
  }
}

static void* allocate(size_t bytes) {
  void* data = calloc(bytes ? bytes : 1, 1);
  if (!data) exit(2);
  return data;
}

static int extreme = 0; /* values near the largest, zero points at the other end */

static float value_of(int type) {
  if (type == HALF) return (float)draw(-512, 512) / 128.0f;
  if (extreme) return type == INT4 ? (float)draw(6, 7) : (float)draw(120, 127);
  return type == INT4 ? (float)draw(-8, 7) : (float)draw(-128, 127);
}

static void fill(Product* p) {
  const int scheme = p->info.B_quant_type;
  const long long count = has_groups(p) ? (long long)(p->K / p->group) * p->N : has_channels(p) ? p->N : 1;
  const int has_quant = p->type->right != HALF, is_asymmetric = scheme % 2 == 1;
  long long i;
  p->a = allocate((size_t)p->M * (size_t)p->K * sizeof(float));
  p->b = allocate((size_t)p->K * (size_t)p->N * sizeof(float));
  for (i = 0; i < (long long)p->M * p->K; ++i) p->a[i] = value_of(p->type->left);
  for (i = 0; i < (long long)p->K * p->N; ++i) p->b[i] = value_of(p->type->right);
  p->q.b_scale = allocate((size_t)count * sizeof(float));
  p->q.b_zero = allocate((size_t)count * sizeof(int));
  p->q.a_scale = has_quant ? 0.125f : 1;
  p->q.c_scale = 37.5f;
  p->q.a_zero = has_quant && p->info.AC_quant_type == RKNN_QUANT_TYPE_PER_LAYER_ASYM && p->type->left == INT8 ? -77 : 0;
  p->q.c_zero = p->info.AC_quant_type == RKNN_QUANT_TYPE_PER_LAYER_ASYM && p->type->result == INT8 ? 9 : 0;
  for (i = 0; i < count; ++i) {
    /* Products with scales of few bits are exact in float, so that sums do not depend on how they are rounded. */
    p->q.b_scale[i] = has_quant ? (float)draw(1, 7) / 16.0f : 1;
    p->q.b_zero[i] = has_quant && is_asymmetric ? (extreme ? -128 : p->type->right == INT4 ? draw(-8, 7) : draw(-128, 127)) : 0;
  }
}

static void forget(Product* p) {
  free(p->a);
  free(p->b);
  free(p->q.b_scale);
  free(p->q.b_zero);
}

static int complain(const Product* p, const char* what, int code) {
  printf("type %d, %d x %d x %d, B_layout %d, AC_layout %d, B_quant_type %d, AC_quant_type %d: %s %d (%s)\n", p->type->value,
         p->M, p->K, p->N, p->info.B_layout, p->info.AC_layout, p->info.B_quant_type, p->info.AC_quant_type, what, code,
         orknn_last_error());
  return 1;
}

static int set_quant(const Product* p, rknn_matmul_ctx ctx, const char* name, float* scale, int* zero, int count, int is_zero) {
  rknn_quant_params params;
  int code;
  memset(params.name, 0, sizeof params.name);
  strcpy(params.name, name);
  params.scale = malloc((size_t)count * sizeof(float));
  params.zp = malloc((size_t)count * sizeof(int));
  if (!params.scale || !params.zp) exit(2);
  memcpy(params.scale, scale, (size_t)count * sizeof(float));
  memcpy(params.zp, zero, (size_t)count * sizeof(int));
  params.scale_len = count;
  params.zp_len = is_zero ? 0 : count; /* may be left out where all are 0 */
  code = rknn_matmul_set_quant_params(ctx, &params);
  free(params.scale);
  free(params.zp);
  return code == 0 ? 0 : complain(p, "rknn_matmul_set_quant_params", code);
}

static int quantize(Product* p, rknn_matmul_ctx ctx) {
  const int count = has_groups(p) ? p->K / p->group * p->N : has_channels(p) ? p->N : 1;
  if (p->type->right == HALF) return 0;
  if (set_quant(p, ctx, "A", &p->q.a_scale, &p->q.a_zero, 1, p->q.a_zero == 0)) return 1;
  if (set_quant(p, ctx, "C", &p->q.c_scale, &p->q.c_zero, 1, p->q.c_zero == 0)) return 1;
  return set_quant(p, ctx, "B", p->q.b_scale, p->q.b_zero, count, p->info.B_quant_type % 2 == 0);
}

static void write_left(const Product* p, const rknn_matmul_tensor_attr* attr, void* data) {
  int m, k;
  memset(data, 0, attr->size);
  for (m = 0; m < p->M; ++m)
    for (k = 0; k < p->K; ++k) put(data, p->type->left, row_place(attr, m, k), p->a[(long long)m * p->K + k], 0);
}

/* Writes B by the index formula, and for the native layout demands the same bytes of the library's own conversion. */
static int write_right(Product* p, const rknn_matmul_tensor_attr* attr, int segment, void* data) {
  const int native = p->info.B_layout == RKNN_MM_LAYOUT_NATIVE;
  void *plain, *converted;
  int k, n, code, differs;
  memset(data, 0, attr->size);
  for (k = 0; k < p->K; ++k)
    for (n = 0; n < p->N; ++n)
      put(data, p->type->right, right_place(p, attr, segment, k, n), p->b[(long long)k * p->N + n], native);
  if (!native) return 0;
  plain = allocate((size_t)p->K * (size_t)p->N * 2);
  converted = allocate(attr->size);
  memset(converted, 0xee, attr->size);
  for (k = 0; k < p->K; ++k)
    for (n = 0; n < p->N; ++n) put(plain, p->type->right, (long long)k * p->N + n, p->b[(long long)k * p->N + n], 0);
  code = rknn_B_normal_layout_to_native_layout(plain, converted, p->K, p->N, &p->info);
  differs = memcmp(converted, data, attr->size);
  free(plain);
  free(converted);
  if (code != 0) return complain(p, "rknn_B_normal_layout_to_native_layout", code);
  return differs ? complain(p, "the converted B differs", 0) : 0;
}

/* C as the documentation defines it, in its layout. */
static void* wanted_result(const Product* p, const rknn_matmul_tensor_attr* attr) {
  void* wanted = allocate(attr->size);
  int m, n;
  for (m = 0; m < p->M; ++m)
    for (n = 0; n < p->N; ++n) put(wanted, p->type->result, row_place(attr, m, n), expected(p, m, n), 0);
  return wanted;
}

static int check_size(const Product* p, const rknn_matmul_tensor_attr* attr, const char* name, int type) {
  long long count = 1;
  unsigned i;
  for (i = 0; i < attr->n_dims; ++i) count *= attr->dims[i];
  if (strcmp(attr->name, name) != 0) return complain(p, "wrong name of matrix", 0);
  return attr->size == (count * bits(type) + 7) / 8 ? 0 : complain(p, "wrong size of matrix", (int)attr->size);
}

/* Runs with memory of the runtime's. A plain A and B may be overwritten after they were bound; native ones are read by the run.
 */
static int multiply(Product* p, rknn_matmul_ctx ctx, rknn_matmul_io_attr* attr, int segment) {
  rknn_tensor_mem *a = rknn_create_mem(ctx, attr->A.size), *b = rknn_create_mem(ctx, attr->B.size),
                  *c = rknn_create_mem(ctx, attr->C.size);
  const int is_plain_a = p->info.AC_layout == RKNN_MM_LAYOUT_NORM, is_plain_b = p->info.B_layout != RKNN_MM_LAYOUT_NATIVE;
  void* wanted = wanted_result(p, &attr->C);
  int code = 0, run;
  if (!a || !b || !c) return complain(p, "rknn_create_mem", 0);
  if (is_plain_a) write_left(p, &attr->A, a->virt_addr);
  if (is_plain_b && write_right(p, &attr->B, segment, b->virt_addr)) return 1;
  if ((code = rknn_matmul_set_io_mem(ctx, a, &attr->A)) != 0) return complain(p, "binding A", code);
  if ((code = rknn_matmul_set_io_mem(ctx, b, &attr->B)) != 0) return complain(p, "binding B", code);
  if ((code = rknn_matmul_set_io_mem(ctx, c, &attr->C)) != 0) return complain(p, "binding C", code);
  if (is_plain_a)
    memset(a->virt_addr, 0x11, attr->A.size);
  else
    write_left(p, &attr->A, a->virt_addr);
  if (is_plain_b)
    memset(b->virt_addr, 0x11, attr->B.size);
  else if (write_right(p, &attr->B, segment, b->virt_addr))
    return 1;
  for (run = 0; run < 2; ++run) {
    memset(c->virt_addr, 0xee, attr->C.size);
    if ((code = rknn_matmul_run(ctx)) != 0) return complain(p, "rknn_matmul_run", code);
    if (memcmp(wanted, c->virt_addr, attr->C.size) != 0) return complain(p, "the result differs in run", run);
  }
  free(wanted);
  rknn_destroy_mem(ctx, a);
  rknn_destroy_mem(ctx, b);
  rknn_destroy_mem(ctx, c);
  return 0;
}

static int refuses(const Product* p, int code) {
  printf("type %d is refused: %d (%s)\n", p->type->value, code, orknn_last_error());
  return 1;
}

static int products = 0;

/* One product in a context of its own. */
static int try_product(const Type* type, int M, int K, int N, int b_layout, int ac_layout, int b_quant, int ac_quant, int group,
                       int segment) {
  Product p;
  rknn_matmul_ctx ctx;
  rknn_matmul_io_attr attr;
  int code;
  memset(&p, 0, sizeof p);
  p.type = type;
  p.M = p.info.M = M;
  p.K = p.info.K = K;
  p.N = p.info.N = N;
  p.info.type = (rknn_matmul_type)type->value;
  p.info.B_layout = (int16_t)b_layout;
  p.info.AC_layout = (int16_t)ac_layout;
  p.info.B_quant_type = (int16_t)b_quant;
  p.info.AC_quant_type = (int16_t)ac_quant;
  p.info.group_size = (int16_t)group;
  p.group = has_groups(&p) ? group : K;
  fill(&p);
  memset(&attr, 0xee, sizeof attr);
  code = rknn_matmul_create(&ctx, &p.info, &attr);
  if (code != 0) return refuses(&p, code);
  if (check_size(&p, &attr.A, "A", type->left) || check_size(&p, &attr.B, "B", type->right) ||
      check_size(&p, &attr.C, "C", type->result))
    return 1;
  if (quantize(&p, ctx) || multiply(&p, ctx, &attr, segment)) return 1;
  if ((code = rknn_matmul_destroy(ctx)) != 0) return complain(&p, "rknn_matmul_destroy", code);
  forget(&p);
  ++products;
  return 0;
}

/* Shapes that share B, or, stored by columns, do not. */
static int try_dynamic(const Type* type, int b_layout, int ac_layout, int b_quant, int segment) {
  rknn_matmul_shape shapes[] = {{1, 64, 64}, {13, 64, 64}, {8, 64, 64}, {1, 64, 64}};
  rknn_matmul_io_attr attrs[4];
  rknn_matmul_info info;
  rknn_matmul_ctx ctx;
  int i, code;
  if (b_layout == RKNN_MM_LAYOUT_TP_NORM && b_quant == 0) {
    shapes[1].K = 96;
    shapes[2].N = 128;
  }
  memset(&info, 0, sizeof info);
  info.type = (rknn_matmul_type)type->value;
  info.B_layout = (int16_t)b_layout;
  info.AC_layout = (int16_t)ac_layout;
  info.B_quant_type = (int16_t)b_quant;
  info.group_size = 32;
  code = rknn_matmul_create_dynamic_shape(&ctx, &info, 4, shapes, attrs);
  if (code != 0) {
    printf("dynamic shapes of type %d are refused: %d (%s)\n", type->value, code, orknn_last_error());
    return 1;
  }
  for (i = 0; i < 4; ++i) {
    Product p;
    memset(&p, 0, sizeof p);
    p.type = type;
    p.info = info;
    p.M = shapes[i].M;
    p.K = shapes[i].K;
    p.N = shapes[i].N;
    p.group = has_groups(&p) ? 32 : p.K;
    fill(&p);
    if ((code = rknn_matmul_set_dynamic_shape(ctx, &shapes[i])) != 0) return complain(&p, "selecting a shape", code);
    if (quantize(&p, ctx) || multiply(&p, ctx, &attrs[i], segment)) return 1;
    forget(&p);
    ++products;
  }
  code = rknn_matmul_destroy(ctx);
  if (code != 0) printf("destroying a dynamic context: %d\n", code);
  return code != 0;
}

/* Every layout, rows around the sizes of tiles, and the schemes that the type allows. */
static int try_type(const Type* type, int has_columns_layout, int segment) {
  static const int kRows[] = {1, 3, 8, 13}, kDepths[] = {32, 96, 64, 224}, kColumns[] = {64, 128, 192, 64};
  const int is_quantized = type->right != HALF,
            has_float = type->result == FLOAT || type->result == HALF || type->result == BFLOAT;
  const int by_channel = is_quantized && (type->left != type->right || type->result == INT32 || type->result == INT8);
  int i, b, ac;
  for (b = 0; b < 2 + has_columns_layout; ++b)
    for (ac = 0; ac < 2; ++ac) {
      for (i = 0; i < 4; ++i) {
        const int M = kRows[i], K = kDepths[i], N = kColumns[i];
        if (try_product(type, M, K, N, b, ac, 0, 0, 0, segment)) return 1;
        if (is_quantized && try_product(type, M, K, N, b, ac, 1, type->left != INT4, 0, segment)) return 1;
        if (by_channel && try_product(type, M, K, N, b, ac, 2, 0, 0, segment)) return 1;
        if (by_channel && try_product(type, M, K, N, b, ac, 3, type->left != INT4, 0, segment)) return 1;
        if (is_quantized && has_float && try_product(type, M, K, N, b, ac, 4, 0, 32, segment)) return 1;
        if (is_quantized && has_float && try_product(type, M, K, N, b, ac, 5, 0, i == 1 ? 3 : 16, segment)) return 1;
      }
      if (try_dynamic(type, b, ac, 0, segment)) return 1;
      if (is_quantized && has_float && try_dynamic(type, b, ac, 4, segment)) return 1;
    }
  return 0;
}

/* Depths that the native layout stores in segments; sums that leave 16 bits, and 32. */
static int try_long(int segment, int offers_all) {
  const Type *half = &kTypes[0], *ints = &kTypes[1];
  if (segment > 0) {
    if (try_product(half, 3, segment + 32, 64, 1, 0, 0, 0, 0, segment)) return 1;
    if (try_product(ints, 5, 2 * segment + 96, 64, 1, 1, 0, 0, 0, segment)) return 1;
    if (try_product(ints, 5, 2 * segment, 64, 1, 1, 0, 0, 0, segment)) return 1;
  }
  if (!offers_all) return 0;
  extreme = 1;
  if (try_product(&kTypes[9], 9, 4096, 64, 1, 0, 0, 0, 0, segment)) return 1;  /* int4 sums, saturated */
  if (try_product(&kTypes[8], 2, 65568, 32, 0, 0, 1, 1, 0, segment)) return 1; /* int8 sums beyond 32 bits, as float */
  if (try_product(&kTypes[2], 3, 65568, 32, 2, 0, 1, 1, 0, segment)) return 1; /* and as int8 */
  return try_product(&kTypes[1], 2, 160000, 32, 2, 0, 1, 1, 0, segment);       /* and wrapped */
}

/* What each chip offers; the one without a name is no chip in particular. */
typedef struct {
  const char* name;
  int segment, has_columns_layout, types[14];
} Chip;
static const Chip kChips[] = {{"rk3562", 0, 1, {1, 2}},
                              {"rk3566", 0, 0, {1, 2}},
                              {"rk3568", 0, 0, {1, 2}},
                              {"rk3576", 4096, 1, {1, 2, 4, 5, 7, 8, 11}},
                              {"rk3588", 8192, 1, {1, 2, 3, 4, 9, 10}},
                              {"rv1126b", 4096, 1, {1, 4, 5, 7, 8, 11}},
                              {NULL, 8192, 1, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 15}}};

int main(int argc, char** argv) {
  const size_t chips = sizeof kChips / sizeof *kChips;
  size_t i, t;
  const Chip* chip = &kChips[chips - 1];
  int j;
  for (i = 0; argc > 1 && i + 1 < chips; ++i)
    if (strcmp(kChips[i].name, argv[1]) == 0) chip = &kChips[i];
  if (argc > 1 && (!chip->name || orknn_set_platform(argv[1]) != 0)) return 2;
  for (j = 0; chip->types[j] != 0; ++j)
    for (t = 0; t < sizeof kTypes / sizeof *kTypes; ++t)
      if (kTypes[t].value == chip->types[j] &&
          try_type(&kTypes[t], chip->has_columns_layout, chip->segment ? chip->segment : 1 << 30))
        return 1;
  if ((!chip->name || chip->types[1] == 2) && try_long(chip->segment, !chip->name)) return 1;
  printf("%d products equal the reference\n", products);
  return 0;
}
