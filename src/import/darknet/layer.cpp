#include "import/darknet/layer.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace orknn::importer::darknet {
using namespace ir;

namespace {
// The number a text begins with, as atoi reads it, infinite when it is too large; nothing when there is none.
std::optional<double> leading_number(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || std::isnan(value)) return std::nullopt;
  return value;
}

Status not_a_number(const std::string& key, std::string_view value) {
  return invalid_model("option '" + key + "' must be a number").found("'" + std::string(value.substr(0, 40)) + "'");
}
Status out_of_range(const std::string& key, std::string_view value, int64_t low, int64_t high) {
  return invalid_model("option '" + key + "' is out of range")
      .expected(std::to_string(low) + " to " + std::to_string(high))
      .found(std::string(value.substr(0, 40)));
}
constexpr int64_t kMostListed = 1000000000;  // of the numbers of a list
}  // namespace

void Layer::fail(Status problem) {
  if (problem_) problem_ = std::move(problem);
}

// Nothing when the option is absent or no number, which is a problem.
std::optional<double> Layer::number_of(const std::string& key) {
  if (!has(key)) return std::nullopt;
  const auto value = leading_number(section_.get(key));
  if (!value) fail(not_a_number(key, section_.get(key)));
  return value;
}

int64_t Layer::integer(const std::string& key, int64_t fallback, int64_t low, int64_t high) {
  const auto value = number_of(key);
  if (!value) return fallback;
  const auto least = static_cast<double>(low), most = static_cast<double>(high);
  if (*value < least || *value > most) fail(out_of_range(key, section_.get(key), low, high));
  return static_cast<int64_t>(std::clamp(*value, least, most));
}

double Layer::number(const std::string& key, double fallback) {
  const auto value = number_of(key);
  if (value && std::isfinite(*value)) return *value;
  if (value) fail(invalid_model("option '" + key + "' is out of range").found(std::string(section_.get(key).substr(0, 40))));
  return fallback;
}

bool Layer::flag(const std::string& key) const { return leading_number(section_.get(key)).value_or(0) != 0; }

std::string Layer::text(const std::string& key, std::string_view fallback) const {
  return std::string(has(key) ? section_.get(key) : fallback);
}

Result<std::vector<int64_t>> Layer::integers(const std::string& key) const {
  if (!has(key)) return invalid_model("option '" + key + "' is missing").expected("numbers of layers");
  std::vector<int64_t> values;
  for (std::string_view rest = section_.get(key); !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item.empty()) continue;
    const auto value = leading_number(item);
    if (!value) return not_a_number(key, item);
    if (std::abs(*value) > kMostListed) return out_of_range(key, item, -kMostListed, kMostListed);
    values.push_back(static_cast<int64_t>(*value));
  }
  if (values.empty()) return invalid_model("option '" + key + "' is empty").expected("numbers of layers");
  return values;
}

Result<size_t> Layer::layer_number(int64_t reference) const {
  const auto count = static_cast<int64_t>(index());
  const int64_t target = reference < 0 ? count + reference : reference;
  if (count == 0)
    return invalid_model("layer " + std::to_string(reference) + " is not before this one: there is no layer before it");
  if (target < 0 || target >= count)
    return invalid_model("layer " + std::to_string(reference) + " is not before this one")
        .expected("-" + std::to_string(count) + " to " + std::to_string(count - 1));
  return static_cast<size_t>(target);
}

Result<TensorId> Layer::layer_at(int64_t reference) const {
  ORKNN_TRY_ASSIGN(const size_t number, layer_number(reference));
  return build_.results[number];
}

Result<Pictures> Layer::pictures(TensorId x) {
  ORKNN_TRY_ASSIGN(Dims dims, need_dims(x, "to work on its pixels"));
  if (dims.size() == 2) dims.insert(dims.end(), {1, 1});
  if (dims.size() != 4) return unsupported("the layer before must give pictures").found(to_string(dims));
  return Pictures{reshape(x, dims), dims};
}

Result<Pictures> Layer::rows(TensorId x) {
  ORKNN_TRY_ASSIGN(Dims dims, need_dims(x, "to read it as a row"));
  const int64_t batch = dims.empty() ? 1 : dims[0];
  if (dims.size() != 2) dims = {batch, batch == 0 ? 0 : element_count(dims) / batch};
  return Pictures{reshape(x, dims), dims};
}

Result<TensorId> Layer::take(std::string_view role, Dims dims, Fill fill, int64_t fan_in) {
  if (flag("dontload") && build_.weights.has_file()) return invent(role, std::move(dims), fill, fan_in);
  ORKNN_TRY_ASSIGN(TensorData value, build_.weights.take(layer() + "/" + std::string(role), std::move(dims), fill, fan_in));
  return add_constant(role, std::move(value));
}

Result<TensorId> Layer::invent(std::string_view role, Dims dims, Fill fill, int64_t fan_in) {
  ORKNN_TRY_ASSIGN(TensorData value, build_.weights.invent(layer() + "/" + std::string(role), std::move(dims), fill, fan_in));
  return add_constant(role, std::move(value));
}

TensorId Layer::activated(TensorId y, std::string_view default_activation) {
  return activate(*this, y, text("activation", default_activation));
}

Window square_window(int64_t size, int64_t stride_y, int64_t stride_x, int64_t padding, int64_t padding_at_end) {
  return {.kernel = {size, size},
          .strides = {stride_y, stride_x},
          .pads_begin = {padding, padding},
          .pads_end = {padding_at_end, padding_at_end}};
}

}  // namespace orknn::importer::darknet
