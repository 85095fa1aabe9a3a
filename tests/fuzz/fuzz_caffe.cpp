// libFuzzer target: any bytes as a Caffe network, text or binary, weights included; what imports gets its shapes inferred.
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
  (void)importer::find_importer("caffe")->sniff(source.bytes);
  auto imported = importer::load_bytes(source, {}, ops::builtin_ops(), "caffe");
  if (imported) (void)infer_shapes(imported->graph, ops::builtin_ops()).is_ok();
  return 0;
}
