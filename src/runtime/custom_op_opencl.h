// OpenCL for custom operators, from whatever library the system has when it is first asked for.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "rknn_custom_op.h"

namespace orknn::runtime {

// A program built for one device, with a queue. Not for use from two threads at once.
class OpenClProgram {
 public:
  // False, with the reason in `problem`, when the machine has no OpenCL.
  static bool is_available(std::string& problem);
  // The error holds what the OpenCL compiler says.
  static Result<std::unique_ptr<OpenClProgram>> build(const std::string& source, const std::string& options,
                                                      const std::string& kernel);
  ~OpenClProgram();
  OpenClProgram(const OpenClProgram&) = delete;
  OpenClProgram& operator=(const OpenClProgram&) = delete;

  // Context and queue of the program, and a kernel of the caller's own, which lives as long as this object.
  Result<rknn_gpu_op_context> make_kernel();

 private:
  OpenClProgram() = default;
  struct Objects;
  std::unique_ptr<Objects> objects_;
};

}  // namespace orknn::runtime
