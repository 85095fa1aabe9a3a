// Nearest Resize of pictures in rows, of elements of any type.
#include "sim/kernels/support/nearest.h"

#include <cstring>

namespace orknn::sim {
namespace {
using namespace kernels;

constexpr int64_t kGrain = 1 << 15;  // bytes per piece of work

struct State final : KernelState {
  NearestPixels pixels;
};

bool accepts(const KernelQuery& q) {
  if (!nearest_pixels(q)) return false;
  const size_t bytes = dtype_bytes(q.inputs[0].dtype);
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
}

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool&) {
  auto s = std::make_unique<State>();
  s->pixels = *nearest_pixels(q);
  return std::unique_ptr<const KernelState>(std::move(s));
}

template <class Element>
void copy_rows(const NearestPixels& pixels, const ir::TensorView& x, const ir::MutableTensorView& y, ThreadPool& pool) {
  const int64_t width = y.dims[3], height = y.dims[2], rows = y.dims[0] * y.dims[1] * height;
  const auto row_bytes = width * static_cast<int64_t>(sizeof(Element));
  const auto* first = static_cast<const Element*>(x.data);
  auto* result = static_cast<Element*>(y.data);
  pool.parallel_for(rows, std::max<int64_t>(1, kGrain / std::max<int64_t>(row_bytes, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t at = row % height, source = pixels.rows[static_cast<size_t>(at)];
      Element* to = result + row * width;
      if (row > begin && at > 0 && source == pixels.rows[static_cast<size_t>(at - 1)]) {
        std::memcpy(to, to - width, static_cast<size_t>(row_bytes));
        continue;
      }
      const Element* from = first + (row / height * x.dims[2] + source) * x.dims[3];
      for (int64_t i = 0; i < width; ++i) to[i] = from[pixels.columns[static_cast<size_t>(i)]];
    }
  });
}

Status run(KernelContext& c, const KernelState* state) {
  const NearestPixels& pixels = static_cast<const State*>(state)->pixels;
  switch (dtype_bytes(c.inputs[0].dtype)) {
    case 1: copy_rows<uint8_t>(pixels, c.inputs[0], c.outputs[0], c.pool); break;
    case 2: copy_rows<uint16_t>(pixels, c.inputs[0], c.outputs[0], c.pool); break;
    case 4: copy_rows<uint32_t>(pixels, c.inputs[0], c.outputs[0], c.pool); break;
    default: copy_rows<uint64_t>(pixels, c.inputs[0], c.outputs[0], c.pool);
  }
  return {};
}
}  // namespace

std::span<const Kernel> nearest() {
  static const Kernel kernels[] = {{"nearest", accepts, prepare, run}};
  return kernels;
}

}  // namespace orknn::sim
