// What of a model runs as command streams, and whether the streams give what the simulator gives.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "format/program.h"
#include "runtime/session.h"
#include "silicon/network.h"

namespace orknn::toolkit {

struct StreamReport {
  struct Layer {
    std::string type, name;
    silicon::NetworkLayer streams;
  };
  std::vector<Layer> layers;  // of the first program
  silicon::NetworkSummary summary;
  uint64_t stored_bytes = 0;  // that the file holds, of all programs; 0 = they are made when a session begins
};
// Nothing for models of chips whose registers are not known.
Result<std::optional<StreamReport>> describe_streams(const format::Model& model);
nlohmann::ordered_json to_json(const StreamReport& report);
std::string streams_text(const StreamReport& report, size_t width = 0);

struct EngineComparison {
  size_t tensors = 0, different = 0;
  std::string first_different;  // name of the tensor
};
// Runs the model on both engines, which `feed` gives the same inputs, and compares every tensor bit for bit.
Result<EngineComparison> compare_engines(const std::shared_ptr<const format::Model>& model, ThreadPool& pool,
                                         const std::function<Status(runtime::Session&)>& feed);

}  // namespace orknn::toolkit
