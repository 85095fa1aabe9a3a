// Lists, tuples, dictionaries and strings.
#include <algorithm>
#include <cctype>

#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
// Nothing a network keeps in a list or a text comes near.
constexpr size_t kMaxItems = size_t{1} << 20;
constexpr size_t kMaxText = size_t{1} << 20;

Status too_long() { return unsupported("a list or text of the model's code grows too long"); }

Result<size_t> position(int64_t index, size_t count) {
  const int64_t n = static_cast<int64_t>(count);
  if (index < -n || index >= n)
    return invalid_model("an index is outside of its list")
        .expected("within " + std::to_string(n) + " items")
        .found(std::to_string(index));
  return static_cast<size_t>(index < 0 ? index + n : index);
}

// Python's slice of `count` items: the indices it takes.
Result<std::vector<size_t>> sliced(Call& c, size_t count) {
  const int64_t n = static_cast<int64_t>(count), step = c.integer_or("step", 1);
  if (step == 0) return invalid_model("a slice has step 0");
  const auto bound = [&](std::string_view name, int64_t fallback) {
    int64_t v = c.integer_or(name, fallback);
    if (v < 0 && c.has(name)) v = v < -n ? (step < 0 ? -1 : 0) : v + n;
    return std::clamp<int64_t>(v, step < 0 ? -1 : 0, step < 0 ? n - 1 : n);
  };
  const int64_t start = bound("start", step < 0 ? n - 1 : 0), end = bound("end", step < 0 ? -1 : n);
  std::vector<size_t> indices;
  if (step > 0)
    for (int64_t i = start; i<end; i = step> n - i ? n : i + step) indices.push_back(static_cast<size_t>(i));
  else
    for (int64_t i = start; i > end; i = step < -1 - i ? -1 : i + step) indices.push_back(static_cast<size_t>(i));
  return indices;
}

bool same_value(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.kind() == Kind::String && b.kind() == Kind::String) return a.text() == b.text();
  return a.kind() == b.kind() && (a.is_none() || (a.identity() && a.identity() == b.identity()));
}

// --- lists
Result<Value> length(Call& c) { return Value(static_cast<int64_t>(c.items("self").size())); }
Result<Value> get(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), c.items("self").size()));
  return c.items("self")[at];
}
Result<Value> set(Call& c) {
  auto& items = c.value("self").sequence().items;
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), items.size()));
  items[at] = c.value("value");
  return c.value("self");
}
Result<Value> append(Call& c) {
  auto& items = c.value("self").sequence().items;
  if (items.size() >= kMaxItems) return too_long();
  c.heap().charge(1);
  items.push_back(c.value("value"));
  return c.value("self");
}
Result<Value> extend(Call& c) {
  auto& items = c.value("self").sequence().items;
  const std::vector<Value> more = c.items("other");
  if (items.size() + more.size() > kMaxItems) return too_long();
  c.heap().charge(more.size());
  items.insert(items.end(), more.begin(), more.end());
  return c.value("self");
}
Result<Value> insert(Call& c) {
  auto& items = c.value("self").sequence().items;
  if (items.size() >= kMaxItems) return too_long();
  const int64_t n = static_cast<int64_t>(items.size());
  int64_t at = c.integer("index");
  at = std::clamp<int64_t>(at < 0 ? std::max<int64_t>(at + n, 0) : at, 0, n);
  c.heap().charge(1);
  items.insert(items.begin() + at, c.value("value"));
  return Value();
}
Result<Value> pop(Call& c) {
  auto& items = c.value("self").sequence().items;
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), items.size()));
  const Value v = items[at];
  items.erase(items.begin() + static_cast<ptrdiff_t>(at));
  return v;
}
Result<Value> remove_item(Call& c) {
  auto& items = c.value("self").sequence().items;
  const auto it = std::find_if(items.begin(), items.end(), [&](const Value& v) { return same_value(v, c.value("value")); });
  if (it == items.end()) return invalid_model("the list does not hold the value to remove");
  items.erase(it);
  return Value();
}
Result<Value> clear(Call& c) {
  c.value("self").sequence().items.clear();
  return Value();
}
Result<Value> reverse(Call& c) {
  std::reverse(c.value("self").sequence().items.begin(), c.value("self").sequence().items.end());
  return Value();
}
Result<Value> sort(Call& c) {
  auto& items = c.value("self").sequence().items;
  const bool descending = c.flag("reverse");
  std::stable_sort(items.begin(), items.end(), [&](const Value& a, const Value& b) {
    return descending ? b.number() < a.number() : a.number() < b.number();
  });
  return Value();
}
Result<Value> sorted(Call& c) {
  std::vector<Value> items = c.items("self");
  std::stable_sort(items.begin(), items.end(), [](const Value& a, const Value& b) { return a.number() < b.number(); });
  return c.list(std::move(items));
}
Result<Value> copy(Call& c) { return c.list(c.items("self")); }
Result<Value> slice(Call& c) {
  ORKNN_TRY_ASSIGN(const auto indices, sliced(c, c.items("self").size()));
  std::vector<Value> items;
  for (size_t i : indices) items.push_back(c.items("self")[i]);
  return c.value("self").kind() == Kind::Tuple ? c.tuple(std::move(items)) : c.list(std::move(items));
}
Result<Value> concatenate(Call& c) {
  std::vector<Value> items = c.items("a");
  const auto& more = c.items("b");
  if (items.size() + more.size() > kMaxItems) return too_long();
  items.insert(items.end(), more.begin(), more.end());
  return c.value("a").kind() == Kind::Tuple ? c.tuple(std::move(items)) : c.list(std::move(items));
}
Result<Value> repeat(Call& c) {
  const auto& part = c.items("self");
  const int64_t times = std::max<int64_t>(c.integer("n"), 0);
  if (!part.empty() && static_cast<uint64_t>(times) > kMaxItems / part.size()) return too_long();
  std::vector<Value> items;
  for (int64_t i = 0; i < times && !part.empty(); ++i) items.insert(items.end(), part.begin(), part.end());
  return c.list(std::move(items));
}
bool equal_lists(const std::vector<Value>& a, const std::vector<Value>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_value);
}
Result<Value> equal(Call& c) { return Value(equal_lists(c.items("a"), c.items("b"))); }
Result<Value> different(Call& c) { return Value(!equal_lists(c.items("a"), c.items("b"))); }
Result<Value> contains(Call& c) {
  const auto& items = c.items("self");
  return Value(std::any_of(items.begin(), items.end(), [&](const Value& v) { return same_value(v, c.value("value")); }));
}
Result<Value> index_of(Call& c) {
  const auto& items = c.items("self");
  for (size_t i = 0; i < items.size(); ++i)
    if (same_value(items[i], c.value("value"))) return Value(static_cast<int64_t>(i));
  return invalid_model("the list does not hold the value looked for");
}
Result<Value> count_of(Call& c) {
  const auto& items = c.items("self");
  return Value(static_cast<int64_t>(
      std::count_if(items.begin(), items.end(), [&](const Value& v) { return same_value(v, c.value("value")); })));
}
Result<Value> is_not_empty(Call& c) { return Value(!c.items("self").empty()); }

// --- dictionaries
Result<Value> dict_length(Call& c) { return Value(static_cast<int64_t>(c.value("self").dict().items.size())); }
Result<Value> dict_get(Call& c) {
  const Value* v = c.value("self").dict().find(c.value("key"));
  if (!v) return invalid_model("a dictionary has no key " + to_text(c.value("key")));
  return *v;
}
Result<Value> dict_get_or(Call& c) {
  const Value* v = c.value("self").dict().find(c.value("key"));
  return v ? *v : c.value("fallback");
}
Result<Value> dict_set(Call& c) {
  c.heap().charge(1);
  if (!c.value("self").dict().set(c.value("key"), c.value("value")))
    return invalid_model("a " + describe(c.value("key")) + " cannot be a key");
  return Value();
}
Result<Value> dict_set_default(Call& c) {
  if (const Value* v = c.value("self").dict().find(c.value("key"))) return *v;
  ORKNN_TRY(dict_set(c).status());
  return c.value("value");
}
Result<Value> dict_contains(Call& c) { return Value(c.value("self").dict().find(c.value("key")) != nullptr); }
Result<Value> dict_keys(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : c.value("self").dict().items) items.push_back(key);
  return c.list(std::move(items));
}
Result<Value> dict_values(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : c.value("self").dict().items) items.push_back(value);
  return c.list(std::move(items));
}
Result<Value> dict_items(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : c.value("self").dict().items) items.push_back(Value::tuple(c.heap().list({key, value})));
  return c.list(std::move(items));
}
Result<Value> dict_pop(Call& c) {
  const Value* found = c.value("self").dict().find(c.value("key"));
  if (!found)
    return c.value("fallback").is_none() ? Result<Value>(invalid_model("a dictionary has no key " + to_text(c.value("key"))))
                                         : Result<Value>(c.value("fallback"));
  const Value v = *found;
  c.value("self").dict().erase(c.value("key"));
  return v;
}
Result<Value> dict_delete(Call& c) {
  if (!c.value("self").dict().erase(c.value("key"))) return invalid_model("a dictionary has no key " + to_text(c.value("key")));
  return Value();
}
Result<Value> dict_copy(Call& c) {
  DictValue* copy = c.heap().dict();
  c.heap().charge(c.value("self").dict().items.size());
  *copy = c.value("self").dict();
  return Value(copy);
}
Result<Value> dict_update(Call& c) {
  const auto more = c.value("other").dict().items;
  c.heap().charge(more.size());
  for (const auto& [key, value] : more) c.value("self").dict().set(key, value);
  return Value();
}
Result<Value> dict_of_pairs(Call& c) {
  DictValue* dict = c.heap().dict();
  c.heap().charge(c.items("self").size());
  for (const Value& pair : c.items("self"))
    if (!pair.is_sequence() || pair.sequence().items.size() != 2 ||
        !dict->set(pair.sequence().items[0], pair.sequence().items[1]))
      return invalid_model("a dictionary is made of pairs");
  return Value(dict);
}
Result<Value> empty_dict(Call& c) { return Value(c.heap().dict()); }
Result<Value> list_delete(Call& c) {
  ORKNN_TRY(pop(c).status());
  return Value();
}

// --- strings
Result<Value> text_length(Call& c) { return Value(static_cast<int64_t>(c.text("self").size())); }
Result<Value> text_get(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), c.text("self").size()));
  return c.string(std::string(1, c.text("self")[at]));
}
Result<Value> text_slice(Call& c) {
  ORKNN_TRY_ASSIGN(const auto indices, sliced(c, c.text("self").size()));
  std::string text;
  for (size_t i : indices) text += c.text("self")[i];
  return c.string(std::move(text));
}
Result<Value> text_concatenate(Call& c) {
  if (c.text("a").size() + c.text("b").size() > kMaxText) return too_long();
  return c.string(std::string(c.text("a")) + std::string(c.text("b")));
}
Result<Value> text_contains(Call& c) { return Value(c.text("self").find(c.text("part")) != std::string_view::npos); }
Result<Value> text_starts_with(Call& c) { return Value(c.text("self").starts_with(c.text("part"))); }
Result<Value> text_ends_with(Call& c) { return Value(c.text("self").ends_with(c.text("part"))); }
Result<Value> text_lower(Call& c) {
  std::string text(c.text("self"));
  for (char& ch : text) ch = ch >= 'A' && ch <= 'Z' ? static_cast<char>(ch + 32) : ch;
  return c.string(std::move(text));
}
Result<Value> text_upper(Call& c) {
  std::string text(c.text("self"));
  for (char& ch : text) ch = ch >= 'a' && ch <= 'z' ? static_cast<char>(ch - 32) : ch;
  return c.string(std::move(text));
}
Result<Value> text_join(Call& c) {
  std::string text;
  for (const Value& v : c.items("parts")) {
    if (!text.empty()) text += c.text("self");
    text += v.text();
    if (text.size() > kMaxText) return too_long();
  }
  return c.string(std::move(text));
}
Result<Value> text_split(Call& c) {
  std::vector<Value> parts;
  std::string_view rest = c.text("self");
  const std::string_view separator = c.has("separator") ? c.text("separator") : " ";
  if (separator.empty()) return invalid_model("a text is split at nothing");
  for (size_t at = rest.find(separator); at != std::string_view::npos; at = rest.find(separator)) {
    parts.push_back(c.heap().string(std::string(rest.substr(0, at))));
    rest.remove_prefix(at + separator.size());
  }
  parts.push_back(c.heap().string(std::string(rest)));
  return c.list(std::move(parts));
}
// "{}" of the text, one after the other; only messages are made of it.
Result<Value> format(Call& c) {
  std::string text;
  std::string_view rest = c.text("self");
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    const size_t open = rest.find('{'), close = rest.find('}', open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    text += std::string(rest.substr(0, open)) + to_text(c.value(name));
    rest.remove_prefix(close + 1);
    if (text.size() > kMaxText) return too_long();
  }
  return c.string(text + std::string(rest));
}

// "%d of %s": each conversion takes the next value, whatever its letter.
Result<Value> percent_format(Call& c) {
  static constexpr const char* kNames[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
  std::string text;
  const std::string_view pattern = c.text("self");
  size_t next = 0;
  for (size_t i = 0; i < pattern.size() && text.size() <= kMaxText; ++i) {
    if (pattern[i] != '%') {
      text += pattern[i];
    } else if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
      text += pattern[++i];
    } else {
      while (i + 1 < pattern.size() && !std::isalpha(static_cast<unsigned char>(pattern[i]))) ++i;
      if (next < std::size(kNames)) text += to_text(c.value(kNames[next++]));
    }
  }
  return text.size() > kMaxText ? too_long() : c.string(std::move(text));
}
}  // namespace

std::span<const Row> container_rows() {
  static constexpr Row kRows[] = {
      {"len(list self)", length},
      {"__getitem__(list self, int index)", get},
      {"_set_item(list self, int index, any value)", set},
      {"append(list self, any value)", append},
      {"extend(list self, list other)", extend},
      {"insert(list self, int index, any value)", insert},
      {"pop(list self, int index=-1)", pop},
      {"remove(list self, any value)", remove_item},
      {"Delete(list self, int index)", list_delete},
      {"clear(list self)", clear},
      {"reverse(list self)", reverse},
      {"sort(Scalar[] self, bool reverse=False)", sort},
      {"sorted(Scalar[] self)", sorted},
      {"list(list self)", copy},
      {"copy(list self)", copy},
      {"slice(list self, int? start=None, int? end=None, int step=1)", slice},
      {"add(list a, list b)", concatenate},
      {"add_(list self, list other)", extend},
      {"mul(list self, int n)", repeat},
      {"mul(int n, list self)", repeat},
      {"eq(list a, list b)", equal},
      {"ne(list a, list b)", different},
      {"__contains__(list self, any value)", contains},
      {"index(list self, any value)", index_of},
      {"count(list self, any value)", count_of},
      {"Bool(list self)", is_not_empty},
      {"len(dict self)", dict_length},
      {"__getitem__(dict self, any key)", dict_get},
      {"_set_item(dict self, any key, any value)", dict_set},
      {"get(dict self, any key, any fallback=None)", dict_get_or},
      {"setdefault(dict self, any key, any value)", dict_set_default},
      {"__contains__(dict self, any key)", dict_contains},
      {"keys(dict self)", dict_keys},
      {"values(dict self)", dict_values},
      {"items(dict self)", dict_items},
      {"pop(dict self, any key, any fallback=None)", dict_pop},
      {"Delete(dict self, any key)", dict_delete},
      {"copy(dict self)", dict_copy},
      {"dict(dict self)", dict_copy},
      {"dict(list self)", dict_of_pairs},
      {"dict()", empty_dict},
      {"update(dict self, dict other)", dict_update},
      {"len(str self)", text_length},
      {"__getitem__(str self, int index)", text_get},
      {"slice(str self, int? start=None, int? end=None, int step=1)", text_slice},
      {"add(str a, str b)", text_concatenate},
      {"__contains__(str self, str part)", text_contains},
      {"startswith(str self, str part, int start=0, int end=-1)", text_starts_with},
      {"endswith(str self, str part, int start=0, int end=-1)", text_ends_with},
      {"lower(str self)", text_lower},
      {"upper(str self)", text_upper},
      {"join(str self, str[] parts)", text_join},
      {"split(str self, str? separator=None, int most=-1)", text_split},
      {"format(str self, any a=None, any b=None, any c=None, any d=None, any e=None, any f=None, any g=None, any h=None)",
       format},
      {"percentFormat(str self, any a=None, any b=None, any c=None, any d=None, any e=None, any f=None, any g=None, any h=None)",
       percent_format},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
