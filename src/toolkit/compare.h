// Two models, or a model and stored results, on the same pictures.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "runtime/session.h"
#include "toolkit/progress.h"

namespace orknn::toolkit {

struct OutputComparison {
  std::string name;
  std::vector<int64_t> dims;
  double mean_cosine = 1, least_cosine = 1;            // over the pictures
  std::string least_cosine_at;                         // the picture
  double largest_difference = 0, mean_difference = 0;  // absolute
  size_t same_top1 = 0;                                // pictures whose largest element is in the same place
};

struct Comparison {
  size_t pictures = 0;
  std::vector<OutputComparison> outputs;
};

// The picture files of a folder, or the samples of a calibration list, for a model with these inputs. A folder serves models of
// one input.
Result<std::vector<data::Dataset>> open_pictures(const std::string& folder_or_list, const std::vector<runtime::PortInfo>& inputs,
                                                 bool swap_red_blue);

// Gives a session the values of a sample of a dataset with these inputs.
Status feed_sample(runtime::Session& session, const std::vector<ir::TensorData>& values,
                   const std::vector<data::ModelInput>& described);

// Runs both on every sample; their outputs must have the same number of elements.
Result<Comparison> compare_models(runtime::Session& a, runtime::Session& b, const std::vector<data::Dataset>& samples,
                                  const Progress& progress = {});
// `folder` holds <picture>.npy, or <picture>_0.npy, <picture>_1.npy, ... for several outputs, where <picture> is the name of the
// file with its ending or, when there is no such result, without. Two samples may not have one result.
Result<Comparison> compare_with_stored(runtime::Session& a, const std::string& folder, const std::vector<data::Dataset>& samples,
                                       const Progress& progress = {});

std::string comparison_text(const Comparison& comparison, size_t width = 0);  // width as in report.h
nlohmann::ordered_json to_json(const Comparison& comparison);

}  // namespace orknn::toolkit
