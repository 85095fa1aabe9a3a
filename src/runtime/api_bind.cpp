// Binding memory to a context. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "runtime/context_call.h"
#include "runtime/data_forms.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {
using namespace ir;

struct PortChoice {
  bool is_input = true;
  size_t index = 0;
};

bool has_name(const PortInfo& port, const rknn_tensor_attr& attr) {
  const size_t length = std::min<size_t>(port.name.size(), RKNN_MAX_NAME_LEN - 1);
  return ::strnlen(attr.name, RKNN_MAX_NAME_LEN - 1) == length && std::memcmp(attr.name, port.name.data(), length) == 0;
}

// The port of a side with the attribute's name: the one at its index, else the first.
std::optional<size_t> find_port(const std::vector<PortInfo>& ports, const rknn_tensor_attr& attr) {
  if (attr.index < ports.size() && has_name(ports[attr.index], attr)) return attr.index;
  for (size_t i = 0; i < ports.size(); ++i)
    if (has_name(ports[i], attr)) return i;
  return std::nullopt;
}

// Whether the attribute has the shape and layout of one of the queries about the port.
bool describes(const PortInfo& port, bool is_input, const rknn_tensor_attr& attr, const platform::Platform& chip) {
  for (AttrView view : {AttrView::General, AttrView::Native, AttrView::NativeNhwc}) {
    rknn_tensor_attr have{};
    fill_attr(port, is_input, view, &chip, have);
    if (attr.n_dims == have.n_dims && number(attr.fmt) == number(have.fmt) &&
        std::equal(have.dims, have.dims + have.n_dims, attr.dims))
      return true;
  }
  return false;
}

// An attribute does not say whether it is an input's: the name does, then the index, then the shape.
std::optional<PortChoice> choose_port(const Context& context, const rknn_tensor_attr& attr) {
  const Session& session = *context.session;
  const auto input = find_port(session.inputs(), attr), output = find_port(session.outputs(), attr);
  if (!input && !output) return std::nullopt;
  if (!input || !output) return PortChoice{input.has_value(), input ? *input : *output};
  if ((*input == attr.index) != (*output == attr.index)) return PortChoice{*input == attr.index, attr.index};
  const bool is_output = !describes(session.inputs()[*input], true, attr, *context.chip) &&
                         describes(session.outputs()[*output], false, attr, *context.chip);
  return PortChoice{!is_output, is_output ? *output : *input};
}

int refuse_small(const char* function, const std::string& name, uint64_t found, uint64_t needed) {
  return fail(RKNN_ERR_PARAM_INVALID, function,
              name + ": the memory has " + std::to_string(found) + " bytes, " + std::to_string(needed) + " are needed");
}

int check_ready(const char* function, const Context& context, const Payload& memory) {
  if (context.is_dry()) return fail(RKNN_ERR_FAIL, function, "a context for model information takes no memory");
  if (!context.has_shapes) return refuse_without_shapes(function);
  if (!memory.importable)
    return fail(RKNN_ERR_MALLOC_FAIL, function, "the descriptor of the memory was not open when the memory was created");
  return RKNN_SUCC;
}

int bind_input(Context& context, size_t index, const rknn_tensor_attr& attr, Payload memory) {
  constexpr const char* kName = "rknn_set_io_mem";
  const PortInfo& port = context.session->inputs()[index];
  const std::string name = "input '" + port.name + "'";
  const InputRequest request{number(attr.type), number(attr.fmt), attr.pass_through != 0};
  Result<InputData> form = bound_input_form(port, request, attr.h_stride, memory.bytes, *context.chip);
  if (!form) return fail(RKNN_ERR_PARAM_INVALID, kName, name + ": " + form.status().message());
  form->data = memory.data;
  form->bytes = memory.bytes;
  const Result<uint64_t> needed = context.session->input_bytes(index, *form);
  if (!needed) return fail(kName, needed.status());
  if (memory.bytes < *needed) return refuse_small(kName, name, memory.bytes, *needed);
  if (const int code = check_ready(kName, context, memory); code != RKNN_SUCC) return code;
  if (const Status s = context.session->bind_input(index, *form); !s) return fail(kName, s);
  context.bound.inputs[index] = std::move(memory);
  return RKNN_SUCC;
}

int bind_output(Context& context, size_t index, const rknn_tensor_attr& attr, Payload memory) {
  constexpr const char* kName = "rknn_set_io_mem";
  const PortInfo& port = context.session->outputs()[index];
  const std::string name = "output '" + port.name + "'";
  const Result<OutputForm> form = bound_output_form(port, number(attr.type), number(attr.fmt), *context.chip);
  if (!form) return fail(RKNN_ERR_PARAM_INVALID, kName, name + ": " + form.status().message());
  const Result<uint64_t> needed = context.session->output_bytes(index, *form);
  if (!needed) return fail(RKNN_ERR_FAIL, kName, needed.status().to_string());
  if (memory.bytes < *needed) return refuse_small(kName, name, memory.bytes, *needed);
  if (const int code = check_ready(kName, context, memory); code != RKNN_SUCC) return code;
  // Only who uses the general view as it was queried is told that it has more room: the native ones have none to spare.
  rknn_tensor_attr general{};
  fill_attr(port, false, AttrView::General, context.chip, general);
  const bool as_queried = attr.fmt == general.fmt && attr.type == general.type;
  if (as_queried && memory.bytes < std::min(general.size_with_stride, attr.size_with_stride))
    log(LogLevel::Warn, kName,
        name + ": the memory is smaller than size_with_stride (" + std::to_string(general.size_with_stride) + ")");
  if (const Status s = context.session->bind_output(index, *form, memory.data, memory.bytes); !s) return fail(kName, s);
  context.bound.outputs[index] = std::move(memory);
  return RKNN_SUCC;
}

int set_io_mem(Context& context, rknn_tensor_mem* mem, rknn_tensor_attr* attr) {
  constexpr const char* kName = "rknn_set_io_mem";
  if (!mem || !attr) return fail(RKNN_ERR_PARAM_INVALID, kName, !mem ? "mem is NULL" : "attr is NULL");
  Payload memory = payload_of(*mem);
  check_described(kName, mem, memory);
  if (!memory.data) return fail(RKNN_ERR_PARAM_INVALID, kName, "mem->virt_addr is NULL or mem->offset negative");
  const std::optional<PortChoice> port = choose_port(context, *attr);
  const std::string name(attr->name, ::strnlen(attr->name, RKNN_MAX_NAME_LEN));
  if (!port) return fail(RKNN_ERR_PARAM_INVALID, kName, "the model has neither an input nor an output '" + name + "'");
  const size_t count = port->is_input ? context.session->inputs().size() : context.session->outputs().size();
  if (attr->index >= count)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                "'" + name + "': index " + std::to_string(attr->index) + " is out of range, the model has " +
                    std::to_string(count) + (port->is_input ? " inputs" : " outputs"));
  return port->is_input ? bind_input(context, port->index, *attr, std::move(memory))
                        : bind_output(context, port->index, *attr, std::move(memory));
}

// The checks that weights and activations have in common. `bytes` is what MEM_SIZE says.
int check_supplied(const char* function, const rknn_tensor_mem* mem, const Payload& memory, uint64_t bytes, bool expected) {
  if (!mem) return fail(RKNN_ERR_PARAM_INVALID, function, "mem is NULL");
  check_described(function, mem, memory);
  if (!memory.data) return fail(RKNN_ERR_PARAM_INVALID, function, "mem->virt_addr is NULL or mem->offset negative");
  if (memory.bytes < bytes) return refuse_small(function, "mem", memory.bytes, bytes);
  if (!expected) return fail(RKNN_ERR_FAIL, function, "the context was not made with a flag that says the caller supplies it");
  if (!memory.importable)
    return fail(RKNN_ERR_MALLOC_FAIL, function, "the descriptor of the memory was not open when the memory was created");
  return RKNN_SUCC;
}

int set_weight_mem(Context& context, rknn_tensor_mem* mem) {
  constexpr const char* kName = "rknn_set_weight_mem";
  Payload memory = mem ? payload_of(*mem) : Payload{};
  const uint64_t bytes = context.session->memory().weight_bytes;
  if (const int code = check_supplied(kName, mem, memory, bytes, context.takes_all_memory()); code != RKNN_SUCC) return code;
  context.session->copy_weights({memory.data, bytes});
  context.bound.weights = std::move(memory);
  return RKNN_SUCC;
}

int set_internal_mem(Context& context, rknn_tensor_mem* mem) {
  constexpr const char* kName = "rknn_set_internal_mem";
  Payload memory = mem ? payload_of(*mem) : Payload{};
  const uint64_t bytes = context.session->memory().internal_bytes;
  if (const int code = check_supplied(kName, mem, memory, bytes, context.takes_internal_memory()); code != RKNN_SUCC) return code;
  if (reinterpret_cast<uintptr_t>(memory.data) % 64 != 0)
    return fail(RKNN_ERR_PARAM_INVALID, kName, "the memory must begin at a multiple of 64 bytes; round the offset up");
  context.session->use_internal_memory(memory.data);
  context.bound.internal = std::move(memory);
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_set_io_mem(rknn_context ctx, rknn_tensor_mem* mem, rknn_tensor_attr* attr) {
  return with_context("rknn_set_io_mem", ctx, [&](Context& c) { return set_io_mem(c, mem, attr); });
}

int rknn_set_weight_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return with_context("rknn_set_weight_mem", ctx, [&](Context& c) { return set_weight_mem(c, mem); });
}

int rknn_set_internal_mem(rknn_context ctx, rknn_tensor_mem* mem) {
  return with_context("rknn_set_internal_mem", ctx, [&](Context& c) { return set_internal_mem(c, mem); });
}
