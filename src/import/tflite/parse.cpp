#include "import/tflite/parse.h"

#include <algorithm>

namespace orknn::importer::tflite {
namespace {
// Field ids of the schema's tables.
namespace model_field {
enum : unsigned { Version = 0, OperatorCodes = 1, Subgraphs = 2, Description = 3, Buffers = 4, Metadata = 6, Signatures = 7 };
}
namespace code_field {
enum : unsigned { OldCode = 0, CustomCode = 1, Code = 3 };
}
namespace subgraph_field {
enum : unsigned { Tensors = 0, Inputs = 1, Outputs = 2, Operators = 3, Name = 4 };
}
namespace tensor_field {
enum : unsigned {
  Shape = 0,
  Type = 1,
  Buffer = 2,
  Name = 3,
  Quantization = 4,
  IsVariable = 5,
  Sparsity = 6,
  ExternalBuffer = 10
};
}
namespace operator_field {
enum : unsigned {
  Code = 0,
  Inputs = 1,
  Outputs = 2,
  Options = 4,
  CustomOptions = 5,
  Intermediates = 8,
  LargeOptionsOffset = 9,
  LargeOptionsSize = 10,
  Options2 = 12
};
}
namespace buffer_field {
enum : unsigned { Data = 0, Offset = 1, Size = 2 };
}
namespace quantization_field {
enum : unsigned { Scale = 2, ZeroPoint = 3, DetailsType = 4, Details = 5, Axis = 6 };
}
namespace metadata_field {
enum : unsigned { Name = 0, Buffer = 1 };
}
namespace signature_field {
enum : unsigned { Inputs = 0, Outputs = 1, Subgraph = 4 };
}

constexpr int32_t kCustomOperator = 32;
constexpr uint8_t kBlockwiseDetails = 2;
constexpr size_t kMaxRank = 16;
constexpr uint64_t kMinOutsideOffset = 2;
// The least a tensor or an operator takes in a file that does not name the same one many times.
constexpr size_t kMinTableBytes = 16;

Status bad_index(std::string_view what, int64_t index, size_t count) {
  return invalid_model(std::string(what) + " is out of range")
      .expected("below " + std::to_string(count))
      .found(std::to_string(index));
}

// Bytes that lie after the flatbuffer, in files of more than 2 GB.
std::span<const std::byte> outside(const FlatFile& file, uint64_t offset, uint64_t size) {
  if (!file.check(offset, size, "a buffer outside of the tables")) return {};
  return file.bytes().subspan(static_cast<size_t>(offset), static_cast<size_t>(size));
}

class Parser {
 public:
  explicit Parser(const FlatFile& file) : file_(file) {}

  Result<Model> run() {
    const Table root = root_table(file_);
    Model model;
    model.version = root.number<uint32_t>(model_field::Version);
    model.description = root.text(model_field::Description);
    codes_ = root.tables(model_field::OperatorCodes);
    buffers_ = root.tables(model_field::Buffers);
    ORKNN_TRY(file_.damage());
    if (model.version != 3)
      return unsupported("the schema version is not supported").expected("3").found(std::to_string(model.version));
    const Tables subgraphs = root.tables(model_field::Subgraphs);
    if (subgraphs.size() == 0) return invalid_model("the file holds no subgraph");
    for (size_t i = 0; i < subgraphs.size(); ++i) {
      auto subgraph = parse_subgraph(subgraphs[i]);
      ORKNN_TRY(file_.damage());
      if (!subgraph) return subgraph.status();
      model.subgraphs.push_back(std::move(*subgraph));
    }
    read_metadata(root, model);
    read_signature(root, model);
    ORKNN_TRY(file_.damage());
    return model;
  }

 private:
  std::span<const std::byte> buffer(uint32_t index) const {
    const Table b = buffers_[index];
    const auto offset = b.number<uint64_t>(buffer_field::Offset), size = b.number<uint64_t>(buffer_field::Size);
    if (offset >= kMinOutsideOffset && size > 0) return outside(file_, offset, size);
    return b.numbers<uint8_t>(buffer_field::Data).bytes();
  }

  Quantization parse_quantization(const Table& t) const {
    Quantization q;
    q.scale = t.numbers<float>(quantization_field::Scale);
    q.zero_point = t.numbers<int64_t>(quantization_field::ZeroPoint);
    q.axis = t.number<int32_t>(quantization_field::Axis);
    if (t.number<uint8_t>(quantization_field::DetailsType) == kBlockwiseDetails) {
      const Table blocks = t.table(quantization_field::Details);
      q.block_scales = blocks.number<int32_t>(0);
      q.block_zero_points = blocks.number<int32_t>(1, -1);
      q.block_size = blocks.number<int32_t>(2);
    }
    return q;
  }

  Result<TensorInfo> parse_tensor(const Table& t) const {
    TensorInfo info;
    info.name = t.text(tensor_field::Name);
    info.type = static_cast<ElementType>(t.number<int8_t>(tensor_field::Type));
    info.shape = t.numbers<int32_t>(tensor_field::Shape);
    if (info.shape.size() > kMaxRank)
      return unsupported("tensor '" + std::string(info.name) + "' has too many dimensions")
          .expected("at most " + std::to_string(kMaxRank))
          .found(std::to_string(info.shape.size()));
    const auto index = t.number<uint32_t>(tensor_field::Buffer);
    if (t.number<uint32_t>(tensor_field::ExternalBuffer) != 0)
      return unsupported("tensor '" + std::string(info.name) + "' is stored in another file")
          .hint("convert the model into one file");
    // Old converters write no buffers for a model without constants.
    if (index != 0) {
      if (index >= buffers_.size())
        return bad_index("the buffer of tensor '" + std::string(info.name) + "'", index, buffers_.size());
      info.data = buffer(index);
    }
    info.is_variable = t.flag(tensor_field::IsVariable);
    if (info.is_variable) info.data = {};
    info.quantization = parse_quantization(t.table(tensor_field::Quantization));
    info.sparsity = t.table(tensor_field::Sparsity);
    return info;
  }

  static Status check_tensors(std::string_view what, const Numbers<int32_t>& indices, size_t count, bool may_be_absent) {
    for (size_t i = 0; i < indices.size(); ++i)
      if (indices[i] < (may_be_absent ? -1 : 0) || (indices[i] >= 0 && static_cast<size_t>(indices[i]) >= count))
        return bad_index(what, indices[i], count);
    return {};
  }

  Result<Operator> parse_operator(const Table& t, size_t tensor_count) const {
    Operator op;
    const auto index = t.number<uint32_t>(operator_field::Code);
    if (index >= codes_.size()) return bad_index("the code of an operator", index, codes_.size());
    const Table code = codes_[index];
    const int32_t number = std::max<int32_t>(code.number<int8_t>(code_field::OldCode), code.number<int32_t>(code_field::Code));
    op.is_custom = number == kCustomOperator;
    op.name = op.is_custom ? code.text(code_field::CustomCode) : builtin_operator_name(number);
    if (op.name.empty()) op.name = "unknown";
    op.inputs = t.numbers<int32_t>(operator_field::Inputs);
    op.outputs = t.numbers<int32_t>(operator_field::Outputs);
    op.intermediates = t.numbers<int32_t>(operator_field::Intermediates);
    ORKNN_TRY(check_tensors("an input of an operator", op.inputs, tensor_count, true).node("", op.name));
    ORKNN_TRY(check_tensors("an output of an operator", op.outputs, tensor_count, true).node("", op.name));
    ORKNN_TRY(check_tensors("an inner tensor of an operator", op.intermediates, tensor_count, true).node("", op.name));
    op.options = t.table(operator_field::Options);
    if (!op.options.exists()) op.options = t.table(operator_field::Options2);
    op.custom_options = t.numbers<uint8_t>(operator_field::CustomOptions).bytes();
    const auto offset = t.number<uint64_t>(operator_field::LargeOptionsOffset),
               size = t.number<uint64_t>(operator_field::LargeOptionsSize);
    if (offset >= kMinOutsideOffset && size > 0) op.custom_options = outside(file_, offset, size);
    return op;
  }

  Result<Subgraph> parse_subgraph(const Table& t) {
    Subgraph g;
    g.name = t.text(subgraph_field::Name);
    const Tables tensors = t.tables(subgraph_field::Tensors), operators = t.tables(subgraph_field::Operators);
    listed_ += tensors.size() + operators.size();
    if (listed_ > file_.bytes().size() / kMinTableBytes)
      return invalid_model("the file lists more tensors and operators than it can hold").found(std::to_string(listed_));
    g.tensors.reserve(tensors.size());
    for (size_t i = 0; i < tensors.size() && file_.damage().is_ok(); ++i) {
      ORKNN_TRY_ASSIGN(TensorInfo info, parse_tensor(tensors[i]));
      g.tensors.push_back(std::move(info));
    }
    g.operators.reserve(operators.size());
    for (size_t i = 0; i < operators.size() && file_.damage().is_ok(); ++i) {
      ORKNN_TRY_ASSIGN(Operator op, parse_operator(operators[i], tensors.size()));
      g.operators.push_back(std::move(op));
    }
    g.inputs = t.numbers<int32_t>(subgraph_field::Inputs);
    g.outputs = t.numbers<int32_t>(subgraph_field::Outputs);
    ORKNN_TRY(check_tensors("an input of the model", g.inputs, tensors.size(), false));
    ORKNN_TRY(check_tensors("an output of the model", g.outputs, tensors.size(), false));
    return g;
  }

  void read_metadata(const Table& root, Model& model) const {
    const Tables entries = root.tables(model_field::Metadata);
    for (size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].text(metadata_field::Name) != "min_runtime_version") continue;
      const auto index = entries[i].number<uint32_t>(metadata_field::Buffer);
      if (index >= buffers_.size()) continue;
      const auto bytes = buffer(index);
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      model.runtime_version = text.substr(0, std::min(text.find('\0'), text.size()));
    }
  }

  void read_signature(const Table& root, Model& model) const {
    const Tables signatures = root.tables(model_field::Signatures);
    for (size_t i = 0; i < signatures.size(); ++i) {
      if (signatures[i].number<uint32_t>(signature_field::Subgraph) != 0) continue;
      for (const bool is_output : {false, true}) {
        const Tables map = signatures[i].tables(is_output ? signature_field::Outputs : signature_field::Inputs);
        for (size_t k = 0; k < map.size(); ++k) {
          const auto tensor = map[k].number<uint32_t>(1);
          if (tensor < model.subgraphs[0].tensors.size()) model.signature.push_back({map[k].text(0), tensor, is_output});
        }
      }
    }
  }

  const FlatFile& file_;
  Tables codes_, buffers_;
  size_t listed_ = 0;  // tensors and operators so far
};
}  // namespace

DType to_dtype(ElementType type) {
  switch (type) {
    case ElementType::Float32:
    case ElementType::Complex64: return DType::Float32;
    case ElementType::Float16: return DType::Float16;
    case ElementType::Int32: return DType::Int32;
    case ElementType::UInt8: return DType::UInt8;
    case ElementType::Int64: return DType::Int64;
    case ElementType::Bool: return DType::Bool;
    case ElementType::Int16: return DType::Int16;
    case ElementType::Int8:
    case ElementType::Int2: return DType::Int8;
    case ElementType::Float64:
    case ElementType::Complex128: return DType::Float64;
    case ElementType::UInt64: return DType::UInt64;
    case ElementType::UInt32: return DType::UInt32;
    case ElementType::UInt16: return DType::UInt16;
    case ElementType::Int4: return DType::Int4;
    case ElementType::BFloat16: return DType::BFloat16;
    case ElementType::UInt4: return DType::UInt4;
    case ElementType::String:
    case ElementType::Resource:
    case ElementType::Variant: break;
  }
  return DType::Undefined;
}

std::string element_type_name(ElementType type) {
  switch (type) {
    case ElementType::String: return "string";
    case ElementType::Complex64: return "complex64";
    case ElementType::Complex128: return "complex128";
    case ElementType::Resource: return "resource";
    case ElementType::Variant: return "variant";
    case ElementType::Int2: return "int2";
    default: break;
  }
  const DType known = to_dtype(type);
  return known != DType::Undefined ? std::string(dtype_name(known)) : "type " + std::to_string(static_cast<int>(type));
}

bool TensorInfo::is_quantized() const {
  const DType t = to_dtype(type);
  return is_integer(t) && (!quantization.scale.empty() || quantization.block_size > 0);
}

Result<Model> parse_model(const FlatFile& file) {
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  if (text.size() < 8 || text.substr(4, 4) != "TFL3")
    return invalid_model("the file does not look like a TFLite model").expected("the identifier 'TFL3' at offset 4");
  return Parser(file).run();
}

}  // namespace orknn::importer::tflite
