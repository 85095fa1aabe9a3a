#include "sim/kernels/support/product.h"

#include <algorithm>
#include <atomic>

namespace orknn::sim::kernels {
namespace {
constexpr int64_t kDepthBlock = 1536;       // depth of one pass; longer sums go through memory between passes
constexpr int64_t kPanelBytes = 512 << 10;  // packed B of one job: stays in the second-level cache
constexpr int64_t kJobsPerThread = 3;       // enough to even out unequal threads
constexpr int64_t kRunsPerThread = 8;       // of jobs, likewise
constexpr int64_t kSmallestJob = 100'000;   // multiply-accumulates below which dividing further costs more than it gives
constexpr int64_t kPackedBytes = 64 << 20;  // packed A of the batches that run together

// How the product is cut into jobs: `row_parts` x `column_parts` per batch.
struct Division {
  int64_t depth_block = 0, panels = 0 /* of B per job */, row_panels = 0 /* of A per job */, column_parts = 0, row_parts = 0;
};

Division divide(const Product& p, int64_t threads) {
  Division d;
  d.depth_block = divide_up(p.depth, std::max<int64_t>(1, divide_up(p.depth, kDepthBlock)));
  const int64_t all_panels = panels_b(p.columns), all_row_panels = panels_a(p.rows);
  const int64_t fitting = std::max<int64_t>(1, kPanelBytes / (std::max<int64_t>(1, d.depth_block) * kPanelColumns * 4));
  d.column_parts = divide_up(all_panels, fitting);
  d.row_parts = 1;
  if (threads > 1) {
    const int64_t work = p.rows * p.columns * p.depth;  // of one batch
    const int64_t wanted = std::min(divide_up(kJobsPerThread * threads, p.batches), std::max<int64_t>(1, work / kSmallestJob));
    if (d.column_parts < wanted) {
      // Few columns: dividing rows evens out better, packing B again costs little then.
      const bool prefer_rows = all_panels < 2 * wanted && all_row_panels >= wanted;
      if (!prefer_rows) d.column_parts = std::min(all_panels, wanted);
      d.row_parts = std::min(all_row_panels, divide_up(wanted, d.column_parts));
    }
  }
  d.panels = divide_up(all_panels, d.column_parts);
  d.column_parts = divide_up(all_panels, d.panels);
  d.row_panels = divide_up(all_row_panels, d.row_parts);
  d.row_parts = divide_up(all_row_panels, d.row_panels);
  return d;
}

template <class T>
const void* advance(const void* p, int64_t elements) {
  return static_cast<const T*>(p) + elements;
}
const void* advance(const void* p, Storage s, int64_t elements) {
  return s == Storage::Half ? advance<Half>(p, elements) : advance<float>(p, elements);
}
}  // namespace

Status out_of_scratch(int64_t bytes) {
  return Status::error(Code::OutOfMemory, "no memory for working space").expected(std::to_string(bytes) + " bytes");
}

void for_each_job(ThreadPool& pool, int64_t jobs, const std::function<void(int64_t, int64_t)>& body) {
  const int64_t workers = std::min<int64_t>(pool.threads(), jobs);
  if (workers <= 1) {
    for (int64_t job = 0; job < jobs; ++job) body(job, 0);
    return;
  }
  // As in ThreadPool::parallel_for: the caller takes runs of jobs from the first one on, the others from the last one back, so
  // that each finds in its cache what it computed in the layer before. Longer runs where jobs are many: taking one moves a line
  // of memory between the cores.
  constexpr uint64_t kOneFromBehind = uint64_t{1} << 32;
  const int64_t run = std::max<int64_t>(1, jobs / (kRunsPerThread * workers)), runs = divide_up(jobs, run);
  std::atomic<uint64_t> taken{0};
  pool.parallel_for(workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker)
      for (;;) {
        const uint64_t before = taken.fetch_add(worker == 0 ? 1 : kOneFromBehind, std::memory_order_relaxed);
        const auto front = static_cast<int64_t>(before % kOneFromBehind), behind = static_cast<int64_t>(before / kOneFromBehind);
        if (front + behind >= runs) break;
        const int64_t first = (worker == 0 ? front : runs - 1 - behind) * run;
        for (int64_t job = first; job < std::min(first + run, jobs); ++job) body(job, worker);
      }
  });
}

namespace {
// How the working memory is used: packed A of `group` batches, then packed B and sums per thread.
struct Memory {
  int64_t a_size = 0, group = 0, shared = 0, b_size = 0, sum_size = 0, total = 0;
};
Memory memory_of(const Product& p, const Division& d, int64_t threads) {
  Memory m;
  const bool pack_a = !p.packed_a;
  m.a_size = panels_a(p.rows) * kPanelRows * p.depth;
  m.b_size = p.packed_b ? 0 : d.panels * kPanelColumns * d.depth_block;
  // Half results that need several passes keep their sums here.
  m.sum_size = d.depth_block < p.depth && p.storage == Storage::Half ? d.row_panels * kPanelRows * d.panels * kPanelColumns : 0;
  m.group = pack_a ? std::clamp<int64_t>(kPackedBytes / std::max<int64_t>(4 * m.a_size, 1), 1, p.batches) : p.batches;
  m.shared = pack_a ? (m.group * m.a_size + 15) / 16 * 16 : 0;
  m.total = m.shared + threads * (m.b_size + m.sum_size);
  return m;
}
bool is_empty(const Product& p) { return p.batches == 0 || p.rows == 0 || p.columns == 0; }
}  // namespace

int64_t product_scratch(const Product& p, const ThreadPool& pool) {
  return is_empty(p) ? 0 : memory_of(p, divide(p, pool.threads()), pool.threads()).total;
}

Status run_product(const Product& p, KernelContext& context) {
  const int64_t bytes = product_scratch(p, context.pool) * static_cast<int64_t>(sizeof(float));
  auto* scratch = reinterpret_cast<float*>(context.scratch(static_cast<size_t>(bytes)));
  if (!scratch) return out_of_scratch(bytes);
  run_product(p, context.pool, scratch);
  return {};
}

void run_product(const Product& p, ThreadPool& pool, float* scratch) {
  if (is_empty(p)) return;
  const Forms& f = forms();
  const Division d = divide(p, pool.threads());
  const Memory m = memory_of(p, d, pool.threads());
  const int64_t a_size = m.a_size, group = m.group, shared = m.shared, b_size = m.b_size, sum_size = m.sum_size;
  StepList steps = p.steps;
  const Clamp clamp = take_clamp(steps);
  const bool pack_a = !p.packed_a;

  for (int64_t first = 0; first < p.batches; first += group) {
    const int64_t batches = std::min(group, p.batches - first);
    if (pack_a) {
      // Parts of 8 panels; the number of parts does not depend on the number of threads.
      constexpr int64_t kPart = 8;
      const int64_t parts = divide_up(panels_a(p.rows), kPart);
      pool.parallel_for(batches * parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t batch = i / parts, row = i % parts * kPart * kPanelRows;
          f.pack_a({.x = advance(p.a.data, p.a.storage, p.place(first + batch).a + row * p.a.row_stride),
                    .storage = p.a.storage,
                    .row_stride = p.a.row_stride,
                    .depth_stride = p.a.column_stride,
                    .rows = std::min(kPart * kPanelRows, p.rows - row),
                    .depth = p.depth},
                   scratch + batch * a_size + row * p.depth);
        }
      });
    }
    for_each_job(pool, batches * d.column_parts * d.row_parts, [&](int64_t job, int64_t worker) {
      const int64_t batch = job / (d.column_parts * d.row_parts), part = job % (d.column_parts * d.row_parts);
      const int64_t row = part % d.row_parts * d.row_panels * kPanelRows, column = part / d.row_parts * d.panels * kPanelColumns;
      const Product::Place place = p.place(first + batch);
      float* packed_b = scratch + shared + worker * (b_size + sum_size);
      GemmBlock g;
      g.a_panel_stride = p.depth * kPanelRows;
      g.rows = std::min(d.row_panels * kPanelRows, p.rows - row);
      g.columns = std::min(d.panels * kPanelColumns, p.columns - column);
      g.clamp = clamp.active;
      g.low = clamp.low;
      g.high = clamp.high;
      g.row_bias = p.row_bias ? p.row_bias + place.bias + row : nullptr;
      g.steps = steps.data();
      g.step_count = static_cast<int64_t>(steps.size());
      g.batch = place.step_batch;
      g.row = place.step_row + row;
      g.column = column;
      g.storage = p.storage;
      g.c_row_stride = p.c_row_stride;
      g.c = const_cast<void*>(advance(p.c, p.storage, place.c + row * p.c_row_stride + column));
      g.sum = p.storage == Storage::Float ? static_cast<float*>(g.c) : sum_size ? packed_b + b_size : nullptr;
      g.sum_row_stride = p.storage == Storage::Float ? p.c_row_stride : d.panels * kPanelColumns;
      const float* a = (pack_a ? scratch + batch * a_size : p.packed_a + place.a) + row * p.depth;
      int64_t k = 0;
      do {  // at least once: an empty sum is the bias
        g.depth = std::min(d.depth_block, p.depth - k);
        g.a = a + k * kPanelRows;
        if (p.packed_b) {
          g.b = p.packed_b + place.b + column * p.depth + k * kPanelColumns;
          g.b_panel_stride = p.depth * kPanelColumns;
          g.b_goes_on = true;
        } else {
          if (p.conv) {
            ConvSource source = *p.conv;
            source.x = advance(source.x, source.storage, place.b);
            f.pack_conv(source, column, g.columns, k, k + g.depth, packed_b);
          } else {
            f.pack_b(advance(p.b.data, p.b.storage, place.b + k * p.b.row_stride + column * p.b.column_stride), p.b.storage,
                     p.b.row_stride, p.b.column_stride, g.depth, g.columns, packed_b);
          }
          g.b = packed_b;
          g.b_panel_stride = g.depth * kPanelColumns;
        }
        g.accumulate = k > 0;
        k += g.depth;
        g.finish = k >= p.depth;
        f.gemm(g);
      } while (k < p.depth);
    });
  }
}

}  // namespace orknn::sim::kernels
