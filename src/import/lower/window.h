// Windows that slide over the spatial axes of a picture: what every framework says about kernels, strides and padding, as the
// attributes of our Conv and pooling operators.
#pragma once

#include <optional>
#include <vector>

#include "import/lower/emitter.h"

namespace orknn::importer {

// Lists run over the spatial axes, outermost first. Lists that are empty are left to our operators' defaults.
struct Window {
  enum class Padding {
    Explicit,
    Valid,
    Same
  };  // Same: as many outputs as strides fit into the input, the odd element at the end

  std::vector<int64_t> kernel = {};  // empty when the weights tell
  std::vector<int64_t> strides = {}, dilations = {};
  Padding padding = Padding::Explicit;
  std::vector<int64_t> pads_begin = {}, pads_end = {};  // with Padding::Explicit
  bool ceil = false;                                    // the last window may reach over the end (pooling)
  bool counts_padding = false;                          // averages count padding as zeros

  // Numbers that are not positive or absurdly large are refused; pads may be 0.
  Status check() const;
  ir::Attributes attributes() const;
  // Extent of the kernel along an axis with dilation counted in. `kernel` is set.
  int64_t reach(size_t axis) const;
};

// A convolution in our order of axes: weights [out, in / groups, spatial...], of a transposed one [in, out / groups, spatial...].
struct Filter {
  ir::TensorId weights = {}, bias = {};  // no bias: none
  Window window = {};
  int64_t groups = 1;

  std::vector<ir::TensorId> inputs(ir::TensorId x) const;
  ir::Attributes attributes() const;  // of the window, and the groups
};

// Windows, strides and pads beyond this are damage.
inline constexpr int64_t kMaxWindow = 1 << 20;

// What Padding::Same adds to an input of this extent: all of it, half of which (rounded down) comes first.
int64_t same_padding(int64_t extent, int64_t reach, int64_t stride);
// The window with Padding::Same made explicit for these extents (nothing where not known); stays Same when an extent is open.
Window with_explicit_padding(Window window, const std::vector<std::optional<int64_t>>& extents);
// Each element of the windows over [N, channels, spatial...] as a channel of its own, those of one channel together: a
// convolution whose kernels pick one element each. The window states its kernel.
Result<ir::TensorId> window_elements(Emitter& e, ir::TensorId x, int64_t channels, const Window& window);
// All begins, then all ends, as our attribute `pads` has them.
std::vector<int64_t> joined(std::vector<int64_t> begin, const std::vector<int64_t>& end);

}  // namespace orknn::importer
