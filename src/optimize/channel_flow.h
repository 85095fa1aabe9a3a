// Which channels of which tensors are the same ones, which always hold one value, and which ones results depend on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/op_set.h"

namespace orknn::optimize {

// A node that makes channels of channels by constant weights: a convolution, a transposed one, or a product with a matrix.
struct Mixer {
  const ir::TensorData* weights = nullptr;
  int64_t inputs = 0, outputs = 0, groups = 1, taps = 1;
  size_t input_axis = 1, output_axis = 1;  // of the channels in input 0 and in the result
  bool input_first = false;                // the weights are [in, out / groups, taps], else [out, in / groups, taps]
  bool is_bordered = false;                // some results see zeros beside the input
  bool takes_bias = true;                  // a constant for each output can be added
  double scale = 1, bias_scale = 1;        // factors of the product and of the bias
  std::vector<double> bias;                // one value for each output, before bias_scale; empty = there is none

  int64_t inputs_of_group() const { return inputs / groups; }
  int64_t outputs_of_group() const { return outputs / groups; }
  int64_t group_of_input(int64_t i) const { return i / inputs_of_group(); }
  int64_t group_of_output(int64_t o) const { return o / outputs_of_group(); }
  // The first weight between two channels of one group.
  int64_t at(int64_t output, int64_t input) const {
    return (input_first ? input * outputs_of_group() + output % outputs_of_group()
                        : output * inputs_of_group() + input % inputs_of_group()) *
           taps;
  }
};

// Channels lie along one axis of a tensor: axis 1, until a Transpose, a view or a product moves them to another one. Nodes that
// keep channels apart hand them on, so that one channel passes many tensors; in a tensor that a view has flattened it takes
// several places.
class ChannelFlow {
 public:
  ChannelFlow(const ir::Graph& graph, const ir::OpSet& ops);
  // What went wrong while values were computed.
  const Status& problem() const { return problem_; }

  // The axis along which places leave a tensor, and the places that stay; nothing where all of them do.
  struct Kept {
    size_t axis = 0;
    std::vector<int64_t> places;
  };
  std::optional<Kept> kept(ir::TensorId t) const;
  bool loses_any() const;
  const Mixer* mixer(ir::NodeId id) const;
  // The value that a place of a tensor always holds.
  std::optional<double> value(ir::TensorId t, int64_t place) const;
  // Channels of the result of `id` that hold one value and stay all the same: how many, by the reason.
  std::map<std::string, int64_t> constants_that_stay(ir::NodeId id) const;

 private:
  struct Lane {
    size_t axis = 0;
    int32_t first = 0;  // number of the first place among those of all tensors
    int64_t count = 0;
  };

  // --- the flow
  void look_at(ir::NodeId id);
  bool look_at_mixer(ir::NodeId id, const ir::Node& n);
  std::optional<Mixer> convolution(const ir::Node& n) const;
  std::optional<Mixer> product(const ir::Node& n) const;
  bool hand_on(const ir::Node& n);
  bool hand_on_elementwise(const ir::Node& n);
  bool hand_on_by_window(const ir::Node& n);
  bool hand_on_by_reduction(const ir::Node& n);
  bool hand_on_by_norm(const ir::Node& n);
  bool hand_on_by_resize(const ir::Node& n);
  bool hand_on_by_view(const ir::Node& n);
  bool hand_on_by_transpose(const ir::Node& n);
  bool hand_on_by_pad(const ir::Node& n);
  bool hand_on_by_slice(const ir::Node& n);
  bool hand_on_parts(const ir::Node& n, bool joins);
  void keep_all(const ir::Node& n, const std::string& reason);

  // --- places
  const Lane* lane(ir::TensorId t) const;
  const Lane* add_lane(ir::TensorId t, size_t axis);
  // Joins `count` places of two tensors; those of the second take the values of the first.
  void join(const Lane& from, int64_t from_place, const Lane& to, int64_t to_place, int64_t count);
  int32_t find(int32_t place) const;
  void unite(int32_t a, int32_t b);
  void keep(int32_t place, const std::string& reason);
  void keep_tensor(ir::TensorId t, const std::string& reason);
  bool stays(int32_t place) const { return !reason_[static_cast<size_t>(find(place))].empty(); }

  // --- values
  void set_mixed_values(const ir::Node& n, const Mixer& m);
  void set_elementwise_values(const ir::Node& n, const std::vector<const Lane*>& lanes, const Lane& out);
  void set_values_by_trial(const ir::Node& n, const Lane& in, const Lane& out);

  // --- what stays
  void follow_needs();
  bool follow_needs_of(ir::NodeId id, const Mixer& m);
  bool settle_structure();
  bool settle_groups(ir::NodeId id, const Mixer& m);
  const std::vector<bool>& links(ir::NodeId id, const Mixer& m);

  const ir::Graph& graph_;
  const ir::OpSet& ops_;
  std::vector<std::optional<Lane>> lanes_;  // by tensor
  mutable std::vector<int32_t> same_;       // union-find over places
  std::vector<double> values_;              // by place; not a number = unknown
  std::vector<std::string> reason_;         // why the places of a class stay, at its representative; empty = they may go
  std::map<ir::NodeId, Mixer> mixers_;
  std::map<ir::NodeId, std::vector<bool>> links_;  // whether any weight between output and input of a mixer is not 0
  Status problem_;
};

// The parts of `value` at the positions `places` of an axis.
ir::TensorData slice(const ir::TensorData& value, size_t axis, const std::vector<int64_t>& places);
// The sum of the weights between two channels of one group.
double sum_of_weights(const std::vector<double>& weights, const Mixer& m, int64_t output, int64_t input);

}  // namespace orknn::optimize
