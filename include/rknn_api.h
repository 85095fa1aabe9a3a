/* The RKNN runtime C API: load a .rknn model, feed it, run it, read its results.
 * Binary compatible with release line 2.3.2 of the RKNN SDK. Plain C99; needs only the standard integer types. */
#ifndef _RKNN_API_H
#define _RKNN_API_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of rknn_init. */
#define RKNN_FLAG_PRIOR_HIGH 0x00000000                        /* scheduling priority of the context: high (default), */
#define RKNN_FLAG_PRIOR_MEDIUM 0x00000001                      /* medium, */
#define RKNN_FLAG_PRIOR_LOW 0x00000002                         /* low */
#define RKNN_FLAG_ASYNC_MASK 0x00000004                        /* rknn_outputs_get hands out the frame before the last run */
#define RKNN_FLAG_COLLECT_PERF_MASK 0x00000008                 /* time every layer, for RKNN_QUERY_PERF_DETAIL */
#define RKNN_FLAG_MEM_ALLOC_OUTSIDE 0x00000010                 /* the caller supplies weight, internal, input and output memory */
#define RKNN_FLAG_SHARE_WEIGHT_MEM 0x00000020                  /* use the weights of extend->ctx */
#define RKNN_FLAG_FENCE_IN_OUTSIDE 0x00000040                  /* wait for a fence of the caller before a run */
#define RKNN_FLAG_FENCE_OUT_OUTSIDE 0x00000080                 /* hand out a fence for the end of a run */
#define RKNN_FLAG_COLLECT_MODEL_INFO_ONLY 0x00000100           /* a context for queries that never runs */
#define RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE 0x00000200            /* the caller supplies internal memory only */
#define RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU 0x00000400 /* prefer the GPU for layers the NPU cannot run */
#define RKNN_FLAG_ENABLE_SRAM 0x00000800                       /* put internal memory into SRAM where it fits */
#define RKNN_FLAG_SHARE_SRAM 0x00001000                        /* share the SRAM of another context; with RKNN_FLAG_ENABLE_SRAM */
#define RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY 0x00002000        /* leave the priority of the process alone */
#define RKNN_FLAG_DISABLE_FLUSH_INPUT_MEM_CACHE 0x00004000     /* the caller flushes the cache of input buffers */
#define RKNN_FLAG_DISABLE_FLUSH_OUTPUT_MEM_CACHE 0x00008000    /* the caller invalidates the cache of output buffers */
#define RKNN_FLAG_MODEL_BUFFER_ZERO_COPY 0x00010000 /* the model is in memory made by rknn_create_mem: do not copy it */
#define RKNN_MEM_FLAG_ALLOC_NO_CONTEXT 0x00020000   /* for rknn_create_mem2: allow context 0 */

/* Return codes. Errors are negative. */
#define RKNN_SUCC 0
#define RKNN_ERR_FAIL -1                                    /* execution failed */
#define RKNN_ERR_TIMEOUT -2                                 /* it took too long */
#define RKNN_ERR_DEVICE_UNAVAILABLE -3                      /* there is no NPU */
#define RKNN_ERR_MALLOC_FAIL -4                             /* memory ran out */
#define RKNN_ERR_PARAM_INVALID -5                           /* an argument is not valid */
#define RKNN_ERR_MODEL_INVALID -6                           /* the model is not valid */
#define RKNN_ERR_CTX_INVALID -7                             /* the context is not valid */
#define RKNN_ERR_INPUT_INVALID -8                           /* a rknn_input is not valid */
#define RKNN_ERR_OUTPUT_INVALID -9                          /* a rknn_output is not valid */
#define RKNN_ERR_DEVICE_UNMATCH -10                         /* runtime and driver do not fit each other */
#define RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL -11          /* pre-compiled for another driver */
#define RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION -12 /* optimization level unknown to the driver */
#define RKNN_ERR_TARGET_PLATFORM_UNMATCH -13                /* made for another chip */

/* Limits. */
#define RKNN_MAX_DIMS 16
#define RKNN_MAX_NUM_CHANNEL 15
#define RKNN_MAX_NAME_LEN 256
#define RKNN_MAX_DYNAMIC_SHAPE_NUM 512

#ifdef __arm__
typedef uint32_t rknn_context;
#else
typedef uint64_t rknn_context;
#endif

typedef enum _rknn_query_cmd {
  RKNN_QUERY_IN_OUT_NUM = 0,         /* rknn_input_output_num */
  RKNN_QUERY_INPUT_ATTR = 1,         /* rknn_tensor_attr of an input, general view */
  RKNN_QUERY_OUTPUT_ATTR = 2,        /* rknn_tensor_attr of an output, general view */
  RKNN_QUERY_PERF_DETAIL = 3,        /* rknn_perf_detail; needs RKNN_FLAG_COLLECT_PERF_MASK */
  RKNN_QUERY_PERF_RUN = 4,           /* rknn_perf_run */
  RKNN_QUERY_SDK_VERSION = 5,        /* rknn_sdk_version */
  RKNN_QUERY_MEM_SIZE = 6,           /* rknn_mem_size */
  RKNN_QUERY_CUSTOM_STRING = 7,      /* rknn_custom_string */
  RKNN_QUERY_NATIVE_INPUT_ATTR = 8,  /* rknn_tensor_attr as the hardware reads it */
  RKNN_QUERY_NATIVE_OUTPUT_ATTR = 9, /* rknn_tensor_attr as the hardware writes it */
  RKNN_QUERY_NATIVE_NC1HWC2_INPUT_ATTR = 8,
  RKNN_QUERY_NATIVE_NC1HWC2_OUTPUT_ATTR = 9,
  RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR = 10,
  RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR = 11,
  RKNN_QUERY_DEVICE_MEM_INFO = 12,     /* rknn_tensor_mem of the model buffer */
  RKNN_QUERY_INPUT_DYNAMIC_RANGE = 13, /* rknn_input_range */
  RKNN_QUERY_CURRENT_INPUT_ATTR = 14,  /* rknn_tensor_attr under the selected shape, dynamic models only */
  RKNN_QUERY_CURRENT_OUTPUT_ATTR = 15,
  RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR = 16,
  RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR = 17,
  RKNN_QUERY_CMD_MAX
} rknn_query_cmd;

typedef enum _rknn_tensor_type {
  RKNN_TENSOR_FLOAT32 = 0,
  RKNN_TENSOR_FLOAT16,
  RKNN_TENSOR_INT8,
  RKNN_TENSOR_UINT8,
  RKNN_TENSOR_INT16,
  RKNN_TENSOR_UINT16,
  RKNN_TENSOR_INT32,
  RKNN_TENSOR_UINT32,
  RKNN_TENSOR_INT64,
  RKNN_TENSOR_BOOL,
  RKNN_TENSOR_INT4,
  RKNN_TENSOR_BFLOAT16,
  RKNN_TENSOR_TYPE_MAX
} rknn_tensor_type;

inline static const char* get_type_string(rknn_tensor_type type) {
  switch (type) {
    case RKNN_TENSOR_FLOAT32: return "FP32";
    case RKNN_TENSOR_FLOAT16: return "FP16";
    case RKNN_TENSOR_INT8: return "INT8";
    case RKNN_TENSOR_UINT8: return "UINT8";
    case RKNN_TENSOR_INT16: return "INT16";
    case RKNN_TENSOR_UINT16: return "UINT16";
    case RKNN_TENSOR_INT32: return "INT32";
    case RKNN_TENSOR_UINT32: return "UINT32";
    case RKNN_TENSOR_INT64: return "INT64";
    case RKNN_TENSOR_BOOL: return "BOOL";
    case RKNN_TENSOR_INT4: return "INT4";
    case RKNN_TENSOR_BFLOAT16: return "BF16";
    default: return "UNKNOW";
  }
}

typedef enum _rknn_tensor_qnt_type {
  RKNN_TENSOR_QNT_NONE = 0,
  RKNN_TENSOR_QNT_DFP,               /* dynamic fixed point */
  RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC, /* real = (q - zp) * scale */
  RKNN_TENSOR_QNT_MAX
} rknn_tensor_qnt_type;

inline static const char* get_qnt_type_string(rknn_tensor_qnt_type type) {
  switch (type) {
    case RKNN_TENSOR_QNT_NONE: return "NONE";
    case RKNN_TENSOR_QNT_DFP: return "DFP";
    case RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC: return "AFFINE";
    default: return "UNKNOW";
  }
}

typedef enum _rknn_tensor_format {
  RKNN_TENSOR_NCHW = 0,
  RKNN_TENSOR_NHWC,
  RKNN_TENSOR_NC1HWC2,   /* channels in blocks, the layout of the hardware */
  RKNN_TENSOR_UNDEFINED, /* whatever is not 4-D */
  RKNN_TENSOR_FORMAT_MAX
} rknn_tensor_format;

inline static const char* get_format_string(rknn_tensor_format fmt) {
  switch (fmt) {
    case RKNN_TENSOR_NCHW: return "NCHW";
    case RKNN_TENSOR_NHWC: return "NHWC";
    case RKNN_TENSOR_NC1HWC2: return "NC1HWC2";
    case RKNN_TENSOR_UNDEFINED: return "UNDEFINED";
    default: return "UNKNOW";
  }
}

typedef enum _rknn_core_mask {
  RKNN_NPU_CORE_AUTO = 0, /* one idle core, chosen for each run */
  RKNN_NPU_CORE_0 = 1,
  RKNN_NPU_CORE_1 = 2,
  RKNN_NPU_CORE_2 = 4,
  RKNN_NPU_CORE_0_1 = RKNN_NPU_CORE_0 | RKNN_NPU_CORE_1,
  RKNN_NPU_CORE_0_1_2 = RKNN_NPU_CORE_0_1 | RKNN_NPU_CORE_2,
  RKNN_NPU_CORE_ALL = 0xffff,
  RKNN_NPU_CORE_UNDEFINED
} rknn_core_mask;

typedef enum _rknn_tensor_mem_flags {
  RKNN_TENSOR_MEMORY_FLAGS_ALLOC_INSIDE = 1, /* made by rknn_create_mem or rknn_create_mem2 */
  RKNN_TENSOR_MEMORY_FLAGS_FROM_FD = 2,      /* made by rknn_create_mem_from_fd */
  RKNN_TENSOR_MEMORY_FLAGS_FROM_PHYS = 3,    /* made by rknn_create_mem_from_phys */
  RKNN_TENSOR_MEMORY_FLAGS_UNKNOWN
} rknn_tensor_mem_flags;

typedef enum _rknn_mem_alloc_flags {
  RKNN_FLAG_MEMORY_FLAGS_DEFAULT = 0 << 0,
  RKNN_FLAG_MEMORY_CACHEABLE = 1 << 0,
  RKNN_FLAG_MEMORY_NON_CACHEABLE = 1 << 1,
  RKNN_FLAG_MEMORY_TRY_ALLOC_SRAM = 1 << 2
} rknn_mem_alloc_flags;

typedef enum _rknn_mem_sync_mode {
  RKNN_MEMORY_SYNC_TO_DEVICE = 0x1,   /* before the NPU reads what the CPU wrote */
  RKNN_MEMORY_SYNC_FROM_DEVICE = 0x2, /* before the CPU reads what the NPU wrote */
  RKNN_MEMORY_SYNC_BIDIRECTIONAL = RKNN_MEMORY_SYNC_TO_DEVICE | RKNN_MEMORY_SYNC_FROM_DEVICE
} rknn_mem_sync_mode;

typedef struct _rknn_input_output_num {
  uint32_t n_input;
  uint32_t n_output;
} rknn_input_output_num;

typedef struct _rknn_tensor_attr {
  uint32_t index;               /* set by the caller: which input or output */
  uint32_t n_dims;              /* used entries of dims */
  uint32_t dims[RKNN_MAX_DIMS]; /* extents in the order of fmt; the rest is 0 */
  char name[RKNN_MAX_NAME_LEN];
  uint32_t n_elems; /* product of the extents */
  uint32_t size;    /* bytes without padding */
  rknn_tensor_format fmt;
  rknn_tensor_type type;
  rknn_tensor_qnt_type qnt_type;
  int8_t fl;                 /* fraction bits, for RKNN_TENSOR_QNT_DFP */
  int32_t zp;                /* zero point, for RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC */
  float scale;               /* scale, for RKNN_TENSOR_QNT_AFFINE_ASYMMETRIC */
  uint32_t w_stride;         /* pixels from one row to the next; 0 where there are no rows */
  uint32_t size_with_stride; /* bytes with padding */
  uint8_t pass_through;      /* for rknn_set_io_mem: the buffer is used without conversion */
  uint32_t h_stride;         /* set by the caller: rows from one picture of a batch to the next, 0 = the height */
} rknn_tensor_attr;

typedef struct _rknn_input_range {
  uint32_t index; /* set by the caller: which input */
  uint32_t shape_number;
  rknn_tensor_format fmt;
  char name[RKNN_MAX_NAME_LEN];
  uint32_t dyn_range[RKNN_MAX_DYNAMIC_SHAPE_NUM][RKNN_MAX_DIMS]; /* one row per allowed shape */
  uint32_t n_dims;
} rknn_input_range;

typedef struct _rknn_perf_detail {
  char* perf_data; /* text that belongs to the context */
  uint64_t data_len;
} rknn_perf_detail;

typedef struct _rknn_perf_run {
  int64_t run_duration; /* microseconds of the last run, without copying inputs and outputs */
} rknn_perf_run;

typedef struct _rknn_sdk_version {
  char api_version[256];
  char drv_version[256];
} rknn_sdk_version;

typedef struct _rknn_mem_size {
  uint32_t total_weight_size;
  uint32_t total_internal_size; /* tensors between layers, without inputs and outputs */
  uint64_t total_dma_allocated_size;
  uint32_t total_sram_size;
  uint32_t free_sram_size;
  uint32_t reserved[10];
} rknn_mem_size;

typedef struct _rknn_custom_string {
  char string[1024]; /* the text given to the converter; empty if there was none */
} rknn_custom_string;

typedef struct _rknn_tensor_memory {
  void* virt_addr;
  uint64_t phys_addr;
  int32_t fd;
  int32_t offset; /* of the payload, from virt_addr and from the start of fd */
  uint32_t size;
  uint32_t flags; /* a rknn_tensor_mem_flags */
  void* priv_data;
} rknn_tensor_mem;

typedef struct _rknn_input {
  uint32_t index;
  void* buf;
  uint32_t size;        /* bytes at buf */
  uint8_t pass_through; /* 1: buf is already what the model computes with */
  rknn_tensor_type type;
  rknn_tensor_format fmt; /* for 4-D inputs: RKNN_TENSOR_NHWC or RKNN_TENSOR_NCHW */
} rknn_input;

typedef struct _rknn_output {
  uint8_t want_float;  /* 1: deliver float32 */
  uint8_t is_prealloc; /* 1: write to buf, which holds size bytes */
  uint32_t index;
  void* buf;
  uint32_t size;
} rknn_output;

typedef struct _rknn_init_extend {
  rknn_context ctx;            /* donor for RKNN_FLAG_SHARE_WEIGHT_MEM */
  int32_t real_model_offset;   /* where the model starts in a larger file or buffer */
  uint32_t real_model_size;    /* and how long it is */
  int32_t model_buffer_fd;     /* for RKNN_FLAG_MODEL_BUFFER_ZERO_COPY */
  uint32_t model_buffer_flags; /* for RKNN_FLAG_MODEL_BUFFER_ZERO_COPY */
  uint8_t reserved[112];
} rknn_init_extend;

typedef struct _rknn_run_extend {
  uint64_t frame_id; /* out: number of the run */
  int32_t non_block;
  int32_t timeout_ms;
  int32_t fence_fd;
} rknn_run_extend;

typedef struct _rknn_output_extend {
  uint64_t frame_id; /* out: number of the run the results belong to */
} rknn_output_extend;

/* Loads a model. size > 0: model points to that many bytes, which may be freed afterwards. size 0: model is a path.
 * extend may be NULL. */
int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag, rknn_init_extend* extend);
/* A second context of the same model with inputs and outputs of its own. */
int rknn_dup_context(rknn_context* context_in, rknn_context* context_out);
/* Frees a context and everything it owns. */
int rknn_destroy(rknn_context context);
/* Fills info, a structure of size bytes that depends on cmd (see rknn_query_cmd). */
int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info, uint32_t size);
/* Converts and copies the caller's data; the buffers may be reused afterwards. */
int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input inputs[]);
/* Number of cores for a model converted with a batch. */
int rknn_set_batch_core_num(rknn_context context, int core_num);
/* Cores the context runs on. */
int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask);
/* One inference; returns when it is done. extend may be NULL. */
int rknn_run(rknn_context context, rknn_run_extend* extend);
int rknn_wait(rknn_context context, rknn_run_extend* extend);
/* Results of the last run. extend may be NULL. */
int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend* extend);
/* Frees the buffers that rknn_outputs_get made. */
int rknn_outputs_release(rknn_context context, uint32_t n_ouputs, rknn_output outputs[]);

/* Memory that the NPU and the CPU share. NULL on failure. */
rknn_tensor_mem* rknn_create_mem_from_phys(rknn_context ctx, uint64_t phys_addr, void* virt_addr, uint32_t size);
rknn_tensor_mem* rknn_create_mem_from_fd(rknn_context ctx, int32_t fd, void* virt_addr, uint32_t size, int32_t offset);
rknn_tensor_mem* rknn_create_mem_from_mb_blk(rknn_context ctx, void* mb_blk, int32_t offset);
rknn_tensor_mem* rknn_create_mem(rknn_context ctx, uint32_t size);
rknn_tensor_mem* rknn_create_mem2(rknn_context ctx, uint64_t size, uint64_t alloc_flags);
int rknn_destroy_mem(rknn_context ctx, rknn_tensor_mem* mem);
int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem);
int rknn_set_internal_mem(rknn_context ctx, rknn_tensor_mem* mem);
/* Binds memory to the input or output that attr names. */
int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem, rknn_tensor_attr* attr);
/* Select one of the shapes of a dynamic model. The first is out of date. */
int rknn_set_input_shape(rknn_context ctx, rknn_tensor_attr* attr);
int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs, rknn_tensor_attr attr[]);
int rknn_mem_sync(rknn_context context, rknn_tensor_mem* mem, rknn_mem_sync_mode mode);

#ifdef __cplusplus
}
#endif

#endif
