// Typed attributes of a node.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ir/tensor_data.h"

namespace orknn::ir {

class Graph;

// Kinds an attribute value can have; the order is that of Attribute's alternatives and is part of the .rknn format.
enum class AttributeKind : uint8_t { Int, Float, String, Ints, Floats, Strings, Tensor, Graph };

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, std::vector<std::string>,
                               TensorData, std::shared_ptr<const Graph>>;

inline AttributeKind kind_of(const Attribute& a) { return static_cast<AttributeKind>(a.index()); }
std::string_view kind_name(AttributeKind kind);

// Sorted by name, so that printing and saving are deterministic.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<const std::string, Attribute>> entries) : entries_(entries) {}
  void set(std::string name, Attribute value) { entries_[std::move(name)] = std::move(value); }
  void erase(const std::string& name) { entries_.erase(name); }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  // nullptr when absent or of another kind.
  template <class T>
  const T* get(std::string_view name) const {
    const auto it = entries_.find(name);
    return it == entries_.end() ? nullptr : std::get_if<T>(&it->second);
  }
  // The value, or the given one when absent or of another kind.
  int64_t int_or(std::string_view name, int64_t fallback) const;
  double float_or(std::string_view name, double fallback) const;  // an Int attribute counts as a float too
  std::string string_or(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> ints_or(std::string_view name, std::vector<int64_t> fallback = {}) const;
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }

 private:
  std::map<std::string, Attribute, std::less<>> entries_;
};

// Deep equality (tensors by bytes, graphs by printed text).
bool equal(const Attribute& a, const Attribute& b);

}  // namespace orknn::ir
