#include "import/paddle/layer.h"

#include <cmath>
#include <limits>

namespace orknn::importer::paddle {
using namespace ir;

namespace {
constexpr int64_t kMaxStated = INT32_MAX;  // larger ends of cuts mean the end of the axis; sums of a few stay in range

int64_t in_range(int64_t value) { return std::clamp(value, -kMaxStated, kMaxStated); }

double number_of_text(const std::string& text) {
  if (text == "inf" || text == "INF" || text == "Infinity") return HUGE_VAL;
  if (text == "-inf" || text == "-INF" || text == "-Infinity") return -HUGE_VAL;
  return std::numeric_limits<double>::quiet_NaN();
}
}  // namespace

std::string replaced_numbers(const Operator& op) {
  std::string text;
  for (const auto& [name, attribute] : op.attributes)
    for (const int64_t v : attribute.integers)
      if (v != in_range(v))
        text += (text.empty() ? "" : ", ") + std::to_string(v) + " of '" + name + "' counts as " + std::to_string(in_range(v));
  return text;
}

size_t Layer::operand_count() const {
  size_t count = op_.inputs.size();
  while (count > 0 && op_.inputs[count - 1].is_absent()) --count;
  return count;
}

Result<TensorId> Layer::operand(size_t i) {
  if (!has(i)) return missing_input(i, operand_count());
  const Operand& operand = op_.inputs[i];
  if (operand.values.size() == 1) return network_.need(operand.values[0]);
  if (operand.values.size() > 1)
    return invalid_model("input " + std::to_string(i) + " is a list")
        .expected("one tensor")
        .found(std::to_string(operand.values.size()));
  const Attribute& stated = *operand.stated;
  if (stated.integers.size() == stated.numbers.size()) return add_ints("stated", stated.integers);
  const std::vector<float> values(stated.numbers.begin(), stated.numbers.end());
  return add_constant("stated", TensorData::from<float>({std::ssize(values)}, values));
}

TensorId Layer::input(size_t i) {
  const auto found = has(i) ? operand(i) : Result<TensorId>(TensorId{});
  return found ? *found : TensorId{};
}

Result<std::vector<TensorId>> Layer::list(size_t i) {
  std::vector<TensorId> all;
  if (!has(i)) return all;
  for (const std::string& name : op_.inputs[i].values) {
    ORKNN_TRY_ASSIGN(const TensorId x, network_.need(name));
    all.push_back(x);
  }
  return all;
}

Result<TensorId> Layer::vector(size_t i) {
  if (!has(i)) return TensorId{};
  if (op_.inputs[i].values.size() <= 1) {
    ORKNN_TRY_ASSIGN(const TensorId x, operand(i));
    return reshape(cast(x, DType::Int64), {-1});
  }
  ORKNN_TRY_ASSIGN(std::vector<TensorId> parts, list(i));
  for (TensorId& part : parts) part = reshape(cast(part, DType::Int64), {-1});
  return concat(std::move(parts), 0);
}

Result<std::vector<int64_t>> Layer::ints(size_t i, std::string_view key, std::string_view reason) {
  if (!has(i)) return integers(key);
  ORKNN_TRY_ASSIGN(const TensorId x, vector(i));
  ORKNN_TRY_ASSIGN(std::vector<int64_t> values, need_ints(x, reason));
  for (int64_t& v : values) v = in_range(v);
  return values;
}

Result<int64_t> Layer::integer(size_t i, std::string_view key, int64_t fallback, std::string_view reason) {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> values, ints(i, key, reason));
  if (values.size() > 1) return invalid_model("'" + std::string(key) + "' must be one number").found(to_string(values));
  return values.empty() ? fallback : values[0];
}

Result<double> Layer::number(size_t i, std::string_view key, double fallback, std::string_view reason) {
  if (!has(i)) return number(key, fallback);
  ORKNN_TRY_ASSIGN(const TensorId x, operand(i));
  return need_number(x, reason);
}

const Attribute* Layer::find(std::string_view key) const {
  const auto it = op_.attributes.find(key);
  return it == op_.attributes.end() ? nullptr : &it->second;
}
int64_t Layer::integer(std::string_view key, int64_t fallback) const {
  const Attribute* a = find(key);
  return a && a->integers.size() == 1 ? in_range(a->integers[0]) : fallback;
}
double Layer::number(std::string_view key, double fallback) const {
  const Attribute* a = find(key);
  if (a && a->numbers.size() == 1) return a->numbers[0];
  return a && a->texts.size() == 1 ? number_of_text(a->texts[0]) : fallback;
}
std::string Layer::text(std::string_view key, std::string_view fallback) const {
  const Attribute* a = find(key);
  return a && a->texts.size() == 1 ? a->texts[0] : std::string(fallback);
}
std::vector<int64_t> Layer::integers(std::string_view key) const {
  std::vector<int64_t> values;
  if (const Attribute* a = find(key))
    for (int64_t v : a->integers) values.push_back(in_range(v));
  return values;
}
std::vector<double> Layer::numbers(std::string_view key) const {
  const Attribute* a = find(key);
  return a ? a->numbers : std::vector<double>();
}
DType Layer::dtype(std::string_view key, DType fallback) const {
  const Attribute* a = find(key);
  DType found = DType::Undefined;
  if (a && a->integers.size() == 1) found = dtype_of_number(a->integers[0]);
  if (a && a->texts.size() == 1) found = dtype_from_name(a->texts[0]);
  return found == DType::Undefined ? fallback : found;
}

Result<int64_t> Layer::axis(int64_t stated, TensorId x) const {
  ORKNN_TRY_ASSIGN(const int64_t rank, need_rank(x, "to find the axis"));
  return normalize_axis(stated, rank);
}

PictureFormat Layer::format(size_t spatial) const {
  const std::string layout = text("data_format", "NCHW");
  return {.channels_last = layout.size() > 1 && layout.back() == 'C', .spatial = spatial};
}

}  // namespace orknn::importer::paddle
