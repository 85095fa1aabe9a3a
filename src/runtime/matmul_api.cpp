// The matmul API of include/rknn_matmul_api.h. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <cstring>
#include <mutex>

#include "base/log.h"
#include "remote/discovery.h"
#include "runtime/c_call.h"
#include "runtime/checker.h"
#include "runtime/configuration.h"
#include "runtime/matmul_context.h"
#include "runtime/remote_device.h"

namespace orknn::runtime {
namespace {

template <class Body>
int with_matmul(const char* function, rknn_matmul_ctx handle, Body body) {
  return c_call(function, [&] {
    const std::shared_ptr<MatmulContext> context = find_handle<MatmulContext>(handle);
    if (!context) return invalid_context(function);
    if (is_checking() && context->mutex.is_held())
      report_mistake(function, "another thread is inside of a call with the same context",
                     "give each thread a context of its own");
    const CallLock lock(context->mutex);
    if (!lock) return invalid_context(function);
    if (context->destroyed) return invalid_context(function);
    return body(*context);
  });
}

int result_of(const char* function, const Status& status) { return status ? RKNN_SUCC : fail(function, status); }

int null_pointer(const char* function, std::initializer_list<std::pair<const char*, const void*>> pointers) {
  for (const auto& [name, pointer] : pointers)
    if (!pointer) return fail(RKNN_ERR_PARAM_INVALID, function, std::string(name) + " is NULL");
  return RKNN_SUCC;
}

// The matrix a name means: 'A', 'B', 'C', or 0.
template <size_t N>
char matrix_of(const char (&name)[N]) {
  return name[0] >= 'A' && name[0] <= 'C' && name[1] == '\0' ? name[0] : '\0';
}

template <size_t N>
int unknown_matrix(const char* function, const char (&name)[N]) {
  return fail(RKNN_ERR_PARAM_INVALID, function,
              "name is '" + std::string(name, strnlen(name, N)) + "', expected A, B or C as in rknn_matmul_io_attr");
}

// Products are computed in this process whatever the environment asks for.
int check_place(const char* function) {
  static std::once_flag told;
  const std::string device = remote::device_of_environment();
  if (is_device_required())
    return fail(RKNN_ERR_DEVICE_UNAVAILABLE, function,
                "ORKNN_REQUIRE_DEVICE=1 demands a device, but matrix products are computed in this process");
  if (!device.empty())
    std::call_once(told, [&] {
      log(LogLevel::Warn, function,
          "ORKNN_DEVICE=" + device + " is not used: matrix products are computed in this process, only models go to a device");
    });
  return RKNN_SUCC;
}

int create(const char* function, rknn_matmul_ctx* ctx, const rknn_matmul_info& info, std::span<const rknn_matmul_shape> shapes,
           bool is_dynamic, rknn_matmul_io_attr* attrs) {
  auto plan = MatmulPlan::create(info, shapes);
  if (!plan) return fail(function, plan.status());
  if (const int code = check_place(function)) return code;
  std::vector<rknn_matmul_io_attr> described;
  for (const rknn_matmul_shape& shape : shapes) described.push_back(plan->attributes(shape));
  const rknn_matmul_ctx handle = publish(std::make_shared<MatmulContext>(std::move(*plan), is_dynamic, configured_pool()));
  std::copy(described.begin(), described.end(), attrs);
  *ctx = handle;
  return RKNN_SUCC;
}

int create_static(rknn_matmul_ctx* ctx, rknn_matmul_info* info, rknn_matmul_io_attr* io_attr) {
  constexpr const char* kName = "rknn_matmul_create";
  if (const int code = null_pointer(kName, {{"ctx", ctx}, {"info", info}, {"io_attr", io_attr}})) return code;
  const rknn_matmul_shape shape{info->M, info->K, info->N};
  return create(kName, ctx, *info, {&shape, 1}, false, io_attr);
}

int create_dynamic(const char* function, rknn_matmul_ctx* ctx, rknn_matmul_info* info, int count, const rknn_matmul_shape* shapes,
                   rknn_matmul_io_attr* attrs) {
  if (const int code = null_pointer(function, {{"ctx", ctx}, {"info", info}, {"dynamic_shapes", shapes}, {"io_attrs", attrs}}))
    return code;
  if (count < 1) return fail(RKNN_ERR_PARAM_INVALID, function, "shape_num is " + std::to_string(count) + ", expected 1 or more");
  return create(function, ctx, *info, {shapes, static_cast<size_t>(count)}, true, attrs);
}

int set_io_mem(MatmulContext& context, rknn_tensor_mem* mem, rknn_matmul_tensor_attr* attr) {
  constexpr const char* kName = "rknn_matmul_set_io_mem";
  if (const int code = null_pointer(kName, {{"mem", mem}, {"attr", attr}})) return code;
  const char name = matrix_of(attr->name);
  if (!name) return unknown_matrix(kName, attr->name);
  const Payload payload = payload_of(*mem);
  check_described(kName, mem, payload);
  if (!payload.data) return fail(RKNN_ERR_PARAM_INVALID, kName, "mem->virt_addr is NULL or mem->offset is negative");
  if (payload.bytes < attr->size)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                std::string("memory of ") + name + " is too small: expected " + std::to_string(attr->size) + " bytes, found " +
                    std::to_string(payload.bytes));
  if (!context.knows(*attr))
    return fail(RKNN_ERR_PARAM_INVALID, kName, std::string("attr of ") + name + " is not one that this context gave out");
  if (!context.has_shape()) return fail(RKNN_ERR_FAIL, kName, "no shape is selected; call rknn_matmul_set_dynamic_shape first");
  if (!context.is_current(*attr))
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                std::string("attr of ") + name + " belongs to another shape than the selected one");
  if (!payload.importable)
    return fail(RKNN_ERR_MALLOC_FAIL, kName, "the file descriptor of mem was not open when the memory was made");
  return result_of(kName, context.bind(name, payload));
}

int set_core_mask(MatmulContext& context, uint32_t mask) {
  constexpr const char* kName = "rknn_matmul_set_core_mask";
  const platform::Platform& chip = context.plan().chip();
  if (chip.cores < 2)
    return fail(RKNN_ERR_FAIL, kName, "cores cannot be chosen on " + std::string(chip.name) + ", which has one");
  const Result<int> cores = platform::cores_of_mask(chip, mask);
  if (!cores) return fail(RKNN_ERR_PARAM_INVALID, kName, cores.status().to_string());
  if (*cores > 1)
    return fail(RKNN_ERR_FAIL, kName,
                "core_mask " + std::to_string(mask) + " names " + std::to_string(*cores) +
                    " cores; a product runs on one. Use a context per core");
  context.set_core_mask(mask);
  return RKNN_SUCC;
}

int set_quant_params(MatmulContext& context, const rknn_quant_params* params) {
  constexpr const char* kName = "rknn_matmul_set_quant_params";
  if (const int code = null_pointer(kName, {{"params", params}})) return code;
  const char name = matrix_of(params->name);
  if (!name) return unknown_matrix(kName, params->name);
  return result_of(kName, context.set_quantization(name, *params));
}

int get_quant_params(const MatmulContext& context, const rknn_quant_params* params, float* scale) {
  constexpr const char* kName = "rknn_matmul_get_quant_params";
  if (const int code = null_pointer(kName, {{"params", params}, {"scale", scale}})) return code;
  const MatmulPlan& plan = context.plan();
  if (plan.type().value != RKNN_INT8_MM_INT8_TO_INT32 || !is_per_channel(plan.info().B_quant_type))
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                "only RKNN_INT8_MM_INT8_TO_INT32 with a B that is quantized per channel has a common scale");
  *scale = context.common_scale();
  return RKNN_SUCC;
}

template <class T>
void to_native(const T* from, const sim::RightLayout& layout, T* to) {
  for (int64_t n = 0; n < layout.columns; ++n)
    for (int64_t k = 0; k < layout.depth;) {
      T* run = to + layout.place(k, n);
      for (const int64_t end = k + layout.run(k); k < end; ++k) *run++ = from[k * layout.columns + n];
    }
}

void nibbles_to_native(const uint8_t* from, const sim::RightLayout& layout, uint8_t* to) {
  for (int64_t n = 0; n < layout.columns; ++n)
    for (int64_t k = 0; k < layout.depth; ++k)
      sim::set_nibble(to, layout.place(k, n), layout.high_nibble_first, sim::nibble(from, k * layout.columns + n, false));
}

int convert_right(void* input, void* output, int depth, int columns, const rknn_matmul_info* info) {
  constexpr const char* kName = "rknn_B_normal_layout_to_native_layout";
  if (const int code = null_pointer(kName, {{"B_input", input}, {"B_output", output}, {"info", info}})) return code;
  if (depth < 1 || columns < 1)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                "K and N must be positive, found " + std::to_string(depth) + " and " + std::to_string(columns));
  const int32_t value = static_cast<int32_t>(number(info->type));
  const MatmulType* type = find_matmul_type(value);
  if (!type)
    return fail(RKNN_ERR_PARAM_INVALID, kName, "unsupported dtype: matmul type " + std::to_string(value) + " is unknown");
  const platform::Platform& chip = *matmul_chip().platform;
  if (!chip.features.matmul_api)
    return fail(RKNN_ERR_TARGET_PLATFORM_UNMATCH, kName, std::string(chip.name) + " has no matmul API");
  const sim::RightLayout layout = native_right_layout(chip, *type, depth, columns);
  const auto bytes = matrix_bytes(type->right, layout.elements(), static_cast<int64_t>(dtype_bytes(type->right)));
  std::memset(output, 0, static_cast<size_t>(bytes));
  if (type->right == DType::Int4)
    nibbles_to_native(static_cast<const uint8_t*>(input), layout, static_cast<uint8_t*>(output));
  else if (type->right == DType::Int8)
    to_native(static_cast<const int8_t*>(input), layout, static_cast<int8_t*>(output));
  else
    to_native(static_cast<const uint16_t*>(input), layout, static_cast<uint16_t*>(output));
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_matmul_create(rknn_matmul_ctx* ctx, rknn_matmul_info* info, rknn_matmul_io_attr* io_attr) {
  return c_call("rknn_matmul_create", [&] { return create_static(ctx, info, io_attr); });
}

int rknn_matmul_create_dynamic_shape(rknn_matmul_ctx* ctx, rknn_matmul_info* info, int shape_num,
                                     rknn_matmul_shape dynamic_shapes[], rknn_matmul_io_attr io_attrs[]) {
  constexpr const char* kName = "rknn_matmul_create_dynamic_shape";
  return c_call(kName, [&] { return create_dynamic(kName, ctx, info, shape_num, dynamic_shapes, io_attrs); });
}

// The name before release 2.0, which old programs link.
extern "C" [[gnu::visibility("default")]] int rknn_matmul_create_dyn_shape(rknn_matmul_ctx* ctx, rknn_matmul_info* info,
                                                                           int shape_num, rknn_matmul_shape dynamic_shapes[],
                                                                           rknn_matmul_io_attr io_attrs[]) {
  constexpr const char* kName = "rknn_matmul_create_dyn_shape";
  return c_call(kName, [&] { return create_dynamic(kName, ctx, info, shape_num, dynamic_shapes, io_attrs); });
}

int rknn_matmul_set_io_mem(rknn_matmul_ctx ctx, rknn_tensor_mem* mem, rknn_matmul_tensor_attr* attr) {
  return with_matmul("rknn_matmul_set_io_mem", ctx, [&](MatmulContext& c) { return set_io_mem(c, mem, attr); });
}

int rknn_matmul_set_core_mask(rknn_matmul_ctx context, rknn_core_mask core_mask) {
  const uint32_t mask = number(core_mask);
  return with_matmul("rknn_matmul_set_core_mask", context, [&](MatmulContext& c) { return set_core_mask(c, mask); });
}

int rknn_matmul_set_quant_params(rknn_matmul_ctx context, rknn_quant_params* params) {
  return with_matmul("rknn_matmul_set_quant_params", context, [&](MatmulContext& c) { return set_quant_params(c, params); });
}

int rknn_matmul_get_quant_params(rknn_matmul_ctx ctx, rknn_quant_params* params, float* scale) {
  return with_matmul("rknn_matmul_get_quant_params", ctx, [&](MatmulContext& c) { return get_quant_params(c, params, scale); });
}

int rknn_matmul_set_dynamic_shape(rknn_matmul_ctx ctx, rknn_matmul_shape* shape) {
  constexpr const char* kName = "rknn_matmul_set_dynamic_shape";
  return with_matmul(kName, ctx, [&](MatmulContext& c) {
    if (const int code = null_pointer(kName, {{"shape", shape}})) return code;
    if (!c.is_dynamic()) return fail(RKNN_ERR_PARAM_INVALID, kName, "the context was made for one shape, by rknn_matmul_create");
    return result_of(kName, c.set_shape(*shape));
  });
}

int rknn_matmul_run(rknn_matmul_ctx ctx) {
  return with_matmul("rknn_matmul_run", ctx, [&](MatmulContext& c) { return result_of("rknn_matmul_run", c.run(ctx)); });
}

int rknn_matmul_destroy(rknn_matmul_ctx ctx) {
  return c_call("rknn_matmul_destroy", [&] {
    const std::shared_ptr<MatmulContext> context = take_handle<MatmulContext>(ctx);
    if (!context) return invalid_context("rknn_matmul_destroy");
    const orknn::CallLock lock(context->mutex);
    if (!lock) return RKNN_SUCC;  // what the thread that a fork left behind was using stays where it is
    context->destroyed = true;
    context->release();
    return RKNN_SUCC;
  });
}

int rknn_B_normal_layout_to_native_layout(void* B_input, void* B_output, int K, int N, rknn_matmul_info* info) {
  return c_call("rknn_B_normal_layout_to_native_layout", [&] { return convert_right(B_input, B_output, K, N, info); });
}
