#include "model_tools.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <charconv>

#include "errors.h"
#include "format/encrypted.h"
#include "toolkit/convert_file.h"
#include "toolkit/onnx_edit.h"

namespace nb = nanobind;
using namespace orknn;

namespace {
using Path = std::filesystem::path;
using data::YamlValue;

// A plain scalar as YAML reads it: a truth value, a number, else a text.
nb::object scalar(const YamlValue& value) {
  const std::string& text = value.text;
  if (value.quoted) return nb::str(to_utf8(text).c_str());
  if (text == "true" || text == "True" || text == "TRUE") return nb::bool_(true);
  if (text == "false" || text == "False" || text == "FALSE") return nb::bool_(false);
  const char* end = text.data() + text.size();
  int64_t whole = 0;
  if (const auto read = std::from_chars(text.data(), end, whole); read.ec == std::errc() && read.ptr == end)
    return nb::int_(whole);
  double real = 0;
  if (const auto read = std::from_chars(text.data(), end, real); read.ec == std::errc() && read.ptr == end)
    return nb::float_(real);
  return nb::str(to_utf8(text).c_str());
}

nb::object python_value(const YamlValue& value) {
  if (value.kind == YamlValue::Kind::Null) return nb::none();
  if (value.kind == YamlValue::Kind::Scalar) return scalar(value);
  if (value.kind == YamlValue::Kind::List) {
    nb::list list;
    for (const YamlValue& item : value.items) list.append(python_value(item));
    return list;
  }
  nb::dict map;
  for (const auto& [key, item] : value.entries) map[to_utf8(key).c_str()] = python_value(item);
  return map;
}

// The models of a yml file, as keywords that rknn_convert.py hands to the RKNN class.
nb::list read_convert_file(const Path& path) {
  nb::list models;
  for (const toolkit::ConvertFile& file : take(toolkit::read_convert_file(path.string()))) {
    nb::dict model;
    model["name"] = Path(file.name);  // any bytes, as every file name
    model["framework"] = file.source.framework;
    model["path"] = Path(file.source.path);
    model["other_files"] = std::vector<Path>(file.source.other_files.begin(), file.source.other_files.end());
    model["inputs"] = file.source.options.inputs;
    model["outputs"] = file.source.options.outputs;
    model["input_size_list"] = file.source.options.input_size_list;
    model["do_quantization"] = file.do_quantization;
    model["dataset"] = Path(file.dataset);
    model["configs"] = file.configs.kind == YamlValue::Kind::Null ? nb::object(nb::dict()) : python_value(file.configs);
    models.append(model);
  }
  return models;
}

std::vector<std::string> edit_onnx(const Path& model, const Path& export_path, importer::onnx::TensorFormulas inputs,
                                   importer::onnx::TensorFormulas outputs, const Path& dataset) {
  return take(
      toolkit::edit_onnx({model.string(), export_path.string(), std::move(inputs), std::move(outputs), dataset.string()}));
}

void encrypt_rknn(const Path& input, const Path& output, int64_t level, std::string passphrase) {
  check(format::encrypt_rknn(input.string(), output.string(), {level, std::move(passphrase)}));
}
}  // namespace

void bind_model_tools(nb::module_& m) {
  m.def("read_convert_file", &read_convert_file);
  m.def("edit_onnx", &edit_onnx);
  m.def("encrypt_rknn", &encrypt_rknn);
  m.def("passphrase_of_environment", &format::passphrase_of_environment);
}
