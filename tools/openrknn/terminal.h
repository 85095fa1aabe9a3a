// How the command line speaks: results to stdout, everything else to stderr; colours and moving bars only on a terminal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/status.h"
#include "toolkit/progress.h"

namespace orknn::cli {

// Exit codes of the program.
enum Exit { kOk = 0, kFailed = 1, kUsage = 2 };

// Log lines go to stderr as "W build: text"; `verbose` shows more of them.
void attach_log(bool verbose);
// Prints an error and returns kFailed. `json`: the result was asked for as JSON, so stdout gets an object with the error,
// after what is known so far; whoever reads it finds one object whatever happens.
int fail(const Status& status, bool json = false);
int fail(const Status& status, nlohmann::ordered_json known);
// A line on stderr that is neither result nor warning.
void note(const std::string& text);
// Results. Control characters, which come from names in files, are printed escaped.
void print(std::string_view text);
// Text that has colours of its own, and no names but escaped ones.
void print_coloured(std::string_view text);
void print_json(const nlohmann::ordered_json& value);
// Characters of a line of stdout when that is a terminal, else 0: tables for other programs are not cut.
size_t output_width();
// To be called last: kFailed when something printed could not be written, else `exit_code`.
int close_output(int exit_code);
// A bar on stderr when that is a terminal, nothing otherwise.
toolkit::Progress progress_bar();

}  // namespace orknn::cli
