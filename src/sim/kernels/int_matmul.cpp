// Matrix products: rows of the left operand are broadcast, columns of the right one are vectors. A constant right operand is
// packed once, a computed one when running.
#include <algorithm>
#include <cstring>
#include <map>

#include "ops/support/matrix.h"
#include "ops/support/requantize.h"
#include "sim/kernels/support/int_stage.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kRightBlock = 512 << 10;  // bytes of the right operand that stay in the second-level cache

struct State : KernelState {
  Isa isa = Isa::Portable;
  bool words = false, packed = false;
  bool wide = false;  // a 16-bit operand: sums of 64 bits
  uint8_t flip = 0;   // IntForms::data_flip of bytes
  ops::MatMulShape shape;
  int64_t depth = 0;  // in dwords
  int64_t a_zero = 0, b_zero = 0;
  AlignedDwords right;            // [matrix][tile][depth][48]
  std::vector<int64_t> matrices;  // of the right operand: their offsets
  std::vector<size_t> matrix_of;  // per product
  OutputPlan output;
};

// The shape with batches of rows that meet one matrix on the right joined.
std::optional<ops::MatMulShape> shape_of(const KernelQuery& q) {
  if (q.node.op != "int:MatMul" || !int_of(q.inputs[0].dtype) || !int_of(q.inputs[1].dtype)) return std::nullopt;
  auto shape = ops::matmul_shape(q.inputs[0].dims, q.inputs[1].dims);
  if (!shape || shape->output != q.outputs[0].dims) return std::nullopt;
  ops::MatMulShape s = std::move(*shape);
  bool joins = s.a_offsets.size() > 1;
  for (size_t i = 0; i < s.a_offsets.size() && joins; ++i)
    joins = s.b_offsets[i] == s.b_offsets[0] && s.a_offsets[i] == static_cast<int64_t>(i) * s.rows * s.depth;
  if (joins) {
    s.rows *= static_cast<int64_t>(s.a_offsets.size());
    s.a_offsets.resize(1);
    s.b_offsets.resize(1);
  }
  return s;
}

bool is_wide(const KernelQuery& q) { return ops::has_wide_sums(q.inputs[0].dtype, q.inputs[1].dtype); }

std::optional<OutputPlan> output_plan(const KernelQuery& q, int64_t columns) {
  return OutputPlan::create(q, {2, 3, 4}, ops::product_limits(q.inputs[0].dtype, q.inputs[1].dtype, columns));
}

bool accepts(const KernelQuery& q) {
  const auto shape = shape_of(q);
  if (!shape || shape->depth == 0) return false;
  if (!(is_wide(q) ? wide_zero_points_fit(q, shape->columns, 1) : zero_points_fit(q, shape->columns)) ||
      (q.attributes().get_ints("w_zero_point").size() != 1 && !q.inputs[1].constant))
    return false;
  return output_plan(q, shape->columns).has_value();
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->shape = *shape_of(q);
  s->isa = current_isa();
  s->output = *output_plan(q, s->shape.columns);
  s->wide = is_wide(q);
  s->a_zero = q.attributes().get_int("x_zero_point");
  const std::vector<int64_t>& b_zero = q.attributes().get_ints("w_zero_point");
  s->b_zero = b_zero[0];
  const bool is_signed = q.inputs[1].dtype == DType::Int8;
  s->packed = q.inputs[1].constant != nullptr;
  // Bytes are signed on the right and without a zero point; their sums, which the left zero point needs, are known of constants
  // only.
  s->words = s->wide || !int_forms(s->isa).has_bytes || !s->packed;
  for (int64_t z : b_zero) s->words |= z != (is_signed ? 0 : 128);
  std::map<int64_t, size_t> known;
  for (int64_t offset : s->shape.b_offsets) {
    const auto [at, is_new] = known.try_emplace(offset, s->matrices.size());
    s->matrix_of.push_back(at->second);
    if (is_new) s->matrices.push_back(offset);
  }
  if (s->matrices.size() > 1) s->words = true;  // the bias holds the sums of one matrix
  const int64_t per = s->words ? 2 : 4, columns = s->shape.columns, tiles = divide_up(columns, kIntColumns);
  s->depth = divide_up(s->shape.depth, per);
  if (!s->packed) return std::unique_ptr<const KernelState>(std::move(s));

  const int64_t matrix_size = tiles * s->depth * kIntColumns,
                size = static_cast<int64_t>(s->matrices.size()) * matrix_size + kIntColumns;
  if (!s->right.allocate(size)) return out_of_scratch(size * 4);
  std::fill_n(s->right.data(), size, 0);
  const auto* b = static_cast<const uint8_t*>(q.inputs[1].constant->data());
  const int64_t b_bytes = static_cast<int64_t>(dtype_bytes(q.inputs[1].dtype));
  s->flip = s->words ? 0 : int_forms(s->isa).data_flip;
  const int64_t x_zero = s->a_zero + byte_offset(q.inputs[0].dtype) - s->flip;  // of bytes as they are multiplied
  const IntForms& f = int_forms(s->isa);
  pool.parallel_for(static_cast<int64_t>(s->matrices.size()) * tiles, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint8_t* matrix = b + s->matrices[static_cast<size_t>(i / tiles)] * b_bytes;
      const int64_t first = i % tiles * kIntColumns;
      int32_t* to = s->right.data() + i * s->depth * kIntColumns;
      const int64_t count = std::min(kIntColumns, columns - first);
      if (b_zero.size() == 1 || b_bytes == 2) {  // words have no zero points
        IntInterleave p;
        p.words = s->words;
        p.wide = b_bytes == 2;
        p.is_signed = is_signed;
        p.flip = is_signed ? 0 : 0x80;  // signed bytes without their zero point
        p.zero = static_cast<int32_t>(b_zero[0]);
        p.count = count;
        for (int64_t k = 0; k < s->depth; ++k) {
          for (int64_t j = 0; j < per; ++j)
            p.rows[j] = k * per + j < s->shape.depth ? matrix + ((k * per + j) * columns + first) * b_bytes : nullptr;
          p.y = to + k * kIntColumns;
          f.interleave(p);
        }
      } else {
        for (int64_t k = 0; k < s->depth * per; k += per)
          for (int64_t n = 0; n < count; ++n) {
            uint32_t packed = 0;
            for (int64_t j = 0; j < per && k + j < s->shape.depth; ++j) {
              const uint8_t raw = matrix[(k + j) * columns + first + n];
              const int64_t value = (is_signed ? static_cast<int8_t>(raw) : raw) - b_zero[static_cast<size_t>(first + n)];
              packed |= s->words ? static_cast<uint32_t>(static_cast<uint16_t>(value)) << (16 * j)
                                 : static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * j);
            }
            to[k / per * kIntColumns + n] = static_cast<int32_t>(packed);
          }
      }
      if (s->words) continue;
      uint32_t total[kIntColumns] = {};
      const uint32_t zero = is_signed ? 0 : 128;
      for (int64_t k = 0; k < s->shape.depth; ++k) {
        const uint8_t* row = matrix + k * columns + first;
        if (is_signed)
          for (int64_t n = 0; n < count; ++n) total[n] += static_cast<uint32_t>(static_cast<int8_t>(row[n]));
        else
          for (int64_t n = 0; n < count; ++n) total[n] += row[n] - zero;
      }
      for (int64_t n = 0; n < count; ++n) {
        int32_t& bias = s->output.bias[static_cast<size_t>(first + n)];
        bias = static_cast<int32_t>(static_cast<uint32_t>(bias) - static_cast<uint32_t>(x_zero) * total[n]);
      }
    }
  });
  s->right.share(b);
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Rows of the left operand as a panel.
void pack_rows(const State& s, const uint8_t* a, bool is_signed, int64_t rows, int32_t* to, int64_t pitch) {
  IntPanel p;
  p.words = s.words;
  p.is_signed = is_signed;
  p.flip = static_cast<uint8_t>(s.flip ^ (is_signed ? 0x80 : 0));
  p.zero = static_cast<int32_t>(s.a_zero);
  p.x = a;
  p.rows = rows;
  p.row_stride = p.depth = s.shape.depth;
  p.y = to;
  p.pitch = pitch;
  int_forms(s.isa).panel(p);
}

// The same for wide sums: low halves, and high ones `to_high` after them.
template <class T>
void pack_halves(const State& s, const T* a, int64_t rows, int32_t* to, int64_t to_high, int64_t pitch) {
  const int64_t depth = s.shape.depth;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t k = 0; k < depth; k += 2) {
      const int64_t first = a[r * depth + k] - s.a_zero, second = k + 1 < depth ? a[r * depth + k + 1] - s.a_zero : 0;
      int32_t* at = to + k / 2 * pitch + r;
      *at = low_half(first) | low_half(second) << 16;
      at[to_high] = static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint16_t>(high_half(first))) |
                                         static_cast<uint32_t>(static_cast<uint16_t>(high_half(second))) << 16);
    }
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms(s.isa);
  const ops::MatMulShape& shape = s.shape;
  const int64_t products = static_cast<int64_t>(shape.a_offsets.size()), matrices = static_cast<int64_t>(s.matrices.size());
  const int64_t tiles = divide_up(shape.columns, kIntColumns), panels = divide_up(shape.rows, kIntRows),
                pitch = shape.rows == 1 && !s.wide ? 1 : kIntRows, panel_size = s.depth * pitch;
  const int64_t half_size = products * panels * panel_size, matrix_size = tiles * s.depth * kIntColumns,
                left_size = s.wide ? 2 * half_size : half_size, right_size = s.packed ? 0 : matrices * matrix_size + kIntColumns;
  auto* left = reinterpret_cast<int32_t*>(c.scratch(static_cast<size_t>((left_size + right_size) * 4)));
  if (!left) return out_of_scratch((left_size + right_size) * 4);
  const bool a_signed = c.inputs[0].dtype == DType::Int8, b_signed = c.inputs[1].dtype == DType::Int8;
  const auto *a = static_cast<const uint8_t*>(c.inputs[0].data), *b = static_cast<const uint8_t*>(c.inputs[1].data);
  const int64_t b_bytes = static_cast<int64_t>(dtype_bytes(c.inputs[1].dtype));
  const int64_t panels_per_piece = std::max<int64_t>(1, (1 << 13) / panel_size);
  c.pool.parallel_for(products * panels, panels_per_piece, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i % panels * kIntRows, rows = std::min(kIntRows, shape.rows - row);
      const int64_t at = shape.a_offsets[static_cast<size_t>(i / panels)] + row * shape.depth;
      if (s.wide) {
        if (c.inputs[0].dtype == DType::Int16)
          pack_halves(s, reinterpret_cast<const int16_t*>(a) + at, rows, left + i * panel_size, half_size, pitch);
        else if (a_signed)
          pack_halves(s, reinterpret_cast<const int8_t*>(a) + at, rows, left + i * panel_size, half_size, pitch);
        else
          pack_halves(s, a + at, rows, left + i * panel_size, half_size, pitch);
        continue;
      }
      pack_rows(s, a + at, a_signed, rows, left + i * panel_size, pitch);
    }
  });
  const int32_t* right = s.right.data();
  if (!s.packed) {
    int32_t* to = left + left_size;
    right = to;
    c.pool.parallel_for(matrices * tiles, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const uint8_t* matrix = b + (s.matrices[static_cast<size_t>(i / tiles)] + i % tiles * kIntColumns) * b_bytes;
        IntInterleave p;
        p.words = true;
        p.wide = b_bytes == 2;
        p.is_signed = b_signed;
        p.zero = static_cast<int32_t>(s.b_zero);
        p.count = std::min(kIntColumns, shape.columns - i % tiles * kIntColumns);
        for (int64_t k = 0; k < s.depth; ++k) {
          p.rows[0] = matrix + 2 * k * shape.columns * b_bytes;
          p.rows[1] = 2 * k + 1 < shape.depth ? matrix + (2 * k + 1) * shape.columns * b_bytes : nullptr;
          p.y = to + (i * s.depth + k) * kIntColumns;
          f.interleave(p);
        }
      }
    });
  }

  const auto* addend = s.output.has_addend ? static_cast<const std::byte*>(c.inputs[s.output.addend_slot].data) : nullptr;
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  const int64_t bytes = int_bytes(s.output.type), addend_bytes = int_bytes(s.output.addend_type), threads = c.pool.threads();
  // Some tiles of the right operand stay in the cache while the rows pass.
  int64_t block = std::clamp<int64_t>(kRightBlock / (s.depth * kIntColumns * 4), 1, tiles);
  block = std::clamp<int64_t>(tiles / std::max<int64_t>(1, 4 * threads / (products * divide_up(panels, 8))), 1, block);
  const int64_t column_blocks = divide_up(tiles, block), panel_block = 8, row_blocks = divide_up(panels, panel_block);
  for_each_job(c.pool, products * column_blocks * row_blocks, [&](int64_t job, int64_t) {
    const int64_t product = job / (column_blocks * row_blocks), first_tile = job / row_blocks % column_blocks * block,
                  first_panel = job % row_blocks * panel_block;
    alignas(64) int32_t sums[kIntRows * kIntColumns], high_sums[kIntRows * kIntColumns];
    alignas(64) int64_t wide_sums[kIntRows * kIntColumns];
    IntTile t;
    t.dot = s.words ? Dot::Words : Dot::BytesAUnsigned;
    t.depth = s.depth;
    t.sums = sums;
    for (int64_t tile = first_tile; tile < std::min(first_tile + block, tiles); ++tile) {
      t.columns = std::min(kIntColumns, shape.columns - tile * kIntColumns);
      t.b = reinterpret_cast<const std::byte*>(
          right + (static_cast<int64_t>(s.matrix_of[static_cast<size_t>(product)]) * tiles + tile) * s.depth * kIntColumns);
      for (int64_t panel = first_panel; panel < std::min(first_panel + panel_block, panels); ++panel) {
        t.a = left + (product * panels + panel) * panel_size;
        t.rows = std::min(kIntRows, shape.rows - panel * kIntRows);
        if (s.wide)
          wide_tile(f, t, t.a + half_size, nullptr, sums, high_sums, wide_sums);
        else if (pitch == 1)
          f.row({t.dot, t.a, t.b, t.offsets, t.b_stride, t.depth, t.columns, sums});
        else
          f.tile(t);
        const int64_t at = (product * shape.rows + panel * kIntRows) * shape.columns + tile * kIntColumns;
        IntConvert to = s.output.row(tile * kIntColumns, addend ? addend + at * addend_bytes : nullptr, y + at * bytes);
        to.rows = t.rows;
        to.sums_stride = kIntColumns;
        to.y_stride = to.addend_stride = shape.columns;
        if (s.wide)
          f.convert_wide(to, wide_sums, t.columns);
        else
          convert(f, s.output, to, sums, t.columns);
      }
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_matmul() {
  static const Kernel kernels[] = {{"int_matmul", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
