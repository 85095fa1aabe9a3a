#include "import/pytorch/session.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <numeric>

#include "import/wire/stored.h"
#include "ir/infer.h"

namespace orknn::importer::pytorch {
namespace {
using namespace ir;

// No tensor of a network has more elements; beyond that the shapes are taken for damage.
constexpr int64_t kMaxElements = int64_t{1} << 34;
// A stored tensor whose strides repeat or skip elements is spelled out up to this many elements beyond what the file backs.
constexpr int64_t kMaxRepeated = int64_t{1} << 24;

Status outside(const TensorValue& t, const char* what) {
  return invalid_model(std::string("a tensor in the archive ") + what)
      .node(t.storage->name, "storage")
      .expected("within " + std::to_string(t.storage->count) + " elements")
      .found("shape " + to_string(t.dims) + ", strides " + to_string(t.strides) + ", offset " + std::to_string(t.storage_offset));
}

Status check_extent(const TensorValue& t) {
  for (int64_t d : t.dims)
    if (d < 0) return outside(t, "has a negative extent");
  if (!checked_element_count(t.dims, kMaxElements)) return outside(t, "is too large");
  if (t.storage_offset < 0 || t.storage_offset > t.storage->count) return outside(t, "is outside its storage");
  if (element_count(t.dims) == 0) return {};
  int64_t last = t.storage_offset;
  for (size_t i = 0; i < t.dims.size(); ++i) {
    int64_t reach = 0;
    if (t.strides[i] < 0 || __builtin_mul_overflow(t.dims[i] - 1, t.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return outside(t, "has impossible strides");
  }
  return last < t.storage->count ? Status() : outside(t, "is outside its storage");
}

// Elements that lie one after the other.
TensorData in_one_piece(const TensorValue& t, DType dtype, Dims dims) {
  const size_t size = dtype_bytes(dtype);
  const auto bytes =
      t.storage->bytes.subspan(static_cast<size_t>(t.storage_offset) * size, static_cast<size_t>(element_count(dims)) * size);
  return wire::stored_tensor(dtype, std::move(dims), bytes, t.storage->keeper);
}

// Element by element along the strides.
TensorData gather_copy(const TensorValue& t, DType dtype) {
  TensorData copy = TensorData::allocate(dtype, t.dims);
  const size_t bytes = dtype_bytes(dtype);
  auto* out = static_cast<std::byte*>(copy.mutable_data());
  Dims index(t.dims.size(), 0);
  int64_t at = t.storage_offset;
  for (int64_t n = element_count(t.dims); n > 0; --n, out += bytes) {
    std::memcpy(out, t.storage->bytes.data() + static_cast<size_t>(at) * bytes, bytes);
    if (dtype == DType::Bool) *out = *out == std::byte{0} ? std::byte{0} : std::byte{1};
    for (size_t i = index.size(); i-- > 0;) {
      at += t.strides[i];
      if (++index[i] < t.dims[i]) break;
      at -= t.strides[i] * t.dims[i];
      index[i] = 0;
    }
  }
  return copy;
}

// The order of axes in which the tensor is dense in memory, if there is one (channels_last weights).
std::optional<std::vector<int64_t>> dense_order(const TensorValue& t) {
  const auto at = [](const Dims& d, int64_t i) { return d[static_cast<size_t>(i)]; };
  std::vector<int64_t> order(t.dims.size()), wide;
  std::iota(order.begin(), order.end(), int64_t{0});
  // Unit axes may have any stride: they keep their place, the others are sorted among themselves.
  std::copy_if(order.begin(), order.end(), std::back_inserter(wide), [&](int64_t i) { return at(t.dims, i) != 1; });
  std::stable_sort(wide.begin(), wide.end(), [&](int64_t a, int64_t b) { return at(t.strides, a) > at(t.strides, b); });
  auto next = wide.begin();
  for (int64_t& i : order)
    if (at(t.dims, i) != 1) i = *next++;
  int64_t expected = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (at(t.dims, order[i]) != 1 && at(t.strides, order[i]) != expected) return std::nullopt;
    expected *= at(t.dims, order[i]);
  }
  return order;
}
}  // namespace

QuantizationConstants add_quantization(Emitter& e, const Quantization& q) {
  const std::vector<float> scales(q.scales.begin(), q.scales.end());
  const Dims dims = q.axis < 0 ? Dims{} : Dims{static_cast<int64_t>(scales.size())};
  QuantizationConstants c;
  c.scale = e.add_constant("scale", TensorData::from<float>(dims, scales));
  c.zero_point = e.add_constant("zero_point", convert(TensorData::from<int64_t>(dims, q.zero_points).view(), q.dtype));
  if (q.axis >= 0) c.attributes.set("axis", q.axis);
  return c;
}

Result<TensorValue*> Session::tensor(TensorId id) {
  const Tensor& made = graph.tensor(id);
  const auto dims = made.shape ? to_dims(*made.shape) : std::nullopt;
  if (!dims || made.dtype == DType::Undefined) {
    if (const Node* node = graph.producer_node(id)) {
      std::vector<TensorFacts> facts;
      for (TensorId input : node->inputs) {
        facts.emplace_back();
        if (!input) continue;
        facts.back().dtype = graph.tensor(input).dtype;
        facts.back().shape = graph.tensor(input).shape;
        facts.back().constant = graph.constant(input);
      }
      const auto inferred = infer_node(*node, ops, std::move(facts));
      if (!inferred) return inferred.status();
    }
    return unsupported("the shape of the result depends on values that are only known when the network runs");
  }
  if (!checked_element_count(*dims, kMaxElements)) return invalid_model("a tensor is too large").found(to_string(*dims));
  TensorValue* t = heap.tensor();
  t->id = id;
  t->dims = *dims;
  t->strides = strides_of(t->dims);
  return t;
}

Status Session::materialize(Emitter& emitter, TensorValue& t) {
  if (t.is_complex) {  // pairs of floats
    Storage* parts = heap.storage();
    *parts = *t.storage;
    parts->dtype = DType::Float32;
    TensorValue pairs;
    pairs.name = t.name;
    pairs.storage = parts;
    pairs.dims = t.dims;
    pairs.dims.push_back(2);
    if (__builtin_mul_overflow(parts->count, 2, &parts->count) ||
        __builtin_mul_overflow(t.storage_offset, 2, &pairs.storage_offset))
      return outside(t, "is too large");
    for (int64_t stride : t.strides)
      if (__builtin_mul_overflow(stride, 2, &pairs.strides.emplace_back())) return outside(t, "has impossible strides");
    pairs.strides.push_back(1);
    ORKNN_TRY(materialize(emitter, pairs));
    t.id = pairs.id;
    return {};
  }
  const Storage& s = *t.storage;
  if (s.dtype == DType::Undefined)
    return unsupported("tensors of type " + s.type_name + " are not supported").node(s.name, "storage");
  ORKNN_TRY(check_extent(t));
  const auto key = std::tuple(t.storage, t.storage_offset, t.dims, t.strides);
  TensorId& known = stored_[key];
  if (!known) {
    const std::string name = t.name.empty() ? emitter.layer() + "/" + s.name : t.name;
    const auto order = dense_order(t);
    if (element_count(t.dims) == 0) {
      known = graph.add_constant(name, TensorData::zeros(s.dtype, t.dims));
    } else if (!order) {
      if (element_count(t.dims) > kMaxRepeated && element_count(t.dims) > s.count)
        return outside(t, "repeats its elements too often");
      known = graph.add_constant(name, gather_copy(t, s.dtype));
    } else {
      Dims dense;
      std::vector<int64_t> back(order->size());
      for (size_t i = 0; i < order->size(); ++i) {
        dense.push_back(t.dims[static_cast<size_t>((*order)[i])]);
        back[static_cast<size_t>((*order)[i])] = static_cast<int64_t>(i);
      }
      known = emitter.transpose(graph.add_constant(name, in_one_piece(t, s.dtype, dense)), back);
    }
  }
  t.id = known;
  if (!t.quantization) return {};
  // A quantized tensor is its real value.
  const Quantization& q = *t.quantization;
  for (int64_t z : q.zero_points)
    if (z < dtype_min(q.dtype) || (z > 0 && static_cast<uint64_t>(z) > dtype_max(q.dtype)))
      return outside(t, "has a zero point outside of its type");
  const QuantizationConstants constants = add_quantization(emitter, q);
  t.id = emitter.emit_kept("DequantizeLinear", {t.id, constants.scale, constants.zero_point}, constants.attributes);
  return {};
}

Status Session::refresh(Emitter& emitter, TensorValue& tensor) {
  // Views of views form a chain; it is walked from its root so that no length of it costs stack.
  std::vector<TensorValue*> chain;
  for (TensorValue* t = &tensor; t; t = t->parent) chain.push_back(t);
  for (auto it = chain.rbegin(); it != chain.rend(); ++it) {
    TensorValue& t = **it;
    if (!t.id && t.storage) ORKNN_TRY(materialize(emitter, t));
    if (t.parent && t.parent_version != t.parent->version) {
      t.id = t.apply(emitter, t.parent->id);
      t.parent_version = t.parent->version;
      ++t.version;
    }
  }
  heap.charge(chain.size());
  return heap.is_exhausted() ? invalid_model("the model's code works on too many values") : Status();
}

Status Session::assign(Emitter& emitter, TensorValue& tensor, TensorId value) {
  TensorValue* t = &tensor;
  while (true) {
    t->id = value;
    ++t->version;
    if (!t->parent) {
      if (t->storage && !t->name.empty()) note_changed_state(t->name);
      return {};
    }
    if (!t->write) return unsupported("writing into this kind of view is not supported");
    value = t->write(emitter, t->parent->id, value);
    t->parent_version = t->parent->version + 1;  // its write comes next
    t = t->parent;
  }
}

void Session::warn(std::string text) {
  if (std::find(warnings.begin(), warnings.end(), text) == warnings.end()) warnings.push_back(std::move(text));
}

void Session::note_changed_state(const std::string& name) {
  if (initializing == 0) changed_state_.insert(name);
}

std::optional<std::string> Session::warning_of_state() const {
  if (changed_state_.empty()) return std::nullopt;
  constexpr size_t kMaxNamed = 5;
  std::string names;
  size_t count = 0;
  for (const std::string& name : changed_state_)
    if (++count <= kMaxNamed) names += (names.empty() ? "'" : ", '") + name + "'";
  if (count > kMaxNamed) names += " and " + std::to_string(count - kMaxNamed) + " more";
  return "the model changes its own state when it runs (" + names + "): every inference starts from the stored state";
}

const TensorData* Session::constant(Emitter& emitter, TensorValue& t) {
  if (!refresh(emitter, t)) return nullptr;
  return graph.constant(t.id);
}

std::optional<Value> Session::constant_number(Emitter& emitter, TensorValue& t) {
  const TensorData* data = constant(emitter, t);
  if (!data || data->count() != 1) return std::nullopt;
  if (is_float(data->dtype())) return Value(to_doubles(data->view())[0]);
  const int64_t value = to_ints(data->view())[0];
  return data->dtype() == DType::Bool ? Value(value != 0) : Value(value);
}

}  // namespace orknn::importer::pytorch
