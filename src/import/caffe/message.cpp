#include "import/caffe/message.h"

#include <algorithm>

namespace orknn::importer::caffe {
using wire::TextType;

bool Field::get(int64_t& value) const {
  if (is_wire_) return wire_.get(value);
  if (text_.get(value)) return true;
  double number = 0;  // "1.0" where an integer is meant
  if (!text_.get(number) || !(number > -1e15 && number < 1e15) || number != static_cast<double>(static_cast<int64_t>(number)))
    return false;
  value = static_cast<int64_t>(number);
  return true;
}

bool Field::get(double& value) const {
  if (!is_wire_) return text_.get(value);
  if (float single = 0; wire_.get(single)) {
    value = single;
    return true;
  }
  if (wire_.get(value)) return true;
  int64_t whole = 0;
  if (!wire_.get(whole)) return false;
  value = static_cast<double>(whole);
  return true;
}

bool Field::get(bool& value) const {
  if (is_wire_) return wire_.get(value);
  if (text_.get(value)) return true;
  int64_t number = 0;
  if (!text_.get(number)) return false;
  value = number != 0;
  return true;
}

bool Field::get(std::string& value) const {
  if (!is_wire_) return text_.get(value);
  std::string_view text;
  if (!wire_.get(text)) return false;
  value = text;
  return true;
}

bool Field::get_word(std::string& value) const {
  if (!is_wire_) {
    std::string_view word;
    if (text_.get_word(word)) {
      value = word;
      return true;
    }
  }
  if (get(value)) return true;  // types of layers; some write enumerators in quotes
  int64_t number = 0;
  if (!get(number)) return false;
  for (const wire::TextEnumerator& e : enumerators_)
    if (e.value == number) {
      value = e.name;
      return true;
    }
  value = std::to_string(number);
  return true;
}

std::string Field::place() const { return is_wire_ ? "" : " (line " + std::to_string(text_.line) + ")"; }

const Message& Message::empty() {
  static const Message message;
  return message;
}

Result<Message> Message::from_text(const wire::TextReader& reader) { return read_text(reader, 0); }

Result<Message> Message::read_text(wire::TextReader reader, int depth) {
  if (depth > wire::kMaxDepth)
    return invalid_model("messages are nested too deeply").expected("at most " + std::to_string(wire::kMaxDepth) + " levels");
  Message result;
  wire::TextField field;
  while (reader.next(field)) {
    std::shared_ptr<const Message> message;
    if (field.kind == wire::TextField::Kind::Message) {
      if (field.name == "blobs") continue;
      ORKNN_TRY_ASSIGN(Message inner, read_text(wire::TextReader(field), depth + 1));
      message = std::make_shared<const Message>(std::move(inner));
    }
    result.fields_.emplace_back(field, std::move(message));
  }
  if (!reader.status()) return reader.status();
  return result;
}

Result<Message> Message::from_wire(wire::Bytes bytes, const wire::TextSchema& schema) { return read_wire(bytes, schema, 0); }

Result<Message> Message::read_wire(wire::Bytes bytes, const wire::TextSchema& schema, int depth) {
  if (depth > wire::kMaxDepth)
    return invalid_model("messages are nested too deeply").expected("at most " + std::to_string(wire::kMaxDepth) + " levels");
  Message result;
  wire::Reader reader(bytes);
  for (wire::Field field; reader.next(field);) {
    const wire::TextRow* row = nullptr;
    for (const wire::TextRow& r : schema.rows)
      if (r.number == field.number) row = &r;
    if (!row) continue;
    const auto add = [&](const wire::Field& value, std::shared_ptr<const Message> message = nullptr) {
      result.fields_.emplace_back(row->name, value, row->enumerators, std::move(message));
    };
    if (row->type == TextType::Message) {
      if (field.type != wire::WireType::Bytes) continue;
      ORKNN_TRY_ASSIGN(Message inner, read_wire(field.bytes, *row->message, depth + 1));
      add(field, std::make_shared<const Message>(std::move(inner)));
    } else if (row->type == TextType::String || field.type != wire::WireType::Bytes) {
      add(field);
    } else if (row->type == TextType::Float) {  // packed lists become one field per element
      ORKNN_TRY(wire::for_each_fixed<uint32_t>(field, [&](uint32_t bits) {
        add({.number = field.number, .type = wire::WireType::Fixed32, .scalar = bits, .bytes = {}});
      }));
    } else {
      ORKNN_TRY(wire::for_each_varint(field, [&](uint64_t bits) {
        add({.number = field.number, .type = wire::WireType::Varint, .scalar = bits, .bytes = {}});
      }));
    }
  }
  if (!reader.status()) return reader.status();
  return result;
}

const Field* Message::find(std::string_view name) const {
  for (auto it = fields_.rbegin(); it != fields_.rend(); ++it)
    if (it->name() == name) return &*it;
  return nullptr;
}

const Message& Message::message(std::string_view name) const {
  const Field* field = find(name);
  return field && field->message() ? *field->message() : empty();
}

std::vector<const Field*> Message::all(std::string_view name) const {
  std::vector<const Field*> list;
  for (const Field& f : fields_)
    if (f.name() == name) list.push_back(&f);
  return list;
}

void Message::rename(std::string_view from, std::string_view to) {
  for (Field& f : fields_)
    if (f.name() == from) f.rename(to);
}

// --- parameters

void Parameters::fail(Status problem) const {
  if (problem_->is_ok()) *problem_ = std::move(problem);
}

namespace {
Status unsuitable(const Field& field, std::string_view expected) {
  return invalid_model("field '" + std::string(field.name()) + "'" + field.place() + " is of another kind")
      .expected(std::string(expected));
}
}  // namespace

Status out_of_range(std::string_view name, int64_t value, int64_t least, int64_t most) {
  return invalid_model("'" + std::string(name) + "' is out of range")
      .expected(std::to_string(least) + " to " + std::to_string(most))
      .found(std::to_string(value));
}

template <class T>
T Parameters::value_of(std::string_view name, T fallback, std::string_view kind) const {
  const Field* field = message_->find(name);
  T value{};
  if (field && field->get(value)) return value;
  if (field) fail(unsuitable(*field, kind));
  return fallback;
}

template <class T>
std::vector<T> Parameters::values_of(std::string_view name, std::string_view kind) const {
  std::vector<T> values;
  for (const Field* field : message_->all(name))
    if (!field->get(values.emplace_back())) fail(unsuitable(*field, kind));
  return values;
}

std::vector<Parameters> Parameters::messages(std::string_view name) const {
  std::vector<Parameters> list;
  for (const Field* field : message_->all(name))
    if (field->message()) list.emplace_back(*field->message(), *problem_);
  return list;
}

int64_t Parameters::integer(std::string_view name, int64_t fallback) const { return value_of(name, fallback, "an integer"); }

int64_t Parameters::integer(std::string_view name, int64_t fallback, int64_t least, int64_t most) const {
  const int64_t value = integer(name, fallback);
  if (value < least || value > most) fail(out_of_range(name, value, least, most));
  return std::clamp(value, least, most);
}

double Parameters::number(std::string_view name, double fallback) const { return value_of(name, fallback, "a number"); }
bool Parameters::flag(std::string_view name, bool fallback) const { return value_of(name, fallback, "true or false"); }
std::string Parameters::text(std::string_view name, std::string_view fallback) const {
  return value_of(name, std::string(fallback), "a string");
}

std::string Parameters::word(std::string_view name, std::string_view fallback) const {
  const Field* field = message_->find(name);
  std::string value;
  if (field && field->get_word(value)) return value;
  if (field) fail(unsuitable(*field, "a word"));
  return std::string(fallback);
}

size_t Parameters::choice(std::string_view name, size_t fallback, std::initializer_list<std::string_view> words,
                          int64_t first) const {
  const std::string found = word(name, words.begin()[fallback]);
  std::string expected;
  for (size_t i = 0; i < words.size(); ++i) {
    if (found == words.begin()[i] || found == std::to_string(first + static_cast<int64_t>(i))) return i;
    expected += (i == 0 ? "" : ", ") + std::string(words.begin()[i]);
  }
  fail(unsupported("unknown " + std::string(name)).expected(std::move(expected)).found(found));
  return fallback;
}

std::vector<int64_t> Parameters::integers(std::string_view name) const { return values_of<int64_t>(name, "integers"); }
std::vector<double> Parameters::numbers(std::string_view name) const { return values_of<double>(name, "numbers"); }
std::vector<std::string> Parameters::texts(std::string_view name) const { return values_of<std::string>(name, "strings"); }

}  // namespace orknn::importer::caffe
