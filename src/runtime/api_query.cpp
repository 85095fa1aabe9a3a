// rknn_query. Checks are made in the order of docs/errors.md.
#include <algorithm>
#include <cstring>

#include "format/model_facts.h"
#include "runtime/context_call.h"
#include "runtime/input_shapes.h"
#include "runtime/library_identity.h"
#include "runtime/perf_report.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {

template <size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  std::memset(to, 0, N);
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

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
    const std::vector<PortInfo> ports = is_input ? (current ? session.inputs() : session.inputs_of_program(0))
                                                 : (current ? session.outputs() : session.outputs_of_program(0));
    if (attr.index >= ports.size())
      return fail(RKNN_ERR_PARAM_INVALID, "rknn_query",
                  "index " + std::to_string(attr.index) + " is out of range, the model has " + std::to_string(ports.size()) +
                      (is_input ? " inputs" : " outputs"));
    if (current && !format::has_shape_sets(session.model()))
      return fail(RKNN_ERR_MODEL_INVALID, "rknn_query", "the model has static shapes, use the other queries");
    fill_attr(ports[attr.index], is_input, view, context.chip, attr);
    return RKNN_SUCC;
  });
}

// Chips whose runtime copies no inputs have no other view of these than their own.
bool has_general_inputs(const Context& context) {
  return library_offers("rknn_inputs_set") && !lacks(context, &platform::Features::general_api);
}

// What a caller makes memory of, so never 0: no block has that size.
uint64_t reported_size(uint64_t bytes) { return std::max<uint64_t>(bytes, 64); }

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
    case RKNN_QUERY_INPUT_ATTR:
      return query_attr(context, true, has_general_inputs(context) ? AttrView::General : AttrView::Native, info, size);
    case RKNN_QUERY_OUTPUT_ATTR: return query_attr(context, false, AttrView::General, info, size);
    case RKNN_QUERY_NATIVE_INPUT_ATTR: return query_attr(context, true, AttrView::Native, info, size);
    case RKNN_QUERY_NATIVE_OUTPUT_ATTR: return query_attr(context, false, AttrView::Native, info, size);
    case RKNN_QUERY_NATIVE_NHWC_INPUT_ATTR: return query_attr(context, true, AttrView::NativeNhwc, info, size);
    case RKNN_QUERY_NATIVE_NHWC_OUTPUT_ATTR: return query_attr(context, false, AttrView::NativeNhwc, info, size);
    case RKNN_QUERY_PERF_DETAIL:
      return fill_info<rknn_perf_detail>(info, size, [&](rknn_perf_detail& d) {
        if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information has nothing to report");
        context.report = (context.flags & RKNN_FLAG_COLLECT_PERF_MASK) && session.has_run()
                             ? perf_table(session.model(), context.cores, context.sram_bytes)
                             : std::string();
        d = {context.report.data(), context.report.size()};
        return RKNN_SUCC;
      });
    case RKNN_QUERY_PERF_RUN:
      return fill_info<rknn_perf_run>(info, size, [&](rknn_perf_run& r) {
        if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information does not run");
        // The time on the chip. How long this machine took says nothing about it, so an unknown time is an error.
        const std::optional<double> predicted = predicted_microseconds(session.model(), context.cores, context.sram_bytes);
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
        const uint64_t weights = reported_size(sizes.weight_bytes), internal = reported_size(sizes.internal_bytes);
        m.total_weight_size = saturate(weights);
        m.total_internal_size = saturate(internal);
        m.total_dma_allocated_size = weights + internal + sizes.other_bytes();
        if (context.chip->features.sram_for_internal) {
          m.total_sram_size = saturate(static_cast<uint64_t>(context.chip->sram_bytes));
          m.free_sram_size = saturate(free_sram(*context.chip));
        }
        return RKNN_SUCC;
      });
    case RKNN_QUERY_CUSTOM_STRING:
      return fill_info<rknn_custom_string>(info, size, [&](rknn_custom_string& s) {
        copy_text(s.string, session.model().custom_string);
        return RKNN_SUCC;
      });
    case RKNN_QUERY_DEVICE_MEM_INFO:
      return fill_info<rknn_tensor_mem>(info, size, [&](rknn_tensor_mem& m) {
        if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information holds no memory");
        m = context.model_memory;
        return RKNN_SUCC;
      });
    case RKNN_QUERY_INPUT_DYNAMIC_RANGE:
      return fill_info<rknn_input_range>(info, size, [&](rknn_input_range& range) {
        if (range.index >= session.inputs().size())
          return fail(RKNN_ERR_PARAM_INVALID, kName,
                      "index " + std::to_string(range.index) + " is out of range, the model has " +
                          std::to_string(session.inputs().size()) + " inputs");
        if (!format::has_shape_sets(session.model()))
          return fail(RKNN_ERR_MODEL_INVALID, kName, "the model has static shapes, there is no range");
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
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_query(rknn_context context, rknn_query_cmd cmd, void* info, uint32_t size) {
  return with_context(
      "rknn_query", context, [&](Context& c) { return query(c, number(cmd), info, size); }, Pending::Finish, FromCallback::Allow);
}
