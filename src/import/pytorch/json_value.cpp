#include "import/pytorch/json_value.h"

#include <charconv>

#include "import/wire/json.h"

namespace orknn::importer::pytorch {
namespace {
using wire::JsonReader;

Value of_literal(const std::string& text, Heap& heap) {
  if (text == "true") return true;
  if (text == "false") return false;
  if (text == "null") return {};
  const char* end = text.data() + text.size();
  int64_t integer = 0;
  if (const auto [used, error] = std::from_chars(text.data(), end, integer); error == std::errc() && used == end) return integer;
  double number = 0;
  if (const auto [used, error] = std::from_chars(text.data(), end, number); error == std::errc() && used == end) return number;
  return heap.string(text);
}

// The reader bounds the nesting.
Result<Value> read(JsonReader& reader, Heap& heap) {
  if (heap.is_exhausted()) return reader.problem("the file holds too many values");
  switch (reader.peek()) {
    case JsonReader::Kind::Object: {
      DictValue* dict = heap.dict();
      ORKNN_TRY(reader.object([&](const std::string& key) -> Status {
        ORKNN_TRY_ASSIGN(const Value value, read(reader, heap));
        dict->set(heap.string(key), value);
        return {};
      }));
      return Value(dict);
    }
    case JsonReader::Kind::Array: {
      ListValue* list = heap.list();
      ORKNN_TRY(reader.array([&](size_t) -> Status {
        ORKNN_TRY_ASSIGN(const Value value, read(reader, heap));
        heap.charge(1);
        list->items.push_back(value);
        return {};
      }));
      return Value::list(list);
    }
    case JsonReader::Kind::String: {
      ORKNN_TRY_ASSIGN(std::string text, reader.string());
      return heap.string(std::move(text));
    }
    default: {
      ORKNN_TRY_ASSIGN(const std::string text, reader.scalar_text());
      return of_literal(text, heap);
    }
  }
}
}  // namespace

Result<Value> read_json(std::string_view text, Heap& heap) {
  JsonReader reader(std::as_bytes(std::span(text.data(), text.size())));
  ORKNN_TRY_ASSIGN(const Value value, read(reader, heap));
  ORKNN_TRY(reader.finish());
  return value;
}

Value member(const Value& dict, std::string_view key) {
  if (dict.kind() != Kind::Dict) return {};
  const auto it = dict.dict().index.find(DictValue::Key{.integer = -1, .number = -1, .text = std::string(key)});
  return it == dict.dict().index.end() ? Value() : dict.dict().items[it->second].second;
}

std::string text_member(const Value& dict, std::string_view key) {
  const Value v = member(dict, key);
  return v.kind() == Kind::String || v.is_number() ? to_text(v) : std::string();
}

std::optional<int64_t> integer_of(const Value& value) {
  if (value.kind() == Kind::Int) return value.integer();
  if (value.kind() != Kind::String) return std::nullopt;
  int64_t number = 0;
  const std::string& text = value.text();
  const auto [used, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && used == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace orknn::importer::pytorch
