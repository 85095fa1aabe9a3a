#include "compile/cpu_ops.h"

#include <algorithm>

namespace orknn::compile {
namespace {

struct CpuOp {
  std::string_view op;          // name in our op set
  bool on_small_chips = false;  // also on chips with the short list
  Objection (*limit)(const NodeFacts&) = nullptr;
};

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

// Operator list 3.5, under our names.
const CpuOp kCpuOps[] = {
    {"Add"},
    {"And"},
    {"ArgMax"},
    {"ArgMin"},
    {"AveragePool"},
    {"BatchNormalization"},
    {"Cast", false, cast},
    {"Clip"},
    {"Concat", true, low_rank},
    {"Conv"},
    {"ConvTranspose"},
    {"Cos"},
    {"DepthToSpace"},
    {"DequantizeLinear", true},
    {"Div", true},
    {"Equal"},
    {"Erf"},
    {"Exp", true},
    {"Expand"},
    {"Flatten", true},
    {"Floor"},
    {"GRU"},
    {"Gather", true},
    {"GatherElements"},
    {"Gelu"},
    {"Glu"},
    {"Greater"},
    {"GreaterOrEqual"},
    {"HardSwish"},
    {"Identity"},
    {"InstanceNormalization"},
    {"LRN"},
    {"LayerNormalization", true},
    {"Less"},
    {"LessOrEqual"},
    {"Log"},
    {"LogSoftmax", false, batch_one},
    {"LpNormalization"},
    {"MatMul", false, mat_mul},
    {"Max"},
    {"MaxPool"},
    {"MaxRoiPool"},
    {"MaxUnpool"},
    {"MeanVarianceNormalization"},
    {"Min"},
    {"Mish"},
    {"Mod"},
    {"Mul"},
    {"Not"},
    {"OneHot"},
    {"Pad"},
    {"Pow"},
    {"QuantizeLinear", true},
    {"RMSNormalization"},
    {"ReduceL2", true},
    {"ReduceMax", true, low_rank},
    {"ReduceMean", false, low_rank},
    {"ReduceMin", false, low_rank},
    {"ReduceSum", false, low_rank},
    {"Reshape", true},
    {"Resize", false, resize},
    {"ReverseSequence"},
    {"RoiAlign", false, roi_align},
    {"Round"},
    {"ScatterND", true},
    {"Sigmoid"},
    {"Sin"},
    {"Slice", false, batch_one},
    {"Softmax", true, batch_one},
    {"SpaceToDepth"},
    {"Split"},
    {"Sqrt"},
    {"Squeeze", true},
    {"Sub"},
    {"Swish"},
    {"Tanh"},
    {"Tile", false, batch_one},
    {"TopK"},
    {"Transpose"},
    {"Unsqueeze", true},
    {"Where"},
};
}  // namespace

Objection cpu_objection(const NodeFacts& f) {
  if (f.platform().cpu_ops == platform::CpuOps::None) return std::string(f.platform().name) + " computes nothing on its CPU";
  for (const CpuOp& entry : kCpuOps) {
    if (entry.op != f.op()) continue;
    if (f.platform().cpu_ops == platform::CpuOps::Few && !entry.on_small_chips) break;
    return entry.limit ? entry.limit(f) : Objection{};
  }
  return std::string(f.op()) + " is not a CPU operator of " + std::string(f.platform().name);
}

}  // namespace orknn::compile
