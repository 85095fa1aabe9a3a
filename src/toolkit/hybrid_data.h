// The .data file of hybrid quantization: what step 2 needs from step 1 beside the float network and the text that people edit.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quantize/quantize.h"
#include "toolkit/config.h"
#include "toolkit/hybrid_file.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {

struct HybridData {
  std::string name, framework, dataset;
  BuildConfig config;
  HybridFile found;  // the parameters of all tensors before anybody edits them
  std::map<std::string, std::vector<double>, std::less<>> channel_means;  // of what convolutions read
  LayerNames uneven_tensors;                                              // whose channels lie far apart
  std::map<std::string, quantize::Range, std::less<>> uncut;              // what ranges were before their outliers were cut
  std::shared_ptr<const quantize::RoundedLayers> rounded;                 // may be nullptr
};

std::string print(const HybridData& data);
// Fields that are missing or damaged get their default values where a model can be built without them.
Result<HybridData> parse_hybrid_data(std::string_view text);

}  // namespace orknn::toolkit
