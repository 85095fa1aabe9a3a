// Lists, tuples, dictionaries and strings.
#include <algorithm>
#include <cctype>

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
// Nothing a network keeps in a list or a text comes near.
constexpr size_t kMaxItems = size_t{1} << 20;
constexpr size_t kMaxTextSize = size_t{1} << 20;

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
// A list or tuple, as the argument is one.
Result<Value> like(Call& c, std::string_view name, std::vector<Value> items) {
  return c.value(name).kind() == Kind::Tuple ? c.made(std::move(items)) : c.list(std::move(items));
}
// Puts items into the list `self` at a place.
Status grow(Call& c, size_t at, std::vector<Value> more) {
  auto& items = c.items();
  if (items.size() + more.size() > kMaxItems) return too_long();
  c.heap().charge(more.size());
  items.insert(items.begin() + static_cast<ptrdiff_t>(at), more.begin(), more.end());
  return {};
}
auto find_item(Call& c) {
  return std::ranges::find_if(c.items(), [&](const Value& v) { return same_value(v, c.value("value")); });
}

int64_t length(Call& c) { return static_cast<int64_t>(c.items().size()); }
Result<Value> get(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), c.items().size()));
  return c.items()[at];
}
Result<Value> set(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), c.items().size()));
  c.items()[at] = c.value("value");
  return c.value("self");
}
Result<Value> append(Call& c) {
  ORKNN_TRY(grow(c, c.items().size(), {c.value("value")}));
  return c.value("self");
}
Result<Value> extend(Call& c) {
  ORKNN_TRY(grow(c, c.items().size(), c.items("other")));
  return c.value("self");
}
Status insert(Call& c) {
  const int64_t n = length(c), at = c.integer("index");
  return grow(c, static_cast<size_t>(std::clamp<int64_t>(at < 0 ? std::max<int64_t>(at + n, 0) : at, 0, n)), {c.value("value")});
}
Result<Value> pop(Call& c) {
  auto& items = c.items();
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), items.size()));
  const Value v = items[at];
  items.erase(items.begin() + static_cast<ptrdiff_t>(at));
  return v;
}
Status list_delete(Call& c) { return pop(c).status(); }
Status remove_item(Call& c) {
  const auto it = find_item(c);
  if (it == c.items().end()) return invalid_model("the list does not hold the value to remove");
  c.items().erase(it);
  return {};
}
void clear(Call& c) { c.items().clear(); }
void reverse_list(Call& c) { std::ranges::reverse(c.items()); }
void sort_numbers(std::vector<Value>& items, bool descending) {
  std::ranges::stable_sort(
      items, [&](const Value& a, const Value& b) { return descending ? b.number() < a.number() : a.number() < b.number(); });
}
void sort_list(Call& c) { sort_numbers(c.items(), c.flag("reverse")); }
Result<Value> sorted_list(Call& c) {
  std::vector<Value> items = c.items();
  sort_numbers(items, false);
  return c.list(std::move(items));
}
Result<Value> list_copy(Call& c) { return c.list(c.items()); }
Result<Value> list_slice(Call& c) {
  ORKNN_TRY_ASSIGN(const auto indices, sliced(c, c.items().size()));
  std::vector<Value> items;
  for (size_t i : indices) items.push_back(c.items()[i]);
  return like(c, "self", std::move(items));
}
Result<Value> concatenate(Call& c) {
  std::vector<Value> items = c.items("a");
  const auto& more = c.items("b");
  if (items.size() + more.size() > kMaxItems) return too_long();
  items.insert(items.end(), more.begin(), more.end());
  return like(c, "a", std::move(items));
}
Result<Value> repeat_list(Call& c) {
  const auto& part = c.items();
  const int64_t times = std::max<int64_t>(c.integer("n"), 0);
  if (!part.empty() && static_cast<uint64_t>(times) > kMaxItems / part.size()) return too_long();
  std::vector<Value> items;
  for (int64_t i = 0; i < times && !part.empty(); ++i) items.insert(items.end(), part.begin(), part.end());
  return c.list(std::move(items));
}
template <bool Negated>
bool equal_lists(Call& c) {
  return Negated != std::ranges::equal(c.items("a"), c.items("b"), same_value);
}
bool contains(Call& c) { return find_item(c) != c.items().end(); }
Result<int64_t> index_of(Call& c) {
  const auto it = find_item(c);
  if (it == c.items().end()) return invalid_model("the list does not hold the value looked for");
  return static_cast<int64_t>(it - c.items().begin());
}
int64_t count_of(Call& c) {
  return std::ranges::count_if(c.items(), [&](const Value& v) { return same_value(v, c.value("value")); });
}
bool is_not_empty(Call& c) { return !c.items().empty(); }

// --- dictionaries
DictValue& dict(Call& c) { return c.value("self").dict(); }
const Value* found(Call& c) { return dict(c).find(c.value("key")); }
Status no_key(Call& c) { return invalid_model("a dictionary has no key " + to_text(c.value("key"))); }

int64_t dict_length(Call& c) { return static_cast<int64_t>(dict(c).items.size()); }
Result<Value> dict_get(Call& c) {
  const Value* v = found(c);
  return v ? Result<Value>(*v) : no_key(c);
}
Value dict_get_or(Call& c) {
  const Value* v = found(c);
  return v ? *v : c.value("fallback");
}
Status dict_set(Call& c) {
  c.heap().charge(1);
  if (!dict(c).set(c.value("key"), c.value("value"))) return invalid_model("a " + describe(c.value("key")) + " cannot be a key");
  return {};
}
Result<Value> dict_set_default(Call& c) {
  if (const Value* v = found(c)) return *v;
  ORKNN_TRY(dict_set(c));
  return c.value("value");
}
bool dict_contains(Call& c) { return found(c) != nullptr; }
Result<Value> dict_keys(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict(c).items) items.push_back(key);
  return c.list(std::move(items));
}
Result<Value> dict_values(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict(c).items) items.push_back(value);
  return c.list(std::move(items));
}
Result<Value> dict_items(Call& c) {
  std::vector<Value> items;
  for (const auto& [key, value] : dict(c).items) items.push_back(Value::tuple(c.heap().list({key, value})));
  return c.list(std::move(items));
}
Result<Value> dict_pop(Call& c) {
  const Value* v = found(c);
  if (!v) return c.has("fallback") ? Result<Value>(c.value("fallback")) : no_key(c);
  const Value popped = *v;
  dict(c).erase(c.value("key"));
  return popped;
}
Status dict_delete(Call& c) { return dict(c).erase(c.value("key")) ? Status() : no_key(c); }
Value dict_copy(Call& c) {
  DictValue* copy = c.heap().dict();
  c.heap().charge(dict(c).items.size());
  *copy = dict(c);
  return copy;
}
void dict_update(Call& c) {
  const auto more = c.value("other").dict().items;
  c.heap().charge(more.size());
  for (const auto& [key, value] : more) dict(c).set(key, value);
}
Result<Value> dict_of_pairs(Call& c) {
  DictValue* made = c.heap().dict();
  c.heap().charge(c.items().size());
  for (const Value& pair : c.items())
    if (!pair.is_sequence() || pair.sequence().items.size() != 2 ||
        !made->set(pair.sequence().items[0], pair.sequence().items[1]))
      return invalid_model("a dictionary is made of pairs");
  return Value(made);
}
Value empty_dict(Call& c) { return c.heap().dict(); }

// --- strings
int64_t text_length(Call& c) { return static_cast<int64_t>(c.text("self").size()); }
Result<std::string> text_get(Call& c) {
  ORKNN_TRY_ASSIGN(const size_t at, position(c.integer("index"), c.text("self").size()));
  return std::string(1, c.text("self")[at]);
}
Result<std::string> text_slice(Call& c) {
  ORKNN_TRY_ASSIGN(const auto indices, sliced(c, c.text("self").size()));
  std::string text;
  for (size_t i : indices) text += c.text("self")[i];
  return text;
}
Result<std::string> text_concatenate(Call& c) {
  if (c.text("a").size() + c.text("b").size() > kMaxTextSize) return too_long();
  return std::string(c.text("a")) + std::string(c.text("b"));
}
bool text_contains(Call& c) { return c.text("self").find(c.text("part")) != std::string_view::npos; }
bool text_starts_with(Call& c) { return c.text("self").starts_with(c.text("part")); }
bool text_ends_with(Call& c) { return c.text("self").ends_with(c.text("part")); }
// Letters from `first` on move by `distance`.
template <char First, int Distance>
std::string text_in_case(Call& c) {
  std::string text(c.text("self"));
  for (char& ch : text)
    if (ch >= First && ch < First + 26) ch = static_cast<char>(ch + Distance);
  return text;
}
Result<std::string> text_join(Call& c) {
  std::string text;
  for (const Value& v : c.items("parts")) {
    if (!text.empty()) text += c.text("self");
    text += v.text();
    if (text.size() > kMaxTextSize) return too_long();
  }
  return text;
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

constexpr const char* kFormatted[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
// "{}" of the text, one after the other; only messages are made of it.
Result<std::string> format(Call& c) {
  std::string text;
  std::string_view rest = c.text("self");
  for (const char* name : kFormatted) {
    const size_t open = rest.find('{'), close = rest.find('}', open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    text += std::string(rest.substr(0, open)) + to_text(c.value(name));
    rest.remove_prefix(close + 1);
    if (text.size() > kMaxTextSize) return too_long();
  }
  return text + std::string(rest);
}
// "%d of %s": each conversion takes the next value, whatever its letter.
Result<std::string> percent_format(Call& c) {
  std::string text;
  const std::string_view pattern = c.text("self");
  size_t next = 0;
  for (size_t i = 0; i < pattern.size() && text.size() <= kMaxTextSize; ++i) {
    if (pattern[i] != '%') {
      text += pattern[i];
    } else if (i + 1 < pattern.size() && pattern[i + 1] == '%') {
      text += pattern[++i];
    } else {
      while (i + 1 < pattern.size() && !std::isalpha(static_cast<unsigned char>(pattern[i]))) ++i;
      if (next < std::size(kFormatted)) text += to_text(c.value(kFormatted[next++]));
    }
  }
  return text.size() > kMaxTextSize ? Result<std::string>(too_long()) : text;
}

#define ORKNN_FORMATTED \
  "(str self, any a=None, any b=None, any c=None, any d=None, any e=None, any f=None, any g=None, any h=None)"
}  // namespace

std::span<const Row> container_rows() {
  static const Row rows[] = {
      {"len(list self)", length},
      {"__getitem__(list self, int index)", get},
      {"_set_item(list self, int index, any value)", set},
      {"append(list self, any value)", append},
      {"extend|add_(list self, list other)", extend},
      {"insert(list self, int index, any value)", insert},
      {"pop(list self, int index=-1)", pop},
      {"remove(list self, any value)", remove_item},
      {"Delete(list self, int index)", list_delete},
      {"clear(list self)", clear},
      {"reverse(list self)", reverse_list},
      {"sort(Scalar[] self, bool reverse=False)", sort_list},
      {"sorted(Scalar[] self)", sorted_list},
      {"list|copy(list self)", list_copy},
      {"slice(list self, int? start=None, int? end=None, int step=1)", list_slice},
      {"add(list a, list b)", concatenate},
      {"mul(list self, int n)", repeat_list},
      {"mul(int n, list self)", repeat_list},
      {"eq(list a, list b)", equal_lists<false>},
      {"ne(list a, list b)", equal_lists<true>},
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
      {"copy|dict(dict self)", dict_copy},
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
      {"lower(str self)", text_in_case<'A', 'a' - 'A'>},
      {"upper(str self)", text_in_case<'a', 'A' - 'a'>},
      {"join(str self, str[] parts)", text_join},
      {"split(str self, str? separator=None, int most=-1)", text_split},
      {"format" ORKNN_FORMATTED, format},
      {"percentFormat" ORKNN_FORMATTED, percent_format},
  };
  return rows;
}
#undef ORKNN_FORMATTED

}  // namespace orknn::importer::pytorch
