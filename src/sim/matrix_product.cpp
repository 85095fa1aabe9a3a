#include "sim/matrix_product.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "sim/kernels/support/forms.h"
#include "sim/kernels/support/int_forms.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

// Differences of bytes and their zero points are below 256: sums of so many products fit 32 bits.
constexpr int64_t kExactDepth = 32768;
constexpr int64_t kRightBlock = 600 << 10;   // bytes of the right operand that stay in the second-level cache
constexpr int64_t kStreamedBytes = 2 << 20;  // of a result that is written past the caches
constexpr int64_t kFloatDepth = 1536;        // depth of one pass of floats
constexpr int64_t kLeftBlock = 512 << 10;    // bytes of a strip of floats, likewise in the second-level cache
constexpr int64_t kLeftPanels = 128;         // of such a strip at most
constexpr int64_t kCopied = 512 << 10;       // halves that a thread copies at a time
// A strip: so many panels of the left operand with one tile of the right one. Panels and tiles of both kinds have one size.
constexpr int64_t kStripPanels = 4, kStripRows = kStripPanels * kIntRows, kStripSums = kStripRows * kIntColumns;
static_assert(kIntRows == kPanelRows && kIntColumns == kPanelColumns);
constexpr int64_t kGathered = 64;  // rows of the right operand that are rearranged at a time, a multiple of 4

template <class T>
T element(const void* data, int64_t at, const RightLayout&, DType) {
  return static_cast<const T*>(data)[at];
}
template <>
int8_t element<int8_t>(const void* data, int64_t at, const RightLayout& layout, DType type) {
  if (type == DType::Int4) return nibble(static_cast<const uint8_t*>(data), at, layout.high_nibble_first);
  return static_cast<const int8_t*>(data)[at];
}

// Rows [k, k + depth) and columns [first, first + count) of the right operand as rows of kPanelColumns elements.
template <class T>
void gather(const void* data, DType type, const RightLayout& layout, int64_t k, int64_t depth, int64_t first, int64_t count,
            T* to) {
  if (layout.row_major) {
    for (int64_t i = 0; i < depth; ++i) {
      const int64_t at = layout.place(k + i, first);
      T* row = to + i * kPanelColumns;
      if (type == DType::Int4)
        for (int64_t c = 0; c < count; ++c) row[c] = element<T>(data, at + c, layout, type);
      else
        std::memcpy(row, static_cast<const T*>(data) + at, static_cast<size_t>(count) * sizeof(T));
    }
    return;
  }
  for (int64_t i = 0; i < depth;) {
    const int64_t run = std::min(layout.run(k + i), depth - i);
    for (int64_t c = 0; c < count; ++c) {
      const int64_t at = layout.place(k + i, first + c);
      for (int64_t j = 0; j < run; ++j) to[(i + j) * kPanelColumns + c] = element<T>(data, at + j, layout, type);
    }
    i += run;
  }
}

// One row of an integer left operand, an int8 per element.
void gather_row(const uint8_t* data, DType type, const RowLayout& layout, int64_t row, int8_t* to) {
  for (int64_t k = 0; k < layout.columns; k += layout.block) {
    const int64_t run = std::min(layout.block, layout.columns - k), at = layout.place(row, k);
    if (type == DType::Int4)
      for (int64_t j = 0; j < run; ++j) to[k + j] = nibble(data, at + j, false);
    else
      std::memcpy(to + k, data + at, static_cast<size_t>(run));
  }
}

// Asks early for the lines of some rows and columns, which come from far away. Rows of whole blocks follow each other.
void prefetch_rows(const void* data, const RowLayout& layout, int64_t bytes, int64_t row, int64_t rows, int64_t column,
                   int64_t columns) {
  for (int64_t c = 0; c < columns;) {
    const int64_t run = std::min(columns - c, layout.block - (column + c) % layout.block);
    const auto* at = static_cast<const std::byte*>(data) + layout.place(row, column + c) * bytes;
    const int64_t joined = run == layout.block ? rows : 1;
    for (int64_t r = 0; r < rows; r += joined, at += layout.block * bytes)
      for (int64_t i = 0; i < joined * run * bytes; i += 64) __builtin_prefetch(at + i, 0, 2);
    c += run;
  }
}

// A strip of results [rows][kIntColumns] to where the layout has them. Blocks are outermost: their rows are neighbours.
template <class T>
void store_strip(const T* values, int64_t row, int64_t rows, int64_t column, int64_t columns, const RowLayout& layout,
                 T* result) {
  for (int64_t c = 0; c < columns;) {
    const int64_t run = std::min(columns - c, layout.block - (column + c) % layout.block);
    T* to = result + layout.place(row, column + c);
    const T* from = values + c;
    if (run * sizeof(T) == 16)  // native blocks: a copy without a call
      for (int64_t r = 0; r < rows; ++r) std::memcpy(to + r * layout.block, from + r * kIntColumns, 16);
    else
      for (int64_t r = 0; r < rows; ++r)
        std::memcpy(to + r * layout.block, from + r * kIntColumns, static_cast<size_t>(run) * sizeof(T));
    c += run;
  }
}

template <class T>
T saturate(double value) {
  return static_cast<T>(std::clamp<double>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
}

// To the nearest integer, halves to the even one, for results of at most 32 bits: what is larger saturates later. Adding a number
// whose last bit counts ones rounds without a call.
double nearest(double value) {
  constexpr double kLimit = 0x1p33, kOnes = 0x1.8p52;
  return std::clamp(value, -kLimit, kLimit) + kOnes - kOnes;
}

// Where results go and what becomes of sums; one per run.
struct ResultWriter {
  void* result;
  DType type;
  const RowLayout& layout;
  const ProductScaling& scaling;
  const std::vector<float>& factors;  // of float results; empty = 1

  // Whether results would push out of the second-level cache what the next tiles need: whole lines are then written past it.
  bool fills_caches() const {
    return layout.elements() * static_cast<int64_t>(dtype_bytes(type)) >= kStreamedBytes &&
           reinterpret_cast<uintptr_t>(result) % 64 == 0;
  }

  void prefetch(int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    prefetch_rows(result, layout, static_cast<int64_t>(dtype_bytes(type)), row, rows, column, columns);
  }

  // Part of a strip of sums: int32, int64 or float.
  template <class Sum>
  void write(const Sum* sums, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    const auto as = [&](auto tag, auto value) {
      using T = typename decltype(tag)::type;
      T values[kStripSums];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t i = r * kIntColumns, n = column; n < column + columns; ++i, ++n) values[i] = value(sums[i], n);
      store_strip(values, row, rows, column, columns, layout, static_cast<T*>(result));
    };
    // The sums themselves.
    if constexpr (std::is_same_v<Sum, int32_t>)
      if (type == DType::Int32 && scaling.factor.empty())
        return store_strip(sums, row, rows, column, columns, layout, static_cast<int32_t*>(result));
    if constexpr (std::is_same_v<Sum, float>)
      if (type == DType::Float32 && factors.empty())
        return store_strip(sums, row, rows, column, columns, layout, static_cast<float*>(result));
    switch (type) {
      case DType::Int32:
        if (scaling.factor.empty())
          return as(TypeTag<int32_t>{}, [](Sum sum, int64_t) { return static_cast<int32_t>(static_cast<int64_t>(sum)); });
        return as(TypeTag<int32_t>{}, [&](Sum sum, int64_t n) { return saturate<int32_t>(nearest(double(sum) * factor(n))); });
      case DType::Int16: return as(TypeTag<int16_t>{}, [](Sum sum, int64_t) { return saturate<int16_t>(double(sum)); });
      case DType::Int8:
        return as(TypeTag<int8_t>{},
                  [&](Sum sum, int64_t n) { return saturate<int8_t>(nearest(double(sum) * factor(n)) + scaling.result_zero); });
      case DType::BFloat16: return as(TypeTag<BFloat16>{}, [&](Sum sum, int64_t n) { return BFloat16(scaled(sum, n)); });
      case DType::Float16: return write_halves(sums, row, rows, column, columns);
      default: return as(TypeTag<float>{}, [&](Sum sum, int64_t n) { return scaled(sum, n); });
    }
  }

 private:
  double factor(int64_t column) const { return scaling.factor.empty() ? 1 : scaling.factor[static_cast<size_t>(column)]; }
  template <class Sum>
  float scaled(Sum sum, int64_t column) const {
    return factors.empty() ? static_cast<float>(sum) : static_cast<float>(sum) * factors[static_cast<size_t>(column)];
  }
  template <class Sum>
  void write_halves(const Sum* sums, int64_t row, int64_t rows, int64_t column, int64_t columns) const {
    Half values[kStripSums];
    for (int64_t r = 0; r < rows; ++r) {
      float line[kIntColumns];
      for (int64_t c = 0; c < columns; ++c) line[c] = scaled(sums[r * kIntColumns + c], column + c);
      forms().to_half(line, values + r * kIntColumns, columns);
    }
    store_strip(values, row, rows, column, columns, layout, static_cast<Half*>(result));
  }
};
}  // namespace

uint64_t fingerprint(std::span<const std::byte> bytes) {
  return int_forms(current_isa()).fingerprint(bytes.data(), static_cast<int64_t>(bytes.size()));
}

bool MatrixProduct::Buffer::reserve(size_t wanted) {
  if (wanted <= bytes) return true;
  AlignedPtr<void> fresh(allocate_aligned(wanted));
  if (!fresh) return false;
  data = std::move(fresh);
  bytes = wanted;
  return true;
}

MatrixProduct::MatrixProduct(DType left, DType right, int64_t depth, int64_t columns, int64_t group)
    : left_type_(left), right_type_(right), depth_(depth), columns_(columns), group_(group), isa_(current_isa()) {
  if (has_float_sums()) return;
  words_ = !int_forms(isa_).has_bytes;
  const int64_t per = words_ ? 2 : 4;
  for (int64_t k = 0; k < depth;) {
    const int64_t count = std::min(kExactDepth, group - k % group);
    pieces_.push_back({k, count, k / group, dwords_, divide_up(count, per)});
    dwords_ += pieces_.back().dwords;
    k += count;
  }
}

// --- left operand

Status MatrixProduct::pack_left(const void* data, const RowLayout& layout, LeftData data_is, ThreadPool& pool) {
  return has_float_sums() ? pack_left_floats(static_cast<const Half*>(data), layout, data_is, pool)
                          : pack_left_ints(static_cast<const uint8_t*>(data), layout, pool);
}

// A run makes panels of floats of it, some rows at a time: they stay in the second-level cache then.
Status MatrixProduct::pack_left_floats(const Half* data, const RowLayout& layout, LeftData data_is, ThreadPool& pool) {
  if (data_is == LeftData::Copied) {
    const int64_t elements = layout.elements();
    if (!left_.reserve(static_cast<size_t>(elements) * sizeof(Half)))
      return out_of_scratch(elements * static_cast<int64_t>(sizeof(Half)));
    pool.parallel_for(elements, kCopied, [&](int64_t begin, int64_t end) {
      std::memcpy(left_.as<Half>() + begin, data + begin, static_cast<size_t>(end - begin) * sizeof(Half));
    });
    data = left_.as<Half>();
  }
  rows_ = layout.rows;
  halves_ = {.x = data, .storage = Storage::Half, .row_stride = layout.block, .rows = rows_, .depth = depth_};
  if (layout.block < depth_) halves_.block = layout.block, halves_.block_stride = layout.rows * layout.block;
  return {};
}

Status MatrixProduct::pack_left_ints(const uint8_t* data, const RowLayout& layout, ThreadPool& pool) {
  // Nothing changes before all memory is there; calls of the pool may need some, too.
  const int64_t panels = divide_up(layout.rows, kIntRows), pitch = layout.rows == 1 ? 1 : kIntRows;
  const size_t bytes = static_cast<size_t>(panels * pitch * dwords_) * 4;
  const bool plain = layout.block == depth_,
             in_place = left_type_ == DType::Int8 && (plain || (pieces_.size() == 1 && layout.block % 16 == 0));
  const int64_t line_bytes = in_place ? 0 : (depth_ + 63) / 64 * 64, workers = std::min<int64_t>(pool.threads(), panels);
  if (!scratch_.reserve(static_cast<size_t>(workers * kIntRows * line_bytes)))
    return out_of_scratch(workers * kIntRows * line_bytes);
  if (!left_.reserve(bytes)) return out_of_scratch(static_cast<int64_t>(bytes));
  const IntForms& f = int_forms(isa_);
  for_each_job(pool, panels, [&](int64_t panel, int64_t worker) {
    const int64_t row = panel * kIntRows;
    IntPanel p;
    p.words = words_;
    p.flip = static_cast<uint8_t>(0x80 ^ f.data_flip);  // bytes become unsigned, unless the form wants them signed
    p.rows = std::min(layout.rows - row, kIntRows);
    p.pitch = pitch;
    const uint8_t* x = data + layout.place(row, 0);
    if (in_place && row + kIntRows < layout.rows)
      prefetch_rows(data, layout, 1, row + kIntRows, std::min(layout.rows - row - kIntRows, kIntRows), 0, depth_);
    p.row_stride = layout.block;
    if (!in_place) {
      auto* lines = scratch_.as<int8_t>() + worker * kIntRows * line_bytes;
      for (int64_t r = 0; r < p.rows; ++r) gather_row(data, left_type_, layout, row + r, lines + r * line_bytes);
      x = reinterpret_cast<const uint8_t*>(lines);
      p.row_stride = line_bytes;
    } else if (!plain) {
      p.block = layout.block;
      p.block_stride = layout.rows * layout.block;
    }
    for (const Piece& piece : pieces_) {
      p.x = x + piece.begin;
      p.depth = piece.depth;
      p.y = left_.as<int32_t>() + (panel * dwords_ + piece.dword) * pitch;
      f.panel(p);
    }
  });
  left_sums_.clear();
  rows_ = layout.rows;
  return {};
}

// --- right operand

Status MatrixProduct::pack_right(const void* data, const RightLayout& layout, const ProductScaling& scaling, ThreadPool& pool) {
  return has_float_sums() ? pack_right_floats(data, layout, scaling, pool) : pack_right_ints(data, layout, pool);
}

Status MatrixProduct::pack_right_floats(const void* data, const RightLayout& layout, const ProductScaling& scaling,
                                        ThreadPool& pool) {
  const int64_t panels = panels_b(columns_);
  const size_t bytes = static_cast<size_t>(panels * kPanelColumns * depth_) * sizeof(float);
  if (!right_.reserve(bytes)) return out_of_scratch(static_cast<int64_t>(bytes));
  const Forms& f = forms();
  pool.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * kPanelColumns, count = std::min(kPanelColumns, columns_ - first);
      for (int64_t k = 0; k < depth_; k += kGathered) {
        const int64_t rows = std::min(kGathered, depth_ - k);
        float* to = right_.as<float>() + first * depth_ + k * kPanelColumns;
        if (right_type_ == DType::Float16) {
          Half halves[kGathered * kPanelColumns];
          gather(data, right_type_, layout, k, rows, first, count, halves);
          f.pack_b(halves, Storage::Half, kPanelColumns, 1, rows, count, to);
          continue;
        }
        int8_t values[kGathered * kPanelColumns];
        gather(data, right_type_, layout, k, rows, first, count, values);
        for (int64_t i = 0; i < rows; ++i)
          for (int64_t c = 0; c < kPanelColumns; ++c) {
            const auto at = static_cast<size_t>((k + i) / group_ * columns_ + first + c);
            float value = 0;
            if (c < count) {
              value =
                  static_cast<float>(values[i * kPanelColumns + c] - (scaling.right_zero.empty() ? 0 : scaling.right_zero[at]));
              if (!scaling.right_scale.empty()) value *= scaling.right_scale[at];
            }
            to[i * kPanelColumns + c] = value;
          }
      }
    }
  });
  return {};
}

Status MatrixProduct::pack_right_ints(const void* data, const RightLayout& layout, ThreadPool& pool) {
  const int64_t tiles = divide_up(columns_, kIntColumns);
  const size_t bytes = static_cast<size_t>((tiles * dwords_ + 1) * kIntColumns) * 4;  // the last tile is read beyond its end
  std::vector<int32_t> sums(pieces_.size() * static_cast<size_t>(columns_));
  if (!right_.reserve(bytes)) return out_of_scratch(static_cast<int64_t>(bytes));
  pool.parallel_for(tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile)
      pack_tile(data, layout, tile * kIntColumns, right_.as<int32_t>() + tile * dwords_ * kIntColumns, sums.data());
  });
  right_sums_ = std::move(sums);
  return {};
}

// A tile of columns as [dwords][kIntColumns], and the sums of its columns.
void MatrixProduct::pack_tile(const void* data, const RightLayout& layout, int64_t first, int32_t* to, int32_t* all_sums) const {
  const IntForms& f = int_forms(isa_);
  const int64_t per = words_ ? 2 : 4, count = std::min(kIntColumns, columns_ - first);
  int8_t values[kGathered * kPanelColumns];
  IntInterleave p;
  p.words = words_;
  p.count = count;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    int32_t* sums = all_sums + static_cast<int64_t>(i) * columns_ + first;
    for (int64_t k = 0; k < piece.depth; k += kGathered) {
      const int64_t rows = std::min(kGathered, piece.depth - k);
      gather(data, right_type_, layout, piece.begin + k, rows, first, count, values);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < count; ++c) sums[c] += values[r * kPanelColumns + c];
      for (int64_t r = 0; r < rows; r += per, to += kIntColumns) {
        for (int64_t j = 0; j < per; ++j)
          p.rows[j] = r + j < rows ? reinterpret_cast<const uint8_t*>(values) + (r + j) * kPanelColumns : nullptr;
        p.y = to;
        f.interleave(p);
      }
    }
  }
}

// --- the product

Status MatrixProduct::run(const ProductScaling& scaling, void* result, DType type, const RowLayout& layout, ThreadPool& pool) {
  factors_.clear();
  if (is_float(type)) factors_.assign(scaling.factor.begin(), scaling.factor.end());
  return has_float_sums() ? run_floats(scaling, result, type, layout, pool) : run_ints(scaling, result, type, layout, pool);
}

// A strip of the left operand becomes floats, and all tiles of the right one pass by it.
Status MatrixProduct::run_floats(const ProductScaling& scaling, void* result, DType type, const RowLayout& layout,
                                 ThreadPool& pool) {
  const ResultWriter writer{result, type, layout, scaling, factors_};
  // Sums that are results already, in plain rows, and in fours, too.
  const bool direct = type == DType::Float32 && factors_.empty(), by_rows = direct && layout.block == columns_,
             by_quads = direct && layout.block == 4 && depth_ <= kFloatDepth;
  const bool streams = by_rows && depth_ <= kFloatDepth && columns_ % 16 == 0 && writer.fills_caches();
  const int64_t tiles = panels_b(columns_), panels = panels_a(rows_), threads = pool.threads();
  const int64_t panel_floats = depth_ * kPanelRows, panel_bytes = panel_floats * static_cast<int64_t>(sizeof(float));
  const int64_t most_panels = std::clamp<int64_t>(panels / (4 * threads), kStripPanels, kLeftPanels),
                strip_panels = std::clamp<int64_t>(kLeftBlock / panel_bytes, kStripPanels, most_panels),
                strips = divide_up(panels, strip_panels), strip_rows = strip_panels * kPanelRows;
  // Strips that are too few for the threads are divided by tiles, and must be there beforehand.
  const int64_t block = std::clamp<int64_t>(strips >= 2 * threads ? tiles : tiles * strips / (4 * threads), 1, tiles);
  const bool ahead = block < tiles;
  const int64_t held = (ahead ? panels : std::min(threads, strips) * strip_panels) * panel_bytes;
  if (!scratch_.reserve(static_cast<size_t>(held))) return out_of_scratch(held);
  const auto widen = [&](int64_t row, int64_t rows, float* to) {
    LeftRows part = halves_;
    part.x = static_cast<const Half*>(halves_.x) + row * halves_.row_stride;
    part.rows = rows;
    forms().pack_a(part, to);
  };
  if (ahead)
    pool.parallel_for(panels, 1, [&](int64_t begin, int64_t end) {
      widen(begin * kPanelRows, std::min(end * kPanelRows, rows_) - begin * kPanelRows,
            scratch_.as<float>() + begin * panel_floats);
    });
  for_each_job(pool, divide_up(tiles, block) * strips, [&](int64_t job, int64_t worker) {
    const int64_t first_tile = job / strips * block, strip = job % strips, row = strip * strip_rows,
                  rows = std::min(strip_rows, rows_ - row);
    float* left = scratch_.as<float>() + (ahead ? strip : worker) * strip_panels * panel_floats;
    if (!ahead) widen(row, rows, left);
    for (int64_t tile = first_tile; tile < std::min(first_tile + block, tiles); ++tile) {
      const int64_t column = tile * kPanelColumns, columns = std::min(kPanelColumns, columns_ - column);
      if (by_rows || (by_quads && rows % kPanelRows == 0 && columns % 16 == 0)) {
        GemmBlock g;
        g.rows = rows;
        g.sum = static_cast<float*>(result) + layout.place(row, column);
        g.sum_row_stride = by_rows ? columns_ : 4;
        g.sum_quad_stride = by_rows ? 0 : 4 * rows_;
        g.streams = streams;
        sum_floats(left, tile, g);
        continue;
      }
      for (int64_t r = 0; r < rows; r += kStripRows) {
        const int64_t some = std::min(kStripRows, rows - r);
        alignas(64) float sums[kStripSums];
        writer.prefetch(row + r, some, column, columns);
        GemmBlock g;
        g.rows = some;
        g.sum = sums;
        g.sum_row_stride = kPanelColumns;
        sum_floats(left + r * depth_, tile, g);
        writer.write(sums, row + r, some, column, columns);
      }
    }
  });
  return {};
}

Status MatrixProduct::run_ints(const ProductScaling& scaling, void* result, DType type, const RowLayout& layout,
                               ThreadPool& pool) {
  set_terms(scaling);
  if (!scaling.right_zero.empty() && left_sums_.empty()) sum_left(pool);
  const ResultWriter writer{result, type, layout, scaling, factors_};
  // Sums that are results already, in plain rows and in fours.
  const bool direct = type == DType::Int32 && scaling.factor.empty() && scaling.right_zero.empty() && pieces_.size() == 1 &&
                      rows_ > 1 && (layout.block == columns_ || layout.block == 4);
  const bool streams = direct && columns_ % 16 == 0 && rows_ % 4 == 0 && writer.fills_caches();
  const int64_t tiles = divide_up(columns_, kIntColumns), panels = divide_up(rows_, kIntRows);
  // Results that are stored in plain rows are written where others were before: one panel meets all tiles before the next does.
  const bool by_rows = !direct && layout.block == columns_;
  const int64_t strip_panels = by_rows  ? 1
                               : direct ? 8 * kStripPanels
                                        : kStripPanels,
                strip_rows = strip_panels * kIntRows, strips = divide_up(panels, strip_panels);
  // Some tiles of the right operand stay in the cache while strips pass.
  int64_t block = std::clamp<int64_t>(kRightBlock / (dwords_ * kIntColumns * 4), 1, tiles);
  block = std::clamp<int64_t>(tiles / std::max<int64_t>(1, 4 * pool.threads() / strips), 1, block);
  for_each_job(pool, divide_up(tiles, block) * strips, [&](int64_t job, int64_t) {
    const int64_t first_tile = job / strips * block, row = job % strips * strip_rows, rows = std::min(strip_rows, rows_ - row);
    for (int64_t tile = first_tile; tile < std::min(first_tile + block, tiles); ++tile) {
      const int64_t column = tile * kIntColumns, columns = std::min(kIntColumns, columns_ - column);
      if (direct && rows % kIntRows == 0 && columns % 16 == 0) {
        sum_ints(row, rows, tile, static_cast<int32_t*>(result) + layout.place(row, column), layout.block, streams);
        continue;
      }
      if (!by_rows) writer.prefetch(row, rows, column, columns);
      for (int64_t r = row; r < row + rows; r += kStripRows) {
        const int64_t some = std::min(kStripRows, row + rows - r);
        sum_strip(scaling, r, some, tile, [&](const auto* sums) { writer.write(sums, r, some, column, columns); });
      }
    }
  });
  return {};
}

// sum of (a - za)(b - zb) = sum of ab - za sum of b - zb sum of a + depth za zb. Unsigned bytes of a are 128 larger than a.
void MatrixProduct::set_terms(const ProductScaling& scaling) {
  const uint32_t left = static_cast<uint32_t>(scaling.left_zero), shifted = left + left_offset();
  const int64_t pitch = terms_pitch();
  terms_.resize(pieces_.size() * static_cast<size_t>(pitch));
  for (size_t i = 0; i < pieces_.size(); ++i)
    for (size_t n = 0; n < static_cast<size_t>(columns_); ++n) {
      const size_t zero_at = static_cast<size_t>(pieces_[i].group * columns_) + n;
      const uint32_t right = scaling.right_zero.empty() ? 0u : static_cast<uint32_t>(scaling.right_zero[zero_at]);
      terms_[i * static_cast<size_t>(pitch) + n] =
          static_cast<int32_t>(static_cast<uint32_t>(pieces_[i].depth) * left * right -
                               shifted * static_cast<uint32_t>(right_sums_[i * static_cast<size_t>(columns_) + n]));
    }
}

uint32_t MatrixProduct::left_offset() const { return words_ ? 0 : 128u - int_forms(isa_).data_flip; }
int64_t MatrixProduct::terms_pitch() const { return divide_up(columns_, kIntColumns) * kIntColumns; }

// The sums of rows: their products with ones.
void MatrixProduct::sum_left(ThreadPool& pool) {
  alignas(64) int32_t ones[16];
  std::fill(std::begin(ones), std::end(ones), words_ ? 0x00010001 : 0x01010101);
  std::vector<int32_t> totals(pieces_.size() * static_cast<size_t>(rows_));
  pool.parallel_for(divide_up(rows_, kIntRows), 4, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      for (size_t i = 0; i < pieces_.size(); ++i) {
        alignas(64) int32_t sums[kIntRows * kIntColumns];
        IntTile t;
        t.b = reinterpret_cast<const std::byte*>(ones);
        t.b_stride = 0;
        t.columns = 1;
        t.sums = sums;
        multiply(panel, pieces_[i], t);
        for (int64_t r = 0, row = panel * kIntRows; r < kIntRows && row < rows_; ++r, ++row)
          totals[i * static_cast<size_t>(rows_) + static_cast<size_t>(row)] = static_cast<int32_t>(
              static_cast<uint32_t>(sums[r * kIntColumns]) - left_offset() * static_cast<uint32_t>(pieces_[i].depth));
      }
  });
  left_sums_ = std::move(totals);
}

// A piece of a panel with what `t` says of the right operand.
void MatrixProduct::multiply(int64_t panel, const Piece& piece, IntTile& t) const {
  const IntForms& f = int_forms(isa_);
  const int64_t pitch = rows_ == 1 ? 1 : kIntRows;
  t.dot = words_ ? Dot::Words : Dot::BytesAUnsigned;
  t.a = left_.as<int32_t>() + (panel * dwords_ + piece.dword) * pitch;
  t.depth = piece.dwords;
  t.rows = std::min(kIntRows, rows_ - panel * kIntRows);
  if (pitch == 1)
    f.row({t.dot, t.a, t.b, t.offsets, t.b_stride, t.depth, t.columns, t.sums, t.start});
  else
    f.tile(t);
}

// Sums of a tile over one piece, zero points settled, to where `t` has them.
void MatrixProduct::sum_tile(const ProductScaling& scaling, int64_t panel, int64_t tile, const Piece& piece, IntTile& t) const {
  const int64_t first = tile * kIntColumns, which = &piece - pieces_.data();
  t.b = reinterpret_cast<const std::byte*>(right_.as<int32_t>() + (tile * dwords_ + piece.dword) * kIntColumns);
  t.columns = std::min(kIntColumns, columns_ - first);
  t.start = terms_.data() + which * terms_pitch() + first;
  multiply(panel, piece, t);
  if (scaling.right_zero.empty()) return;
  const int32_t* zeros = scaling.right_zero.data() + piece.group * columns_ + first;
  const int32_t* lefts = left_sums_.data() + which * rows_ + panel * kIntRows;
  for (int64_t r = 0; r < std::min(kIntRows, rows_ - panel * kIntRows); ++r) {
    auto* row = reinterpret_cast<uint32_t*>(t.sums + r * t.row_stride);
    for (int64_t c = 0; c < t.columns; ++c) row[c] -= static_cast<uint32_t>(zeros[c]) * static_cast<uint32_t>(lefts[r]);
  }
}

// Calls `finish` with the sums of a strip of integers.
template <class Finish>
void MatrixProduct::sum_strip(const ProductScaling& scaling, int64_t row, int64_t rows, int64_t tile,
                              const Finish& finish) const {
  if (pieces_.size() == 1 && scaling.right_scale.empty()) {
    alignas(64) int32_t sums[kStripSums];
    for (int64_t r = 0; r < rows; r += kIntRows) {
      IntTile t;
      t.sums = sums + r * kIntColumns;
      sum_tile(scaling, (row + r) / kIntRows, tile, pieces_[0], t);
    }
    return finish(sums);
  }
  if (scaling.right_scale.empty()) {
    int64_t total[kStripSums] = {};
    sum_pieces(scaling, row, rows, tile, [&](const Piece&, int64_t i, int64_t, int32_t sum) { total[i] += sum; });
    return finish(total);
  }
  float total[kStripSums] = {};
  sum_pieces(scaling, row, rows, tile, [&](const Piece& piece, int64_t i, int64_t column, int32_t sum) {
    total[i] += static_cast<float>(sum) * scaling.right_scale[static_cast<size_t>(piece.group * columns_ + column)];
  });
  finish(total);
}

// Calls add(piece, place in the strip, column, sum) for each piece and result.
template <class Add>
void MatrixProduct::sum_pieces(const ProductScaling& scaling, int64_t row, int64_t rows, int64_t tile, const Add& add) const {
  alignas(64) int32_t sums[kIntRows * kIntColumns];
  IntTile t;
  t.sums = sums;
  const int64_t first = tile * kIntColumns, columns = std::min(kIntColumns, columns_ - first);
  for (const Piece& piece : pieces_)
    for (int64_t panel = 0; panel < rows; panel += kIntRows) {
      sum_tile(scaling, (row + panel) / kIntRows, tile, piece, t);
      for (int64_t r = 0; r < std::min(kIntRows, rows - panel); ++r)
        for (int64_t c = 0; c < columns; ++c) add(piece, (panel + r) * kIntColumns + c, first + c, sums[r * kIntColumns + c]);
    }
}

// The sums of some whole panels with a tile, one piece deep and without zero points of the right operand, as results. One call: a
// tile of eight rows takes so little time that what is done between two of them counts.
void MatrixProduct::sum_ints(int64_t row, int64_t rows, int64_t tile, int32_t* sums, int64_t row_stride, bool streams) const {
  IntTile t;
  t.dot = words_ ? Dot::Words : Dot::BytesAUnsigned;
  t.a = left_.as<int32_t>() + row * dwords_;
  t.b = reinterpret_cast<const std::byte*>(right_.as<int32_t>() + tile * dwords_ * kIntColumns);
  t.depth = dwords_;
  t.rows = rows;
  t.panel_step = kIntRows * dwords_;
  t.columns = std::min(kIntColumns, columns_ - tile * kIntColumns);
  t.start = terms_.data() + tile * kIntColumns;
  t.row_stride = row_stride;
  if (row_stride == 4) t.quad_stride = 4 * rows_;
  t.sums = sums;
  t.streams = streams;
  int_forms(isa_).tile(t);
}

// The sums of the panels at `left` with a tile.
void MatrixProduct::sum_floats(const float* left, int64_t tile, GemmBlock& g) const {
  g.a_panel_stride = depth_ * kPanelRows;
  g.b_panel_stride = depth_ * kPanelColumns;
  g.b_goes_on = true;
  g.columns = std::min(kPanelColumns, columns_ - tile * kPanelColumns);
  for (int64_t k = 0; k < depth_; k += kFloatDepth) {
    g.depth = std::min(kFloatDepth, depth_ - k);
    g.a = left + k * kPanelRows;
    g.b = right_.as<float>() + (tile * depth_ + k) * kPanelColumns;
    g.accumulate = k > 0;
    forms().gemm(g);
  }
}

}  // namespace orknn::sim
