#include "toolkit/c_library_run.h"

#include <cstring>

#include "runtime/c_call.h"
#include "runtime/remote_device.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

Status refused(const char* function, int code) {
  return unsupported(std::string(function) + " of the C library refuses the model")
      .found(std::to_string(code) + ", " + runtime::last_error());
}

Result<rknn_tensor_type> type_of(DType dtype) {
  switch (dtype) {
    case DType::Float32: return RKNN_TENSOR_FLOAT32;
    case DType::Float16: return RKNN_TENSOR_FLOAT16;
    case DType::Int8: return RKNN_TENSOR_INT8;
    case DType::UInt8: return RKNN_TENSOR_UINT8;
    case DType::Int16: return RKNN_TENSOR_INT16;
    case DType::Int32: return RKNN_TENSOR_INT32;
    case DType::Int64: return RKNN_TENSOR_INT64;
    case DType::Bool: return RKNN_TENSOR_BOOL;
    default: return unsupported("the C library takes no input of this type").found(std::string(dtype_name(dtype)));
  }
}

// [n, c, h, w] as [n, h, w, c].
TensorData channels_last(const TensorData& x) {
  const Dims& d = x.dims();
  const size_t element = dtype_bytes(x.dtype());
  TensorData y = TensorData::allocate(x.dtype(), {d[0], d[2], d[3], d[1]});
  const auto* from = static_cast<const std::byte*>(x.data());
  auto* to = static_cast<std::byte*>(y.mutable_data());
  const int64_t area = d[2] * d[3];
  for (int64_t n = 0; n < d[0]; ++n)
    for (int64_t c = 0; c < d[1]; ++c)
      for (int64_t p = 0; p < area; ++p)
        std::memcpy(to + static_cast<size_t>((n * area + p) * d[1] + c) * element,
                    from + static_cast<size_t>((n * d[1] + c) * area + p) * element, element);
  return y;
}

// A model of several shape sets takes the largest, which the first one is.
Status choose_shapes(rknn_context handle, const runtime::Context& context) {
  if (context.has_shapes) return {};
  std::vector<rknn_tensor_attr> attrs(context.session->inputs().size());
  for (size_t i = 0; i < attrs.size(); ++i) {
    attrs[i].index = static_cast<uint32_t>(i);
    if (const int code = rknn_query(handle, RKNN_QUERY_INPUT_ATTR, &attrs[i], sizeof attrs[i]); code != RKNN_SUCC)
      return refused("rknn_query", code);
  }
  const int code = rknn_set_input_shapes(handle, static_cast<uint32_t>(attrs.size()), attrs.data());
  return code == RKNN_SUCC ? Status() : refused("rknn_set_input_shapes", code);
}
}  // namespace

Result<CLibraryRun> CLibraryRun::open(const std::string& path) {
  runtime::keep_own_log();
  const runtime::RunsHere here;  // use_device says otherwise
  rknn_context handle = 0;
  std::string name = path;  // the parameter is not const
  if (const int code = rknn_init(&handle, name.data(), 0, 0, nullptr); code != RKNN_SUCC) return refused("rknn_init", code);
  CLibraryRun run(handle, runtime::find_context(handle));
  ORKNN_TRY(choose_shapes(handle, *run.context_));
  return run;
}

CLibraryRun::~CLibraryRun() {
  if (handle_) rknn_destroy(handle_);
}

Status CLibraryRun::use_device(const std::string& address) {
  ORKNN_TRY_ASSIGN(const remote::Address parsed, remote::Address::parse(address));
  return runtime::use_device_at(*context_->session, parsed);
}

Status CLibraryRun::run(const std::vector<TensorData>& inputs, const sim::RunHooks& hooks) {
  std::vector<TensorData> values = inputs;
  std::vector<rknn_input> list(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const runtime::PortInfo& port = session().inputs()[i];
    const bool is_picture = port.dims.size() == 4 && values[i].dims().size() == 4;
    if (is_picture && port.layout != Layout::NHWC) values[i] = channels_last(values[i]);
    list[i] = {};
    list[i].index = static_cast<uint32_t>(i);
    list[i].buf = const_cast<void*>(values[i].data());
    list[i].size = static_cast<uint32_t>(values[i].bytes());
    ORKNN_TRY_ASSIGN(list[i].type, type_of(values[i].dtype()));
    list[i].fmt = is_picture ? RKNN_TENSOR_NHWC : RKNN_TENSOR_UNDEFINED;
  }
  const int code = rknn_inputs_set(handle_, static_cast<uint32_t>(list.size()), list.data());
  if (code != RKNN_SUCC) return refused("rknn_inputs_set", code);
  const std::lock_guard lock(context_->mutex);
  return context_->session->run(hooks);
}

}  // namespace orknn::toolkit
