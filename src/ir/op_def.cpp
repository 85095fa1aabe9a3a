#include "ir/op_def.h"

#include <algorithm>

namespace orknn::ir {

const Attribute& NodeReader::lookup(std::string_view name) const {
  for (const auto& [key, value] : node_.attributes)
    if (key == name) return value;
  for (const AttributeDef& d : def_.attributes)
    if (d.name == name && d.fallback) return *d.fallback;
  ORKNN_ASSERT(false, "the attribute is present or its schema has a fallback");
  __builtin_unreachable();
}

int64_t NodeReader::get_int(std::string_view name) const { return std::get<int64_t>(lookup(name)); }
double NodeReader::get_float(std::string_view name) const {
  const Attribute& a = lookup(name);
  return kind_of(a) == AttributeKind::Int ? static_cast<double>(std::get<int64_t>(a)) : std::get<double>(a);
}
const std::string& NodeReader::get_string(std::string_view name) const { return std::get<std::string>(lookup(name)); }
const std::vector<int64_t>& NodeReader::get_ints(std::string_view name) const {
  return std::get<std::vector<int64_t>>(lookup(name));
}

double OpDef::float_of(const Attributes& values, std::string_view name) const {
  const auto row = std::ranges::find(attributes, name, &AttributeDef::name);
  ORKNN_ASSERT(row != attributes.end() && row->fallback, "the schema names the attribute and has a fallback for it");
  return values.float_or(name, std::get<double>(*row->fallback));
}

std::optional<std::vector<int64_t>> InferContext::ints(size_t i) const {
  if (!has_input(i)) return std::nullopt;
  if (const TensorData* c = inputs_[i].constant) return to_ints(c->view());
  if (!inputs_[i].content) return std::nullopt;
  std::vector<int64_t> out;
  for (const Dim& d : *inputs_[i].content) {
    if (!d.is_known()) return std::nullopt;
    out.push_back(d.value());
  }
  return out;
}

std::optional<std::vector<Dim>> InferContext::content(size_t i) const {
  if (!has_input(i)) return std::nullopt;
  if (inputs_[i].content) return inputs_[i].content;
  if (const TensorData* c = inputs_[i].constant; c && (is_integer(c->dtype()) || c->dtype() == DType::Bool)) {
    const std::vector<int64_t> values = to_ints(c->view());
    return std::vector<Dim>(values.begin(), values.end());
  }
  const Shape* s = shape(i);
  if (!is_integer(dtype(i)) || !s || s->size() > 1) return std::nullopt;
  if (s->empty()) return std::vector<Dim>(1);
  if (!s->front().is_known() || s->front().value() > 64) return std::nullopt;
  return std::vector<Dim>(static_cast<size_t>(s->front().value()));
}

void InferContext::set_output(size_t i, DType dtype, std::optional<Shape> shape) {
  if (i >= outputs_.size()) return;
  outputs_[i].dtype = dtype;
  outputs_[i].shape = std::move(shape);
}

void InferContext::set_content(size_t i, std::vector<Dim> content) {
  if (i >= outputs_.size()) return;
  outputs_[i].content = std::move(content);
}

}  // namespace orknn::ir
