// What a run says and writes besides its results, by RKNN_LOG_LEVEL: memory tables from level 3, the layer table from level 4,
// files of all layers from level 5 (docs/library.md).
#pragma once

#include <cstdint>
#include <string>

#include "base/log.h"
#include "runtime/session.h"

namespace orknn::runtime {

struct RunReport {
  int level = 0;            // 0 to 6; lines appear when the log's own level allows them, too
  int cores = 1;            // that the layer table is made for
  uint64_t sram_bytes = 0;  // of the chip, for intermediate results
};

// RKNN_LOG_LEVEL as a number 0 to 6, larger ones are 6; `otherwise` when it is not set to a number.
int environment_log_level(int otherwise);

// Every line of `text` as a log line of its own.
void log_lines(LogLevel level, const std::string& text);
// Once per loaded model: versions and facts about it (level 2), memory tables (level 3).
void report_loading(const Session& session, const RunReport& report);
// Session::run with the report around it. Toolkit1's NN_LAYER_DUMP writes files at any level.
Status run_with_report(Session& session, const RunReport& report, const sim::RunHooks& hooks = {});
// The same for Session::run_values.
Status run_values_with_report(Session& session, std::span<const ir::TensorView> inputs, const RunReport& report,
                              const sim::RunHooks& hooks);

}  // namespace orknn::runtime
