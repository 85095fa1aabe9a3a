// The basic RKNN C API over Session. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "base/log.h"
#include "base/version.h"
#include "format/rknn_file.h"
#include "platform/platforms.h"
#include "runtime/c_call.h"
#include "runtime/context.h"
#include "runtime/custom_op_plugins.h"
#include "runtime/error_codes.h"
#include "runtime/input_shapes.h"
#include "runtime/perf_report.h"
#include "runtime/tensor_attr.h"
#include "runtime/thread_count.h"

namespace orknn::runtime {
namespace {
using namespace ir;

constexpr std::string_view kDriverVersion = "0.0.0 (simulator)";

// People look for this text in the library file, so it must be there in one piece.
[[gnu::used]] const char kVersionText[] = "librknnrt version: " ORKNN_VERSION " (OpenRKNN)";

std::string api_version() { return std::string(kVersionText).substr(sizeof "librknnrt version: " - 1); }

int invalid_context(const char* function) {
  return fail(RKNN_ERR_CTX_INVALID, function, "the context is not valid (0, unknown or destroyed)");
}

// Runs `body` with the context locked.
template <class Body>
int with_context(const char* function, rknn_context handle, Body body) {
  return c_call(function, [&] {
    const std::shared_ptr<Context> context = find_context(handle);
    if (!context) return invalid_context(function);
    const std::lock_guard lock(context->mutex);
    if (context->destroyed) return invalid_context(function);
    return body(*context);
  });
}

template <size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

// The value of an enum of the caller's, which need not be one of its members.
template <class Enum>
uint32_t number(const Enum& value) {
  return std::bit_cast<uint32_t>(value);
}

const platform::Platform* platform_of(const Session& session) { return platform::find(session.model().target_platform); }

// --- init

Result<format::Model> load_model(void* model, uint32_t size, const rknn_init_extend* extend, ThreadPool& pool) {
  if (size > 0) return format::read_rknn(std::span(static_cast<const std::byte*>(model), size), nullptr, pool);
  const std::string path = static_cast<const char*>(model);
  if (!extend) return format::read_rknn(path, pool);
  if (extend->real_model_offset < 0) return invalid_argument("real_model_offset is negative");
  return format::read_rknn(path, static_cast<uint64_t>(extend->real_model_offset), extend->real_model_size, pool);
}

// Lines of a table, one log line each.
void log_table(LogLevel level, const std::string& text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    log(level, "", text.substr(begin, end - begin));
    begin = end + 1;
  }
}

// What the model's chip would give the context: all of its SRAM when the flag asks for it.
uint64_t sram_of(const Context& context) {
  const platform::Platform* chip = platform_of(*context.session);
  const bool asked = context.flags & RKNN_FLAG_ENABLE_SRAM;
  return asked && chip && chip->features.sram_for_internal ? static_cast<uint64_t>(chip->sram_bytes) : 0;
}

void log_model(const Session& session) {
  const format::Model& model = session.model();
  const platform::Platform* platform = platform_of(session);
  bool nhwc = false;
  for (const PortInfo& port : session.inputs()) nhwc |= port.layout == Layout::NHWC;
  log(LogLevel::Info, "", "RKNN Runtime Information, " + std::string(kVersionText));
  log(LogLevel::Info, "", "RKNN Driver Information, version: " + std::string(kDriverVersion));
  log(LogLevel::Info, "",
      "RKNN Model Information, version: 6, toolkit version: " + model.toolkit_version +
          "(compiler version: " + model.toolkit_version + "), target: " + std::string(platform ? platform->npu_name : "RKNPU") +
          ", target platform: " + model.target_platform + ", framework name: " + model.source_framework + ", framework layout: " +
          (nhwc ? "NHWC" : "NCHW") + ", model inference type: " + (model.programs.size() > 1 ? "dynamic_shape" : "static_shape"));
}

int init(rknn_context* context, void* model, uint32_t size, uint32_t flag, rknn_init_extend* extend) {
  constexpr const char* kName = "rknn_init";
  if (!context || !model) return fail(RKNN_ERR_PARAM_INVALID, kName, !context ? "context is NULL" : "model is NULL");
  auto created = std::make_shared<Context>();
  created->flags = flag;
  created->pool = configured_pool();
  ThreadPool& pool = created->pool ? *created->pool : ThreadPool::shared();
  auto loaded = load_model(model, size, extend, pool);
  if (!loaded) return fail(kName, loaded.status());
  if (flag & RKNN_FLAG_SHARE_WEIGHT_MEM) {
    if (!extend) return fail(RKNN_ERR_PARAM_INVALID, kName, "RKNN_FLAG_SHARE_WEIGHT_MEM needs extend->ctx");
    // Equal files share their pages through the mapping anyway, so the donor only has to exist.
    if (!find_context(extend->ctx)) return fail(RKNN_ERR_CTX_INVALID, kName, "extend->ctx is not a valid context");
  }
  if ((flag & RKNN_FLAG_MODEL_BUFFER_ZERO_COPY) && (!extend || extend->model_buffer_fd < 0))
    return fail(RKNN_ERR_PARAM_INVALID, kName, "RKNN_FLAG_MODEL_BUFFER_ZERO_COPY needs extend->model_buffer_fd");
  if ((flag & RKNN_FLAG_SHARE_SRAM) && !(flag & RKNN_FLAG_ENABLE_SRAM))
    return fail(RKNN_ERR_PARAM_INVALID, kName, "RKNN_FLAG_SHARE_SRAM needs RKNN_FLAG_ENABLE_SRAM");
  if (flag & (RKNN_FLAG_MEM_ALLOC_OUTSIDE | RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE | RKNN_FLAG_MODEL_BUFFER_ZERO_COPY))
    return fail(RKNN_ERR_FAIL, kName, "memory supplied by the caller is not available yet in OpenRKNN");
  auto session = Session::open(std::make_shared<const format::Model>(std::move(*loaded)), &pool);
  if (!session) return fail(kName, session.status());
  created->session = std::move(*session);
  load_plugins(*created->session);
  created->has_shapes = !has_shape_sets(created->session->model());
  log_model(*created->session);
  if (log_level() >= LogLevel::Detail) log_table(LogLevel::Detail, memory_table(created->session->model(), sram_of(*created)));
  *context = publish(std::move(created));
  return RKNN_SUCC;
}

// --- query

// Lets `fill` write to the caller's struct, when it is large enough.
template <class T, class Fill>
int fill_info(void* info, uint32_t size, Fill fill) {
  if (size < sizeof(T))
    return fail(RKNN_ERR_PARAM_INVALID, "rknn_query",
                "info is too small: " + std::to_string(size) + " bytes, " + std::to_string(sizeof(T)) + " are needed");
  return fill(*static_cast<T*>(info));
}

// `current`: under the chosen shapes instead of the first, largest ones.
int query_attr(const Context& context, bool is_input, AttrView view, void* info, uint32_t size, bool current = false) {
  return fill_info<rknn_tensor_attr>(info, size, [&](rknn_tensor_attr& attr) {
    const Session& session = *context.session;
    if (current && !has_shape_sets(session.model()))
      return fail(RKNN_ERR_MODEL_INVALID, "rknn_query", "the model has static shapes, use the other queries");
    const std::vector<PortInfo> ports = is_input ? (current ? session.inputs() : session.inputs_of_program(0))
                                                 : (current ? session.outputs() : session.outputs_of_program(0));
    if (attr.index >= ports.size())
      return fail(RKNN_ERR_PARAM_INVALID, "rknn_query",
                  "index " + std::to_string(attr.index) + " is out of range, the model has " + std::to_string(ports.size()) +
                      (is_input ? " inputs" : " outputs"));
    fill_attr(ports[attr.index], is_input, view, platform_of(*context.session), attr);
    return RKNN_SUCC;
  });
}

// One line per layer of the last run.
int query(Context& context, uint32_t command, void* info, uint32_t size) {
  constexpr const char* kName = "rknn_query";
  if (!info) return fail(RKNN_ERR_PARAM_INVALID, kName, "info is NULL");
  const Session& session = *context.session;
  switch (command) {
    case RKNN_QUERY_IN_OUT_NUM:
      return fill_info<rknn_input_output_num>(info, size, [&](rknn_input_output_num& n) {
        n = {static_cast<uint32_t>(session.inputs().size()), static_cast<uint32_t>(session.outputs().size())};
        return RKNN_SUCC;
      });
    case RKNN_QUERY_INPUT_ATTR: return query_attr(context, true, AttrView::General, info, size);
    case RKNN_QUERY_OUTPUT_ATTR: return query_attr(context, false, AttrView::General, info, size);
    case RKNN_QUERY_NATIVE_INPUT_ATTR: return query_attr(context, true, AttrView::Native, info, size);
    case RKNN_QUERY_NATIVE_OUTPUT_ATTR: return query_attr(context, false, AttrView::Native, info, size);
    case RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR: return query_attr(context, true, AttrView::NativeNhwc, info, size);
    case RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR: return query_attr(context, false, AttrView::NativeNhwc, info, size);
    case RKNN_QUERY_PERF_DETAIL:
      return fill_info<rknn_perf_detail>(info, size, [&](rknn_perf_detail& d) {
        if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information has nothing to report");
        context.report = (context.flags & RKNN_FLAG_COLLECT_PERF_MASK) && session.has_run()
                             ? perf_table(session.model(), context.cores, sram_of(context))
                             : std::string();
        d = {context.report.data(), context.report.size()};
        return RKNN_SUCC;
      });
    case RKNN_QUERY_PERF_RUN:
      return fill_info<rknn_perf_run>(info, size, [&](rknn_perf_run& r) {
        if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information does not run");
        // The time on the chip. How long this machine took says nothing about it, so an unknown time is an error.
        const std::optional<double> predicted = predicted_microseconds(session.model(), context.cores, sram_of(context));
        if (!predicted) return fail(RKNN_ERR_FAIL, kName, "the time of a run is not known: " + why_no_time(session.model()));
        r.run_duration = session.has_run() ? static_cast<int64_t>(std::min(*predicted, 1e15) + 0.5) : 0;
        return RKNN_SUCC;
      });
    case RKNN_QUERY_SDK_VERSION:
      return fill_info<rknn_sdk_version>(info, size, [&](rknn_sdk_version& v) {
        copy_text(v.api_version, api_version());
        copy_text(v.drv_version, kDriverVersion);
        return RKNN_SUCC;
      });
    case RKNN_QUERY_MEM_SIZE:
      return fill_info<rknn_mem_size>(info, size, [&](rknn_mem_size& m) {
        const MemorySizes sizes = session.memory();
        std::memset(&m, 0, sizeof m);
        m.total_weight_size = saturate(sizes.weight_bytes);
        m.total_internal_size = saturate(sizes.internal_bytes);
        m.total_dma_allocated_size = sizes.total_bytes();
        if (const platform::Platform* chip = platform_of(session); chip && chip->features.sram_for_internal) {
          const uint64_t used = sram_block(sizes.internal_bytes, sram_of(context));
          m.total_sram_size = saturate(static_cast<uint64_t>(chip->sram_bytes));
          m.free_sram_size = saturate(static_cast<uint64_t>(chip->sram_bytes) - used);
        }
        return RKNN_SUCC;
      });
    case RKNN_QUERY_CUSTOM_STRING:
      return fill_info<rknn_custom_string>(info, size, [&](rknn_custom_string& s) {
        copy_text(s.string, session.model().custom_string);
        return RKNN_SUCC;
      });
    case RKNN_QUERY_DEVICE_MEM_INFO:
      return fill_info<rknn_tensor_mem>(info, size, [&](rknn_tensor_mem&) {
        return fail(RKNN_ERR_FAIL, kName, "device memory is not available yet in OpenRKNN");
      });
    case RKNN_QUERY_INPUT_DYNAMIC_RANGE:
      return fill_info<rknn_input_range>(info, size, [&](rknn_input_range& range) {
        if (!has_shape_sets(session.model()))
          return fail(RKNN_ERR_MODEL_INVALID, kName, "the model has static shapes, there is no range");
        if (range.index >= session.inputs().size())
          return fail(RKNN_ERR_PARAM_INVALID, kName,
                      "index " + std::to_string(range.index) + " is out of range, the model has " +
                          std::to_string(session.inputs().size()) + " inputs");
        fill_range(session, range);
        return RKNN_SUCC;
      });
    case RKNN_QUERY_CURRENT_INPUT_ATTR: return query_attr(context, true, AttrView::General, info, size, true);
    case RKNN_QUERY_CURRENT_OUTPUT_ATTR: return query_attr(context, false, AttrView::General, info, size, true);
    case RKNN_QUERY_CURRENT_NATIVE_INPUT_ATTR: return query_attr(context, true, AttrView::Native, info, size, true);
    case RKNN_QUERY_CURRENT_NATIVE_OUTPUT_ATTR: return query_attr(context, false, AttrView::Native, info, size, true);
    default: return fail(RKNN_ERR_PARAM_INVALID, kName, "unknown command " + std::to_string(command));
  }
}

// --- shapes

int choose_shapes(Context& context, const char* function, std::span<const rknn_tensor_attr> wanted) {
  Session& session = *context.session;
  if (!has_shape_sets(session.model())) return fail(RKNN_ERR_MODEL_INVALID, function, "the model has static shapes");
  const std::optional<size_t> found = find_shape_set(session, wanted);
  if (!found)
    return fail(RKNN_ERR_FAIL, function,
                "the model has no set of input shapes with these names and shapes, it has " + shape_sets_text(session));
  if (const Status s = session.choose_program(*found); !s) return fail(function, s);
  context.has_shapes = true;
  return RKNN_SUCC;
}

int set_input_shapes(Context& context, uint32_t count, rknn_tensor_attr* attrs) {
  constexpr const char* kName = "rknn_set_input_shapes";
  const size_t inputs = context.session->inputs().size();
  if (!attrs || count != inputs)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                !attrs ? "attr is NULL" : "n_inputs is " + std::to_string(count) + ", the model has " + std::to_string(inputs));
  return choose_shapes(context, kName, {attrs, count});
}

int refuse_without_shapes(const char* function) {
  return fail(RKNN_ERR_FAIL, function, "the model has several sets of input shapes, call rknn_set_input_shapes first");
}

// --- inputs

uint64_t element_count_of(const rknn_tensor_attr& attr) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < attr.n_dims; ++i) n *= attr.dims[i];
  return n;
}

// NC1HWC2 blocks as NCHW.
std::vector<std::byte> unblock(const rknn_tensor_attr& native, const PortInfo& port, const void* from, size_t element_bytes) {
  const uint64_t n = native.dims[0], blocks = native.dims[1], pixels = uint64_t{native.dims[2]} * native.dims[3],
                 lanes = native.dims[4];
  const auto channels = static_cast<uint64_t>(port.layout == Layout::NHWC ? port.dims[3] : port.dims[1]);
  std::vector<std::byte> out(n * channels * pixels * element_bytes);
  for (uint64_t batch = 0; batch < n; ++batch)
    for (uint64_t c = 0; c < channels; ++c)
      for (uint64_t p = 0; p < pixels; ++p)
        std::memcpy(out.data() + ((batch * channels + c) * pixels + p) * element_bytes,
                    static_cast<const std::byte*>(from) +
                        (((batch * blocks + c / lanes) * pixels + p) * lanes + c % lanes) * element_bytes,
                    element_bytes);
  return out;
}

// Checks one rknn_input and says how its data is to be taken. `unblocked` keeps rearranged data alive.
int check_input(const Context& context, const rknn_input& input, InputData& data, std::vector<std::byte>& unblocked) {
  constexpr const char* kName = "rknn_inputs_set";
  const std::vector<PortInfo>& ports = context.session->inputs();
  if (input.index >= ports.size())
    return fail(
        RKNN_ERR_INPUT_INVALID, kName,
        "index " + std::to_string(input.index) + " is out of range, the model has " + std::to_string(ports.size()) + " inputs");
  const PortInfo& port = ports[input.index];
  const std::string name = "input '" + port.name + "'";
  if (!input.buf) return fail(RKNN_ERR_INPUT_INVALID, kName, name + ": buf is NULL");
  rknn_tensor_attr native{};
  fill_attr(port, true, AttrView::Native, platform_of(*context.session), native);
  data.data = input.buf;
  data.bytes = input.size;
  const bool is_picture = port.layout != Layout::Undefined;
  const std::optional<DType> given = dtype_of_public(input.pass_through ? number(native.type) : number(input.type));
  if (!given)
    return fail(RKNN_ERR_INPUT_INVALID, kName, name + ": type " + std::to_string(number(input.type)) + " cannot be converted");
  data.dtype = *given;
  const uint32_t format = number(input.fmt);
  if (is_picture && !input.pass_through && (format >= RKNN_TENSOR_FORMAT_MAX || format == RKNN_TENSOR_NC1HWC2))
    return fail(RKNN_ERR_INPUT_INVALID, kName, name + ": fmt " + std::to_string(format) + " is neither NHWC nor NCHW");
  if (std::any_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d < 0; }))
    return fail(RKNN_ERR_FAIL, kName, name + ": its shape is known only at run time, which the C API cannot express");
  const uint64_t needed =
      (input.pass_through ? element_count_of(native) : static_cast<uint64_t>(element_count(port.dims))) * dtype_bytes(data.dtype);
  if (input.size < needed)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                name + ": size is " + std::to_string(input.size) + " bytes, " + std::to_string(needed) + " are needed");
  if (input.pass_through) {
    data.pass_through = true;
    data.layout = native.fmt == RKNN_TENSOR_NHWC ? Layout::NHWC : Layout::NCHW;
    if (native.fmt == RKNN_TENSOR_NC1HWC2) {
      unblocked = unblock(native, port, input.buf, dtype_bytes(data.dtype));
      data.data = unblocked.data();
      data.bytes = unblocked.size();
    }
    return RKNN_SUCC;
  }
  // What is already in the model's own number format was normalized by the caller.
  data.pass_through = (data.dtype == DType::Int8 && port.quantized && port.dtype == DType::Int8) ||
                      (data.dtype == DType::Float16 && is_float(port.dtype));
  data.layout = format == RKNN_TENSOR_NCHW ? Layout::NCHW : Layout::NHWC;
  return RKNN_SUCC;
}

int inputs_set(Context& context, uint32_t count, rknn_input* inputs) {
  constexpr const char* kName = "rknn_inputs_set";
  Session& session = *context.session;
  if (count == 0 && session.inputs().empty()) return RKNN_SUCC;
  if (!inputs || count == 0 || count > session.inputs().size())
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                !inputs ? "inputs is NULL"
                        : "n_inputs is " + std::to_string(count) + ", the model has " + std::to_string(session.inputs().size()));
  if (!context.has_shapes) return refuse_without_shapes(kName);
  std::vector<InputData> data(count);
  std::vector<std::vector<std::byte>> unblocked(count);
  for (uint32_t i = 0; i < count; ++i)
    if (const int code = check_input(context, inputs[i], data[i], unblocked[i]); code != RKNN_SUCC) return code;
  if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information takes no inputs");
  for (uint32_t i = 0; i < count; ++i)
    if (const Status s = session.set_input(inputs[i].index, data[i]); !s) return fail(kName, s);
  return RKNN_SUCC;
}

// --- run and outputs

int run(Context& context, rknn_run_extend* extend) {
  constexpr const char* kName = "rknn_run";
  if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information does not run");
  if (!context.has_shapes) return refuse_without_shapes(kName);
  if (const Status s = context.session->run(); !s)
    return fail(s.code() == Code::OutOfMemory ? RKNN_ERR_MALLOC_FAIL : RKNN_ERR_FAIL, kName, s.to_string());
  ++context.frame;
  if (log_level() >= LogLevel::Debug)
    log_table(LogLevel::Debug, perf_table(context.session->model(), context.cores, sram_of(context)));
  if (extend) extend->frame_id = context.frame;
  return RKNN_SUCC;
}

int set_core_mask(Context& context, uint32_t mask) {
  constexpr const char* kName = "rknn_set_core_mask";
  const platform::Platform* chip = platform_of(*context.session);
  if (!chip || chip->cores < 2)
    return fail(RKNN_ERR_TARGET_PLATFORM_UNMATCH, kName,
                "cores cannot be chosen on " + context.session->model().target_platform + ", which has one");
  const Result<int> cores = platform::cores_of_mask(*chip, mask);
  if (!cores) return fail(RKNN_ERR_PARAM_INVALID, kName, cores.status().to_string());
  context.cores = *cores;
  return RKNN_SUCC;
}

int outputs_get(Context& context, uint32_t count, rknn_output* outputs, rknn_output_extend* extend) {
  constexpr const char* kName = "rknn_outputs_get";
  const Session& session = *context.session;
  if (!outputs || count == 0 || count > session.outputs().size())
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                !outputs
                    ? "outputs is NULL"
                    : "n_outputs is " + std::to_string(count) + ", the model has " + std::to_string(session.outputs().size()));
  if (!session.has_run()) return fail(RKNN_ERR_FAIL, kName, "the model has not run yet");
  // Programs that leave every index at 0 mean the outputs in order.
  std::set<uint32_t> indices;
  for (uint32_t i = 0; i < count; ++i)
    if (outputs[i].index < session.outputs().size()) indices.insert(outputs[i].index);
  const bool by_index = indices.size() == count;
  struct Plan {
    uint32_t index;
    DType dtype;
    uint64_t bytes;
  };
  std::vector<Plan> plans(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t index = by_index ? outputs[i].index : i;
    const PortInfo& port = session.outputs()[index];
    const DType dtype = outputs[i].want_float ? DType::Float32 : *dtype_of_public(public_type(port.dtype));
    plans[i] = {index, dtype, static_cast<uint64_t>(element_count(session.output_dims(index))) * dtype_bytes(dtype)};
    if (plans[i].bytes > UINT32_MAX) return fail(RKNN_ERR_FAIL, kName, "output '" + port.name + "' is larger than 4 GB");
    if (!outputs[i].is_prealloc) continue;
    if (!outputs[i].buf)
      return fail(RKNN_ERR_OUTPUT_INVALID, kName, "output '" + port.name + "': is_prealloc is set and buf is NULL");
    if (outputs[i].size < plans[i].bytes)
      return fail(RKNN_ERR_PARAM_INVALID, kName,
                  "output '" + port.name + "': size is " + std::to_string(outputs[i].size) + " bytes, " +
                      std::to_string(plans[i].bytes) + " are needed");
  }
  // Whatever may run out of memory comes first: until then the caller's structs are as they were.
  std::vector<void*> to(count);
  decltype(context.buffers) fresh;
  for (uint32_t i = 0; i < count; ++i) {
    to[i] = outputs[i].buf;
    if (!outputs[i].is_prealloc) {
      auto buffer = std::make_unique_for_overwrite<std::byte[]>(std::max<uint64_t>(plans[i].bytes, 1));
      to[i] = buffer.get();
      fresh.emplace(to[i], std::move(buffer));
    }
    session.read_output(plans[i].index, plans[i].dtype, to[i]);
  }
  context.buffers.reserve(context.buffers.size() + count);
  context.buffers.merge(fresh);
  for (uint32_t i = 0; i < count; ++i) {
    outputs[i].buf = to[i];
    outputs[i].index = plans[i].index;
    outputs[i].size = static_cast<uint32_t>(plans[i].bytes);
  }
  if (extend) extend->frame_id = context.frame;
  return RKNN_SUCC;
}

int outputs_release(Context& context, uint32_t count, rknn_output* outputs) {
  if (!outputs && count > 0) return fail(RKNN_ERR_PARAM_INVALID, "rknn_outputs_release", "outputs is NULL");
  for (uint32_t i = 0; i < count; ++i)
    if (!outputs[i].is_prealloc && outputs[i].buf && context.buffers.erase(outputs[i].buf)) outputs[i].buf = nullptr;
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_init(rknn_context* context, void* model, uint32_t size, uint32_t flag, rknn_init_extend* extend) {
  return c_call("rknn_init", [&] { return init(context, model, size, flag, extend); });
}

int rknn_destroy(rknn_context context) {
  return c_call("rknn_destroy", [&] { return destroy_context(context) ? RKNN_SUCC : invalid_context("rknn_destroy"); });
}

int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info, uint32_t size) {
  return with_context("rknn_query", context, [&](Context& c) { return query(c, number(cmd), info, size); });
}

int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input inputs[]) {
  return with_context("rknn_inputs_set", context, [&](Context& c) { return inputs_set(c, n_inputs, inputs); });
}

int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs, rknn_tensor_attr attr[]) {
  return with_context("rknn_set_input_shapes", ctx, [&](Context& c) { return set_input_shapes(c, n_inputs, attr); });
}

int rknn_set_input_shape(rknn_context ctx, rknn_tensor_attr* attr) {
  return with_context("rknn_set_input_shape", ctx, [&](Context& c) {
    if (!attr) return fail(RKNN_ERR_PARAM_INVALID, "rknn_set_input_shape", "attr is NULL");
    return choose_shapes(c, "rknn_set_input_shape", {attr, 1});
  });
}

int rknn_run(rknn_context context, rknn_run_extend* extend) {
  return with_context("rknn_run", context, [&](Context& c) { return run(c, extend); });
}

int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend* extend) {
  return with_context("rknn_outputs_get", context, [&](Context& c) { return outputs_get(c, n_outputs, outputs, extend); });
}

int rknn_outputs_release(rknn_context context, uint32_t n_ouputs, rknn_output outputs[]) {
  return with_context("rknn_outputs_release", context, [&](Context& c) { return outputs_release(c, n_ouputs, outputs); });
}

int rknn_set_core_mask(rknn_context context, rknn_core_mask core_mask) {
  return with_context("rknn_set_core_mask", context, [&](Context& c) { return set_core_mask(c, number(core_mask)); });
}
