// The order of the compiler's steps. Number formats come first because placement depends on them; memory follows because a
// tensor's padding depends on the engine that makes it; costs come last because traffic depends on where tensors are.
#include "compile/assume_types.h"
#include "compile/compile.h"
#include "compile/lower_float.h"
#include "compile/place.h"
#include "compile/plan_memory.h"
#include "compile/predict.h"
#include "ops/eval.h"

namespace orknn::compile {
namespace {

std::vector<format::Port> ports_of(const ir::Graph& graph, const std::vector<ir::TensorId>& tensors) {
  std::vector<format::Port> ports;
  for (ir::TensorId t : tensors) {
    const ir::Tensor& tensor = graph.tensor(t);
    format::Port port;
    port.tensor = t;
    port.dtype = tensor.quant ? DType::Float32 : tensor.dtype;  // quantized here, float in the source
    if (tensor.shape && tensor.shape->size() == 4)
      port.layout = tensor.layout == ir::Layout::Undefined ? ir::Layout::NCHW : tensor.layout;
    ports.push_back(std::move(port));
  }
  return ports;
}
}  // namespace

Result<Estimate> estimate(ir::Graph graph, const CompileOptions& given) {
  CompileOptions options = given;
  if (!options.platform) options.platform = &platform::default_platform();
  if (!options.ops) options.ops = &ops::builtin_ops();
  if (options.float_dtype != DType::Float16 && options.float_dtype != DType::Float32)
    return invalid_argument("float_dtype must be float16 or float32")
        .found(std::string(dtype_name(options.float_dtype)))
        .stage("compile");

  Estimate result;
  format::Program& program = result.program;
  program.label = options.label;
  program.inputs = ports_of(graph, graph.inputs());
  program.outputs = ports_of(graph, graph.outputs());
  if (options.assume)
    assume_types(graph, *options.platform, *options.assume);
  else if (options.float_dtype == DType::Float16)
    ORKNN_TRY(lower_float(graph, *options.ops, options.warn, options.converted));

  graph.compact();
  program.graph = std::move(graph);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    program.inputs[i].tensor = program.graph.inputs()[i];
    if (i >= options.normalization.size()) continue;
    program.inputs[i].mean = options.normalization[i].mean;
    program.inputs[i].std = options.normalization[i].std;
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) program.outputs[i].tensor = program.graph.outputs()[i];

  ORKNN_TRY_ASSIGN(program.tasks, place(program.graph, options));
  const auto planner = options.share_memory ? first_fit_planner() : linear_planner();
  ORKNN_TRY(plan_memory(program, *options.platform, *planner));
  result.costs = predict(program, *options.platform, *options.ops, options.cost);
  return result;
}

Result<format::Program> compile(ir::Graph graph, const CompileOptions& options) {
  ORKNN_TRY_ASSIGN(Estimate result, estimate(std::move(graph), options));
  return std::move(result.program);
}

}  // namespace orknn::compile
