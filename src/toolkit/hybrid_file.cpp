#include "toolkit/hybrid_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace orknn::toolkit {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string unquoted(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && (text.front() == '\'' || text.front() == '"') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

// A number of either kind as few digits as read back the same; whole ones with ".0", as the file has them.
std::string number(double v) {
  std::string text = fmt::format("{}", v);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  return text;
}

// "'@stem/act_3:out0'" and "@stem/act_3" are Toolkit1's names of the tensor stem/act.
std::string tensor_of(std::string name) {
  if (name.empty() || name[0] != '@') return name;
  name.erase(0, 1);
  if (const size_t colon = name.rfind(':'); colon != name.npos) name.resize(colon);
  const size_t bar = name.rfind('_');
  if (bar != name.npos && bar + 1 < name.size() &&
      std::all_of(name.begin() + static_cast<std::ptrdiff_t>(bar) + 1, name.end(), [](char c) { return c >= '0' && c <= '9'; }))
    name.resize(bar);
  return name;
}

// "weight" of "'@stem/act_3:weight'"; "out0" without it.
std::string part_of(const std::string& name) {
  const size_t colon = name.rfind(':');
  return name.empty() || name[0] != '@' || colon == name.npos ? "out0" : name.substr(colon + 1);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<HybridFile> run() {
    while (next_line()) {
      const std::string_view line = trimmed(line_);
      if (line.empty() || line[0] == '#' || line[0] == '%' || line == "---") continue;
      const size_t indent = line_.find_first_not_of(" \t");
      if (indent == 0)
        ORKNN_TRY(section(line));
      else if (section_ == Section::Layers)
        ORKNN_TRY(layer(line));
      else if (section_ == Section::Parameters)
        ORKNN_TRY(parameter(line, indent));
      else
        return problem("stands outside of a section");
    }
    if (action_ == "delete") take_out_listed_layers();
    return std::move(file_);
  }

 private:
  enum class Section { None, Layers, Parameters };

  bool next_line() {
    if (at_ >= text_.size()) return false;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    line_ = text_.substr(at_, end - at_);
    at_ = end + 1;
    ++number_;
    return true;
  }
  Status problem(const std::string& what) const {
    return invalid_model(fmt::format("line {} of the quantization file {}", number_, what))
        .found(std::string(trimmed(line_).substr(0, 80)));
  }

  Status section(std::string_view line) {
    if (!action_.empty() && (line[0] == '@' || line.starts_with("'@") || line.starts_with("\"@"))) {
      section_ = Section::Parameters;
      entry_indent_ = 0;
      return parameter(line, 0);
    }
    const size_t colon = line.find(':');
    const std::string_view name = line.substr(0, colon),
                           rest = colon == line.npos ? std::string_view() : trimmed(line.substr(colon + 1));
    if (name == "custom_quantize_layers" || name == "customized_quantize_layers") {
      section_ = Section::Layers;
      return rest.empty() ? Status() : braces(rest);
    }
    if (name == "quantize_parameters") {
      section_ = Section::Parameters;
      entry_indent_ = std::string_view::npos;
      if (!rest.empty() && rest != "{}") return problem("must list the parameters below");
      return {};
    }
    if (name == "hybrid_quantization_action") {
      section_ = Section::None;
      if (!action_.empty()) return problem("asks for a second action").expected("one action");
      action_ = unquoted(rest);
      if (action_ != "delete" && action_ != "add" && action_ != "modify")
        return problem("asks for an unknown action").expected("delete, add or modify");
      return {};
    }
    return problem("is not a known section")
        .expected("custom_quantize_layers, quantize_parameters or hybrid_quantization_action");
  }

  // Each result that is listed names its layer; the entries of weights and biases go with it.
  void take_out_listed_layers() {
    for (const auto& [name, p] : file_.parameters)
      if (p.part.starts_with("out")) file_.layers.emplace_back(name, "float32");
    file_.parameters.clear();
    file_.lists_what_was_found = true;
  }

  // "{a: float16, b: float16}"
  Status braces(std::string_view text) {
    if (text.front() != '{' || text.back() != '}') return problem("must be {} or a list of layers below");
    text = text.substr(1, text.size() - 2);
    while (!trimmed(text).empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      ORKNN_TRY(layer(trimmed(text.substr(0, comma))));
      text = text.substr(std::min(comma + 1, text.size()));
    }
    return {};
  }

  // Names hold colons themselves: the last one counts.
  Status layer(std::string_view line) {
    const size_t colon = line.rfind(':');
    if (colon == line.npos || trimmed(line.substr(colon + 1)).empty()) return problem("must be '<tensor>: <type>'");
    const std::string name = tensor_of(unquoted(line.substr(0, colon))), type = unquoted(line.substr(colon + 1));
    if (name.empty()) return problem("names no tensor");
    file_.layers.emplace_back(name, type);
    return {};
  }

  Status parameter(std::string_view line, size_t indent) {
    if (entry_indent_ == std::string_view::npos) entry_indent_ = indent;
    if (indent <= entry_indent_ && line[0] != '-') {
      if (line.back() != ':') return problem("must be '<tensor>:'");
      const std::string name = unquoted(line.substr(0, line.size() - 1));
      file_.parameters.emplace_back(tensor_of(name), TensorParameters{.part = part_of(name)});
      list_ = nullptr;
      zeros_ = nullptr;
      return {};
    }
    if (file_.parameters.empty()) return problem("belongs to no tensor");
    TensorParameters& p = file_.parameters.back().second;
    if (line[0] == '-' && (line.size() == 1 || line[1] == ' ')) return value(trimmed(line.substr(1)));
    const size_t colon = line.find(':');
    if (colon == line.npos) return problem("must be '<field>: <value>'");
    const std::string_view field = trimmed(line.substr(0, colon)), rest = trimmed(line.substr(colon + 1));
    list_ = field == "min" || field == "min_value"   ? &p.min
            : field == "max" || field == "max_value" ? &p.max
            : field == "scale"                       ? &p.scale
                                                     : nullptr;
    zeros_ = field == "zero_point" ? &p.zero_point : nullptr;
    if (list_ || zeros_) {
      if (list_) list_->clear();
      if (zeros_) zeros_->clear();
      if (rest.empty()) return {};
      std::string_view values = rest;
      if (values.front() == '[' && values.back() == ']') values = values.substr(1, values.size() - 2);
      while (!trimmed(values).empty()) {
        const size_t comma = std::min(values.find(','), values.size());
        ORKNN_TRY(value(trimmed(values.substr(0, comma))));
        values = values.substr(std::min(comma + 1, values.size()));
      }
      return {};
    }
    if (field == "qtype")
      p.qtype = unquoted(rest);
    else if (field == "qmethod" || field == "method")
      p.qmethod = unquoted(rest);
    else if (field == "dtype")
      p.dtype = unquoted(rest);
    return {};
  }

  Status value(std::string_view text) {
    if (!list_ && !zeros_) return problem("belongs to no list");
    double v = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
    if (error != std::errc{} || end != text.data() + text.size() || !(v == v)) return problem("holds no number");
    if (list_)
      list_->push_back(v);
    else if (v >= -2147483648.0 && v <= 2147483647.0)
      zeros_->push_back(static_cast<int64_t>(v));
    else
      return problem("holds a zero point out of range");
    return {};
  }

  std::string_view text_, line_;
  size_t at_ = 0, number_ = 0, entry_indent_ = std::string_view::npos;
  Section section_ = Section::None;
  HybridFile file_;
  std::vector<double>* list_ = nullptr;
  std::vector<int64_t>* zeros_ = nullptr;
  std::string action_;  // of Toolkit1 1.2
};

// Names that would read as something else are quoted.
std::string key(const std::string& name) {
  const bool plain = !name.empty() && std::string_view("'\"#-{}[]&*!|>%@` ").find(name[0]) == std::string_view::npos &&
                     name.find(" #") == name.npos && name.find(": ") == name.npos && name.back() != ' ';
  return plain ? name : "'" + name + "'";
}
}  // namespace

const TensorParameters* HybridFile::find(std::string_view tensor) const {
  const auto it = std::find_if(parameters.begin(), parameters.end(), [&](const auto& entry) { return entry.first == tensor; });
  return it == parameters.end() ? nullptr : &it->second;
}

std::string print(const HybridFile& file, bool toolkit1) {
  std::string text;
  if (toolkit1)
    text +=
        "%YAML 1.2\n---\n# layers to compute in another format: <layer>: asymmetric_affine-u8, dynamic_fixed_point-i8, "
        "dynamic_fixed_point-i16 or float32\n";
  text += toolkit1 ? "customized_quantize_layers:" : "custom_quantize_layers:";
  text += file.layers.empty() ? " {}\n" : "\n";
  for (const auto& [name, type] : file.layers)
    text += fmt::format("    {}: {}\n", key(toolkit1 ? "@" + name : name), toolkit1 && type == "float16" ? "float32" : type);
  text += "quantize_parameters:\n";
  size_t index = 0;
  for (const auto& [name, p] : file.parameters) {
    const auto list = [&](const char* field, const auto& values, const auto& print_value) {
      if (toolkit1) {
        text += fmt::format("        {}: [", field);
        for (size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + print_value(values[i]);
        text += "]\n";
      } else if (!values.empty()) {
        text += fmt::format("        {}:\n", field);
        for (const auto& v : values) text += fmt::format("        - {}\n", print_value(v));
      }
    };
    const auto whole = [](int64_t v) { return std::to_string(v); };
    if (toolkit1) {
      text += fmt::format("    '@{}_{}:{}':\n        dtype: {}\n        method: {}\n", name, index++, p.part,
                          p.qtype == "asymmetric_quantized" ? "asymmetric_affine" : p.qtype, p.qmethod);
      list("max_value", p.max, number);
      list("min_value", p.min, number);
      list("zero_point", p.zero_point, whole);
      list("scale", p.scale, number);
      text += fmt::format("        qtype: {}\n", p.dtype == "int8"    ? "i8"
                                                 : p.dtype == "uint8" ? "u8"
                                                 : p.dtype == "int32" ? "i32"
                                                                      : "i16");
      continue;
    }
    text += fmt::format("    {}:\n        qtype: {}\n        qmethod: {}\n        dtype: {}\n", key(name), p.qtype, p.qmethod,
                        p.dtype);
    list("min", p.min, number);
    list("max", p.max, number);
    list("scale", p.scale, number);
    list("zero_point", p.zero_point, whole);
  }
  return text;
}

Result<HybridFile> parse_hybrid_file(std::string_view text) { return Parser(text).run(); }

}  // namespace orknn::toolkit
