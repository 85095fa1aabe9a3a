// Decides which layers become integer ones, and gives tensors their scale and zero point.
#pragma once

#include <vector>

#include "ir/index_of.h"
#include "quantize/plan.h"
#include "quantize/quantize.h"

namespace orknn::quantize {

// Some channels of a tensor, a sixteenth of them at least, use less than a 32nd of its range and are set apart from the others by
// a factor of 8: boxes and scores from one layer. In `bits` bits little would be left of the small ones. Channels are those of
// the statistics or indices along an axis of features; of either, some values each must have been seen.
bool channels_lie_apart(const Statistics& statistics, int bits);

// Tensors whose values stay beside those they stand beside up to an output of the graph, by index.
std::vector<char> tensors_carried_out(const ir::Graph& graph, const LayerForms& forms);

// Fills tensors and types of a plan and leaves those forms of layers that can be computed. All references must outlive it.
class ParameterChoice {
 public:
  ParameterChoice(const ir::Graph& graph, const LayerForms& forms, const Calibration& calibration, const QuantizeOptions& options,
                  Plan& plan)
      : graph_(graph), forms_(forms), calibration_(calibration), options_(options), plan_(plan) {}

  // Layers whose tensors are known become integer ones. Layers that only copy values share their input's parameters.
  Status choose();
  // Takes those back that would round small values away: a Concat of boxes and scores on the way to an output, and everything
  // after it (one scale cannot hold both), masked values, logarithms.
  Status keep_small_values(passes::Rewriter& rewriter);
  // The inputs of a Concat take the parameters of its result where nothing else reads them.
  Status share();

 private:
  ir::QuantParams parameters(Range range) const;
  std::optional<ir::QuantParams> own_parameters(ir::TensorId t, std::string_view last_op) const;
  double unit_range(ir::TensorId t) const;
  // How values leave the network, if nothing else happens to them up to an output; the later ones where several are true.
  enum class Leaves : char { Not, ThroughSoftmax, ThroughSigmoid, Copied };
  bool leaves(ir::TensorId t) const { return leaves_[ir::index_of(t)] != Leaves::Not; }
  Range with_room(Range range, const Statistics& statistics, const NumberFormat& format, Leaves leaves) const;
  double room_of(double stretch) const;
  const Statistics* seen(ir::TensorId t) const;
  bool has_parameters(ir::TensorId t) const { return plan_.parameters(t).has_value(); }

  void find_what_leaves();
  void find_logarithms();
  bool inputs_ready(const ir::Node& n, Form f) const;
  LayerForm possible_form(ir::NodeId id) const;
  // Gives the results of `n` their parameters; in float where they have none.
  void settle(const ir::Node& n, LayerForm& form);

  std::optional<LayerForm> kept_in_float(const ir::Node& n, Form f);
  std::string what_mixes(const ir::Node& n, Form f) const;
  bool has_channels_apart(ir::TensorId t) const;
  bool is_masked(ir::TensorId t) const;
  bool only_softmax_reads(ir::TensorId t) const;
  double largest_ratio() const;
  void take_over(ir::TensorId t, const ir::QuantParams& parameters);

  const ir::Graph& graph_;
  const LayerForms& forms_;  // that the nodes alone allow for
  const Calibration& calibration_;
  const QuantizeOptions& options_;
  Plan& plan_;
  // By tensor:
  std::vector<Leaves> leaves_;
  std::vector<char> carried_out_;  // its values stay beside those they stand beside up to an output
  std::vector<char> logarithm_;    // its values end in a logarithm
  std::vector<char> mixed_;        // holds small values beside much larger ones
};

}  // namespace orknn::quantize
