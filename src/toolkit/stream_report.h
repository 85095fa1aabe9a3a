// What of a model runs as command streams.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "format/program.h"
#include "silicon/network.h"

namespace orknn::toolkit {

struct StreamReport {
  struct Layer {
    std::string type, name;
    silicon::NetworkLayer streams;
  };
  std::vector<Layer> layers;  // of the first program
  silicon::NetworkSummary summary;
  uint64_t stored_bytes = 0;    // that the file holds, of all programs; 0 = they are made when a session begins
  bool stores_weights = false;  // packed ones too
};
// Nothing for models of chips whose registers are not known.
Result<std::optional<StreamReport>> describe_streams(const format::Model& model);
nlohmann::ordered_json to_json(const StreamReport& report);
std::string streams_text(const StreamReport& report, size_t width = 0);

}  // namespace orknn::toolkit
