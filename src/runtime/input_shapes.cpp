#include "runtime/input_shapes.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/tensor_attr.h"

namespace orknn::runtime {
namespace {
using namespace ir;

rknn_tensor_attr attr_of(const Session& session, const PortInfo& port) {
  rknn_tensor_attr attr{};
  fill_attr(port, true, AttrView::General, platform::find(session.model().target_platform), attr);
  return attr;
}

bool fits(const Session& session, const PortInfo& port, const rknn_tensor_attr& wanted) {
  const rknn_tensor_attr have = attr_of(session, port);
  if (wanted.name[0] && std::strncmp(wanted.name, have.name, sizeof have.name) != 0) return false;
  if (wanted.n_dims != have.n_dims) return false;
  uint32_t dims[RKNN_MAX_DIMS];
  std::copy_n(wanted.dims, wanted.n_dims, dims);
  const auto format = number(wanted.fmt);
  if (have.fmt == RKNN_TENSOR_NHWC) {  // the layout of other tensors does not count
    if (format != RKNN_TENSOR_NHWC && format != RKNN_TENSOR_NCHW) return false;
    if (format == RKNN_TENSOR_NCHW) std::rotate(dims + 1, dims + 2, dims + 4);  // C to the end
  }
  return std::equal(dims, dims + wanted.n_dims, have.dims);
}

// "images [1,16,16,3] NHWC"; only four axes have a layout.
std::string shape_text(const rknn_tensor_attr& attr) {
  std::string text = std::string(attr.name, ::strnlen(attr.name, sizeof attr.name)) + " [";
  for (uint32_t i = 0; i < std::min<uint32_t>(attr.n_dims, RKNN_MAX_DIMS); ++i)
    text += (i ? "," : "") + std::to_string(attr.dims[i]);
  text += "]";
  if (attr.n_dims != 4) return text;
  const uint32_t format = std::min<uint32_t>(number(attr.fmt), RKNN_TENSOR_FORMAT_MAX);
  return text + " " + get_format_string(static_cast<rknn_tensor_format>(format));
}
}  // namespace

void fill_range(const Session& session, rknn_input_range& range) {
  const uint32_t index = range.index;
  std::memset(&range, 0, sizeof range);
  range.index = index;
  const size_t sets = std::min<size_t>(session.model().programs.size(), RKNN_MAX_DYNAMIC_SHAPE_NUM);
  for (size_t s = 0; s < sets; ++s) {
    const rknn_tensor_attr attr = attr_of(session, session.inputs_of_program(s)[index]);
    std::memcpy(range.name, attr.name, sizeof range.name);
    range.fmt = attr.fmt;
    range.n_dims = attr.n_dims;
    std::copy_n(attr.dims, attr.n_dims, range.dyn_range[range.shape_number++]);
  }
}

std::optional<size_t> find_shape_set(const Session& session, std::span<const rknn_tensor_attr> wanted) {
  std::set<uint32_t> inputs;
  for (const rknn_tensor_attr& w : wanted)
    if (!inputs.insert(w.index).second) return std::nullopt;
  for (size_t s = 0; s < session.model().programs.size(); ++s) {
    const std::vector<PortInfo> ports = session.inputs_of_program(s);
    if (std::all_of(wanted.begin(), wanted.end(), [&](const rknn_tensor_attr& w) {
          return w.index < ports.size() && w.n_dims <= RKNN_MAX_DIMS && fits(session, ports[w.index], w);
        }))
      return s;
  }
  return std::nullopt;
}

std::string shapes_text(std::span<const rknn_tensor_attr> attrs) {
  std::string text;
  for (const rknn_tensor_attr& attr : attrs) text += (text.empty() ? "" : ", ") + shape_text(attr);
  return text;
}

std::string shape_sets_text(const Session& session) {
  std::string text;
  for (size_t s = 0; s < session.model().programs.size(); ++s) {
    std::vector<rknn_tensor_attr> attrs;
    for (const PortInfo& port : session.inputs_of_program(s)) attrs.push_back(attr_of(session, port));
    text += (s ? "; " : "") + shapes_text(attrs);
  }
  return text;
}

}  // namespace orknn::runtime
