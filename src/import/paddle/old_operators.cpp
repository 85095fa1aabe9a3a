#include "import/paddle/old_operators.h"

#include <algorithm>

namespace orknn::importer::paddle {
namespace {

// An operator of ProgramDesc, or several that are alike ("squeeze2|squeeze"). `inputs` are the operands in the order of Paddle 3,
// separated by spaces; `A|B|=c` is the first of A and B that is given, or else the attribute c. `attributes` renames ("old:new").
// What is not listed keeps its name and reads X and Y.
struct OldWords {
  std::string_view type, now, inputs = "X Y", outputs = "Out", attributes = "";
};

constexpr std::string_view kReduced = "X AxisTensor|AxisTensorList|=dim";
constexpr std::string_view kReduction = "keep_dim:keepdim";
constexpr std::string_view kResized = "X OutSize SizeTensor Scale";
constexpr std::string_view kCut = "Input StartsTensor|StartsTensorList|=starts EndsTensor|EndsTensorList|=ends";
constexpr std::string_view kPool = "ksize:kernel_size";

constexpr OldWords kOldWords[] = {
    // element by element
    {"elementwise_add", "add"},
    {"elementwise_sub", "subtract"},
    {"elementwise_mul", "multiply"},
    {"elementwise_div", "divide"},
    {"elementwise_max", "maximum"},
    {"elementwise_min", "minimum"},
    {"elementwise_mod", "remainder"},
    {"elementwise_floordiv", "floor_divide"},
    {"elementwise_fmax", "fmax"},
    {"elementwise_fmin", "fmin"},
    {"sum", "add_n"},
    {"atan2", "atan2", "X1 X2"},
    {"lerp", "lerp", "X Y Weight"},
    {"scale", "scale", "X ScaleTensor|=scale"},
    {"pow", "pow", "X FactorTensor|=factor"},
    {"clip", "clip", "X Min|=min Max|=max"},
    {"increment", "increment", "X", "Out", "step:value"},
    {"brelu", "hardtanh"},
    {"hard_swish", "hardswish"},
    {"hard_sigmoid", "hardsigmoid"},
    {"hard_shrink", "hardshrink"},
    {"softshrink", "softshrink", "X", "Out", "lambda:threshold"},
    {"leaky_relu", "leaky_relu", "X", "Out", "alpha:negative_slope"},
    {"prelu", "prelu", "X Alpha"},
    {"isnan_v2", "isnan"},
    {"isinf_v2", "isinf"},
    {"isfinite_v2", "isfinite"},
    {"where", "where", "Condition X Y"},
    {"dropout", "dropout", "X Seed =dropout_prob", "Out", "dropout_implementation:mode"},
    {"cast", "cast", "X", "Out", "out_dtype:dtype"},
    // convolution and pooling
    {"conv2d", "conv2d", "Input Filter Bias", "Output"},
    {"depthwise_conv2d", "depthwise_conv2d", "Input Filter Bias", "Output"},
    {"conv3d", "conv3d", "Input Filter", "Output"},
    {"conv2d_transpose", "conv2d_transpose", "Input Filter =output_size Bias", "Output"},
    {"depthwise_conv2d_transpose", "depthwise_conv2d_transpose", "Input Filter =output_size Bias", "Output"},
    {"conv3d_transpose", "conv3d_transpose", "Input Filter =output_size", "Output"},
    {"deformable_conv", "deformable_conv", "Input Offset Filter Mask", "Output"},
    {"pool2d", "pool2d", "X", "Out", kPool},
    {"pool3d", "pool3d", "X", "Out", kPool},
    {"max_pool2d_with_index", "max_pool2d_with_index", "X", "Out Mask", kPool},
    // normalization
    {"batch_norm|sync_batch_norm", "batch_norm", "X Mean Variance Scale Bias", "Y", "data_layout:data_format"},
    {"layer_norm", "layer_norm", "X Scale Bias", "Y"},
    {"instance_norm", "instance_norm", "X Scale Bias", "Y"},
    {"group_norm", "group_norm", "X Scale Bias", "Y", "data_layout:data_format"},
    {"norm", "norm", "X", "Out Norm"},
    // matrices
    {"matmul_v2", "matmul", "X Y", "Out", "trans_x:transpose_x trans_y:transpose_y"},
    {"matmul", "matmul", "X Y", "Out", "transpose_X:transpose_x transpose_Y:transpose_y"},
    {"mul", "mul"},
    {"mv", "mv", "X Vec"},
    {"addmm", "addmm", "Input X Y", "Out", "Alpha:alpha Beta:beta"},
    {"einsum", "einsum", "Operands"},
    // reductions
    {"reduce_sum", "sum", kReduced, "Out", kReduction},
    {"reduce_mean", "mean", kReduced, "Out", kReduction},
    {"reduce_max", "max", kReduced, "Out", kReduction},
    {"reduce_min", "min", kReduced, "Out", kReduction},
    {"reduce_amax", "amax", kReduced, "Out", kReduction},
    {"reduce_amin", "amin", kReduced, "Out", kReduction},
    {"reduce_prod", "prod", kReduced, "Out", kReduction},
    {"reduce_any", "any", kReduced, "Out", kReduction},
    {"reduce_all", "all", kReduced, "Out", kReduction},
    {"logsumexp", "logsumexp", "X =axis"},
    {"mean", "mean_all", "X"},
    {"arg_max", "argmax", "X =axis"},
    {"arg_min", "argmin", "X =axis"},
    {"cumsum", "cumsum", "X =axis"},
    {"top_k_v2|top_k", "topk", "X K|=k", "Out Indices"},
    {"argsort", "argsort", "X", "Out Indices"},
    {"kthvalue", "kthvalue", "X", "Out Indices"},
    {"nanmedian", "nanmedian", "X =axis", "Out MedianIndex"},
    {"size", "numel", "Input"},
    // shapes
    {"reshape2|reshape", "reshape", "X Shape|ShapeTensor|=shape"},
    {"transpose2|transpose", "transpose", "X", "Out", "axis:perm"},
    {"squeeze2|squeeze", "squeeze", "X AxesTensor|=axes"},
    {"unsqueeze2|unsqueeze", "unsqueeze", "X AxesTensor|AxesTensorList|=axes"},
    {"flatten_contiguous_range", "flatten"},
    {"flatten2|flatten", "flatten_to_matrix"},
    {"concat", "concat", "X AxisTensor|=axis"},
    {"split", "split", "X SectionsTensorList|=sections AxisTensor|=axis"},
    {"stack", "stack", "X", "Y"},
    {"unstack", "unstack", "X", "Y"},
    {"slice", "slice", kCut},
    {"strided_slice", "strided_slice",
     "Input StartsTensor|StartsTensorList|=starts EndsTensor|EndsTensorList|=ends StridesTensor|StridesTensorList|=strides"},
    {"expand_v2", "expand", "X Shape|expand_shapes_tensor|=shape"},
    {"expand_as_v2", "expand_as"},
    {"tile", "tile", "X RepeatTimes|repeat_times_tensor|=repeat_times"},
    {"roll", "roll", "X ShiftsTensor|=shifts"},
    {"pad3d", "pad3d", "X Paddings|=paddings", "Out", "value:pad_value"},
    {"pad2d", "pad2d", "X Paddings|=paddings"},
    {"pad", "pad", "X =pad_value"},
    {"shape", "shape", "Input"},
    {"shuffle_channel", "channel_shuffle", "X", "Out", "group:groups"},
    {"unfold", "unfold", "X", "Y"},
    {"repeat_interleave", "repeat_interleave", "X", "Out", "Repeats:repeats dim:axis"},
    // indexing
    {"gather", "gather", "X Index Axis|=axis"},
    {"gather_nd", "gather_nd", "X Index"},
    {"index_select", "index_select", "X Index", "Out", "dim:axis"},
    {"index_sample", "index_sample", "X Index"},
    {"take_along_axis", "take_along_axis", "Input Index", "Result", "Axis:axis"},
    {"put_along_axis", "put_along_axis", "Input Index Value", "Result", "Axis:axis Reduce:reduce Include_self:include_self"},
    {"scatter", "scatter", "X Ids Updates"},
    {"scatter_nd_add", "scatter_nd_add", "X Index Updates"},
    {"set_value", "set_value_with_tensor",
     "Input ValueTensor StartsTensorList|=starts EndsTensorList|=ends StepsTensorList|=steps"},
    {"one_hot_v2", "one_hot", "X depth_tensor|=depth"},
    {"lookup_table_v2|lookup_table", "embedding", "Ids W"},
    {"where_index", "nonzero", "Condition"},
    // constants
    {"fill_constant", "full", "ShapeTensor|ShapeTensorList|=shape ValueTensor|=value"},
    {"fill_any_like", "full_like", "X =value"},
    {"fill_zeros_like", "full_like", "X"},
    {"fill_constant_batch_size_like", "full_batch_size_like", "Input"},
    {"assign_value", "assign_value", ""},
    {"range", "arange", "Start End Step"},
    {"linspace", "linspace", "Start Stop Num"},
    {"eye", "eye", "=num_rows =num_columns"},
    // pictures
    {"nearest_interp_v2|nearest_interp", "nearest_interp", kResized, "Out", "data_layout:data_format"},
    {"bilinear_interp_v2|bilinear_interp", "bilinear_interp", kResized, "Out", "data_layout:data_format"},
    {"bicubic_interp_v2", "bicubic_interp", kResized, "Out", "data_layout:data_format"},
    {"linear_interp_v2", "linear_interp", kResized, "Out", "data_layout:data_format"},
    {"grid_sampler", "grid_sample", "X Grid", "Output"},
    {"affine_grid", "affine_grid", "Theta OutputShape|=output_shape", "Output"},
    // recurrent layers and detection
    {"rnn", "rnn", "Input PreState WeightList SequenceLength", "Out DropoutState State Reserve"},
    {"yolo_box", "yolo_box", "X ImgSize", "Boxes Scores"},
    {"multiclass_nms3", "multiclass_nms3", "BBoxes Scores RoisNum", "Out Index NmsRoisNum"},
    {"matrix_nms", "matrix_nms", "BBoxes Scores", "Out Index RoisNum"},
    {"prior_box", "prior_box", "Input Image", "Boxes Variances"},
    {"box_coder", "box_coder", "PriorBox PriorBoxVar TargetBox", "OutputBox"},
    {"roi_align", "roi_align", "X ROIs RoisNum"},
    // training with quantization
    {"fake_quantize_dequantize_abs_max", "fake_quantize_dequantize_abs_max", "X"},
    {"fake_quantize_dequantize_moving_average_abs_max", "fake_quantize_dequantize_moving_average_abs_max", "X InScale"},
    {"fake_quantize_moving_average_abs_max|fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max", "X InScale",
     "Out OutScale"},
    {"fake_quantize_abs_max", "fake_quantize_abs_max", "X", "Out OutScale"},
    {"fake_channel_wise_quantize_dequantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max", "X"},
    {"fake_channel_wise_quantize_abs_max", "fake_channel_wise_quantize_abs_max", "X", "Out OutScale"},
    {"fake_dequantize_max_abs", "fake_dequantize_max_abs", "X Scale"},
    {"fake_channel_wise_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs", "X Scales"},
    {"moving_average_abs_max_scale", "assign", "X"},
    {"quantize_linear", "quantize_linear", "X Scale ZeroPoint", "Y"},
    {"dequantize_linear", "dequantize_linear", "X Scale ZeroPoint", "Y"},
};

// Calls f with every part between separators.
template <class F>
void for_each_part(std::string_view text, char separator, F&& f) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) f(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
}

Operand operand_of(const OldOperator& old, std::string_view places) {
  Operand operand;
  for_each_part(places, '|', [&](std::string_view place) {
    if (!operand.is_absent()) return;
    if (place[0] == '=') {
      if (const auto it = old.attributes.find(place.substr(1)); it != old.attributes.end()) operand.stated = it->second;
    } else if (const auto it = old.inputs.find(place); it != old.inputs.end()) {
      operand.values = it->second;
    }
  });
  return operand;
}

const OldWords* words_of(std::string_view type) {
  for (const OldWords& words : kOldWords) {
    bool is_named = false;
    for_each_part(words.type, '|', [&](std::string_view name) { is_named |= name == type; });
    if (is_named) return &words;
  }
  return nullptr;
}
}  // namespace

Operator in_new_words(OldOperator old) {
  const OldWords own{old.type, old.type};
  const OldWords* words = words_of(old.type);
  if (!words) words = &own;
  Operator now;
  now.type = words->now;
  for_each_part(words->inputs, ' ', [&](std::string_view places) { now.inputs.push_back(operand_of(old, places)); });
  for_each_part(words->outputs, ' ', [&](std::string_view place) {
    const auto it = old.outputs.find(place);
    now.outputs.push_back(it == old.outputs.end() ? std::vector<std::string>() : it->second);
  });
  for_each_part(words->attributes, ' ', [&](std::string_view renaming) {
    const size_t colon = renaming.find(':');
    if (auto it = old.attributes.find(renaming.substr(0, colon)); it != old.attributes.end()) {
      now.attributes[std::string(renaming.substr(colon + 1))] = std::move(it->second);
      old.attributes.erase(it);
    }
  });
  now.attributes.merge(old.attributes);
  return now;
}

}  // namespace orknn::importer::paddle
