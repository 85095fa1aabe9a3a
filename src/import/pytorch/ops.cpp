#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {

std::vector<std::span<const Row>> all_rows() {
  return {python_rows(), container_rows(), pointwise_rows(), activation_rows(), compare_rows(),     reduce_rows(),
          shape_rows(),  join_rows(),      index_rows(),     create_rows(),     convolution_rows(), pool_rows(),
          norm_rows(),   matrix_rows(),    attention_rows(), recurrent_rows(),  resample_rows(),    quantize_rows(),
          packed_rows(), quantized_rows(), vision_rows(),    signal_rows(),     loss_rows()};
}

}  // namespace orknn::importer::pytorch
