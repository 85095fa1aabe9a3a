// Writes small TorchScript archives in memory: zip entries and pickles, as PyTorch lays them out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orknn::tests {

using ZipEntries = std::vector<std::pair<std::string, std::string>>;
// An archive of stored entries.
std::string zip_archive(const ZipEntries& entries);

// Opcodes of pickle protocol 2.
namespace pickle {
std::string global(std::string_view module, std::string_view name);
std::string text(std::string_view value);
std::string integer(int64_t value);
std::string real(double value);
std::string tuple(const std::vector<std::string>& items);
// A tensor of the storage data/<key>.
std::string tensor(std::string_view storage, std::string_view key, int64_t count, int64_t offset,
                   const std::vector<int64_t>& dims, const std::vector<int64_t>& strides);
// An object of class __torch__.<name> with attributes.
std::string object(std::string_view name, const std::vector<std::pair<std::string, std::string>>& attributes);
// The same with a state for __setstate__.
std::string object_with_state(std::string_view name, const std::string& state);
std::string whole(const std::string& value);  // with protocol and end
}  // namespace pickle

std::string float_bytes(const std::vector<float>& values);

struct TorchModel {
  std::string code;                                             // of code/__torch__.py: class M and what it needs
  std::vector<std::pair<std::string, std::string>> attributes;  // of the root object
  ZipEntries more;                                              // further entries, below the top folder
  std::string bytes() const;
};

// An archive of torch.export with input x, weight w of shape [2,3] and buffer k of shape [2]. Nodes, outputs and further entries
// of the description are JSON text.
struct ExportedModel {
  std::string nodes;
  std::string outputs = R"([{"user_output":{"arg":{"as_tensor":{"name":"y"}}}}])";
  std::string sizes = R"([{"as_int":1},{"as_int":3}])";  // of x
  std::string structure = "";                            // of what forward returned; "" = not told
  bool is_old = false;                                   // the layout of before 2.8: weights pickled in an archive of their own
  ZipEntries entries() const;
  std::string bytes() const { return zip_archive(entries()); }
};
// One node: {"target", "inputs", "outputs", ...}; `inputs` are JSON objects without brackets around them.
std::string exported_node(std::string_view target, std::string_view inputs, std::string_view output,
                          std::string_view module = "");
// An argument by position (kind 1), by name (2), or as old files write it (0).
std::string exported_argument(std::string_view name, std::string_view value, int kind = 1);

// Models that between them use every part of the format: seeds for mutation.
struct TorchSample {
  std::string name, bytes;
};
std::vector<TorchSample> sample_torch_models();

}  // namespace orknn::tests
