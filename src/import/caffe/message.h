// Fields of a Caffe message by name, read from text or from wire bytes. Text carries the names itself, so that every fork's own
// parameters can be read; bytes carry numbers, which only the schema of BVLC's Caffe names safely.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/wire/text_reader.h"

namespace orknn::importer::caffe {

class Message;

// One value: a scalar, a string or a message.
class Field {
 public:
  Field(const wire::TextField& text, std::shared_ptr<const Message> message)
      : name_(text.name), text_(text), message_(std::move(message)) {}
  Field(std::string_view name, const wire::Field& wire, std::span<const wire::TextEnumerator> enumerators,
        std::shared_ptr<const Message> message)
      : name_(name), wire_(wire), is_wire_(true), enumerators_(enumerators), message_(std::move(message)) {}

  std::string_view name() const { return name_; }
  void rename(std::string_view name) { name_ = name; }
  const Message* message() const { return message_.get(); }
  // Whether the value suits the type asked for.
  bool get(int64_t& value) const;
  bool get(double& value) const;
  bool get(bool& value) const;
  bool get(std::string& value) const;
  // The name of an enumerator, or its number as text when nothing names it.
  bool get_word(std::string& value) const;
  // " (line 12)", for messages; empty for bytes.
  std::string place() const;

 private:
  std::string_view name_;
  wire::TextField text_;
  wire::Field wire_;
  bool is_wire_ = false;
  std::span<const wire::TextEnumerator> enumerators_;
  std::shared_ptr<const Message> message_;
};

class Message {
 public:
  // Contents of messages called "blobs" are left out: weights are read elsewhere.
  static Result<Message> from_text(const wire::TextReader& reader);
  static Result<Message> from_wire(wire::Bytes bytes, const wire::TextSchema& schema);
  static const Message& empty();

  std::span<const Field> fields() const { return fields_; }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  // The last one of that name, nullptr when there is none.
  const Field* find(std::string_view name) const;
  // The message of that name; an empty one when absent.
  const Message& message(std::string_view name) const;
  std::vector<const Field*> all(std::string_view name) const;

  // Gives all fields of one name another, which must outlive the message.
  void rename(std::string_view from, std::string_view to);

 private:
  static Result<Message> read_text(wire::TextReader reader, int depth);
  static Result<Message> read_wire(wire::Bytes bytes, const wire::TextSchema& schema, int depth);
  std::vector<Field> fields_;
};

// Typed values of a message's fields by name. One that is absent, of another kind or out of range reads as the fallback, or as
// the nearest value within the range; the first such problem is kept where the reader can ask for it after reading on.
class Parameters {
 public:
  Parameters(const Message& message, Status& problem) : message_(&message), problem_(&problem) {}

  bool has(std::string_view name) const { return message_->has(name); }
  bool is_empty() const { return message_->fields().empty(); }
  Parameters message(std::string_view name) const { return {message_->message(name), *problem_}; }
  std::vector<Parameters> messages(std::string_view name) const;
  const Message* filler(std::string_view name) const { return &message_->message(name); }

  int64_t integer(std::string_view name, int64_t fallback) const;
  int64_t integer(std::string_view name, int64_t fallback, int64_t least, int64_t most) const;
  double number(std::string_view name, double fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::string word(std::string_view name, std::string_view fallback) const;
  // The index of an enumerator: `words` stand in the order of their numbers, the first of which is `first`.
  size_t choice(std::string_view name, size_t fallback, std::initializer_list<std::string_view> words, int64_t first = 0) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;

 private:
  template <class T>
  T value_of(std::string_view name, T fallback, std::string_view kind) const;
  template <class T>
  std::vector<T> values_of(std::string_view name, std::string_view kind) const;
  void fail(Status problem) const;
  const Message* message_;
  Status* problem_;
};
Status out_of_range(std::string_view name, int64_t value, int64_t least, int64_t most);

// Messages of BVLC's Caffe: "Net" is a description with V1 and V0 layers, "NetBlobs" the weights in it.
const wire::TextSchema& schema_of(std::string_view message);
// Names of fields that mean something to some Caffe, in alphabetical order.
std::span<const std::string_view> known_fields();

}  // namespace orknn::importer::caffe
