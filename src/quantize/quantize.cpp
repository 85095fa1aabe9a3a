#include "quantize/quantize.h"

#include "quantize/integer_graph.h"
#include "quantize/layer_formats.h"
#include "quantize/layer_weights.h"
#include "quantize/parameters.h"

namespace orknn::quantize {
using namespace ir;

Range Calibration::range(const std::string& tensor, const Statistics& seen, Algorithm algorithm, int bits) const {
  if (const auto cut = cuts.find(tensor); cut != cuts.end() && bits <= 8) return cut->second.range;
  return choose_range(seen, algorithm, bits);
}

Status set_algorithm(QuantizeOptions& options, std::string_view name) {
  options.adaptive_rounding = name == "adaround";
  if (name == "normal")
    options.algorithm = Algorithm::Normal;
  else if (name == "kl_divergence")
    options.algorithm = Algorithm::KlDivergence;
  else if (name == "mmse" || name == "adaround")
    options.algorithm = Algorithm::Mmse;
  else if (name == "moving_average")
    options.algorithm = Algorithm::MovingAverage;
  else
    return invalid_argument("there is no range algorithm '" + std::string(name) + "'")
        .expected("normal, kl_divergence, mmse, adaround or moving_average");
  return {};
}

Result<std::vector<LayerDecision>> quantize(Graph& graph, const OpSet& ops, const LayerForms& forms,
                                            const Calibration& calibration, const QuantizeOptions& options) {
  Plan plan;
  std::vector<LayerDecision> decisions;
  ParameterChoice choice(graph, forms, calibration, options, plan);
  std::vector<passes::Pass> steps{
      pass_of(kChooseParameters, [&](passes::Rewriter&) { return choice.choose(); }),
      pass_of(kKeepSmallValues, [&](passes::Rewriter& rewriter) { return choice.keep_small_values(rewriter); }),
      pass_of(kShareParameters, [&](passes::Rewriter&) { return choice.share(); }),
      pass_of(kRoundWeights,
              [&](passes::Rewriter& rewriter) { return round_layer_weights(rewriter, calibration, options, plan); }),
      pass_of(kCorrectBias, [&](passes::Rewriter& rewriter) { return correct_biases(rewriter, plan); }),
      pass_of(kLowerToIntegers, [&](passes::Rewriter& rewriter) { return lower_to_integers(rewriter, plan, decisions); })};
  if (!options.formats.empty())
    steps.insert(steps.begin() + 3,
                 pass_of(kConvertFormats, [&](passes::Rewriter& rewriter) { return convert_formats(rewriter, plan, options); }));
  ORKNN_TRY(run_steps(graph, ops, std::move(steps), options.steps, options.trace));
  return decisions;
}

}  // namespace orknn::quantize
