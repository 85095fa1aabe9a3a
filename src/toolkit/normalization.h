// What config(mean_values, std_values) means for the inputs of a network.
#pragma once

#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "toolkit/config.h"

namespace orknn::toolkit {

// mean_values and std_values for the inputs of `graph`: fills in what is missing, with a warning per input under `tag`, and
// refuses lists whose length is not the input's number of channels. Inputs that need nothing get empty lists.
Result<std::vector<compile::Normalization>> normalization_of(const ir::Graph& graph, const BuildConfig& config,
                                                             std::string_view tag);

// Channel axis of an input: 1, or the last one for NHWC data; 0 for vectors.
size_t channel_axis(const ir::Tensor& tensor);

}  // namespace orknn::toolkit
