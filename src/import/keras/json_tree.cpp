#include "import/keras/json_tree.h"

#include <algorithm>
#include <charconv>
#include <span>

namespace orknn::importer::keras {
namespace {

using wire::JsonReader;

// The reader limits how deeply values are nested.
Status read_json(JsonReader& in, Json& value) {
  switch (in.peek()) {
    case JsonReader::Kind::Object:
      value.kind = Json::Kind::Map;
      return in.object([&](const std::string& key) {
        value.entries.emplace_back(key, Json{});
        return read_json(in, value.entries.back().second);
      });
    case JsonReader::Kind::Array:
      value.kind = Json::Kind::List;
      return in.array([&](size_t) {
        value.items.emplace_back();
        return read_json(in, value.items.back());
      });
    case JsonReader::Kind::String: {
      value.kind = Json::Kind::Text;
      ORKNN_TRY_ASSIGN(value.text, in.string());
      return {};
    }
    default: {
      ORKNN_TRY_ASSIGN(value.text, in.scalar_text());
      value.kind = value.text == "null" ? Json::Kind::Null : Json::Kind::Scalar;
      return {};
    }
  }
}
}  // namespace

Json::Json() noexcept = default;

const Json& Json::operator[](std::string_view key) const {
  static const Json nothing;
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == entries.end() ? nothing : found->second;
}

std::string Json::string(std::string_view otherwise) const { return kind == Kind::Text ? text : std::string(otherwise); }

double Json::number(double otherwise) const {
  double value = otherwise;
  if (kind == Kind::Scalar) std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int64_t Json::integer(int64_t otherwise) const {
  int64_t value = otherwise;
  if (kind == Kind::Scalar) std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool Json::flag(bool otherwise) const { return kind == Kind::Scalar ? text == "true" || text == "1" : otherwise; }

std::vector<int64_t> Json::integers(size_t repeat) const {
  std::vector<int64_t> values;
  if (kind == Kind::Scalar) values.assign(repeat, integer(0));
  for (const Json& item : items) values.push_back(item.integer(-1));
  return values;
}

Result<Json> parse_json(std::string_view text) {
  JsonReader in(std::as_bytes(std::span(text.data(), text.size())));
  Json value;
  ORKNN_TRY(read_json(in, value));
  ORKNN_TRY(in.finish());
  return value;
}

}  // namespace orknn::importer::keras
