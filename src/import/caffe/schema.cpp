// Field numbers of BVLC's caffe.proto, for descriptions in wire bytes. Numbers beyond these differ from fork to fork.
#include "import/caffe/message.h"

namespace orknn::importer::caffe {
namespace {
using wire::TextRow;
using wire::TextSchema;
using enum wire::TextType;

constexpr TextRow kShapeRows[] = {{"dim", 1, Int}};
constexpr TextSchema kShape{kShapeRows};
constexpr TextRow kFillerRows[] = {{"type", 1, String}, {"value", 2, Float}, {"min", 3, Float},
                                   {"max", 4, Float},   {"mean", 5, Float},  {"std", 6, Float}};
constexpr TextSchema kFiller{kFillerRows};
constexpr wire::TextEnumerator kPhases[] = {{"TRAIN", 0}, {"TEST", 1}};
constexpr TextRow kRuleRows[] = {{"phase", 1, Enum, nullptr, kPhases},
                                 {"min_level", 2, Int},
                                 {"max_level", 3, Int},
                                 {"stage", 4, String},
                                 {"not_stage", 5, String}};
constexpr TextSchema kRule{kRuleRows};
constexpr TextRow kStateRows[] = {{"phase", 1, Enum, nullptr, kPhases}, {"level", 2, Int}, {"stage", 3, String}};
constexpr TextSchema kState{kStateRows};
constexpr TextRow kParamSpecRows[] = {{"name", 1, String}};
constexpr TextSchema kParamSpec{kParamSpecRows};

// --- parameters of layers
constexpr TextRow kTransformRows[] = {{"crop_size", 3, Int}, {"force_gray", 7, Bool}};
constexpr TextSchema kTransform{kTransformRows};
constexpr TextRow kArgMaxRows[] = {{"out_max_val", 1, Bool}, {"top_k", 2, Int}, {"axis", 3, Int}};
constexpr TextSchema kArgMax{kArgMaxRows};
constexpr TextRow kBatchNormRows[] = {{"use_global_stats", 1, Bool}, {"eps", 3, Float}, {"scale_bias", 7, Bool}};
constexpr TextSchema kBatchNorm{kBatchNormRows};
constexpr TextRow kBiasRows[] = {{"axis", 1, Int}, {"num_axes", 2, Int}, {"filler", 3, Message, &kFiller}};
constexpr TextSchema kBias{kBiasRows};
constexpr TextRow kClipRows[] = {{"min", 1, Float}, {"max", 2, Float}};
constexpr TextSchema kClip{kClipRows};
constexpr TextRow kConcatRows[] = {{"concat_dim", 1, Int}, {"axis", 2, Int}};
constexpr TextSchema kConcat{kConcatRows};
constexpr TextRow kConvolutionRows[] = {{"num_output", 1, Int},
                                        {"bias_term", 2, Bool},
                                        {"pad", 3, Int},
                                        {"kernel_size", 4, Int},
                                        {"group", 5, Int},
                                        {"stride", 6, Int},
                                        {"weight_filler", 7, Message, &kFiller},
                                        {"bias_filler", 8, Message, &kFiller},
                                        {"pad_h", 9, Int},
                                        {"pad_w", 10, Int},
                                        {"kernel_h", 11, Int},
                                        {"kernel_w", 12, Int},
                                        {"stride_h", 13, Int},
                                        {"stride_w", 14, Int},
                                        {"axis", 16, Int},
                                        {"dilation", 18, Int}};
constexpr TextSchema kConvolution{kConvolutionRows};
constexpr TextRow kCropRows[] = {{"axis", 1, Int}, {"offset", 2, Int}};
constexpr TextSchema kCrop{kCropRows};
constexpr TextRow kDummyRows[] = {
    {"data_filler", 1, Message, &kFiller}, {"num", 2, Int}, {"channels", 3, Int}, {"height", 4, Int}, {"width", 5, Int},
    {"shape", 6, Message, &kShape}};
constexpr TextSchema kDummy{kDummyRows};
constexpr wire::TextEnumerator kEltwiseOps[] = {{"PROD", 0}, {"SUM", 1}, {"MAX", 2}};
constexpr TextRow kEltwiseRows[] = {{"operation", 1, Enum, nullptr, kEltwiseOps}, {"coeff", 2, Float}};
constexpr TextSchema kEltwise{kEltwiseRows};
constexpr TextRow kEluRows[] = {{"alpha", 1, Float}};
constexpr TextSchema kElu{kEluRows};
constexpr TextRow kEmbedRows[] = {{"num_output", 1, Int}, {"input_dim", 2, Int}, {"bias_term", 3, Bool}};
constexpr TextSchema kEmbed{kEmbedRows};
constexpr TextRow kExpRows[] = {{"base", 1, Float}, {"scale", 2, Float}, {"shift", 3, Float}};
constexpr TextSchema kExp{kExpRows};
constexpr TextRow kFlattenRows[] = {{"axis", 1, Int}, {"end_axis", 2, Int}};
constexpr TextSchema kFlatten{kFlattenRows};
constexpr TextRow kInnerProductRows[] = {{"num_output", 1, Int},
                                         {"bias_term", 2, Bool},
                                         {"weight_filler", 3, Message, &kFiller},
                                         {"bias_filler", 4, Message, &kFiller},
                                         {"axis", 5, Int},
                                         {"transpose", 6, Bool}};
constexpr TextSchema kInnerProduct{kInnerProductRows};
constexpr TextRow kInputRows[] = {{"shape", 1, Message, &kShape}};
constexpr TextSchema kInput{kInputRows};
constexpr wire::TextEnumerator kRegions[] = {{"ACROSS_CHANNELS", 0}, {"WITHIN_CHANNEL", 1}};
constexpr TextRow kLrnRows[] = {{"local_size", 1, Int},
                                {"alpha", 2, Float},
                                {"beta", 3, Float},
                                {"norm_region", 4, Enum, nullptr, kRegions},
                                {"k", 5, Float}};
constexpr TextSchema kLrn{kLrnRows};
constexpr TextRow kMemoryRows[] = {{"batch_size", 1, Int}, {"channels", 2, Int}, {"height", 3, Int}, {"width", 4, Int}};
constexpr TextSchema kMemory{kMemoryRows};
constexpr TextRow kMvnRows[] = {{"normalize_variance", 1, Bool}, {"across_channels", 2, Bool}, {"eps", 3, Float}};
constexpr TextSchema kMvn{kMvnRows};
constexpr TextRow kParameterRows[] = {{"shape", 1, Message, &kShape}};
constexpr TextSchema kParameter{kParameterRows};
constexpr wire::TextEnumerator kPools[] = {{"MAX", 0}, {"AVE", 1}, {"STOCHASTIC", 2}};
constexpr wire::TextEnumerator kRounds[] = {{"CEIL", 0}, {"FLOOR", 1}};
constexpr TextRow kPoolingRows[] = {{"pool", 1, Enum, nullptr, kPools},
                                    {"kernel_size", 2, Int},
                                    {"stride", 3, Int},
                                    {"pad", 4, Int},
                                    {"kernel_h", 5, Int},
                                    {"kernel_w", 6, Int},
                                    {"stride_h", 7, Int},
                                    {"stride_w", 8, Int},
                                    {"pad_h", 9, Int},
                                    {"pad_w", 10, Int},
                                    {"global_pooling", 12, Bool},
                                    {"round_mode", 13, Enum, nullptr, kRounds}};
constexpr TextSchema kPooling{kPoolingRows};
constexpr TextRow kPowerRows[] = {{"power", 1, Float}, {"scale", 2, Float}, {"shift", 3, Float}};
constexpr TextSchema kPower{kPowerRows};
constexpr TextRow kPreluRows[] = {{"filler", 1, Message, &kFiller}, {"channel_shared", 2, Bool}};
constexpr TextSchema kPrelu{kPreluRows};
constexpr TextRow kPythonRows[] = {{"module", 1, String}, {"layer", 2, String}, {"param_str", 3, String}};
constexpr TextSchema kPython{kPythonRows};
constexpr TextRow kRecurrentRows[] = {{"num_output", 1, Int}, {"expose_hidden", 5, Bool}};
constexpr TextSchema kRecurrent{kRecurrentRows};
constexpr wire::TextEnumerator kReductions[] = {{"SUM", 1}, {"ASUM", 2}, {"SUMSQ", 3}, {"MEAN", 4}};
constexpr TextRow kReductionRows[] = {{"operation", 1, Enum, nullptr, kReductions}, {"axis", 2, Int}, {"coeff", 3, Float}};
constexpr TextSchema kReduction{kReductionRows};
constexpr TextRow kReluRows[] = {{"negative_slope", 1, Float}};
constexpr TextSchema kRelu{kReluRows};
constexpr TextRow kReshapeRows[] = {{"shape", 1, Message, &kShape}, {"axis", 2, Int}, {"num_axes", 3, Int}};
constexpr TextSchema kReshape{kReshapeRows};
constexpr TextRow kScaleRows[] = {{"axis", 1, Int},
                                  {"num_axes", 2, Int},
                                  {"filler", 3, Message, &kFiller},
                                  {"bias_term", 4, Bool},
                                  {"bias_filler", 5, Message, &kFiller}};
constexpr TextSchema kScale{kScaleRows};
constexpr TextRow kSliceRows[] = {{"slice_dim", 1, Int}, {"slice_point", 2, Int}, {"axis", 3, Int}};
constexpr TextSchema kSlice{kSliceRows};
constexpr TextRow kSoftmaxRows[] = {{"axis", 2, Int}};
constexpr TextSchema kSoftmax{kSoftmaxRows};
constexpr TextRow kSppRows[] = {{"pyramid_height", 1, Int}, {"pool", 2, Enum, nullptr, kPools}};
constexpr TextSchema kSpp{kSppRows};
constexpr TextRow kSwishRows[] = {{"beta", 1, Float}};
constexpr TextSchema kSwish{kSwishRows};
constexpr TextRow kThresholdRows[] = {{"threshold", 1, Float}};
constexpr TextSchema kThreshold{kThresholdRows};
constexpr TextRow kTileRows[] = {{"axis", 1, Int}, {"tiles", 2, Int}};
constexpr TextSchema kTile{kTileRows};

// --- layers
constexpr TextRow kLayerRows[] = {{"name", 1, String},
                                  {"type", 2, String},
                                  {"bottom", 3, String},
                                  {"top", 4, String},
                                  {"param", 6, Message, &kParamSpec},
                                  {"include", 8, Message, &kRule},
                                  {"exclude", 9, Message, &kRule},
                                  {"phase", 10, Enum, nullptr, kPhases},
                                  {"transform_param", 100, Message, &kTransform},
                                  {"argmax_param", 103, Message, &kArgMax},
                                  {"concat_param", 104, Message, &kConcat},
                                  {"convolution_param", 106, Message, &kConvolution},
                                  {"dummy_data_param", 109, Message, &kDummy},
                                  {"eltwise_param", 110, Message, &kEltwise},
                                  {"exp_param", 111, Message, &kExp},
                                  {"inner_product_param", 117, Message, &kInnerProduct},
                                  {"lrn_param", 118, Message, &kLrn},
                                  {"memory_data_param", 119, Message, &kMemory},
                                  {"mvn_param", 120, Message, &kMvn},
                                  {"pooling_param", 121, Message, &kPooling},
                                  {"power_param", 122, Message, &kPower},
                                  {"relu_param", 123, Message, &kRelu},
                                  {"softmax_param", 125, Message, &kSoftmax},
                                  {"slice_param", 126, Message, &kSlice},
                                  {"threshold_param", 128, Message, &kThreshold},
                                  {"python_param", 130, Message, &kPython},
                                  {"prelu_param", 131, Message, &kPrelu},
                                  {"spp_param", 132, Message, &kSpp},
                                  {"reshape_param", 133, Message, &kReshape},
                                  {"log_param", 134, Message, &kExp},
                                  {"flatten_param", 135, Message, &kFlatten},
                                  {"reduction_param", 136, Message, &kReduction},
                                  {"embed_param", 137, Message, &kEmbed},
                                  {"tile_param", 138, Message, &kTile},
                                  {"batch_norm_param", 139, Message, &kBatchNorm},
                                  {"elu_param", 140, Message, &kElu},
                                  {"bias_param", 141, Message, &kBias},
                                  {"scale_param", 142, Message, &kScale},
                                  {"input_param", 143, Message, &kInput},
                                  {"crop_param", 144, Message, &kCrop},
                                  {"parameter_param", 145, Message, &kParameter},
                                  {"recurrent_param", 146, Message, &kRecurrent},
                                  {"swish_param", 147, Message, &kSwish},
                                  {"clip_param", 148, Message, &kClip}};
constexpr TextSchema kLayer{kLayerRows};

constexpr wire::TextEnumerator kTypes[] = {{"NONE", 0},
                                           {"ACCURACY", 1},
                                           {"BNLL", 2},
                                           {"CONCAT", 3},
                                           {"CONVOLUTION", 4},
                                           {"DATA", 5},
                                           {"DROPOUT", 6},
                                           {"EUCLIDEAN_LOSS", 7},
                                           {"FLATTEN", 8},
                                           {"HDF5_DATA", 9},
                                           {"HDF5_OUTPUT", 10},
                                           {"IM2COL", 11},
                                           {"IMAGE_DATA", 12},
                                           {"INFOGAIN_LOSS", 13},
                                           {"INNER_PRODUCT", 14},
                                           {"LRN", 15},
                                           {"MULTINOMIAL_LOGISTIC_LOSS", 16},
                                           {"POOLING", 17},
                                           {"RELU", 18},
                                           {"SIGMOID", 19},
                                           {"SOFTMAX", 20},
                                           {"SOFTMAX_LOSS", 21},
                                           {"SPLIT", 22},
                                           {"TANH", 23},
                                           {"WINDOW_DATA", 24},
                                           {"ELTWISE", 25},
                                           {"POWER", 26},
                                           {"SIGMOID_CROSS_ENTROPY_LOSS", 27},
                                           {"HINGE_LOSS", 28},
                                           {"MEMORY_DATA", 29},
                                           {"ARGMAX", 30},
                                           {"THRESHOLD", 31},
                                           {"DUMMY_DATA", 32},
                                           {"SLICE", 33},
                                           {"MVN", 34},
                                           {"ABSVAL", 35},
                                           {"SILENCE", 36},
                                           {"CONTRASTIVE_LOSS", 37},
                                           {"EXP", 38},
                                           {"DECONVOLUTION", 39}};
constexpr TextRow kOldestLayerRows[] = {{"name", 1, String},
                                        {"type", 2, String},
                                        {"num_output", 3, Int},
                                        {"biasterm", 4, Bool},
                                        {"weight_filler", 5, Message, &kFiller},
                                        {"bias_filler", 6, Message, &kFiller},
                                        {"pad", 7, Int},
                                        {"kernelsize", 8, Int},
                                        {"group", 9, Int},
                                        {"stride", 10, Int},
                                        {"pool", 11, Enum, nullptr, kPools},
                                        {"dropout_ratio", 12, Float},
                                        {"local_size", 13, Int},
                                        {"alpha", 14, Float},
                                        {"beta", 15, Float},
                                        {"batchsize", 19, Int},
                                        {"cropsize", 20, Int},
                                        {"k", 22, Float},
                                        {"concat_dim", 65, Int}};
constexpr TextSchema kOldestLayer{kOldestLayerRows};
constexpr TextRow kOldLayerRows[] = {{"layer", 1, Message, &kOldestLayer},
                                     {"bottom", 2, String},
                                     {"top", 3, String},
                                     {"name", 4, String},
                                     {"type", 5, Enum, nullptr, kTypes},
                                     {"include", 32, Message, &kRule},
                                     {"exclude", 33, Message, &kRule},
                                     {"param", 1001, String},
                                     {"concat_param", 9, Message, &kConcat},
                                     {"convolution_param", 10, Message, &kConvolution},
                                     {"inner_product_param", 17, Message, &kInnerProduct},
                                     {"lrn_param", 18, Message, &kLrn},
                                     {"pooling_param", 19, Message, &kPooling},
                                     {"power_param", 21, Message, &kPower},
                                     {"memory_data_param", 22, Message, &kMemory},
                                     {"argmax_param", 23, Message, &kArgMax},
                                     {"eltwise_param", 24, Message, &kEltwise},
                                     {"threshold_param", 25, Message, &kThreshold},
                                     {"dummy_data_param", 26, Message, &kDummy},
                                     {"relu_param", 30, Message, &kRelu},
                                     {"slice_param", 31, Message, &kSlice},
                                     {"mvn_param", 34, Message, &kMvn},
                                     {"transform_param", 36, Message, &kTransform},
                                     {"softmax_param", 39, Message, &kSoftmax},
                                     {"exp_param", 41, Message, &kExp}};
constexpr TextSchema kOldLayer{kOldLayerRows};

constexpr TextRow kNetRows[] = {{"name", 1, String},
                                {"layers", 2, Message, &kOldLayer},
                                {"input", 3, String},
                                {"input_dim", 4, Int},
                                {"state", 6, Message, &kState},
                                {"input_shape", 8, Message, &kShape},
                                {"layer", 100, Message, &kLayer}};
constexpr TextSchema kNet{kNetRows};
}  // namespace

const TextSchema& net_schema() { return kNet; }

}  // namespace orknn::importer::caffe
