#include "ops/support/movement.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ops/support/strided_copy.h"

namespace orknn::ops {
using namespace ir;
namespace {
// A chunk of work for one thread moves about this much.
constexpr int64_t kChunkBytes = 1 << 17;
constexpr int64_t kTile = 32;
constexpr int64_t kBlock = 2048;  // of a long axis, so that threads share a matrix of few rows
constexpr int64_t kMaxContent = 64;

// Walks the outer axes of a copy in row-major order.
class Walker {
 public:
  Walker(std::span<const CopyAxis> axes, int64_t start) : axes_(axes), at_(axes.size()) {
    for (size_t i = axes.size(); i-- > 0;) {
      at_[i] = start % axes[i].extent;
      start /= axes[i].extent;
      from += at_[i] * axes[i].from_stride;
      to += at_[i] * axes[i].to_stride;
    }
  }
  void next() {
    for (size_t i = axes_.size(); i-- > 0;) {
      from += axes_[i].from_stride;
      to += axes_[i].to_stride;
      if (++at_[i] < axes_[i].extent) return;
      from -= axes_[i].extent * axes_[i].from_stride;
      to -= axes_[i].extent * axes_[i].to_stride;
      at_[i] = 0;
    }
  }
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;
  int64_t from = 0, to = 0;

 private:
  std::span<const CopyAxis> axes_;
  ScratchDims at_;
};

void join_axes(CopyAxes& axes) {
  CopyAxes joined;
  for (const CopyAxis& a : axes) {
    if (a.extent == 1) continue;
    if (!joined.empty() && joined.back().from_stride == a.from_stride * a.extent &&
        joined.back().to_stride == a.to_stride * a.extent)
      joined.back() = {joined.back().extent * a.extent, a.from_stride, a.to_stride};
    else
      joined.push_back(a);
  }
  axes = std::move(joined);
}

// Sixteen bytes of elements of `Bytes` bytes.
template <size_t Bytes>
struct Lanes;
template <>
struct Lanes<1> {
  using Vector = uint8_t __attribute__((vector_size(16)));
};
template <>
struct Lanes<2> {
  using Vector = uint16_t __attribute__((vector_size(16)));
};
template <>
struct Lanes<4> {
  using Vector = uint32_t __attribute__((vector_size(16)));
};
template <>
struct Lanes<8> {
  using Vector = uint64_t __attribute__((vector_size(16)));
};

// Elements of a and b alternately, from the first (or the second) half of both.
template <class Vector, size_t... I>
Vector zip_low(Vector a, Vector b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I % 2 ? sizeof...(I) + I / 2 : I / 2)...);
}
template <class Vector, size_t... I>
Vector zip_high(Vector a, Vector b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I % 2 ? sizeof...(I) + sizeof...(I) / 2 + I / 2 : sizeof...(I) / 2 + I / 2)...);
}

// to[r][k] = from[k][r] for a square whose rows are sixteen bytes long; strides are in bytes. Zipping row i with row i + N/2
// rotates the bits of an element's place (row, column) by one; after log2(N) times rows and columns have changed places.
template <size_t Bytes>
void transpose_square(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride) {
  using Vector = typename Lanes<Bytes>::Vector;
  constexpr int kSide = 16 / Bytes;
  constexpr auto kLanes = std::make_index_sequence<kSide>();
  Vector rows[kSide], zipped[kSide];
  for (int i = 0; i < kSide; ++i) std::memcpy(&rows[i], from + i * from_stride, 16);
  for (int done = 1; done < kSide; done *= 2) {
    for (int i = 0; i < kSide / 2; ++i) {
      zipped[2 * i] = zip_low(rows[i], rows[i + kSide / 2], kLanes);
      zipped[2 * i + 1] = zip_high(rows[i], rows[i + kSide / 2], kLanes);
    }
    for (int i = 0; i < kSide; ++i) rows[i] = zipped[i];
  }
  for (int i = 0; i < kSide; ++i) std::memcpy(to + i * to_stride, &rows[i], 16);
}

// to[r * to_stride + k] = from[r + k * from_stride]; strides count elements. All of a row of the source is used while its
// cache lines are there: rows a power of two apart share their place in the cache and would push each other out.
template <size_t Bytes>
void transpose_tile(const std::byte* from, int64_t from_stride, std::byte* to, int64_t to_stride, int64_t rows, int64_t columns) {
  constexpr auto kBytes = static_cast<int64_t>(Bytes);
  int64_t k = 0;
  const auto rest = [&](int64_t row, int64_t column, int64_t column_end) {
    for (int64_t r = row; r < rows; ++r)
      for (int64_t i = column; i < column_end; ++i)
        std::memcpy(to + (r * to_stride + i) * kBytes, from + (r + i * from_stride) * kBytes, Bytes);
  };
  if constexpr (Bytes <= 8) {
    constexpr int64_t kSide = 16 / kBytes;
    for (; k + kSide <= columns; k += kSide) {
      int64_t r = 0;
      for (; r + kSide <= rows; r += kSide)
        transpose_square<Bytes>(from + (r + k * from_stride) * kBytes, from_stride * kBytes, to + (r * to_stride + k) * kBytes,
                                to_stride * kBytes);
      rest(r, k, k + kSide);
    }
  }
  rest(0, k, columns);
}

constexpr int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t product(std::span<const CopyAxis> axes) {
  int64_t n = 1;
  for (const CopyAxis& a : axes) n *= a.extent;
  return n;
}
}  // namespace

// What a copy does in its innermost loop.
enum class StridedCopy::Way : uint8_t { Nothing, OneElement, OneRun, Runs, Elements, Tiles };

// `outer_` are the axes around the inner loop. Of tiles, the last two are blocks of the inner axis and tiles of `across_`.
StridedCopy::StridedCopy(CopyAxes axes, size_t element_bytes) : bytes_(static_cast<int64_t>(element_bytes)) {
  for (const CopyAxis& a : axes)
    if (a.extent <= 0) {
      way_ = Way::Nothing;
      return;
    }
  join_axes(axes);
  if (axes.empty()) {
    way_ = Way::OneElement;
    return;
  }
  const auto contiguous = [&] { return axes.back().from_stride == 1 && axes.back().to_stride == 1; };
  if (contiguous() && axes.size() > 1) {
    // A short run counts as one larger element, so that it moves without a call.
    const int64_t run = axes.back().extent, run_bytes = run * bytes_;
    const bool aligned = std::all_of(axes.begin(), axes.end() - 1,
                                     [&](const CopyAxis& a) { return a.from_stride % run == 0 && a.to_stride % run == 0; });
    if (aligned && (run_bytes == 2 || run_bytes == 4 || run_bytes == 8 || run_bytes == 16)) {
      axes.pop_back();
      for (CopyAxis& a : axes) {
        a.from_stride /= run;
        a.to_stride /= run;
      }
      bytes_ = run_bytes;
    }
  }
  const bool runs = contiguous();
  inner_ = axes.back();
  axes.pop_back();
  if (runs) {
    way_ = axes.empty() ? Way::OneRun : Way::Runs;
  } else {
    way_ = Way::Elements;
    const auto across = std::find_if(axes.begin(), axes.end(), [](const CopyAxis& a) { return a.from_stride == 1; });
    if (across != axes.end() && inner_.to_stride == 1 && inner_.from_stride != 0) {
      way_ = Way::Tiles;
      across_ = *across;
      axes.erase(across);
      const int64_t block = std::min(inner_.extent, kBlock);
      axes.push_back({ceil_divide(inner_.extent, block), block * inner_.from_stride, block});
      axes.push_back({ceil_divide(across_.extent, kTile), kTile, kTile * across_.to_stride});
    }
  }
  outer_ = std::move(axes);
}

// Tiles of the inner axis and the axis the source is contiguous along. `Bytes` is the element size.
template <size_t Bytes>
void StridedCopy::copy_tiles(const std::byte* from, std::byte* to, ThreadPool& pool) const {
  constexpr auto kBytes = static_cast<int64_t>(Bytes);
  const int64_t block = std::min(inner_.extent, kBlock), blocks = ceil_divide(inner_.extent, block),
                tiles = ceil_divide(across_.extent, kTile);
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / (kBytes * std::min(kTile, across_.extent) * block));
  pool.parallel_for(product(outer_), grain, [&](int64_t begin, int64_t end) {
    Walker walker(outer_, begin);
    for (int64_t n = begin; n < end; ++n, walker.next()) {
      const int64_t rows = std::min(kTile, across_.extent - n % tiles * kTile),
                    length = std::min(block, inner_.extent - n / tiles % blocks * block);
      for (int64_t column = 0; column < length; column += kTile) {
        const int64_t columns = std::min(kTile, length - column);
        transpose_tile<Bytes>(from + (walker.from + column * inner_.from_stride) * kBytes, inner_.from_stride,
                              to + (walker.to + column) * kBytes, across_.to_stride, rows, columns);
      }
    }
  });
}

// Element by element along the inner axis.
template <size_t Bytes>
void StridedCopy::copy_elements(const std::byte* from, std::byte* to, ThreadPool& pool) const {
  if (way_ == Way::Tiles) return copy_tiles<Bytes>(from, to, pool);
  constexpr auto kBytes = static_cast<int64_t>(Bytes);
  const int64_t grain = std::max<int64_t>(1, kChunkBytes / (kBytes * inner_.extent));
  pool.parallel_for(product(outer_), grain, [&](int64_t begin, int64_t end) {
    Walker walker(outer_, begin);
    for (int64_t n = begin; n < end; ++n, walker.next()) {
      const std::byte* source = from + walker.from * kBytes;
      std::byte* target = to + walker.to * kBytes;
      if (Bytes <= 8 && inner_.from_stride == 0 && inner_.to_stride == 1 && reinterpret_cast<uintptr_t>(target) % Bytes == 0) {
        fill_elements(target, inner_.extent, source, Bytes);
        continue;
      }
      for (int64_t k = 0; k < inner_.extent; ++k)
        std::memcpy(target + k * inner_.to_stride * kBytes, source + k * inner_.from_stride * kBytes, Bytes);
    }
  });
}

void StridedCopy::copy_runs(const std::byte* from, std::byte* to, ThreadPool& pool) const {
  const int64_t run = inner_.extent * bytes_;
  if (way_ == Way::OneRun) {
    pool.parallel_for(run, kChunkBytes * 8, [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  pool.parallel_for(product(outer_), std::max<int64_t>(1, kChunkBytes / run), [&](int64_t begin, int64_t end) {
    Walker walker(outer_, begin);
    for (int64_t n = begin; n < end; ++n, walker.next())
      std::memcpy(to + walker.to * bytes_, from + walker.from * bytes_, static_cast<size_t>(run));
  });
}

void StridedCopy::run(const void* from, void* to, ThreadPool& pool) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  switch (way_) {
    case Way::Nothing: return;
    case Way::OneElement: std::memcpy(target, source, static_cast<size_t>(bytes_)); return;
    case Way::OneRun:
    case Way::Runs: return copy_runs(source, target, pool);
    case Way::Elements:
    case Way::Tiles: break;
  }
  switch (bytes_) {
    case 1: return copy_elements<1>(source, target, pool);
    case 2: return copy_elements<2>(source, target, pool);
    case 4: return copy_elements<4>(source, target, pool);
    case 8: return copy_elements<8>(source, target, pool);
    default: return copy_elements<16>(source, target, pool);
  }
}

void copy_strided(CopyAxes axes, const void* from, void* to, size_t element_bytes, ThreadPool& pool) {
  StridedCopy(std::move(axes), element_bytes).run(from, to, pool);
}

CopyAxes into_dense(std::span<const int64_t> dims, std::span<const int64_t> from_strides) {
  const ScratchDims to_strides = scratch_strides(dims);
  CopyAxes axes(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) axes[i] = {dims[i], from_strides[i], to_strides[i]};
  return axes;
}

void fill_elements(void* to, int64_t count, const void* element, size_t element_bytes) {
  const auto fill = [&]<class T>(TypeTag<T>) {
    T value;
    std::memcpy(&value, element, sizeof value);
    std::fill_n(static_cast<T*>(to), count, value);
  };
  switch (element_bytes) {
    case 1: return fill(TypeTag<uint8_t>{});
    case 2: return fill(TypeTag<uint16_t>{});
    case 4: return fill(TypeTag<uint32_t>{});
    default: return fill(TypeTag<uint64_t>{});
  }
}

Status copy_reshaped(RunContext& c, std::span<const int64_t> dims) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, dims));
  if (y.count() != x.count())
    return shape_mismatch("the new shape has another number of elements").expected(to_string(x.dims)).found(to_string(dims));
  copy_strided({{x.count(), 1, 1}}, x.data, y.data, dtype_bytes(x.dtype), c.pool);
  return {};
}

Status copy_permuted(RunContext& c, std::span<const int64_t> split, std::span<const size_t> perm, std::span<const int64_t> out) {
  const TensorView x = c.input(0);
  ORKNN_TRY_ASSIGN(const MutableTensorView y, c.output(0, x.dtype, out));
  const ScratchDims strides = scratch_strides(split);
  ScratchDims dims, from;
  for (const size_t axis : perm) {
    dims.push_back(split[axis]);
    from.push_back(strides[axis]);
  }
  ORKNN_ASSERT(element_count(dims) == x.count() && x.count() == y.count(), "a permutation keeps the number of elements");
  copy_strided(into_dense(dims, from), x.data, y.data, dtype_bytes(x.dtype), c.pool);
  return {};
}

std::optional<std::vector<Dim>> small_content(const InferContext& c, size_t i) {
  const Shape* shape = c.shape(i);
  if (!shape || !(is_integer(c.dtype(i)) || c.dtype(i) == DType::Bool)) return std::nullopt;
  const std::optional<Dims> dims = to_dims(*shape);
  if (!dims) return std::nullopt;
  const Result<int64_t> count = checked_element_count(*dims, kMaxContent);
  if (!count) return std::nullopt;
  std::optional<std::vector<Dim>> content = c.content(i);
  if (!content || static_cast<int64_t>(content->size()) != *count) return std::nullopt;
  return content;
}

std::vector<Dim> copy_content(const std::vector<Dim>& content, std::span<const CopyAxis> axes, int64_t from_offset) {
  int64_t count = 1;
  for (const CopyAxis& a : axes)
    if (__builtin_mul_overflow(count, a.extent, &count) || count > kMaxContent) return {};
  std::vector<Dim> out(static_cast<size_t>(count));
  if (count == 0) return out;
  Walker walker(axes, 0);
  for (int64_t n = 0; n < count; ++n, walker.next())
    out[static_cast<size_t>(walker.to)] = content[static_cast<size_t>(from_offset + walker.from)];
  return out;
}

Status require_integer(const InferContext& c, size_t i, std::string_view what) {
  if (!c.has_input(i) || is_integer(c.dtype(i))) return {};
  return invalid_model(std::string(what) + " must be integers").found(std::string(dtype_name(c.dtype(i))));
}

Result<ScratchDims> distinct_axes(std::span<const int64_t> axes, int64_t rank) {
  ScratchDims out;
  for (int64_t axis : axes) {
    ORKNN_TRY_ASSIGN(const int64_t normalized, normalize_axis(axis, rank));
    out.push_back(normalized);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    return invalid_model("an axis is given twice").found(to_string(axes));
  return out;
}

Status index_error(int64_t index, int64_t extent) {
  return invalid_argument("index out of range")
      .expected("between " + std::to_string(-extent) + " and " + std::to_string(extent - 1))
      .found(std::to_string(index));
}

Result<int64_t> checked_index(int64_t index, int64_t extent) {
  if (index < -extent || index >= extent) return index_error(index, extent);
  return index < 0 ? index + extent : index;
}

}  // namespace orknn::ops
