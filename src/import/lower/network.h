// What the importers of named layers share: the order in which layers are needed, the ports of the model as the user wants them
// (cut, sized, fixed), and the tensors that go by the user's names while layers are lowered one after the other.
#pragma once

#include <algorithm>
#include <concepts>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "import/importer.h"
#include "import/lower/emitter.h"

namespace orknn::importer {

// --- order
// The names a layer reads and writes. Empty ones are absent.
struct LayerNames {
  std::vector<std::string_view> reads, writes;
};
struct LayerPlan {
  std::vector<size_t> layers;                 // those the outputs depend on, in execution order, the earliest in the file first
  std::unordered_set<std::string_view> read;  // names somebody reads, outputs included
};
// `stops` are names at which the model is cut: what produces them is not needed. Fails on a cycle and on a name written twice,
// and names the tensor.
Result<LayerPlan> plan_layers(std::span<const LayerNames> layers, std::span<const std::string_view> outputs,
                              const std::unordered_set<std::string_view>& stops);

// --- ports
struct Port {
  std::string name;
  DType dtype = DType::Float32;
  std::optional<ir::Shape> shape = {};
  ir::TensorData value = {};  // set by input_initial_val: the input is a constant
};
// That sizes and values, where there are any, are as many as inputs.
Status check_lengths(const ImportOptions& options, size_t inputs, bool may_be_fewer);
// Applies input_size_list and input_initial_val to the inputs of the model, in their order. A size with one extent less than the
// model's lacks the batch, as scripts for the first toolkit write it: 1 is put in front. Symbols settled by
// one input hold for all and are returned.
using Symbols = std::map<std::string, int64_t, std::less<>>;
Result<Symbols> apply_sizes(std::vector<Port>& inputs, const ImportOptions& options);
// "['a', 'b']", as Python prints it.
std::string quoted_list(std::span<const std::string> names);
// The wording users of the vendor's toolkit search for; `list` is "inputs" or "outputs".
// `known` are names it may have been meant to be.
Status no_such_tensor(const std::string& name, std::string_view list, std::span<const std::string> names,
                      std::span<const std::string_view> known = {});
template <class Names>
requires(!std::convertible_to<Names, std::span<const std::string_view>>) Status
    no_such_tensor(const std::string& name, std::string_view list, std::span<const std::string> names, const Names& known) {
  std::vector<std::string_view> sorted(known.begin(), known.end());
  std::sort(sorted.begin(), sorted.end());  // of names that differ equally the same one is suggested every time
  return no_such_tensor(name, list, names, sorted);
}
// The wording for an extent that is not known though it has to be.
Status invalid_input_shape(const ir::Shape& shape, size_t input);

// The plan for a model with these inputs, cut as the user wants; names of the user's that no layer writes are refused.
Result<LayerPlan> plan_model(std::span<const LayerNames> layers, std::span<const Port> inputs,
                             std::span<const std::string> outputs, const ImportOptions& options);
// The inputs of the model, or the user's in the user's order, of which none that is needed may be missing; with their sizes.
Result<std::vector<Port>> chosen_inputs(std::vector<Port> inputs, const LayerPlan& plan, const ImportOptions& options);

// --- problems
// What an importer found wrong, so that all of it is reported at once.
class Problems {
 public:
  // Keeps a problem, one that several layers run into once; of very many most are only counted.
  void add(const Status& problem);
  bool is_empty() const { return count_ == 0; }
  // All of them; ok when there are none.
  Status status() const;

 private:
  Status kept_;
  std::unordered_set<std::string> told_;
  size_t count_ = 0;
};

// --- names
class Network {
 public:
  explicit Network(const ir::OpSet& op_set) : ops(op_set) {}
  ir::Graph graph;
  const ir::OpSet& ops;
  std::vector<std::string> warnings;

  // A graph input, or a constant when the port has a value.
  void add_input(const Port& port);
  // From now on `name` is this tensor. A tensor that has no name of the user's yet takes it; another gets an Identity of that
  // name.
  void bind(const std::string& name, ir::TensorId id, std::string_view layer);
  // None when nothing has that name.
  ir::TensorId find(std::string_view name) const;
  // The same as an error that says who reads it.
  Result<ir::TensorId> need(std::string_view name) const;
  // Keeps a problem; the importer goes on with the next layer.
  void report(const Status& problem) { problems_.add(problem); }
  // Calls `lower(i, is_reachable)` for each layer of a plan and reports its problems. A layer is not reachable where one before
  // it failed: that is no problem of its own, unless its operator is unknown.
  template <class Lower>
  void lower_all(std::span<const LayerNames> layers, const LayerPlan& plan, Lower&& lower) {
    std::unordered_set<std::string_view> failed;
    for (const size_t i : plan.layers) {
      const bool is_reachable =
          std::none_of(layers[i].reads.begin(), layers[i].reads.end(), [&](auto name) { return failed.contains(name); });
      const Status status = lower(i, is_reachable);
      if (!status) report(status);
      if (!status || !is_reachable) failed.insert(layers[i].writes.begin(), layers[i].writes.end());
    }
  }
  // Nothing was reported so far.
  bool is_clean() const { return problems_.is_empty(); }
  // Makes the named tensors the outputs (a constant or an input as output gets an Identity), drops what they do not need,
  // verifies. Inputs stay, used or not. Returns all reported problems.
  Result<ir::Graph> finish(std::span<const std::string> outputs);

 private:
  std::unordered_map<std::string, ir::TensorId> values_;
  std::unordered_set<int32_t> named_;
  Problems problems_;
};

// Weights for a description without any: reproducible (they follow from the name), normal, of a variance that keeps the signal's
// size through a layer with `fan_in` inputs per output.
ir::TensorData random_weights(std::string_view name, ir::Dims dims, int64_t fan_in);
// What a parameter without a value is filled with.
enum class Fill { Random, Zeros, Ones };
ir::TensorData filled(std::string_view name, ir::Dims dims, Fill fill, int64_t fan_in);
// How many values were made up for a description: a few bytes of it could ask for very many.
class InventedValues {
 public:
  // Counts those of `owner` (a parameter or layer, for the message) that are about to be made up; refuses more than any network
  // that fits on the chips has.
  Status add(std::string_view owner, std::span<const int64_t> dims);

 private:
  int64_t count_ = 0;
};

}  // namespace orknn::importer
