// rknn._openrknn: the toolkit's builder and the runtime's session for Python. Arrays are read in place and results are
// handed over without a copy; errors become ValueError with the whole message.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "base/files.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/version.h"
#include "devices.h"
#include "errors.h"
#include "format/model_facts.h"
#include "format/rknn_file.h"
#include "import/importer.h"
#include "interpreter_end.h"
#include "ir/custom_op.h"
#include "model_tools.h"
#include "platform/platforms.h"
#include "runtime/custom_op_plugins.h"
#include "runtime/error_codes.h"
#include "runtime/library_identity.h"
#include "runtime/perf_report.h"
#include "runtime/run_report.h"
#include "runtime/session.h"
#include "toolkit/builder.h"
#include "toolkit/codegen.h"
#include "toolkit/config_keys.h"

namespace nb = nanobind;
using namespace orknn;
using python::begin_interpreter_end;
using python::callback;
using python::Inside;
using python::Unlocked;

namespace {

using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// File names may be any bytes, as everywhere in Python: they come as str (with its escapes), bytes or os.PathLike.
using Path = std::filesystem::path;

// Names of layers may be any bytes, Python's texts may not.
std::vector<std::string> printable_lines(std::vector<std::string> lines) {
  for (std::string& line : lines) line = printable(line);
  return lines;
}

DType dtype_of_array(const Array& array) {
  const nb::dlpack::dtype t = array.dtype();
  const auto code = static_cast<nb::dlpack::dtype_code>(t.code);
  if (code == nb::dlpack::dtype_code::Bool) return DType::Bool;
  if (code == nb::dlpack::dtype_code::Float)
    return t.bits == 16 ? DType::Float16 : t.bits == 64 ? DType::Float64 : DType::Float32;
  const bool is_signed = code == nb::dlpack::dtype_code::Int;
  if (!is_signed && code != nb::dlpack::dtype_code::UInt) throw nb::value_error("the array holds no plain numbers");
  switch (t.bits) {
    case 8: return is_signed ? DType::Int8 : DType::UInt8;
    case 16: return is_signed ? DType::Int16 : DType::UInt16;
    case 32: return is_signed ? DType::Int32 : DType::UInt32;
    default: return is_signed ? DType::Int64 : DType::UInt64;
  }
}

ir::Dims dims_of(const Array& array) {
  ir::Dims dims;
  for (size_t i = 0; i < array.ndim(); ++i) dims.push_back(static_cast<int64_t>(array.shape(i)));
  return dims;
}

// NumPy array that owns `value`.
nb::object to_array(const ir::TensorData& value) {
  auto* owner = new ir::TensorData(value);
  const nb::capsule capsule(owner, [](void* p) noexcept { delete static_cast<ir::TensorData*>(p); });
  nb::dlpack::dtype t{};
  t.lanes = 1;
  t.bits = static_cast<uint8_t>(8 * dtype_bytes(value.dtype()));
  const auto code = value.dtype() == DType::Bool   ? nb::dlpack::dtype_code::Bool
                    : is_float(value.dtype())      ? nb::dlpack::dtype_code::Float
                    : is_signed_int(value.dtype()) ? nb::dlpack::dtype_code::Int
                                                   : nb::dlpack::dtype_code::UInt;
  t.code = static_cast<uint8_t>(code);
  const std::vector<size_t> shape(value.dims().begin(), value.dims().end());
  return nb::cast(nb::ndarray<nb::numpy>(const_cast<void*>(value.data()), shape.size(), shape.data(), capsule, nullptr, t),
                  nb::rv_policy::reference);
}

nb::list describe(const std::vector<runtime::PortInfo>& ports) {
  nb::list out;
  for (const runtime::PortInfo& p : ports) {
    nb::dict d;
    d["name"] = to_utf8(p.name);
    d["shape"] = p.dims;
    d["layout"] = p.layout == ir::Layout::NHWC ? "nhwc" : p.layout == ir::Layout::NCHW ? "nchw" : "";
    d["dtype"] = std::string(dtype_name(p.source_dtype));
    out.append(std::move(d));
  }
  return out;
}

// Sets inputs of (array, layout, pass_through) triples, runs without holding the interpreter lock, returns the results. `level`
// counts as RKNN_LOG_LEVEL, `cores` are those of the layer table.
nb::list run_session(runtime::Session& session, nb::list inputs, int level, int cores) {
  if (nb::len(inputs) != session.inputs().size()) throw nb::value_error("wrong number of inputs");
  for (size_t i = 0; i < nb::len(inputs); ++i) {
    const auto item = nb::cast<nb::tuple>(inputs[i]);
    const auto array = nb::cast<Array>(item[0]);
    const auto layout = nb::cast<std::string>(item[1]);
    const ir::Dims dims = dims_of(array);
    runtime::InputData data;
    data.dtype = dtype_of_array(array);
    data.data = array.data();
    data.bytes = array.nbytes();
    data.layout = dims.size() != 4 ? ir::Layout::Undefined : layout == "nhwc" ? ir::Layout::NHWC : ir::Layout::NCHW;
    data.pass_through = nb::cast<bool>(item[2]);
    data.dims = dims;
    check(session.set_input(i, data));
  }
  Status status;
  {
    const Unlocked unlocked;
    status = runtime::run_with_report(session, {.level = level, .cores = cores});
  }
  check(status);
  nb::list out;
  for (size_t i = 0; i < session.outputs().size(); ++i) out.append(to_array(session.output(i)));
  return out;
}

struct ModelFile {
  std::shared_ptr<const MappedFile> file;
};

// A finished .rknn with its bytes: what happens to the file afterwards has no effect on it.
struct LoadedModel {
  std::shared_ptr<const MappedFile> file;
  std::shared_ptr<const format::Model> model;
};

// Says which function loads a file that is no .rknn but a source model.
void name_source_model(Status& problem, std::string_view path, std::span<const std::byte> bytes) {
  if (const auto source = importer::sniff(path, bytes))
    problem.hint("it is a model of " + std::string((*source)->name) + ": load it with load_" + std::string((*source)->name));
}

// The session of a board's runtime: RKNNLite reports failures by the names of the C API's codes.
std::unique_ptr<runtime::Session> init_session(const MappedFile& file, std::shared_ptr<const MappedFile> keeper) {
  auto session = [&] {
    const Unlocked unlocked;
    return runtime::Session::open(file.bytes(), std::move(keeper));
  }();
  if (session) return std::move(*session);
  Status problem = session.status();
  if (problem.code() == Code::InvalidModel) name_source_model(problem, {}, file.bytes());
  const std::string code = runtime::rknn_code_name(runtime::rknn_code(problem.code()));
  throw nb::value_error(("RKNN init failed. error code: " + code + "\n" + to_utf8(problem.to_string())).c_str());
}

Result<LoadedModel> load_rknn(const Path& path) {
  auto file = MappedFile::open(path.string());
  if (!file) return Status(file.status()).stage("load_rknn");
  auto model = format::read_rknn((*file)->bytes(), *file);
  if (!model) {
    Status problem = model.status();
    name_source_model(problem, path.string(), (*file)->bytes());
    return problem.model(path.string()).stage("load_rknn");
  }
  return LoadedModel{std::move(*file), std::make_shared<const format::Model>(std::move(*model))};
}

// A model that lies on a device.
LoadedModel load_from_device(const nb::bytes& contents) {
  const auto bytes = std::as_bytes(std::span(contents.c_str(), contents.size()));
  return {nullptr, std::make_shared<const format::Model>(take(format::read_rknn(bytes, nullptr)))};
}

// A value of config() as a yml file would state it.
data::YamlValue to_yaml(nb::handle value) {
  data::YamlValue result;
  if (value.is_none()) return result;
  if (nb::isinstance<nb::dict>(value)) {
    result.kind = data::YamlValue::Kind::Map;
    for (const auto& [key, item] : nb::borrow<nb::dict>(value))
      result.entries.emplace_back(nb::cast<std::string>(key), to_yaml(item));
  } else if (nb::isinstance<nb::list>(value)) {
    result.kind = data::YamlValue::Kind::List;
    for (const nb::handle item : nb::borrow<nb::list>(value)) result.items.push_back(to_yaml(item));
  } else {
    result.kind = data::YamlValue::Kind::Scalar;
    result.text = nb::str(value).c_str();
  }
  return result;
}

// `options` as options.py makes them, in its order; the others keep their default values.
toolkit::BuildConfig to_config(const nb::dict& options) {
  toolkit::BuildConfig c;
  Status problems;
  for (const auto& [name, value] : options) {
    const auto key = nb::cast<std::string>(name);
    if (key == "one_value_for_all_channels")
      c.one_value_for_all_channels = nb::cast<bool>(value);
    else
      problems.also(toolkit::set_option(c, key, to_yaml(value)));
  }
  check(std::move(problems));
  return c;
}

// A copy: the caller may change the array afterwards.
ir::TensorData to_tensor(nb::handle value) {
  if (value.is_none()) return {};
  const auto array = nb::cast<Array>(value);
  const DType dtype = dtype_of_array(array);
  ir::TensorData t = ir::TensorData::allocate(dtype, dims_of(array));
  std::memcpy(t.mutable_data(), array.data(), t.bytes());
  return t;
}

// --- custom operators: Python functions that the native side calls, from whatever thread

// A Python object that threads without the interpreter's lock may copy and let go.
std::shared_ptr<const nb::object> kept(nb::object object) {
  return {new nb::object(std::move(object)), [](const nb::object* o) {
            const Inside inside;
            const nb::gil_scoped_acquire lock;
            delete o;
          }};
}

nb::object to_python(const ir::Attribute& value) {
  switch (ir::kind_of(value)) {
    case ir::AttributeKind::Int: return nb::cast(std::get<int64_t>(value));
    case ir::AttributeKind::Float: return nb::cast(std::get<double>(value));
    case ir::AttributeKind::String: return nb::cast(to_utf8(std::get<std::string>(value)));
    case ir::AttributeKind::Ints: return nb::cast(std::get<std::vector<int64_t>>(value));
    case ir::AttributeKind::Floats: return nb::cast(std::get<std::vector<double>>(value));
    case ir::AttributeKind::Strings: return nb::cast(printable_lines(std::get<std::vector<std::string>>(value)));
    case ir::AttributeKind::Tensor:
      return to_array(ir::convert(std::get<ir::TensorData>(value).view(), std::get<ir::TensorData>(value).dtype()));
    case ir::AttributeKind::Graph: break;
  }
  return nb::none();
}

// What custom_op.py makes a node of: op_type, name, domain, names of inputs and outputs, attributes.
nb::tuple describe_node(const ir::Node& node) {
  const auto names = [&](std::string_view key) {
    const auto* list = node.attributes.get<std::vector<std::string>>(key);
    return printable_lines(list ? *list : std::vector<std::string>{});
  };
  nb::dict attributes;
  for (const auto& [name, value] : node.attributes)
    if (!name.starts_with(ir::kSourceMark)) attributes[to_utf8(name).c_str()] = to_python(value);
  return nb::make_tuple(to_utf8(std::string(ir::custom_type(node.op))), to_utf8(node.name),
                        to_utf8(node.attributes.string_or(ir::kSourceDomain, "")), names(ir::kSourceInputs),
                        names(ir::kSourceOutputs), attributes);
}

// Calls `body` with the interpreter's lock; what Python raises becomes an error.
template <class T, class Body>
Result<T> in_python(const std::string& what, Body body) {
  const Inside inside;
  const nb::gil_scoped_acquire lock;
  try {
    return body();
  } catch (const std::exception& e) {
    return invalid_argument(what + " failed: " + e.what());
  }
}

// `infer(node, shapes, dtypes)` returns (shapes, dtypes), `compute(node, arrays)` arrays; None where the class has no such
// method.
ops::CustomOp to_custom_op(const std::string& type, nb::object infer, nb::object compute) {
  ops::CustomOp op{type};
  if (!infer.is_none())
    op.infer = [type, call = kept(infer)](const ir::Node& node, std::span<const ops::CustomTensor> inputs) {
      return in_python<std::vector<ops::CustomTensor>>("shape_infer of '" + type + "'", [&] {
        nb::list shapes, dtypes;
        for (const ops::CustomTensor& t : inputs) {
          const bool exists = t.dtype != DType::Undefined;
          shapes.append(t.dims);
          dtypes.append(exists ? nb::cast(std::string(dtype_name(t.dtype))) : nb::none());
        }
        const auto [out_shapes, out_dtypes] =
            nb::cast<std::pair<std::vector<ir::Dims>, std::vector<std::string>>>((*call)(describe_node(node), shapes, dtypes));
        std::vector<ops::CustomTensor> outputs;
        for (size_t i = 0; i < std::min(out_shapes.size(), out_dtypes.size()); ++i)
          outputs.push_back({dtype_from_name(out_dtypes[i]), out_shapes[i]});
        return outputs;
      });
    };
  if (!compute.is_none())
    op.compute = [type, call = kept(compute)](const ir::Node& node, std::span<const ir::TensorData> inputs) {
      return in_python<std::vector<ir::TensorData>>("compute of '" + type + "'", [&] {
        nb::list arrays;  // copies: the user may keep them
        for (const ir::TensorData& t : inputs)
          arrays.append(t.has_value() ? to_array(ir::convert(t.view(), t.dtype())) : nb::none());
        std::vector<ir::TensorData> outputs;
        for (nb::handle array : (*call)(describe_node(node), arrays)) outputs.push_back(to_tensor(array));
        return outputs;
      });
    };
  return op;
}

// A session that also asks plug-ins for operators that Python does not compute.
std::unique_ptr<runtime::Session> open_session(std::shared_ptr<const format::Model> model,
                                               const std::shared_ptr<const ops::CustomOps>& custom) {
  auto session = take(runtime::Session::open(std::move(model), nullptr, ops::shared_op_set(custom)));
  runtime::load_plugins(*session);
  return session;
}

// What reg_custom_op has collected.
struct CustomOpList {
  std::shared_ptr<const ops::CustomOps> ops;  // nullptr = none
};

void load(toolkit::Builder& builder, const std::string& framework, const Path& path,
          std::optional<std::vector<std::string>> inputs, std::optional<std::vector<ir::Dims>> sizes, nb::object initial,
          std::optional<std::vector<std::string>> outputs, const std::vector<Path>& other_files, bool input_is_nchw,
          const nb::dict& feeds) {
  toolkit::SourceModel source{path.string(), framework};
  source.other_files.assign(other_files.begin(), other_files.end());
  importer::ImportOptions& options = source.options;
  options.inputs = inputs.value_or(std::vector<std::string>{});
  options.input_size_list = sizes.value_or(std::vector<ir::Dims>{});
  options.outputs = outputs.value_or(std::vector<std::string>{});
  if (!initial.is_none())
    for (nb::handle value : initial) options.input_initial_val.push_back(to_tensor(value));
  options.input_is_nchw = input_is_nchw;
  for (const auto& [name, value] : feeds) options.feeds.emplace(nb::cast<std::string>(name), to_tensor(value));
  Status status;
  {
    const Unlocked unlocked;
    status = builder.load_model(source);
  }
  check(status);
}

// Whether a project was written: an existing folder is left alone unless `overwrite`.
bool codegen(const std::shared_ptr<const format::Model>& model, const Path& output_path, const std::vector<Path>& inputs,
             bool overwrite, std::vector<bool> swap_red_blue) {
  const toolkit::CodegenRequest request{
      output_path.string(), {inputs.begin(), inputs.end()}, overwrite, std::move(swap_red_blue)};
  auto written = [&] {
    const Unlocked unlocked;
    return toolkit::generate_project(model, request);
  }();
  return take(std::move(written));
}

// What the model costs on the chip it was made for; nothing runs.
nb::dict measure(const runtime::Session& session, int cores) {
  const format::Model& model = session.model();
  const platform::Platform* chip = platform::find(model.target_platform);
  const runtime::MemorySizes sizes = session.memory();
  nb::list layers;
  for (const runtime::LayerRow& row : runtime::layer_rows(model, false, cores))
    layers.append(nb::make_tuple(to_utf8(row.name), row.uid, row.microseconds));
  nb::dict facts;
  facts["platform"] = model.target_platform;
  facts["generation"] = chip ? chip->generation : 2;
  facts["npu_mhz"] = chip ? chip->report_hz() / 1'000'000 : 0;
  facts["clocks"] = runtime::clocks_text(chip);
  facts["table"] = printable(runtime::perf_table(model, cores));
  facts["total_us"] = runtime::predicted_microseconds(model, cores);
  facts["why_no_time"] = runtime::why_no_time(model);
  facts["layers"] = layers;
  facts["weight"] = sizes.weight_bytes;
  facts["internal"] = sizes.internal_bytes;
  facts["other"] = sizes.other_bytes();
  measure_on_device(session, cores, facts);
  return facts;
}

int cores_of_mask(const runtime::Session& session, int64_t mask) {
  const platform::Platform* chip = platform::find(session.model().target_platform);
  return chip ? take(platform::cores_of_mask(*chip, mask)) : 1;
}

void set_log(std::optional<std::function<void(int, std::string, std::string)>> sink, int level) {
  set_log_level(static_cast<LogLevel>(std::min(level, static_cast<int>(LogLevel::Trace))));
  if (!sink) return set_log_sink({});
  set_log_sink([f = callback(std::move(*sink))](LogLevel l, std::string_view tag, std::string_view line) {
    f(static_cast<int>(l), std::string(tag), std::string(line));
  });
}
}  // namespace

NB_MODULE(_openrknn, m) {
  nb::set_leak_warnings(false);  // objects that live until the process ends are no leak
  bind_model_tools(m);
  bind_devices(m);
  m.def("version", [] { return std::string(version()); });
  m.def("begin_interpreter_end", &begin_interpreter_end);
  pthread_atfork(nullptr, nullptr, &Inside::forget_other_threads);
  m.def("set_log", &set_log, nb::arg("sink").none(), nb::arg("level"));
  m.def("environment_log_level", &runtime::environment_log_level);
  m.def("library_version", [] { return std::string(runtime::library_version_text()); });
  m.def("driver_version", [] { return std::string(runtime::kDriverVersion); });
  // (key, what it takes, whether only Toolkit1 has it)
  m.def("config_keys", [] {
    using Kind = toolkit::ConfigKey::Kind;
    static constexpr const char* kKinds[] = {"flag",    "whole",        "real",      "real_or_none", "name",
                                             "text",    "number_lists", "platforms", "flags",        "names",
                                             "formats", "shape_sets",   "targets"};
    static_assert(std::size(kKinds) == static_cast<size_t>(Kind::Targets) + 1);
    nb::list keys;
    for (const toolkit::ConfigKey& k : toolkit::config_keys())
      keys.append(nb::make_tuple(std::string(k.key), kKinds[static_cast<size_t>(k.kind)], k.toolkit1));
    return keys;
  });
  // (key, the key that took its place or "", whether only Toolkit1 has it)
  m.def("old_config_keys", [] {
    nb::list keys;
    for (const toolkit::OldConfigKey& k : toolkit::old_config_keys())
      keys.append(nb::make_tuple(std::string(k.key), std::string(k.now), k.toolkit1));
    return keys;
  });
  m.def("default_platform", [] { return std::string(platform::default_platform().name); });
  m.def("platform_families", [] {
    std::map<std::string, std::vector<std::string>> out;
    for (const platform::Platform& p : platform::all()) out[std::string(p.compatibility)].emplace_back(p.name);
    return out;
  });
  m.def("platforms_of", [](const Path& path) {
    const auto session = take(runtime::Session::open(path.string()));
    const std::vector<std::string> filled = format::platforms_of(session->model());
    std::vector<std::string> same;
    const platform::Platform* own = platform::find(filled.front());
    for (const platform::Platform& p : platform::all())
      if (own && p.compatibility == own->compatibility) same.emplace_back(p.name);
    return std::pair(filled, same);
  });
  m.def("model_config", [](const Path& path) {
    const auto session = take(runtime::Session::open(path.string()));
    const format::Model& model = session->model();
    nb::dict d;
    d["name"] = to_utf8(model.name);
    d["target_platform"] = format::platforms_of(model);
    d["source_framework"] = model.source_framework;
    d["toolkit_version"] = model.toolkit_version;
    d["float_dtype"] = model.float_dtype;
    d["custom_string"] = to_utf8(model.custom_string);
    d["sync_uids"] = model.sync_uids;
    d["inputs"] = describe(session->inputs());
    d["outputs"] = describe(session->outputs());
    return d;
  });
  // Writes a finished model with the layers after which it should yield.
  m.def("set_sync_uids", [](const Path& source, const Path& target, std::vector<uint32_t> uids) {
    format::Model model = take(format::read_rknn(source.string()));
    const size_t layers = model.programs[0].tasks.size();
    for (uint32_t uid : uids)
      if (uid >= layers)
        throw nb::value_error(("Invalid sync_uids: the model has no layer " + std::to_string(uid) + ", eval_perf lists 0 to " +
                               std::to_string(layers - 1) + "!")
                                  .c_str());
    model.sync_uids = std::move(uids);
    check(format::write_rknn(model, target.string()));
  });

  // The bytes of a file that nobody has looked at yet; what happens to the file afterwards has no effect on them.
  nb::class_<ModelFile>(m, "ModelFile")
      .def_static("open", [](const Path& path) { return ModelFile{take(MappedFile::open(path.string()))}; })
      .def("init", [](const ModelFile& f) { return init_session(*f.file, f.file); });

  nb::class_<CustomOpList>(m, "CustomOps")
      .def(nb::init<>())
      .def(
          "add",
          [](CustomOpList& list, const std::string& type, nb::object infer, nb::object compute) {
            list.ops = take(ops::CustomOps::with(list.ops, to_custom_op(type, std::move(infer), std::move(compute))));
          },
          nb::arg("type"), nb::arg("infer").none(), nb::arg("compute").none());

  nb::class_<LoadedModel>(m, "LoadedModel")
      .def_static("from_file",
                  [](const Path& path) {
                    auto loaded = [&] {
                      const Unlocked unlocked;
                      return load_rknn(path);
                    }();
                    return take(std::move(loaded));
                  })
      .def_static("from_device", &load_from_device)
      .def("file_size", [](const LoadedModel& m) { return m.file ? m.file->bytes().size() : format::rknn_file_bytes(*m.model); })
      .def("make_session", [](const LoadedModel& m, const CustomOpList& custom) { return open_session(m.model, custom.ops); })
      .def("codegen", [](const LoadedModel& m, const Path& output_path, const std::vector<Path>& inputs,
                         bool overwrite) { return codegen(m.model, output_path, inputs, overwrite, {}); })
      .def("write", [](const LoadedModel& m, const Path& path) {
        check(m.file->check());
        check(write_file_atomically(path.string(), [&](FileWriter& out) { return out.write(m.file->bytes()); }));
      });

  nb::class_<runtime::Session>(m, "Session")
      .def("inputs", [](const runtime::Session& s) { return describe(s.inputs()); })
      .def("outputs", [](const runtime::Session& s) { return describe(s.outputs()); })
      // The inputs of every program: one per set of dynamic_input.
      .def("shape_sets",
           [](const runtime::Session& s) {
             nb::list sets;
             for (size_t i = 0; i < s.model().programs.size(); ++i) sets.append(describe(s.inputs_of_program(i)));
             return sets;
           })
      .def("choose_program", [](runtime::Session& s, size_t index) { check(s.choose_program(index)); })
      .def("measure", &measure, nb::arg("cores"))
      .def("cores_of_mask", &cores_of_mask)
      .def("check_runs_on", &check_runs_on)
      .def("use_device", &use_device, nb::arg("address"), nb::arg("core_mask"))
      .def("use_device_of_environment", &use_device_of_environment, nb::arg("core_mask"))
      .def("device_facts", &device_facts)
      .def("generation",
           [](const runtime::Session& s) {
             const platform::Platform* chip = platform::find(s.model().target_platform);
             return chip ? chip->generation : 2;
           })
      .def("report_loading", [](const runtime::Session& s, int level) { runtime::report_loading(s, {.level = level}); })
      .def("run", &run_session, nb::arg("inputs"), nb::arg("level") = 0, nb::arg("cores") = 1);

  nb::class_<toolkit::Builder>(m, "Builder")
      .def_static("create",
                  [](const nb::dict& options, toolkit::Progress progress) {
                    return take(toolkit::Builder::create(to_config(options), callback(std::move(progress))));
                  })
      .def_prop_ro("toolkit1", [](const toolkit::Builder& b) { return b.config().toolkit1; })
      .def("load", &load, nb::arg("framework"), nb::arg("path"), nb::arg("inputs").none(), nb::arg("sizes").none(),
           nb::arg("initial").none(), nb::arg("outputs").none(), nb::arg("other_files"), nb::arg("input_is_nchw"),
           nb::arg("feeds"))
      .def("set_custom_ops", [](toolkit::Builder& b, const CustomOpList& custom) { b.set_custom_ops(custom.ops); })
      .def("forget_model", &toolkit::Builder::forget_model)
      .def("forget_build", &toolkit::Builder::forget_build)
      .def("set_batch", [](toolkit::Builder& b, int64_t samples) { check(b.set_batch(samples)); })
      .def("build",
           [](toolkit::Builder& b, bool do_quantization, const Path& dataset, bool auto_hybrid) {
             Status status;
             {
               const Unlocked unlocked;
               status = b.build({do_quantization, dataset.string(), auto_hybrid});
             }
             check(status);
             return printable_lines(b.built()->hybrid_summary);
           })
      .def("export_rknn",
           [](const toolkit::Builder& b, const Path& path) {
             Status status;
             {
               const Unlocked unlocked;
               status = b.export_rknn(path.string());
             }
             check(status);
           })
      .def("codegen",
           [](const toolkit::Builder& b, const Path& output_path, const std::vector<Path>& inputs, bool overwrite) {
             if (!b.built()) throw nb::value_error("the model is not built yet");
             return codegen(b.built()->model, output_path, inputs, overwrite, b.config().quant_img_RGB2BGR);
           })
      .def("file_size",
           [](const toolkit::Builder& b) {
             auto bytes = [&] {
               const Unlocked unlocked;
               return b.file_bytes();
             }();
             return take(std::move(bytes));
           })
      .def("hybrid_step1",
           [](toolkit::Builder& b, const Path& dataset, bool proposal, int64_t proposal_samples,
              std::vector<std::pair<std::string, std::string>> custom) {
             const toolkit::HybridRequest request{dataset.string(), proposal, proposal_samples, std::move(custom)};
             auto done = [&] {
               const Unlocked unlocked;
               return b.hybrid_step1(request);
             }();
             check(done.status());
             return std::pair(std::vector<Path>(done->files.begin(), done->files.end()), printable_lines(done->hybrid_summary));
           })
      .def_static("hybrid_step2",
                  [](const Path& model, const Path& data, const Path& quantization, const Path& dataset,
                     toolkit::Progress progress, const CustomOpList& custom) {
                    const toolkit::HybridFiles files{model.string(), data.string(), quantization.string(), dataset.string()};
                    auto builder = [&] {
                      const Unlocked unlocked;
                      return toolkit::Builder::hybrid_step2(files, callback(std::move(progress)), custom.ops);
                    }();
                    return take(std::move(builder));
                  })
      // The table, for a terminal of `width` > 0 characters with colours, and whether a tensor could not be a file name.
      .def("accuracy_analysis",
           [](const toolkit::Builder& b, const std::vector<Path>& inputs, const Path& output_dir, const std::string& target,
              const std::string& device, bool write_errors, bool as_npy, size_t width) {
             toolkit::AccuracyOptions options;
             options.inputs.assign(inputs.begin(), inputs.end());
             options.output_dir = output_dir.string();
             options.target = target;
             options.device = device;
             options.write_errors = write_errors;
             options.as_npy = as_npy;
             const auto report = [&] {
               const Unlocked unlocked;
               return b.analyse_accuracy(options);
             }();
             check(report.status());
             bool renamed = false;
             for (const auto& [name, file] : report->files) renamed |= name != file;
             const bool old = b.is_toolkit1();
             const std::string table = old ? accuracy_text_toolkit1(*report, false) : accuracy_text(*report, width > 0, width);
             return nb::make_tuple(to_utf8(table), renamed, old);
           })
      .def("make_session", [](const toolkit::Builder& b) {
        if (!b.built()) throw nb::value_error("the model is not built yet");
        return open_session(b.built()->model, b.built()->custom_ops);
      });
}
