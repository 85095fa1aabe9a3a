// Values of constant tensors: views of the file where the bytes allow it; packed and sparse ones are spread out.
#pragma once

#include <memory>

#include "import/tflite/parse.h"
#include "ir/tensor_data.h"

namespace orknn::importer::tflite {

// Extents as the file states them, the pair axis of complex numbers included. Fails on negative ones and on types we cannot hold.
Result<ir::Dims> stated_dims(const TensorInfo& info);
// `keeper` holds the bytes of the file.
Result<ir::TensorData> read_constant(const TensorInfo& info, const std::shared_ptr<const void>& keeper);

}  // namespace orknn::importer::tflite
