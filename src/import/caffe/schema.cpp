// Field numbers of BVLC's caffe.proto, for descriptions in wire bytes. Numbers beyond these differ from fork to fork.
#include <charconv>
#include <deque>
#include <map>

#include "import/caffe/message.h"

namespace orknn::importer::caffe {
namespace {
using wire::TextType;

// A message and its fields, after those it is made of; indented lines go on with the one before. What follows a field's number
// is its type: nothing for integers and truth values, f float, d double, s string, the name of a message, or enumerators from 0
// on.
constexpr std::string_view kMessages =
    R"(Shape dim=1
Filler type=1s value=2f min=3f max=4f mean=5f std=6f
Rule phase=1(TRAIN|TEST) min_level=2 max_level=3 stage=4s not_stage=5s
State phase=1(TRAIN|TEST) level=2 stage=3s
ParamSpec name=1s
Transform crop_size=3 force_gray=7
ArgMax out_max_val=1 top_k=2 axis=3
BatchNorm use_global_stats=1 eps=3f scale_bias=7
Bias axis=1 num_axes=2 filler=3:Filler
Clip min=1f max=2f
Concat concat_dim=1 axis=2
Convolution num_output=1 bias_term=2 pad=3 kernel_size=4 group=5 stride=6 weight_filler=7:Filler bias_filler=8:Filler pad_h=9
  pad_w=10 kernel_h=11 kernel_w=12 stride_h=13 stride_w=14 axis=16 dilation=18
Crop axis=1 offset=2
Dummy data_filler=1:Filler num=2 channels=3 height=4 width=5 shape=6:Shape
Eltwise operation=1(PROD|SUM|MAX) coeff=2f
Elu alpha=1f
Embed num_output=1 input_dim=2 bias_term=3
Exp base=1f scale=2f shift=3f
Flatten axis=1 end_axis=2
InnerProduct num_output=1 bias_term=2 weight_filler=3:Filler bias_filler=4:Filler axis=5 transpose=6
Input shape=1:Shape
Lrn local_size=1 alpha=2f beta=3f norm_region=4(ACROSS_CHANNELS|WITHIN_CHANNEL) k=5f
Memory batch_size=1 channels=2 height=3 width=4
Mvn normalize_variance=1 across_channels=2 eps=3f
Parameter shape=1:Shape
Pooling pool=1(MAX|AVE|STOCHASTIC) kernel_size=2 stride=3 pad=4 kernel_h=5 kernel_w=6 stride_h=7 stride_w=8 pad_h=9 pad_w=10
  global_pooling=12 round_mode=13(CEIL|FLOOR)
Power power=1f scale=2f shift=3f
Prelu filler=1:Filler channel_shared=2
Python module=1s layer=2s param_str=3s
Recurrent num_output=1 expose_hidden=5
Reduction operation=1(|SUM|ASUM|SUMSQ|MEAN) axis=2 coeff=3f
Relu negative_slope=1f
Reshape shape=1:Shape axis=2 num_axes=3
Scale axis=1 num_axes=2 filler=3:Filler bias_term=4 bias_filler=5:Filler
Slice slice_dim=1 slice_point=2 axis=3
Softmax axis=2
Spp pyramid_height=1 pool=2(MAX|AVE|STOCHASTIC)
Swish beta=1f
Threshold threshold=1f
Tile axis=1 tiles=2
Layer name=1s type=2s bottom=3s top=4s param=6:ParamSpec include=8:Rule exclude=9:Rule phase=10(TRAIN|TEST)
  transform_param=100:Transform argmax_param=103:ArgMax concat_param=104:Concat convolution_param=106:Convolution
  dummy_data_param=109:Dummy eltwise_param=110:Eltwise exp_param=111:Exp inner_product_param=117:InnerProduct lrn_param=118:Lrn
  memory_data_param=119:Memory mvn_param=120:Mvn pooling_param=121:Pooling power_param=122:Power relu_param=123:Relu
  softmax_param=125:Softmax slice_param=126:Slice threshold_param=128:Threshold python_param=130:Python prelu_param=131:Prelu
  spp_param=132:Spp reshape_param=133:Reshape log_param=134:Exp flatten_param=135:Flatten reduction_param=136:Reduction
  embed_param=137:Embed tile_param=138:Tile batch_norm_param=139:BatchNorm elu_param=140:Elu bias_param=141:Bias
  scale_param=142:Scale input_param=143:Input crop_param=144:Crop parameter_param=145:Parameter recurrent_param=146:Recurrent
  swish_param=147:Swish clip_param=148:Clip
OldestLayer name=1s type=2s num_output=3 biasterm=4 weight_filler=5:Filler bias_filler=6:Filler pad=7 kernelsize=8 group=9
  stride=10 pool=11(MAX|AVE|STOCHASTIC) dropout_ratio=12f local_size=13 alpha=14f beta=15f batchsize=19 cropsize=20 k=22f
  concat_dim=65
OldLayer layer=1:OldestLayer bottom=2s top=3s name=4s
  type=5(NONE|ACCURACY|BNLL|CONCAT|CONVOLUTION|DATA|DROPOUT|EUCLIDEAN_LOSS|FLATTEN|HDF5_DATA|HDF5_OUTPUT|IM2COL|)"
    R"(IMAGE_DATA|INFOGAIN_LOSS|INNER_PRODUCT|LRN|MULTINOMIAL_LOGISTIC_LOSS|POOLING|RELU|SIGMOID|SOFTMAX|SOFTMAX_LOSS|SPLIT|TANH|)"
    R"(WINDOW_DATA|ELTWISE|POWER|SIGMOID_CROSS_ENTROPY_LOSS|HINGE_LOSS|MEMORY_DATA|ARGMAX|THRESHOLD|DUMMY_DATA|SLICE|MVN|ABSVAL|SILENCE|CONTRASTIVE_LOSS|EXP|DECONVOLUTION)
  include=32:Rule exclude=33:Rule param=1001s concat_param=9:Concat convolution_param=10:Convolution
  inner_product_param=17:InnerProduct lrn_param=18:Lrn pooling_param=19:Pooling power_param=21:Power memory_data_param=22:Memory
  argmax_param=23:ArgMax eltwise_param=24:Eltwise threshold_param=25:Threshold dummy_data_param=26:Dummy relu_param=30:Relu
  slice_param=31:Slice mvn_param=34:Mvn transform_param=36:Transform softmax_param=39:Softmax exp_param=41:Exp
Net name=1s layers=2:OldLayer input=3s input_dim=4 state=6:State input_shape=8:Shape layer=100:Layer
Blob num=1 channels=2 height=3 width=4 data=5f shape=7:Shape double_data=8d
LayerBlobs name=1s blobs=7:Blob
OldestLayerBlobs name=1s blobs=50:Blob
OldLayerBlobs layer=1:OldestLayerBlobs name=4s blobs=6:Blob
NetBlobs layers=2:OldLayerBlobs layer=100:LayerBlobs)";

class Schemas {
 public:
  explicit Schemas(std::string_view text) {
    while (!text.empty()) {
      const size_t end = text.find_first_of(" \n");
      const std::string_view word = text.substr(0, end);
      const bool begins_message = rows_.empty() || (at_line_start_ && !word.empty());
      if (begins_message) {
        finish();
        name_ = word;
        rows_.emplace_back();
      } else if (!word.empty()) {
        rows_.back().push_back(row_of(word));
      }
      at_line_start_ = end != std::string_view::npos && text[end] == '\n';
      text.remove_prefix(std::min(text.size(), word.size() + 1));
    }
    finish();
  }
  const wire::TextSchema& at(std::string_view name) const { return *by_name_.at(name); }

 private:
  void finish() {
    if (!rows_.empty()) by_name_[name_] = &schemas_.emplace_back(wire::TextSchema{rows_.back()});
  }

  wire::TextRow row_of(std::string_view field) {
    const size_t equals = field.find('=');
    wire::TextRow row{.name = field.substr(0, equals), .number = 0, .type = TextType::Int};
    const char* begin = field.data() + equals + 1;
    const char* end = field.data() + field.size();
    const char* type = std::from_chars(begin, end, row.number).ptr;
    if (type == end) return row;
    if (*type == 'f') row.type = TextType::Float;
    if (*type == 'd') row.type = TextType::Double;
    if (*type == 's') row.type = TextType::String;
    if (*type == ':') {
      row.type = TextType::Message;
      row.message = by_name_.at(std::string_view(type + 1, end));
    }
    if (*type == '(') {
      row.type = TextType::Enum;
      row.enumerators = enumerators_of(std::string_view(type + 1, end - 1));
    }
    return row;
  }

  std::span<const wire::TextEnumerator> enumerators_of(std::string_view words) {
    auto& list = enumerators_.emplace_back();
    for (int32_t number = 0; !words.empty(); ++number) {
      const std::string_view word = words.substr(0, words.find('|'));
      if (!word.empty()) list.push_back({word, number});
      words.remove_prefix(std::min(words.size(), word.size() + 1));
    }
    return list;
  }

  std::string_view name_;
  bool at_line_start_ = true;
  std::deque<std::vector<wire::TextRow>> rows_;
  std::deque<std::vector<wire::TextEnumerator>> enumerators_;
  std::deque<wire::TextSchema> schemas_;
  std::map<std::string_view, const wire::TextSchema*> by_name_;
};
}  // namespace

const wire::TextSchema& schema_of(std::string_view message) {
  static const Schemas schemas(kMessages);
  return schemas.at(message);
}

}  // namespace orknn::importer::caffe
