// One function per command: declares its options and returns what runs after parsing.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <map>
#include <optional>

#include "toolkit/builder.h"

namespace orknn::cli {

// Runs the command and gives the exit code.
using Action = std::function<int()>;

Action add_convert(CLI::App& app);
Action add_quantize(CLI::App& app);
Action add_analyse(CLI::App& app);
Action add_compare(CLI::App& app);
Action add_run(CLI::App& app);
Action add_hybrid_step1(CLI::App& app);
Action add_hybrid_step2(CLI::App& app);
Action add_edit(CLI::App& app);
Action add_encrypt(CLI::App& app);
Action add_codegen(CLI::App& app);
Action add_info(CLI::App& app);
Action add_profile(CLI::App& app);
Action add_platforms(CLI::App& app);
Action add_passes(CLI::App& app);
Action add_ops(CLI::App& app);
Action add_devices(CLI::App& app);
Action add_sweep(CLI::App& app);
Action add_emit(CLI::App& app);
Action add_board_test(CLI::App& app);
// These two describe the other commands: they are added last.
Action add_completion(CLI::App& app);
Action add_man(CLI::App& app);

// Folders of the installed library and headers; empty when they are not where the program expects them.
std::string library_folder();
std::string include_folder();

// What --weights says when random weights are wanted.
inline constexpr const char* kNoWeights = "none";

// Options that several commands share: how a source model is read and built.
struct SourceOptions {
  std::string platform, float_dtype = "float16", framework;
  int level = 3;
  std::vector<std::string> inputs, outputs, sizes, means, stds, targets, other_files;
  std::vector<const CLI::Option*> declared;  // by add_to

  // Quantization: with a dataset the model is quantized.
  std::string dataset, algorithm, method = "channel", dtype = "w8a8";
  bool needs_dataset = false;  // the command makes no sense without one
  bool quantize_weight = false;
  bool bgr = false;
  std::optional<double> auto_hybrid;  // cosine every output must reach
  // Keys of config() that have no field above: as many texts as the option was given.
  std::map<std::string, std::vector<std::string>, std::less<>> other_keys;

  void add_to(CLI::App& command);
  // Warns of the options that were given although the model is a finished one and has no use for them.
  void warn_finished(std::initializer_list<std::string_view> useful = {}) const;
  void add_quantization_to(CLI::App& command);
  // Every key of config() whose name is not yet that of an option becomes one. To be called last.
  void add_other_keys_to(CLI::App& command);
  Result<toolkit::BuildConfig> config() const;
  toolkit::BuildRequest build_request() const;
  Result<importer::ImportOptions> import_options() const;
  // The files named with --weights, or those found beside the model, which a note reports; none when kNoWeights was named.
  Result<std::vector<std::string>> weights_of(const std::string& model) const;
};

// Whether the command has an option of this name. CLI11's own lookups end the program when memory runs out in them.
bool has_option(const CLI::App& command, const std::string& name);
// Words that an option or argument takes, for the completion of shells. Others may be legal too.
void offer(const CLI::Option* option, std::vector<std::string> words);
// The same where no other word is legal; the error says which one was probably meant.
CLI::Option* one_of(CLI::Option* option, const std::vector<std::string>& words);
// The numbers of such an option.
std::vector<std::string> whole_numbers(int low, int high);
// A folder that there is.
CLI::Validator existing_folder();
// A whole number from `low` to `high`.
CLI::Validator whole_number(int64_t low, int64_t high);
// nullptr when none were offered.
const std::vector<std::string>* offered(const CLI::Option* option);

// Texts of --help in lines that fit the terminal, or 80 characters where the output is none.
std::shared_ptr<CLI::FormatterBase> help_formatter();
// What the command's --help ends with; lines without the program's name, CHIP stands for one.
void add_examples(CLI::App& command, std::initializer_list<std::string_view> lines);
// convert --yml: the models that a yml file describes, into `output`: a folder, or the .rknn of a file with one model. An empty
// `platform` leaves the one of the file.
Status convert_yml(const std::string& file, const std::string& output, const std::string& platform, bool json);

// Sets of one shape per input, the shapes separated by ';'.
Result<toolkit::ShapeSets> parse_shape_sets(const std::string& option, const std::vector<std::string>& texts);

// Refuses to write over a file that is read, and two results in one file. Empty names stand for nothing.
Status check_outputs(const std::vector<std::string>& read, const std::vector<std::string>& written);

// Whether the file is a finished .rknn (by its first bytes, else by its name).
bool is_rknn(const std::string& path);
// Loads and builds a source model, quantized when there is a dataset.
Result<toolkit::Builder> build_model(const std::string& path, const SourceOptions& options);
// A finished model is read; a source model is built in memory.
Result<std::shared_ptr<const format::Model>> open_model(const std::string& path, const SourceOptions& options);

}  // namespace orknn::cli
