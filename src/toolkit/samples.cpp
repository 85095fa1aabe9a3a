#include "toolkit/samples.h"

namespace orknn::toolkit {
namespace {

Result<std::vector<data::ModelInput>> inputs_of(const ir::Graph& graph, const std::vector<bool>& swap_red_blue) {
  std::vector<data::ModelInput> inputs;
  if (swap_red_blue.size() > 1 && swap_red_blue.size() != graph.inputs().size())
    return invalid_argument("The len of quant_img_RGB2BGR is wrong!")
        .expected(std::to_string(graph.inputs().size()) + " flags, one per input")
        .found(std::to_string(swap_red_blue.size()));
  for (ir::TensorId t : graph.inputs()) {
    const ir::Tensor& tensor = graph.tensor(t);
    const auto dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
    if (!dims)
      return unsupported("input '" + tensor.name + "' has no fixed shape to calibrate with")
          .hint("give the input shapes with input_size_list");
    const bool swap = !swap_red_blue.empty() && swap_red_blue[swap_red_blue.size() == 1 ? 0 : inputs.size()];
    inputs.push_back({tensor.name, *dims, tensor.layout, swap});
  }
  return inputs;
}

// How graphs are computed to look at their values: nothing is said about placement.
compile::CompileOptions quiet(compile::CompileOptions options) {
  options.op_target.clear();
  options.warn = {};
  return options;
}
}  // namespace

Result<Samples> Samples::open(const std::string& dataset, const ir::Graph& graph, const SampleRules& rules,
                              compile::CompileOptions options) {
  ORKNN_TRY_ASSIGN(std::vector<data::ModelInput> inputs, inputs_of(graph, rules.swap_red_blue));
  ORKNN_TRY_ASSIGN(data::Dataset samples, data::Dataset::open(dataset, std::move(inputs), rules.dataset));
  return Samples(std::move(samples), quiet(std::move(options)));
}

Result<Samples> Samples::of_files(const std::vector<std::string>& files, const ir::Graph& graph, const SampleRules& rules,
                                  compile::CompileOptions options) {
  ORKNN_TRY_ASSIGN(std::vector<data::ModelInput> inputs, inputs_of(graph, rules.swap_red_blue));
  ORKNN_TRY_ASSIGN(data::Dataset samples, data::Dataset::of_files(files, std::move(inputs), rules.dataset));
  return Samples(std::move(samples), quiet(std::move(options)));
}

Status Samples::run(const ir::Graph& graph, DType float_dtype, size_t count, const quantize::Observe& observe,
                    const std::function<void(size_t)>& done) const {
  compile::CompileOptions options = options_;
  options.float_dtype = float_dtype;
  ORKNN_TRY_ASSIGN(format::Program program, compile::compile(graph, options));
  auto model = std::make_shared<format::Model>();
  model->programs.push_back(std::move(program));
  const std::shared_ptr<const ir::OpSet> ops(std::shared_ptr<void>(), options.ops);  // the session does not outlive this call
  ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> session, runtime::Session::open(std::move(model), nullptr, ops));

  sim::RunHooks hooks;
  hooks.reproducible = true;
  hooks.observe = [&](ir::TensorId t, const ir::TensorView& value) { observe(session->program().graph.tensor(t).name, value); };
  return run(*session, count, hooks, done);
}

Status Samples::run(runtime::Session& session, size_t count, const sim::RunHooks& hooks,
                    const std::function<void(size_t)>& done) const {
  for (size_t i = 0; i < std::min(count, size()); ++i) {
    ORKNN_TRY_ASSIGN(const std::vector<ir::TensorData> values, dataset_.sample(number(i)));
    for (size_t k = 0; k < values.size(); ++k) {
      runtime::InputData data;
      data.dtype = values[k].dtype();
      data.data = values[k].data();
      data.bytes = values[k].bytes();
      data.layout = session.inputs()[k].layout;
      if (Status s = session.set_input(k, data); !s) return s.model(describe(i));
    }
    if (Status s = session.run(hooks); !s) return s.model(describe(i));
    if (done) done(i + 1);
  }
  return {};
}

}  // namespace orknn::toolkit
