// The schema of a TensorFlow graph for its text form (.pbtxt): names and numbers of what parse.cpp reads.
#include "import/tensorflow/parse.h"
#include "import/wire/text_reader.h"

namespace orknn::importer::tensorflow {
namespace {
using wire::TextEnumerator;
using wire::TextRow;
using wire::TextSchema;
using wire::TextType;

constexpr TextEnumerator kTypeNames[] = {
    {"DT_INVALID", 0},      {"DT_FLOAT", 1},       {"DT_DOUBLE", 2},      {"DT_INT32", 3},       {"DT_UINT8", 4},
    {"DT_INT16", 5},        {"DT_INT8", 6},        {"DT_STRING", 7},      {"DT_COMPLEX64", 8},   {"DT_INT64", 9},
    {"DT_BOOL", 10},        {"DT_QINT8", 11},      {"DT_QUINT8", 12},     {"DT_QINT32", 13},     {"DT_BFLOAT16", 14},
    {"DT_QINT16", 15},      {"DT_QUINT16", 16},    {"DT_UINT16", 17},     {"DT_COMPLEX128", 18}, {"DT_HALF", 19},
    {"DT_RESOURCE", 20},    {"DT_VARIANT", 21},    {"DT_UINT32", 22},     {"DT_UINT64", 23},     {"DT_FLOAT_REF", 101},
    {"DT_DOUBLE_REF", 102}, {"DT_INT32_REF", 103}, {"DT_INT64_REF", 109}, {"DT_BOOL_REF", 110},  {"DT_STRING_REF", 107},
};

constexpr TextRow kDimensionRows[] = {{"size", 1, TextType::Int}, {"name", 2, TextType::String}};
constexpr TextSchema kDimension{kDimensionRows};
constexpr TextRow kShapeRows[] = {{"dim", 2, TextType::Message, &kDimension}, {"unknown_rank", 3, TextType::Bool}};
constexpr TextSchema kShapeSchema{kShapeRows};
constexpr TextRow kTensorRows[] = {{"dtype", 1, TextType::Enum, nullptr, kTypeNames},
                                   {"tensor_shape", 2, TextType::Message, &kShapeSchema},
                                   {"tensor_content", 4, TextType::String},
                                   {"float_val", 5, TextType::Float},
                                   {"double_val", 6, TextType::Double},
                                   {"int_val", 7, TextType::Int},
                                   {"string_val", 8, TextType::String},
                                   {"int64_val", 10, TextType::Int},
                                   {"bool_val", 11, TextType::Bool},
                                   {"half_val", 13, TextType::Int},
                                   {"uint32_val", 16, TextType::Int},
                                   {"uint64_val", 17, TextType::Int}};
constexpr TextSchema kTensor{kTensorRows};

// A function carries attributes, whose values may be functions.
extern const TextSchema kFunctionName;
constexpr TextRow kListRows[] = {{"s", 2, TextType::String},
                                 {"i", 3, TextType::Int},
                                 {"f", 4, TextType::Float},
                                 {"b", 5, TextType::Bool},
                                 {"type", 6, TextType::Enum, nullptr, kTypeNames},
                                 {"shape", 7, TextType::Message, &kShapeSchema},
                                 {"tensor", 8, TextType::Message, &kTensor},
                                 {"func", 9, TextType::Message, &kFunctionName}};
constexpr TextSchema kList{kListRows};
constexpr TextRow kValueRows[] = {{"list", 1, TextType::Message, &kList},
                                  {"s", 2, TextType::String},
                                  {"i", 3, TextType::Int},
                                  {"f", 4, TextType::Float},
                                  {"b", 5, TextType::Bool},
                                  {"type", 6, TextType::Enum, nullptr, kTypeNames},
                                  {"shape", 7, TextType::Message, &kShapeSchema},
                                  {"tensor", 8, TextType::Message, &kTensor},
                                  {"placeholder", 9, TextType::String},
                                  {"func", 10, TextType::Message, &kFunctionName}};
constexpr TextSchema kValue{kValueRows};
constexpr TextRow kAttributeRows[] = {{"key", 1, TextType::String}, {"value", 2, TextType::Message, &kValue}};
constexpr TextSchema kAttribute{kAttributeRows};
constexpr TextRow kFunctionNameRows[] = {{"name", 1, TextType::String}, {"attr", 2, TextType::Message, &kAttribute}};
const TextSchema kFunctionName{kFunctionNameRows};

constexpr TextRow kNodeRows[] = {{"name", 1, TextType::String},
                                 {"op", 2, TextType::String},
                                 {"input", 3, TextType::String},
                                 {"device", 4, TextType::String},
                                 {"attr", 5, TextType::Message, &kAttribute}};
constexpr TextSchema kNode{kNodeRows};
constexpr TextRow kArgumentRows[] = {{"name", 1, TextType::String},
                                     {"type", 3, TextType::Enum, nullptr, kTypeNames},
                                     {"type_attr", 4, TextType::String},
                                     {"number_attr", 5, TextType::String},
                                     {"type_list_attr", 6, TextType::String}};
constexpr TextSchema kArgument{kArgumentRows};
constexpr TextRow kSignatureRows[] = {{"name", 1, TextType::String},
                                      {"input_arg", 2, TextType::Message, &kArgument},
                                      {"output_arg", 3, TextType::Message, &kArgument}};
constexpr TextSchema kSignature{kSignatureRows};
constexpr TextRow kResultRows[] = {{"key", 1, TextType::String}, {"value", 2, TextType::String}};
constexpr TextSchema kResult{kResultRows};
constexpr TextRow kFunctionRows[] = {{"signature", 1, TextType::Message, &kSignature},
                                     {"node_def", 3, TextType::Message, &kNode},
                                     {"ret", 4, TextType::Message, &kResult},
                                     {"attr", 5, TextType::Message, &kAttribute}};
constexpr TextSchema kFunction{kFunctionRows};
constexpr TextRow kLibraryRows[] = {{"function", 1, TextType::Message, &kFunction}};
constexpr TextSchema kLibrary{kLibraryRows};
constexpr TextRow kVersionRows[] = {{"producer", 1, TextType::Int}, {"min_consumer", 2, TextType::Int}};
constexpr TextSchema kVersion{kVersionRows};
constexpr TextRow kGraphRows[] = {{"node", 1, TextType::Message, &kNode},
                                  {"library", 2, TextType::Message, &kLibrary},
                                  {"version", 3, TextType::Int},
                                  {"versions", 4, TextType::Message, &kVersion}};
constexpr TextSchema kGraph{kGraphRows};
}  // namespace

Result<std::vector<std::byte>> encode_graph_text(std::string_view text) { return wire::encode_text(text, kGraph); }

// The first fields of a graph are nodes that hold an operator; `versions` and `library` may come before them.
bool looks_like_graph_text(std::string_view text) {
  wire::TextReader reader(text);
  for (wire::TextField field; reader.next(field);) {
    if (field.name == "versions" || field.name == "version" || field.name == "library") continue;
    if (field.name != "node" || field.kind != wire::TextField::Kind::Message) return false;
    wire::TextReader node(field);
    for (wire::TextField part; node.next(part);)
      if (part.name == "op") return part.kind == wire::TextField::Kind::String;
    return false;
  }
  return false;
}

}  // namespace orknn::importer::tensorflow
