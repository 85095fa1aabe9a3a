// Functions by the DPU's tables, in a task of the DPU alone.
#include <cmath>

#include "base/half.h"
#include "silicon/recipe.h"

namespace orknn::silicon {
namespace {
using namespace field;

constexpr int64_t kLanes = lanes_of(Precision::Half);
constexpr int64_t kMostColumns = 4096;  // of a task: the last columns of the widest one came out wrong on a board
constexpr int64_t kIndexRange = 16384, kIndexStep = 32;

// Tables go through a port: an address, then entry after entry.
void insert_tables(Stream& stream, const TableLayer& l) {
  Stream port;
  for (const bool second : {false, true}) {
    const uint32_t config = DPU_LUT_ACCESS_CFG_WRITE.mask() | (second ? DPU_LUT_ACCESS_CFG_TABLE.mask() : 0);
    port.push_back(encode({Target::Dpu, reg::DPU_LUT_ACCESS_CFG, config}));
    for (const uint16_t entry : second ? l.high : l.low) port.push_back(encode({Target::Dpu, reg::DPU_LUT_ACCESS_DATA, entry}));
  }
  constexpr int64_t kPointers = 2;
  stream.insert(stream.begin() + kPointers, port.begin(), port.end());
}

Stream piece_stream(const TableLayer& l, int64_t columns, uint32_t input, uint32_t output) {
  Registers r = cleared({Block::Dpu, Block::DpuRdma}, {reg::DPU_LUT_ACCESS_CFG, reg::DPU_LUT_ACCESS_DATA});
  const int64_t plane = columns * kAtomBytes;
  r.set(reg::DPU_S_POINTER, 0xe);
  r.set(reg::RDMA_S_POINTER, 0xe);
  r.set(reg::DPU_FEATURE_MODE_CFG, 0x1e5);
  r.set(reg::DPU_DATA_FORMAT, 0x48000002);
  r.set(reg::DPU_DST_BASE_ADDR, output);
  r.set(reg::DPU_DST_SURF_STRIDE, static_cast<uint32_t>(plane));
  for (const Field f : {DPU_DATA_CUBE_WIDTH_WIDTH, DPU_WDMA_SIZE_1_WIDTH, RDMA_DATA_CUBE_WIDTH_WIDTH}) r.set(f, columns - 1);
  for (const Field f : {DPU_DATA_CUBE_CHANNEL_CHANNEL, DPU_DATA_CUBE_CHANNEL_REAL_CHANNEL, DPU_WDMA_SIZE_0_CHANNEL,
                        RDMA_DATA_CUBE_CHANNEL_CHANNEL})
    r.set(f, kLanes - 1);
  r.set(reg::DPU_BS_CFG, 0x53);
  r.set(reg::DPU_BS_OW_CFG, 0x2);
  r.set(reg::DPU_BN_CFG, 0x20040);
  r.set(reg::DPU_BN_ALU_CFG, 0x80000000);  // minus zero, a float
  r.set(reg::DPU_BN_MUL_CFG, static_cast<uint32_t>(float_to_half(l.index_scale)) << 16);
  r.set(reg::DPU_EW_CFG, 0x300);
  r.set(reg::DPU_EW_CVT_SCALE_VALUE, 1);
  r.set(DPU_OUT_CVT_OFFSET_OFFSET, l.offset);
  r.set(reg::DPU_OUT_CVT_SCALE, 0x10001);
  r.set(DPU_OUT_CVT_SHIFT_MINUS_EXP, l.exponent);
  r.set(DPU_OUT_CVT_SHIFT_CVT_TYPE, 1);
  r.set(reg::DPU_SURFACE_ADD, static_cast<uint32_t>(plane));
  r.set(reg::DPU_LUT_CFG, 0x68);
  r.set(reg::DPU_LUT_INFO, 0x50500);
  r.set(DPU_LUT_LE_START_VALUE, -kIndexRange);
  r.set(DPU_LUT_LO_END_VALUE, kIndexRange);
  r.set(DPU_LUT_LE_SLOPE_SCALE_UNDER, l.slope_scale);
  r.set(DPU_LUT_LE_SLOPE_SHIFT_UNDER, l.slope_shift);
  r.set(reg::RDMA_SRC_BASE_ADDR, input);
  r.set(reg::RDMA_ERDMA_CFG, 1);
  r.set(reg::RDMA_FEATURE_MODE_CFG, 0x17849);
  r.set(reg::RDMA_WEIGHT, 0x01010101);
  Stream stream = encode_task(r, kEnableDpu);
  insert_tables(stream, l);
  // Kernel and chaining count words alike where their number is two more than a multiple of four; zero words are skipped.
  while (stream.size() % 4 != 2) stream.insert(stream.end() - kTailWords, 0);
  return stream;
}

struct Function {
  double (*value)(double);
  double least = 0;       // of the results
  int64_t exponent = 15;  // of the scale: entries are (f - least) * 2^exponent
  int64_t offset = 1;
};
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double hard_sigmoid(double x) { return std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }
std::optional<Function> find_function(std::string_view name) {
  if (name == "sigmoid") return Function{sigmoid};
  if (name == "hard_sigmoid" || name == "hardsigmoid") return Function{hard_sigmoid};
  if (name == "tanh") return Function{[](double x) { return std::tanh(x); }, -1, 14, -16384};
  return std::nullopt;
}
}  // namespace

Result<std::vector<Stream>> table_streams(const TableLayer& l, uint32_t input, uint32_t output) {
  if (l.elements < kLanes || l.elements % kLanes != 0)
    return unsupported("a table's elements are no multiple of 8").found(std::to_string(l.elements));
  if (l.low.size() != kLutEntries || l.high.size() != kLutEntries) return invalid_argument("a table has 513 entries");
  std::vector<Stream> streams;
  for (int64_t first = 0; first < l.elements / kLanes; first += kMostColumns) {
    const auto skipped = static_cast<uint32_t>(first * kAtomBytes);
    streams.push_back(piece_stream(l, std::min(kMostColumns, l.elements / kLanes - first), input + skipped, output + skipped));
  }
  return streams;
}

double value_of_function(std::string_view name, double x) {
  const std::optional<Function> f = find_function(name);
  return f ? f->value(x) : NAN;
}

std::optional<TableLayer> table_of_function(std::string_view name, int64_t elements) {
  const std::optional<Function> f = find_function(name);
  if (!f) return std::nullopt;
  constexpr float kScale = 2596;  // 6.3 on either side, as the known program has it
  TableLayer l{.elements = elements, .index_scale = kScale, .offset = f->offset, .exponent = f->exponent};
  // The known program's slope below the table.
  l.slope_scale = 23107;
  l.slope_shift = 22;
  // An entry of zero decodes wrongly on a board.
  const auto entry = [&](int64_t index) {
    const double v = (f->value(static_cast<double>(index) / kScale) - f->least) * std::ldexp(1.0, static_cast<int>(f->exponent));
    return static_cast<uint16_t>(std::min<long>(std::max<long>(std::lround(v), 1), INT16_MAX));
  };
  for (int64_t i = 0; i < static_cast<int64_t>(kLutEntries); ++i) {
    l.low.push_back(entry(i * kIndexStep - kIndexRange));
    l.high.push_back(entry(i * kIndexStep));
  }
  return l;
}

}  // namespace orknn::silicon
