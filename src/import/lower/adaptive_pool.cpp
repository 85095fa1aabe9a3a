#include "import/lower/adaptive_pool.h"

#include <algorithm>

namespace orknn::importer {
using namespace ir;

namespace {
// Elements of windows whose places are spelled out one by one, and of matrices of averages.
constexpr int64_t kMaxIndexedElements = 1 << 22;
constexpr int64_t kMaxMatrix = 1 << 26;

int64_t window_begin(int64_t i, int64_t in, int64_t out) { return i * in / out; }
int64_t window_end(int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; }

Result<Dims> pooled_dims(Emitter& e, TensorId x, std::span<const int64_t> size) {
  ORKNN_TRY_ASSIGN(Dims dims, e.need_dims(x, "to place the windows"));
  if (dims.size() != size.size() + 2)
    return shape_mismatch("the data of an adaptive pool has the wrong rank")
        .expected(std::to_string(size.size() + 2))
        .found(to_string(dims));
  for (size_t i = 0; i < size.size(); ++i)
    if (size[i] < 1 || size[i] > (1 << 20) || dims[2 + i] < 1)
      return invalid_model("an adaptive pool has an empty input or output").found(to_string(dims));
  return dims;
}

// Windows of one size, when the extents divide.
std::optional<Attributes> even_windows(const Dims& dims, std::span<const int64_t> size) {
  std::vector<int64_t> kernel;
  for (size_t i = 0; i < size.size(); ++i) {
    if (dims[2 + i] % size[i] != 0) return std::nullopt;
    kernel.push_back(dims[2 + i] / size[i]);
  }
  return Attributes{{"kernel_shape", kernel}, {"strides", kernel}};
}

Status too_large() { return unsupported("the adaptive pool is too large"); }

// Positions within the plane of the greatest of each uneven window: all elements of a window side by side, those missing to the
// largest repeat one.
TensorId uneven_positions(Emitter& e, TensorId x, const Dims& dims, std::span<const int64_t> size) {
  if (!checked_element_count(size, kMaxIndexedElements)) return {};
  std::vector<std::vector<int64_t>> windows{{0}};
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t in = dims[2 + i], out = size[i];
    std::vector<std::vector<int64_t>> finer;
    for (const auto& window : windows)
      for (int64_t o = 0; o < out; ++o) {
        auto& next = finer.emplace_back();
        for (int64_t p : window)
          for (int64_t k = window_begin(o, in, out); k < window_end(o, in, out); ++k) next.push_back(p * in + k);
      }
    windows = std::move(finer);
  }
  size_t longest = 0;
  for (const auto& window : windows) longest = std::max(longest, window.size());
  const auto count = static_cast<int64_t>(windows.size()), width = static_cast<int64_t>(longest);
  if (count > kMaxIndexedElements / width) return {};
  std::vector<int64_t> positions;
  for (auto& window : windows) {
    window.resize(longest, window[0]);
    positions.insert(positions.end(), window.begin(), window.end());
  }
  const TensorId places = e.add_constant("positions", TensorData::from<int64_t>({count, width}, positions));
  const TensorId elements = e.gather(e.reshape(x, {dims[0], dims[1], -1}), places, 2);
  const TensorId greatest = e.emit("ArgMax", {elements}, {{"axis", int64_t{3}}, {"keepdims", int64_t{1}}});
  const TensorId all = e.expand(places, Dims{dims[0], dims[1], count, width});
  std::vector<int64_t> shape{dims[0], dims[1]};
  shape.insert(shape.end(), size.begin(), size.end());
  return e.reshape(e.gather_elements(all, greatest, 3), shape);
}
}  // namespace

// Windows of different sizes are a product with a matrix of averages along each axis.
Result<TensorId> adaptive_average_pool(Emitter& e, TensorId x, std::span<const int64_t> size) {
  const bool is_global = std::ranges::all_of(size, [](int64_t s) { return s == 1; });
  if (is_global && !e.dims_of(x)) return e.unary("GlobalAveragePool", x);
  ORKNN_TRY_ASSIGN(const Dims dims, pooled_dims(e, x, size));
  if (is_global) return e.unary("GlobalAveragePool", x);
  if (const auto windows = even_windows(dims, size)) return e.emit("AveragePool", {x}, *windows);
  const auto last = static_cast<int64_t>(dims.size()) - 1;
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t in = dims[2 + i], out = size[i], axis = static_cast<int64_t>(2 + i);
    if (in == out) continue;
    if (in > kMaxMatrix / out) return too_large();
    std::vector<float> means(static_cast<size_t>(in * out), 0);
    for (int64_t o = 0; o < out; ++o) {
      const int64_t begin = window_begin(o, in, out), end = window_end(o, in, out);
      for (int64_t k = begin; k < end; ++k) means[k * out + o] = 1.0f / static_cast<float>(end - begin);
    }
    const TensorId matrix = e.cast(e.add_constant("means", TensorData::from<float>({in, out}, means)), e.dtype_of(x));
    x = e.swap_axes(e.matmul(e.swap_axes(x, axis, last), matrix), axis, last);
  }
  return x;
}

// Each window, filled up to the longest by repeating its last element, then the greatest of it, axis by axis.
Result<PooledMax> adaptive_max_pool(Emitter& e, TensorId x, std::span<const int64_t> size) {
  ORKNN_TRY_ASSIGN(const Dims dims, pooled_dims(e, x, size));
  if (const auto windows = even_windows(dims, size)) return max_pool_with_positions(e, x, *windows);
  TensorId y = x;
  for (size_t i = 0; i < size.size(); ++i) {
    const int64_t in = dims[2 + i], out = size[i], axis = static_cast<int64_t>(2 + i);
    int64_t longest = 0;
    for (int64_t o = 0; o < out; ++o) longest = std::max(longest, window_end(o, in, out) - window_begin(o, in, out));
    if (out > kMaxMatrix / longest) return too_large();
    std::vector<int64_t> positions;
    for (int64_t o = 0; o < out; ++o)
      for (int64_t k = 0; k < longest; ++k)
        positions.push_back(std::min(window_begin(o, in, out) + k, window_end(o, in, out) - 1));
    const TensorId windows = e.add_constant("windows", TensorData::from<int64_t>({out, longest}, positions));
    y = e.reduce("ReduceMax", e.gather(y, windows, axis), {axis + 1}, false);
  }
  return PooledMax{y, uneven_positions(e, x, dims, size)};
}

Result<PooledMax> max_pool_with_positions(Emitter& e, TensorId x, Attributes attributes) {
  ORKNN_TRY_ASSIGN(const Dims dims, e.need_dims(x, "to count positions"));
  const auto ids = e.emit_all("MaxPool", {x}, std::move(attributes), 2);
  const int64_t plane = dims.size() < 2 ? 1 : element_count(std::span(dims).subspan(2));
  return PooledMax{ids[0], e.binary("Mod", ids[1], e.add_int_scalar("plane", std::max<int64_t>(plane, 1)))};
}

}  // namespace orknn::importer
