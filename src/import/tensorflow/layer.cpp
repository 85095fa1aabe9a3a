#include "import/tensorflow/layer.h"

#include <cmath>

namespace orknn::importer::tensorflow {
using namespace ir;

Status Layer::need_inputs(size_t count) const {
  if (inputs_.size() >= count) return {};
  return invalid_model("inputs are missing").expected(std::to_string(count)).found(std::to_string(inputs_.size()));
}

void Layer::join_float_types() {
  if (op().find("FusedBatchNorm") != std::string_view::npos || op() == "Cast") return;  // these mix types on purpose
  bool has_single = false, has_half = false;
  for (const Value& v : inputs_) {
    has_single |= v.tensor && dtype_of(v.tensor) == DType::Float32;
    has_half |= v.tensor && dtype_of(v.tensor) == DType::Float16;
  }
  if (!has_single || !has_half) return;
  for (Value& v : inputs_)
    if (v.tensor && dtype_of(v.tensor) == DType::Float16) v.tensor = cast(v.tensor, DType::Float32);
}

Result<TensorId> Layer::operand(size_t i) const {
  ORKNN_TRY(need_inputs(i + 1));
  if (!inputs_[i].tensor) return unsupported("input " + std::to_string(i) + " is a list of tensors where a tensor is expected");
  if (import.complex_tensors.contains(inputs_[i].tensor.index))
    return unsupported("complex numbers are not supported here").hint("cut the model before it with 'outputs'");
  return inputs_[i].tensor;
}

Result<const TensorList*> Layer::list(size_t i) const {
  ORKNN_TRY(need_inputs(i + 1));
  if (!inputs_[i].list) return unsupported("input " + std::to_string(i) + " is a tensor where a list of tensors is expected");
  return inputs_[i].list.get();
}

Result<std::vector<int64_t>> Layer::ints(size_t i, std::string_view reason) const {
  ORKNN_TRY_ASSIGN(const TensorId id, operand(i));
  return need_ints(id, reason);
}

Result<std::vector<double>> Layer::doubles(size_t i, std::string_view reason) const {
  ORKNN_TRY_ASSIGN(const TensorId id, operand(i));
  return need_doubles(id, reason);
}

Result<int64_t> Layer::integer(size_t i, std::string_view reason) const {
  ORKNN_TRY_ASSIGN(const TensorId id, operand(i));
  return need_integer(id, reason);
}

Result<double> Layer::number(size_t i, std::string_view reason) const {
  ORKNN_TRY_ASSIGN(const TensorId id, operand(i));
  return need_number(id, reason);
}

// A function's node may leave an attribute open under another name, which the call gives a value.
AttributeValue Layer::attribute(std::string_view name) const {
  const NodeDef* node = &node_;
  for (const CallSite* call = call_;; call = call->outer) {
    const AttributeDef* found = nullptr;
    for (const AttributeDef& a : node->attributes)
      if (a.name == name) found = &a;
    if (!found) return {};
    auto value = parse_attribute(found->value);
    if (!value) return {};
    if (value->kind != AttributeValue::Kind::Placeholder) return *value;
    if (!call) return {};
    name = value->text;
    node = call->node;
  }
}

int64_t Layer::int_or(std::string_view name, int64_t fallback) const {
  const AttributeValue a = attribute(name);
  return a.kind == AttributeValue::Kind::Int ? a.number : fallback;
}

double Layer::float_or(std::string_view name, double fallback) const {
  const AttributeValue a = attribute(name);
  return a.kind == AttributeValue::Kind::Float ? static_cast<double>(a.real) : fallback;
}

bool Layer::bool_or(std::string_view name, bool fallback) const {
  const AttributeValue a = attribute(name);
  return a.kind == AttributeValue::Kind::Bool ? a.number != 0 : fallback;
}

std::string_view Layer::string_or(std::string_view name, std::string_view fallback) const {
  const AttributeValue a = attribute(name);
  return a.kind == AttributeValue::Kind::String ? a.text : fallback;
}

std::vector<int64_t> Layer::ints_or(std::string_view name, std::vector<int64_t> fallback) const {
  auto values = parse_int_list(attribute(name));
  return values ? *std::move(values) : std::move(fallback);
}

std::vector<std::string_view> Layer::strings_or_none(std::string_view name) const {
  auto values = parse_string_list(attribute(name));
  return values ? *std::move(values) : std::vector<std::string_view>();
}

DType Layer::dtype_or(std::string_view name, DType fallback) const {
  const AttributeValue a = attribute(name);
  return a.kind == AttributeValue::Kind::Type ? to_dtype(a.number) : fallback;
}

}  // namespace orknn::importer::tensorflow
