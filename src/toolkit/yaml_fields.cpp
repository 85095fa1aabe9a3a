#include "toolkit/yaml_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/utf8.h"

namespace orknn::toolkit {

using data::YamlValue;
using YamlKind = YamlValue::Kind;

Result<std::string> as_text(const YamlValue& value, std::string_view key) {
  if (value.kind != YamlKind::Scalar) return value.problem(fmt::format("expected a text for '{}'", key));
  return value.text;
}

Result<bool> as_flag(const YamlValue& value, std::string_view key) {
  constexpr std::array<std::string_view, 6> kYes{"true", "True", "TRUE", "yes", "on", "1"},
      kNo{"false", "False", "FALSE", "no", "off", "0"};
  const auto is_one_of = [&](const auto& words) { return std::find(words.begin(), words.end(), value.text) != words.end(); };
  if (value.kind == YamlKind::Scalar && is_one_of(kYes)) return true;
  if (value.kind == YamlKind::Scalar && is_one_of(kNo)) return false;
  return value.problem(fmt::format("expected true or false for '{}'", key));
}

template <class T>
Result<T> as_number(std::string_view text, const YamlValue& where, std::string_view key) {
  T number{};
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  if (problem == std::errc::result_out_of_range)
    return where.problem(fmt::format("Invalid {} {}, the number is too large!", key, to_utf8(text)));
  if (problem != std::errc() || stopped != end || text.empty())
    return where.problem(fmt::format("expected numbers for '{}', found '{}'", key, to_utf8(text)));
  return number;
}

std::vector<std::string> pieces_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view piece = text.substr(at, end - at);
    const size_t first = piece.find_first_not_of(' ');
    if (first != piece.npos) pieces.emplace_back(piece.substr(first, piece.find_last_not_of(' ') - first + 1));
    at = end + 1;
  }
  return pieces;
}

template <class T>
Result<std::vector<T>> as_numbers(const YamlValue& value, std::string_view key) {
  std::vector<T> numbers;
  if (value.kind == YamlKind::Scalar) {
    for (const std::string& piece : pieces_of(value.text, ", ")) {
      ORKNN_TRY_ASSIGN(const T number, as_number<T>(piece, value, key));
      numbers.push_back(number);
    }
    return numbers;
  }
  if (value.kind != YamlKind::List) return value.problem(fmt::format("expected a list of numbers for '{}'", key));
  for (const YamlValue& item : value.items) {
    ORKNN_TRY_ASSIGN(const std::string text, as_text(item, key));
    ORKNN_TRY_ASSIGN(const T number, as_number<T>(text, item, key));
    numbers.push_back(number);
  }
  return numbers;
}

template <class T>
Result<std::vector<std::vector<T>>> as_number_lists(const YamlValue& value, std::string_view key) {
  std::vector<std::vector<T>> lists;
  const bool nested = value.kind == YamlKind::List && !value.items.empty() && value.items[0].kind == YamlKind::List;
  if (!nested) {
    ORKNN_TRY_ASSIGN(std::vector<T> one, as_numbers<T>(value, key));
    lists.push_back(std::move(one));
    return lists;
  }
  for (const YamlValue& item : value.items) {
    ORKNN_TRY_ASSIGN(std::vector<T> one, as_numbers<T>(item, key));
    lists.push_back(std::move(one));
  }
  return lists;
}

Result<std::vector<std::string>> as_texts(const YamlValue& value, std::string_view key) {
  if (value.kind == YamlKind::Scalar) return std::vector<std::string>{value.text};
  std::vector<std::string> texts;
  if (value.kind != YamlKind::List) return value.problem(fmt::format("expected a list for '{}'", key));
  for (const YamlValue& item : value.items) {
    ORKNN_TRY_ASSIGN(std::string text, as_text(item, key));
    texts.push_back(std::move(text));
  }
  return texts;
}

template Result<int> as_number(std::string_view, const YamlValue&, std::string_view);
template Result<int64_t> as_number(std::string_view, const YamlValue&, std::string_view);
template Result<double> as_number(std::string_view, const YamlValue&, std::string_view);
template Result<std::vector<double>> as_numbers(const YamlValue&, std::string_view);
template Result<std::vector<int64_t>> as_numbers(const YamlValue&, std::string_view);
template Result<std::vector<std::vector<int64_t>>> as_number_lists(const YamlValue&, std::string_view);
template Result<std::vector<std::vector<double>>> as_number_lists(const YamlValue&, std::string_view);

}  // namespace orknn::toolkit
