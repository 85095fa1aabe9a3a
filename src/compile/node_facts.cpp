#include "compile/node_facts.h"

#include <algorithm>

#include "ops/facts.h"

namespace orknn::compile {

namespace {

std::span<const std::string> fused_names(const ir::Node& node) {
  const auto* fused = node.attributes.get<std::vector<std::string>>("fused");
  return fused ? std::span<const std::string>(*fused) : std::span<const std::string>();
}

std::string_view computed_op(const ir::Node& node, const ir::OpDef& own) {
  if (own.integer_form_of.empty()) return node.op;
  const auto fused = fused_names(node);
  return own.fused_names_op && !fused.empty() ? std::string_view(fused.front()) : own.integer_form_of;
}
}  // namespace

NodeFacts::NodeFacts(const ir::Graph& graph, const ir::Node& node, const platform::Platform& platform)
    : graph_(graph),
      node_(node),
      platform_(platform),
      own_(&ops::facts_of(node)),
      op_(computed_op(node, *own_)),
      def_(&ops::facts_of(op_)) {}

std::vector<std::string_view> NodeFacts::functions() const {
  std::vector<std::string_view> names;
  for (const ir::TailStep& s : node_.tail) names.push_back(s.op);
  const auto fused = fused_names(node_);
  names.insert(names.end(), fused.begin() + (own_->fused_names_op && !fused.empty() ? 1 : 0), fused.end());
  return names;
}

std::optional<ir::Dims> NodeFacts::dims_of(ir::TensorId t) const {
  if (!t) return {};
  const auto& shape = graph_.tensor(t).shape;
  return shape ? ir::to_dims(*shape) : std::nullopt;
}

std::optional<double> NodeFacts::scalar(size_t i) const {
  if (!is_constant(i)) return {};
  const ir::TensorData& value = *graph_.constant(node_.inputs[i]);
  if (value.count() != 1) return {};
  return ir::to_doubles(value.view()).front();
}

std::optional<std::vector<int64_t>> NodeFacts::ints(size_t i) const {
  if (!is_constant(i) || !is_integer(input_type(i))) return {};
  return ir::to_ints(graph_.constant(node_.inputs[i])->view());
}

int64_t NodeFacts::axis(int64_t fallback, int64_t rank) const {
  const int64_t a = node_.attributes.int_or("axis", fallback);
  return a < 0 ? a + rank : a;
}

std::optional<Extents> extents(const std::optional<ir::Dims>& dims) {
  if (!dims || dims->size() > 4) return {};
  ir::Dims full(4 - dims->size(), 1);
  full.insert(full.end(), dims->begin(), dims->end());
  return Extents{full[0], full[1], full[2], full[3]};
}

std::optional<Window> window_of(const NodeFacts& facts) {
  const auto in = facts.input(0), out = facts.output(0);
  if (!in || !out || in->size() < 3 || in->size() > 4 || out->size() != in->size()) return {};
  const size_t axes = in->size() - 2;
  const auto spatial = [&](const ir::Dims& d) {
    return axes == 1 ? Extents{d[0], d[1], 1, d[2]} : Extents{d[0], d[1], d[2], d[3]};
  };
  Window w;
  w.in = spatial(*in);
  w.out = spatial(*out);
  const ir::Attributes& attributes = facts.node().attributes;
  w.transposed = facts.def().weights == ir::Weights::InOut;
  const bool convolution = w.transposed || facts.def().weights == ir::Weights::OutIn;
  w.in_channels = w.in.c;
  w.out_channels = w.out.c;
  w.group = convolution ? attributes.int_or("group", 1) : w.in.c;
  w.depthwise = convolution && w.group > 1 && w.group == w.in_channels && w.group == w.out_channels;

  const auto put = [&](std::array<int64_t, 2>& to, const std::vector<int64_t>& from, size_t offset) {
    for (size_t a = 0; a < axes && offset + a < from.size(); ++a) to[2 - axes + a] = from[offset + a];
  };
  std::vector<int64_t> kernel = attributes.ints_or("kernel_shape");
  if (kernel.empty() && convolution) {
    const auto weights = facts.input(1);
    if (!weights || weights->size() != in->size()) return {};
    kernel.assign(weights->begin() + 2, weights->end());
  }
  put(w.kernel, kernel, 0);
  if (facts.def().pattern == ir::Pattern::GlobalWindow) w.kernel = {w.in.h, w.in.w};
  put(w.stride, attributes.ints_or("strides"), 0);
  put(w.dilation, attributes.ints_or("dilations"), 0);
  constexpr int64_t kMost = 1 << 20;  // keeps every product below within 64 bits
  for (size_t a = 0; a < 2; ++a)
    for (int64_t v : {w.kernel[a], w.stride[a], w.dilation[a]})
      if (v < 1 || v > kMost) return {};
  const std::string auto_pad = attributes.string_or("auto_pad", "NOTSET");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const int64_t in_size[2] = {w.in.h, w.in.w}, out_size[2] = {w.out.h, w.out.w};
    for (int a = 0; a < 2; ++a) {
      const size_t i = static_cast<size_t>(a);
      const int64_t total = w.transposed ? w.dilated(a) + (in_size[i] - 1) * w.stride[i] - out_size[i]
                                         : (out_size[i] - 1) * w.stride[i] + w.dilated(a) - in_size[i];
      w.pad_begin[i] = std::max<int64_t>(total, 0) / 2;
      w.pad_end[i] = std::max<int64_t>(total, 0) - w.pad_begin[i];
    }
  } else if (auto_pad == "NOTSET") {
    const std::vector<int64_t> pads = attributes.ints_or("pads");
    put(w.pad_begin, pads, 0);
    put(w.pad_end, pads, axes);
  }
  return w;
}

}  // namespace orknn::compile
