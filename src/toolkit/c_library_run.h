// A finished model run as programs on a board run it: the file is opened, fed and read through the functions of the C library,
// with its conversions of types and layouts. Layers can be watched meanwhile.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rknn_api.h"
#include "runtime/context.h"

namespace orknn::toolkit {

class CLibraryRun {
 public:
  static Result<CLibraryRun> open(const std::string& path);
  ~CLibraryRun();
  CLibraryRun(CLibraryRun&& other) noexcept : handle_(std::exchange(other.handle_, 0)), context_(std::move(other.context_)) {}
  CLibraryRun& operator=(CLibraryRun&&) = delete;

  // From now on it runs on the device at this address.
  Status use_device(const std::string& address);

  const runtime::Session& session() const { return *context_->session; }
  // One value per input, in the source model's order of axes. Pictures are handed over as NHWC, as cameras give them. Then runs;
  // a model whose layers `hooks` change is not what the outputs are of.
  Status run(const std::vector<ir::TensorData>& inputs, const sim::RunHooks& hooks);

 private:
  CLibraryRun(rknn_context handle, std::shared_ptr<runtime::Context> context) : handle_(handle), context_(std::move(context)) {}
  rknn_context handle_ = 0;
  std::shared_ptr<runtime::Context> context_;
};

}  // namespace orknn::toolkit
