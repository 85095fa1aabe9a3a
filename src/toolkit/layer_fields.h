// Typed reads of layer.json whose errors name the field by its place, such as 'ops[0].stride'. All of them throw
// std::invalid_argument; readers of such folders turn that into a Status.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace orknn::toolkit {

class Fields {
 public:
  // `place` is empty for the file itself.
  explicit Fields(const nlohmann::ordered_json& object, std::string place = {});

  // False also for null, which stands for "not there".
  bool has(const char* key) const;
  int64_t integer(const char* key) const;
  int64_t integer(const char* key, int64_t otherwise) const { return has(key) ? integer(key) : otherwise; }
  // An extent of a tensor, bounded so that the product of all axes cannot overflow.
  int64_t extent(const char* key) const;
  double number(const char* key) const;
  // Of 'key_hex', a hexadecimal float, where that is there.
  float exact_float(const char* key, float otherwise) const;
  std::string text(const char* key) const;
  std::string text(const char* key, const char* otherwise) const { return has(key) ? text(key) : otherwise; }
  bool flag(const char* key, bool otherwise) const;
  // The name of a file in the folder itself.
  std::string file(const char* key) const;
  // A number, or text such as "0x10000".
  uint32_t address(const char* key) const;
  std::vector<int64_t> integers(const char* key) const;
  Fields object(const char* key) const;
  std::vector<Fields> objects(const char* key) const;
  // The names of all fields.
  std::vector<std::string> keys() const;
  // Throws that the field, which is there, holds something else than expected.
  [[noreturn]] void refuse(const char* key, const std::string& expected) const;
  // Refuses fields that change what a layer computes, unless `reader` takes them or their value is that of a missing field. All
  // others, such as notes and checks, are remarks.
  void refuse_dropped(const std::string& reader, const std::set<std::string_view>& taken) const;

 private:
  const nlohmann::ordered_json& at(const char* key) const;
  std::string place_of(const char* key) const;

  const nlohmann::ordered_json* object_;
  std::string place_;
};

}  // namespace orknn::toolkit
