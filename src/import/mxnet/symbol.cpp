#include "import/mxnet/symbol.h"

#include <algorithm>

#include "import/wire/json.h"

namespace orknn::importer::mxnet {

namespace {
// More outputs than any layer has; a larger number in a file is damage.
constexpr int64_t kMaxOutputs = 1 << 16;

Result<Entry> parse_entry(wire::JsonReader& json) {
  int64_t node = -1, output = 0;
  ORKNN_TRY(json.array([&](size_t index) -> Status {
    if (index > 1) return json.skip();  // the version of a variable that is written to
    ORKNN_TRY_ASSIGN((index == 0 ? node : output), json.integer());
    return {};
  }));
  if (node < 0 || node > UINT32_MAX) return json.problem("an entry with an illegal node number ends").found(std::to_string(node));
  if (output < 0 || output >= kMaxOutputs)
    return json.problem("an entry with an illegal output number ends").found(std::to_string(output));
  return Entry{static_cast<uint32_t>(node), static_cast<uint32_t>(output)};
}

Status parse_entries(wire::JsonReader& json, std::vector<Entry>& to) {
  return json.array([&](size_t) -> Status {
    ORKNN_TRY_ASSIGN(const Entry entry, parse_entry(json));
    to.push_back(entry);
    return {};
  });
}

Status parse_attributes(wire::JsonReader& json, SymbolNode& node) {
  if (json.peek() != wire::JsonReader::Kind::Object) return json.skip();
  return json.object([&](const std::string& key) -> Status {
    if (json.peek() == wire::JsonReader::Kind::Object || json.peek() == wire::JsonReader::Kind::Array) return json.skip();
    ORKNN_TRY_ASSIGN(node.attributes[key], json.scalar_text());
    return {};
  });
}

Result<Symbol> parse_graph(wire::JsonReader& json);

Result<SymbolNode> parse_node(wire::JsonReader& json) {
  SymbolNode node;
  bool has_op = false, has_name = false;
  ORKNN_TRY(json.object([&](const std::string& key) -> Status {
    if (key == "op") {
      has_op = true;
      ORKNN_TRY_ASSIGN(node.op, json.string());
      return {};
    }
    if (key == "name") {
      has_name = true;
      ORKNN_TRY_ASSIGN(node.name, json.string());
      return {};
    }
    if (key == "inputs") return parse_entries(json, node.inputs);
    if (key == "attrs" || key == "attr" || key == "param") return parse_attributes(json, node);
    if (key == "subgraphs")
      return json.array([&](size_t) -> Status {
        ORKNN_TRY_ASSIGN(Symbol body, parse_graph(json));
        node.subgraphs.push_back(std::move(body));
        return {};
      });
    return json.skip();
  }));
  if (!has_op || !has_name) return json.problem("a node without " + std::string(has_op ? "\"name\"" : "\"op\"") + " ends");
  return node;
}

// {"mxnet_version": ["int", 10901], ...}
Status parse_version(wire::JsonReader& json, Symbol& symbol) {
  if (json.peek() != wire::JsonReader::Kind::Object) return json.skip();
  return json.object([&](const std::string& key) -> Status {
    if (key != "mxnet_version" || json.peek() != wire::JsonReader::Kind::Array) return json.skip();
    return json.array([&](size_t index) -> Status {
      if (index != 1 || json.peek() != wire::JsonReader::Kind::Number) return json.skip();
      ORKNN_TRY_ASSIGN(symbol.version, json.integer());
      return {};
    });
  });
}

Status check_entries(const Symbol& symbol) {
  // How many outputs a layer has is known when it is lowered.
  const auto check = [&](const std::vector<Entry>& entries, const char* what) -> Status {
    for (const Entry& e : entries) {
      if (e.node >= symbol.nodes.size())
        return invalid_model(std::string(what) + " refers to a node that does not exist")
            .expected("less than " + std::to_string(symbol.nodes.size()))
            .found(std::to_string(e.node));
      if (symbol.nodes[e.node].is_variable() && e.output != 0)
        return invalid_model(std::string(what) + " refers to output " + std::to_string(e.output) + " of variable '" +
                             symbol.nodes[e.node].name + "'")
            .expected("output 0");
    }
    return {};
  };
  for (const SymbolNode& n : symbol.nodes)
    if (Status s = check(n.inputs, "an input"); !s) return s.node(n.name, n.op);
  return check(symbol.heads, "an output of the model");
}

Result<Symbol> parse_graph(wire::JsonReader& json) {
  Symbol symbol;
  ORKNN_TRY(json.object([&](const std::string& key) -> Status {
    if (key == "nodes")
      return json.array([&](size_t) -> Status {
        ORKNN_TRY_ASSIGN(SymbolNode node, parse_node(json));
        symbol.nodes.push_back(std::move(node));
        return {};
      });
    if (key == "heads") return parse_entries(json, symbol.heads);
    if (key == "attrs") return parse_version(json, symbol);
    return json.skip();
  }));
  ORKNN_TRY(check_entries(symbol));
  return symbol;
}
}  // namespace

Result<Symbol> parse_symbol(std::span<const std::byte> bytes) {
  wire::JsonReader json(bytes);
  if (json.peek() != wire::JsonReader::Kind::Object)
    return invalid_model("the symbol file is not a JSON object")
        .hint("give the -symbol.json file first, the .params file second");
  ORKNN_TRY_ASSIGN(Symbol symbol, parse_graph(json));
  ORKNN_TRY(json.finish());
  if (symbol.nodes.empty()) return invalid_model("the symbol file holds no nodes").hint("is it an MXNet symbol?");
  if (symbol.heads.empty()) return invalid_model("the symbol file states no outputs (\"heads\")");
  return symbol;
}

bool looks_like_symbol(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4096));
  const size_t brace = text.find_first_not_of(" \t\r\n");
  if (brace == std::string_view::npos || text[brace] != '{') return false;
  return text.find("\"nodes\"") != std::string_view::npos && text.find("\"op\"") != std::string_view::npos;
}

}  // namespace orknn::importer::mxnet
