// TFLite files, schema version 3, as plain structs: names, shapes and weights are views of the file.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "import/tflite/flatbuffer.h"

namespace orknn::importer::tflite {

// Element types by their number in the schema.
enum class ElementType : int8_t {
  Float32 = 0,
  Float16 = 1,
  Int32 = 2,
  UInt8 = 3,
  Int64 = 4,
  String = 5,
  Bool = 6,
  Int16 = 7,
  Complex64 = 8,
  Int8 = 9,
  Float64 = 10,
  Complex128 = 11,
  UInt64 = 12,
  Resource = 13,
  Variant = 14,
  UInt32 = 15,
  UInt16 = 16,
  Int4 = 17,
  BFloat16 = 18,
  Int2 = 19,
  UInt4 = 20,
};
// Our type for it; complex numbers are pairs of floats on an extra last axis. Undefined for those we cannot hold.
DType to_dtype(ElementType type);
std::string element_type_name(ElementType type);

struct Quantization {
  Numbers<float> scale;         // empty = not quantized
  Numbers<int64_t> zero_point;  // empty = 0
  int32_t axis = 0;             // of several scales
  // Scales of blocks along the last axis; they are tensors of their own. No blocks when 0.
  int32_t block_size = 0;
  int32_t block_scales = -1, block_zero_points = -1;
};

struct TensorInfo {
  std::string_view name;
  ElementType type = ElementType::Float32;
  Numbers<int32_t> shape;
  std::span<const std::byte> data;  // of a constant; empty for others
  bool is_variable = false;
  Quantization quantization;
  Table sparsity;

  bool is_quantized() const;  // integers that stand for real numbers
};

struct Operator {
  std::string_view name;  // "CONV_2D"; the custom code of a custom operator
  bool is_custom = false;
  Numbers<int32_t> inputs, outputs, intermediates;  // indices of tensors; -1 = absent
  Table options;                                    // builtin options, of whichever union they are in
  std::span<const std::byte> custom_options;
};

struct Subgraph {
  std::string_view name;
  std::vector<TensorInfo> tensors;
  Numbers<int32_t> inputs, outputs;
  std::vector<Operator> operators;  // in execution order
};

// A name by which the exporter's signature calls a tensor.
struct SignatureName {
  std::string_view name;
  uint32_t tensor;
  bool is_output;
};

struct Model {
  int64_t version = 0;
  std::string_view description, runtime_version;
  std::vector<Subgraph> subgraphs;       // at least one; the first is the model
  std::vector<SignatureName> signature;  // of the first subgraph
};

// `file` must outlive the result. Indices of tensors and subgraph lists are checked; values of options are read later.
Result<Model> parse_model(const FlatFile& file);

// "CONV_2D" for 3; empty for numbers we do not know.
std::string_view builtin_operator_name(int32_t code);

}  // namespace orknn::importer::tflite
