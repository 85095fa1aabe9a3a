#include "ir/attribute.h"

#include "ir/text.h"

namespace orknn::ir {

std::string_view kind_name(AttributeKind kind) {
  static constexpr std::string_view names[] = {"int", "float", "string", "ints", "floats", "strings", "tensor", "graph"};
  return names[static_cast<size_t>(kind)];
}

int64_t Attributes::int_or(std::string_view name, int64_t fallback) const {
  const int64_t* v = get<int64_t>(name);
  return v ? *v : fallback;
}
double Attributes::float_or(std::string_view name, double fallback) const {
  if (const double* v = get<double>(name)) return *v;
  if (const int64_t* v = get<int64_t>(name)) return static_cast<double>(*v);
  return fallback;
}
std::string Attributes::string_or(std::string_view name, std::string_view fallback) const {
  const std::string* v = get<std::string>(name);
  return v ? *v : std::string(fallback);
}
std::vector<int64_t> Attributes::ints_or(std::string_view name, std::vector<int64_t> fallback) const {
  const std::vector<int64_t>* v = get<std::vector<int64_t>>(name);
  return v ? *v : fallback;
}

bool equal(const Attribute& a, const Attribute& b) {
  if (a.index() != b.index()) return false;
  if (const auto* t = std::get_if<TensorData>(&a)) return identical(t->view(), std::get<TensorData>(b).view());
  if (const auto* g = std::get_if<std::shared_ptr<const Graph>>(&a))
    return print(**g) == print(*std::get<std::shared_ptr<const Graph>>(b));
  return std::visit(
      [&]<class T>(const T& x) {
        if constexpr (std::is_same_v<T, TensorData> || std::is_same_v<T, std::shared_ptr<const Graph>>)
          return false;
        else
          return x == std::get<T>(b);
      },
      a);
}

}  // namespace orknn::ir
