// Convolution of float maps in blocks by direct sums.
#include "sim/kernels/support/float_maps.h"

namespace orknn::sim {
namespace {
using namespace kernels;

struct State : KernelState {
  FloatConv conv;
  AlignedFloats weights;
};

bool accepts(const KernelQuery& q) { return FloatConv::create(q).has_value(); }

Result<std::unique_ptr<const KernelState>> prepare(const KernelQuery& q, ThreadPool& pool) {
  auto s = std::make_unique<State>();
  s->conv = std::move(*FloatConv::create(q));
  ORKNN_TRY(s->conv.take_bias(q));
  ORKNN_TRY(s->conv.pack_weights(q.inputs[1].constant->view(), pool, s->weights));
  s->weights.share(q.inputs[1].constant->data());
  return std::unique_ptr<const KernelState>(std::move(s));
}

Status run(KernelContext& c, const KernelState* state) {
  const State& s = *static_cast<const State*>(state);
  return s.conv.run(c, s.weights.data());
}
}  // namespace

std::span<const Kernel> float_conv() {
  static const Kernel kernels[] = {{"blocked_float_conv", accepts, prepare, run, Blocks::Begin}};
  return kernels;
}

}  // namespace orknn::sim
