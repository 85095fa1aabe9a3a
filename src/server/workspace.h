// Memory in which the runs on a core take place, one after the other, whoever's they are: it stays in the core's cache, and what
// a context has of its own is small.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/session.h"

namespace orknn::server {

class Workspace {
 public:
  // Makes the session's next run use this memory, for its results, too, if `holds_results`. Returns the inputs as the run is to
  // take them: copies, which are aligned and which do not change while kernels read them.
  Result<std::vector<ir::TensorView>> lend_to(runtime::Session& session, std::span<const ir::TensorView> inputs,
                                              bool holds_results);

 private:
  AlignedPtr<std::byte> bytes_;
  size_t size_ = 0;
};

}  // namespace orknn::server
