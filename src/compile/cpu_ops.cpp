#include "compile/cpu_ops.h"

#include <algorithm>

namespace orknn::compile {
namespace {

Objection low_rank(const NodeFacts& f) {
  const auto out = f.output(0);
  return out && out->size() <= 4 ? Objection{} : "its output has more than 4 dimensions";
}

Objection batch_one(const NodeFacts& f) {
  const auto in = f.input(0);
  return in && (in->empty() || in->front() == 1) ? Objection{} : "its batch is not 1";
}

Objection mat_mul(const NodeFacts& f) {
  const auto a = f.input(0), b = f.input(1);
  return a && b && a->size() == 4 && (b->size() == 4 || b->size() == 3) ? Objection{}
                                                                        : "its operands are not 4-D x 4-D or 4-D x 3-D";
}

Objection cast(const NodeFacts& f) {
  static constexpr DType kFrom[] = {DType::Float32, DType::Bool, DType::Int8, DType::Float16, DType::Int32, DType::Int64};
  static constexpr DType kTo[] = {DType::Float32, DType::Int8, DType::Int32, DType::Float16};
  const DType from = f.input_type(0), to = f.graph().tensor(f.node().output(0)).dtype;
  const bool fits = std::find(std::begin(kFrom), std::end(kFrom), from) != std::end(kFrom) &&
                    std::find(std::begin(kTo), std::end(kTo), to) != std::end(kTo);
  return fits ? Objection{} : std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)) + " is not on the list";
}

Objection resize(const NodeFacts& f) {
  const std::string mode = f.node().attributes.string_or("mode", "nearest");
  return mode == "nearest" || mode == "linear" ? Objection{} : "mode " + mode + " is neither nearest nor linear";
}

Objection roi_align(const NodeFacts& f) {
  if (f.node().attributes.string_or("mode", "avg") != "avg") return "mode is not avg";
  return batch_one(f);
}

Objection limit_of(ir::CpuLimit limit, const NodeFacts& f) {
  switch (limit) {
    case ir::CpuLimit::None: break;
    case ir::CpuLimit::FourDimensions: return low_rank(f);
    case ir::CpuLimit::OneSample: return batch_one(f);
    case ir::CpuLimit::Product: return mat_mul(f);
    case ir::CpuLimit::Cast: return cast(f);
    case ir::CpuLimit::Interpolation: return resize(f);
    case ir::CpuLimit::RoiAverage: return roi_align(f);
  }
  return {};
}
}  // namespace

// Operator list 3.5: operators state in their own files whether they are on it.
Objection cpu_objection(const NodeFacts& f) {
  const platform::CpuOps chip = f.platform().cpu_ops;
  if (chip == platform::CpuOps::None) return std::string(f.platform().name) + " computes nothing on its CPU";
  const ir::CpuFacts& cpu = f.def().cpu;
  if (cpu.list == ir::CpuList::AllChips || (cpu.list == ir::CpuList::LargeChips && chip != platform::CpuOps::Few))
    return limit_of(cpu.limit, f);
  return std::string(f.op()) + " is not a CPU operator of " + std::string(f.platform().name);
}

}  // namespace orknn::compile
