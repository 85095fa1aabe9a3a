// The calibration list (dataset.txt): one sample per line, one file per model input, separated by blanks.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "ir/tensor_data.h"

namespace orknn::data {

// What a sample must become for one input of the model.
struct ModelInput {
  std::string name;
  ir::Dims dims;                              // concrete; of a model with dynamic shapes the largest set
  ir::Layout layout = ir::Layout::Undefined;  // Undefined reads 4-D dims as NCHW
  bool swap_red_blue = false;                 // quant_img_RGB2BGR: pictures only, never arrays
};

struct DatasetOptions {
  // Toolkit1 reads: arrays are H,W,C when both readings fit, and a line with a missing file is skipped with a warning.
  bool toolkit1 = false;
};

// A list that has been read and checked: every line has a file for each input and the files exist. Contents are read when a
// sample is asked for, so memory does not grow with the list. Immutable after open(): any number of threads may call sample().
//
// Pictures are decoded (grey for one channel, else RGB), scaled to the input's height and width and laid out as the input is.
// Arrays keep their type. A 4-D array is NCHW whatever the layout of the input; one that only fits as NHWC is taken as that;
// leading extents of 1 may be missing. Where the input's batch is larger than one, a single picture or array of batch 1 is
// repeated.
class Dataset {
 public:
  // Paths in the list are relative to its folder, else to the current directory. `open` reports every bad line at once.
  static Result<Dataset> open(const std::string& list, std::vector<ModelInput> inputs, const DatasetOptions& options = {});
  // One sample from files named one by one (accuracy_analysis); paths are relative to the current directory.
  static Result<Dataset> of_files(const std::vector<std::string>& files, std::vector<ModelInput> inputs,
                                  const DatasetOptions& options = {});

  size_t size() const { return samples_.size(); }
  const std::vector<ModelInput>& inputs() const { return inputs_; }
  // The files of sample `index`, one per input, as they can be opened.
  const std::vector<std::string>& files(size_t index) const { return samples_[index].files; }
  // "dataset.txt line 3 (dog.jpg)", for messages.
  std::string describe(size_t index) const;

  // Every sample of input `index` is a picture or an array of bytes, some of them above 127: masks and labels are no pixels.
  bool holds_pixels(size_t index) const;

  // One tensor per model input with exactly its dims; uint8 for pictures, the array's own type for .npy files.
  Result<std::vector<ir::TensorData>> sample(size_t index) const;

 private:
  struct Sample {
    size_t line = 0;  // counted from 1; 0 without a list
    std::vector<std::string> files;
  };
  std::string list_;
  std::vector<ModelInput> inputs_;
  DatasetOptions options_;
  std::vector<Sample> samples_;
};

}  // namespace orknn::data
