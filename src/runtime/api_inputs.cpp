// Choosing shapes and setting inputs. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <algorithm>

#include "format/model_facts.h"
#include "runtime/context_call.h"
#include "runtime/data_forms.h"
#include "runtime/input_shapes.h"

namespace orknn::runtime {
namespace {
using namespace ir;

int choose_shapes(Context& context, const char* function, std::span<const rknn_tensor_attr> wanted) {
  Session& session = *context.session;
  if (!format::has_shape_sets(session.model())) return fail(RKNN_ERR_MODEL_INVALID, function, "the model has static shapes");
  const std::optional<size_t> found = find_shape_set(session, wanted);
  if (!found)
    return fail(RKNN_ERR_FAIL, function,
                "the model has no set of input shapes " + shapes_text(wanted) + ", it has " + shape_sets_text(session));
  if (const Status s = session.choose_program(*found); !s) return fail(function, s);
  context.forget_bindings();
  context.previous = {};
  context.has_shapes = true;
  return RKNN_SUCC;
}

int set_input_shapes(Context& context, uint32_t count, rknn_tensor_attr* attrs) {
  constexpr const char* kName = "rknn_set_input_shapes";
  if (lacks(context, &platform::Features::dynamic_shape)) return refuse_on_chip(kName, *context.chip);
  const size_t inputs = context.session->inputs().size();
  if (!attrs || count != inputs)
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                !attrs ? "attr is NULL" : "n_inputs is " + std::to_string(count) + ", the model has " + std::to_string(inputs));
  return choose_shapes(context, kName, {attrs, count});
}

// Checks one rknn_input and says how its data is to be taken.
int check_input(const Context& context, const rknn_input& input, InputData& data) {
  constexpr const char* kName = "rknn_inputs_set";
  const std::vector<PortInfo>& ports = context.session->inputs();
  if (input.index >= ports.size())
    return fail(
        RKNN_ERR_INPUT_INVALID, kName,
        "index " + std::to_string(input.index) + " is out of range, the model has " + std::to_string(ports.size()) + " inputs");
  const PortInfo& port = ports[input.index];
  const std::string name = "input '" + port.name + "'";
  if (!input.buf) return fail(RKNN_ERR_INPUT_INVALID, kName, name + ": buf is NULL");
  const InputRequest request{number(input.type), number(input.fmt), input.pass_through != 0};
  const Result<InputData> form = input_form(port, request, input.size, *context.chip);
  if (!form) return fail(RKNN_ERR_INPUT_INVALID, kName, name + ": " + form.status().message());
  if (std::any_of(port.dims.begin(), port.dims.end(), [](int64_t d) { return d < 0; }))
    return fail(RKNN_ERR_FAIL, kName, name + ": its shape is known only at run time, which the C API cannot express");
  const uint64_t needed = form_bytes(port, *form);
  if (context.has_shapes && input.size < needed)  // without a chosen set it is not known how much is needed
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                name + ": size is " + std::to_string(input.size) + " bytes, " + std::to_string(needed) + " are needed");
  if (is_checking() && context.has_shapes && input.size > needed)
    report_mistake(kName, name + ": size is " + std::to_string(input.size) + " bytes, the model reads " + std::to_string(needed),
                   "pass the number of elements times the bytes of `type`");
  data = *form;
  data.data = input.buf;
  data.bytes = input.size;
  return RKNN_SUCC;
}

int inputs_set(Context& context, uint32_t count, rknn_input* inputs) {
  constexpr const char* kName = "rknn_inputs_set";
  Session& session = *context.session;
  if (lacks(context, &platform::Features::general_api)) return refuse_on_chip(kName, *context.chip);
  if (count == 0 && session.inputs().empty()) return RKNN_SUCC;
  if (!inputs || count == 0 || count > session.inputs().size())
    return fail(RKNN_ERR_PARAM_INVALID, kName,
                !inputs ? "inputs is NULL"
                        : "n_inputs is " + std::to_string(count) + ", the model has " + std::to_string(session.inputs().size()));
  std::vector<InputData> data(count);
  for (uint32_t i = 0; i < count; ++i)
    if (const int code = check_input(context, inputs[i], data[i]); code != RKNN_SUCC) return code;
  if (context.is_dry()) return fail(RKNN_ERR_FAIL, kName, "a context for model information takes no inputs");
  if (context.takes_all_memory())
    return fail(RKNN_ERR_FAIL, kName, "the context was made with RKNN_FLAG_MEM_ALLOC_OUTSIDE, bind memory with rknn_set_io_mem");
  if (!context.has_shapes) return refuse_without_shapes(kName);
  for (uint32_t i = 0; i < count; ++i) {
    if (const Status s = session.set_input(inputs[i].index, data[i]); !s) return fail(kName, s);
    context.bound.inputs[inputs[i].index] = {};
  }
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_inputs_set(rknn_context context, uint32_t n_inputs, rknn_input inputs[]) {
  return with_context("rknn_inputs_set", context, [&](Context& c) { return inputs_set(c, n_inputs, inputs); });
}

int rknn_set_input_shapes(rknn_context ctx, uint32_t n_inputs, rknn_tensor_attr attr[]) {
  return with_context("rknn_set_input_shapes", ctx, [&](Context& c) { return set_input_shapes(c, n_inputs, attr); });
}

int rknn_set_input_shape(rknn_context ctx, rknn_tensor_attr* attr) {
  return with_context("rknn_set_input_shape", ctx, [&](Context& c) {
    if (lacks(c, &orknn::platform::Features::dynamic_shape)) return refuse_on_chip("rknn_set_input_shape", *c.chip);
    if (!attr) return fail(RKNN_ERR_PARAM_INVALID, "rknn_set_input_shape", "attr is NULL");
    return choose_shapes(c, "rknn_set_input_shape", {attr, 1});
  });
}
