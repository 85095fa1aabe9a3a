// accuracy_analysis: every layer of a built model against the float graph it came from, on one sample.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/stages.h"

namespace orknn::toolkit {

// How far one tensor is from another of the same size. Places where both hold the same infinity, or both no number, do not count.
struct Distance {
  double cosine = 1, euclid = 0;
  std::string word;  // "inf" or "nan" when the compared values are no numbers where the others are; then nothing above counts
};
Distance distance(std::span<const float> expected, std::span<const float> found);

// Below these a layer is marked yellow or red.
inline constexpr double kSuspiciousCosine = 0.99, kBadCosine = 0.98;

// What the values of a layer look like.
struct LayerValues {
  static constexpr size_t kBins = 64;
  std::string dtype;                               // of the built model
  double low = 0, high = 0;                        // of the float values
  std::vector<int64_t> expected_bins, found_bins;  // kBins equal parts of [low, high]
  double scale = 0;                                // of an integer tensor, else 0
  int bits = 0;                                    // of an integer tensor, else 0
  double represented_low = 0, represented_high = 0;
  double clipped = 0;  // share of float values outside of what the integers can say
  double bulk = 1;     // part of the range that holds 99.9 % of the values
  struct Channel {
    int64_t index = 0;
    double low = 0, high = 0;
    double relative_error = 0;  // length of the error by length of the values
  };
  int64_t channels = 0;
  std::vector<Channel> worst_channels;
};

// One row of the report: an input, a converter or a layer, named by its output tensor.
struct LayerAccuracy {
  std::string type, name;
  bool fused = false;      // computed inside its successor: nothing to compare
  bool is_output = false;  // leaves the network
  // With the values of the whole run; fed with golden values; the same on a device (there compared with the simulator).
  std::optional<Distance> entire, single, device_entire, device_single;
  LayerValues values;
  std::string suggestion;  // plain words, for layers that are not good
};

struct AccuracyReport {
  std::string model, platform, number_format;
  bool integer = false;
  bool has_device = false;
  std::vector<LayerAccuracy> layers;
  std::vector<std::pair<std::string, std::string>> files;  // tensor name -> file name without ending

  // The output that is furthest from the float model in the whole run; nullptr when none was compared.
  const LayerAccuracy* worst_output() const;
};

struct AccuracyOptions {
  std::vector<std::string> inputs;  // one file per model input; none = the first sample of `dataset`
  std::string dataset;
  std::string output_dir;    // empty = nothing is written
  std::string target;        // chip whose runtime is compared too; empty = none
  std::string device;        // address of the device that runs it; empty = it is simulated here
  bool write_errors = true;  // Toolkit1's calc_qnt_error
  bool as_npy = false;       // Toolkit1's dump_file_type='npy'
};

// `built` was made from `imported` with `building`, which decides whether folders and files are those of Toolkit1. Progress is
// shown as "AccuracyAnalysing".
Result<AccuracyReport> analyse_accuracy(const BuildOptions& building, const Imported& imported, const Built& built,
                                        const AccuracyOptions& options);

// The table users know; escapes for yellow and red only when `colours`. `width` > 0: names are shortened for lines of so many
// characters.
std::string accuracy_text(const AccuracyReport& report, bool colours, size_t width = 0);
// Toolkit1's lines, for `individual` layers or the whole run.
std::string accuracy_text_toolkit1(const AccuracyReport& report, bool individual);
// One self-contained page.
std::string accuracy_html(const AccuracyReport& report);
nlohmann::ordered_json to_json(const AccuracyReport& report);

}  // namespace orknn::toolkit
