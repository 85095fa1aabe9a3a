#include "import/mxnet/layer.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "import/mxnet/params.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
// MXNet's own integers have 32 bits; so have ours here, which keeps sums and products of a few of them in range.
constexpr int64_t kMaxInteger = INT32_MAX;
constexpr size_t kMaxElements = 4096;

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n\r") - begin + 1);
}
}  // namespace

std::optional<double> parse_number(std::string_view text) {
  text = trim(text);
  if (text.ends_with('L') || text.ends_with('f')) {
    if (text != "inf" && text != "-inf") text.remove_suffix(1);
  }
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range && end == text.data() + text.size())
    return text.find("e-") != text.npos ? 0.0 : HUGE_VAL;
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || *value != std::floor(*value) || std::fabs(*value) > 9e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

std::optional<std::vector<std::string>> split_tuple(std::string_view text) {
  text = trim(text);
  if (text.starts_with("np.") || text.empty()) return std::nullopt;
  const char open = text.front();
  if (open == '(' || open == '[') {
    if (text.size() < 2 || text.back() != (open == '(' ? ')' : ']')) return std::nullopt;
    text = trim(text.substr(1, text.size() - 2));
  }
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    parts.emplace_back(trim(text.substr(0, comma)));
    if (parts.size() > kMaxElements) return std::nullopt;
    if (comma == std::string_view::npos) break;
    text = trim(text.substr(comma + 1));
  }
  return parts;
}

// --- inputs

Result<TensorId> Layer::operand(size_t i) const {
  if (i < inputs_.size() && inputs_[i]) return inputs_[i];
  if (i < node_.inputs.size())
    return invalid_model("variable '" + symbol_.nodes[node_.inputs[i].node].name + "' has no value")
        .hint("is the params file of this symbol complete?");
  return missing_input(i, inputs_.size());
}

Result<TensorId> Layer::parameter(size_t i, std::string_view role, const std::optional<Dims>& dims, Fill fill, DType dtype,
                                  int64_t fan_in) {
  TensorId id = input(i);
  if (!id) {
    const bool is_listed = i < node_.inputs.size();
    if (is_listed && !symbol_.nodes[node_.inputs[i].node].is_variable()) return operand(i);
    const std::string name = is_listed ? symbol_.nodes[node_.inputs[i].node].name : node_.name + "_" + std::string(role);
    ORKNN_TRY_ASSIGN(id, model_.parameter(name, dims, fill, fan_in));
  }
  return cast(id, dtype);
}

Result<TensorId> Layer::vector(size_t i, std::string_view role, int64_t length, Fill fill, DType dtype, int64_t fan_in) {
  return parameter(i, role, length > 0 ? std::optional(Dims{length}) : std::nullopt, fill, dtype, fan_in);
}

// --- attributes

namespace {
constexpr std::string_view kOutOfRange = "is out of range";
bool is_in_range(int64_t value) { return value <= kMaxInteger && value >= -kMaxInteger; }

// Numbers too large for us become ones that are out of range.
std::optional<int64_t> saturated(const std::string& text) {
  if (const auto value = parse_integer(text)) return value;
  const auto number = parse_number(text);
  if (!number || std::isnan(*number) || *number != std::floor(*number)) return std::nullopt;
  return *number < 0 ? -kMaxInteger - 1 : kMaxInteger + 1;
}
}  // namespace

template <class T>
T Layer::complain(std::string_view key, std::string_view expected, T fallback, std::string_view what) {
  if (problem_.is_ok()) {
    const std::string* found = node_.find(key);
    problem_ = invalid_model("attribute '" + std::string(key) + "' " + std::string(what))
                   .expected(std::string(expected))
                   .found(found ? "'" + found->substr(0, 80) + "'" : "nothing");
  }
  return fallback;
}

bool Layer::has(std::string_view key) const {
  const std::string* value = node_.find(key);
  return value && trim(*value) != "None";
}

std::string Layer::text(std::string_view key, std::string_view fallback) {
  return has(key) ? std::string(trim(*node_.find(key))) : std::string(fallback);
}

int64_t Layer::integer(std::string_view key, int64_t fallback) {
  if (!has(key)) return fallback;
  const auto value = saturated(*node_.find(key));
  if (!value) return complain(key, "an integer", fallback);
  return is_in_range(*value) ? *value : complain(key, "an integer of 32 bits", fallback, kOutOfRange);
}

double Layer::number(std::string_view key, double fallback) {
  if (!has(key)) return fallback;
  const auto value = parse_number(*node_.find(key));
  return value ? *value : complain(key, "a number", fallback);
}

bool Layer::flag(std::string_view key, bool fallback) {
  if (!has(key)) return fallback;
  const std::string value = text(key, "");
  if (value == "True" || value == "true" || value == "1") return true;
  if (value == "False" || value == "false" || value == "0") return false;
  return complain(key, "True or False", fallback);
}

template <class T, class Parse>
std::vector<T> Layer::list(std::string_view key, std::string_view expected, std::vector<T> fallback, const Parse& parse) {
  if (!has(key)) return fallback;
  const auto parts = split_tuple(*node_.find(key));
  if (!parts) return complain(key, expected, fallback);
  std::vector<T> values;
  for (const std::string& part : *parts) {
    const std::optional<T> value = parse(part);
    if (!value) return complain(key, expected, fallback);
    values.push_back(*value);
  }
  return values;
}

std::vector<std::optional<int64_t>> Layer::bounds(std::string_view key) {
  using Bound = std::optional<int64_t>;
  return list<Bound>(key, "a tuple of integers", {}, [](const std::string& part) -> std::optional<Bound> {
    if (part == "None") return Bound();
    const auto value = saturated(part);
    if (!value) return std::nullopt;
    return Bound(std::clamp(*value, -kMaxInteger, kMaxInteger));  // ends such as 2^63 - 1 mean "to the end"
  });
}

std::vector<int64_t> Layer::integers(std::string_view key, std::vector<int64_t> fallback) {
  const std::vector<int64_t> values = list(key, "a tuple of integers", fallback, saturated);
  return std::ranges::all_of(values, is_in_range) ? values
                                                  : complain(key, "integers of 32 bits", std::move(fallback), kOutOfRange);
}

std::vector<double> Layer::numbers(std::string_view key, std::vector<double> fallback) {
  return list(key, "a tuple of numbers", std::move(fallback), [](const std::string& part) { return parse_number(part); });
}

DType Layer::dtype(std::string_view key, DType fallback) {
  if (!has(key)) return fallback;
  const std::string name = text(key, "");
  if (name == "bfloat") return DType::BFloat16;
  if (const DType known = dtype_from_name(name); known != DType::Undefined) return known;
  if (const auto number = parse_integer(name))
    if (const DType known = dtype_of_number(*number); known != DType::Undefined) return known;
  return complain(key, "an element type", fallback);
}

std::vector<int64_t> Layer::window(std::string_view key, size_t rank, int64_t fallback, int64_t least) {
  std::vector<int64_t> values = integers(key);
  if (values.empty()) return std::vector<int64_t>(rank, fallback);
  if (values.size() == 1 && rank > 1) values.assign(rank, values[0]);
  bool is_legal = values.size() == rank;
  for (int64_t v : values) is_legal &= v >= least;
  if (!is_legal)
    return complain(key, std::to_string(rank) + " numbers of at least " + std::to_string(least),
                    std::vector<int64_t>(rank, std::max(fallback, least)));
  return values;
}

Result<int64_t> Layer::axis(std::string_view key, int64_t fallback, int64_t rank) {
  return normalize_axis(integer(key, fallback), rank);
}

// --- frequent pieces

int64_t Layer::extent_of(TensorId x, int64_t axis) const {
  const Shape* s = shape_of(x);
  const int64_t at = s && axis < 0 ? axis + std::ssize(*s) : axis;
  if (!s || at < 0 || at >= std::ssize(*s) || !(*s)[static_cast<size_t>(at)].is_known()) return 0;
  return (*s)[static_cast<size_t>(at)].value();
}

bool Layer::is_channels_last() {
  const std::string layout = text("layout", "");
  return layout == "NHWC" || layout == "NWC" || layout == "NDHWC";
}

TensorId Layer::floats(std::string_view role, Dims dims, std::span<const float> values) {
  return add_constant(role, TensorData::from<float>(std::move(dims), values));
}

}  // namespace orknn::importer::mxnet
