// libFuzzer target: any bytes as a Keras file (.h5 or .keras); what imports gets its shapes inferred.
#include <cstddef>
#include <cstdint>
#include <span>

#include "import/importer.h"
#include "ir/infer.h"
#include "ops/eval.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orknn;
  importer::Source source;
  source.bytes = std::as_bytes(std::span(data, size));
  auto imported = importer::load_bytes(source, {}, ops::builtin_ops(), "keras");
  if (imported) (void)infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  return 0;
}
