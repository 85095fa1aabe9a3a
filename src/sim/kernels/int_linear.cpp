// Products of 8-bit rows with constant weights: what a convolution of one tap is to a feature map in blocks, with rows for
// pixels.
#include <algorithm>
#include <cstring>

#include "ops/support/matrix.h"
#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kRows = 112;  // converted at a time

struct State : KernelState {
  Isa isa = Isa::Portable;
  Dot dot = Dot::Words;
  uint8_t flip = 0;  // IntForms::data_flip of bytes
  int64_t rows = 0, depth = 0, columns = 0;
  int64_t pieces = 0;  // of depth
  std::vector<int32_t> offsets;
  int64_t together = 1;   // blocks of columns that are computed at once
  AlignedDwords weights;  // [as many blocks][dword][block][kBlock]
  OutputPlan output;
  std::vector<IntConvert> converters;

  int64_t per_dword() const { return dot == Dot::Words ? 2 : 4; }
  int64_t piece_bytes() const { return kBlock * 4 / per_dword(); }
};

std::unique_ptr<State> plan(const KernelQuery& q) {
  if (q.node.op != "int:MatMul" || !is_byte(q.inputs[0].dtype) || !is_byte(q.inputs[1].dtype) || !q.inputs[1].constant)
    return nullptr;
  const auto shape = ops::matmul_shape(q.inputs[0].dims, q.inputs[1].dims);
  if (!shape || shape->output != q.outputs[0].dims || shape->depth == 0) return nullptr;
  for (size_t i = 0; i < shape->a_offsets.size(); ++i)
    if (shape->b_offsets[i] != 0 || shape->a_offsets[i] != static_cast<int64_t>(i) * shape->rows * shape->depth) return nullptr;
  auto s = std::make_unique<State>();
  s->rows = shape->rows * static_cast<int64_t>(shape->a_offsets.size());
  s->depth = shape->depth;
  s->columns = shape->columns;
  if (s->rows * s->depth > INT32_MAX / 4 || !zero_points_fit(q, s->columns)) return nullptr;
  auto output = OutputPlan::create(q, {2, 3, 4}, ops::product_limits(q.inputs[0].dtype, q.inputs[1].dtype, s->columns));
  if (!output || !output->is_bytes()) return nullptr;
  s->output = std::move(*output);
  s->output.make_unsigned();
  s->isa = current_isa();
  const std::vector<int64_t>& zeros = q.attributes().get_ints("w_zero_point");
  const int64_t middle = q.inputs[1].dtype == DType::Int8 ? 0 : 128;
  const bool bytes = int_forms(s->isa).has_bytes && std::ranges::all_of(zeros, [&](int64_t z) { return z == middle; });
  s->dot = bytes ? Dot::BytesBUnsigned : Dot::Words;
  s->flip = bytes ? int_forms(s->isa).data_flip : 0;
  s->pieces = divide_up(s->depth, kBlock);
  s->together = int_forms(s->isa).blocked_blocks;
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  std::unique_ptr<State> s = plan(q);
  const int64_t blocks = blocks_of(s->columns), per = s->per_dword(), dwords = s->pieces * kBlock / per;
  for (int64_t piece = 0; piece < s->pieces; ++piece)
    s->offsets.push_back(static_cast<int32_t>(piece * s->rows * s->piece_bytes()));
  if (!s->weights.allocate(blocks * kBlock * dwords)) return out_of_scratch(blocks * kBlock * dwords * 4);
  const auto* w = static_cast<const uint8_t*>(q.inputs[1].constant->data());
  const bool is_signed = q.inputs[1].dtype == DType::Int8;
  const std::vector<int64_t>& zeros = q.attributes().get_ints("w_zero_point");
  const int64_t x_zero = q.attributes().get_int("x_zero_point") + byte_offset(q.inputs[0].dtype) - s->flip;
  pool.parallel_for(divide_up(blocks, s->together), 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t first = group * s->together * kBlock, count = std::min(s->together, blocks - group * s->together) * kBlock;
      int32_t* to = s->weights.data() + first * dwords;
      std::vector<uint32_t> sums(static_cast<size_t>(count));
      for (int64_t d = 0; d < dwords; ++d)
        for (int64_t o = 0; o < count; ++o) {
          uint32_t packed = 0;
          for (int64_t j = 0; j < per && first + o < s->columns && d * per + j < s->depth; ++j) {
            const uint8_t raw = w[(d * per + j) * s->columns + first + o];
            const int64_t value =
                (is_signed ? static_cast<int8_t>(raw) : raw) - zeros[zeros.size() == 1 ? 0 : static_cast<size_t>(first + o)];
            sums[static_cast<size_t>(o)] += static_cast<uint32_t>(value);
            packed |= per == 2 ? static_cast<uint32_t>(static_cast<uint16_t>(value)) << (16 * j)
                               : static_cast<uint32_t>(static_cast<uint8_t>(value)) << (8 * j);
          }
          *to++ = static_cast<int32_t>(packed);
        }
      for (int64_t o = 0; o < count && first + o < s->columns; ++o) {
        int32_t& bias = s->output.bias[static_cast<size_t>(first + o)];
        bias = static_cast<int32_t>(static_cast<uint32_t>(bias) - static_cast<uint32_t>(x_zero) * sums[static_cast<size_t>(o)]);
      }
    }
  });
  s->weights.share(w);
  for (int64_t block = 0; block < blocks; ++block) {
    s->converters.push_back(s->output.row(block * kBlock, nullptr, nullptr));
    if (s->output.has_addend) s->converters.back().addend = s->weights.data();  // says only that there is one
  }
  return std::unique_ptr<const KernelState>(std::move(s));
}

// `count` of up to kBlock bytes of every row, whose sign bit changes with `flip`.
struct Columns {
  const uint8_t* from = nullptr;
  int64_t from_stride = 0;
  uint8_t* to = nullptr;
  int64_t to_stride = 0;
  int64_t rows = 0, count = kBlock;
  uint8_t flip = 0;
};
void copy_columns(const Columns& c) {
  if (c.count == kBlock) {
    const Pixel flips = Pixel{} + c.flip;
    for (int64_t i = 0; i < c.rows; ++i) store_pixel(c.to + i * c.to_stride, load_pixel(c.from + i * c.from_stride) ^ flips);
    return;
  }
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.count; ++j)
      c.to[i * c.to_stride + j] = static_cast<uint8_t>(c.from[i * c.from_stride + j] ^ c.flip);
}

// One piece of the depth of all rows.
void stage_piece(const State& s, const IntForms& f, const uint8_t* x, uint8_t flip, int64_t piece, std::byte* to, uint8_t* line) {
  std::byte* place = to + piece * s.rows * s.piece_bytes();
  Columns c;
  c.from = x + piece * kBlock;
  c.from_stride = s.depth;
  c.to_stride = kBlock;
  c.flip = flip;
  c.count = std::min(kBlock, s.depth - piece * kBlock);
  constexpr int64_t kChunk = 64;
  for (int64_t row = 0; row < s.rows; row += kChunk) {
    c.rows = std::min(kChunk, s.rows - row);
    c.to = s.dot == Dot::Words ? line : reinterpret_cast<uint8_t*>(place + row * kBlock);
    if (c.count < kBlock) std::memset(c.to, 0, static_cast<size_t>(c.rows * kBlock));
    copy_columns(c);
    c.from += kChunk * c.from_stride;
    if (s.dot == Dot::Words) f.widen_bytes(line, c.rows * kBlock, reinterpret_cast<int16_t*>(place + row * s.piece_bytes()));
  }
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const IntForms& f = int_forms(s.isa);
  const int64_t threads = c.pool.threads(), blocks = blocks_of(s.columns), groups = divide_up(blocks, s.together);
  const int64_t staged_bytes = divide_up(s.pieces * s.rows * s.piece_bytes(), 64) * 64, block_bytes = kRows * kBlock,
                worker_bytes = 2 * s.together * block_bytes;
  std::byte* scratch = c.scratch(static_cast<size_t>(staged_bytes + threads * worker_bytes));
  if (!scratch) return out_of_scratch(staged_bytes + threads * worker_bytes);
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  const uint8_t flip = s.flip ^ (c.inputs[0].dtype == DType::Int8 ? 0x80 : 0);
  c.pool.parallel_for(s.pieces, std::max<int64_t>(1, (1 << 14) / (s.rows * kBlock)), [&](int64_t begin, int64_t end) {
    alignas(64) uint8_t line[64 * kBlock];
    for (int64_t piece = begin; piece < end; ++piece) stage_piece(s, f, x, flip, piece, scratch, line);
  });
  const auto* addend = s.output.has_addend ? static_cast<const uint8_t*>(c.inputs[s.output.addend_slot].data) : nullptr;
  const uint8_t addend_flip = addend && c.inputs[s.output.addend_slot].dtype == DType::Int8 ? 0x80 : 0,
                y_flip = c.outputs[0].dtype == DType::Int8 ? 0x80 : 0;
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const int64_t chunks = divide_up(s.rows, kRows);
  // The rows of a chunk pass by the weights of some columns.
  const int64_t group_chunk = threads == 1 ? 1 : std::max<int64_t>(1, groups * chunks / (8 * threads));
  const int64_t dwords = s.pieces * kBlock / s.per_dword();
  for_each_job(c.pool, divide_up(groups, group_chunk), [&](int64_t job, int64_t worker) {
    auto* results = reinterpret_cast<uint8_t*>(scratch + staged_bytes + worker * worker_bytes);
    uint8_t* operands = results + s.together * block_bytes;
    BlockedProduct p;
    p.dot = s.dot;
    p.offsets = s.offsets.data();
    p.whole = s.pieces;
    p.is_float_enough = s.output.is_float_enough;
    p.y_block = block_bytes;
    p.y = results;
    p.addend = addend ? operands : nullptr;
    for (int64_t group = job * group_chunk; group < std::min((job + 1) * group_chunk, groups); ++group) {
      const int64_t block = group * s.together;
      p.blocks = std::min(s.together, blocks - block);
      p.weights = s.weights.data() + block * kBlock * dwords;
      p.to = s.converters.data() + block;
      for (int64_t first = 0; first < s.rows; first += kRows) {
        p.pixels = std::min(kRows, s.rows - first);
        p.x = reinterpret_cast<const uint8_t*>(scratch) + first * s.piece_bytes();
        const auto place = [&](int64_t b) { return first * s.columns + (block + b) * kBlock; };
        const auto width = [&](int64_t b) { return std::min(kBlock, s.columns - (block + b) * kBlock); };
        for (int64_t b = 0; b < p.blocks && addend; ++b)
          copy_columns({addend + place(b), s.columns, operands + b * block_bytes, kBlock, p.pixels, width(b), addend_flip});
        f.blocked_product(p);
        for (int64_t b = 0; b < p.blocks; ++b)
          copy_columns({results + b * block_bytes, kBlock, y + place(b), s.columns, p.pixels, width(b), y_flip});
      }
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_linear() {
  static const Kernel kernels[] = {{"int_linear", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
