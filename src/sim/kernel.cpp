#include "sim/kernel.h"

#include <algorithm>

#include "base/forks.h"

namespace orknn::sim {

// Made by the build from the list of files in sim/kernels/: each offers `std::span<const Kernel> <stem>()`.
using KernelFile = std::span<const Kernel> (*)();
extern const std::span<const KernelFile> kKernelFiles;

std::vector<const Kernel*> all_kernels() {
  std::vector<const Kernel*> kernels;
  for (KernelFile file : kKernelFiles)
    for (const Kernel& kernel : file()) kernels.push_back(&kernel);
  return kernels;
}

namespace {
MadeOnce<std::vector<const Kernel*>>& kernels_to_choose_from() {
  static auto& kernels = *new MadeOnce<std::vector<const Kernel*>>;
  return kernels;
}
ORKNN_MAKE_AT_LOAD(kernels_to_choose_from);
}  // namespace

const Kernel* find_kernel(const KernelQuery& query) {
  const auto in_blocks = [](const OperandFacts& o) { return o.form == Form::Blocked; };
  if (query.inputs.empty() || query.outputs.empty()) return nullptr;  // kernels look at the first of both
  const bool makes_blocks = std::ranges::any_of(query.outputs, in_blocks);
  if (!makes_blocks && std::ranges::any_of(query.inputs, in_blocks)) return nullptr;
  for (const Kernel* kernel : kernels_to_choose_from().get(all_kernels))
    if ((kernel->blocks != Blocks::Never) == makes_blocks && kernel->accepts(query)) return kernel;
  return nullptr;
}

}  // namespace orknn::sim
