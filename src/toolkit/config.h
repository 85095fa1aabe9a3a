// Build options, the keys of config() that matter to the building side, checked in one place.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "platform/platforms.h"
#include "quantize/number_format.h"

namespace orknn::toolkit {

using ChannelValues = std::vector<std::vector<double>>;  // one list per input
using ShapeSets = std::vector<std::vector<ir::Dims>>;    // sets of one shape per input

inline constexpr int64_t kMostSamplesAtOnce = 65536;  // of a built model or a profiled one

struct BuildConfig {
  std::string target_platform;               // any case; empty = the default one, with a warning
  bool toolkit1 = false;                     // the script is Toolkit1's: its default chip, its file names and reports
  std::vector<std::string> other_platforms;  // must run the same model
  std::optional<ChannelValues> mean_values, std_values;
  bool one_value_for_all_channels = false;   // a list of one value above stands for every channel (Toolkit1's load_tensorflow)
  bool first_value_for_one_channel = false;  // of a list above an input of one channel takes the first (channel_mean_value)
  std::string quantized_dtype = "w8a8";
  std::string quantized_algorithm;  // empty: gdq where only weights are integers (w8a16, w4a16), else normal
  std::string quantized_method = "channel";
  double auto_hybrid_cos_thresh = 0.98;  // what build(auto_hybrid) makes every output reach
  std::optional<double> auto_hybrid_euc_thresh;
  int quantized_hybrid_level = 0;       // 0 to 3: which part of the layers stays in float, the most sensitive ones first
  int64_t batch_size = 100;             // Toolkit1: calibration takes batch_size * epochs samples
  int64_t epochs = -1;                  // -1 = all samples
  std::vector<bool> quant_img_RGB2BGR;  // calibration pictures are fed as BGR: one flag for all inputs, or one each
  std::vector<bool> reorder_channel;    // per input: pictures are fed as RGB to a network that takes BGR
  ShapeSets dynamic_input;              // empty = the shapes of the source model
  int64_t rknn_batch_size = 1;          // samples the built model computes at once; calibration takes one
  std::string float_dtype = "float16";  // or "float32": ours, for exact comparison with the source framework
  int optimization_level = 3;
  std::string custom_string;
  std::map<std::string, std::string> op_target;
  std::vector<std::string>
      inputs_yuv_fmt;                      // per input: format of the pictures the built model takes; empty = as the source model
  std::vector<std::string> disable_rules;  // passes and steps to leave out; names we do not have are ignored with a warning
  bool single_core_mode = false;
  bool quantize_weight = false;                        // float builds: weights are stored as int8
  bool sparse_infer = false, compress_weight = false;  // shorter forms of weights, where the chip has them
  bool model_pruning = false;                          // channels that no result depends on leave the network
  bool remove_reshape = false;                         // inputs and outputs keep the shapes that the layers next to them have
  bool enable_flash_attention = false;                 // attention is one task in every form, where the chip has it
  bool registers = false;                              // files hold the weights as the NPU wants them packed, too
  bool remove_streams = false;  // files hold no command streams, which else they do for chips whose registers are known
  bool remove_weight = false;   // files leave out the weights of convolutions, which another model has

  // For looking inside (command line); config() has no such keys.
  std::string stop_after;
  std::vector<std::string> dump_after;
  std::function<void(std::string_view pass, const ir::Graph& graph)> dump;
  size_t max_rewrites = SIZE_MAX;
  bool share_memory = true;
};

// Checks every option and reports all that are wrong; warnings go to the log under the tag "config". Returns the chip.
Result<const platform::Platform*> check(const BuildConfig& config);
// The same for rknn_batch_size alone, which build() may change, and for the two that a profile takes too.
Status check_batch(int64_t samples);
Status check_optimization_level(int level);
Status check_op_target(const std::map<std::string, std::string>& op_target);
// Of options that have no effect when build() quantizes the model.
void warn_of_quantized_build(const BuildConfig& config);

// How many of `count` calibration samples Toolkit1's batch_size and epochs leave.
size_t calibration_samples(const BuildConfig& config, size_t count);

// The number format that `quantized_dtype` means on `chip`. Toolkit1's chips have their own; on the others its names stand for
// the nearest one.
Result<quantize::NumberFormat> number_format(const platform::Platform& chip, const std::string& quantized_dtype);

// Names `config` accepts for quantized_algorithm and quantized_method.
std::vector<std::string> quantized_algorithms();
std::vector<std::string> quantized_methods();
// Names `config` accepts for quantized_dtype, in the order the vendor prints them; old spellings included at the end.
std::vector<std::string> quantized_dtypes();

}  // namespace orknn::toolkit
