// Calibration samples, and graphs computed on them with the fast kernels. Everything that measures a model on pictures uses
// it.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include "compile/compile.h"
#include "data/dataset.h"
#include "quantize/quantize.h"
#include "runtime/session.h"

namespace orknn::toolkit {

// How files become inputs.
struct SampleRules {
  std::vector<bool> swap_red_blue;  // pictures are fed as BGR: one flag for all inputs or one each
  data::DatasetOptions dataset;
};

class Samples {
 public:
  // `graph` says what the inputs are; it needs static shapes. `options` say how graphs are compiled (platform, normalization).
  static Result<Samples> open(const std::string& dataset, const ir::Graph& graph, const SampleRules& rules,
                              compile::CompileOptions options);
  // One sample: a file per input.
  static Result<Samples> of_files(const std::vector<std::string>& files, const ir::Graph& graph, const SampleRules& rules,
                                  compile::CompileOptions options);

  size_t size() const { return std::min(dataset_.size(), end_); }
  // The same samples beginning with number `first`; those before it come last.
  Samples starting_at(size_t first) const {
    Samples turned = *this;
    turned.first_ = number(first);
    return turned;
  }
  // Leaves the others out. To be called before starting_at().
  void keep_first(size_t count) { end_ = std::min(end_, count); }
  bool holds_pixels(size_t input) const { return dataset_.holds_pixels(input); }
  // In place of the one given to open().
  void set_normalization(std::vector<compile::Normalization> normalization) { options_.normalization = std::move(normalization); }
  // One value per input, as the source model takes them. Small ones are decoded once.
  Result<std::vector<ir::TensorData>> values(size_t i) const;
  // Where sample `i` came from, for messages.
  std::string describe(size_t i) const { return dataset_.describe(number(i)); }

  // Called with the number of the sample, and otherwise as quantize::Observe.
  using Observe = std::function<void(size_t sample, std::string_view tensor, const ir::TensorView& value)>;
  // Called on the calling thread with the number of samples done so far, at the end with all of them.
  using Done = std::function<void(size_t done)>;
  // Computes `graph`, which has the inputs of open()'s graph, on the first `count` samples, each thread whole ones. Floats are
  // float32, the same on every machine.
  Status run(const ir::Graph& graph, size_t count, const Observe& observe, const Done& done = {}) const;
  // Called with the outputs of each sample, of several at once on different threads. False: no further sample needs to begin.
  using SeeOutputs = std::function<bool(size_t sample, std::span<const ir::TensorView> outputs)>;
  // The same for the sake of the outputs alone, which costs less.
  Status run_for_outputs(const ir::Graph& graph, size_t count, const SeeOutputs& see) const;

  // One sample after the other with a finished model; `hooks` see the ids of its program.
  Status run(runtime::Session& session, size_t count, const sim::RunHooks& hooks) const;

 private:
  struct Decoded;
  Samples(data::Dataset dataset, compile::CompileOptions options);

  Result<std::unique_ptr<runtime::Session>> open_session(const ir::Graph& graph) const;
  Status feed(runtime::Session& session, size_t i) const;
  size_t workers(const runtime::Session& session, size_t count) const;

  size_t number(size_t i) const { return size() == 0 ? 0 : (first_ + i) % size(); }  // in the dataset

  data::Dataset dataset_;
  compile::CompileOptions options_;
  std::shared_ptr<Decoded> decoded_;
  size_t first_ = 0;       // with which the samples begin
  size_t end_ = SIZE_MAX;  // of the samples that count
};

}  // namespace orknn::toolkit
