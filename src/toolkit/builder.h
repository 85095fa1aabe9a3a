// The building side as Python and the command line hold it: the options and the last stages of one model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/accuracy.h"
#include "toolkit/hybrid.h"
#include "toolkit/stages.h"

namespace orknn::toolkit {

// One object = one model. Calls return what went wrong and log nothing about it; remarks go to the log under the name of the
// vendor's function (load_onnx, build). A call that makes a stage anew drops it and the ones after it first, so that nothing of
// an earlier model is used after a failure.
class Builder {
 public:
  // Checks the options.
  static Result<Builder> create(BuildConfig config, Progress progress = {});

  // Operators of the user's own, for models that are loaded afterwards; nullptr = none.
  void set_custom_ops(std::shared_ptr<const ops::CustomOps> ops) { options_.custom_ops = std::move(ops); }
  Status load_model(const SourceModel& source);
  // What load_model() and build() do first, for callers that check more before they call them.
  void forget_model() {
    forget_build();
    imported_.reset();
  }
  void forget_build() { built_.reset(); }
  // Optimizes, quantizes (when asked) and compiles the loaded model; may be called again.
  Status build(const BuildRequest& request = {});
  // For the builds that follow: config().rknn_batch_size.
  Status set_batch(int64_t samples);

  // Hybrid quantization: step 1 writes files from the loaded model; step 2 needs nothing but these files, and the builder it
  // returns has built the model.
  Result<HybridStep1> hybrid_step1(const HybridRequest& request);
  static Result<Builder> hybrid_step2(const HybridFiles& files, Progress progress = {},
                                      std::shared_ptr<const ops::CustomOps> custom_ops = {});

  // Every layer of the built model against its float form.
  Result<AccuracyReport> analyse_accuracy(const AccuracyOptions& options) const;

  // The file is complete or does not appear.
  Status export_rknn(const std::string& path) const;
  // Size of the file that export_rknn() would write.
  Result<uint64_t> file_bytes() const;

  // nullptr before load_model() and build().
  const Imported* imported() const { return imported_ ? &*imported_ : nullptr; }
  const Built* built() const { return built_ ? &*built_ : nullptr; }
  const BuildConfig& config() const { return options_.config; }
  const platform::Platform& platform() const { return *options_.chip; }
  bool is_toolkit1() const { return options_.is_toolkit1(); }

 private:
  explicit Builder(BuildOptions options) : options_(std::move(options)) {}

  BuildOptions options_;
  std::optional<Imported> imported_;
  std::optional<Built> built_;
};

}  // namespace orknn::toolkit
