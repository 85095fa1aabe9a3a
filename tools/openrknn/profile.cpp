// openrknn profile MODEL: what the network costs on each chip, without a board and without weights.
#include "toolkit/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/log.h"
#include "commands.h"
#include "compile/place.h"
#include "format/rknn_file.h"
#include "ops/eval.h"
#include "optimize/pipeline.h"
#include "terminal.h"
#include "toolkit/sharing.h"

namespace orknn::cli {
namespace {

struct ProfileOptions {
  SourceOptions source;
  std::string model, html, trace, beside;
  std::vector<std::string> input_sizes;
  std::optional<std::string> platforms, json, dtype;
  toolkit::ProfileRequest request;
  bool layers = false;

  bool prints_json() const { return json && (json->empty() || *json == "-"); }
};

Status write_text(const std::string& path, const std::string& text) {
  return write_file_atomically(path, [&](FileWriter& file) { return file.write(text); });
}

struct Loaded {
  ir::Graph graph;
  std::string platform, float_dtype;  // of a finished model
  bool finished = false;
};

// "320" or "320x640": rows and columns of a picture.
Result<std::pair<int64_t, int64_t>> picture_size(const std::string& text) {
  const size_t cross = text.find('x');
  const auto number = [](std::string_view digits) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
  };
  const std::string_view all = text;
  const int64_t rows = number(all.substr(0, cross)), columns = cross == text.npos ? rows : number(all.substr(cross + 1));
  constexpr int64_t kMost = 16384;
  if (rows < 1 || columns < 1 || rows > kMost || columns > kMost)
    return invalid_argument("--input-size is the size of a picture")
        .expected("320 or 320x640, rows first")
        .found("'" + text + "'");
  return std::pair{rows, columns};
}

// The shapes of all inputs with the one picture among them in another size.
Result<std::vector<ir::Dims>> resized_inputs(const ir::Graph& graph, const std::string& size) {
  ORKNN_TRY_ASSIGN(const auto picture, picture_size(size));
  std::vector<ir::Dims> shapes;
  size_t pictures = 0;
  for (ir::TensorId t : graph.inputs()) {
    const ir::Tensor& tensor = graph.tensor(t);
    auto dims = tensor.shape ? ir::to_dims(*tensor.shape) : std::nullopt;
    if (!dims) return invalid_argument("the shape of input '" + tensor.name + "' is open").hint("give it with --input-size-list");
    if (dims->size() == 4 && ((*dims)[1] == 1 || (*dims)[1] == 3 || (*dims)[1] == 4)) {
      (*dims)[2] = picture.first;
      (*dims)[3] = picture.second;
      ++pictures;
    }
    shapes.push_back(std::move(*dims));
  }
  if (pictures != 1)
    return invalid_argument("--input-size needs a model with one picture as its input")
        .expected("one input [batch, 1, 3 or 4 channels, rows, columns]")
        .found(std::to_string(pictures))
        .hint("give every shape with --input-size-list");
  return shapes;
}

// `size`: what if the picture were of this size; empty = as the model says.
Result<Loaded> load(const ProfileOptions& o, const std::string& path, const std::string& size) {
  Loaded loaded;
  if (is_rknn(path)) {
    if (!size.empty())
      return invalid_argument("the size of the picture is built into a finished model").hint("give the model it was made from");
    o.source.warn_finished({"target-platform", "op-target"});
    ORKNN_TRY_ASSIGN(format::Model model, format::read_rknn(path));
    loaded.graph = std::move(model.programs[0].graph);
    loaded.platform = model.target_platform;
    loaded.float_dtype = model.float_dtype;
    loaded.finished = true;
    return loaded;
  }
  ORKNN_TRY_ASSIGN(importer::ImportOptions importing, o.source.import_options());
  importing.missing_weights = true;
  ORKNN_TRY_ASSIGN(const std::vector<std::string> weights, o.source.weights_of(path));
  const auto import = [&] { return importer::load_file(path, importing, ops::builtin_ops(), o.source.framework, weights); };
  ORKNN_TRY_ASSIGN(importer::Imported imported, import());
  if (!size.empty()) {
    ORKNN_TRY_ASSIGN(importing.input_size_list, resized_inputs(imported.graph, size));
    ORKNN_TRY_ASSIGN(imported, import());
  }
  for (const std::string& text : imported.source.warnings) log(LogLevel::Warn, "profile", text);
  optimize::OptimizeOptions optimizing;
  optimizing.level = o.source.level;
  optimize::Trace trace;
  ORKNN_TRY(optimize::optimize(imported.graph, ops::builtin_ops(), optimizing, &trace));
  loaded.graph = std::move(imported.graph);
  return loaded;
}

// A finished model is judged on its own chip unless others are asked for.
Result<std::vector<const platform::Platform*>> chosen(const ProfileOptions& o, const Loaded& loaded) {
  std::vector<const platform::Platform*> chips;
  const std::string names = o.platforms                  ? *o.platforms
                            : !o.source.platform.empty() ? o.source.platform
                            : loaded.finished            ? loaded.platform
                                                         : "all";
  if (names == "all") {
    for (const platform::Platform& p : platform::all()) chips.push_back(&p);
    return chips;
  }
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    ORKNN_TRY_ASSIGN(const platform::Platform* chip, platform::get(names.substr(begin, end - begin)));
    if (std::find(chips.begin(), chips.end(), chip) == chips.end()) chips.push_back(chip);
    begin = end + 1;
  }
  return chips;
}

// A number that none of the chips has is a mistake; chips that lack it beside others that have it get a remark.
Status check_cores(const std::vector<int>& cores, const std::vector<const platform::Platform*>& chips) {
  int most = 0;
  for (const platform::Platform* chip : chips) most = std::max(most, chip->cores);
  for (int count : cores)
    if (count > most)
      return invalid_argument(chips.size() == 1
                                  ? fmt::format("{} has {} NPU core{}, not {}", chips[0]->name, most, most == 1 ? "" : "s", count)
                                  : fmt::format("no chip has {} NPU cores", count))
          .expected(most == 1 ? "--cores 1" : fmt::format("--cores with numbers from 1 to {}", most))
          .found(std::to_string(count));
  return {};
}

// One entry per chip and number of cores.
Result<std::vector<toolkit::Profile>> profiles_of(const Loaded& loaded, const ProfileOptions& o,
                                                  const std::vector<const platform::Platform*>& chips) {
  std::vector<toolkit::Profile> profiles;
  for (const platform::Platform* chip : chips) {
    auto rows = toolkit::profile(loaded.graph, *chip, o.request);
    if (!rows) return Status(rows.status()).model(file_stem(o.model));
    if (chips.size() == 1 && !rows->front().problem.empty())
      return unsupported(rows->front().problem).model(file_stem(o.model)).stage("profile");
    profiles.insert(profiles.end(), std::make_move_iterator(rows->begin()), std::make_move_iterator(rows->end()));
  }
  return profiles;
}

// The network and the one of --beside on the same chip.
Result<std::vector<toolkit::Sharing>> shared(const Loaded& loaded, const ProfileOptions& o,
                                             const std::vector<const platform::Platform*>& chips) {
  const auto other = load(o, o.beside, "");
  if (!other) return Status(other.status()).model(o.beside);
  toolkit::ProfileRequest request = o.request;
  if (other->finished && !o.dtype) request.dtype = other->float_dtype == "float32" ? "float16" : "";
  if (!other->finished && request.dtype.empty()) request.dtype = toolkit::ProfileRequest().dtype;
  std::vector<toolkit::Sharing> rows;
  for (const platform::Platform* chip : chips) {
    ORKNN_TRY_ASSIGN(toolkit::Sharing row, toolkit::share(loaded.graph, o.request, other->graph, request, *chip));
    rows.push_back(std::move(row));
  }
  return rows;
}

Status profile(ProfileOptions o) {
  if (o.dtype) o.request.dtype = *o.dtype;
  ORKNN_TRY_ASSIGN(toolkit::BuildConfig config, o.source.config());
  o.request.op_target = config.op_target;
  ORKNN_TRY(toolkit::check(o.request));
  ORKNN_TRY(check_outputs({o.model}, {o.html, o.trace, o.json && *o.json != "-" ? *o.json : ""}));
  if (o.platforms && !o.source.platform.empty())
    return invalid_argument("--platform and --target-platform say the same").hint("give one of them");
  ORKNN_TRY(toolkit::check_optimization_level(config.optimization_level));
  const std::string as_it_is;
  auto loaded = load(o, o.model, o.input_sizes.empty() ? as_it_is : o.input_sizes.front());
  if (!loaded) return Status(loaded.status()).model(o.model);
  if (loaded->finished && !o.dtype) {
    o.request.dtype = "";
    if (loaded->float_dtype == "float32") {
      o.request.dtype = "float16";
      log(LogLevel::Warn, "profile",
          "the model was built with float_dtype float32, which no chip computes: the figures are those of float16");
    }
  }
  ORKNN_TRY_ASSIGN(const std::vector<const platform::Platform*> chips, chosen(o, *loaded));
  ORKNN_TRY(check_cores(o.request.cores, chips));
  if (!chips.empty())
    for (const std::string& remark : compile::remarks_on_targets(loaded->graph, o.request.op_target, *chips.front()))
      log(LogLevel::Warn, "profile", remark);
  if (o.request.single_core && std::all_of(chips.begin(), chips.end(), [](const auto* chip) { return chip->cores == 1; }))
    log(LogLevel::Warn, "profile",
        "--single-core changes nothing on " + std::string(chips.front()->name) + (chips.size() > 1 ? " and the others" : "") +
            ": one NPU core");
  std::vector<toolkit::Profile> profiles;
  for (size_t i = 0; i < std::max<size_t>(o.input_sizes.size(), 1); ++i) {
    if (i > 0) loaded = load(o, o.model, o.input_sizes[i]);
    if (!loaded) return Status(loaded.status()).model(o.model);
    ORKNN_TRY_ASSIGN(std::vector<toolkit::Profile> rows, profiles_of(*loaded, o, chips));
    for (toolkit::Profile& row : rows) {
      if (!o.input_sizes.empty()) row.input_size = o.input_sizes[i];
      profiles.push_back(std::move(row));
    }
  }
  std::vector<toolkit::Sharing> sharing;
  if (!o.beside.empty()) {
    ORKNN_TRY_ASSIGN(sharing, shared(*loaded, o, chips));
  }
  const auto first = std::find_if(profiles.begin(), profiles.end(), [](const toolkit::Profile& p) { return p.problem.empty(); });
  const auto timed = std::find_if(profiles.begin(), profiles.end(), [](const toolkit::Profile& p) { return p.has_times(); });
  if (!o.html.empty()) ORKNN_TRY(write_text(o.html, toolkit::html_page(file_stem(o.model), profiles)));
  if (!o.trace.empty()) {
    if (timed == profiles.end()) return unsupported("no chip of the list has times for this network, there is nothing to trace");
    ORKNN_TRY(write_text(
        o.trace, toolkit::chrome_trace(*timed).dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"));
  }
  if (o.json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const toolkit::Profile& p : profiles) {
      list.push_back(toolkit::to_json(p));
      for (const toolkit::Sharing& s : sharing)
        if (s.platform == p.platform) list.back()["beside"] = toolkit::to_json(s);
    }
    const std::string text = list.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    if (o.prints_json()) {
      print(text);
      return {};
    }
    ORKNN_TRY(write_text(*o.json, text));
  }
  print(toolkit::chips_text(profiles, output_width()));
  if (!sharing.empty()) print("\n" + toolkit::sharing_text(sharing, file_stem(o.model), file_stem(o.beside), output_width()));
  if (first == profiles.end()) return {};
  if (o.layers || chips.size() == 1) print("\n" + toolkit::layers_text(*first, output_width()));
  const toolkit::Profile& shown = timed == profiles.end() ? *first : *timed;
  if (!shown.advice.empty())
    print(fmt::format("\nWhat would help on {}\n", shown.platform) + toolkit::advice_text(shown, output_width()));
  return {};
}
}  // namespace

Action add_profile(CLI::App& app) {
  CLI::App* command = app.add_subcommand("profile", "predict speed, traffic and memory of a network on every chip");
  const auto o = std::make_shared<ProfileOptions>();
  command->add_option("model", o->model, "source model, with or without its weights, or .rknn")->required();
  command->add_option("--platform", o->platforms,
                      "all, or names separated by commas; a .rknn is judged on its own chip by default");
  command->add_option("--dtype", o->dtype,
                      "w8a8 (default), float16, w8a16, w4a16, w16a16i: what the network would be quantized to; needs no dataset");
  command->add_option("--cores", o->request.cores, "number of NPU cores; every number the chip has by default")->delimiter(',');
  command->add_option("--batch", o->request.batch, "samples per run; several cores take one each")->capture_default_str();
  command->add_option("--npu-mhz", o->request.npu_mhz, "what if: another NPU clock");
  command->add_option("--ddr-mhz", o->request.ddr_mhz, "what if: another DDR clock");
  command->add_option("--sparse", o->request.sparse_percent,
                      "what if: 50 or 75 percent of the weights were zero in the pattern of the chip's sparse kernels");
  command->add_option("--sram-kib", o->request.sram_kib, "what if: system SRAM held the bottom of the intermediate results");
  command->add_option("--input-size", o->input_sizes, "what if: the picture were of these sizes, 320,416x640 (rows x columns)")
      ->delimiter(',');
  command->add_option("--beside", o->beside, "what if: this model ran on the chip at the same time");
  command->add_flag("--single-core", o->request.single_core, "as if built with single_core_mode");
  command->add_flag("--layers", o->layers, "show the layers of the first chip also when there are several");
  command->add_option("--json", o->json, "write a list with one object per chip and number of cores; no name or - = print it")
      ->expected(0, 1);
  command->add_option("--html", o->html, "write a page with timeline, roofline and memory map");
  command->add_option("--trace", o->trace, "write the first chip's timeline for chrome://tracing or Perfetto");
  o->source.add_to(*command);
  add_examples(*command, {"profile model.onnx", "profile model.onnx --platform all --cores 1 --html report.html",
                          "profile model.onnx --platform CHIP --dtype float16 --layers",
                          "profile model.onnx --platform CHIP --input-size 320,640 --beside other.onnx"});
  return [o] {
    const Status s = profile(*o);
    return s ? int{kOk} : fail(s, o->prints_json());
  };
}

}  // namespace orknn::cli
