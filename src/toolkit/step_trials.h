// Which improvement steps of the quantizer a network is better off without, by what its outputs lose on samples that were held
// back from calibration.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "quantize/weight_only.h"
#include "toolkit/trials.h"

namespace orknn::toolkit {

struct StepChoice {
  quantize::QuantizeOptions choices;
  std::vector<StepGain> gains;            // in the order of the trials
  std::optional<double> expected_cosine;  // of the worst output on other samples; nothing when there was no trial
};

// `stage` has its network and choices, but no calibration yet. Too few samples to hold any back: the choices stay as they are.
// adaround never loses to normal: its ranges, and its weights layer by layer, are taken only where no output loses and one gains
// by more than chance; where outputs lose next to nothing, nothing is tried. Where all outputs can be expected to keep the cosine
// `clips_above`, normal takes those ranges too, if it loses much and far less with them.
Result<StepChoice> choose_steps(const BuildOptions& options, const Calibrated& stage, FloatNetwork& floats,
                                std::optional<double> clips_above);

// The same for formats in which only weights are integers: fitting weights to samples, or else correcting biases.
struct WeightStepChoice {
  quantize::WeightOnlyOptions choices;
  std::vector<StepGain> gains;
};
Result<WeightStepChoice> choose_weight_steps(const BuildOptions& options, const Stage& stage, quantize::WeightOnlyOptions choices,
                                             const Samples& samples);

// A line per step for people, and the same for programs.
std::string step_table(const std::vector<StepGain>& gains);
nlohmann::ordered_json to_json(const std::vector<StepGain>& gains);

}  // namespace orknn::toolkit
