// rknn_custom_op.h over CustomOps. Checks are made in the order of docs/errors.md; a refused call changes nothing.
#include <cstring>
#include <span>

#include "base/log.h"
#include "runtime/context_call.h"
#include "runtime/custom_op_attributes.h"
#include "runtime/custom_op_callbacks.h"

namespace orknn::runtime {
namespace {
constexpr const char* kRegister = "rknn_register_custom_ops";

int register_all(Session& session, std::span<const rknn_custom_op> records) {
  CustomOps& ops = session.custom_ops();
  std::vector<std::pair<std::string, std::unique_ptr<CustomOperator>>> made;
  for (const rknn_custom_op& record : records) {
    Registration r = register_callbacks(record, ops.nodes());
    if (!r.op) return fail(r.code, kRegister, r.problem);
    made.emplace_back(std::string(record.op_type, strnlen(record.op_type, sizeof record.op_type)), std::move(r.op));
  }
  for (auto& [type, op] : made) {
    const auto warn = [&, &name = type](const std::string& text) {
      log(LogLevel::Warn, kRegister, "The custom operator '" + name + "' " + text + "!");
    };
    if (ops.serves(type)) warn("is registered twice, the later one is used");
    const size_t fused = ops.nodes().fused_count(type);
    if (fused)
      warn("does not compute " + std::to_string(fused) +
           " nodes that are fused with others; to replace these as well, declare it " +
           "with reg_custom_op when the model is built");
    else if (ops.nodes().of_type(type).empty())
      warn("has no node in this model");
    ops.serve(type, std::move(op));
  }
  session.replace_operators();
  return RKNN_SUCC;
}
}  // namespace
}  // namespace orknn::runtime

using namespace orknn::runtime;

int rknn_register_custom_ops(rknn_context ctx, rknn_custom_op* op, uint32_t custom_op_num) {
  return with_context(kRegister, ctx, [&](Context& context) {
    if (lacks(context, &orknn::platform::Features::custom_ops)) return refuse_on_chip(kRegister, *context.chip);
    if (!op || custom_op_num == 0) return fail(RKNN_ERR_PARAM_INVALID, kRegister, !op ? "op is NULL" : "custom_op_num is 0");
    return register_all(*context.session, {op, custom_op_num});
  });
}

void rknn_custom_op_get_op_attr(rknn_custom_op_context* op_ctx, const char* attr_name, rknn_custom_op_attr* op_attr) {
  if (!op_attr) return;
  op_attr->n_elems = 0;
  op_attr->data = nullptr;
  if (!attr_name) return;
  std::memset(op_attr->name, 0, sizeof op_attr->name);
  std::memcpy(op_attr->name, attr_name, strnlen(attr_name, sizeof op_attr->name - 1));
  if (!op_ctx || !op_ctx->internal_ctx) return;
  const auto* handle = reinterpret_cast<const OpHandle*>(static_cast<uintptr_t>(op_ctx->internal_ctx));
  if (handle->mark == OpHandle::kMark) handle->get(*handle, attr_name, *op_attr);
}
