// The names of fields that mean something in some generation or fork of Caffe: what our layers read and what only matters for
// training. Names in BVLC's schema are known anyway.
#include <algorithm>
#include <unordered_set>

#include "import/caffe/message.h"

namespace orknn::importer::caffe {
namespace {
constexpr std::string_view kReadByLayers[] = {
    // parameter messages of forks
    "accum_param", "augmentation_param", "axpy_param", "bn_param", "convolution_depthwise_param", "correlation_param",
    "detection_output_param", "flow_warp_param", "hard_sigmoid_param", "hardsigmoid_param", "interp_param", "leaky_relu_param",
    "lstm_param", "nms_param", "norm_param", "permute_param", "prior_box_param", "proposal_param", "psroi_pooling_param",
    "relu6_param", "reorg_param", "resample_param", "resize_param", "reverse_param", "roi_align_param", "roi_pooling_param",
    "shuffle_channel_param", "upsample_param", "padding_param", "transpose_param",
    // their fields
    "dilation_h", "dilation_w", "function_type", "intepolation_type", "interp_mode", "interpolation_type", "mode", "step",
    "across_spatial", "align_corners", "antialias", "aspect_ratio", "augment_during_test", "background_label_id", "base_size",
    "bn_mode", "ceil_mode", "clip", "clipping_threshold", "code_type", "confidence_threshold", "correlation_type", "do_abs",
    "eta", "factor", "feat_stride", "fill_value", "flip", "group_size", "have_reference", "height", "img_h", "img_size", "img_w",
    "keep_top_k", "max_displacement", "max_size", "mean_per_pixel", "min_size", "nearest", "new_height", "new_width",
    "nms_thresh", "nms_threshold", "normalized_bbox", "num_classes", "offset_h", "offset_w", "order", "out_height_scale",
    "out_width_scale", "output_dim", "pad_beg", "pad_end", "pad_out_h", "pad_out_w", "pad_out", "pooled_h", "pooled_w",
    "post_nms_topn", "pre_nms_topn", "ratio", "recompute_mean", "reverse", "sampling_ratio", "scale_filler", "scale_h", "scale_w",
    "shift_filler", "share_location", "shrink_factor", "single_direction", "size_divisible_by", "spatial_scale", "step_h",
    "step_w", "stride_1", "stride_2", "top_height", "top_width", "type", "upsample_h", "upsample_w", "variance",
    "variance_encoded_in_target", "width", "zoom_factor"};
constexpr std::string_view kForTraining[] = {
    // messages
    "accuracy_param", "annotated_data_param", "contrastive_loss_param", "data_param", "dropout_param", "hdf5_data_param",
    "hdf5_output_param", "hinge_loss_param", "image_data_param", "infogain_loss_param", "loss_param", "multibox_loss_param",
    "save_output_param", "window_data_param",
    // fields
    "backend", "batch_size", "blobs_lr", "clip_gradients", "color_mode", "crop_h", "crop_size", "crop_w", "cudnn_off",
    "debug_info", "decay_mult", "dropout_ratio", "engine", "filename", "force_backward", "force_color", "frozen", "ignore_label",
    "is_color", "keep_prob", "label_map_file", "loss_weight", "lr_mult", "mean_file", "mean_value", "mining_type", "mirror",
    "moving_average_fraction", "name_size_file", "normalization", "normalize", "num_test_image", "output_directory",
    "output_format", "output_name_prefix", "overlap_threshold", "prefetch", "propagate_down", "rand_skip", "resume",
    "root_folder", "sample_weight_test", "save_file", "scale_train", "share_mode", "shared", "shuffle", "slope_filler", "source",
    "top_k", "update_period", "variance_norm", "visualize", "visualize_threshold", "weight_decay", "weight_interval",
    "window_size", "sparse", "min_ratio", "max_ratio", "global_stats", "momentum", "icnn", "force_nd_im2col", "eval_type",
    "objectness_score", "permutation", "cache_images", "bias_multiplier", "weight_multiplier", "expose_hidden", "debug"};

void add(const wire::TextSchema& schema, std::unordered_set<std::string_view>& names, int depth) {
  for (const wire::TextRow& row : schema.rows) {
    names.insert(row.name);
    if (row.message && depth < wire::kMaxDepth) add(*row.message, names, depth + 1);
  }
}
}  // namespace

std::span<const std::string_view> known_fields() {
  static const std::vector<std::string_view> list = [] {
    std::unordered_set<std::string_view> names(std::begin(kReadByLayers), std::end(kReadByLayers));
    names.insert(std::begin(kForTraining), std::end(kForTraining));
    add(schema_of("Net"), names, 0);
    std::vector<std::string_view> sorted(names.begin(), names.end());
    std::sort(sorted.begin(), sorted.end());
    return sorted;
  }();
  return list;
}

}  // namespace orknn::importer::caffe
