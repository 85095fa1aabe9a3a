// Values of ONNX tensors, wherever the file keeps them: raw bytes, typed fields, a file beside the model, a sparse list.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/files.h"
#include "import/onnx/parse.h"
#include "ir/tensor_data.h"

namespace orknn::importer::onnx {

// Our type for an ONNX data_type. The error says which type it is when we have none (strings, complex, 8-bit floats).
Result<DType> to_dtype(int64_t data_type);

class TensorReader {
 public:
  // Where external data may be: in the folder of the model (empty = there may be none), or, through links, in the one that its
  // own file really is in.
  struct Folders {
    std::string model, real;
  };
  // `keeper` holds the model's bytes. `stand_ins`: float tensors whose file is missing get arbitrary values instead of an error.
  TensorReader(Folders folders, std::shared_ptr<const void> keeper, bool stand_ins = false)
      : folders_(std::move(folders)), keeper_(std::move(keeper)), stand_ins_(stand_ins) {}

  // Points into the file where the layout there is ours, copies otherwise.
  Result<ir::TensorData> read(const TensorProto& tensor);
  Result<ir::TensorData> read(const SparseTensorProto& tensor);
  // Tensors that got arbitrary values.
  size_t stand_in_count() const { return stand_in_count_; }

 private:
  struct Payload {
    Bytes bytes;
    std::shared_ptr<const void> keeper;
  };
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location) const;
  Result<Payload> external(const TensorProto& tensor, uint64_t wanted_bytes);
  Result<ir::TensorData> from_bytes(DType dtype, ir::Dims dims, int64_t count, const Payload& payload);
  Result<ir::TensorData> from_fields(const TensorProto& tensor, DType dtype, ir::Dims dims, int64_t count);

  Result<ir::TensorData> stand_in(DType dtype, ir::Dims dims, uint64_t bytes);
  // Values from the distribution that the file describes instead of storing them.
  Result<ir::TensorData> drawn(const TensorProto& tensor, DType dtype, uint64_t bytes);

  Folders folders_;
  std::shared_ptr<const void> keeper_;
  bool stand_ins_ = false;
  size_t stand_in_count_ = 0;
  uint64_t stand_in_bytes_ = 0;
  std::map<std::string, std::shared_ptr<const MappedFile>, std::less<>> files_;
};

}  // namespace orknn::importer::onnx
