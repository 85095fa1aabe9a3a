// A reader of JSON text that hands out values as the caller asks for them and builds no tree: what the caller does not want costs
// no memory, nesting is limited, and every complaint states its offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace orknn::importer::wire {

class JsonReader {
 public:
  explicit JsonReader(std::span<const std::byte> bytes) : text_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  enum class Kind { Object, Array, String, Number, Literal, End };
  // What comes next, without reading it. End also stands for a character that begins no value.
  Kind peek();

  // Walks an object: `entry(key)` must read the value, or skip() it. `entry` returns a Status.
  template <class Entry>
  Status object(Entry&& entry) {
    ORKNN_TRY(open('{'));
    for (bool first = true;; first = false) {
      ORKNN_TRY_ASSIGN(const bool more, next_element('}', first));
      if (!more) return {};
      ORKNN_TRY_ASSIGN(const std::string key, string());
      ORKNN_TRY(expect(':'));
      ORKNN_TRY(entry(key));
    }
  }
  // Walks an array: `element(index)` must read the value, or skip() it.
  template <class Element>
  Status array(Element&& element) {
    ORKNN_TRY(open('['));
    for (size_t index = 0;; ++index) {
      ORKNN_TRY_ASSIGN(const bool more, next_element(']', index == 0));
      if (!more) return {};
      ORKNN_TRY(element(index));
    }
  }
  Result<std::string> string();
  // A whole number that fits.
  Result<int64_t> integer();
  // A string, or the text of a number or literal as it stands.
  Result<std::string> scalar_text();
  // Any value.
  Status skip();
  // Nothing but white space may be left.
  Status finish();

  Status problem(std::string message) const;

 private:
  void skip_space();
  Status open(char bracket);
  Status expect(char c);
  // True when another element follows; false when the closing bracket was read.
  Result<bool> next_element(char closing, bool first);
  Status escape(std::string& to);
  Result<uint32_t> hex_digits();
  std::string_view number_or_literal();

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace orknn::importer::wire
