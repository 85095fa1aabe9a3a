#include "toolkit/stream_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ops/eval.h"
#include "toolkit/report.h"
#include "toolkit/table.h"

namespace orknn::toolkit {

Result<std::optional<StreamReport>> describe_streams(const format::Model& model) {
  const platform::Platform* chip = platform::find(model.target_platform);
  if (!chip || !silicon::knows_registers_of(*chip) || model.programs.empty()) return std::optional<StreamReport>();
  const format::Program& program = model.programs[0];
  ORKNN_TRY_ASSIGN(const silicon::Image image, silicon::image_of(model, 0, ops::builtin_ops()));
  const std::vector<silicon::NetworkLayer> layers = silicon::layers_of(image, program);
  StreamReport report;
  for (size_t i = 0; i < program.tasks.size(); ++i) {
    const ir::Node& n = program.graph.node(program.tasks[i].node);
    report.layers.push_back({n.type_name(), n.name, layers[i]});
  }
  report.summary = silicon::summary_of(layers);
  for (const format::StoredStreams& stored : model.streams) report.stored_bytes += stored.bytes.size();
  report.stores_weights = report.stored_bytes > 0 && image.holds_weights();
  return std::optional<StreamReport>(std::move(report));
}

nlohmann::ordered_json to_json(const StreamReport& report) {
  auto layers = nlohmann::ordered_json::array();
  for (const StreamReport::Layer& l : report.layers)
    layers.push_back({{"type", l.type},
                      {"name", l.name},
                      {"tasks", l.streams.tasks},
                      {"words", l.streams.words},
                      {"packed_bytes", l.streams.packed_bytes},
                      {"macs", l.streams.macs},
                      {"reason", l.streams.reason}});
  const silicon::NetworkSummary& s = report.summary;
  return {{"mac_share", s.share()},
          {"tasks", s.tasks},
          {"stream_bytes", s.stream_bytes},
          {"packed_bytes", s.packed_bytes},
          {"stored_bytes", report.stored_bytes},
          {"stores_weights", report.stores_weights},
          {"layers", layers}};
}

std::string streams_text(const StreamReport& report, size_t width) {
  Table table({{"#", Table::Align::Right},
               {"type"},
               {"name", Table::Align::Left, true},
               {"tasks", Table::Align::Right},
               {"words", Table::Align::Right},
               {"on the CPU because", Table::Align::Left, true}});
  for (size_t i = 0; i < report.layers.size(); ++i) {
    const StreamReport::Layer& l = report.layers[i];
    table.add({std::to_string(i), l.type, l.name, l.streams.tasks ? std::to_string(l.streams.tasks) : "-",
               l.streams.words ? std::to_string(l.streams.words) : "-", l.streams.reason});
  }
  const silicon::NetworkSummary& s = report.summary;
  return table.to_text(width) +
         fmt::format(
             "{:.2f} % of the multiply-accumulates run as {} tasks: {} of streams,\n{} of packed operands; not run on a board\n",
             s.share() * 100, s.tasks, bytes_text(s.stream_bytes), bytes_text(s.packed_bytes)) +
         (report.stored_bytes == 0 ? "the file does not hold them, they are made when a session begins\n"
                                   : fmt::format("the file holds {} of them{}\n", bytes_text(report.stored_bytes),
                                                 report.stores_weights ? "" : ", weights are packed when a session begins"));
}

}  // namespace orknn::toolkit
