#include "import/mxnet/roles.h"

#include <algorithm>
#include <array>

#include "import/mxnet/layer.h"

namespace orknn::importer::mxnet {

namespace {
struct ParameterSlots {
  std::string_view op;
  size_t first, last;
};
constexpr ParameterSlots kParameters[] = {
    {"Convolution", 1, 2},
    {"Convolution_v1", 1, 2},
    {"Deconvolution", 1, 2},
    {"FullyConnected", 1, 2},
    {"BatchNorm", 1, 4},
    {"BatchNorm_v1", 1, 4},
    {"CuDNNBatchNorm", 1, 4},
    {"_contrib_SyncBatchNorm", 1, 4},
    {"_contrib_BatchNormWithReLU", 1, 4},
    {"InstanceNorm", 1, 2},
    {"LayerNorm", 1, 2},
    {"GroupNorm", 1, 2},
    {"LeakyReLU", 1, 1},
    {"Embedding", 1, 1},
    {"_contrib_SparseEmbedding", 1, 1},
    {"RNN", 1, 1},
    {"_contrib_DeformableConvolution", 2, 3},
    {"_contrib_ModulatedDeformableConvolution", 3, 4},
    {"UpSampling", 1, 1},
    {"_contrib_quantized_conv", 1, 8},
    {"_contrib_quantized_fully_connected", 1, 8},
};

int64_t integer_of(const SymbolNode& node, std::string_view key, int64_t fallback) {
  const std::string* text = node.find(key);
  const auto value = text ? parse_integer(*text) : std::nullopt;
  return value.value_or(fallback);
}
bool is_text(const SymbolNode& node, std::string_view key, std::string_view value) {
  const std::string* text = node.find(key);
  return text && *text == value;
}

// How many outputs the operator has, as far as names depend on it.
int64_t output_count(const SymbolNode& node) {
  if (node.op == "SliceChannel" || node.op == "split" || node.op == "amp_multicast") return integer_of(node, "num_outputs", 1);
  if (node.op == "topk") return is_text(node, "ret_typ", "value") || is_text(node, "ret_typ", "both") ? 2 : 1;
  if (node.op == "_split_v2" || node.op == "_foreach" || node.op == "_while_loop" || node.op == "_cond" || node.op == "moments" ||
      node.op == "Custom")
    return 2;
  return 1;
}
}  // namespace

Role role_of_input(const SymbolNode& node, size_t input) {
  static constexpr std::string_view kLabelled[] = {
      "SoftmaxOutput", "Softmax", "LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput",
      "SVMOutput",     "WarpCTC"};
  if (input == 1 && std::find(std::begin(kLabelled), std::end(kLabelled), node.op) != std::end(kLabelled)) return Role::Label;
  if (node.op == "RNN" && (input == 2 || input == 3) && (input == 2 || is_text(node, "mode", "lstm"))) return Role::State;
  if (node.op == "UpSampling" && !is_text(node, "sample_type", "bilinear")) return Role::Data;
  for (const ParameterSlots& p : kParameters)
    if (p.op == node.op && input >= p.first && input <= p.last) return Role::Parameter;
  return Role::Data;
}

bool is_training_only(std::string_view op) {
  return op == "_contrib_MultiBoxTarget" || op == "MultiBoxTarget" || op == "_contrib_mrcnn_mask_target";
}

std::string output_suffix(const SymbolNode& node, uint32_t output) {
  const auto pick = [&](std::initializer_list<std::string_view> names) {
    return output < names.size() ? std::string(names.begin()[output]) : "output" + std::to_string(output);
  };
  if (node.op == "RNN") return pick({"output", "state_output", "statecell_output"});
  if (node.op == "BatchNorm" || node.op == "BatchNorm_v1") return pick({"output", "mean", "var"});
  if (node.op == "LayerNorm" || node.op == "GroupNorm") return pick({"output", "mean", "std"});
  if (node.op == "_contrib_Proposal" || node.op == "_contrib_MultiProposal") return pick({"output", "score"});
  if (node.op == "Dropout") return pick({"output", "mask"});
  if (node.op.starts_with("_contrib_quantize") || node.op == "_contrib_requantize")
    return pick({"output", "min_output", "max_output"});
  return output == 0 && output_count(node) == 1 ? "output" : "output" + std::to_string(output);
}

bool keeps_rank(std::string_view op) {
  static constexpr std::string_view kKept[] = {"Activation", "BatchNorm",      "Cast",         "_copy",  "identity",
                                               "Dropout",    "LeakyReLU",      "Concat",       "clip",   "relu",
                                               "sigmoid",    "tanh",           "BlockGrad",    "Pad",    "InstanceNorm",
                                               "LRN",        "amp_cast",       "BatchNorm_v1", "square", "sqrt",
                                               "negative",   "L2Normalization"};
  return op.ends_with("_scalar") || op.starts_with("broadcast_") || op.starts_with("elemwise_") ||
         std::find(std::begin(kKept), std::end(kKept), op) != std::end(kKept);
}

}  // namespace orknn::importer::mxnet
