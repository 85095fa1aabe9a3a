#include "ops/support/quantized_form.h"

namespace orknn::ops {
using namespace ir;

namespace {
constexpr std::string_view kPrefix = "com.microsoft:QLinear";
}

std::optional<QuantizedForm> quantized_form(const Node& node) {
  if (!node.op.starts_with(kPrefix)) return std::nullopt;
  QuantizedForm f{.op = node.op.substr(kPrefix.size()), .attributes = node.attributes, .data = {0}, .result = 3};
  if (f.op == "Add" || f.op == "Mul") {
    f.data = {0, 3};
    f.result = 6;
  } else if (f.op == "Concat") {
    f.data.clear();
    for (size_t i = 2; i < node.inputs.size(); i += 3) f.data.push_back(i);
    f.result = 0;
  }
  f.attributes.erase("channels_last");
  const bool flattens = f.op == "Softmax" && f.attributes.int_or("opset", 13) < 13;  // as Softmax did before that version
  f.attributes.erase("opset");
  if (flattens) f.attributes.set("flatten", int64_t{1});
  return f;
}

}  // namespace orknn::ops
