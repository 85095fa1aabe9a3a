// Hybrid quantization in two steps. Between them the user edits a text; the files carry everything that step 2 needs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "toolkit/stages.h"

namespace orknn::toolkit {

struct HybridRequest {
  std::string dataset;
  bool proposal = false;         // the file names the layers that auto_hybrid would leave in float
  int64_t proposal_samples = 1;  // of the dataset, at least 1; more than it has are all of them
  std::vector<std::pair<std::string, std::string>> custom = {};  // every layer between two tensors leaves int8
  std::string folder = ".";                                      // of the files; made if it is missing
};

struct HybridStep1 {
  std::vector<std::string> files;           // <name>.model, .data and .quantization.cfg (docs/accuracy.md), the last one to edit
  std::vector<std::string> hybrid_summary;  // about the proposal, in sentences
};

// Calibrates and writes the files.
Result<HybridStep1> hybrid_step1(const BuildOptions& options, const Imported& imported, const HybridRequest& request);

struct HybridFiles {
  std::string model, data, quantization;
  std::string dataset =
      {};  // where the list of step 1 has moved; only formats whose weights are rounded with samples (gdq) need it
};

// What the files of step 1 and the user's changes ask for: build_model() makes the model of it.
struct HybridStep2 {
  BuildOptions options;
  Imported imported;
  BuildRequest request;
};
Result<HybridStep2> read_hybrid_files(const HybridFiles& files, Progress progress = {},
                                      std::shared_ptr<const ops::CustomOps> custom_ops = {});

}  // namespace orknn::toolkit
