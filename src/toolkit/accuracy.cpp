#include "toolkit/accuracy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "base/file_name.h"
#include "base/files.h"
#include "base/folders.h"
#include "base/log.h"
#include "data/npy.h"
#include "format/rknn_file.h"
#include "ir/custom_op.h"
#include "ops/facts.h"
#include "quantize/channel_weights.h"
#include "quantize/quantized_operators.h"
#include "toolkit/c_library_run.h"
#include "toolkit/samples.h"

namespace orknn::toolkit {
namespace {
using namespace ir;

// Nodes that say the same number in another format. A table without a function only rescales.
bool is_conversion(const Node& n) {
  return ops::facts_of(n).conversion != Conversion::None || (n.op == "int:Table" && !n.attributes.has("fused"));
}

bool holds_numbers(DType t) { return is_float(t) || is_integer(t) || t == DType::Bool; }

std::vector<float> as_floats(const Tensor& tensor, const TensorView& value) {
  std::vector<float> out(static_cast<size_t>(value.count()));
  runtime::convert_output(tensor, value, DType::Float32, out.data(), ThreadPool::shared());
  return out;
}

// The float values of the reference graph, by tensor name.
class Golden {
 public:
  explicit Golden(const Graph& reference) : reference_(reference) {}

  void add(std::string_view name, const TensorView& value) {
    if (holds_numbers(value.dtype)) values_.insert_or_assign(std::string(name), convert(value, value.dtype));
  }
  const TensorData* find(const std::string& name) const {
    const auto it = values_.find(name);
    return it == values_.end() ? nullptr : &it->second;
  }
  // What tensor `t` of the built graph should hold; nullptr where the float graph has no such tensor.
  const TensorData* of(const Graph& built, TensorId t) const {
    if (const TensorData* value = find(built.tensor(t).name)) return value;
    if (const Node* maker = built.producer_node(t); maker && is_conversion(*maker)) return of(built, maker->input(0));
    for (NodeId user : built.users(t)) {  // computed in float32 and rounded after
      const Node& n = built.node(user);
      if (is_conversion(n) && n.input(0) == t)
        if (const TensorData* value = find(built.tensor(n.output()).name)) return value;
    }
    return nullptr;
  }
  std::vector<float> floats(const TensorData& value) const {
    const TensorData wide = convert(value.view(), DType::Float32);
    return {wide.values<float>().begin(), wide.values<float>().end()};
  }
  const Graph& reference() const { return reference_; }
  // The node of the float graph that makes the tensor of this name; nullptr for none.
  const Node* layer(std::string_view name) const {
    const TensorId t = reference_.find_tensor(name);
    return t ? reference_.producer_node(t) : nullptr;
  }

 private:
  const Graph& reference_;
  std::map<std::string, TensorData, std::less<>> values_;
};

LayerValues describe_values(const Tensor& tensor, std::span<const float> expected, std::span<const float> found,
                            std::span<const int64_t> dims) {
  LayerValues v;
  v.dtype = dtype_name(tensor.dtype);
  bool any = false;
  for (float x : expected) {
    if (!std::isfinite(x)) continue;
    v.low = any ? std::min<double>(v.low, x) : x;
    v.high = any ? std::max<double>(v.high, x) : x;
    any = true;
  }
  if (tensor.quant && !tensor.quant->scale.empty() && is_integer(tensor.dtype)) {
    v.scale = tensor.quant->scale[0];
    const double zero = tensor.quant->zero_point.empty() ? 0 : tensor.quant->zero_point[0];
    v.bits = static_cast<int>(dtype_bytes(tensor.dtype)) * 8;
    const double first = is_signed_int(tensor.dtype) ? -std::exp2(v.bits - 1) : 0;
    v.represented_low = (first - zero) * v.scale;
    v.represented_high = (first + std::exp2(v.bits) - 1 - zero) * v.scale;
    const auto outside = std::count_if(expected.begin(), expected.end(), [&](float x) {
      return x < v.represented_low - v.scale || x > v.represented_high + v.scale;
    });
    v.clipped = expected.empty() ? 0 : static_cast<double>(outside) / static_cast<double>(expected.size());
  }
  v.expected_bins.assign(LayerValues::kBins, 0);
  v.found_bins.assign(LayerValues::kBins, 0);
  const double width = (v.high - v.low) / static_cast<double>(LayerValues::kBins);
  const auto count = [&](std::span<const float> from, std::vector<int64_t>& bins) {
    for (float x : from)
      if (std::isfinite(x))
        ++bins[width > 0 ? static_cast<size_t>(std::clamp((x - v.low) / width, 0.0, static_cast<double>(LayerValues::kBins - 1)))
                         : 0];
  };
  count(expected, v.expected_bins);
  count(found, v.found_bins);
  std::vector<int64_t> sorted = v.expected_bins;
  std::sort(sorted.rbegin(), sorted.rend());
  int64_t seen = 0;
  size_t used = 0;
  while (used < sorted.size() && static_cast<double>(seen) < 0.999 * static_cast<double>(expected.size())) seen += sorted[used++];
  v.bulk = static_cast<double>(used) / static_cast<double>(LayerValues::kBins);

  if (dims.size() < 2 || expected.size() != found.size() || expected.empty()) return v;
  const size_t axis = tensor.layout == Layout::NHWC || dims.size() == 2 ? dims.size() - 1 : 1;
  v.channels = dims[axis];
  int64_t inner = 1;
  for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  if (v.channels < 2) return v;
  struct Sums {
    double low = 0, high = 0, values = 0, error = 0;
  };
  std::vector<Sums> sums(static_cast<size_t>(v.channels));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double x = expected[i], d = found[i] - x;
    if (!std::isfinite(x) || !std::isfinite(d)) continue;
    Sums& s = sums[(i / static_cast<size_t>(inner)) % sums.size()];
    s.low = std::min(s.low, x);
    s.high = std::max(s.high, x);
    s.values += x * x;
    s.error += d * d;
  }
  // Channels that hardly contribute to the result are left out.
  double loudest = 0;
  for (const Sums& s : sums) loudest = std::max(loudest, s.values);
  for (size_t c = 0; c < sums.size(); ++c)
    if (sums[c].values > 1e-4 * loudest)
      v.worst_channels.push_back({static_cast<int64_t>(c), sums[c].low, sums[c].high, std::sqrt(sums[c].error / sums[c].values)});
  constexpr size_t kShown = 5;
  const auto middle = v.worst_channels.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, v.worst_channels.size()));
  std::partial_sort(v.worst_channels.begin(), middle, v.worst_channels.end(),
                    [](const auto& a, const auto& b) { return a.relative_error > b.relative_error; });
  v.worst_channels.erase(middle, v.worst_channels.end());
  return v;
}

// How many times the weights of the output channel with the largest exceed those of the one with the smallest; 1 for a layer
// without constant weights. Channels whose weights are all 0 do not count.
double spread_of_weights(const Graph& graph, const Node& n) {
  const TensorData* weights = ops::facts_of(n).weights != Weights::None ? graph.constant(n.input(1)) : nullptr;
  if (!weights || weights->dims().size() < 2) return 1;
  const std::vector<double> values = to_doubles(weights->view());
  std::vector<double> largest;  // of each output channel
  const auto see = [&](int64_t at, int64_t output, int64_t) {
    const auto o = static_cast<size_t>(output);
    if (o >= largest.size()) largest.resize(o + 1, 0);
    largest[o] = std::max(largest[o], std::abs(values[static_cast<size_t>(at)]));
  };
  if (n.op == "MatMul")
    for (int64_t at = 0; at < weights->count(); ++at) see(at, at % weights->dims().back(), 0);
  else
    quantize::visit_weights(n, weights->dims(), see);
  std::erase(largest, 0.0);
  if (largest.empty()) return 1;
  const auto [least, most] = std::minmax_element(largest.begin(), largest.end());
  return *most / *least;
}

// Names of tensors as file names: unique, and usable on any file system.
class FileNames {
 public:
  std::string of(const std::string& tensor) {
    if (const auto it = names_.find(tensor); it != names_.end()) return it->second;
    const std::string name = file_name_for(tensor);
    std::string unique = name;
    for (int i = 1; !used_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
    return names_[tensor] = unique;
  }

 private:
  std::map<std::string, std::string> names_;
  std::set<std::string> used_;
};

class Analysis {
 public:
  Analysis(const BuildOptions& building, const Imported& imported, const Built& built, const AccuracyOptions& options)
      : building_(building), source_(imported.network.graph), built_(built), options_(options), golden_(built.reference) {}

  Result<AccuracyReport> run() {
    const compile::CompileOptions compiling = compile_options(building_, built_.normalization);
    const bool listed = options_.inputs.empty() && !options_.dataset.empty();
    const SampleRules rules{building_.config.quant_img_RGB2BGR, {.toolkit1 = building_.is_toolkit1()}};
    if (building_.config.rknn_batch_size > 1)
      return unsupported("accuracy_analysis compares one sample")
          .found("a model of rknn_batch_size " + std::to_string(building_.config.rknn_batch_size))
          .hint("build without rknn_batch_size first");
    if (std::ranges::any_of(building_.config.inputs_yuv_fmt, [](const std::string& f) { return !f.empty(); }))
      return unsupported("accuracy_analysis compares a network on RGB pictures")
          .found("a model that takes YUV pictures")
          .hint("build without inputs_yuv_fmt first");
    ORKNN_TRY_ASSIGN(const Samples sample, listed ? Samples::open(options_.dataset, built_.reference, rules, compiling)
                                                  : Samples::of_files(options_.inputs, built_.reference, rules, compiling));
    for (const char* role : {"golden", "simulator", "runtime", "single"}) ORKNN_TRY(make_folder_of(role));
    const int64_t steps = options_.target.empty() ? 3 : 5;
    building_.report("AccuracyAnalysing", 0, steps);
    ORKNN_TRY(sample.run(built_.reference, 1,
                         [&](size_t, std::string_view name, const TensorView& value) { golden_.add(name, value); }));
    building_.report("AccuracyAnalysing", 1, steps);

    ORKNN_TRY_ASSIGN(const std::unique_ptr<runtime::Session> simulator,
                     runtime::Session::open(built_.model, nullptr, ops::shared_op_set(built_.custom_ops)));
    report_.model = built_.model->name;
    report_.platform = built_.model->target_platform;
    // A device computes operators of the user's own by its plug-ins; the C library of this process has none of them.
    report_.has_device = !options_.target.empty() && (!built_.custom_ops || !options_.device.empty());
    if (!options_.target.empty() && !report_.has_device)
      log(LogLevel::Warn, "accuracy_analysis", "Operators written in Python do not run through the C library: it is left out!");
    name_source_layers();
    list_rows(simulator->program());
    ORKNN_TRY(sample.run(*simulator, 1,
                         entire_hooks(
                             *simulator, "simulator", [](LayerAccuracy& l, Distance d) { l.entire = std::move(d); }, true)));
    building_.report("AccuracyAnalysing", 2, steps);
    ORKNN_TRY(sample.run(*simulator, 1, single_hooks(*simulator, false)));
    building_.report("AccuracyAnalysing", 3, steps);
    if (report_.has_device) {
      ORKNN_TRY_ASSIGN(CLibraryRun device, open_as_device());
      ORKNN_TRY_ASSIGN(const std::vector<TensorData> values, sample.values(0));
      ORKNN_TRY(device.run(
          values, entire_hooks(
                      device.session(), "runtime", [](LayerAccuracy& l, Distance d) { l.device_entire = std::move(d); }, false)));
      building_.report("AccuracyAnalysing", 4, steps);
      ORKNN_TRY(device.run(values, single_hooks(device.session(), true)));
      building_.report("AccuracyAnalysing", 5, steps);
    }
    ORKNN_TRY(problems_);
    suggest();
    warn_of_raw_pixels(sample);
    for (const LayerAccuracy& l : report_.layers)
      if (!l.fused) report_.files.emplace_back(l.name, file_names_.of(l.name));
    return std::move(report_);
  }

 private:
  // As a board gets it: through the file and the C library.
  Result<CLibraryRun> open_as_device() const {
    const std::filesystem::path file =
        std::filesystem::temp_directory_path() /
        fmt::format("openrknn_{}_{}.rknn", static_cast<const void*>(this), static_cast<long>(getpid()));
    Status written = format::write_rknn(*built_.model, file.string());
    auto device = written ? CLibraryRun::open(file.string()) : Result<CLibraryRun>(written);
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
    if (device && !options_.device.empty()) ORKNN_TRY(device->use_device(options_.device));
    return device;
  }

  std::filesystem::path folder(std::string_view role) const {
    static const std::map<std::string_view, std::string_view> old{
        {"golden", "fp32"}, {"simulator", "entire_qnt"}, {"single", "individual_qnt"}, {"runtime", "entire_device"}};
    return std::filesystem::path(options_.output_dir) / (building_.is_toolkit1() ? old.at(role) : role);
  }
  bool wants(std::string_view role) const {
    if (options_.output_dir.empty()) return false;
    if (role == "runtime") return !options_.target.empty();
    return role != "single" || building_.is_toolkit1();
  }
  Status make_folder_of(std::string_view role) const { return wants(role) ? make_folder(folder(role).string()) : Status(); }

  void write(std::string_view role, const LayerAccuracy& row, std::span<const int64_t> dims, std::span<const float> values) {
    if (!wants(role) || !problems_) return;
    std::string name = file_names_.of(row.name);
    if (building_.is_toolkit1()) {
      name += fmt::format("_{}_out0_{}", &row - report_.layers.data(), dims.size() == 4 ? "nchw" : "nd");
      for (int64_t d : dims) name += fmt::format("_{}", d);
    }
    const std::string path = (folder(role) / name).string();
    if (options_.as_npy) {
      problems_.also(data::write_npy(path + ".npy", TensorData::from<float>(Dims(dims.begin(), dims.end()), values)));
      return;
    }
    problems_.also(write_file_atomically(path + (building_.is_toolkit1() ? ".tensor" : ".txt"), [&](FileWriter& out) -> Status {
      constexpr size_t kPiece = 1 << 16;
      fmt::memory_buffer text;
      for (float v : values) {
        fmt::format_to(std::back_inserter(text), "{}\n", v);
        if (text.size() < kPiece) continue;
        ORKNN_TRY(out.write(std::string_view(text.data(), text.size())));
        text.clear();
      }
      return out.write(std::string_view(text.data(), text.size()));
    }));
  }

  void name_source_layers() {
    for (NodeId id : source_.order()) source_nodes_[source_.node(id).name].push_back(&source_.node(id));
  }

  // The output of the layer of the source model with operator `op` among `origin`; each is given once.
  std::string source_tensor(const std::vector<std::string>& origin, const std::string& op, std::set<std::string>& used) const {
    for (const std::string& name : origin) {
      const auto it = source_nodes_.find(name);
      if (it == source_nodes_.end()) continue;
      for (const Node* n : it->second) {
        const std::string tensor = n->op == op && n->output() ? source_.tensor(n->output()).name : "";
        if (!tensor.empty() && used.insert(tensor).second) return tensor;
      }
    }
    return {};
  }

  void list_rows(const format::Program& program) {
    const Graph& built = program.graph;
    for (const format::Port& port : program.inputs) {
      const Tensor& t = built.tensor(port.tensor);
      report_.layers.push_back({.type = "Input", .name = t.name});
      const TensorData* golden = golden_.of(built, port.tensor);
      if (golden && golden->dtype() == DType::Float32 && is_integer(t.dtype)) {
        report_.layers.push_back({.type = "exDataConvert", .name = t.name + "_" + std::string(dtype_name(t.dtype))});
        report_.integer = true;
      }
      rows_[t.name] = report_.layers.size() - 1;
    }
    for (const format::Task& task : program.tasks) {
      const Node& n = built.node(task.node);
      for (TensorId t : n.outputs) {
        if (!t) continue;
        const std::string& name = built.tensor(t).name;
        const Node* layer = golden_.layer(name);
        std::string type = is_conversion(n) && !layer ? "exDataConvert" : std::string(custom_type(layer ? layer->op : n.op));
        if (layer && !layer->tail.empty() && t == n.output()) {
          std::set<std::string> used{name};
          for (size_t i = 0; i < layer->tail.size(); ++i) {
            const std::string& op = i == 0 ? layer->op : layer->tail[i - 1].op;
            if (std::string inside = source_tensor(layer->origin, op, used); !inside.empty())
              report_.layers.push_back({.type = op, .name = std::move(inside), .fused = true});
          }
          type = layer->tail.back().op;
        }
        if (is_integer(built.tensor(t).dtype) && built.tensor(t).quant) report_.integer = true;
        rows_[name] = report_.layers.size();
        report_.layers.push_back({.type = std::move(type), .name = name});
      }
    }
    for (const format::Port& port : program.outputs)
      if (const auto row = rows_.find(built.tensor(port.tensor).name); row != rows_.end())
        report_.layers[row->second].is_output = true;
  }

  using Store = std::function<void(LayerAccuracy&, Distance)>;
  sim::RunHooks entire_hooks(const runtime::Session& session, const char* role, Store store, bool is_simulator) {
    sim::RunHooks hooks;
    hooks.observe = [this, &session, role, store = std::move(store), is_simulator](TensorId t, const TensorView& value) {
      const Graph& built = session.program().graph;
      const Tensor& tensor = built.tensor(t);
      const auto row = rows_.find(tensor.name);
      const TensorData* golden = golden_.of(built, t);
      if (row == rows_.end() || !golden || !holds_numbers(value.dtype) || golden->count() != value.count()) return;
      LayerAccuracy& layer = report_.layers[row->second];
      const std::vector<float> expected = golden_.floats(*golden), found = as_floats(tensor, value);
      store(layer, distance(expected, found));
      if (is_simulator) {
        layer.values = describe_values(tensor, expected, found, value.dims);
        write("golden", layer, value.dims, expected);
      }
      write(role, layer, value.dims, found);
      if (layer.type == "exDataConvert" && built.is_input(t)) {  // the input as it was before it was rounded
        LayerAccuracy& input = report_.layers[row->second - 1];
        store(input, {});
        if (is_simulator) {
          input.values = describe_values({.name = tensor.name, .dtype = DType::Float32, .layout = tensor.layout}, expected,
                                         expected, value.dims);
          write("golden", input, value.dims, expected);
        }
        write(role, input, value.dims, expected);
      }
    };
    return hooks;
  }

  // Every layer gets golden values: what it made is compared and then replaced by what it should have made.
  sim::RunHooks single_hooks(const runtime::Session& session, bool is_device) {
    sim::RunHooks hooks;
    hooks.observe = [this, &session, is_device](TensorId t, const TensorView& value) {
      const Graph& built = session.program().graph;
      const auto row = rows_.find(built.tensor(t).name);
      const TensorData* golden = golden_.of(built, t);
      if (row == rows_.end() || !golden || !holds_numbers(value.dtype) || golden->count() != value.count()) return;
      LayerAccuracy& layer = report_.layers[row->second];
      std::vector<float> found = as_floats(built.tensor(t), value);
      const bool is_converted_input = layer.type == "exDataConvert" && built.is_input(t);
      if (is_device) {
        if (is_converted_input) report_.layers[row->second - 1].device_single = Distance{};
        if (const auto simulated = single_values_.find(layer.name); simulated != single_values_.end())
          layer.device_single = distance(simulated->second, found);
        return;
      }
      if (is_converted_input) report_.layers[row->second - 1].single = Distance{};
      layer.single = distance(golden_.floats(*golden), found);
      write("single", layer, value.dims, found);
      if (report_.has_device) single_values_[layer.name] = std::move(found);
    };
    hooks.amend = [this, &session](TensorId t, const MutableTensorView& value) {
      const Graph& built = session.program().graph;
      const TensorData* golden = golden_.of(built, t);
      if (!golden || golden->count() != value.count() || !holds_numbers(value.dtype)) return;
      runtime::InputData data;
      data.dtype = golden->dtype();
      data.data = golden->data();
      data.bytes = golden->bytes();
      data.dims = value.dims;
      data.pass_through = !built.tensor(t).quant;
      format::Port port;
      port.dtype = golden->dtype();
      port.layout = built.tensor(t).layout;
      data.layout = port.layout;
      const auto converted = runtime::convert_input(port, built.tensor(t), data, ThreadPool::shared());
      if (!converted)
        problems_.also(converted.status());
      else
        std::memcpy(value.data, converted->data(), std::min(converted->bytes(), value.bytes()));
    };
    return hooks;
  }

  // --- words
  void suggest() {
    const LayerAccuracy* first_bad = nullptr;
    std::vector<const LayerAccuracy*> before;
    for (LayerAccuracy& l : report_.layers) {
      if (!l.entire || !l.single) continue;
      const bool restores = l.type == "exDataConvert" && l.values.scale == 0;  // as floats what was rounded before
      const bool alone = !l.single->word.empty() || (l.single->cosine < kSuspiciousCosine && !restores);
      const bool together = !l.entire->word.empty() || l.entire->cosine < kSuspiciousCosine;
      if (alone)
        l.suggestion = suggestion(l);
      else if (together)
        l.suggestion = first_bad
                           ? fmt::format("The layer itself is exact; what it is fed is not. Mend '{}' first.", first_bad->name)
                           : fmt::format(
                                 "The layer itself is exact; small errors of many layers before it add up, most of {}. "
                                 "Calibrate with more pictures, try quantized_algorithm='mmse', or build(auto_hybrid=True).",
                                 largest_losses(before));
      if (alone && !first_bad) first_bad = &l;
      before.push_back(&l);
    }
  }

  // The layers that lose most on their own, by name.
  static std::string largest_losses(std::vector<const LayerAccuracy*> layers) {
    constexpr size_t kNamed = 3;
    std::ranges::stable_sort(layers, std::less<>(), [](const LayerAccuracy* l) { return l->single->cosine; });
    layers.resize(std::min(layers.size(), kNamed));
    std::string names;
    for (const LayerAccuracy* l : layers)
      names += fmt::format("{}'{}' ({:.5f})", names.empty() ? "" : ", ", l->name, l->single->cosine);
    return names;
  }

  // Networks are rarely trained on pixels from 0 to 255; where accuracy is lost, that comes first.
  void warn_of_raw_pixels(const Samples& sample) const {
    const auto is_bad = [](const LayerAccuracy& l) { return !l.suggestion.empty(); };
    if (building_.config.mean_values || building_.config.std_values || std::ranges::none_of(report_.layers, is_bad)) return;
    for (size_t i = 0; i < source_.inputs().size(); ++i)
      if (sample.holds_pixels(i))
        log(LogLevel::Warn, "accuracy_analysis",
            fmt::format("The input '{}' is fed with pixels from 0 to 255 as they are: config states neither mean_values nor "
                        "std_values, set those the network was trained with!",
                        source_.tensor(source_.inputs()[i]).name));
  }

  // What a layer of the float graph reads beyond the range of float16; empty when everything fits.
  std::string overflowing_input(const Node& layer) const {
    for (TensorId t : layer.inputs) {
      const TensorData* value = t ? golden_.find(golden_.reference().tensor(t).name) : nullptr;
      if (!value) continue;
      double largest = 0;
      for (float x : golden_.floats(*value))
        if (std::isfinite(x)) largest = std::max<double>(largest, std::abs(x));
      if (largest > kLargestHalf)
        return fmt::format("Its input '{0}' overflows float16 (65504) with values up to {1:.4g}. Mend '{0}' first.",
                           golden_.reference().tensor(t).name, largest);
    }
    return {};
  }

  // Whether outliers were cut off the range of this tensor (step clip_outliers).
  bool has_cut_range(std::string_view tensor) const { return built_.calibration && built_.calibration->cuts.contains(tensor); }

  std::string suggestion(const LayerAccuracy& l) const {
    const LayerValues& v = l.values;
    const double largest = std::max(std::abs(v.low), std::abs(v.high));
    const Node* layer = golden_.layer(l.name);
    if (v.scale == 0) {
      if (largest > kLargestHalf)
        return fmt::format(
            "Values up to {:.4g} do not fit float16 (65504). Scale the network down before this layer, or compute it in 16-bit "
            "integers: build(do_quantization=False, dataset=..., auto_hybrid=True).",
            largest);
      if (std::string input = layer ? overflowing_input(*layer) : ""; !input.empty()) return input;
      if (!l.single->word.empty())
        return "It divides by, or takes a root or logarithm of, a number that becomes 0 in float16. Use a larger epsilon.";
      return "Float16 has too few digits here: large values cancel each other. Subtract the mean earlier or keep the sum "
             "smaller.";
    }
    if (v.clipped > 0.001 && has_cut_range(l.name))
      return fmt::format(
          "{:.1f} % of the values are outside [{:.4g}, {:.4g}] on purpose: the layers downstream hardly read them, the others "
          "gain. "
          "To keep them: disable_rules=['clip_outliers'].",
          100 * v.clipped, v.represented_low, v.represented_high);
    if (v.clipped > 0.001)
      return fmt::format(
          "{:.1f} % of the values are outside the calibrated range [{:.4g}, {:.4g}]: calibrate with more pictures like this "
          "one.",
          100 * v.clipped, v.represented_low, v.represented_high);
    const std::string& algorithm = building_.config.quantized_algorithm;
    if (l.type == "exDataConvert")
      return fmt::format(
          "The calibrated range [{:.4g}, {:.4g}] is too wide for most values: look for outliers in the calibration samples{}.",
          v.represented_low, v.represented_high, algorithm == "normal" ? ", or use quantized_algorithm='mmse'" : "");
    const std::string leave =
        fmt::format("leave it in float16 ('{}: float16' in the hybrid quantization file, or build(auto_hybrid=True))", l.name);
    if (v.bulk < 0.15)
      return fmt::format("A few large values stretch the range, 99.9 % of the values are in {:.0f} % of it: {}{}.", 100 * v.bulk,
                         algorithm == "normal" ? "use quantized_algorithm='mmse' or 'kl_divergence', or " : "", leave);
    constexpr double kUnevenWeights = 4;
    if (const double spread = layer ? spread_of_weights(golden_.reference(), *layer) : 1;
        building_.config.quantized_method == "layer" && spread >= kUnevenWeights)
      return fmt::format(
          "One scale serves the weights of all output channels, whose sizes differ by a factor of {:.0f}: use "
          "quantized_method='channel'.",
          spread);
    if (!v.worst_channels.empty()) {
      const LayerValues::Channel& c = v.worst_channels[0];
      if (c.relative_error > 0.5 && v.worst_channels.back().relative_error * 3 < c.relative_error)
        return fmt::format(
            "Channel {} is off by {:.0f} %, far more than the others: its weights magnify the rounding of what the layer reads. "
            "Leave this layer and the one before it in float16 (build(auto_hybrid=True) finds such places).",
            c.index, 100 * c.relative_error);
      if ((c.high - c.low) * 8 < v.high - v.low)
        return fmt::format("Channel {} spans {:.3g} while the layer spans {:.3g}, so it gets few of the {:.0f} steps: {}.",
                           c.index, c.high - c.low, v.high - v.low, std::exp2(v.bits), leave);
    }
    return fmt::format("{} bits are too few for this layer: {}.", v.bits, leave);
  }

  static constexpr double kLargestHalf = 65504;

  const BuildOptions& building_;
  const Graph& source_;
  const Built& built_;
  const AccuracyOptions& options_;
  Golden golden_;
  AccuracyReport report_;
  FileNames file_names_;
  Status problems_;
  std::map<std::string, size_t> rows_;  // tensor of the built graph -> row
  std::map<std::string, std::vector<const Node*>> source_nodes_;
  std::map<std::string, std::vector<float>> single_values_;
};

Status write_reports(const AccuracyReport& report, const AccuracyOptions& options, bool toolkit1) {
  const auto save = [&](const char* name, const std::string& text) {
    return write_file_atomically((std::filesystem::path(options.output_dir) / name).string(),
                                 [&](FileWriter& out) { return out.write(text); });
  };
  if (toolkit1) {
    if (!options.write_errors) return {};
    ORKNN_TRY(save("entire_qnt_error_analysis.txt", accuracy_text_toolkit1(report, false)));
    ORKNN_TRY(save("individual_qnt_error_analysis.txt", accuracy_text_toolkit1(report, true)));
  } else {
    ORKNN_TRY(save("error_analysis.txt", accuracy_text(report, false)));
    std::string map;
    size_t width = 0;
    for (const auto& [name, file] : report.files) width = std::max(width, name.size());
    for (const auto& [name, file] : report.files) map += fmt::format("{:<{}}  {}.txt\n", name, width, file);
    ORKNN_TRY(save("map_name_to_file.txt", map));
  }
  return save("error_analysis.html", accuracy_html(report));
}
}  // namespace

Distance distance(std::span<const float> expected, std::span<const float> found) {
  Distance d;
  double dot = 0, a2 = 0, b2 = 0, e2 = 0;
  bool nan = false, inf = false;
  for (size_t i = 0; i < std::min(expected.size(), found.size()); ++i) {
    const double a = expected[i], b = found[i];
    if (a == b && !std::isfinite(a)) continue;
    if (std::isnan(a) && std::isnan(b)) continue;
    if (!std::isfinite(a) || !std::isfinite(b)) {
      nan |= std::isnan(a) || std::isnan(b);
      inf |= std::isinf(a) || std::isinf(b);
      continue;
    }
    dot += a * b;
    a2 += a * a;
    b2 += b * b;
    e2 += (a - b) * (a - b);
  }
  d.word = nan ? "nan" : inf ? "inf" : "";
  d.euclid = std::sqrt(e2);
  d.cosine = a2 == 0 && b2 == 0 ? 1 : a2 == 0 || b2 == 0 ? 0 : std::clamp(dot / std::sqrt(a2) / std::sqrt(b2), -1.0, 1.0);
  return d;
}

const LayerAccuracy* AccuracyReport::worst_output() const {
  const auto loss = [](const LayerAccuracy& l) { return l.entire->word.empty() ? 1 - l.entire->cosine : 2; };
  const LayerAccuracy* worst = nullptr;
  for (const LayerAccuracy& l : layers)
    if (l.is_output && l.entire && (!worst || loss(l) > loss(*worst))) worst = &l;
  return worst;
}

Result<AccuracyReport> analyse_accuracy(const BuildOptions& building, const Imported& imported, const Built& built,
                                        const AccuracyOptions& options) {
  const auto problem = [&](Status s) { return s.model(built.model->name).stage("accuracy_analysis"); };
  if (options.target.empty() && quantize::states_quantization(imported.network.graph))
    return problem(
        unsupported("the source model is already quantized, so there are no float values to compare the simulator with")
            .hint("give accuracy_analysis a target, or load the float model"));
  if (!options.target.empty()) {
    ORKNN_TRY_ASSIGN(const platform::Platform* chip, platform::get(options.target));
    if (chip->compatibility != building.chip->compatibility)
      return problem(invalid_argument(fmt::format("a model built for {} does not run on {}", building.chip->name, chip->name))
                         .hint("build with that target_platform"));
  }
  auto report = Analysis(building, imported, built, options).run();
  if (!report) return problem(report.status());
  report->number_format = report->integer ? building.config.quantized_dtype : building.config.float_dtype;
  if (!options.output_dir.empty())
    if (Status s = write_reports(*report, options, building.is_toolkit1()); !s) return problem(s);
  return report;
}

}  // namespace orknn::toolkit
