#include "mxnet_writer.h"

#include <cstring>

#include "import/mxnet/model.h"
#include "mutation.h"
#include "ops/eval.h"

namespace orknn::tests::mxnet {

namespace {
template <class T>
void put(std::string& to, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  to.append(bytes, sizeof(T));
}

std::string entries(const std::vector<std::pair<int, int>>& list, bool with_versions) {
  std::string text;
  for (const auto& [node, output] : list)
    text += (text.empty() ? "[" : ", [") + std::to_string(node) + ", " + std::to_string(output) + (with_versions ? ", 0]" : "]");
  return "[" + text + "]";
}

void put_array_head(std::string& to, const std::vector<int64_t>& dims, int32_t dtype, int version, int32_t storage = 0) {
  if (version == 1) put<uint32_t>(to, 0xF993FAC8u);
  if (version == 2) put<uint32_t>(to, 0xF993FAC9u);
  if (version == 3) put<uint32_t>(to, 0xF993FACAu);
  if (version >= 2) put<int32_t>(to, storage);
  if (storage != 0) {  // the shape of what is stored: one row
    put<uint32_t>(to, static_cast<uint32_t>(dims.size()));
    for (size_t i = 0; i < dims.size(); ++i) put<int64_t>(to, i == 0 ? 1 : dims[i]);
  }
  put<uint32_t>(to, static_cast<uint32_t>(dims.size()));
  for (int64_t d : dims)
    if (version == 0)
      put<uint32_t>(to, static_cast<uint32_t>(d));
    else
      put<int64_t>(to, d);
  put<int32_t>(to, 1);  // cpu
  put<int32_t>(to, 0);
  put<int32_t>(to, dtype);
  if (storage == 1) {  // indices of rows: int64 [1]
    put<int32_t>(to, 6);
    put<uint32_t>(to, 1);
    put<int64_t>(to, 1);
  }
}

std::string list(const std::vector<std::string>& arrays, const std::vector<std::string>& names) {
  std::string bytes;
  put<uint64_t>(bytes, 0x112);
  put<uint64_t>(bytes, 0);
  put<uint64_t>(bytes, arrays.size());
  for (const std::string& a : arrays) bytes += a;
  put<uint64_t>(bytes, names.size());
  for (const std::string& n : names) {
    put<uint64_t>(bytes, n.size());
    bytes += n;
  }
  return bytes;
}
}  // namespace

NodeText variable(std::string name, std::vector<std::pair<std::string, std::string>> attributes) {
  return {"null", std::move(name), {}, std::move(attributes)};
}

std::string symbol(const std::vector<NodeText>& nodes, std::vector<std::pair<int, int>> heads, const SymbolForm& form) {
  if (heads.empty()) heads = {{static_cast<int>(nodes.size()) - 1, 0}};
  std::string text = "{\n  \"nodes\": [", variables;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeText& n = nodes[i];
    std::string attributes;
    for (const auto& [key, value] : n.attributes)
      attributes += (attributes.empty() ? "\"" : ", \"") + key + "\": \"" + value + "\"";
    text += (i ? ",\n" : "\n") + std::string("    {\"op\": \"") + n.op + "\", \"name\": \"" + n.name + "\"" +
            (attributes.empty() ? "" : ", \"" + form.attributes_key + "\": {" + attributes + "}") +
            ", \"inputs\": " + entries(n.inputs, form.with_versions) + n.extra + "}";
    if (n.op == "null") variables += (variables.empty() ? "" : ", ") + std::to_string(i);
  }
  text += "\n  ],\n  \"arg_nodes\": [" + variables + "],\n  \"heads\": " + entries(heads, form.with_versions);
  if (form.version) text += ",\n  \"attrs\": {\"mxnet_version\": [\"int\", " + std::to_string(form.version) + "]}";
  return text + "\n}\n";
}

std::string params(const std::vector<Array>& arrays, int version) {
  std::vector<std::string> bodies, names;
  for (const Array& a : arrays) {
    std::string& body = bodies.emplace_back();
    put_array_head(body, a.dims, 0, version);
    for (float v : a.values) put(body, v);
    names.push_back(a.name);
  }
  return list(bodies, names);
}

std::string raw_params(const std::string& name, const std::vector<int64_t>& dims, int32_t dtype, std::string_view bytes,
                       int32_t storage) {
  std::string body;
  put_array_head(body, dims, dtype, 2, storage);
  body += bytes;
  return list({body}, {name});
}

Result<importer::Imported> import(const std::string& symbol, const std::optional<std::string>& params,
                                  const importer::ImportOptions& options) {
  const std::vector<std::byte> text = exact_copy(symbol);
  if (!params) return importer::mxnet::import_model(text, nullptr, options, ops::builtin_ops());
  const auto kept = std::make_shared<const std::vector<std::byte>>(exact_copy(*params));
  ORKNN_TRY_ASSIGN(const importer::mxnet::Params parsed, importer::mxnet::Params::parse(*kept, kept));
  return importer::mxnet::import_model(text, &parsed, options, ops::builtin_ops());
}

std::vector<Sample> samples() {
  const auto ramp = [](size_t count) {
    std::vector<float> values;
    for (size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(i % 7) * 0.25f - 0.5f);
    return values;
  };
  std::vector<Sample> list;
  // A small classifier in the newest form.
  list.push_back(
      {"classifier",
       symbol({variable("data"),
               variable("c_weight"),
               {"Convolution",
                "c",
                {{0, 0}, {1, 0}},
                {{"kernel", "(3, 3)"}, {"num_filter", "2"}, {"no_bias", "True"}, {"pad", "(1, 1)"}}},
               variable("b_gamma"),
               variable("b_beta"),
               variable("b_moving_mean", {{"__init__", "[\\\"zero\\\", {}]"}}),
               variable("b_moving_var"),
               {"BatchNorm", "b", {{2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}}, {{"fix_gamma", "False"}, {"eps", "1e-05"}}},
               {"Activation", "r", {{7, 0}}, {{"act_type", "relu"}}},
               {"Pooling", "p", {{8, 0}}, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pooling_convention", "full"}}},
               variable("f_weight"),
               variable("f_bias"),
               {"FullyConnected", "f", {{9, 0}, {10, 0}, {11, 0}}, {{"num_hidden", "3"}}},
               variable("softmax_label"),
               {"SoftmaxOutput", "softmax", {{12, 0}, {13, 0}}}}),
       params({{"arg:c_weight", {2, 1, 3, 3}, ramp(18)},
               {"arg:b_gamma", {2}, {1, 2}},
               {"arg:b_beta", {2}, {0, 1}},
               {"aux:b_moving_mean", {2}, {0, 1}},
               {"aux:b_moving_var", {2}, {1, 2}},
               {"arg:f_weight", {3, 18}, ramp(54)},
               {"arg:f_bias", {3}, {0, 1, 2}}}),
       {{1, 1, 5, 5}}});
  // The form before 0.9: `param`, pairs, auxiliary states not listed, version 0 arrays.
  list.push_back(
      {"old",
       symbol({variable("data"),
               variable("n_gamma"),
               variable("n_beta"),
               {"BatchNorm", "n", {{0, 0}, {1, 0}, {2, 0}}, {{"eps", "0.001"}}},
               {"Reshape", "s", {{3, 0}}, {{"target_shape", "(0, 4)"}}},
               {"_PlusScalar", "k", {{4, 0}}, {{"scalar", "1.5"}}},
               {"SliceChannel", "h", {{5, 0}}, {{"num_outputs", "2"}}},
               {"ElementWiseSum", "y", {{6, 0}, {6, 1}}, {{"num_args", "2"}}}},
              {}, {"param", false, 0}),
       params({{"n_gamma", {2}, {1, 2}}, {"n_beta", {2}, {0, 1}}, {"n_moving_mean", {2}, {0, 1}}, {"n_moving_var", {2}, {1, 2}}},
              0),
       {{2, 2, 2}}});
  // Recurrent layer, detection, a loop with a body.
  list.push_back({"recurrent",
                  symbol({variable("data"),
                          variable("l_parameters"),
                          variable("l_state"),
                          variable("l_state_cell"),
                          {"RNN",
                           "l",
                           {{0, 0}, {1, 0}, {2, 0}, {3, 0}},
                           {{"mode", "lstm"}, {"state_size", "2"}, {"num_layers", "1"}, {"state_outputs", "True"}}},
                          {"SequenceLast", "last", {{4, 0}}}},
                         {{5, 0}, {4, 1}, {4, 2}}),
                  params({{"arg:l_parameters", {56}, ramp(56)}}, 1),
                  {{3, 1, 3}, {1, 1, 2}, {1, 1, 2}}});
  list.push_back(
      {"detector",
       symbol({variable("data"),
               {"_contrib_MultiBoxPrior", "p", {{0, 0}}, {{"sizes", "(0.3, 0.5)"}, {"ratios", "(1, 2)"}}},
               variable("cls"),
               variable("loc"),
               {"_contrib_MultiBoxDetection", "d", {{2, 0}, {3, 0}, {1, 0}}, {{"nms_topk", "4"}, {"threshold", "0.1"}}}}),
       params({}, 3),
       {{1, 2, 2, 2}, {1, 3, 12}, {1, 48}}});
  const std::string body = symbol({variable("x"), variable("s"), {"elemwise_add", "a", {{0, 0}, {1, 0}}}}, {{2, 0}, {2, 0}});
  list.push_back({"loop",
                  symbol({variable("data"),
                          variable("start"),
                          {"_foreach",
                           "e",
                           {{0, 0}, {1, 0}},
                           {{"num_args", "3"},
                            {"num_outputs", "2"},
                            {"num_out_data", "1"},
                            {"in_state_locs", "(1,)"},
                            {"in_data_locs", "(0,)"},
                            {"remain_locs", "()"}},
                           ", \"subgraphs\": [" + body + "]"}},
                         {{2, 0}, {2, 1}}),
                  params({}),
                  {{3, 2}, {2}}});
  return list;
}

}  // namespace orknn::tests::mxnet
