#include "ir/text.h"

#include <charconv>
#include <cmath>
#include <cstring>

#include "ir/verify.h"

namespace orknn::ir {
namespace {

// ---- printing

bool is_plain(std::string_view name) {
  if (name.empty() || name == "_") return false;
  for (char c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.' && c != '/') return false;
  return true;
}

std::string quoted(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string ref(const Graph& g, TensorId id) {
  if (!id) return "_";
  const std::string& name = g.tensor(id).name;
  return "%" + (is_plain(name) ? name : quoted(name));
}

std::string number(double v) {
  if (std::isnan(v)) return "nan";
  if (std::isinf(v)) return v < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;  // shortest text that reads back the same
  std::string text(buffer, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string element(const TensorView& t, int64_t i) {
  return visit_dtype(t.dtype, [&]<class T>(TypeTag<T>) -> std::string {
    const T v = t.as<T>()[i];
    if constexpr (std::is_same_v<T, float>) {
      if (!std::isfinite(v)) return number(static_cast<double>(v));
      char buffer[40];
      return std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
    } else if constexpr (std::is_same_v<T, bool>)
      return v ? "true" : "false";
    else if constexpr (std::is_integral_v<T>)
      return std::to_string(v);
    else
      return number(static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(v)));
  });
}

std::string type_text(DType dtype, const std::optional<Shape>& shape) {
  std::string text(dtype_name(dtype));
  if (!shape) return text + "[*]";
  text += "[";
  for (size_t i = 0; i < shape->size(); ++i) {
    const Dim& d = (*shape)[i];
    text += (i ? "," : "") + (d.is_known()           ? std::to_string(d.value())
                              : d.symbol().empty()   ? "?"
                              : is_plain(d.symbol()) ? d.symbol()
                                                     : quoted(d.symbol()));
  }
  return text + "]";
}

std::string literal(const TensorView& t) {
  const int64_t n = t.count();
  const size_t size = dtype_bytes(t.dtype);
  const auto* bytes = static_cast<const char*>(t.data);
  bool splat = n > 1;
  for (int64_t i = 1; splat && i < n; ++i) splat = std::memcmp(bytes, bytes + static_cast<size_t>(i) * size, size) == 0;
  if (splat) return "splat " + element(t, 0);
  std::string text = "{";
  for (int64_t i = 0; i < n; ++i) text += (i ? ", " : "") + element(t, i);
  return text + "}";
}

void print_graph(const Graph& g, const PrintOptions& options, const std::string& indent, std::string& out);

void print_attribute(const Attribute& a, const PrintOptions& options, const std::string& indent, std::string& out) {
  const auto list = [&](const auto& values, auto&& show) {
    out += "[";
    for (size_t i = 0; i < values.size(); ++i) out += (i ? "," : "") + show(values[i]);
    out += "]";
  };
  switch (kind_of(a)) {
    case AttributeKind::Int: out += std::to_string(std::get<int64_t>(a)); break;
    case AttributeKind::Float: out += number(std::get<double>(a)); break;
    case AttributeKind::String: out += quoted(std::get<std::string>(a)); break;
    case AttributeKind::Ints: list(std::get<std::vector<int64_t>>(a), [](int64_t v) { return std::to_string(v); }); break;
    case AttributeKind::Floats:
      out += "floats";
      list(std::get<std::vector<double>>(a), number);
      break;
    case AttributeKind::Strings:
      out += "strings";
      list(std::get<std::vector<std::string>>(a), [](const std::string& s) { return quoted(s); });
      break;
    case AttributeKind::Tensor: out += print_tensor(std::get<TensorData>(a)); break;
    case AttributeKind::Graph: print_graph(*std::get<std::shared_ptr<const Graph>>(a), options, indent + "  ", out); break;
  }
}

void print_attributes(const Attributes& attributes, const PrintOptions& options, const std::string& indent, std::string& out) {
  if (attributes.empty()) return;
  out += " {";
  bool first = true;
  for (const auto& [name, value] : attributes) {
    out += (first ? "" : ", ") + name + " = ";
    print_attribute(value, options, indent, out);
    first = false;
  }
  out += "}";
}

void print_quant(const Tensor& t, std::string& out) {
  if (!t.quant) return;
  const QuantParams& q = *t.quant;
  out += " quant(axis " + std::to_string(q.axis);
  for (size_t i = 0; i < q.scale.size(); ++i) {
    char buffer[40];
    out += ", " + std::string(buffer, std::to_chars(buffer, buffer + sizeof buffer, q.scale[i]).ptr) + ":" +
           std::to_string(i < q.zero_point.size() ? q.zero_point[i] : 0);
  }
  out += ")";
}

void print_value(const Graph& g, TensorId id, std::string& out) {
  out += ref(g, id);
  if (!id) return;
  const Tensor& t = g.tensor(id);
  if (t.dtype != DType::Undefined) out += ": " + type_text(t.dtype, t.shape);
  if (t.layout != Layout::Undefined) out += t.layout == Layout::NCHW ? " nchw" : " nhwc";
  print_quant(t, out);
}

void print_graph(const Graph& g, const PrintOptions& options, const std::string& indent, std::string& out) {
  out += "graph " + quoted(g.name) + " (";
  for (size_t i = 0; i < g.inputs().size(); ++i) {
    if (i) out += ", ";
    print_value(g, g.inputs()[i], out);
  }
  out += ") -> (";
  for (size_t i = 0; i < g.outputs().size(); ++i) out += (i ? ", " : "") + ref(g, g.outputs()[i]);
  out += ") {\n";
  std::vector<char> printed(g.tensor_count(), 0);
  const auto print_constant = [&](TensorId id) {
    if (!g.is_constant(id) || printed[static_cast<size_t>(id.index)]) return;
    printed[static_cast<size_t>(id.index)] = 1;
    const Tensor& t = g.tensor(id);
    out += indent + "  ";
    print_value(g, id, out);
    out += " = const " + (t.constant.count() > options.max_elements ? "..." : literal(t.constant.view())) + "\n";
  };
  for (NodeId id : g.order()) {
    const Node& n = g.node(id);
    for (TensorId t : n.inputs)
      if (t) print_constant(t);
    out += indent + "  ";
    for (size_t i = 0; i < n.outputs.size(); ++i) {
      if (i) out += ", ";
      print_value(g, n.outputs[i], out);
    }
    out += " = " + (is_plain(n.op) ? n.op : quoted(n.op)) + "(";
    const size_t own = n.own_input_count();
    for (size_t i = 0; i < own; ++i) out += (i ? ", " : "") + ref(g, n.inputs[i]);
    out += ")";
    print_attributes(n.attributes, options, indent, out);
    for (const TailStep& step : n.tail) {
      out += " + " + step.op + "(";
      if (step.operand >= 0) out += ref(g, n.inputs[static_cast<size_t>(step.operand)]) + (step.operand_first ? ", first" : "");
      out += ")";
      print_attributes(step.attributes, options, indent, out);
    }
    if (!n.name.empty()) out += " " + quoted(n.name);
    for (size_t i = 0; i < n.origin.size(); ++i) out += (i ? ", " : " from ") + quoted(n.origin[i]);
    out += "\n";
  }
  for (TensorId id : g.outputs()) print_constant(id);
  out += indent + "}";
}

// ---- parsing

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Graph> whole_graph() {
    Graph g;
    ORKNN_TRY(graph(g, 0));
    skip();
    if (at_ < text_.size()) return fail("text after the end of the graph");
    return g;
  }

  Result<TensorData> whole_tensor() {
    TensorData t;
    ORKNN_TRY(tensor_literal(t));
    skip();
    if (at_ < text_.size()) return fail("text after the end of the tensor");
    return t;
  }

 private:
  Status fail(const std::string& what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      if (text_[i] == '\n')
        ++line, column = 1;
      else
        ++column;
    }
    return invalid_argument("IR text, line " + std::to_string(line) + ", column " + std::to_string(column) + ": " + what);
  }

  void skip() {
    while (at_ < text_.size()) {
      if (std::isspace(static_cast<unsigned char>(text_[at_])))
        ++at_;
      else if (text_[at_] == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else
        return;
    }
  }
  bool peek(std::string_view token) {
    skip();
    return text_.substr(at_, token.size()) == token;
  }
  bool accept(std::string_view token) {
    if (!peek(token)) return false;
    at_ += token.size();
    return true;
  }
  Status expect(std::string_view token) { return accept(token) ? Status() : fail("expected '" + std::string(token) + "'"); }
  bool accept_word(std::string_view token) {
    if (!peek(token)) return false;
    const size_t end = at_ + token.size();
    if (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_')) return false;
    at_ = end;
    return true;
  }
  Status quoted_string(std::string& out) {
    ORKNN_TRY(expect("\""));
    out.clear();
    for (; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        out += text_[at_] == 'n' ? '\n' : text_[at_];
      } else {
        out += text_[at_];
      }
    }
    return at_ < text_.size() ? (++at_, Status()) : fail("string without end");
  }
  Status word(std::string& out) {
    skip();
    if (peek("\"")) return quoted_string(out);
    const size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '.' || text_[at_] == '/'))
      ++at_;
    if (at_ == begin) return fail("expected a name");
    out = text_.substr(begin, at_ - begin);
    return {};
  }
  // The characters of a number, nan or inf; true and false count as numbers too.
  Status number_text(std::string& out) {
    skip();
    const size_t begin = at_;
    if (at_ < text_.size() && (text_[at_] == '-' || text_[at_] == '+')) ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool exponent_sign =
          (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E' || text_[at_ - 1] == 'p');
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && !exponent_sign) break;
      ++at_;
    }
    out = text_.substr(begin, at_ - begin);
    return out.empty() ? fail("expected a number") : Status();
  }
  Status integer(int64_t& out) {
    std::string t;
    ORKNN_TRY(number_text(t));
    const char* begin = t.data() + (t[0] == '+');
    const auto [end, error] = std::from_chars(begin, t.data() + t.size(), out);
    return error == std::errc() && end == t.data() + t.size() ? Status() : fail("expected an integer, found '" + t + "'");
  }
  Status to_double(const std::string& t, double& out) const {
    char* end = nullptr;
    out = std::strtod(t.c_str(), &end);  // reads nan, inf and hex floats too
    return *end == '\0' ? Status() : fail("expected a number, found '" + t + "'");
  }
  template <class F>
  Status list(std::string_view open, std::string_view close, F&& item) {
    ORKNN_TRY(expect(open));
    if (accept(close)) return {};
    do ORKNN_TRY(item());
    while (accept(","));
    return expect(close);
  }

  Status type(DType& dtype, std::optional<Shape>& shape) {
    std::string t;
    ORKNN_TRY(word(t));
    dtype = dtype_from_name(t);
    if (dtype == DType::Undefined) return fail("unknown type '" + t + "'");
    if (accept("[*]")) {
      shape.reset();
      return {};
    }
    shape.emplace();
    return list("[", "]", [&]() -> Status {
      if (accept("?")) {
        shape->emplace_back();
        return {};
      }
      skip();
      if (at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-')) {
        int64_t v = 0;
        ORKNN_TRY(integer(v));
        if (v < 0) return fail("negative extent");
        shape->emplace_back(v);
        return {};
      }
      std::string symbol;
      ORKNN_TRY(word(symbol));
      shape->push_back(Dim::symbol(symbol));
      return {};
    });
  }

  Status one_element(DType dtype, void* target) {
    std::string t;
    ORKNN_TRY(number_text(t));
    if (t == "true") t = "1";
    if (t == "false") t = "0";
    return visit_dtype(dtype, [&]<class T>(TypeTag<T>) -> Status {
      T value{};
      if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
        const char* begin = t.data() + (t[0] == '+');
        const auto [end, error] = std::from_chars(begin, t.data() + t.size(), value);
        if (error != std::errc() || end != t.data() + t.size())
          return fail("'" + t + "' is not of type " + std::string(dtype_name(dtype)));
      } else if constexpr (std::is_same_v<T, float>) {
        char* end = nullptr;
        value = std::strtof(t.c_str(), &end);
        if (*end != '\0') return fail("expected a number, found '" + t + "'");
      } else {
        double v = 0;
        ORKNN_TRY(to_double(t, v));
        if constexpr (std::is_same_v<T, bool>)
          value = v != 0;
        else if constexpr (std::is_same_v<T, double>)
          value = v;
        else
          value = T(static_cast<float>(v));
      }
      std::memcpy(target, &value, sizeof value);
      return {};
    });
  }

  // "{1, 2}" or "splat 1" of a known type.
  Status contents(DType dtype, const Shape& shape, TensorData& out) {
    const std::optional<Dims> dims = to_dims(shape);
    if (!dims) return fail("a constant needs a known shape");
    const Result<int64_t> n = checked_element_count(*dims, int64_t{1} << 30);
    if (!n) return fail(n.status().message());
    const size_t size = dtype_bytes(dtype);
    if (accept_word("splat")) {
      std::byte value[8];
      ORKNN_TRY(one_element(dtype, value));
      out = TensorData::allocate(dtype, *dims);
      auto* bytes = static_cast<std::byte*>(out.mutable_data());
      for (int64_t i = 0; i < *n; ++i) std::memcpy(bytes + static_cast<size_t>(i) * size, value, size);
      return {};
    }
    std::vector<std::byte> bytes;
    ORKNN_TRY(list("{", "}", [&]() -> Status {
      bytes.resize(bytes.size() + size);
      return one_element(dtype, bytes.data() + bytes.size() - size);
    }));
    if (bytes.size() != static_cast<size_t>(*n) * size)
      return fail("expected " + std::to_string(*n) + " values, found " + std::to_string(bytes.size() / size));
    out = TensorData::allocate(dtype, *dims);
    if (!bytes.empty()) std::memcpy(out.mutable_data(), bytes.data(), bytes.size());
    return {};
  }

  Status tensor_literal(TensorData& out) {
    DType dtype;
    std::optional<Shape> shape;
    ORKNN_TRY(type(dtype, shape));
    return contents(dtype, shape.value_or(Shape{}), out);
  }

  Status tensor_name(std::string& out) {
    ORKNN_TRY(expect("%"));
    return word(out);
  }
  // A reference to a tensor that exists or will be defined later.
  Status reference(Graph& g, TensorId& id) {
    if (accept_word("_")) {
      id = {};
      return {};
    }
    std::string name;
    ORKNN_TRY(tensor_name(name));
    id = g.find_tensor(name);
    if (!id) id = g.add_tensor(name);
    return {};
  }
  // "%x: float32[1] nchw quant(...)".
  Status value(Graph& g, TensorId& id) {
    ORKNN_TRY(reference(g, id));
    if (!id) return {};
    if (accept(":")) {
      Tensor& t = g.tensor(id);
      ORKNN_TRY(type(t.dtype, t.shape));
    }
    if (accept_word("nchw"))
      g.tensor(id).layout = Layout::NCHW;
    else if (accept_word("nhwc"))
      g.tensor(id).layout = Layout::NHWC;
    if (accept_word("quant")) {
      QuantParams q;
      ORKNN_TRY(expect("("));
      ORKNN_TRY(expect("axis"));
      int64_t v = 0;
      ORKNN_TRY(integer(v));
      q.axis = static_cast<int32_t>(v);
      while (accept(",")) {
        std::string t;
        double scale = 0;
        ORKNN_TRY(number_text(t));
        ORKNN_TRY(to_double(t, scale));
        ORKNN_TRY(expect(":"));
        ORKNN_TRY(integer(v));
        q.scale.push_back(static_cast<float>(scale));
        q.zero_point.push_back(static_cast<int32_t>(v));
      }
      ORKNN_TRY(expect(")"));
      g.tensor(id).quant = std::move(q);
    }
    return {};
  }

  Status attribute(Attribute& out, int depth) {
    skip();
    if (peek("\"")) {
      std::string s;
      ORKNN_TRY(quoted_string(s));
      out = std::move(s);
      return {};
    }
    if (peek("[")) {
      std::vector<int64_t> values;
      ORKNN_TRY(list("[", "]", [&] { return integer(values.emplace_back()); }));
      out = std::move(values);
      return {};
    }
    if (accept_word("floats")) {
      std::vector<double> values;
      ORKNN_TRY(list("[", "]", [&]() -> Status {
        std::string t;
        ORKNN_TRY(number_text(t));
        return to_double(t, values.emplace_back());
      }));
      out = std::move(values);
      return {};
    }
    if (accept_word("strings")) {
      std::vector<std::string> values;
      ORKNN_TRY(list("[", "]", [&] { return quoted_string(values.emplace_back()); }));
      out = std::move(values);
      return {};
    }
    if (peek("graph ")) {
      auto g = std::make_shared<Graph>();
      ORKNN_TRY(graph(*g, depth + 1));
      out = std::shared_ptr<const Graph>(std::move(g));
      return {};
    }
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (std::isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '+' || peek("nan") || peek("inf")) {
      if (!peek("int") || !std::isalpha(static_cast<unsigned char>(c))) {
        std::string t;
        ORKNN_TRY(number_text(t));
        if (t.find_first_of(".enxip") == std::string::npos) {
          int64_t v = 0;
          const char* begin = t.data() + (t[0] == '+');
          if (std::from_chars(begin, t.data() + t.size(), v).ec != std::errc())
            return fail("expected an integer, found '" + t + "'");
          out = v;
          return {};
        }
        double v = 0;
        ORKNN_TRY(to_double(t, v));
        out = v;
        return {};
      }
    }
    TensorData t;
    ORKNN_TRY(tensor_literal(t));
    out = std::move(t);
    return {};
  }

  Status attributes(Attributes& out, int depth) {
    if (!peek("{")) return {};
    return list("{", "}", [&]() -> Status {
      std::string key;
      ORKNN_TRY(word(key));
      ORKNN_TRY(expect("="));
      Attribute a;
      ORKNN_TRY(attribute(a, depth));
      out.set(key, std::move(a));
      return {};
    });
  }

  Status statement(Graph& g, int depth) {
    Node n;
    do ORKNN_TRY(value(g, n.outputs.emplace_back()));
    while (accept(","));
    ORKNN_TRY(expect("="));
    if (accept_word("const")) {
      const TensorId id = n.outputs[0];
      if (n.outputs.size() != 1 || !id) return fail("a constant has one name");
      if (!g.tensor(id).shape) return fail("a constant needs a shape");
      TensorData data;
      ORKNN_TRY(contents(g.tensor(id).dtype, *g.tensor(id).shape, data));
      g.tensor(id).constant = std::move(data);
      return {};
    }
    ORKNN_TRY(word(n.op));
    ORKNN_TRY(list("(", ")", [&] { return reference(g, n.inputs.emplace_back()); }));
    ORKNN_TRY(attributes(n.attributes, depth));
    while (accept("+")) {
      TailStep step;
      ORKNN_TRY(word(step.op));
      ORKNN_TRY(expect("("));
      if (!peek(")")) {
        step.operand = static_cast<int32_t>(n.inputs.size());
        ORKNN_TRY(reference(g, n.inputs.emplace_back()));
        if (accept(",")) {
          ORKNN_TRY(expect("first"));
          step.operand_first = true;
        }
      }
      ORKNN_TRY(expect(")"));
      ORKNN_TRY(attributes(step.attributes, depth));
      n.tail.push_back(std::move(step));
    }
    if (peek("\"")) ORKNN_TRY(quoted_string(n.name));
    if (accept_word("from")) {
      do ORKNN_TRY(quoted_string(n.origin.emplace_back()));
      while (accept(","));
    }
    for (TensorId t : n.outputs) {
      if (!t) continue;
      if (g.producer(t) || g.is_constant(t) || g.is_input(t)) return fail("'" + g.tensor(t).name + "' is defined twice");
    }
    g.add_node(std::move(n));
    return {};
  }

  Status graph(Graph& g, int depth) {
    if (depth > kMostNestedGraphs) return fail("graphs nest too deeply");
    ORKNN_TRY(expect("graph"));
    ORKNN_TRY(quoted_string(g.name));
    ORKNN_TRY(list("(", ")", [&]() -> Status {
      TensorId id;
      ORKNN_TRY(value(g, id));
      if (!id || g.is_input(id)) return fail("a graph input needs a name of its own");
      g.inputs().push_back(id);
      return {};
    }));
    ORKNN_TRY(expect("->"));
    std::vector<std::string> outputs;
    ORKNN_TRY(list("(", ")", [&] { return tensor_name(outputs.emplace_back()); }));
    ORKNN_TRY(expect("{"));
    while (!accept("}")) ORKNN_TRY(statement(g, depth));
    for (const std::string& name : outputs) {
      const TensorId id = g.find_tensor(name);
      if (!id) return fail("output '" + name + "' is never defined");
      g.outputs().push_back(id);
    }
    return {};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

std::string print(const Graph& graph, const PrintOptions& options) {
  std::string out;
  print_graph(graph, options, "", out);
  return out + "\n";
}

std::string print_tensor(const TensorData& value) {
  return type_text(value.dtype(), to_shape(value.dims())) + " " + literal(value.view());
}

Result<Graph> parse(std::string_view text) { return Parser(text).whole_graph(); }
Result<TensorData> parse_tensor(std::string_view text) { return Parser(text).whole_tensor(); }

}  // namespace orknn::ir
