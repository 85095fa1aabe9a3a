// libFuzzer target: any bytes as a .rknn file. Checksums are made right first, so that the fuzzer reaches what lies behind
// them; what loads is run.
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/log.h"
#include "format/container.h"
#include "format/rknn_file.h"
#include "ops/eval.h"
#include "sim/executor.h"

namespace {
using namespace orknn;

// True when the bytes have a section table whose checksums could be set.
bool repair(std::vector<std::byte>& file) {
  using namespace format;
  const auto load = [&](uint64_t at) {
    uint64_t v;
    std::memcpy(&v, file.data() + at, sizeof v);
    return v;
  };
  const auto store = [&](uint64_t at, uint64_t v) { std::memcpy(file.data() + at, &v, sizeof v); };
  if (file.size() < 256) return false;
  const uint64_t payload = load(16);
  if (payload > file.size() - 80) return false;
  const uint64_t json = load(kHeaderBytes + payload);
  if (json > file.size()) return false;
  const uint64_t trailer = aligned(kHeaderBytes + payload + 8 + json);
  if (trailer > file.size() || file.size() - trailer < kTrailerHeaderBytes) return false;
  const uint64_t count = load(trailer + 8) >> 32, table_bytes = aligned(kTrailerHeaderBytes + count * kSectionEntryBytes);
  if (count > 64 || file.size() - trailer < table_bytes) return false;
  const auto sum_of = [&](uint64_t offset, uint64_t bytes) {
    RangeChecksum sum;
    sum.add(std::span(file).subspan(offset, bytes));
    return sum.finish();
  };
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t entry = trailer + kTrailerHeaderBytes + i * kSectionEntryBytes, offset = load(entry + 8),
                   bytes = load(entry + 16);
    if (offset <= file.size() && bytes <= file.size() - offset) store(entry + 24, sum_of(offset, bytes));
  }
  store(trailer + 16, file.size());
  store(trailer + 24, sum_of(0, trailer));
  store(trailer + kTrailerChecksumOffset, 0);
  store(trailer + kTrailerChecksumOffset, checksum64(std::span(file).subspan(trailer, table_bytes)));
  return true;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static ThreadPool pool(1);
  std::vector<std::byte> file(reinterpret_cast<const std::byte*>(data), reinterpret_cast<const std::byte*>(data) + size);
  repair(file);
  auto model = format::read_rknn(file, nullptr, pool);
  if (!model) return 0;
  for (const format::Program& program : model->programs) {
    auto executor = sim::Executor::create(program, ops::builtin_ops(), pool);
    if (!executor) continue;
    std::vector<ir::TensorData> inputs;
    std::vector<ir::TensorView> views;
    int64_t elements = 0;
    for (const format::Port& port : program.inputs) {
      const ir::Tensor& tensor = program.graph.tensor(port.tensor);
      const auto dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
      if (!dims || (elements += ir::element_count(*dims)) > 1 << 16) return 0;
      inputs.push_back(ir::TensorData::zeros(tensor.dtype, *dims));
    }
    for (const ir::TensorData& t : inputs) views.push_back(t.view());
    (void)(*executor)->run(views).is_ok();
  }
  return 0;
}
