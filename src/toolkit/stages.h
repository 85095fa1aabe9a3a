// The build as a chain of values: Imported -> Optimized -> Calibrated -> Quantized -> Built. Each stage is made by one function
// from the stage before and the build's options, and never changes afterwards. Graphs share their constants, so that keeping a
// stage costs little memory.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compile/compile.h"
#include "format/program.h"
#include "import/importer.h"
#include "ops/custom_ops.h"
#include "passes/trace.h"
#include "quantize/calibrate.h"
#include "toolkit/config.h"
#include "toolkit/progress.h"

namespace orknn::toolkit {

using LayerNames = std::set<std::string, std::less<>>;  // of output tensors

// What every stage is made with.
struct BuildOptions {
  BuildConfig config;
  const platform::Platform* chip = nullptr;
  Progress progress = {};
  std::shared_ptr<const ops::CustomOps> custom_ops = {};  // operators of the user's own; nullptr = none

  // Whether files and reports have Toolkit1's names and forms.
  bool is_toolkit1() const { return config.toolkit1 || chip->generation == 1; }
  void report(std::string_view work, int64_t done, int64_t total) const {
    if (progress) progress(work, done, total);
  }
};
// Checks the configuration.
Result<BuildOptions> make_options(BuildConfig config, Progress progress = {});

// One network in every set of shapes of dynamic_input.
struct Network {
  ir::Graph graph;                           // in the largest shapes, or the only ones
  std::vector<ir::Graph> other_shapes = {};  // the same network in the other sets

  // The one in the largest shapes last.
  std::vector<ir::Graph*> all();
};

// What the stages before Built have in common.
struct Stage {
  std::string name;       // of the model, in messages and in the .rknn
  std::string framework;  // of the source model
  Network network;
  std::vector<compile::Normalization> normalization = {};  // per input: what the program does to it
  passes::Trace trace = {};                                // of the passes and steps so far, in the largest shapes
  std::shared_ptr<const ops::CustomOps> custom_ops = {};   // that the network was imported with

  const ir::OpSet& op_set() const { return ops::op_set(custom_ops); }
};

// What the files of hybrid quantization hold in place of calibration samples; names are those of tensors.
struct StoredCalibration {
  std::map<std::string, quantize::Range, std::less<>> ranges;
  std::map<std::string, std::vector<double>, std::less<>> channel_means;
  LayerNames uneven_tensors;
  std::map<std::string, quantize::NumberFormat, std::less<>> formats;  // of single layers
  LayerNames float_layers;
  std::shared_ptr<const quantize::RoundedLayers> rounded;
};

// --- Imported: the network as its source model states it
struct SourceModel {
  std::string path;
  std::string framework = {};  // name of an importer; empty = recognize the file
  importer::ImportOptions options = {};
  std::vector<std::string> other_files = {};  // weights of formats that keep them apart
};

struct Imported : Stage {
  std::vector<std::string> files = {};                   // it was read from; never written to
  std::shared_ptr<const StoredCalibration> stored = {};  // only of a model from the files of hybrid quantization
};
Result<Imported> import_model(const BuildOptions& options, const SourceModel& source);

// --- Optimized: the float network with the passes of the optimization level applied
struct Optimized : Stage {
  bool has_own_parameters = false;  // the source is quantized; its layers become integer ones with the parameters it states
  std::shared_ptr<const StoredCalibration> stored = {};
};
// What most layers will compute in; it decides which steps are fused into the layer before them.
enum class LayerNumbers : uint8_t { Floats, Integers };
// Of a build that quantizes with calibration samples.
LayerNumbers quantized_numbers(const BuildOptions& options);
// A model from the files of hybrid quantization is optimized already and stays as it is. One with parameters of its own has
// integer layers, whatever `numbers` says.
Result<Optimized> optimize_model(const BuildOptions& options, const Imported& imported, LayerNumbers numbers);
// Logs what model_pruning took out of the network, and warns of attention on which enable_flash_attention has no effect.
Status report_optimization(const BuildOptions& options, const Imported& imported, const Optimized& optimized);

// What an improvement step of the quantizer does to samples that were held back from calibration: the loss of the worst output,
// as 1 - cosine, with and without it.
struct StepGain {
  std::string step;
  double with = 0, without = 0;
  bool kept = true;
  bool at_least = false;  // without it the loss is `without` or more: enough to keep the step
};

// --- Calibrated: the float network whose layers become integer ones, and what was learned from samples
struct Calibrated : Stage {
  std::vector<quantize::LayerForms> forms = {};                   // of the layers, for each graph of network.all()
  quantize::QuantizeOptions choices = {};                         // of the integer forms; without keep_float and trace
  std::shared_ptr<const quantize::Calibration> calibration = {};  // without statistics where files took the place of samples
  LayerNames float_layers = {};                                   // to leave in float
  bool all_float = false;                                         // nothing becomes an integer, inputs and outputs included
  std::vector<std::string> hybrid_summary = {};                   // what auto_hybrid chose and what it costs, in sentences
  std::vector<StepGain> step_gains = {};                          // of the steps that were tried
};
// Samples that judge a network in each trial.
inline constexpr size_t kTrialSamples = 12;

struct CalibrationRequest {
  std::string dataset;
  bool auto_hybrid = false;              // leave the fewest layers in float that make every output reach the thresholds
  size_t trial_samples = kTrialSamples;  // of auto_hybrid
};
// Needs a quantized_dtype whose activations are integers.
Result<Calibrated> calibrate_model(const BuildOptions& options, Optimized optimized, const CalibrationRequest& request);

// --- Quantized: every layer in the number format it is compiled in
struct Quantized : Stage {
  ir::Graph reference = {};  // the float graph it was made from; computed tensors have the same names in it
  std::shared_ptr<const quantize::Calibration> calibration = {};  // nullptr where nothing was measured
  std::vector<std::string> hybrid_summary = {};
  std::vector<StepGain> step_gains = {};
};
Result<Quantized> lower_to_integers(Calibrated calibrated);
// w8a16 and w4a16: no activation is rounded to integers, so samples only serve to round weights well.
Result<Quantized> round_weights(const BuildOptions& options, Optimized optimized, const std::string& dataset);

// Layers that make or read values beyond what float16 holds, by output tensor, and what the samples showed.
struct LargeLayers {
  LayerNames layers = {};
  quantize::TensorStatistics statistics = {};
  size_t samples = 0;
};
// For auto_hybrid of a build that does not quantize.
Result<LargeLayers> find_large_layers(const BuildOptions& options, const Imported& imported, const std::string& dataset);

struct BuildRequest {
  bool do_quantization = false;
  std::string dataset = {};  // list of calibration samples
  bool auto_hybrid = false;
};
// The form that `request` and the options ask for, by one of the functions above or in float. `large`: layers of a float network
// that are to be computed in 16-bit integers; it has to be optimized for integer layers if there are any.
Result<Quantized> quantize_model(const BuildOptions& options, Optimized optimized, const BuildRequest& request,
                                 const std::optional<LargeLayers>& large);
// Refuses to quantize a model that comes quantized.
Status require_float_source(const Stage& model);

// --- Built: the model for the chip, with what it can be judged by
struct Built {
  std::shared_ptr<const format::Model> model;  // shared with sessions that run it
  ir::Graph reference;                         // as of Quantized, like what follows
  std::vector<compile::Normalization> normalization = {};
  std::shared_ptr<const quantize::Calibration> calibration = {};
  std::vector<std::string> hybrid_summary = {};
  std::vector<StepGain> step_gains = {};
  passes::Trace trace = {};
  std::shared_ptr<const ops::CustomOps> custom_ops = {};
};
Result<Built> compile_model(const BuildOptions& options, Quantized quantized);

// The whole chain after the import.
Result<Built> build_model(const BuildOptions& options, const Imported& imported, const BuildRequest& request);

// Which steps of the quantizer run, and what is shown of them.
passes::Options step_options(const BuildConfig& config);
// How graphs of this build are compiled.
compile::CompileOptions compile_options(const BuildOptions& options, std::vector<compile::Normalization> normalization);

}  // namespace orknn::toolkit
