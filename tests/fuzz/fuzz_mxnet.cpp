// libFuzzer target: a symbol text, a zero byte, a parameter file; what imports gets its shapes inferred.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "import/mxnet/model.h"
#include "ir/infer.h"
#include "ops/eval.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orknn;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  const auto text = bytes.first(static_cast<size_t>(end - bytes.begin()));
  const auto rest = end == bytes.end() ? std::span<const std::byte>() : bytes.subspan(text.size() + 1);
  const auto params = importer::mxnet::Params::parse(rest, {});
  importer::ImportOptions options;
  for (size_t inputs = 1; inputs <= 3; ++inputs) {
    options.input_size_list.push_back({1, 3, 8, 8});
    auto imported = importer::mxnet::import_model(text, params ? &*params : nullptr, options, ops::builtin_ops());
    if (imported) (void)infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  }
  return 0;
}
