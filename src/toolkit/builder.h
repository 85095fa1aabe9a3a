// The building side in one class: configure, load, build, export. Python and the command line stand on it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compile/compile.h"
#include "format/program.h"
#include "import/importer.h"
#include "optimize/trace.h"
#include "quantize/calibrate.h"
#include "toolkit/config.h"

namespace orknn::toolkit {

class Samples;

// Called with the stage's name and how far it is; `done` == `total` ends it.
using Progress = std::function<void(std::string_view stage, int64_t done, int64_t total)>;

// One object = one model. Calls return what went wrong and log nothing about it; remarks go to the log under the name of the
// vendor's function (load_onnx, build).
class Builder {
 public:
  // Checks the options.
  static Result<Builder> create(BuildConfig config, Progress progress = {});

  // Reads a source model. `framework` is an importer's name, empty = recognize the file. `other_files`: weights of formats that
  // keep them apart. A failed load leaves no model.
  Status load_model(const std::string& path, std::string_view framework = {}, const importer::ImportOptions& options = {},
                    std::vector<std::string> other_files = {});
  bool is_loaded() const { return loaded_; }

  // Optimizes, quantizes (with the samples listed in `dataset`, when asked) and compiles the loaded model; may be called again.
  // `auto_hybrid` leaves the fewest layers in float that make every output reach the thresholds of the configuration.
  Status build(bool do_quantization = false, const std::string& dataset = {}, bool auto_hybrid = false);
  bool is_built() const { return model_ != nullptr; }
  // For the builds that follow: config_.rknn_batch_size.
  Status set_batch(int64_t samples);

  // Hybrid quantization. Step 1 calibrates and writes <name>.model, .data and .quantization.cfg (docs/accuracy.md) into a folder;
  // its answer is their paths. The user edits the last one.
  struct HybridRequest {
    std::string dataset;
    bool proposal = false;  // the file names the layers that auto_hybrid would leave in float
    size_t proposal_samples = 1;
    std::vector<std::pair<std::string, std::string>> custom;  // every layer between two tensors leaves int8
    std::string folder = ".";
  };
  Result<std::vector<std::string>> hybrid_step1(const HybridRequest& request);
  // Step 2 needs nothing but the files: the builder it answers has built the model. Only formats whose weights are rounded with
  // samples (gdq) need those again; `dataset` may be given when the list of step 1 has moved.
  static Result<Builder> hybrid_step2(const std::string& model, const std::string& data, const std::string& quantization,
                                      const std::string& dataset = {}, Progress progress = {});

  // The file is complete or does not appear.
  Status export_rknn(const std::string& path) const;

  // The built model, nullptr before build(). Shared with sessions that run it.
  std::shared_ptr<const format::Model> model() const { return model_; }
  // The graph as imported, and where it came from; only after load_model().
  const ir::Graph& source_graph() const { return graph_; }
  const importer::SourceInfo& source() const { return source_; }
  // What the optimizer did in the last build().
  const optimize::Trace& trace() const { return trace_; }
  // Whether the last build() cut outliers off the range of this tensor (step clip_outliers).
  bool cut_outliers(std::string_view tensor) const;
  // What became of each layer in the last quantizing build().
  const std::vector<quantize::LayerDecision>& layer_decisions() const { return layer_decisions_; }
  // The float graph of the last build(): what layers of the built model are compared with. Computed tensors keep their names in
  // it.
  const ir::Graph& reference_graph() const { return reference_; }
  compile::CompileOptions compile_options() const;
  // Shows how far a stage is.
  void report(std::string_view stage, int64_t done, int64_t total) const {
    if (progress_) progress_(stage, done, total);
  }
  // Sentences about what auto_hybrid chose in the last build() and what it costs; empty without it.
  const std::vector<std::string>& hybrid_summary() const { return hybrid_summary_; }
  const BuildConfig& config() const { return config_; }
  const platform::Platform& platform() const { return *platform_; }

 private:
  Builder() = default;
  std::string hybrid_name() const;
  Status optimize_graph(ir::Graph& graph);
  Result<ir::Graph> import_graph(const std::string& path, std::string_view framework, const importer::ImportOptions& options,
                                 const std::vector<std::string>& other_files, importer::SourceInfo& source);
  // `others`: the same network in other shapes; they get the parameters of `graph`.
  Status quantize_graph(ir::Graph& graph, const std::string& dataset, std::vector<ir::Graph>* others = nullptr);
  Status store_weights_as_integers(ir::Graph& graph) const;
  // `converted` is told the bytes of weights whose number format was settled.
  Status add_program(format::Model& model, ir::Graph graph, const std::function<void(uint64_t bytes)>& converted) const;
  bool takes(const quantize::Step& step) const;
  void remark(const quantize::Step& step, const std::string& text);
  quantize::QuantizeOptions quantize_options(const quantize::NumberFormat& format) const;
  Status lower_to_integers(ir::Graph& graph, const quantize::TensorStatistics& statistics, quantize::QuantizeOptions choices);
  Status lower_large_layers(ir::Graph& graph, const std::string& dataset);
  Status choose_float_layers(const ir::Graph& graph, const Samples& samples, quantize::QuantizeOptions& choices);
  std::map<std::string, quantize::Range, std::less<>> fold_normalization(const std::vector<ir::Graph*>& graphs, Samples& samples);
  Status round_weights(ir::Graph& graph, DType type, const std::string& dataset);
  Status run_samples(const Samples& samples, const ir::Graph& graph, size_t count, const quantize::Observe& observe) const;
  void log_float_layers() const;

  BuildConfig config_;
  const platform::Platform* platform_ = nullptr;
  Progress progress_;
  bool loaded_ = false;
  std::string model_name_;
  std::vector<std::string> source_files_;  // never written to
  ir::Graph graph_, reference_;
  std::vector<ir::Graph> other_shapes_;  // graph_ in the other shapes of dynamic_input
  importer::SourceInfo source_;
  std::vector<compile::Normalization> normalization_;
  std::vector<compile::Normalization> kept_normalization_;  // what the last build() left of it for the program's inputs
  optimize::Trace trace_;
  std::vector<quantize::LayerDecision> layer_decisions_;
  std::shared_ptr<const format::Model> model_;
  bool auto_hybrid_ = false;
  static constexpr size_t kHybridSamples = 12;  // of each trial
  size_t hybrid_samples_ = kHybridSamples;
  // Step 2 of hybrid quantization: what the files say takes the place of samples.
  struct FileParameters {
    std::map<std::string, quantize::Range, std::less<>> ranges;
    std::map<std::string, std::vector<double>, std::less<>> channel_means;
    std::set<std::string, std::less<>> uneven_tensors;
    std::map<std::string, quantize::NumberFormat, std::less<>> formats;  // of single layers
    std::set<std::string, std::less<>> float_layers;
    std::shared_ptr<const quantize::RoundedLayers> rounded;
  };
  std::optional<FileParameters> from_files_;
  std::optional<quantize::Calibration> calibration_;  // of the last quantizing build(), for step 1
  bool equalizes_ = true;                             // channels, when the configuration asks for it
  std::set<std::string, std::less<>> float_layers_;   // left in float, by name of node or output tensor
  std::vector<std::string> hybrid_summary_;
};

// mean_values and std_values for the inputs of `graph`: fills in what is missing, with a warning per input under `tag`, and
// refuses lists whose length is not the input's number of channels. Inputs that need nothing get empty lists.
Result<std::vector<compile::Normalization>> normalization_of(const ir::Graph& graph, const BuildConfig& config,
                                                             std::string_view tag);

// Channel axis of an input: 1, or the last one for NHWC data; 0 for vectors.
size_t channel_axis(const ir::Tensor& tensor);

}  // namespace orknn::toolkit
