#include "toolkit/sharing.h"

#include <nlohmann/json.hpp>

#include "toolkit/table.h"

namespace orknn::toolkit {
namespace {

// One core, with `neighbours` other cores at work.
Result<Profile> on_one_core(const ir::Graph& graph, ProfileRequest request, const platform::Platform& chip, int neighbours) {
  request.cores = {1};
  request.batch = 1;
  request.neighbours = neighbours;
  ORKNN_TRY_ASSIGN(std::vector<Profile> rows, profile(graph, chip, request));
  return std::move(rows.front());
}
}  // namespace

Result<Sharing> share(const ir::Graph& first_graph, const ProfileRequest& first, const ir::Graph& second_graph,
                      const ProfileRequest& second, const platform::Platform& chip) {
  Sharing sharing;
  sharing.platform = chip.name;
  ORKNN_TRY_ASSIGN(const Profile a, on_one_core(first_graph, first, chip, 0));
  ORKNN_TRY_ASSIGN(const Profile b, on_one_core(second_graph, second, chip, 0));
  for (const Profile* p : {&a, &b})
    if (!p->has_times()) {
      sharing.problem = p->problem.empty() ? p->unknown : p->problem;
      return sharing;
    }
  sharing.alone = {a.fps, b.fps};
  const double in_turn = 1000 / (a.latency_ms + b.latency_ms);
  sharing.one_core = {in_turn, in_turn};
  if (chip.cores > 1) {
    ORKNN_TRY_ASSIGN(const Profile beside_a, on_one_core(first_graph, first, chip, 1));
    ORKNN_TRY_ASSIGN(const Profile beside_b, on_one_core(second_graph, second, chip, 1));
    sharing.own_cores = {beside_a.fps, beside_b.fps};
  }
  return sharing;
}

nlohmann::ordered_json to_json(const Sharing& s) {
  const auto pair = [](const Pair& p) { return nlohmann::ordered_json{{"first_fps", p.first}, {"second_fps", p.second}}; };
  nlohmann::ordered_json result{{"platform", s.platform}};
  if (!s.problem.empty()) {
    result["problem"] = s.problem;
    return result;
  }
  result["alone"] = pair(s.alone);
  result["own_cores"] = s.own_cores ? pair(*s.own_cores) : nlohmann::ordered_json(nullptr);
  result["one_core"] = pair(s.one_core);
  return result;
}

std::string sharing_text(const std::vector<Sharing>& rows, const std::string& first, const std::string& second, size_t width) {
  using Align = Table::Align;
  Table table({{"platform"},
               {"FPS of"},
               {"alone", Align::Right},
               {"a core each", Align::Right},
               {"one core for both", Align::Right},
               {.title = "", .may_wrap = true}});
  for (const Sharing& s : rows) {
    if (!s.problem.empty()) {
      table.add({s.platform, "", "-", "-", "-", s.problem});
      continue;
    }
    table.add({s.platform, first, fps_text(s.alone.first), s.own_cores ? fps_text(s.own_cores->first) : "-",
               fps_text(s.one_core.first), ""});
    table.add({"", second, fps_text(s.alone.second), s.own_cores ? fps_text(s.own_cores->second) : "-",
               fps_text(s.one_core.second), ""});
  }
  return table.to_text(width);
}

}  // namespace orknn::toolkit
