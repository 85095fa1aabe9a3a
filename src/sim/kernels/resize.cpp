// Linear, cubic and antialiased Resize of the last two axes: every source row is resampled along the row once per band of
// the result, then each row of the band is a weighted sum of those. Nearest only moves elements, which the reference does well.
#include <algorithm>

#include "ops/support/resampling.h"
#include "sim/kernels/support/product.h"

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kBand = 1 << 15;  // elements of the result per piece of work

// Rows of the result that are made together, and the source rows they need.
struct Band {
  int64_t row = 0, rows = 0;
  std::vector<int64_t> sources;
};

struct State : KernelState {
  int64_t planes = 1, in_height = 1, in_width = 1, out_height = 1, out_width = 1;
  // Along the row: tables of resample_row, empty when rows keep their width.
  int64_t columns = 0;  // of a resampled row, a multiple of 16
  int64_t across = 0;   // taps
  std::vector<int32_t> positions;
  std::vector<float> row_weights;
  // Down the plane: per row of the result its taps [first[r], first[r + 1]), as places among the sources of its band.
  std::vector<Band> bands;
  std::vector<size_t> first;
  std::vector<int64_t> offsets;  // in floats
  std::vector<float> weights;
  int64_t most_sources = 0;
};

int64_t rounded(int64_t count) { return (count + 15) / 16 * 16; }

std::unique_ptr<State> plan(const KernelQuery& q) {
  if (q.node.op != "Resize" || !q.node.tail.empty() || !storage_of(q.inputs[0].dtype) || q.inputs[0].dtype != q.outputs[0].dtype)
    return nullptr;
  ops::ResizeInputs inputs;
  for (size_t i = 1; i < q.inputs.size(); ++i) {
    if (!q.inputs[i].exists()) continue;
    if (!q.inputs[i].constant) return nullptr;
    (i == 1 ? inputs.roi : i == 2 ? inputs.scales : inputs.sizes) = q.inputs[i].constant->view();
  }
  const ir::Dims &x = q.inputs[0].dims, &y = q.outputs[0].dims;
  const size_t rank = x.size();
  const auto resize = ops::plan_resize(q.attributes(), x, inputs);
  if (!resize || resize->mode == ops::ResizeMode::Nearest || resize->coordinates == ops::ResizeCoordinates::CropAndResize)
    return nullptr;
  if (rank < 1 || resize->dims != y || ir::element_count(x) == 0 || ir::element_count(y) == 0 || x.back() > INT32_MAX)
    return nullptr;
  ops::ResizeTaps across, down;
  across.identity = down.identity = true;
  for (const ops::ResizeAxis& axis : resize->axes) {
    auto taps = ops::resize_taps(resize->filter, resize->coordinates, axis);
    if (!taps) return nullptr;
    if (axis.axis + 1 == rank)
      across = std::move(*taps);
    else if (axis.axis + 2 == rank)
      down = std::move(*taps);
    else if (!taps->identity)
      return nullptr;
  }
  auto s = std::make_unique<State>();
  for (size_t i = 0; i + 2 < rank; ++i) s->planes *= x[i];
  s->in_width = x.back();
  s->out_width = y.back();
  if (rank > 1) {
    s->in_height = x[rank - 2];
    s->out_height = y[rank - 2];
  }
  s->columns = rounded(s->out_width);
  if (!across.identity) {
    s->across = static_cast<int64_t>(across.width);
    s->positions.assign(static_cast<size_t>(s->across * s->columns), 0);
    s->row_weights.assign(s->positions.size(), 0.0f);
    for (int64_t c = 0; c < s->out_width; ++c)
      for (int64_t k = 0; k < s->across; ++k) {
        const auto from = static_cast<size_t>(c * s->across + k), to = static_cast<size_t>(k * s->columns + c);
        s->positions[to] = static_cast<int32_t>(across.positions[from]);
        s->row_weights[to] = across.weights[from];
      }
  }
  const int64_t band_rows = std::clamp<int64_t>(kBand / s->out_width, 4, std::max<int64_t>(4, s->out_height));
  for (int64_t row = 0; row < s->out_height; row += band_rows) {
    Band band{row, std::min(band_rows, s->out_height - row), {}};
    const size_t begin = s->offsets.size();
    for (int64_t r = row; r < row + band.rows; ++r) {
      s->first.push_back(s->offsets.size());
      if (down.identity) {
        s->offsets.push_back(r);
        s->weights.push_back(1.0f);
        continue;
      }
      for (size_t k = 0; k < down.width; ++k) {
        const size_t at = static_cast<size_t>(r) * down.width + k;
        if (down.weights[at] == 0.0f && (k + 1 < down.width || s->first.back() < s->offsets.size())) continue;
        s->offsets.push_back(down.positions[at]);
        s->weights.push_back(down.weights[at]);
      }
    }
    band.sources.assign(s->offsets.begin() + static_cast<int64_t>(begin), s->offsets.end());
    std::sort(band.sources.begin(), band.sources.end());
    band.sources.erase(std::unique(band.sources.begin(), band.sources.end()), band.sources.end());
    for (size_t i = begin; i < s->offsets.size(); ++i)
      s->offsets[i] =
          (std::lower_bound(band.sources.begin(), band.sources.end(), s->offsets[i]) - band.sources.begin()) * s->columns;
    s->most_sources = std::max(s->most_sources, static_cast<int64_t>(band.sources.size()));
    s->bands.push_back(std::move(band));
  }
  s->first.push_back(s->offsets.size());
  return s;
}

bool accepts(const KernelQuery& q) { return plan(q) != nullptr; }
Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  return std::unique_ptr<const KernelState>(plan(q));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  const Forms& f = forms();
  const Storage storage = *storage_of(c.inputs[0].dtype);
  const auto bytes = static_cast<int64_t>(dtype_bytes(c.inputs[0].dtype));
  const int64_t wide_size = rounded(s.in_width), size = s.most_sources * s.columns + wide_size,
                scratch_bytes = c.pool.threads() * size * 4;
  auto* scratch = reinterpret_cast<float*>(c.scratch(static_cast<size_t>(scratch_bytes)));
  if (!scratch) return out_of_scratch(scratch_bytes);
  const auto bands = static_cast<int64_t>(s.bands.size());
  for_each_job(c.pool, s.planes * bands, [&](int64_t job, int64_t worker) {
    const int64_t plane = job / bands;
    const Band& band = s.bands[static_cast<size_t>(job % bands)];
    float *rows = scratch + worker * size, *wide = rows + s.most_sources * s.columns;
    for (size_t i = 0; i < band.sources.size(); ++i) {
      const void* from =
          static_cast<const std::byte*>(c.inputs[0].data) + (plane * s.in_height + band.sources[i]) * s.in_width * bytes;
      float* to = rows + static_cast<int64_t>(i) * s.columns;
      float* source = s.across == 0 ? to : wide;
      if (storage == Storage::Half)
        f.to_float(static_cast<const Half*>(from), source, s.in_width);
      else if (s.across == 0)
        std::copy_n(static_cast<const float*>(from), s.in_width, to);
      if (s.across == 0) continue;
      f.resample_row({storage == Storage::Half ? wide : static_cast<const float*>(from), s.positions.data(), s.row_weights.data(),
                      s.across, s.columns, to});
    }
    for (int64_t r = band.row; r < band.row + band.rows; ++r) {
      const size_t first = s.first[static_cast<size_t>(r)], last = s.first[static_cast<size_t>(r) + 1];
      void* to = static_cast<std::byte*>(c.outputs[0].data) + (plane * s.out_height + r) * s.out_width * bytes;
      f.weigh_rows(rows, s.offsets.data() + first, s.weights.data() + first, static_cast<int64_t>(last - first), to, storage,
                   s.out_width);
    }
  });
  return {};
}
}  // namespace

std::span<const Kernel> resize() {
  static const Kernel kernels[] = {{"resize", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
