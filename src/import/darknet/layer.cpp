#include "import/darknet/layer.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace orknn::importer::darknet {
using namespace ir;

namespace {
// The number a text begins with, as atoi reads it; nothing when there is none.
std::optional<double> leading_number(std::string_view text) {
  const std::string copy(text.substr(0, 64));
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (end == copy.c_str() || !std::isfinite(value)) return std::nullopt;
  return value;
}

Status not_a_number(const std::string& key, std::string_view value) {
  return invalid_model("option '" + key + "' must be a number").found("'" + std::string(value.substr(0, 40)) + "'");
}
}  // namespace

Result<int64_t> Layer::get_int(const std::string& key, int64_t fallback, int64_t low, int64_t high) const {
  if (!has(key)) return fallback;
  const auto value = leading_number(section_.get(key));
  if (!value) return not_a_number(key, section_.get(key));
  if (!(*value >= static_cast<double>(low) && *value <= static_cast<double>(high)))
    return invalid_model("option '" + key + "' is out of range")
        .expected(std::to_string(low) + " to " + std::to_string(high))
        .found(std::string(section_.get(key).substr(0, 40)));
  return static_cast<int64_t>(*value);
}

bool Layer::get_flag(const std::string& key) const { return leading_number(section_.get(key)).value_or(0) != 0; }

Result<double> Layer::get_float(const std::string& key, double fallback) const {
  if (!has(key)) return fallback;
  const auto value = leading_number(section_.get(key));
  if (!value) return not_a_number(key, section_.get(key));
  return *value;
}

std::string Layer::get_string(const std::string& key, std::string_view fallback) const {
  return has(key) ? std::string(section_.get(key)) : std::string(fallback);
}

Result<std::vector<int64_t>> Layer::get_ints(const std::string& key) const {
  if (!has(key)) return invalid_model("option '" + key + "' is missing").expected("numbers of layers");
  std::vector<int64_t> values;
  for (std::string_view rest = section_.get(key); !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    if (item.empty()) continue;
    const auto value = leading_number(item);
    if (!value || std::abs(*value) > 1e9) return not_a_number(key, item);
    values.push_back(static_cast<int64_t>(*value));
  }
  if (values.empty()) return invalid_model("option '" + key + "' is empty").expected("numbers of layers");
  return values;
}

Result<TensorId> Layer::layer_at(int64_t reference) const {
  const auto count = static_cast<int64_t>(index());
  const int64_t target = reference < 0 ? count + reference : reference;
  if (count == 0)
    return invalid_model("layer " + std::to_string(reference) + " is not before this one: there is no layer before it");
  if (target < 0 || target >= count)
    return invalid_model("layer " + std::to_string(reference) + " is not before this one")
        .expected("-" + std::to_string(count) + " to " + std::to_string(count - 1));
  return build_.results[static_cast<size_t>(target)];
}

Result<TensorId> Layer::layer_of(const std::string& key) const {
  ORKNN_TRY_ASSIGN(const std::vector<int64_t> references, get_ints(key));
  return layer_at(references[0]);
}

Result<TensorId> Layer::as_image(TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, need_dims(x, "to work on its pixels"));
  if (dims.size() == 4) return x;
  if (dims.size() != 2) return unsupported("the layer before must give pictures").found(to_string(dims));
  return reshape(x, {dims[0], dims[1], 1, 1});
}

Result<TensorId> Layer::as_rows(TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims dims, need_dims(x, "to read it as a row"));
  if (dims.size() == 2) return x;
  const int64_t batch = dims.empty() ? 1 : dims[0];
  return reshape(x, {batch, batch == 0 ? 0 : element_count(dims) / batch});
}

Result<TensorId> Layer::take(std::string_view role, Dims dims, Filling filling, int64_t fan_in) {
  const std::string name = layer() + "/" + std::string(role);
  if (get_flag("dontload") && build_.weights.has_file()) {
    ORKNN_TRY_ASSIGN(TensorData value, build_.weights.invent(name, std::move(dims), filling, fan_in));
    return add_constant(role, std::move(value));
  }
  ORKNN_TRY_ASSIGN(TensorData value, build_.weights.take(name, std::move(dims), filling, fan_in));
  return add_constant(role, std::move(value));
}

Status Layer::finish(TensorId y, std::string_view default_activation) {
  ORKNN_TRY_ASSIGN(const TensorId activated, activate(*this, y, get_string("activation", default_activation)));
  return hand_on(activated);
}

void Layer::warn(std::string text) { build_.network.warnings.push_back("layer '" + layer() + "': " + std::move(text)); }

}  // namespace orknn::importer::darknet
