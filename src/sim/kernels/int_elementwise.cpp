// Two-operand arithmetic of integers with broadcasting, and functions of one 8-bit value, the same for all or one per channel.
#include <algorithm>
#include <array>
#include <cmath>

#include "ops/support/elementwise.h"
#include "ops/support/requantize.h"
#include "sim/kernels/support/blocked.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

struct BinaryState : KernelState {
  ops::Broadcast plan;
  IntBinary core;  // without addresses
  bool is_float_enough = false;
};

std::optional<IntBinaryOp> binary_op(std::string_view name) {
  if (name == "int:Add") return IntBinaryOp::Add;
  if (name == "int:Mul") return IntBinaryOp::Multiply;
  if (name == "int:Max") return IntBinaryOp::Max;
  if (name == "int:Min") return IntBinaryOp::Min;
  return std::nullopt;
}

// Floats decide where the sums of both operands stay small, which 8-bit data have.
bool set_scales(IntBinary& c) {
  const double gain = std::ldexp(c.factor, -c.shift);
  const double a_reach = static_cast<double>(int_reach(c.a_type, c.a_zero)),
               b_reach = static_cast<double>(int_reach(c.b_type, c.b_zero));
  const bool product = c.op == IntBinaryOp::Multiply;
  // A negative factor after the choice of an operand is not one before it.
  if (gain < 0 && (c.op == IntBinaryOp::Max || c.op == IntBinaryOp::Min)) return false;
  const double a_scale = product ? gain : gain * c.a_factor, b_scale = product ? 0 : gain * std::ldexp(c.b_factor, -c.b_shift);
  FloatCheck check{.gain = std::abs(gain), .roundings = product ? 0 : 0.5, .zero = c.zero, .low = c.low, .high = c.high};
  check.reach = product ? 0 : std::abs(a_scale) * a_reach + std::abs(b_scale) * b_reach;
  const std::optional<float> margin = float_margin(check);
  if (!margin || a_reach * b_reach * std::max(1.0, std::abs(gain)) > 1 << 30 || std::abs(c.factor) > kMostInDoubles) return false;
  c.a_scale = static_cast<float>(a_scale);
  c.b_scale = static_cast<float>(b_scale);
  c.margin = *margin;
  c.gain = gain;
  c.b_gain = std::ldexp(c.b_factor, -c.b_shift);
  return true;
}

std::unique_ptr<BinaryState> plan_binary(const KernelQuery& q) {
  const std::optional<IntBinaryOp> op = binary_op(q.node.op);
  if (!op) return nullptr;
  const std::optional<Int> a = int_of(q.inputs[0].dtype), b = int_of(q.inputs[1].dtype);
  const auto output = OutputPlan::create(q, {kNoSlot, kNoSlot, 2}, {.max_factor = ops::kMaxBinaryFactor});
  const auto scale = ops::read_binary_scale(q.attributes());
  if (!a || !b || !output || !scale) return nullptr;
  auto plan = ops::Broadcast::plan({q.inputs[0].dims, q.inputs[1].dims});
  if (!plan || !std::ranges::equal(plan->dims(), q.outputs[0].dims)) return nullptr;
  auto s = std::make_unique<BinaryState>();
  s->plan = std::move(*plan);
  IntBinary& c = s->core;
  c.op = *op;
  c.a_type = *a;
  c.b_type = *b;
  c.a_dense = s->plan.step(0) != 0;
  c.b_dense = s->plan.step(1) != 0;
  c.a_zero = static_cast<int32_t>(scale->a_zero);
  c.b_zero = static_cast<int32_t>(scale->b_zero);
  c.a_factor = static_cast<int32_t>(scale->a_factor);
  c.b_factor = static_cast<int32_t>(scale->b_factor);
  c.b_shift = static_cast<int32_t>(scale->b_shift);
  c.factor = output->factor[0];
  c.shift = output->shift[0];
  c.zero = output->zero;
  c.low = output->low;
  c.high = output->high;
  c.table = output->table ? output->table->data() : nullptr;
  c.type = output->type;
  s->is_float_enough = set_scales(c);
  return s;
}

bool accepts_binary(const KernelQuery& q) { return plan_binary(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_binary(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_binary(q));
}

Status run_binary(KernelContext& c, const KernelState* state) {
  const BinaryState& s = *static_cast<const BinaryState*>(state);
  const IntForms& f = int_forms();
  const auto *a = static_cast<const std::byte*>(c.inputs[0].data), *b = static_cast<const std::byte*>(c.inputs[1].data);
  auto* y = static_cast<std::byte*>(c.outputs[0].data);
  s.plan.for_rows(c.pool, [&](int64_t out, const int64_t* in, int64_t count) {
    IntBinary core = s.core;
    core.a = a + in[0] * int_bytes(core.a_type);
    core.b = b + in[1] * int_bytes(core.b_type);
    core.y = y + out * int_bytes(core.type);
    if (s.is_float_enough)
      f.binary(core, count);
    else
      binary_exactly(core, count);
  });
  return {};
}

// Maps in blocks: operands that are such maps, or one value per channel, or one for all.
struct BlockedBinaryState : KernelState {
  enum class Kind { Map, Channels, One };
  IntBinary core;  // without addresses of maps and channels
  bool is_float_enough = false;
  Kind kind[2] = {};
  std::vector<uint8_t> channels[2];  // of constants, in blocks
  OutputPlan output;                 // owns the table
};

std::unique_ptr<BlockedBinaryState> plan_blocked_binary(const KernelQuery& q) {
  using Kind = BlockedBinaryState::Kind;
  const ir::Dims& dims = q.outputs[0].dims;
  std::unique_ptr<BinaryState> rows = plan_binary(q);
  if (!rows || dims.size() != 4) return nullptr;
  auto s = std::make_unique<BlockedBinaryState>();
  IntBinary& c = s->core;
  c = rows->core;
  Int* types[] = {&c.a_type, &c.b_type};
  int32_t* zeros[] = {&c.a_zero, &c.b_zero};
  for (size_t i = 0; i < 2; ++i) {
    const OperandFacts& o = q.inputs[i];
    if (!is_byte(o.dtype)) return nullptr;
    const bool per_channel = o.dims == ir::Dims{1, dims[1], 1, 1} && dims[0] == 1;
    s->kind[i] = o.dims == dims && in_blocks(o) ? Kind::Map : per_channel ? Kind::Channels : Kind::One;
    if (o.constant && s->kind[i] == Kind::Channels) {
      s->channels[i].resize(static_cast<size_t>(blocked_bytes(o.dims)));
      to_blocks(o.constant->view(), s->channels[i].data(), ThreadPool::shared());
    } else if (s->kind[i] == Kind::One) {
      if (!o.constant || o.constant->count() != 1) return nullptr;
      continue;
    } else if (!in_blocks(o)) {
      return nullptr;
    }
    *zeros[i] += byte_offset(o.dtype);
    *types[i] = Int::Unsigned8;
  }
  if (s->kind[0] != Kind::Map && s->kind[1] != Kind::Map) return nullptr;
  auto output = OutputPlan::create(q, {kNoSlot, kNoSlot, 2}, {.max_factor = ops::kMaxBinaryFactor});
  if (!output->is_bytes()) return nullptr;
  s->output = std::move(*output);
  s->output.make_unsigned();
  c.type = s->output.type;
  c.zero = s->output.zero;
  c.low = s->output.low;
  c.high = s->output.high;
  c.a_dense = s->kind[0] != Kind::One;
  c.b_dense = s->kind[1] != Kind::One;
  s->is_float_enough = set_scales(c);
  return s;
}

bool accepts_blocked_binary(const KernelQuery& q) { return plan_blocked_binary(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_blocked_binary(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_blocked_binary(q));
}

Status run_blocked_binary(KernelContext& c, const KernelState* state) {
  using Kind = BlockedBinaryState::Kind;
  const auto& s = *static_cast<const BlockedBinaryState*>(state);
  const IntForms& f = int_forms();
  const bool has_channels = s.kind[0] == Kind::Channels || s.kind[1] == Kind::Channels;
  const int64_t total = blocked_bytes(c.outputs[0].dims), plane = c.outputs[0].dims[2] * c.outputs[0].dims[3] * kBlock;
  constexpr int64_t kRepeated = 64 * kBlock, kPiece = 1 << 14;  // bytes: of a repeated block, of a piece of work
  const int64_t piece = std::min(plane, has_channels ? kRepeated : kPiece), pieces = divide_up(plane, piece),
                blocks = total / plane;
  c.pool.parallel_for(blocks * pieces, std::max<int64_t>(1, kPiece / piece), [&](int64_t begin, int64_t end) {
    alignas(64) uint8_t repeated[2][kRepeated];
    int64_t held = -1;
    for (int64_t i = begin; i < end; ++i) {
      // The values of a block are repeated once for all its pieces; otherwise threads keep to their pixels (for_each_part).
      const int64_t block = has_channels ? i / pieces : i % blocks, first = (has_channels ? i % pieces : i / blocks) * piece,
                    place = block * plane + first;
      IntBinary core = s.core;
      const void** data[] = {&core.a, &core.b};
      for (size_t k = 0; k < 2; ++k) {
        const auto* x = static_cast<const uint8_t*>(s.channels[k].empty() ? c.inputs[k].data : s.channels[k].data());
        if (s.kind[k] == Kind::Channels && held != block)
          for (int64_t at = 0; at < kRepeated; at += kBlock) std::copy_n(x + block * kBlock, kBlock, repeated[k] + at);
        *data[k] = s.kind[k] == Kind::Map ? x + place : s.kind[k] == Kind::Channels ? repeated[k] : x;
      }
      held = block;
      core.table = s.output.table ? s.output.byte_table.data() : nullptr;
      core.y = static_cast<uint8_t*>(c.outputs[0].data) + place;
      const int64_t count = std::min(piece, plane - first);
      if (s.is_float_enough)
        f.binary(core, count);
      else
        binary_exactly(core, count);
    }
  });
  return {};
}

// Entry v is the result of the byte v, whatever its sign.
struct TableState : KernelState {
  std::array<uint8_t, 256> entries;
};

bool accepts_table(const KernelQuery& q) {
  return q.node.op == "int:Table" && q.node.tail.empty() && is_byte(q.inputs[0].dtype) && is_byte(q.inputs[1].dtype) &&
         q.inputs[1].constant && q.inputs[1].constant->count() == 256 && q.outputs[0].dtype == q.inputs[1].dtype &&
         q.outputs[0].dims == q.inputs[0].dims;
}

Result<std::unique_ptr<const KernelState>> prepare_table(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<TableState>();
  const size_t flip = q.inputs[0].dtype == DType::Int8 ? 0x80 : 0;
  for (size_t i = 0; i < 256; ++i) s->entries[i] = static_cast<const uint8_t*>(q.inputs[1].constant->data())[i ^ flip];
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Bytes of blocks are unsigned.
bool accepts_blocked_table(const KernelQuery& q) { return in_blocks(q.inputs[0]) && accepts_table(q); }

Result<std::unique_ptr<const KernelState>> prepare_blocked_table(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<TableState>();
  const uint8_t flip = q.outputs[0].dtype == DType::Int8 ? 0x80 : 0;
  for (size_t i = 0; i < 256; ++i)
    s->entries[i] = static_cast<uint8_t>(static_cast<const uint8_t*>(q.inputs[1].constant->data())[i] ^ flip);
  return std::unique_ptr<const KernelState>(std::move(s));
}

// Tables of other sizes: bytes to words, and 65536 entries of words.
bool accepts_large_table(const KernelQuery& q) {
  return q.node.op == "int:Table" && q.node.tail.empty() && int_of(q.inputs[0].dtype) && int_of(q.inputs[1].dtype) &&
         q.inputs[1].constant && q.inputs[1].constant->count() == (q.inputs[0].dtype == DType::Int16 ? 65536 : 256) &&
         q.outputs[0].dtype == q.inputs[1].dtype && q.outputs[0].dims == q.inputs[0].dims;
}

template <class X, class Y>
void look_up(ThreadPool& pool, const X* x, const Y* table, size_t flip, Y* y, int64_t count) {
  constexpr int64_t kGrain = 1 << 14;
  pool.parallel_for(count, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = table[x[i] ^ flip];
  });
}

Status run_large_table(KernelContext& c, const KernelState*) {
  const ir::TensorView &x = c.inputs[0], &table = c.inputs[1];
  const ir::MutableTensorView& y = c.outputs[0];
  const auto with = [&]<class X>(const X* from, size_t flip) {
    if (y.dtype == DType::Int16)
      look_up(c.pool, from, table.as<int16_t>(), flip, y.as<int16_t>(), x.count());
    else
      look_up(c.pool, from, table.as<uint8_t>(), flip, y.as<uint8_t>(), x.count());
  };
  if (x.dtype == DType::Int16)
    with(x.as<uint16_t>(), 0x8000);
  else
    with(x.as<uint8_t>(), x.dtype == DType::Int8 ? 0x80 : 0);
  return {};
}

Status run_table(KernelContext& c, const KernelState* state) {
  constexpr int64_t kGrain = 1 << 15;
  const IntForms& f = int_forms();
  const uint8_t* table = static_cast<const TableState*>(state)->entries.data();
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  c.pool.parallel_for(c.outputs[0].count(), kGrain,
                      [&](int64_t begin, int64_t end) { f.lookup(x + begin, table, y + begin, end - begin); });
  return {};
}
Status run_blocked_table(KernelContext& c, const KernelState* state) {
  const IntForms& f = int_forms();
  const uint8_t* table = static_cast<const TableState*>(state)->entries.data();
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  const ir::MutableTensorView& out = c.outputs[0];
  for_each_part(out.dims, c.pool, [&](int64_t plane, int64_t pixel, int64_t pixels) {
    const int64_t at = (plane * out.dims[2] * out.dims[3] + pixel) * kBlock;
    f.lookup(x + at, table, y + at, pixels * kBlock);
  });
  return {};
}

// int:PRelu: a table per channel.
struct ChannelTablesState : KernelState {
  int64_t channels = 1, inner = 1;
  std::vector<uint8_t> entries;  // [channel][byte]
};

std::unique_ptr<ChannelTablesState> plan_prelu(const KernelQuery& q) {
  if (q.node.op != "int:PRelu" || !q.node.tail.empty() || !is_byte(q.inputs[0].dtype) || q.outputs[0].dims != q.inputs[0].dims)
    return nullptr;
  const ir::NodeReader node = q.attributes();
  const ir::Dims& dims = q.inputs[0].dims;
  const auto axis = ir::normalize_axis(node.get_int("axis"), static_cast<int64_t>(dims.size()));
  const auto zero = ops::read_zero_point(node, "x_zero_point");
  if (!axis || !zero) return nullptr;
  auto s = std::make_unique<ChannelTablesState>();
  s->channels = dims[static_cast<size_t>(*axis)];
  s->inner = ir::element_count(std::span(dims).subspan(static_cast<size_t>(*axis) + 1));
  const auto stage = ops::read_output_stage(node, {}, {.channels = s->channels});
  if (!stage || !is_byte(stage->dtype) || stage->dtype != q.outputs[0].dtype) return nullptr;
  const bool is_signed = q.inputs[0].dtype == DType::Int8;
  s->entries.reserve(static_cast<size_t>(s->channels) * 256);
  for (int64_t c = 0; c < s->channels; ++c)
    for (int v = 0; v < 256; ++v)
      s->entries.push_back(
          static_cast<uint8_t>(stage->finish(stage->scaled((is_signed ? static_cast<int8_t>(v) : v) - *zero, c))));
  return s;
}

bool accepts_prelu(const KernelQuery& q) { return plan_prelu(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare_prelu(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan_prelu(q));
}

Status run_prelu(KernelContext& c, const KernelState* state) {
  constexpr int64_t kGrain = 1 << 15;
  const auto& s = *static_cast<const ChannelTablesState*>(state);
  const IntForms& f = int_forms();
  const auto* x = static_cast<const uint8_t*>(c.inputs[0].data);
  auto* y = static_cast<uint8_t*>(c.outputs[0].data);
  if (c.outputs[0].count() == 0) return {};
  c.pool.parallel_for(c.outputs[0].count() / s.inner, std::max<int64_t>(1, kGrain / s.inner), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane)
      f.lookup(x + plane * s.inner, s.entries.data() + plane % s.channels * 256, y + plane * s.inner, s.inner);
  });
  return {};
}
}  // namespace

std::span<const Kernel> int_elementwise() {
  static const Kernel kernels[] = {
      {"blocked_binary", accepts_blocked_binary, prepare_blocked_binary, run_blocked_binary, Blocks::Continue},
      {"blocked_table", accepts_blocked_table, prepare_blocked_table, run_blocked_table, Blocks::Continue},
      {"int_binary", accepts_binary, prepare_binary, run_binary},
      {"int_table", accepts_table, prepare_table, run_table},
      {"int_prelu", accepts_prelu, prepare_prelu, run_prelu},
      {"int_large_table", accepts_large_table, nullptr, run_large_table}};
  return kernels;
}

}  // namespace orknn::sim
