// Operators of torchvision.
#include "import/pytorch/ops.h"

namespace orknn::importer::pytorch {
namespace {
using ir::Dims;
using ir::TensorId;

// Regions are rows (image number, x1, y1, x2, y2).
struct Regions {
  TensorId boxes, images;
};
Result<Regions> regions(Call& c) {
  if (c.rank("rois") != 2 || c.dims("rois")[1] != 5)
    return invalid_model("regions need rows of five numbers").found(ir::to_string(c.dims("rois")));
  const TensorId rois = c.tensor("rois");
  return Regions{c.slice(rois, 1, 1, 5), c.cast(c.reshape(c.slice(rois, 1, 0, 1), {-1}), DType::Int64)};
}
Result<Value> roi_align(Call& c) {
  ORKNN_TRY_ASSIGN(const Regions r, regions(c));
  return c.made(c.emit("RoiAlign", {c.tensor("input"), r.boxes, r.images},
                       {{"coordinate_transformation_mode", std::string(c.flag("aligned") ? "half_pixel" : "output_half_pixel")},
                        {"mode", std::string("avg")},
                        {"output_height", c.integer("pooled_height")},
                        {"output_width", c.integer("pooled_width")},
                        {"sampling_ratio", std::max<int64_t>(c.integer("sampling_ratio"), 0)},
                        {"spatial_scale", c.number("spatial_scale")}}));
}
Result<Value> roi_pool(Call& c) {
  ORKNN_TRY_ASSIGN(const Value y,
                   c.made(c.emit("MaxRoiPool", {c.tensor("input"), c.tensor("rois")},
                                 {{"pooled_shape", std::vector<int64_t>{c.integer("pooled_height"), c.integer("pooled_width")}},
                                  {"spatial_scale", c.number("spatial_scale")}})));
  return c.tuple({y, Value()});
}
Result<Value> deform_conv(Call& c) {
  if (c.rank("weight") != 4) return invalid_model("a deformable convolution needs weights of four axes");
  std::vector<TensorId> inputs{c.tensor("input"), c.tensor("weight"), c.tensor("offset"), c.tensor("bias")};
  if (c.flag("use_mask")) inputs.push_back(c.tensor("mask"));
  const int64_t pad_h = c.integer("pad_h"), pad_w = c.integer("pad_w");
  return c.made(c.emit("DeformConv", std::move(inputs),
                       {{"strides", std::vector<int64_t>{c.integer("stride_h"), c.integer("stride_w")}},
                        {"pads", std::vector<int64_t>{pad_h, pad_w, pad_h, pad_w}},
                        {"dilations", std::vector<int64_t>{c.integer("dilation_h"), c.integer("dilation_w")}},
                        {"group", c.integer("groups")},
                        {"offset_group", c.integer("offset_groups")}}));
}
Result<Value> nms(Call& c) {
  return c.fail("non-maximum suppression gives as many boxes as it finds, which has no place in a network of fixed shapes")
      .hint("leave the selection of boxes to the program that reads the outputs: export the model without it");
}
}  // namespace

std::span<const Row> vision_rows() {
  static constexpr Row kRows[] = {
      {"torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width, int "
       "sampling_ratio, bool aligned=False)",
       roi_align},
      {"torchvision::roi_pool(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int pooled_width)", roi_pool},
      {"torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, int stride_h, int "
       "stride_w, int pad_h, int pad_w, int dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask)",
       deform_conv},
      {"torchvision::nms(...)", nms},
  };
  return kRows;
}

}  // namespace orknn::importer::pytorch
