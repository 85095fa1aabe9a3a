// Networks in text, one layer per line: `conv1 = conv(data, 3x3, 16)`. Arguments that begin with a digit are numbers, others are
// names of earlier layers. The last layer is the output.
#include <charconv>

#include "import/lower/functions.h"
#include "import/lower/network.h"
#include "import/lower/row.h"
#include "import/lower/window.h"

namespace orknn::importer {
namespace toy {
namespace {
using namespace ir;

// --- the file: bytes to plain structs

struct Line {
  std::string name, op;
  std::vector<std::string> reads, numbers;
};

Result<std::vector<Line>> parse(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<Line> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    std::vector<std::string> words;
    for (size_t at = 0; (at = line.find_first_not_of(" \t\r=(,)", at)) != std::string_view::npos; at += words.back().size())
      words.emplace_back(line.substr(at, line.find_first_of(" \t\r=(,)", at) - at));
    if (words.empty() || words[0][0] == '#') continue;
    if (words.size() < 2)
      return invalid_model("a line is not a layer").expected("name = operator(arguments)").found(std::string(line.substr(0, 40)));
    Line& layer = lines.emplace_back(Line{words[0], words[1], {}, {}});
    for (size_t i = 2; i < words.size(); ++i)
      (words[i][0] >= '0' && words[i][0] <= '9' ? layer.numbers : layer.reads).push_back(words[i]);
  }
  if (lines.empty()) return invalid_model("the file holds no layers");
  return lines;
}

// The i-th argument that is a list of numbers, `count` of them: 3x3 is {3, 3}.
Result<Dims> numbers_of(const Line& line, size_t i, size_t count) {
  Dims numbers;
  const std::string text = i < line.numbers.size() ? line.numbers[i] : "";
  for (size_t at = 0; at < text.size(); at = std::min(text.find('x', at), text.size() - 1) + 1)
    if (std::from_chars(text.data() + at, text.data() + text.size(), numbers.emplace_back()).ec != std::errc()) numbers = {};
  if (numbers.size() == count) return numbers;
  return invalid_model("illegal numbers").expected("a list of " + std::to_string(count)).found("'" + text.substr(0, 40) + "'");
}

// --- one layer while it is lowered, and the operators: functions of the layer and of what it reads

class Layer : public Emitter {
 public:
  using Outputs = std::vector<TensorId>;
  Layer(Network& network, const Line& line, std::vector<TensorId> inputs)
      : Emitter(network.graph, network.ops, line.name, {line.name}), line(line), inputs_(std::move(inputs)) {}
  size_t operand_count() const { return inputs_.size(); }
  Result<TensorId> operand(size_t i) const {
    if (i < inputs_.size()) return inputs_[i];
    return invalid_model("input " + std::to_string(i + 1) + " of the layer is missing");
  }
  const Line& line;

 private:
  std::vector<TensorId> inputs_;
};

Result<TensorId> conv(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims kernel, numbers_of(l.line, 0, 2));
  ORKNN_TRY_ASSIGN(const Dims filters, numbers_of(l.line, 1, 1));
  ORKNN_TRY_ASSIGN(const Dims dims, l.need_dims(x, "to make weights"));
  if (dims.size() != 4) return unsupported("conv is for pictures").expected("4 axes").found(to_string(dims));
  const Window window{.kernel = kernel, .padding = Window::Padding::Same};
  ORKNN_TRY(window.check());
  const Dims weight{filters[0], dims[1], kernel[0], kernel[1]};
  ORKNN_TRY(checked_element_count(weight, 1 << 24).status());  // not in the file: a few bytes could ask for very many
  return l.emit("Conv", {x, l.add_constant("weight", filled(l.layer(), weight, Fill::Random, dims[1]))}, window.attributes());
}

Result<TensorId> scale(Layer& l, TensorId x) {
  ORKNN_TRY_ASSIGN(const Dims factor, numbers_of(l.line, 0, 1));
  return l.mul(x, static_cast<double>(factor[0]));
}

const RowTable<Layer>& table() {
  static const OperatorRow<Layer> rows[] = {
      {"relu", same<"Relu">},                // our operator under another name
      {"add", same<"Add">},                  // the number of its inputs is checked
      {"log1p", log1p, {.inputs = {1, 1}}},  // composed in import/lower/functions.h
      {"conv", conv, {.inputs = {1, 1}}},    // the format's own
      {"scale", scale, {.inputs = {1, 1}}},
  };
  static const RowTable<Layer> by_name{rows};
  return by_name;
}

// --- the importer

bool sniff(std::span<const std::byte> bytes) {
  const auto lines = parse(bytes.first(std::min<size_t>(bytes.size(), 256)));
  return lines && lines->front().op == "input";
}

Status lower(Network& network, const Line& line) {
  const OperatorRow<Layer>* row = table().find(line.op);
  if (!row) return unsupported("operator '" + line.op + "' is not known");
  std::vector<TensorId> inputs;
  for (const std::string& name : line.reads) {
    ORKNN_TRY_ASSIGN(const TensorId x, network.need(name));
    inputs.push_back(x);
  }
  Layer layer(network, line, std::move(inputs));
  ORKNN_TRY_ASSIGN(const std::vector<TensorId> outputs, (*row)(layer));
  network.bind(line.name, outputs[0], line.name);
  return {};
}

Result<Imported> load(const Source& source, const ImportOptions& options, const OpSet& ops) {
  ORKNN_TRY_ASSIGN(const std::vector<Line> lines, parse(source.bytes));
  std::vector<Port> ports;
  for (const Line& line : lines) {
    if (line.op != "input") continue;
    ORKNN_TRY_ASSIGN(const Dims dims, numbers_of(line, 0, 4));
    ports.push_back({.name = line.name, .shape = to_shape(dims), .value = {}});
  }
  ORKNN_TRY(apply_sizes(ports, options).status());
  Network network(ops);
  for (const Port& port : ports) network.add_input(port);
  for (const Line& line : lines)
    if (line.op != "input")
      if (Status s = lower(network, line); !s) network.report(s.node(line.name, line.op));  // all problems at once
  Imported result;
  result.source.framework = "toy";
  const std::vector<std::string> last{lines.back().name};
  ORKNN_TRY_ASSIGN(result.graph, network.finish(options.outputs.empty() ? last : options.outputs));
  return result;
}

Result<Survey> survey(const Source& source) {
  ORKNN_TRY_ASSIGN(const std::vector<Line> lines, parse(source.bytes));
  Survey result;
  for (const Line& line : lines) ++result.operators[line.op];
  return result;
}
}  // namespace
}  // namespace toy

const Importer& toy_importer() {
  static const Importer importer{
      .name = "toy", .extensions = {".toy"}, .sniff = toy::sniff, .load = toy::load, .survey = toy::survey};
  return importer;
}

}  // namespace orknn::importer
