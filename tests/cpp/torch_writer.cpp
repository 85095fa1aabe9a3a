#include "torch_writer.h"

#include <bit>
#include <cstring>

namespace orknn::tests {
namespace {
template <class T>
void put(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}
}  // namespace

std::string zip_archive(const ZipEntries& entries) {
  std::string file, directory;
  for (const auto& [name, content] : entries) {
    const auto offset = static_cast<uint32_t>(file.size());
    const auto size = static_cast<uint32_t>(content.size()), length = static_cast<uint32_t>(name.size());
    // The padding that aligns contents to 64 bytes is an extra field of the local header only.
    const auto padding = static_cast<uint16_t>((64 - (file.size() + 30 + name.size() + 4) % 64) % 64 + 4);
    put<uint32_t>(file, 0x04034b50);
    for (uint16_t v : {20, 0, 0, 0, 0}) put<uint16_t>(file, v);
    for (uint32_t v : {uint32_t{0}, size, size}) put<uint32_t>(file, v);
    put<uint16_t>(file, static_cast<uint16_t>(length));
    put<uint16_t>(file, padding);
    file += name;
    put<uint16_t>(file, 0x4246);
    put<uint16_t>(file, static_cast<uint16_t>(padding - 4));
    file.append(padding - 4u, 'Z');
    file += content;
    put<uint32_t>(directory, 0x02014b50);
    for (uint16_t v : {20, 20, 0, 0, 0, 0}) put<uint16_t>(directory, v);
    for (uint32_t v : {uint32_t{0}, size, size}) put<uint32_t>(directory, v);
    put<uint16_t>(directory, static_cast<uint16_t>(length));
    for (uint16_t v : {0, 0, 0, 0}) put<uint16_t>(directory, v);
    put<uint32_t>(directory, 0);
    put<uint32_t>(directory, offset);
    directory += name;
  }
  const auto start = static_cast<uint32_t>(file.size()), bytes = static_cast<uint32_t>(directory.size());
  file += directory;
  put<uint32_t>(file, 0x06054b50);
  for (uint16_t v : {uint16_t{0}, uint16_t{0}, static_cast<uint16_t>(entries.size()), static_cast<uint16_t>(entries.size())})
    put<uint16_t>(file, v);
  put<uint32_t>(file, bytes);
  put<uint32_t>(file, start);
  put<uint16_t>(file, 0);
  return file;
}

namespace pickle {
std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}
std::string text(std::string_view value) {
  std::string out = "X";
  put<uint32_t>(out, static_cast<uint32_t>(value.size()));
  return out + std::string(value);
}
std::string integer(int64_t value) {
  std::string out = "\x8a\x08";
  put<int64_t>(out, value);
  return out;
}
std::string real(double value) {
  std::string out = "G";
  put<uint64_t>(out, __builtin_bswap64(std::bit_cast<uint64_t>(value)));
  return out;
}
std::string tuple(const std::vector<std::string>& items) {
  std::string out = "(";
  for (const std::string& item : items) out += item;
  return out + "t";
}
std::string tensor(std::string_view storage, std::string_view key, int64_t count, int64_t offset,
                   const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  std::vector<std::string> d, s;
  for (int64_t v : dims) d.push_back(integer(v));
  for (int64_t v : strides) s.push_back(integer(v));
  const std::string id = tuple({text("storage"), global("torch", storage), text(key), text("cpu"), integer(count)}) + "Q";
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({id, integer(offset), tuple(d), tuple(s), "\x89", global("collections", "OrderedDict") + ")R"}) + "R";
}
std::string object(std::string_view name, const std::vector<std::pair<std::string, std::string>>& attributes) {
  std::string out = global("__torch__", name) + ")\x81}(";
  for (const auto& [key, value] : attributes) out += text(key) + value;
  return out + "ub";
}
std::string object_with_state(std::string_view name, const std::string& state) {
  return global("__torch__", name) + ")\x81" + state + "b";
}
std::string whole(const std::string& value) { return "\x80\x02" + value + "."; }
}  // namespace pickle

std::string float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string TorchModel::bytes() const {
  ZipEntries entries{
      {"m/version", "3\n"}, {"m/code/__torch__.py", code}, {"m/data.pkl", pickle::whole(pickle::object("M", attributes))}};
  for (const auto& [name, content] : more) entries.emplace_back("m/" + name, content);
  return zip_archive(entries);
}

std::string exported_argument(std::string_view name, std::string_view value, int kind) {
  const std::string tail = kind == 0 ? "" : ",\"kind\":" + std::to_string(kind);
  return "{\"name\":\"" + std::string(name) + "\",\"arg\":" + std::string(value) + tail + "}";
}

std::string exported_node(std::string_view target, std::string_view inputs, std::string_view output, std::string_view module) {
  const std::string stack =
      module.empty() ? "" : "\"nn_module_stack\":\"L__self__,,app.Net;L__self__m," + std::string(module) + ",torch.nn.Module\"";
  return "{\"target\":\"" + std::string(target) + "\",\"inputs\":[" + std::string(inputs) +
         "],\"outputs\":[{\"as_tensor\":{\"name\":\"" + std::string(output) + "\"}}],\"metadata\":{" + stack + "}}";
}

ZipEntries ExportedModel::entries() const {
  const auto meta = [](const std::string& sizes, const std::string& strides) {
    return R"({"dtype":7,"sizes":)" + sizes + R"(,"strides":)" + strides + R"(,"storage_offset":{"as_int":0},"layout":7})";
  };
  const std::string program =
      R"({"graph_module":{"graph":{"inputs":[{"as_tensor":{"name":"p_w"}},{"as_tensor":{"name":"b_k"}},{"as_tensor":{"name":"x"}}],"outputs":[],"nodes":[)" +
      nodes + R"(],"tensor_values":{"x":)" + meta(sizes, "[]") +
      R"(}},"signature":{"input_specs":[{"parameter":{"arg":{"name":"p_w"},"parameter_name":"w"}},)"
      R"({"buffer":{"arg":{"name":"b_k"},"buffer_name":"k","persistent":false}},{"user_input":{"arg":{"as_tensor":{"name":"x"}}}}],"output_specs":)" +
      outputs + R"(},"module_call_graph":[{"fqn":"","signature":{"out_spec":")" + structure +
      R"("}}]},"schema_version":{"major":8,"minor":2},"torch_version":"2.9.0"})";
  const std::string weight = float_bytes({1, 2, 3, 4, 5, 6}), buffer = float_bytes({10, 20});
  if (is_old) {
    using namespace pickle;
    const auto saved = [](const std::string& key, const std::string& value, const std::string& data) {
      return zip_archive(
          {{"archive/data.pkl", whole("}(" + text(key) + value + "u")}, {"archive/data/0", data}, {"archive/version", "3\n"}});
    };
    return {{"serialized_exported_program.json", program},
            {"serialized_state_dict.pt", saved("w", tensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1}), weight)},
            {"serialized_constants.pt", saved("k", tensor("FloatStorage", "0", 2, 0, {2}, {1}), buffer)},
            {"version", "6.1"}};
  }
  const auto config = [](const std::string& name, const std::string& path, const std::string& tensor) {
    return R"({"config":{")" + name + R"(":{"path_name":")" + path + R"(","is_param":true,"use_pickle":false,"tensor_meta":)" +
           tensor + "}}}";
  };
  return {
      {"m/models/model.json", program},
      {"m/data/weights/model_weights_config.json",
       config("w", "weight_0", meta(R"([{"as_int":2},{"as_int":3}])", R"([{"as_int":3},{"as_int":1}])"))},
      {"m/data/weights/weight_0", weight},
      {"m/data/constants/model_constants_config.json", config("k", "tensor_0", meta(R"([{"as_int":2}])", R"([{"as_int":1}])"))},
      {"m/data/constants/tensor_0", buffer},
      {"m/archive_format", "pt2"},
      {"m/byteorder", "little"}};
}

std::vector<TorchSample> sample_torch_models() {
  using namespace pickle;
  const std::string two = integer(2);
  TorchModel layers{
      "class M(Module):\n  __parameters__ = [\"weight\", ]\n  weight : Tensor\n  __annotations__[\"0\"] = __torch__.B\n"
      "  def forward(self: __torch__.M,\n    x: Tensor) -> Tensor:\n    w = self.weight\n    _0 = getattr(self, \"0\")\n"
      "    y = torch._convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, False, False, True)\n"
      "    a, b, = torch.chunk(y, 2, 1)\n    _1 = torch.add_(torch.select(a, 1, 0), 1., alpha=2)\n    return "
      "(_0).forward(torch.cat([a, b], 1), )\n"
      "class B(Module):\n  n : int\n  def forward(self: __torch__.B,\n    x: Tensor, k: float=0.5) -> Tensor:\n    out = "
      "annotate(List[Tensor], [])\n"
      "    for i in range(self.n):\n      if torch.eq(torch.remainder(i, 2), 0):\n        z = torch.mul(x, k)\n      else:\n     "
      "   z = torch.relu(x)\n      _0 = torch.append(out, z)\n"
      "    return torch.reshape(torch.stack(out), [torch.len(out), -1])\n",
      {{"weight", tensor("FloatStorage", "0", 72, 0, {4, 2, 3, 3}, {18, 1, 6, 2})}, {"0", object("B", {{"n", two}})}},
      {{"data/0", float_bytes(std::vector<float>(72, 0.25f))},
       {"traced_inputs.pkl",
        whole("}" + text("forward") + "](" + tensor("FloatStorage", "0", 32, 0, {1, 2, 4, 4}, {32, 16, 4, 1}) + "es")}}};
  TorchModel state{
      "class M(Module):\n  s : Tuple[int, Tensor]\n  def __setstate__(self: __torch__.M,\n    state: Tuple[int, Tensor]) -> "
      "NoneType:\n    self.s = state\n    return None\n"
      "  def forward(self: __torch__.M,\n    x: Tensor) -> Dict[str, Tensor]:\n    n, t, = self.s\n    v = "
      "torch.view(torch.add(x, CONSTANTS.c0), [-1])\n    d = {\"a\": torch.add(v, t, alpha=n)}\n"
      "    k = 0\n    while torch.lt(k, 3):\n      torch._set_item(d, torch.format(\"b{}\", k), torch.slice(v, 0, k, "
      "9223372036854775807, 1))\n      k = torch.add(k, 1)\n    return d\n",
      {},
      {}};
  ZipEntries entries{
      {"version", "4\n"},
      {"code/__torch__.py", state.code},
      {"data.pkl", whole(object_with_state("M", tuple({two, tensor("LongStorage", "7", 6, 1, {4}, {1})})))},
      {"data/7", std::string(48, '\x01')},
      {"constants.pkl", whole(tuple({tensor("FloatStorage", "0", 1, 0, {}, {})}))},
      {"constants/0", float_bytes({1.5f})},
      {"traced_inputs.pkl", whole("}" + text("forward") + "](" + tensor("FloatStorage", "0", 4, 0, {2, 2}, {2, 1}) + "es")}};
  const auto named = [](std::string_view name) { return R"({"as_tensor":{"name":")" + std::string(name) + R"("}})"; };
  const std::string linear =
      exported_node("torch.ops.aten.linear.default",
                    exported_argument("input", named("x")) + "," + exported_argument("weight", named("p_w")) + "," +
                        exported_argument("bias", named("b_k")),
                    "y", "fc");
  const ExportedModel exported{.nodes = linear + "," +
                                        exported_node("torch.ops.aten.mean.dim",
                                                      exported_argument("self", named("y")) + "," +
                                                          exported_argument("dim", R"({"as_ints":[1]})") + "," +
                                                          exported_argument("keepdim", R"({"as_bool":true})", 2),
                                                      "z")};
  ExportedModel old = exported;
  old.is_old = true;
  return {
      {"layers", layers.bytes()}, {"state", zip_archive(entries)}, {"exported", exported.bytes()}, {"exported_old", old.bytes()}};
}

}  // namespace orknn::tests
