// Values of TensorProto messages: raw contents stay in the file, typed lists are decoded, short lists repeat their last value.
#pragma once

#include <memory>

#include "import/tensorflow/parse.h"
#include "ir/tensor_data.h"

namespace orknn::importer::tensorflow {

struct TensorValue {
  ir::TensorData data;
  ir::Dims dims;  // of the tensor; where `data` is a single value and these say more, it fills the whole tensor
};
// `keeper` holds the bytes the message lies in. A large tensor of one repeated value is returned as that value.
Result<TensorValue> read_tensor(Bytes message, const std::shared_ptr<const void>& keeper);

}  // namespace orknn::importer::tensorflow
