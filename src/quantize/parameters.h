// Gives tensors their scale and zero point.
#pragma once

#include <optional>
#include <vector>

#include "quantize/layer_forms.h"
#include "quantize/quantize.h"

namespace orknn::quantize {

// Some channels of a tensor, a sixteenth of them at least, use less than a 32nd of its range and are set apart from the others by
// a factor of 8: boxes and scores from one layer. In `bits` bits little would be left of the small ones. Channels are those of
// the statistics or indices along an axis of features; of either, some values each must have been seen.
bool channels_lie_apart(const Statistics& statistics, int bits);

// Tensors whose values stay beside those they stand beside up to an output of the graph, by index.
std::vector<char> tensors_carried_out(const ir::Graph& graph);

struct Assignment {
  std::vector<std::optional<ir::QuantParams>> tensors;  // by tensor index; nothing = stays in float
  std::vector<LayerForm> forms;                         // by node index; what each layer becomes
  bool integer_inputs = false;                          // inputs with parameters are integers, whoever reads them
  std::vector<DType> types;                             // by tensor index; none = all have the format's type
};

// Decides which layers become integer ones, and the parameters of all tensors between them. Layers that only copy values share
// their input's parameters; the inputs of a Concat take those of its result where nobody else reads them. A Concat of boxes and
// scores on the way to an output stays in float, as does everything behind it: one scale cannot hold both.
Assignment assign_parameters(const ir::Graph& graph, const TensorStatistics& statistics, const QuantizeOptions& options);

}  // namespace orknn::quantize
