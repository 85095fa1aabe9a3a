// Operators of TensorFlow that have no place in a frozen model, with the reason users need.
#include "import/tensorflow/layer.h"

namespace orknn::importer::tensorflow {
namespace {
constexpr std::string_view kVariable = "the graph holds a variable, so it is not frozen",
                           kTable = "look-up tables are not supported", kText = "text is not supported",
                           kComplex = "complex numbers are not supported",
                           kFile = "reading files and pictures inside of a model is not supported",
                           kLoss = "training is not supported";
constexpr std::string_view kFreeze =
                               "freeze it: convert_variables_to_constants_v2 in TensorFlow 2, convert_variables_to_constants or "
                               "freeze_graph in TensorFlow 1",
                           kCutAfter = "cut the model after it with 'inputs'",
                           kCutBefore = "cut the model before it with 'outputs'";
constexpr Refusal kRefusals[] = {
    {"Variable", kVariable, kFreeze},
    {"VariableV2", kVariable, kFreeze},
    {"VarHandleOp", kVariable, kFreeze},
    {"ReadVariableOp", kVariable, kFreeze},
    {"Assign", kVariable, kFreeze},
    {"AssignVariableOp", kVariable, kFreeze},
    {"ResourceGather", kVariable, kFreeze},
    {"RestoreV2", kVariable, kFreeze},
    {"HashTableV2", kTable, kCutBefore},
    {"LookupTableFindV2", kTable, kCutBefore},
    {"AsString", kText, kCutBefore},
    {"StringJoin", kText, kCutBefore},
    {"StringSplit", kText, kCutBefore},
    {"StringToNumber", kText, kCutAfter},
    {"DecodeJpeg", kFile, kCutAfter},
    {"DecodePng", kFile, kCutAfter},
    {"DecodeImage", kFile, kCutAfter},
    {"DecodeBmp", kFile, kCutAfter},
    {"DecodeRaw", kFile, kCutAfter},
    {"DecodeWav", kFile, kCutAfter},
    {"ReadFile", kFile, kCutAfter},
    {"ParseExample", kFile, kCutAfter},
    {"ParseExampleV2", kFile, kCutAfter},
    {"ParseSingleExample", kFile, kCutAfter},
    {"FFT2D", kComplex, kCutBefore},
    {"RFFT2D", kComplex, kCutBefore},
    {"IRFFT2D", kComplex, kCutBefore},
    {"Angle", kComplex, kCutBefore},
    {"Conj", kComplex, kCutBefore},
    {"SoftmaxCrossEntropyWithLogits", kLoss, kCutBefore},
    {"SparseSoftmaxCrossEntropyWithLogits", kLoss, kCutBefore},
    {"ReluGrad", kLoss, kCutBefore},
    {"Conv2DBackpropFilter", kLoss, kCutBefore},
    {"CudnnRNN", "weights packed for cuDNN cannot be read", "export with a plain LSTM or GRU layer (use_cudnn=False)"},
    {"CudnnRNNV2", "weights packed for cuDNN cannot be read", "export with a plain LSTM or GRU layer (use_cudnn=False)"},
    {"CudnnRNNV3", "weights packed for cuDNN cannot be read", "export with a plain LSTM or GRU layer (use_cudnn=False)"},
    {"PyFunc", "Python code inside of a model cannot be run", kCutBefore},
    {"EagerPyFunc", "Python code inside of a model cannot be run", kCutBefore},
};
}  // namespace

const Refusal* find_refusal(std::string_view op) {
  for (const Refusal& r : kRefusals)
    if (r.op == op) return &r;
  return nullptr;
}

}  // namespace orknn::importer::tensorflow
