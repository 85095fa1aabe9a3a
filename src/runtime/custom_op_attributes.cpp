#include "runtime/custom_op_attributes.h"

#include <cstring>

#include "ir/custom_op.h"
#include "ops/custom_ops.h"
#include "runtime/tensor_attr.h"

namespace orknn::runtime {
using namespace ir;

NodeAttributes::NodeAttributes(const Node& node) {
  get = &get_value;
  const OpDef* builtin = is_custom(node.op) ? ops::builtin_of(node.op) : ops::builtin_ops().find(node.op);
  if (builtin)  // programs rely on what the standard says about absent attributes
    for (const AttributeDef& d : builtin->attributes)
      if (d.fallback) add(std::string(d.name), *d.fallback);
  for (const auto& [name, value] : node.attributes)
    if (!name.starts_with(kSourceMark)) add(name, value);
  if (!node.attributes.has("name")) add("name", node.name);
}

template <class T>
void NodeAttributes::add(const std::string& name, rknn_tensor_type type, const std::vector<T>& values) {
  Value& v = values_[name];
  v.type = type;
  v.count = static_cast<uint32_t>(values.size());
  v.bytes.assign(values.size() * sizeof(T) + 1, std::byte{0});
  if (!values.empty()) std::memcpy(v.bytes.data(), values.data(), values.size() * sizeof(T));
}

void NodeAttributes::add(const std::string& name, const Attribute& value) {
  const auto floats = [](const std::vector<double>& list) { return std::vector<float>(list.begin(), list.end()); };
  const auto characters = [](const std::string& text) { return std::vector<char>(text.begin(), text.end()); };
  switch (kind_of(value)) {
    case AttributeKind::Int: return add(name, RKNN_TENSOR_INT64, std::vector{std::get<int64_t>(value)});
    case AttributeKind::Ints: return add(name, RKNN_TENSOR_INT64, std::get<std::vector<int64_t>>(value));
    case AttributeKind::Float: return add(name, RKNN_TENSOR_FLOAT32, floats({std::get<double>(value)}));
    case AttributeKind::Floats: return add(name, RKNN_TENSOR_FLOAT32, floats(std::get<std::vector<double>>(value)));
    case AttributeKind::String: return add(name, RKNN_TENSOR_UINT8, characters(std::get<std::string>(value)));
    case AttributeKind::Strings: {  // one after the other, each with its zero byte
      std::string all;
      for (const std::string& text : std::get<std::vector<std::string>>(value)) all += text + '\0';
      return add(name, RKNN_TENSOR_UINT8, characters(all));
    }
    case AttributeKind::Tensor: {
      const TensorData& data = std::get<TensorData>(value);
      const bool as_float = is_float(data.dtype());
      const TensorData shown = as_float ? convert(data.view(), DType::Float32) : data;
      add(name, as_float ? RKNN_TENSOR_FLOAT32 : public_type(data.dtype()),
          std::vector<std::byte>(shown.as<std::byte>(), shown.as<std::byte>() + shown.bytes()));
      values_[name].count = static_cast<uint32_t>(shown.count());
      return;
    }
    case AttributeKind::Graph: return;
  }
}

void NodeAttributes::get_value(const OpHandle& handle, const char* name, rknn_custom_op_attr& attr) {
  const auto& values = static_cast<const NodeAttributes&>(handle).values_;
  const auto it = values.find(std::string_view(name));
  if (it == values.end()) return;
  attr.dtype = it->second.type;
  attr.n_elems = it->second.count;
  // The runtime's own copy: a program that writes to it changes what it reads the next time, and nothing else.
  attr.data = const_cast<std::byte*>(it->second.bytes.data());
}

}  // namespace orknn::runtime
