// Fetching results. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <algorithm>
#include <set>

#include "runtime/context_call.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {
using namespace ir;

int outputs_get(Context& context, uint32_t count, rknn_output* outputs, rknn_output_extend* extend) {
  constexpr const char* kName = "rknn_outputs_get";
  const Session& session = *context.session;
  if (lacks(context, &platform::Features::general_api)) return refuse_on_chip(kName, *context.chip);
  if (!outputs || count == 0 || count > session.outputs().size())
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                !outputs
                    ? "outputs is NULL"
                    : "n_outputs is " + std::to_string(count) + ", the model has " + std::to_string(session.outputs().size()));
  const bool from_previous = context.is_async() && context.previous.number > 0;
  if (!from_previous) {
    context.finish_pending_run();
    if (!session.has_run())
      return fail(RKNN_ERR_FAIL, kName, context.run_code ? "the run failed: " + context.run_error : "the model has not run yet");
  }
  const auto value_of = [&](size_t index) {
    return from_previous ? context.previous.results[index].view() : session.output_value(index);
  };
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
    plans[i] = {index, dtype, static_cast<uint64_t>(element_count(value_of(index).dims)) * dtype_bytes(dtype)};
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
    session.convert_result(plans[i].index, value_of(plans[i].index), plans[i].dtype, to[i]);
  }
  context.buffers.reserve(context.buffers.size() + count);
  context.buffers.merge(fresh);
  for (uint32_t i = 0; i < count; ++i) {
    outputs[i].buf = to[i];
    outputs[i].index = plans[i].index;
    outputs[i].size = static_cast<uint32_t>(plans[i].bytes);
  }
  if (extend) extend->frame_id = from_previous ? context.previous.number : context.frame;
  return RKNN_SUCC;
}

int outputs_release(Context& context, uint32_t count, rknn_output* outputs) {
  if (lacks(context, &platform::Features::general_api)) return refuse_on_chip("rknn_outputs_release", *context.chip);
  if (!outputs && count > 0) return fail(RKNN_ERR_PARAM_INVALID, "rknn_outputs_release", "outputs is NULL");
  for (uint32_t i = 0; i < count; ++i) {
    if (outputs[i].is_prealloc || !outputs[i].buf) continue;
    if (context.buffers.erase(outputs[i].buf))
      outputs[i].buf = nullptr;
    else if (is_checking())
      report_mistake("rknn_outputs_release",
                     "entry " + std::to_string(i) + " holds a buffer that was released before, or never made",
                     "release each entry that rknn_outputs_get filled once, before it is filled again");
  }
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_outputs_get(rknn_context context, uint32_t n_outputs, rknn_output outputs[], rknn_output_extend* extend) {
  // An asynchronous context hands out the frame before while the current one is computed.
  return with_context(
      "rknn_outputs_get", context, [&](Context& c) { return outputs_get(c, n_outputs, outputs, extend); }, Pending::Leave);
}

int rknn_outputs_release(rknn_context context, uint32_t n_ouputs, rknn_output outputs[]) {
  return with_context(
      "rknn_outputs_release", context, [&](Context& c) { return outputs_release(c, n_ouputs, outputs); }, Pending::Leave);
}
