// The vendor's per-layer table and memory tables, filled with predicted figures: eval_perf, RKNN_QUERY_PERF_DETAIL, log levels 3
// and 4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "format/program.h"
#include "platform/platforms.h"

namespace orknn::runtime {

// Why nothing can be said about the time of this model on its chip; empty when it can.
std::string why_no_time(const format::Model& model);
// Microseconds of one undisturbed run on `cores` cores of the chip the model was made for, with `sram_bytes` of SRAM under the
// intermediate results; nothing when why_no_time has a reason.
std::optional<double> predicted_microseconds(const format::Model& model, int cores = 1, uint64_t sram_bytes = 0);

struct LayerRow {
  std::string type, data_type, target, inputs, outputs, name;
  uint64_t ddr_cycles = 0, npu_cycles = 0, tasks = 0, read_bytes = 0, macs = 0;
  std::optional<uint64_t> microseconds;  // nothing when the time is unknown
  std::optional<uint32_t> uid;           // number of the layer in the program; inputs and outputs are no layers
  DType element = DType::Undefined;      // what the layer computes in
  std::vector<double> load;              // share of each core of the mask, 0..1
  format::Sparsity sparsity = format::Sparsity::None;
};
// One row per layer, the input first and the outputs last. `debug` adds what measuring layer by layer costs on a board.
std::vector<LayerRow> layer_rows(const format::Model& model, bool debug, int cores = 1, uint64_t sram_bytes = 0);

// Clocks in the order CPU (kHz), NPU (Hz), DDR (Hz); "Unknown" for what is not published.
std::string clocks_text(const platform::Platform* chip);
// Layer table, totals and ranking table, on `cores` cores.
std::string perf_table(const format::Model& model, int cores = 1, uint64_t sram_bytes = 0);

// Memory of the packed constants of all layers.
uint64_t packed_weight_bytes(const format::Program& program);

struct MemoryBlock {
  uint64_t offset = 0, bytes = 0;
};
// How many bytes a block has inside SRAM that covers the bottom of the internal range.
uint64_t sram_hit(const MemoryBlock& block, uint64_t sram_bytes);
// What a context gets of `sram_bytes` of SRAM for its intermediate results: one block of whole granules, no larger than they are.
uint64_t sram_block(uint64_t internal_bytes, uint64_t sram_bytes);
struct MemoryTotals {
  uint64_t internal_bytes = 0, internal_traffic = 0, sram_traffic = 0;
};
MemoryTotals memory_totals(std::span<const MemoryBlock> blocks, uint64_t input_bytes, uint64_t output_bytes, uint64_t sram_bytes);
// The tables of internal tensors and of weights and the totals after them, as log level 3 prints them. `sram_bytes` = 0: no SRAM
// column.
std::string memory_table(const format::Model& model, uint64_t sram_bytes);

}  // namespace orknn::runtime
