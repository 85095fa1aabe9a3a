// Operators of torchvision.
#include "import/lower/detection.h"

#include "import/pytorch/operators.h"

namespace orknn::importer::pytorch {
namespace {
using ir::TensorId;
using Ints = std::vector<int64_t>;

RegionPooling region_pooling(Call& c) {
  return {.height = c.integer("pooled_height"), .width = c.integer("pooled_width"), .scale = c.number("spatial_scale")};
}
Result<TensorId> aligned_regions(Call& c, TensorId x, TensorId rois) {
  if (c.rank("rois") != 2 || c.dims("rois")[1] != 5)
    return invalid_model("regions need rows of five numbers").found(ir::to_string(c.dims("rois")));
  RegionPooling pooling = region_pooling(c);
  pooling.samples = c.integer("sampling_ratio");
  pooling.aligned = c.flag("aligned");
  return roi_align(c, x, split_regions(c, rois), pooling);
}
TensorId pooled_regions(Call& c, TensorId x, TensorId rois) { return roi_max_pool(c, x, rois, region_pooling(c)); }
Result<TensorId> deform_conv(Call& c, TensorId x, TensorId weight, TensorId offset, TensorId mask, TensorId bias) {
  if (c.rank("weight") != 4) return invalid_model("a deformable convolution needs weights of four axes");
  std::vector<TensorId> inputs{x, weight, offset, bias};
  if (c.flag("use_mask")) inputs.push_back(mask);
  const int64_t pad_h = c.integer("pad_h"), pad_w = c.integer("pad_w");
  return c.emit("DeformConv", std::move(inputs),
                {{"strides", Ints{c.integer("stride_h"), c.integer("stride_w")}},
                 {"pads", Ints{pad_h, pad_w, pad_h, pad_w}},
                 {"dilations", Ints{c.integer("dilation_h"), c.integer("dilation_w")}},
                 {"group", c.integer("groups")},
                 {"offset_group", c.integer("offset_groups")}});
}
Status nms(Call&) {
  return unsupported("non-maximum suppression gives as many boxes as it finds, which has no place in a network of fixed shapes")
      .hint("leave the selection of boxes to the program that reads the outputs: export the model without it");
}
}  // namespace

std::span<const Row> detection_rows() {
  static const Row rows[] = {
      {"torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int "
       "sampling_ratio, bool aligned=False)",
       aligned_regions},
      {"torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width)",
       with_unused<pooled_regions, 1>},
      {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int "
       "stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask)",
       deform_conv},
      {"torchvision::nms(...)", nms},
  };
  return rows;
}

}  // namespace orknn::importer::pytorch
