// What two networks get from one chip when they run at the same time.
#pragma once

#include "toolkit/profile.h"

namespace orknn::toolkit {

// Frames per second of a first and a second network.
struct Pair {
  double first = 0, second = 0;
};

struct Sharing {
  std::string platform;
  std::string problem;            // why one of the networks cannot run there; nothing else is set then
  Pair alone;                     // each has the chip to itself and uses one core
  std::optional<Pair> own_cores;  // each on a core of its own, both on one memory bus; nothing on chips with one core
  Pair one_core;                  // both on the same core, one run of each in turn
};

// Both graphs as profile() wants them; `first` and `second` say how each is judged (type, clocks, ...), their cores do not
// matter.
Result<Sharing> share(const ir::Graph& first_graph, const ProfileRequest& first, const ir::Graph& second_graph,
                      const ProfileRequest& second, const platform::Platform& chip);

nlohmann::ordered_json to_json(const Sharing& sharing);
// A table with one row per chip; the names head its columns.
std::string sharing_text(const std::vector<Sharing>& rows, const std::string& first, const std::string& second, size_t width = 0);

}  // namespace orknn::toolkit
