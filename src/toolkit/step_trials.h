// Which improvement steps of the quantizer a network is better off without, by what its outputs lose on samples that were held
// back from calibration.
#pragma once

#include "toolkit/trials.h"

namespace orknn::toolkit {

struct StepChoice {
  quantize::QuantizeOptions choices;
  std::vector<StepGain> gains;            // in the order of the trials
  std::optional<double> expected_cosine;  // of the worst output on other samples; nothing when there was no trial
};

// `stage` has its network and choices, but no calibration yet. Too few samples to hold any back: the choices stay as they are.
// adaround never loses to normal: it is taken with its own ranges or with those of normal, whichever keeps more, as long as no
// output keeps less than with normal.
Result<StepChoice> choose_steps(const BuildOptions& options, const Calibrated& stage, const Samples& samples,
                                size_t trial_samples);

// A line per step for people.
std::string step_table(const std::vector<StepGain>& gains);

}  // namespace orknn::toolkit
