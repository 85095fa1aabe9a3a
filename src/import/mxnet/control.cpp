// Operators with a body: fused subgraphs are put in place, loops of known length are unrolled, branches are both computed.
#include <algorithm>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {
using namespace ir;

namespace {
constexpr int64_t kMaxUnrolled = 1024;

using Tensors = std::vector<TensorId>;

Result<Tensors> fused(Layer& l) {
  if (l.flag("quantized", false))
    return unsupported("fused quantized subgraphs are not supported").hint("save the model before quantization");
  if (l.node().subgraphs.size() != 1)
    return invalid_model("the operator has no subgraph").found(std::to_string(l.node().subgraphs.size()));
  Tensors inputs;
  for (size_t i = 0; i < l.operand_count(); ++i) inputs.push_back(l.input(i));
  return l.model().lower_body(l.node().subgraphs[0], inputs, l.layer());
}

// Puts `values` at `places` among the inputs of a body.
Status place(Tensors& inputs, const std::vector<int64_t>& places, Operands values) {
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] < 0 || places[i] > 4096 || i >= values.size())
      return invalid_model("the places of the body's inputs are illegal").found(to_string(places));
    if (inputs.size() <= static_cast<size_t>(places[i])) inputs.resize(static_cast<size_t>(places[i]) + 1);
    inputs[static_cast<size_t>(places[i])] = values[i];
  }
  return {};
}

Result<Tensors> for_each(Layer& l, Operands all) {
  if (l.node().subgraphs.size() != 1)
    return invalid_model("the loop has no body").found(std::to_string(l.node().subgraphs.size()));
  const std::vector<int64_t> data_at = l.integers("in_data_locs"), state_at = l.integers("in_state_locs"),
                             rest_at = l.integers("remain_locs");
  if (data_at.empty() || data_at.size() + state_at.size() + rest_at.size() != all.size())
    return invalid_model("the loop's inputs do not add up").expected(std::to_string(all.size()));
  const Operands data = all.first(data_at.size()), first_states = all.subspan(data_at.size(), state_at.size()),
                 rest = all.last(rest_at.size());
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(data[0], "to unroll the loop"));
  if (dims.empty() || dims[0] < 1 || dims[0] > kMaxUnrolled)
    return unsupported("the loop has too many iterations")
        .expected("1 to " + std::to_string(kMaxUnrolled))
        .found(to_string(dims));
  const int64_t outputs = l.integer("num_out_data", 0);
  if (outputs < 0) return invalid_model("illegal num_out_data");
  Tensors states(first_states.begin(), first_states.end());
  std::vector<Tensors> collected(static_cast<size_t>(std::min<int64_t>(outputs, 4096)));
  for (int64_t step = 0; step < dims[0]; ++step) {
    Tensors slices, inputs;
    for (TensorId d : data) slices.push_back(l.gather(d, l.add_int_scalar("step", step), 0));
    ORKNN_TRY(place(inputs, data_at, slices));
    ORKNN_TRY(place(inputs, state_at, states));
    ORKNN_TRY(place(inputs, rest_at, rest));
    ORKNN_TRY_ASSIGN(const Tensors results,
                     l.model().lower_body(l.node().subgraphs[0], inputs, l.layer() + "/" + std::to_string(step)));
    if (results.size() != collected.size() + states.size())
      return invalid_model("the body has another number of results")
          .expected(std::to_string(collected.size() + states.size()))
          .found(std::to_string(results.size()));
    for (size_t i = 0; i < collected.size(); ++i) collected[i].push_back(results[i]);
    std::copy_n(results.end() - std::ssize(states), states.size(), states.begin());
  }
  Tensors results;
  for (const Tensors& parts : collected) results.push_back(l.stack(parts, 0));
  results.insert(results.end(), states.begin(), states.end());
  return results;
}

Result<Tensors> condition(Layer& l) {
  if (l.node().subgraphs.size() != 3)
    return invalid_model("the branch needs a condition and two bodies").found(std::to_string(l.node().subgraphs.size()));
  const auto run = [&](size_t body, std::string_view key, const char* name) -> Result<Tensors> {
    Tensors inputs;
    for (int64_t at : l.integers(key)) {
      if (at < 0) return invalid_model("the places of the body's inputs are illegal");
      ORKNN_TRY_ASSIGN(const TensorId x, l.operand(static_cast<size_t>(at)));
      inputs.push_back(x);
    }
    return l.model().lower_body(l.node().subgraphs[body], inputs, l.layer() + "/" + name);
  };
  ORKNN_TRY_ASSIGN(const Tensors decision, run(0, "cond_input_locs", "condition"));
  ORKNN_TRY_ASSIGN(const Tensors yes, run(1, "then_input_locs", "then"));
  ORKNN_TRY_ASSIGN(const Tensors no, run(2, "else_input_locs", "else"));
  if (decision.empty() || yes.size() != no.size()) return invalid_model("the branches differ in their results");
  const TensorId choice = l.reshape(l.cast(decision[0], DType::Bool), {1});
  Tensors results;
  for (size_t i = 0; i < yes.size(); ++i) results.push_back(l.where(choice, yes[i], no[i]));
  return results;
}

Status while_loop(Layer&) {
  return unsupported("a loop whose length depends on values")
      .hint("write it as a loop over data (foreach), whose length is known");
}
}  // namespace

std::span<const Row> control_rows() {
  static const Row rows[] = {
      {"_sg_mkldnn_conv|_sg_mkldnn_fully_connected|_subgraph_op|_CachedOp", fused},
      {"_foreach", for_each},
      {"_cond", condition},
      {"_while_loop", while_loop},
  };
  return rows;
}

}  // namespace orknn::importer::mxnet
