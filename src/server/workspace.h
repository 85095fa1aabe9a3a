// Memory in which the runs on a core take place, one after the other, whoever's they are: it stays in the core's cache, and what
// a context has of its own is small.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/memory.h"
#include "base/status.h"
#include "runtime/session.h"

namespace orknn::server {

// Memory that a client shares, which it may change at any time, and where in it the results of a run begin.
struct ClientMemory {
  std::span<std::byte> bytes;
  uint64_t results = 0;

  // Places for results of these sizes one after the other; none where they do not fit.
  std::vector<uint64_t> places(std::span<const uint64_t> sizes) const;
};

class Workspace {
 public:
  // Makes the session's next run use this memory, for its results, too, if `holds_results`. Returns the inputs as the run is to
  // take them: aligned, and copies wherever a kernel would read what the client may change meanwhile. Results that the run only
  // converts are written to the client's memory.
  Result<std::vector<ir::TensorView>> lend_to(runtime::Session& session, std::span<const ir::TensorView> inputs,
                                              bool holds_results, const ClientMemory& client);

 private:
  AlignedPtr<std::byte> bytes_;
  size_t size_ = 0;
};

}  // namespace orknn::server
